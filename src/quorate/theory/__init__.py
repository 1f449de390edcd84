"""The papers' statements as pure functions of numbers.

Here belongs a bound or a formula that a paper states, with its source, and nothing that knows a mechanism, a ledger
or a row. What a run is set up with by default stands in :mod:`quorate.planning`. Begin with
:mod:`~quorate.theory.cutoff`.
"""

from __future__ import annotations

from typing import Any

from quorate.renamed import moved
from quorate.theory.cutoff import btt18_cutoff, cutoff_for_mean_error
from quorate.theory.relative_entropy import relative_entropy

__all__ = ["btt18_cutoff", "cutoff_for_mean_error", "relative_entropy"]

_MOVED = dict.fromkeys(
    ("recipe", "PublicFacts", "Recipe", "rows_per_teacher", "mechanism_for", "schedule_event", "unanimous_right"),
    "quorate.planning",
)


def __getattr__(name: str) -> Any:
    """Find the names of version 0.1 where they are now."""
    return moved(__name__, name, _MOVED)
