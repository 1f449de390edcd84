"""What is said about every run, whichever method it has: its metadata, and scores on public rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quorate.report import (
    Utility,
)
from quorate.students import AutoStudent, Student

SHOWN_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)  # "how sensitive is the choice"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMetadata:
    """When and how a run was made: what the shell around it knows."""

    title: str
    command: str
    started: str
    utility: Utility = field(default_factory=Utility)
    readers: tuple[tuple[str, str], ...] = ()  # of files, where they are of another package


def name_of(model: Any) -> str:
    """Class name of a model; the steps of a Pipeline in their order; how a student learned in brackets."""
    if isinstance(model, Student):
        taught = name_of(model.learner)
        return taught if isinstance(model, AutoStudent) else f"{taught} ({type(model).__name__})"
    steps = getattr(model, "steps", None)
    return " → ".join(type(step).__name__ for _, step in steps) if steps else type(model).__name__
