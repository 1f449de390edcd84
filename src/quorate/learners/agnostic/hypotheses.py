"""The secret hypotheses of private predictions, after a fit: they vote, and each new point is charged once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.errors import BudgetExhausted, PreconditionFailed
from quorate.labelling import Memo
from quorate.learners.concepts.protocol import Concept
from quorate.ledger import Budget, Ledger, Reservation
from quorate.mechanisms import PrivatePrediction
from quorate.noise import NoiseSource
from quorate.release import Drawn, GivenLedger, RollbackGuard, session
from quorate.types import IntArray, Secret

PURPOSE = "prediction"


@dataclass(kw_only=True, slots=True)
class Hypotheses:
    """Secret concepts, and all that ``ask`` needs of a fit: nothing that is drawn or counted is a public attribute."""

    concepts: Secret[tuple[Concept, ...]] = field(repr=False)
    mechanism: PrivatePrediction
    n_queries: int
    noise: NoiseSource
    charge: tuple[str, str]
    ledger: Ledger
    budget: Budget
    memo: Memo
    guard: RollbackGuard
    drawn: int = 0

    def opened(self, given: GivenLedger) -> AbstractContextManager[Ledger]:
        """Open the ledger for one act, if it holds all that this object saw it hold."""
        return session(given, budget=self.budget, in_memory=self.ledger, guard=self.guard)

    def answers(self, points: Any, drawn: Drawn) -> list[int]:
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

    def reservation(self, ledger: Ledger) -> Reservation:
        """Return the charge of the fit, as the ledger that was opened for this act holds it."""
        key, client = self.charge
        found = ledger.reservation(key, client=client)
        if found is None:
            raise PreconditionFailed("the ledger holds no reservation of this fit; give the ledger it was fitted with")
        return found


def votes_of(hypotheses: tuple[Concept, ...], points: Any) -> IntArray:
    """Count the votes for 0 and for 1, ``(n_points, 2)``."""
    ones = np.zeros(len(points), dtype=np.int64)
    for each in hypotheses:
        ones += each.labels(points)
    return np.column_stack([len(hypotheses) - ones, ones])
