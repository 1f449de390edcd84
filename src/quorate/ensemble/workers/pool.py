"""A pool of worker processes that can be ended at once, and that ends by itself when its owner is gone.

loky's own executor and not joblib.Parallel, which may write arguments to a memory-mapped file: private rows travel
through pipes and never to disk. And not loky's reusable one, which joblib holds to be its own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from multiprocessing import current_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quorate.ensemble.workers.isolation import ONE_THREAD
from quorate.ensemble.workers.lifetime import FROM_TERMINAL, MARK, after_task, be_worker, end_marked, new_mark
from quorate.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

Result = TypeVar("Result")

# After which a worker without work goes. Long, since a worker that goes while its pool has work makes loky warn.
_IDLE_SECONDS = 600

# How long a worker is given to end what its teachers started; it needs milliseconds, unless it hangs itself.
_GRACE_SECONDS = 1.0

# What scikit-learn reads of the environment when it is loaded, as it is where nobody has set it: no switch of a user's
# process decides what a teacher learns. A teacher's own code may still set what it needs.
OF_SKLEARN = {
    "SKLEARN_ASSUME_FINITE": "",
    "SKLEARN_WORKING_MEMORY": "1024",
    "SKLEARN_PAIRWISE_DIST_CHUNK_SIZE": "256",
}

# How often a wait looks up. polars, once it is loaded, answers SIGINT with a handler of its own under SA_RESTART: the
# kernel goes on with the wait instead of breaking it off, and Python would raise KeyboardInterrupt at its end alone.
_LOOK_UP_SECONDS = 0.2


class WorkerPool:
    """Worker processes that end with the process `owner`; they started with the directory and import path
    `imports_from`.
    """

    def __init__(self, n_jobs: int) -> None:
        refuse_daemon()
        from joblib.externals.loky.process_executor import ProcessPoolExecutor

        self.owner, self.n_jobs, self.imports_from = os.getpid(), n_jobs, import_path()
        self._mark = new_mark()
        with _unheard():
            self._executor = ProcessPoolExecutor(
                max_workers=n_jobs,
                timeout=_IDLE_SECONDS,
                env={**ONE_THREAD, **OF_SKLEARN, MARK: self._mark},
                initializer=be_worker,
                initargs=(self.owner, self._mark),
            )

    def submit(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Have `work` done by one of the workers."""
        with _unheard():
            future: Future[Result] = self._executor.submit(_do, [work, *arguments])
        return future

    def is_lost(self) -> bool:
        """Return whether the thread that hands results out has ended: nothing under way will be heard of."""
        thread = self._executor._executor_manager_thread
        return thread is not None and not thread.is_alive()

    def retire(self) -> None:
        """Let the workers finish what they have, and go."""
        self._executor.shutdown(wait=False)

    def end(self) -> None:
        """End the workers, what they are doing, and whatever that has started; return when all of it is gone."""
        # Taken off loky, which would end them by a program (pgrep) that small machines do not have.
        workers, running = [], self._executor._processes
        while running:
            with suppress(KeyError):  # its own thread may be at the same
                workers.append(running.popitem()[1])
        for worker in workers:
            worker.terminate()
        until = time.monotonic() + _GRACE_SECONDS
        for worker in workers:
            worker.join(max(0.0, until - time.monotonic()))
            if worker.is_alive():
                os.kill(worker.pid, signal.SIGKILL)
        end_marked(self._mark)
        self._executor.shutdown(wait=False, kill_workers=True)


def _do(task: list[Any]) -> Any:
    """In a worker: do a task and keep nothing of it, also where its teachers hold themselves by references."""
    work, *arguments = task
    task.clear()  # loky holds the list until the result is sent
    result = work(*arguments)
    del work, arguments
    after_task()
    return result


@contextmanager
def _unheard() -> Iterator[None]:
    """Block the terminal's signals in this thread, for what is started meanwhile to inherit: Ctrl-C finds no worker
    that hears it, and a closed terminal leaves the resource tracker, which removes what the dead have shared.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, FROM_TERMINAL)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def refuse_daemon() -> None:
    """Refuse a daemonic process of multiprocessing: it may start no other, in which teachers are fitted."""
    if current_process().daemon:
        raise PreconditionFailed(
            "this process may start no other one, and teachers are fitted in processes of their own: it is a daemonic "
            "process, as workers of multiprocessing.Pool, of Celery (prefork) and of joblib's multiprocessing are. "
            "Start the fit from a process of its own: subprocess.run, concurrent.futures.ProcessPoolExecutor, or "
            "celery worker --pool solo"
        )


def import_path() -> tuple[str, ...]:
    """Return from where this process imports: its working directory, then ``sys.path``."""
    try:
        here = str(Path.cwd())
    except FileNotFoundError:  # it was removed
        here = ""
    return (here, *sys.path)


def first_done(under_way: Collection[Future[Result]], *, unless: Callable[[], bool]) -> set[Future[Any]]:
    """Wait until one at least is done, hearing Ctrl-C all the while; return those, or none where `unless` says so."""
    while True:
        in_vain = unless()
        done, _ = wait(under_way, timeout=_LOOK_UP_SECONDS, return_when=FIRST_COMPLETED)
        if done or in_vain:
            return done
