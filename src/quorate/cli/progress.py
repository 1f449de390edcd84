"""Progress bars: one a stage, with counts and time left, and no private number in them. They go to stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorate.types import Watch

STAGES = {
    "teachers": "training teachers",
    "votes": "counting votes",
    "labels": "releasing labels",
    "student": "fitting the student",
    "shards": "changing one unit",
    "coordinates": "reading coordinates",
    "rounds": "gradient rounds",
}


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Watch | None]:
    """Yield a callback ``watch(stage, done, total)`` that draws the bars, or None where nobody looks."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        running = {}

        def watch(stage: str, done: int, total: int) -> None:
            if stage not in running:
                if done >= total:  # stored by an earlier process, or nothing to do: there is no work to show
                    return
                running[stage] = bars.add_task(STAGES.get(stage, stage), total=total)
                if not console.is_terminal:
                    console.print(f"{STAGES.get(stage, stage)} ({total})", highlight=False)
            bars.update(running[stage], completed=done, total=total)

        yield watch
