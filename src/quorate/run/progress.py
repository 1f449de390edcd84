"""Progress of a run: one bar a stage, with counts and time left, and no private number in it. It goes to stderr.

In a terminal the bars move; in a notebook with ipywidgets they stand below the cell; anywhere else (a log file, a
pipe, a notebook without ipywidgets) there are plain lines: one when a stage begins, and then at most one every few
seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from quorate.arguments import count

if TYPE_CHECKING:
    from quorate.types import Watch

STAGES = {
    "teachers": "training teachers",
    "votes": "counting votes",
    "rows": "dealing out rows",  # to teachers that train nothing before they are asked
    "calls": "training and voting",
    "labels": "releasing labels",
    "student": "fitting the student",
    "shards": "changing one unit",
    "private rows": "reading private rows",
    "private rows again": "reading them as at first",  # by the encoder that the run began with
    "coordinates": "reading coordinates",
    "rounds": "gradient rounds",
}
_IN_PARTS = {"private rows", "private rows again", "coordinates"}  # of PARTS each
SECONDS_BETWEEN_LINES = 5.0
PARTS = 100  # in which it is told how far a pass over private rows is: no number of them is shown


def wanted(verbose: object) -> bool:
    """Return whether an estimator's ``verbose=`` asks for progress; raises InvalidParameter if it is none."""
    return verbose if isinstance(verbose, bool) else count("verbose", verbose, hint="True shows progress") > 0


class PlainLines:
    """Progress where nothing can be drawn over: a line when a stage begins, then at most one every few seconds."""

    def __init__(self, write: Callable[[str], Any], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._write, self._clock = write, clock
        self._begun: dict[str, tuple[float, int]] = {}  # when a stage was last heard of as it began, and how far it was
        self._last = 0.0  # when a line was written

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Hear of progress, and write a line where it is time for one."""
        name = STAGES.get(stage, stage)
        if stage not in self._begun:
            if done >= total:  # stored by an earlier process, or nothing to do: there is no work to show
                return
            self._last = self._clock()
            self._begun[stage] = (self._last, done)
            before = f", {done} of them done before" if done else ""
            self._write(name if stage in _IN_PARTS else f"{name} ({total}{before})")
            return
        now, (begun, first) = self._clock(), self._begun[stage]
        if done <= first:  # what is left is told by the time since work began: files may be opened before
            self._begun[stage] = (now, done)
            return
        if done >= total or now - self._last < SECONDS_BETWEEN_LINES:
            return
        self._last = now
        left = (now - begun) / (done - first) * (total - done)
        far = f"{100 * done // total} %" if stage in _IN_PARTS else f"{done} of {total}"
        self._write(f"{name}: {far}, about {duration(left)} left")


def in_parts(watch: Watch | None, stage: str) -> Callable[[int, int], None] | None:
    """Return what hears of rows and tells of parts, beginning with none; None where nobody looks."""
    if watch is None:
        return None
    watch(stage, 0, PARTS)
    return lambda done, total: watch(stage, PARTS * done // total, PARTS)


def duration(seconds: float) -> str:
    """Write a time to wait in the unit that people would use.

    Examples
    --------
    >>> duration(8.2), duration(160), duration(9_000)
    ('8 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def say(line: str) -> None:
    """Write a line where progress is shown: neither a warning nor a log, and nothing where nobody reads."""
    with suppress(Exception):  # no terminal, or a closed one
        sys.stderr.write(f"{line}\n")


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Watch | None]:
    """Yield a callback ``watch(stage, done, total)`` that shows progress, or None where nobody looks."""
    if quiet:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    plain = not (console.is_terminal or console.is_jupyter)
    if console.is_jupyter and find_spec("ipywidgets") is None:  # its output cannot be drawn over, whatever it says
        console, plain = Console(stderr=True, force_jupyter=False, force_terminal=False), True
    if plain:
        yield PlainLines(lambda line: console.print(line, highlight=False, soft_wrap=True))
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        running: dict[str, Any] = {}

        def watch(stage: str, done: int, total: int) -> None:
            if stage not in running:
                if done >= total:  # as in plain lines
                    return
                running[stage] = bars.add_task(STAGES.get(stage, stage), total=total)
            bars.update(running[stage], completed=done, total=total)

        yield watch
