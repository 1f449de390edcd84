r"""Labels and rows that are made up, where nobody has labelled public rows: a guess about another task.

A rule is drawn at random in coordinates in which a typical public point has length one: :math:`\arg\max_c (W z)_c`,
with noise on each score so that no rule explains all labels. A rule on the pool's own rows shows what noise does to
columns such as these; how hard the true labels are, it cannot know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.planning.plan_row import PlanRow
from quorate.planning.public_facts import PublicFacts
from quorate.types import FloatArray, IntArray

RULES = 3
NOISE = 0.35  # of a score, beside which a typical score is 1
MOST_SYNTHETIC = 4_000


def drawn_rule(points: Any, n_classes: int, seed: int) -> IntArray:
    """Return labels ``(n_points,)`` by one rule.

    Parameters
    ----------
    points : (n_points, d) array or sparse matrix
        Public rows as numbers.
    n_classes : int
        C.
    seed : int
        Of the rule.

    Examples
    --------
    >>> points = np.random.default_rng(0).normal(size=(400, 5))
    >>> bool(np.bincount(drawn_rule(points, 2, 0)).min() > 60)
    True
    """
    rng = np.random.default_rng(seed)
    z: FloatArray = np.asarray(PoolCoordinates.of(points).measured(points), dtype=np.float64)
    scores = z @ rng.normal(size=(z.shape[1], n_classes))
    scores = (scores - scores.mean(axis=0)) / np.maximum(scores.std(axis=0), 1e-12)
    return np.asarray((scores + NOISE * rng.normal(size=scores.shape)).argmax(axis=1), dtype=np.int64)


def synthetic_rows(n: int, width: int, seed: int) -> FloatArray:
    """Return made-up rows ``(n, width)``: normal numbers of which the first directions vary most."""
    rng = np.random.default_rng(seed)
    spread = 1 / np.sqrt(1 + np.arange(width))
    return np.asarray((rng.normal(size=(n, width)) * spread) @ np.linalg.qr(rng.normal(size=(width, width)))[0])


@dataclass(frozen=True, slots=True)
class MeanOf:
    """What several rehearsals expect, each of another rule: their mean, and a range that holds all of theirs."""

    rehearsals: Sequence[Callable[[PublicFacts, Sequence[PlanRow]], Sequence[PlanRow]]]

    def __call__(self, facts: PublicFacts, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """Return the rows with what is expected of them."""
        told = [each(facts, rows) for each in self.rehearsals]
        return [_together(row, [part[at] for part in told]) for at, row in enumerate(rows)]


def _together(row: PlanRow, told: Sequence[PlanRow]) -> PlanRow:
    expected = [each.expected for each in told if each.expected is not None]
    if len(expected) < len(told):
        return row
    first = expected[0]
    return replace(
        told[0],
        expected=replace(
            first,
            accuracy=float(np.mean([each.accuracy for each in expected])),
            low=min(each.low for each in expected),
            high=max(each.high for each in expected),
            rehearsals=min(each.rehearsals for each in expected),
        ),
    )
