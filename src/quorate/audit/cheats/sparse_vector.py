"""Sparse vector and stable answers as they have been published and coded, right and wrong.

"LSL17" is Lyu, Su, Li (2017), arXiv:1603.01699, whose Algorithms 3 to 6 are published variants that are not what they
claim; they look at the count of class 1. The stability tests (BTT18) look at the distance to instability, or at the
margin that is mistaken for it. All scales are for integers of sensitivity 1 and a claimed ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from quorate.audit.cheats.noisy_max import ByRow, Case
from quorate.audit.claims import ApproxClaim, PureClaim
from quorate.noise import NoiseSource, discrete_laplace, geometric
from quorate.types import IntArray

#: Stands after the end of a stream.
STOPPED = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(ByRow):
    """Say 1 for each value above a noisy threshold and 0 for the others; stop after `cutoff` times 1.

    Laplace scales are in votes; 0 for no noise. `resets`: whether each 1 draws a new threshold. `tells_value`: whether
    the noisy value is told in place of 1.
    """

    threshold_scale: float
    query_scale: float
    cutoff: int | None = None
    resets: bool = False
    tells_value: bool = False
    threshold: int = 0
    takes_streams: ClassVar[bool] = True

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_streams, n_queries, 2)``."""
        noisy = counts[:, :, 1] + _laplace(self.query_scale, counts.shape[:2], noise)
        line = self.threshold + _laplace(self.threshold_scale, counts.shape[:1], noise)
        codes = np.zeros(counts.shape[:2], dtype=np.int64)
        times = np.zeros(counts.shape[0], dtype=np.int64)
        for query in range(counts.shape[1]):
            above = noisy[:, query] > line
            codes[:, query] = np.where(above, noisy[:, query] if self.tells_value else 1, 0)
            if self.cutoff is not None:
                codes[times >= self.cutoff, query] = STOPPED
            times += above
            if self.resets:
                line = np.where(above, self.threshold + _laplace(self.threshold_scale, line.shape, noise), line)
        return codes


def _laplace(scale: float, shape: tuple[int, ...], noise: NoiseSource) -> IntArray:
    return discrete_laplace(scale, shape, noise) if scale else np.zeros(shape, dtype=np.int64)


def _stream(values: list[int]) -> IntArray:
    """Return counts ``(n_queries, 2)`` in which class 1 has these votes."""
    return np.array([[50, value] for value in values])


def _pair(*stages: tuple[list[int], list[int]]) -> tuple[IntArray, IntArray]:
    """Return the classical worst pair: the values that stay below rise by one vote, those that pass fall by one."""
    values = [value for below, above in stages for value in below + above]
    moved = [changed for below, above in stages for changed in [v + 1 for v in below] + [v - 1 for v in above]]
    return _stream(values), _stream(moved)


_DECLINED = -1


def _gap(counts: IntArray) -> IntArray:
    top = np.sort(counts, axis=-1)
    return np.asarray(top[..., -1] - top[..., -2])


def _dist(counts: IntArray) -> IntArray:
    """Return how many teachers must change before the plurality class can: ``max(0, ceil(gap / 2) − 1)``."""
    return np.maximum(0, -(-_gap(counts) // 2) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityTest(ByRow):
    """The correct test (BTT18 Alg. 1): answer exactly where dist + Lap(1/ε) passes log(1/δ)/ε."""

    epsilon: float
    delta: float

    def _stability(self, counts: IntArray) -> IntArray:
        return _dist(counts)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        noisy = self._stability(counts) + discrete_laplace(1 / self.epsilon, len(counts), noise)
        return np.where(noisy > log(1 / self.delta) / self.epsilon, counts.argmax(axis=1), _DECLINED)


class RawMargin(StabilityTest):
    """``gap − 1`` in place of dist: one changed teacher moves it by 2, and the noise is for 1."""

    def _stability(self, counts: IntArray) -> IntArray:
        return _gap(counts) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSidedStage(ByRow):
    """A correct stage of sparse vector with one-sided geometric noise: above is free, the first below ends it."""

    threshold_scale: float
    query_scale: float
    threshold: int
    takes_streams: ClassVar[bool] = True

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_streams, n_queries, n_classes)``; −1 is ⊥, −2 what follows it."""
        line = self.threshold - geometric(self.threshold_scale, (len(counts), 1), noise)
        passed = _dist(counts) - geometric(self.query_scale, counts.shape[:2], noise) > line
        answers = np.where(passed, counts.argmax(axis=2), _DECLINED)
        answers[:, 1:][np.logical_or.accumulate(~passed, axis=1)[:, :-1]] = _DECLINED - 1
        return answers


EPSILON = 1.0

_CUTOFF_3 = Case(
    name="sparse vector",
    source="LSL17 Alg. 1 with a cut-off of 3: Lap(2/ε) on the threshold, Lap(4c/ε) on the queries.",
    mechanism=SparseVector(threshold_scale=2.0, query_scale=12.0, cutoff=3),
    neighbours=_pair(([0], [0] * 3)),
    claimed=PureClaim(EPSILON),
)
_CUTOFF_1 = Case(
    name="sparse vector, cut-off 1",
    source="LSL17 Alg. 1 with a cut-off of 1: exactly ε-DP, and tight.",
    mechanism=SparseVector(threshold_scale=1.0, query_scale=2.0, cutoff=1),
    neighbours=_pair(([0] * 4, [1])),
    claimed=PureClaim(2.0),
    runs=200_000,
)
_RESET = Case(
    name="sparse vector, reset threshold",
    source="Dwork and Roth (2014), Sparse: two stages of ε/2, a new threshold after each answer above.",
    mechanism=SparseVector(threshold_scale=1.0, query_scale=2.0, cutoff=2, resets=True),
    neighbours=_pair(([0] * 3, [1]), ([0] * 3, [1])),
    claimed=PureClaim(4.0),
    runs=200_000,
)
CHEATS = (
    Case(
        name="Lyu Alg. 3",
        source="LSL17 Alg. 3 (Roth's 2011 notes): the noisy value is released with the noise it was compared with.",
        mechanism=SparseVector(threshold_scale=2.0, query_scale=2.0, cutoff=1, tells_value=True),
        neighbours=_pair(([0] * 6, [0])),
        claimed=PureClaim(EPSILON),
        runs=400_000,
    ),
    _CUTOFF_3.broken(
        "Lyu Alg. 4",
        "LSL17 Alg. 4 (Lee and Clifton 2014): the query noise does not grow with the cut-off; (1 + 6c)/4 ε.",
        SparseVector(threshold_scale=4.0, query_scale=4 / 3, cutoff=3),
    ),
    Case(
        name="Lyu Alg. 5",
        source="LSL17 Alg. 5 (Stoddard et al. 2014): queries get no noise, and nothing is cut off; not DP for any ε.",
        mechanism=SparseVector(threshold_scale=2.0, query_scale=0.0),
        neighbours=_pair(([0], [1])),
        claimed=PureClaim(EPSILON),
    ),
    Case(
        name="Lyu Alg. 6",
        source="LSL17 Alg. 6 (Chen et al. 2015): query noise of scale 2/ε for any number of answers above; not DP.",
        mechanism=SparseVector(threshold_scale=2.0, query_scale=2.0),
        neighbours=_pair(([0] * 6, [0] * 6)),
        claimed=PureClaim(EPSILON),
    ),
    Case(
        name="no cut-off",
        source="A correct stage (Lap(λ), Lap(2λ)) that goes on after its cut-off of 1, as if 'above' were free.",
        mechanism=SparseVector(threshold_scale=2.0, query_scale=4.0),
        neighbours=_pair(([0] * 10, [0] * 10)),
        claimed=PureClaim(EPSILON),
    ),
    Case(
        name="no threshold noise",
        source="The common belief that noise on the queries is enough: the threshold is compared as it is.",
        mechanism=SparseVector(threshold_scale=0.0, query_scale=4.0, cutoff=1),
        neighbours=_pair(([0] * 16, [0])),
        claimed=PureClaim(EPSILON),
        runs=400_000,
    ),
    _CUTOFF_1.broken(
        "missing factor 2",
        "Query noise Lap(λ) in place of Lap(2λ), as if a query moved only one way; the loss is 1.5 ε.",
        SparseVector(threshold_scale=1.0, query_scale=1.0, cutoff=1),
    ),
    _RESET.broken(
        "missing factor 2, reset threshold",
        "The same slip where each answer above draws a new threshold (LSL17 Alg. 2): 1.5 ε in sum.",
        SparseVector(threshold_scale=1.0, query_scale=1.0, cutoff=2, resets=True),
        runs=1_000_000,
    ),
    Case(
        name="raw margin with sensitivity-1 noise",
        source="BTT18 prints dist as the margin minus one; it moves by 2 with one teacher, so ε is twice the claim.",
        mechanism=RawMargin(epsilon=1.0, delta=1e-5),
        neighbours=(np.array([57, 43]), np.array([58, 42])),
        claimed=ApproxClaim(1.0, 1e-5),
    ),
)

HONEST = (
    _CUTOFF_3,
    _CUTOFF_1,
    _RESET,
    Case(
        name="distance to instability",
        source="BTT18 Alg. 1 with the distance that moves by 1.",
        mechanism=StabilityTest(epsilon=1.0, delta=1e-5),
        neighbours=(np.array([65, 35]), np.array([66, 34])),
        claimed=ApproxClaim(1.0, 1e-5),
    ),
    Case(
        name="one-sided stage",
        source="One stage with Geom(2/ε) on the threshold and Geom(4/ε) on the queries: ε-DP wherever dist ≥ 1.",
        mechanism=OneSidedStage(threshold_scale=2.0, query_scale=4.0, threshold=12),
        neighbours=(np.array([[71, 41]] * 3 + [[60, 40]]), np.array([[70, 42]] * 3 + [[61, 39]])),
        claimed=PureClaim(1.0),
        runs=200_000,
    ),
)
