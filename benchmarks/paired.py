"""Ours and a peer on the same input, back to back, and how the cost of ours grows.

CPU time is compared and not the clock, since machines are shared; each pair is run a few times and the median of the
ratios is told, since machines also change their speed. Both sides run with one BLAS thread. What they return has to be
equal, or the row fails: a quick wrong answer is no answer.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Work:
    """One prepared comparison.

    Attributes
    ----------
    ours, theirs : callable
        Without arguments; what they return is handed to `same`.
    same : callable
        Whether both results are right; None where there is nothing to compare.
    processes : bool
        Whether either side works in other processes, whose time is counted once they have ended.
    clock : callable, optional
        Tells the CPU seconds used so far in place of these: where workers are kept, and their start is no part of it.
    """

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    same: Callable[[Any, Any], bool]
    processes: bool = False
    clock: Callable[[], float] | None = None


@dataclass(frozen=True)
class Pair:
    """A row: what is done, beside whom, and the least ratio that is hoped for (how many times as fast ours is)."""

    name: str
    peer: str
    at_least: float
    prepare: Callable[[bool], Work]  # of whether it is to be quick
    rounds: int = 5


@dataclass(frozen=True)
class Growth:
    """A curve: CPU time of ours over the size of one thing."""

    name: str
    of: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    prepare: Callable[[int], Callable[[], Any]]
    at_most: float = 1.1
    processes: bool = False
    repeats: int = 3


def cpu_seconds(*, processes: bool) -> float:
    """CPU time of this process, and of all that it started and that have ended."""
    if not processes:
        return time.process_time()
    from joblib.externals.loky import get_reusable_executor

    from quorate.ensemble.workers.workers import end_workers

    get_reusable_executor().shutdown(wait=True)
    end_workers()
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_megabytes(work: Callable[[], Any]) -> float:
    """How much the memory of this process rose while it worked, at most; Linux tells, elsewhere it is not a number."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _told("VmRSS")
        work()
        return max(0.0, (_told("VmHWM") - before) / 1024)
    except OSError:
        return float("nan")


def _told(name: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name + ":"))
    return float(line.split()[1])


def spent(
    work: Callable[[], Any], *, processes: bool, clock: Callable[[], float] | None = None
) -> tuple[float, float, Any]:
    """Return (CPU seconds, seconds by the clock on the wall, what came)."""
    cpu = clock or partial(cpu_seconds, processes=processes)
    before, wall = cpu(), time.perf_counter()
    result = work()
    wall = time.perf_counter() - wall
    return cpu() - before, wall, result


def measure(pair: Pair, *, quick: bool) -> dict[str, Any]:
    """Run one row; the JSON of what was found."""
    work = pair.prepare(quick)
    ours, theirs, clocks = [], [], []
    for rehearsal in (False,) if quick else (True, *[False] * pair.rounds):
        cpu, clock, mine = spent(work.ours, processes=work.processes, clock=work.clock)
        peer_cpu, peer_clock, other = spent(work.theirs, processes=work.processes, clock=work.clock)
        if not work.same(mine, other):
            raise SystemExit(f"{pair.name}: ours and {pair.peer} do not agree")
        if rehearsal:  # in which both sides fill what they keep
            continue
        ours.append(cpu)
        theirs.append(peer_cpu)
        clocks.append(peer_clock / clock)
    ratios = np.array(theirs) / np.array(ours)
    return {
        "name": pair.name,
        "peer": pair.peer,
        "at_least": pair.at_least,
        "ratio": float(np.median(ratios)),
        "least": float(ratios.min()),
        "most": float(ratios.max()),
        "ratio_by_the_clock": float(np.median(clocks)),
        "seconds": float(np.median(ours)),
        "peer_seconds": float(np.median(theirs)),
        "megabytes": peak_megabytes(work.ours),
        "peer_megabytes": peak_megabytes(work.theirs),
        "rounds": len(ours),
    }


def grow(growth: Growth, *, quick: bool) -> dict[str, Any]:
    """Run one curve: the least of a few at each size, and the exponent fitted to the upper half of the sizes."""
    sizes = growth.quick_sizes if quick else growth.sizes
    seconds = []
    for size in sizes:
        work = growth.prepare(size)
        seconds.append(min(spent(work, processes=growth.processes)[0] for _ in range(1 if quick else growth.repeats)))
    upper = slice(len(sizes) // 2 - (len(sizes) == 2), None)
    exponent = np.polyfit(np.log(sizes[upper]), np.log(seconds[upper]), 1)[0]
    said = {key: value for key, value in asdict(growth).items() if key in ("name", "of", "at_most")}
    return said | {"sizes": list(sizes), "seconds": seconds, "exponent": float(exponent)}
