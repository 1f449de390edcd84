r"""How often a released label is the class with most votes, and how often it is the truth, as functions of the margin.

Both are sums over the mechanism's own noise on the integers, and cost nothing: they look at no vote that anybody cast.

The *plurality* is told for votes as they fell: the leading class is ahead of each other class by the same number of
votes, the margin in units of K, which is the hardest vote of that lead where there are more than two classes. The
*truth* is told for what is expected of a teacher: each votes for the truth with a probability that is ahead of that of
any other class by the margin, and is independent of the others, so that the votes for it are binomial.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.deferred import stats
from quorate.mechanisms import Mechanism
from quorate.types import FloatArray, IntArray

MARGINS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
_NODES = 41  # numbers of votes at which the binomial law is summed, where K is larger


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerProbabilities:
    """What becomes of a query, by its margin.

    `margins`: leads in units of K, in [0, 1]. `answered`: probability of an answer, at a margin of votes. `plurality`:
    probability that the answer is the class with most votes, at a margin of votes. `truth`: probability that the answer
    is the truth, at a margin of the probabilities of a teacher's votes.
    """

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
    """Return the votes of a class that is ahead of each other class by this share of K, which share the rest.

    Examples
    --------
    >>> leading(0.2, 100, 2), leading(0.2, 100, 5), leading(1.0, 100, 5)
    (60, 36, 100)
    """
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
