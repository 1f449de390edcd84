"""Stable answers, right and wrong: the distance to instability, and the margin that is mistaken for it."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from quorate.audit.cheats.case import Case
from quorate.audit.claims import ApproxClaim, PureClaim
from quorate.noise import NoiseSource, discrete_laplace, geometric
from quorate.types import IntArray

_DECLINED = -1


def _gap(counts: IntArray) -> IntArray:
    top = np.sort(counts, axis=-1)
    return np.asarray(top[..., -1] - top[..., -2])


def _dist(counts: IntArray) -> IntArray:
    """Return how many teachers must change before the plurality class can: ``max(0, ceil(gap / 2) − 1)``."""
    return np.maximum(0, -(-_gap(counts) // 2) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityTest:
    """The correct test (BTT18 Alg. 1): answer exactly where dist + Lap(1/ε) passes log(1/δ)/ε."""

    epsilon: float
    delta: float

    def _stability(self, counts: IntArray) -> IntArray:
        return _dist(counts)

    def release(self, counts: IntArray, noise: NoiseSource) -> int:
        """Answer one query."""
        return int(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row."""
        noisy = self._stability(counts) + discrete_laplace(1 / self.epsilon, len(counts), noise)
        return np.where(noisy > log(1 / self.delta) / self.epsilon, counts.argmax(axis=1), _DECLINED)


class RawMargin(StabilityTest):
    """``gap − 1`` in place of dist: one changed teacher moves it by 2, and the noise is for 1."""

    def _stability(self, counts: IntArray) -> IntArray:
        return _gap(counts) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSidedStage:
    """A correct stage of sparse vector with one-sided geometric noise: above is free, the first below ends it."""

    threshold_scale: float
    query_scale: float
    threshold: int
    takes_streams: ClassVar[bool] = True

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer one stream ``(n_queries, n_classes)``."""
        return np.asarray(self.release_many(np.asarray(counts)[None], noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each of ``(n_streams, n_queries, n_classes)``; −1 is ⊥, −2 what follows it."""
        line = self.threshold - geometric(self.threshold_scale, (len(counts), 1), noise)
        passed = _dist(counts) - geometric(self.query_scale, counts.shape[:2], noise) > line
        answers = np.where(passed, counts.argmax(axis=2), _DECLINED)
        answers[:, 1:][np.logical_or.accumulate(~passed, axis=1)[:, :-1]] = _DECLINED - 1
        return answers


CHEATS = (
    Case(
        name="raw margin with sensitivity-1 noise",
        source="BTT18 prints dist as the margin minus one; it moves by 2 with one teacher, so ε is twice the claim.",
        mechanism=RawMargin(epsilon=1.0, delta=1e-5),
        neighbours=(np.array([57, 43]), np.array([58, 42])),
        claimed=ApproxClaim(1.0, 1e-5),
    ),
)

HONEST = (
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
