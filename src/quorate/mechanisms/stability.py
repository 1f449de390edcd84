"""Distance to instability: how many teachers must change before the plurality class can (BTT18 Section 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor, log
from typing import Any, ClassVar, Self

import numpy as np

from quorate.accounting import ApproxDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.mechanisms.answer_law import passes
from quorate.mechanisms.answerable import AgreementTest, Answerable
from quorate.mechanisms.answers import DECLINED
from quorate.mechanisms.calibrated import Schedule
from quorate.mechanisms.fields import PRICE
from quorate.mechanisms.mechanism import QueryMechanism
from quorate.mechanisms.registry import register
from quorate.mechanisms.votes import distance_to_instability, in_blocks, many_queries
from quorate.noise import NoiseSource, discrete_laplace
from quorate.noise.source import MAX_SCALE
from quorate.stored_names import stored_as
from quorate.types import IntArray

_UP = 1 + 2.0**-48  # the threshold is rounded up, further than the noise's scale is


@stored_as("quorate.mechanisms.stability.DistanceToInstability")
@register
@dataclass(frozen=True, slots=True)
class DistanceToInstability(QueryMechanism):
    r"""Release the exact plurality class where the votes are stable enough, else decline: :math:`A_{stab}`.

    Parameters
    ----------
    epsilon : float
        ε of one query; must be > 0.
    delta : float
        δ of one query; must be > 0 and < 1.

    Attributes
    ----------
    threshold : float
        Γ = log(1/δ)/ε, in votes.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the counts are not int64 votes.

    Notes
    -----
    A query passes where :math:`dist + \mathrm{Lap}_Z(1/\varepsilon) > \Gamma`. Privacy, for neighbours D and D′:
    where dist(D) ≥ 1 or dist(D′) ≥ 1 the plurality class is the same on both, and the answer is made of
    it and of a noisy integer of sensitivity 1: ε-DP. Where both are 0 the classes may differ, a label is released
    with probability :math:`P(Z > \Gamma) = e^{-\varepsilon(\lfloor \Gamma \rfloor + 1)}/(1 + e^{-\varepsilon}) <
    \delta`, and ⊥ has the same probability on both: (0, δ)-DP. The scale of the noise is rounded up, and Γ
    further.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta, 2018), Algorithm 1 and Theorem 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = DistanceToInstability(epsilon=1.0, delta=1e-5)
    >>> mechanism.release_many(np.array([[200, 50], [130, 120]]), SeededNoise(0)).tolist()
    [0, -1]
    """

    may_decline: ClassVar[bool] = True

    epsilon: float = field(metadata=PRICE)
    delta: float = field(metadata=PRICE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "delta", real("delta", self.delta, above=0, below=1))
        if self.epsilon < 2 / MAX_SCALE:
            raise InvalidParameter(f"epsilon must be at least 2^-39, got {self.epsilon!r}; the noise would be too wide")

    @property
    def event(self) -> ApproxDP:
        """Price of one answer."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def threshold(self) -> float:
        """Γ, in votes: a query passes where its noisy distance is above it."""
        return -log(self.delta) / self.epsilon * _UP

    @property
    def test(self) -> AgreementTest:
        """The plurality class must be further from a tie than Γ."""
        return AgreementTest(statistic="distance to instability", threshold=self.threshold)

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered: exactly, where they are far enough from a tie."""
        largest = self.test.largest(n_teachers)
        return Answerable(probability=self.passes(largest), test=self.test, largest=largest)

    def passes(self, statistic: int) -> float:
        """Return the probability that a distance passes the test."""
        return passes("laplace", 1 / self.epsilon, floor(self.threshold) + 1 - statistic)

    @classmethod
    def with_noise(cls, noise: float, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it at ε = 1 / `noise`; half of the schedule's δ is divided among the answers."""
        return cls(**values, epsilon=1 / noise, delta=schedule.delta / (2 * schedule.answers))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices, or ``DECLINED``."""
        return self._answers(many_queries(counts), noise)

    def _answers(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        scale = float(np.nextafter(1 / self.epsilon, np.inf))
        answers = np.empty(counts.shape[0], dtype=np.int64)
        for rows, block in in_blocks(counts):
            distance = distance_to_instability(block)
            passed = distance + discrete_laplace(scale, distance.shape, noise) > self.threshold
            answers[rows] = np.where(passed, block.argmax(axis=1), DECLINED)
        return answers
