"""A noisy max for units that may move several votes on a query: a patient of two hospitals, whose teachers both vote.

No settings name it: where votes of several sites are combined, it is what answers as soon as there are two of them. A
patient of one, replaced by a patient of another, changes a teacher at each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from quorate.accounting import GridGaussian, calibrate_sigma
from quorate.arguments import count, real
from quorate.mechanisms.answerable import AnswerNoise
from quorate.mechanisms.calibrated import Schedule, least
from quorate.mechanisms.fields import FROM_TASK, NOISE
from quorate.mechanisms.gaussian_noise import gaussian_noise
from quorate.mechanisms.mechanism import QueryMechanism
from quorate.mechanisms.registry import unlisted
from quorate.mechanisms.votes import VOTE_L2_SENSITIVITY, half_lead, in_blocks, many_queries
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import MAX_SCALE, checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray

_FINE = 28  # log2 of σ in grid steps: so fine that the price is that of continuous noise to seven digits
_MOST_VOTES = 2**24  # a larger count is cut off there, which moves no two counts further apart
_LEAST_SIGMA = 2.0**-8  # so that every number of steps is a 64-bit integer
_UPWARD = 1 + 2.0**-40  # more than the roundings of a sensitivity can be off by


@stored_as("quorate.mechanisms.several_votes.SeveralVotesNoisyMax")
@unlisted
@dataclass(frozen=True, slots=True)
class SeveralVotesNoisyMax(QueryMechanism):
    r"""Release the class with the most votes after Gaussian noise, where one unit may move up to s votes.

    Parameters
    ----------
    sigma : float
        The σ of the noise, in votes, at least 2⁻⁸.
    votes_per_unit : int
        s ≥ 1: how many teachers change at most, where one unit is added, removed or replaced. Whoever is replaced may
        have been with other teachers than whoever comes: that is twice as many as have learned from one unit.
    n_classes : int
        C ≥ 2. With two classes noise is added to the half-lead of class 1, else to every count.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the counts are not int64 votes of C classes.

    Notes
    -----
    Privacy: each of s changed teachers moves its vote from one class to another, or to none. The histogram moves by s
    such vectors, each of length at most √2, so by at most s√2 in L2 norm; the half-lead, an integer, by at most s.
    Nothing shorter holds: all s may move from one class to one other.

    The price of a shift by several votes on the integers is known exactly in one dimension alone. So noise is drawn on
    a grid of steps 1/G of a vote, G a power of two with σG ≥ 2²⁸, where it is priced as the continuous Gaussian noise
    that it is next to (:class:`~quorate.accounting.GridGaussian`, with its proof): that price is the tightest one of
    this sensitivity, and holds for every vector of it.

    References
    ----------
    LZCW21, Algorithm 1, with the sensitivity of s teachers; Balle and Wang (2018), arXiv:1805.06530, for the price.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> mechanism = SeveralVotesNoisyMax(sigma=5.0, votes_per_unit=2, n_classes=3)
    >>> mechanism.release(np.array([180, 40, 30]), SeededNoise(0))
    0
    >>> round(mechanism.event.l2_sensitivity / mechanism.grid, 6)
    2.828427
    """

    sigma: float = field(metadata=NOISE)
    votes_per_unit: int = field(metadata=FROM_TASK)
    n_classes: int = field(metadata=FROM_TASK)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", real("sigma", self.sigma, at_least=_LEAST_SIGMA))
        object.__setattr__(self, "votes_per_unit", count("votes_per_unit", self.votes_per_unit, at_least=1))
        object.__setattr__(self, "n_classes", count("n_classes", self.n_classes, at_least=2))
        checked_scale("sigma", self.sigma * self.grid)

    @property
    def grid(self) -> int:
        """G, the steps of noise in one vote."""
        return int(2 ** max(0, _FINE - math.floor(math.log2(self.sigma))))

    @property
    def event(self) -> GridGaussian:
        """Price of one answer."""
        binary, steps = self.n_classes == 2, self.grid
        length = self.votes_per_unit * (1.0 if binary else VOTE_L2_SENSITIVITY) * _UPWARD
        return GridGaussian(self.sigma * steps, length * steps, 1 if binary else self.n_classes)

    @property
    def answer_noise(self) -> AnswerNoise:
        """Gaussian noise, on the counts or on the half-lead."""
        return gaussian_noise(self.sigma, "binary" if self.n_classes == 2 else "histogram")

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least σ for which a whole schedule fits its budget."""
        length = values["votes_per_unit"] * (1.0 if values["n_classes"] == 2 else VOTE_L2_SENSITIVITY)
        start = calibrate_sigma(schedule.epsilon, schedule.delta, schedule.answers, length, noise="continuous")
        return least(lambda sigma: cls(sigma=min(sigma, MAX_SCALE / 2), **values), start, schedule)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices ``(n_queries,)``."""
        counts, binary, steps = many_queries(counts, n_classes=self.n_classes), self.n_classes == 2, self.grid
        answers = np.empty(counts.shape[0], dtype=np.int64)
        for rows, block in in_blocks(counts):
            votes = np.minimum(block, _MOST_VOTES)
            exact = (half_lead(votes) if binary else votes) * steps
            noisy = exact + discrete_gaussian(self.sigma * steps, exact.shape, noise)
            answers[rows] = noisy > 0 if binary else noisy.argmax(axis=1)
        return answers
