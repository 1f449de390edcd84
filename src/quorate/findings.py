"""What was found out about a run, one kind of value for all of it: code decides by it and never by reading a sentence.

What a check prints, a fit warns of, a report lists, an export proves and a service logs are findings.
"""

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

    Only a function that looked can end in ``PASSED`` or ``FAILED``.
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
class Finding:
    """One thing that was found out, or looked for.

    Parameters
    ----------
    code : str
        What programs decide by; it never changes its meaning.
    outcome : Outcome
        Of a question: how it was answered. Of something to mind: ``FAILED`` where it applies, ``PASSED`` where it was
        looked for and does not, ``NOT_RUN`` where it could not be looked for.
    severity : Severity, default NOTE
        How much hangs on it.
    words : str
        One sentence for people, without a full stop: what to mind, empty where it does not apply; or the question that
        was asked, to which yes is good.
    evidence : str
        What was seen to answer a question and what follows from it, in a sentence or two. Public.
    remedy : str, optional
        What the owner can do where the answer is not yes.
    ran : str, optional
        The function that looked, by the name that facts have for it; None where none did.

    Examples
    --------
    >>> finding = Finding(code="labels-are-coins", outcome=Outcome.FAILED, severity=Severity.SERIOUS, words="no use")
    >>> finding.applies, finding.holds, finding.tree()["message"]
    (True, False, 'no use')
    """

    code: str
    outcome: Outcome
    severity: Severity = Severity.NOTE
    words: str = ""
    evidence: str = ""
    remedy: str | None = None
    ran: str | None = None

    @property
    def applies(self) -> bool:
        """Whether the owner should hear it."""
        return self.outcome is Outcome.FAILED

    @property
    def holds(self) -> bool:
        """Whether the answer is yes: something looked, or the code has no other way."""
        return self.outcome in (Outcome.PASSED, Outcome.BY_CONSTRUCTION)

    def tree(self) -> dict[str, Any]:
        """Return what is to be minded as JSON has it."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "outcome": str(self.outcome),
            "message": self.words,
        }

    def answer_tree(self) -> dict[str, Any]:
        """Return the answer to a question as JSON has it."""
        return {
            "code": self.code,
            "question": self.words,
            "outcome": str(self.outcome),
            "evidence": self.evidence,
            "ran": self.ran,
            "remedy": self.remedy,
        }


def not_covered(code: str, question: str, evidence: str, remedy: str) -> Finding:
    """Return the answer to a question that quorate cannot see."""
    return Finding(code=code, outcome=Outcome.NOT_COVERED, words=question, evidence=evidence, remedy=remedy)


def note(code: str, words: str) -> Finding:
    """Return something that is worth knowing: nothing is wrong, but it may not be what was meant."""
    return Finding(code=code, outcome=Outcome.FAILED, words=words)


def caution(code: str, severity: Severity, words: str | None) -> Finding:
    """Return a caution that was looked for: it applies where there is something to say.

    Examples
    --------
    >>> caution("one-answer-is-unsure", Severity.WARNING, None).outcome
    <Outcome.PASSED: 'passed'>
    """
    outcome = Outcome.PASSED if words is None else Outcome.FAILED
    return Finding(code=code, severity=severity, outcome=outcome, words=words or "")


def warn_of(cautions: Iterable[Finding]) -> None:
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
    for caution in cautions:
        if caution.applies and caution.severity is not Severity.NOTE:
            warnings.warn(f"{caution.code}: {caution.words}", QuorateWarning, stacklevel=frames_of_ours())


def frames_of_ours() -> int:
    """How many frames stand between a warning and the code that called us, for the caller's ``stacklevel``."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "quorate",
        "contextlib",
    ):
        frame, level = frame.f_back, level + 1
    return level
