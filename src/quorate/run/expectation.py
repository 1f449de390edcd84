"""What is expected of a student before it is made: its accuracy or score, with a range, and on what that rests."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from quorate.students.scores import SCORE_WORDS

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
class ExpectedValue:
    """What is expected of the score that a run is judged by, where that is not accuracy; a range for nine in ten."""

    scoring: str
    value: float
    low: float
    high: float
    baseline: float

    @property
    def merit(self) -> float:
        """The value, or its negative where the smaller is the better."""
        return _merit(self.scoring, self.value)

    @property
    def gain(self) -> float:
        """How much better than always saying the commonest class; 0 or below where it is not."""
        return self.merit - _merit(self.scoring, self.baseline)

    def moved(self, by: float) -> ExpectedValue:
        """Return the same range about another value, as far as the score goes."""
        top = math.inf if self.scoring == "log_loss" else 1.0
        value, low, high = (min(top, max(0.0, end + by)) for end in (self.value, self.low, self.high))
        return replace(self, value=value, low=low, high=high)

    def __str__(self) -> str:
        return f"{SCORE_WORDS[self.scoring]} {self.figures}"

    @property
    def figures(self) -> str:
        """The value and its range, without the name."""
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        figures = {"value": self.value, "low": self.low, "high": self.high, "baseline": self.baseline}
        return {"scoring": self.scoring, **{name: round(figure, 4) for name, figure in figures.items()}}


def _merit(scoring: str, value: float) -> float:
    return -value if scoring == "log_loss" else value


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """The accuracy of a student before it is made: of one run on rows like the private ones, and a range for nine runs
    in ten. `rehearsals`: how many were played. `scored`: the same of the score that the run is judged by; None where
    that is accuracy.
    """

    accuracy: float
    low: float
    high: float
    basis: Basis
    rehearsals: int = 0
    scored: ExpectedValue | None = None

    def __str__(self) -> str:
        if self.scored is not None:
            return str(self.scored)
        return f"{100 * self.accuracy:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f} %)"

    @property
    def merit(self) -> float:
        """What rows of a plan are put in order by: the chosen score, the larger the better, else accuracy."""
        return self.accuracy if self.scored is None else self.scored.merit

    @property
    def ends(self) -> tuple[float, float, float]:
        """The chosen score and its range, else those of the accuracy."""
        scored = self.scored
        if scored is not None:
            return scored.value, scored.low, scored.high
        return self.accuracy, self.low, self.high

    def gain(self, commonest: float) -> float:
        """How much better it is than always saying the commonest class, of which `commonest` is the share."""
        return self.accuracy - commonest if self.scored is None else self.scored.gain

    @property
    def other_labels(self) -> bool:
        """Whether it was found with labels that are not the true ones, which compares two methods coarsely."""
        return self.basis != "labelled public rows"

    def moved(self, by: float, *, scored_by: float = 0.0) -> Expected:
        """Return the same ranges about another accuracy, within [0, 1], and another value of the chosen score."""
        accuracy, low, high = (min(1.0, max(0.0, value + by)) for value in (self.accuracy, self.low, self.high))
        scored = None if self.scored is None else self.scored.moved(scored_by)
        return replace(self, accuracy=accuracy, low=low, high=high, scored=scored)

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "accuracy": round(self.accuracy, 4), "low": round(self.low, 4), "high": round(self.high, 4),
            "basis": self.basis, "rehearsals": self.rehearsals,
            **({} if self.scored is None else {"scored": self.scored.tree()}),
        }  # fmt: skip
