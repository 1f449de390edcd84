"""The secret hypotheses of private predictions, after a fit: they vote, and each new point is charged once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.errors import BudgetExhausted
from quorate.labelling import Memo
from quorate.learners.concepts.protocol import Concept
from quorate.mechanisms import PrivatePrediction
from quorate.noise import NoiseSource
from quorate.release import Account, DrawnBlock
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret

PURPOSE = "prediction"


@stored_as("quorate.learners.agnostic.hypotheses.Hypotheses")
@dataclass(kw_only=True, slots=True)
class Hypotheses:
    """Secret concepts, and all that ``ask`` needs of a fit: nothing that is drawn or counted is a public attribute."""

    concepts: Secret[tuple[Concept, ...]] = field(repr=False)
    mechanism: PrivatePrediction
    n_queries: int
    noise: NoiseSource
    account: Account
    memo: Memo
    drawn: int = 0

    def answers(self, points: Any, drawn: DrawnBlock) -> list[int]:
        """Let the hypotheses vote on some points, and release one label each."""
        votes = votes_of(self.concepts.reveal(), points)
        released: list[int] = self.mechanism.release_many(votes, drawn.noise(self.noise)).tolist()
        return released

    def refuse_more_than(self, n_new: int) -> None:
        """Refuse to draw more answers than were charged, those that this object drew counted by itself."""
        if self.drawn + n_new > self.n_queries:
            left = self.n_queries - self.drawn
            raise BudgetExhausted(
                f"{n_new:,} new points were asked, and {left:,} of n_queries={self.n_queries:,} answers are left; ask "
                "fewer, or fit again with more",
                spent=self.drawn,
                requested=n_new,
                limit=self.n_queries,
                unit="answers",
            )


def votes_of(hypotheses: tuple[Concept, ...], points: Any) -> IntArray:
    """Count the votes for 0 and for 1, ``(n_points, 2)``."""
    ones = np.zeros(len(points), dtype=np.int64)
    for each in hypotheses:
        ones += each.labels(points)
    return np.column_stack([len(hypotheses) - ones, ones])
