"""From how many queries on a sparse vector answers better than Gaussian noise does: its price does not grow with them.

A sparse vector pays for the queries that it declines, and the stable ones are free; Gaussian noise grows like the root
of their number. So there is a number of queries from which on a query of a given margin is more often answered rightly
by the sparse vector, unless its threshold is out of reach for so few teachers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.errors import InvalidParameter
from quorate.mechanisms import Mechanism, NoisyCounts, StableSparseVector
from quorate.planning.margins import answer_probabilities
from quorate.planning.schedule import mechanism_for

MOST_QUERIES = 10**7  # beyond which nobody asks
CUTOFF = 10
AGREEMENTS = (1.0, 0.9, 0.7)


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """Where a sparse vector is the better one.

    Attributes
    ----------
    margin : float
        Lead of the votes, in units of K.
    n_teachers, cutoff : int
        K and T.
    n_queries : int or None
        The least m from which on it is; None where it never is.
    answered : float
        Probability that the sparse vector answers such a query.
    """

    margin: float
    n_teachers: int
    cutoff: int
    n_queries: int | None
    answered: float

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "margin": self.margin, "n_teachers": self.n_teachers, "cutoff": self.cutoff, "n_queries": self.n_queries,
            "answered": round(self.answered, 6),
        }  # fmt: skip


def sparse_vector_from(
    *, n_teachers: int, n_classes: int, epsilon: float, delta: float, margin: float = 1.0, cutoff: int = CUTOFF
) -> Crossing:
    """Return from how many queries on a sparse vector answers a query of this margin rightly more often.

    Parameters
    ----------
    n_teachers, n_classes : int
        K and C.
    epsilon, delta : float
        The budget of either.
    margin : float
        Lead of the votes in units of K.
    cutoff : int
        How many queries the sparse vector may decline.

    Examples
    --------
    >>> task = {"n_classes": 2, "epsilon": 1.0, "delta": 1e-5}
    >>> sparse_vector_from(n_teachers=250, **task).n_queries is None  # its threshold is above what 250 can agree to
    True
    >>> sparse_vector_from(n_teachers=1_000, **task).n_queries
    2221
    """
    budget: dict[str, Any] = {"n_classes": n_classes, "n_teachers": n_teachers, "epsilon": epsilon, "delta": delta}
    try:
        sparse = mechanism_for(StableSparseVector, {"cutoff": cutoff}, answers=cutoff, **budget)
        answered = _right(sparse, n_teachers, n_classes, margin)
    except InvalidParameter:  # the budget leaves no room for so many stages
        answered = 0.0

    def better(n_queries: int) -> bool:
        gaussian = mechanism_for(NoisyCounts, {}, answers=n_queries, **budget)
        return answered > _right(gaussian, n_teachers, n_classes, margin)

    told: dict[str, Any] = {"margin": margin, "n_teachers": n_teachers, "cutoff": cutoff, "answered": answered}
    if answered <= 1 / n_classes or not better(MOST_QUERIES):
        return Crossing(n_queries=None, **told)
    low, high = cutoff - 1, MOST_QUERIES  # fewer queries than may be declined take no sparse vector
    while high - low > max(1, low // 500):
        middle = round((low * high) ** 0.5) if low > 0 else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if better(middle) else (middle, high)
    return Crossing(n_queries=high, **told)


def _right(mechanism: Mechanism, n_teachers: int, n_classes: int, margin: float) -> float:
    found = answer_probabilities(mechanism, n_teachers=n_teachers, n_classes=n_classes, margins=(margin,))
    assert found is not None  # noqa: S101 - both state their laws
    return found.plurality[0]
