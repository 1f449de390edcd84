"""Worker processes: clean, one thread each, holding only the rows they were sent.

Also with one job: only a process of its own keeps a crash, and what a teacher prints, away from the user's.
"""

from __future__ import annotations

import atexit
import os
from concurrent.futures import BrokenExecutor, Future
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from quorate.arguments import count
from quorate.ensemble.workers.cluster.elsewhere import map_elsewhere
from quorate.ensemble.workers.isolation import Lost, on_one_thread_each, polars_threads, seed_global_generators
from quorate.ensemble.workers.pool import WorkerPool, first_done, import_path
from quorate.errors import InvalidParameter, PreconditionFailed, QuorateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from quorate.ensemble.workers.cluster.scheduler import DaskScheduler

Item = TypeVar("Item")

_SPENT: Final = "spent"  # what a worker says that cannot be forked from any more
_kept: list[WorkerPool] = []  # none or one
_choosing = Lock()  # fits in two threads share the pool that is kept
_at_exit: list[object] = []  # whether the workers are stopped at exit


def packed(thing: Any, called: str, *, where: str = "a worker process") -> bytes:
    """Return what workers are sent of something of the user's own, or refuse it."""
    from cloudpickle import dumps  # type: ignore[import-untyped]

    try:
        pickled: bytes = dumps(thing)
    except Exception as error:  # noqa: BLE001 - pickling runs the user's own code
        raise InvalidParameter(
            f"{called} cannot be sent to {where}: {type(error).__name__}. Keep open files, locks and connections out "
            "of it."
        ) from None
    return pickled


def unpacked(pickled: bytes, called: str) -> Any:
    """In a worker: load what :func:`packed` packed, before any row is looked at: that it fails is a public fact."""
    from cloudpickle import loads

    try:
        return loads(pickled)
    except Exception as error:  # noqa: BLE001 - as in packed
        raise PreconditionFailed(
            f"a worker process cannot load {called}: {type(error).__name__}. "
            "Its code must be importable, or defined in the main script."
        ) from None


def isolated_map(
    work: Callable[[list[Item]], list[bytes | Lost]],
    item: Callable[[int], Item],
    numbers: Sequence[int],
    *,
    n_jobs: int,
    batch: int,
    scheduler: DaskScheduler | None = None,
) -> Iterator[tuple[int, bytes | None]]:
    """Yield ``(number, result)`` for every number, in no particular order; None for an item that failed.

    `work`: run in a worker process on `batch` items, by :func:`~quorate.ensemble.workers.isolation.in_children`.
    `item`: builds the item of one number when it is about to be sent. `n_jobs`: at once, by some of the last call's
    processes. `scheduler`: whose workers do it instead; it decides how many items are sent. An item whose process was
    killed from outside, or whose worker died, may have suffered for its neighbours: it runs once more with nothing
    beside it, in a fresh process.
    """
    n_jobs = count("n_jobs", n_jobs, at_least=1)
    if scheduler is not None:
        yield from map_elsewhere(scheduler, work, ((number, item(number)) for number in numbers))
        return
    batches = [list(numbers[start : start + batch]) for start in range(0, len(numbers), batch)]
    alone: list[int] = []
    for batch_numbers, results in _each_batch(work, item, batches, n_jobs=n_jobs, at_once=2 * n_jobs):
        for position, number in enumerate(batch_numbers):
            result = Lost.KILLED if results is None else results[position]
            if result is Lost.KILLED:
                alone.append(number)
            else:
                yield number, result if isinstance(result, bytes) else None
    for batch_numbers, results in _each_batch(work, item, [[number] for number in alone], n_jobs=n_jobs, at_once=1):
        result = Lost.FAILED if results is None else results[0]
        yield batch_numbers[0], result if isinstance(result, bytes) else None


def _each_batch(
    work: Callable[[list[Item]], list[bytes | Lost]],
    item: Callable[[int], Item],
    batches: list[list[int]],
    *,
    n_jobs: int,
    at_once: int,
) -> Iterator[tuple[list[int], list[bytes | Lost] | None]]:
    """Yield each batch with its results, or None where the worker process was lost or could not read the task."""
    from joblib.externals.loky.process_executor import ShutdownExecutorError

    waiting = list(reversed(batches))
    under_way: dict[Future[Any], list[int]] = {}
    pool = None
    try:
        while waiting or under_way:
            pool = _pool(n_jobs)
            most = at_once if pool.n_jobs == n_jobs else min(at_once, n_jobs)  # none waits for a worker too many
            while waiting and len(under_way) < most:
                numbers = waiting.pop()
                try:
                    under_way[pool.submit(_unless_spent, work, [item(number) for number in numbers])] = numbers
                except (BrokenExecutor, ShutdownExecutorError):  # since it was got; the futures under way say so too
                    waiting.append(numbers)
                    _discard(pool)
                    break
            if not under_way:
                continue
            done = first_done(under_way, unless=pool.is_lost)
            if not done:
                _discard(pool)
                yield from ((under_way.pop(future), None) for future in list(under_way))
            for future in done:
                try:
                    results = future.result()
                except QuorateError:  # a public fact, such as a teacher that no worker can import
                    if pool.imports_from == import_path():
                        raise
                    results = _SPENT  # by code that became importable since: workers that know of it
                except Exception:  # noqa: BLE001 - a lost worker, an item that does not travel: told to nobody
                    results = None
                if results == _SPENT:
                    waiting.extend(under_way.values())
                    under_way.clear()
                    _discard(pool)
                    break
                yield under_way.pop(future), results
    except BaseException:
        # Interrupted or abandoned: nothing private goes on running.
        if pool is not None:
            _discard(pool)
        raise


def end_workers() -> None:
    """End the worker processes that are kept, and all that they started, before returning."""
    if _kept and _kept[0].owner == os.getpid():
        _discard(_kept[0])


def _pool(n_jobs: int) -> WorkerPool:
    """Return workers that are kept for the next call, new ones where the last broke or are too few. More of them are
    not ended: one that has loaded numerical libraries took seconds over it.
    """
    with _choosing:
        if _kept and (_kept[0].owner != os.getpid() or _kept[0].n_jobs < n_jobs):
            if _kept[0].owner == os.getpid():  # a forked child has no hand on its parent's workers
                _kept[0].retire()
            _kept.clear()
        if not _kept:
            if not _at_exit:
                _at_exit.append(atexit.register(end_workers))
            _kept.append(WorkerPool(n_jobs))
        return _kept[0]


def _discard(pool: WorkerPool) -> None:
    """End a pool at once; the next call gets another."""
    if pool in _kept:
        _kept.remove(pool)
    pool.end()


def _unless_spent(
    work: Callable[[list[Item]], list[bytes | Lost]], items: list[Item]
) -> list[bytes | Lost] | Literal["spent"]:
    """In a worker: do the work, unless no child may be forked here any more."""
    return _SPENT if polars_threads() else work(items)


# --- a piece of a user's code is tried where teachers run, in a child that nobody hears and that may crash: on public
# rows alone, since its failure may be told, unlike that of a teacher on private ones --------------------------------

Result = TypeVar("Result")

_LONGEST = 300  # characters of another library's message
_CRASHED = "its process ended without a word, as it does where memory is short or compiled code crashes"


class TrialFailed(Exception):
    """What a trial raised, as ``Type: message`` on one line."""


def tried(function: Callable[..., Result], *rows: Any, called: str = "what is tried") -> Result:
    """Return ``function(*rows)``, called in a child process that prints, warns and logs to nobody; rows are public.

    `function`: travels by cloudpickle with all that it holds, as a teacher does. `called`: what a refusal calls it.
    Raises TrialFailed if it raises, exits or crashes there; InvalidParameter if it cannot be sent; PreconditionFailed
    if a worker cannot import what it is made of, or this process may have no children.
    """
    from cloudpickle import loads

    pickled = packed(function, called, where="a process of its own, where it is tried on public rows")
    work = partial(_try_batch, pickled, called)
    ((_, answer),) = isolated_map(work, lambda _: rows, [0], n_jobs=1, batch=1)
    if answer is None:
        raise TrialFailed(_CRASHED)
    result, failure = loads(answer)
    if failure is not None:
        raise TrialFailed(failure)
    return result  # type: ignore[no-any-return]


def sent(value: Result) -> Result:
    """Return a value as it comes out of a pipe; raises what it raises where it cannot be sent."""
    from cloudpickle import dumps, loads

    received: Result = loads(dumps(value))
    return received


def _try_batch(pickled: bytes, called: str, items: list[tuple[Any, ...]]) -> list[bytes | Lost]:
    """In a worker: load what is tried, as it loads a teacher, and call it in a child."""
    return on_one_thread_each(partial(_try, unpacked(pickled, called)), False, None, items)


def _try(function: Callable[..., Any], rows: tuple[Any, ...]) -> bytes:
    from cloudpickle import dumps

    seed_global_generators(0)
    try:
        answer: bytes = dumps((function(*rows), None))
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit and what compiled code raises too
        said = " ".join(str(error).split())
        answer = dumps((None, f"{type(error).__name__}: {said[:_LONGEST]}" if said else type(error).__name__))
    return answer
