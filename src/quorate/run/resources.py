"""How many processes, threads and how much memory a run may take."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from quorate.arguments import count

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")


def processes(wish: int | None) -> int:
    """Return the number of processes: as wished, or as many as there are cores."""
    if wish is not None and wish != -1:  # as in scikit-learn, -1 is all of them
        return count("n_jobs", wish, at_least=1, hint="None, or -1, takes as many as there are cores")
    from joblib import cpu_count

    return int(cpu_count())


def allowed_memory(wish: int | None) -> int:
    """Return the bytes that a run may take: as wished, or a quarter of what the machine has.

    Where a control group of Linux allows this process less than the machine has, a quarter of that.

    Examples
    --------
    >>> allowed_memory(10**9), allowed_memory(None) > 10**6
    (1000000000, True)
    """
    if wish is not None:
        return wish
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or "max"
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return memory // 4


class Threads:
    """Threads that work on parts of one large thing in NumPy; `n` by default one a core."""

    def __init__(self, n: int | None = None) -> None:
        self.n = processes(n)

    def map(self, work: Callable[[_Part], _Result], parts: Iterable[_Part]) -> Iterator[_Result]:
        """Yield ``work(part)`` of each part in order, few held at a time, in the caller's error state and filters."""
        waiting: deque[Future[_Result]] = deque()
        left = iter(parts)
        if self.n == 1:
            yield from map(work, left)
            return
        try:
            for part in left:
                waiting.append(self._pool.submit(copy_context().run, work, part))
                if len(waiting) > self.n + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n, initializer=_one_of_openmp)


def _one_of_openmp() -> None:
    """Hold OpenMP to one thread in this thread, which has a number of its own there."""
    from threadpoolctl import ThreadpoolController

    ThreadpoolController().limit(limits=1, user_api="openmp")


def return_freed_memory() -> None:
    """Give the system back what the C library keeps of freed memory, where it can: after a large table was read."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; others have none, and keep less
    if trim is not None:
        trim(0)
