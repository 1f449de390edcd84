"""How a check ended and what a caution says, as values: code decides by them and never by reading a sentence."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from quorate.errors import QuorateWarning


class Outcome(StrEnum):
    """How a question about a run was answered.

    Only a function that ran can end in ``PASSED`` or ``FAILED``.
    """

    PASSED = "passed"
    FAILED = "failed"
    BY_CONSTRUCTION = "by construction"  # the code has no other way; nothing was looked at
    NOT_COVERED = "not covered"  # quorate cannot see it
    NOT_RUN = "not run"


class Severity(StrEnum):
    """How much hangs on a caution."""

    NOTE = "note"  # worth knowing before a choice
    WARNING = "warning"  # a part of the run will not do what it seems to be for
    SERIOUS = "serious"  # the run would be a waste, or promise next to nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class Caution:
    """One thing that its owner should hear before a budget is spent, whether or not it applies here.

    `code`: what programs decide by; it never changes its meaning. `severity`: how much hangs on it. `outcome`:
    ``FAILED`` where it applies, ``PASSED`` where it was looked for and does not, ``NOT_RUN`` where it could not be
    looked for. `words`: one sentence for people, without a full stop; empty where the caution does not apply.
    """

    code: str
    severity: Severity
    outcome: Outcome
    words: str = ""

    @property
    def applies(self) -> bool:
        """Whether the owner should hear it."""
        return self.outcome is Outcome.FAILED

    def tree(self) -> dict[str, Any]:
        """Return the caution as JSON has it."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "outcome": str(self.outcome),
            "message": self.words,
        }


def caution(code: str, severity: Severity, words: str | None) -> Caution:
    """Return a caution that was looked for: it applies where there is something to say.

    Examples
    --------
    >>> caution("one-answer-is-unsure", Severity.WARNING, None).outcome
    <Outcome.PASSED: 'passed'>
    """
    outcome = Outcome.PASSED if words is None else Outcome.FAILED
    return Caution(code=code, severity=severity, outcome=outcome, words=words or "")


def warn_of(cautions: Iterable[Caution]) -> None:
    """Give a warning for each caution that applies and is more than a note; its message begins with the code.

    Warns QuorateWarning at the line that called quorate.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of([caution("labels-are-coins", Severity.SERIOUS, "nothing will be learned")])
    >>> str(caught[0].message)
    'labels-are-coins: nothing will be learned'
    """
    for each in cautions:
        if each.applies and each.severity is not Severity.NOTE:
            warnings.warn(f"{each.code}: {each.words}", QuorateWarning, stacklevel=frames_of_ours())


def frames_of_ours() -> int:
    """How many frames stand between a warning and the code that called us, for the caller's ``stacklevel``."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "quorate",
        "contextlib",
    ):
        frame, level = frame.f_back, level + 1
    return level
