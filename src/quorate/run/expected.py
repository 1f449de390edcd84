"""What is expected of a student, and on what that rests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

Basis: TypeAlias = Literal[
    "labelled public rows", "rules on the pool", "synthetic rows", "learning curve", "paid estimate"
]

#: What each basis means, in a sentence for people.
BASES: Final[dict[Basis, str]] = {
    "labelled public rows": "rehearsed on public rows with their own labels",
    "rules on the pool": "rehearsed on public rows with labels from rules drawn at random, easy and hard ones: a guess "
    "about another labelling, which the true one need not resemble; no pool tells how hard that is, so that these "
    "figures compare the rows of the plan and predict no accuracy, and the range begins at what a guess has",
    "synthetic rows": "rehearsed on made-up rows with labels from rules, easy and hard ones: a guess about other data",
    "learning curve": "rehearsed with labels from rules drawn at random, which are as hard for one teacher as the "
    "learning curve says that was typed in",
    "paid estimate": "rehearsed with labels from rules drawn at random, which are as hard for one teacher as a private "
    "estimate says, which was charged",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """The accuracy of a student before it is made.

    `accuracy`: of one run, on rows like the private ones; in [0, 1]. `low`, `high`: a range that is to hold the
    accuracy of nine runs in ten. `basis`: one of :data:`BASES`. `rehearsals`: how many were played; 0 where none was.
    """

    accuracy: float
    low: float
    high: float
    basis: Basis
    rehearsals: int = 0

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f} %)"

    @property
    def other_labels(self) -> bool:
        """Whether it was found with labels that are not the true ones, which compares two methods coarsely."""
        return self.basis != "labelled public rows"

    def moved(self, by: float) -> Expected:
        """Return the same range about another accuracy, within [0, 1]."""
        accuracy, low, high = (min(1.0, max(0.0, each + by)) for each in (self.accuracy, self.low, self.high))
        return replace(self, accuracy=accuracy, low=low, high=high)

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "accuracy": round(self.accuracy, 4), "low": round(self.low, 4), "high": round(self.high, 4),
            "basis": self.basis, "rehearsals": self.rehearsals,
        }  # fmt: skip
