"""Worker processes: clean, one thread each, holding only the rows they were sent.

Also with one job: only a process of its own keeps a crash, and what a teacher prints, away from the user's.
"""

from __future__ import annotations

import atexit
import os
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from quorate.arguments import count
from quorate.ensemble.isolation import ONE_THREAD, Lost
from quorate.errors import QuorateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from joblib.externals.loky.process_executor import ProcessPoolExecutor

Item = TypeVar("Item")

# After which a kept worker goes. Long, since a worker that goes while its pool has work makes loky warn.
_IDLE_SECONDS = 600


class _Kept(NamedTuple):
    of: tuple[int, int]  # the process that owns it, and its number of workers
    pool: ProcessPoolExecutor


_kept: list[_Kept] = []  # none or one
_at_exit: list[object] = []  # whether the workers are stopped at exit


def isolated_map(
    work: Callable[[list[Item]], list[bytes | Lost]],
    item: Callable[[int], Item],
    numbers: Sequence[int],
    *,
    jobs: int,
    batch: int,
) -> Iterator[tuple[int, bytes | None]]:
    """Yield ``(number, result)`` for every number, in no particular order; None for an item that failed.

    Parameters
    ----------
    work : callable
        Run in a worker process on a batch of items; uses
        :func:`~quorate.ensemble.isolation.in_children` for each.
    item : callable
        Builds the item of one number, when it is about to be sent: only batches under way are held.
    numbers : sequence of int
        Which items.
    jobs : int
        How many worker processes.
    batch : int
        Items sent at once.

    Notes
    -----
    An item whose process was killed from outside, or whose worker died, may have suffered for its neighbours
    (memory is shared). It is run once more with nothing beside it, in a fresh process; if that dies too, it was
    its own doing.
    """
    jobs = count("jobs", jobs, at_least=1)
    batches = [list(numbers[start : start + batch]) for start in range(0, len(numbers), batch)]
    alone: list[int] = []
    for batch_numbers, results in _each_batch(work, item, batches, jobs=jobs, at_once=2 * jobs):
        for position, number in enumerate(batch_numbers):
            result = Lost.KILLED if results is None else results[position]
            if result is Lost.KILLED:
                alone.append(number)
            else:
                yield number, result if isinstance(result, bytes) else None
    for batch_numbers, results in _each_batch(work, item, [[number] for number in alone], jobs=jobs, at_once=1):
        result = Lost.FAILED if results is None else results[0]
        yield batch_numbers[0], result if isinstance(result, bytes) else None


def _each_batch(
    work: Callable[[list[Item]], list[bytes | Lost]],
    item: Callable[[int], Item],
    batches: list[list[int]],
    *,
    jobs: int,
    at_once: int,
) -> Iterator[tuple[list[int], list[bytes | Lost] | None]]:
    """Yield each batch with its results, or None where the worker process was lost or could not read the task."""
    from joblib.externals.loky.process_executor import ShutdownExecutorError

    waiting = list(reversed(batches))
    under_way: dict[Future[Any], list[int]] = {}
    executor = None
    try:
        while waiting or under_way:
            executor = _pool(jobs)
            while waiting and len(under_way) < at_once:
                numbers = waiting.pop()
                try:
                    under_way[executor.submit(work, [item(number) for number in numbers])] = numbers
                except (BrokenExecutor, ShutdownExecutorError):  # since it was got; the futures under way say so too
                    waiting.append(numbers)
                    _discard(executor)
                    break
            if not under_way:
                continue
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield under_way.pop(future), _result(future)
    except BaseException:
        # Interrupted or abandoned: nothing private goes on running.
        if executor is not None:
            _discard(executor)
        raise


def _pool(jobs: int) -> ProcessPoolExecutor:
    """Return worker processes that are kept for the next call, a new set where the last one broke.

    loky's own executor and not joblib.Parallel: with one job that runs in the user's process, and with several it may
    write large arguments to a memory-mapped file; here private rows travel through pipes and never to disk. And a pool
    of our own and not loky's reusable one: joblib holds that one to be its own, and fails on anybody else's.
    """
    from joblib.externals.loky.process_executor import ProcessPoolExecutor

    if _kept and _kept[0].of != (os.getpid(), jobs):
        if _kept[0].of[0] == os.getpid():  # a forked child has no hand on its parent's workers
            _kept[0].pool.shutdown(wait=False)
        _kept.clear()
    if not _kept:
        if not _at_exit:
            _at_exit.append(atexit.register(_close))
        pool = ProcessPoolExecutor(max_workers=jobs, timeout=_IDLE_SECONDS, env=dict(ONE_THREAD))
        _kept.append(_Kept((os.getpid(), jobs), pool))
    return _kept[0].pool


def _close() -> None:
    """Stop the workers before the interpreter takes its modules apart."""
    if _kept and _kept[0].of[0] == os.getpid():
        _kept[0].pool.shutdown(wait=True, kill_workers=True)
        _kept.clear()


def _discard(pool: ProcessPoolExecutor) -> None:
    """Stop a pool at once; the next call gets another."""
    pool.shutdown(wait=False, kill_workers=True)
    _kept.clear()


def _result(future: Future[Any]) -> list[bytes | Lost] | None:
    try:
        results: list[bytes | Lost] = future.result()
    except QuorateError:
        raise  # a public fact, such as a teacher that no worker can import
    except Exception:  # noqa: BLE001 - a lost worker, an item that does not travel: told to nobody, see isolated_map
        return None
    return results
