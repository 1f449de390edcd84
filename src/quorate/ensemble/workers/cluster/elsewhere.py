"""Have batches done by the workers of a scheduler, with the promises of :mod:`quorate.ensemble.workers.workers`.

Dask starts a lost worker's task again on another one: the items lie where they lay, and so does the function, so that
the results are the same. A task that loses its worker again and again is given up by Dask. Whose doing that was cannot
be told, so each item of it is run once more alone, from a file that holds nothing of its neighbours, one at a time on
the whole cluster; an item that fails then too counts as failed, as it would on this machine.

An item is packed into bytes by itself, and only a worker unpacks it: what it holds may end the process that does.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from quorate.ensemble.workers.cluster.exchange import Stored, pack, put, put_each, remove, take_each
from quorate.ensemble.workers.cluster.remote import RemoteTask, do_remotely, packages_named
from quorate.ensemble.workers.isolation import Lost
from quorate.ensemble.workers.pool import import_path
from quorate.errors import PreconditionFailed, QuorateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from quorate.ensemble.workers.cluster.scheduler import Connection, DaskScheduler

Item = TypeVar("Item")

TASK = 64  # items of a task
FEWEST = 0.78  # of a task: what is left for a last one goes to the one before
_AHEAD = 2  # tasks that wait at each thread of a worker: its next one is there when it has done one
_LOOK_UP_SECONDS = 0.2


class _Batch(NamedTuple):
    """Some items, and the file where they lie, and no others."""

    numbers: tuple[int, ...]
    stored: Stored


def map_elsewhere(
    scheduler: DaskScheduler,
    work: Callable[[list[Item]], list[bytes | Lost]],
    items: Iterable[tuple[int, Item]],
    *,
    size: int = TASK,
    near: bool = False,
) -> Iterator[tuple[int, bytes | None]]:
    """Yield ``(number, result)`` for every item, in no particular order; None for an item that failed.

    `work`: as in :func:`~quorate.ensemble.workers.workers.isolated_map`. `items`: asked for when a task is about to be
    sent. `near`: whether a task whose first item has the same number goes to the same worker, which may have kept
    something of it. Raises Interrupted if the scheduler or all workers are gone; PreconditionFailed if a worker is set
    up otherwise.
    """
    with scheduler.connected() as connection:
        sent = put(connection.folder, work)
        connection.environment = {**packages_named(pack(work)), **connection.environment}
        killed: list[tuple[_Batch, list[int]]] = []
        for batch, results in _each_batch(connection, sent, _stored(connection, items, size), alone=False, near=near):
            lost = [at for at in range(len(batch.numbers)) if results is None or results[at] is Lost.KILLED]
            for at in range(len(batch.numbers)):
                if results is not None and results[at] is not Lost.KILLED:
                    yield batch.numbers[at], _bytes(results[at])
            if lost:
                killed.append((batch, lost))
            else:
                remove(connection.folder, batch.stored)
        for batch, results in _each_batch(connection, sent, _alone(connection.folder, killed), alone=True):
            yield batch.numbers[0], None if results is None else _bytes(results[0])
            remove(connection.folder, batch.stored)
        remove(connection.folder, sent)


def batches_of(items: Iterable[tuple[int, Item]], *, size: int = TASK) -> Iterator[list[tuple[int, Item]]]:
    """Put items together to tasks: `size` each, and up to 1.78 times as many in the last."""
    before: list[tuple[int, Item]] = []
    batch: list[tuple[int, Item]] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            if before:
                yield before
            before, batch = batch, []
    if len(batch) >= FEWEST * size:
        yield from filter(None, (before, batch))
    elif before or batch:
        yield before + batch


def _stored(connection: Connection, items: Iterable[tuple[int, Item]], size: int) -> Iterator[_Batch]:
    for batch in batches_of(items, size=size):
        stored = put_each(connection.folder, (pack(item) for _, item in batch))
        yield _Batch(tuple(number for number, _ in batch), stored)


def _alone(folder: Path, killed: list[tuple[_Batch, list[int]]]) -> Iterator[_Batch]:
    """Give each lost item a file of its own: whoever unpacks it meets nothing of its neighbours."""
    for batch, places in killed:
        packed: list[bytes] = take_each(folder, batch.stored)
        files = [put_each(folder, [packed[at]]) for at in places]
        remove(folder, batch.stored)
        for at, stored in zip(places, files, strict=True):
            yield _Batch((batch.numbers[at],), stored)


def _bytes(result: bytes | Lost) -> bytes | None:
    return result if isinstance(result, bytes) else None


def _each_batch(
    connection: Connection, work: Stored, batches: Iterator[_Batch], *, alone: bool, near: bool = False
) -> Iterator[tuple[_Batch, list[bytes | Lost] | None]]:
    """Yield each batch with its results, or None where it lost its worker too often."""
    under_way: dict[str, tuple[Any, _Batch]] = {}
    done: SimpleQueue[Any] = SimpleQueue()
    waiting = True
    try:
        while True:
            while waiting and len(under_way) < (1 if alone else _AHEAD * max(1, connection.threads())):
                batch = next(batches, None)
                if batch is None:
                    waiting = False
                    break
                future = _submit(connection, work, batch, done, near=near)
                under_way[future.key] = (future, batch)
            if not under_way:
                return
            future = _next(connection, done)
            _, batch = under_way.pop(future.key)
            yield batch, _results(connection, future)
    finally:
        with suppress(Exception):  # a scheduler that is gone has nothing to cancel
            if under_way and connection.client.status == "running":
                connection.client.cancel([future for future, _ in under_way.values()])


def _submit(connection: Connection, work: Stored, batch: _Batch, done: SimpleQueue[Any], *, near: bool) -> Any:
    places = tuple(str(Path(place).absolute()) for place in import_path() if place)
    task = RemoteTask(str(connection.folder), work, batch.stored, connection.environment, places)
    # A name that tells nothing: Dask's pages show it, and its logs.
    key = f"quorate-{os.urandom(8).hex()}"
    where: dict[str, Any] = {}
    if near and (workers := connection.workers):
        where = {"workers": [workers[batch.numbers[0] % len(workers)]], "allow_other_workers": True}
    future = connection.call(lambda: connection.client.submit(do_remotely, task, key=key, pure=False, **where))
    connection.call(lambda: future.add_done_callback(done.put))
    return future


def _next(connection: Connection, done: SimpleQueue[Any]) -> Any:
    """Wait until one is done, so that Ctrl-C is heard all the while."""
    while True:
        try:
            return done.get(timeout=_LOOK_UP_SECONDS)
        except Empty:
            connection.wait()


def _results(connection: Connection, future: Any) -> list[bytes | Lost] | None:
    """Read what a task has written; None where its worker was lost again and again."""
    try:
        result = future.result()
    except QuorateError:
        raise
    except Exception as error:  # noqa: BLE001 - before anything private was read there: see quorate.ensemble.workers.cluster.remote
        if future.status != "error":  # not the task's error: that of who was asked for its result
            raise connection.gone() from None
        if type(error).__name__ == "KilledWorker":
            return None
        raise PreconditionFailed(
            f"a worker cannot begin: {type(error).__name__}. Its versions and its code must be those of this machine; "
            "its log says more"
        ) from None
    if result.stored is None and not result.errno:
        return None
    if result.stored is None:
        raise OSError(result.errno, os.strerror(result.errno), str(connection.folder.parent))
    results: list[bytes | Lost] = take_each(connection.folder, result.stored)
    remove(connection.folder, result.stored)
    return results
