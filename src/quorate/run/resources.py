"""How many processes and how much memory a run may take."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from quorate.arguments import count


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
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or "max"
        there = min(there, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return there // 4
