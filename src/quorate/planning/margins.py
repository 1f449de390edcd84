"""How often a released label is the class with most votes, and how often it is the truth, as functions of the margin.

Sums over the mechanism's own noise on the integers; they look at no vote. The *plurality* is told for votes as they
fell, the leading class ahead of each other one by the margin in units of K: the hardest vote of that lead. The *truth*
is told for teachers that are independent and vote for it with a probability that is ahead by the margin.

*From how many queries on a sparse vector answers better than Gaussian noise*: it pays for the queries that it declines,
and Gaussian noise grows like the root of all. Logarithms of failing are compared, since no float near 1 shows the
difference, which matters only where Gaussian noise fails on one query in 1,000.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, inf, log, log1p
from typing import Any, Literal

import numpy as np

from quorate.deferred import stats
from quorate.errors import InvalidParameter
from quorate.mechanisms import Mechanism, NoisyCounts, StableSparseVector, distance_to_instability
from quorate.mechanisms.schedule import mechanism_for
from quorate.types import FloatArray, IntArray

MARGINS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_NODES = 41  # numbers of votes at which the binomial law is summed, where K is larger


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerProbabilities:
    """What becomes of a query, by its margin in units of K: of votes for the plurality, of a teacher's for truth."""

    margins: tuple[float, ...]
    answered: tuple[float, ...]
    plurality: tuple[float, ...]
    truth: tuple[float, ...]

    def tree(self) -> dict[str, list[float]]:
        """Return them as JSON has them."""
        return {
            name: [round(value, 6) for value in getattr(self, name)]
            for name in ("margins", "answered", "plurality", "truth")
        }


def answer_probabilities(
    mechanism: Mechanism, *, n_teachers: int, n_classes: int, margins: tuple[float, ...] = MARGINS
) -> AnswerProbabilities | None:
    """Return what becomes of queries with these margins; None where a mechanism states no law."""
    if mechanism.takes != "votes":
        return None
    leads = np.array([leading(margin, n_teachers, n_classes) for margin in margins])
    law = mechanism.answer_law(votes(leads, n_teachers, n_classes), n_classes - 1)
    if law is None:
        return None
    nodes, weights = zip(*(_binomial(n_teachers, margin, n_classes) for margin in margins), strict=True)
    by_node = mechanism.answer_law(votes(np.concatenate(nodes), n_teachers, n_classes), n_classes - 1)
    assert by_node is not None  # noqa: S101 - the same mechanism has stated one
    right = np.split(by_node[:, 0], np.cumsum([len(node) for node in nodes])[:-1])
    return AnswerProbabilities(
        margins=margins,
        answered=tuple((1 - law[:, 1]).tolist()),
        plurality=tuple(law[:, 0].tolist()),
        truth=tuple(float(p @ w) for p, w in zip(right, weights, strict=True)),
    )


def leading(margin: float, n_teachers: int, n_classes: int) -> int:
    """Return the votes of a class that is ahead of each other class by this share of K, which share the rest."""
    return round(n_teachers * (1 + (n_classes - 1) * margin) / n_classes)


def votes(leads: IntArray, n_teachers: int, n_classes: int) -> IntArray:
    """Return votes ``(n, n_classes)``: the last class has these, and the others share the rest evenly."""
    rest = (n_teachers - leads)[:, None]
    others = np.arange(n_classes - 1)[None, :]
    return np.column_stack([rest // (n_classes - 1) + (others < rest % (n_classes - 1)), leads]).astype(np.int64)


def _binomial(n_teachers: int, margin: float, n_classes: int) -> tuple[IntArray, FloatArray]:
    """Return numbers of votes for the truth and their probabilities: all of them, or nodes of equal distance."""
    p = (1 + (n_classes - 1) * margin) / n_classes
    if p >= 1:
        return np.array([n_teachers]), np.ones(1)
    middle, spread = n_teachers * p, np.sqrt(n_teachers * p * (1 - p))
    low, high = max(0, int(middle - 6 * spread)), min(n_teachers, int(middle + 6 * spread) + 1)
    nodes = np.unique(np.linspace(low, high, _NODES).round().astype(np.int64))
    if high - low <= _NODES:
        nodes = np.arange(low, high + 1)
    weights = stats.binom.pmf(nodes, n_teachers, p)
    return nodes, np.asarray(weights / weights.sum())


MOST_QUERIES = 10**7  # beyond which nobody asks
CUTOFF = 10
MATTERS = 1e-3  # where a query is answered wrongly less often, nobody will notice which mechanism answered
AGREEMENTS = (1.0, 0.9, 0.7)


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """Where a sparse vector is the better one: the least m from which on it is, by a difference that matters; None
    where there is none. `difference`: "does not matter" where even :data:`MOST_QUERIES` queries of Gaussian noise fail
    less often than :data:`MATTERS`, "none" where the sparse vector never answers more often.
    """

    margin: float
    n_teachers: int
    cutoff: int
    n_queries: int | None
    answered: float
    difference: Literal["matters", "does not matter", "none"]

    def tree(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "margin": self.margin, "n_teachers": self.n_teachers, "cutoff": self.cutoff, "n_queries": self.n_queries,
            "answered": round(self.answered, 6), "difference": self.difference,
        }  # fmt: skip


def sparse_vector_from(
    *, n_teachers: int, n_classes: int, epsilon: float, delta: float, margin: float = 1.0, cutoff: int = CUTOFF
) -> Crossing:
    """Return from how many queries on a sparse vector, declining `cutoff`, answers one of this margin more often."""
    budget: dict[str, Any] = {"n_classes": n_classes, "n_teachers": n_teachers, "epsilon": epsilon, "delta": delta}
    try:
        sparse = mechanism_for(StableSparseVector, {"cutoff": cutoff}, answers=cutoff, **budget)
        assert isinstance(sparse, StableSparseVector)  # noqa: S101 - it is what was asked for
        counts = votes(np.array([leading(margin, n_teachers, n_classes)]), n_teachers, n_classes)
        declined = sparse.stage_noise.log_decline(int(distance_to_instability(counts)[0]))
    except InvalidParameter:  # the budget leaves no room for so many stages
        declined = 0.0

    def fails(n_queries: int) -> float:
        gaussian = mechanism_for(NoisyCounts, {}, answers=n_queries, **budget)
        assert isinstance(gaussian, NoisyCounts)  # noqa: S101 - it is what was asked for
        return _log_wrong(gaussian, n_teachers, n_classes, margin)

    def better(n_queries: int) -> bool:
        wrong = fails(n_queries)
        return wrong > declined and wrong >= log(MATTERS)

    answered = -expm1(declined)
    facts: dict[str, Any] = {"margin": margin, "n_teachers": n_teachers, "cutoff": cutoff, "answered": answered}
    if declined >= log1p(-1 / n_classes):  # no more often than a guess
        return Crossing(n_queries=None, difference="none", **facts)
    if not better(MOST_QUERIES):
        alike = max(fails(MOST_QUERIES), declined) < log(MATTERS)
        return Crossing(n_queries=None, difference="does not matter" if alike else "none", **facts)
    low, high = cutoff - 1, MOST_QUERIES  # fewer queries than may be declined take no sparse vector
    while high - low > max(1, low // 500):
        middle = round((low * high) ** 0.5) if low > 0 else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if better(middle) else (middle, high)
    return Crossing(n_queries=high, difference="matters", **facts)


def _log_wrong(gaussian: NoisyCounts, n_teachers: int, n_classes: int, margin: float) -> float:
    """Return the log-probability that another class than the leading one is answered, summed over the other classes."""
    counts = votes(np.array([leading(margin, n_teachers, n_classes)]), n_teachers, n_classes)
    law = gaussian.answer_law(counts)
    assert law is not None  # noqa: S101 - it states its law
    wrong = float(np.sum(law[0, : n_classes - 1]))  # the leading class is the last one; then comes "no answer"
    return log(wrong) if wrong > 0 else -inf
