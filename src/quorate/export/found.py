"""What a check found: an outcome, what was seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.outcomes import Outcome

_ASK = "Do not accept the package; ask its owner for a new one."


@dataclass(frozen=True, slots=True)
class Found:
    """How one question was answered.

    `outcome`: passed, failed or not run. `evidence`: what was seen, in a sentence or two. `remedy`: what to do where
    the answer is not yes.
    """

    outcome: Outcome
    evidence: str
    remedy: str | None = None


def passed(evidence: str) -> Found:
    """Return a yes."""
    return Found(Outcome.PASSED, evidence)


def failed(evidence: str, remedy: str = _ASK) -> Found:
    """Return a no."""
    return Found(Outcome.FAILED, evidence, remedy)


def not_run(evidence: str, remedy: str | None = None) -> Found:
    """Return that nothing looked."""
    return Found(Outcome.NOT_RUN, evidence, remedy)


def named(names: Sequence[str]) -> str:
    """Return names of files in a sentence, the first eight of them.

    Examples
    --------
    >>> named(["a.csv", "b.csv"])
    "'a.csv', 'b.csv'"
    """
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8:,} more" if len(names) > 8 else shown
