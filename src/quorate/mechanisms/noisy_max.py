"""Noisy max and its relatives, which answer every query: the class with the most votes, or the noisy votes themselves.

Gaussian noise (LZCW21 Algorithm 1; GNMax of PATE18), Laplace noise (LNMax of PATE17), noisy counts at the price of the
class alone, and a noisy max for units that may move several votes on a query: a patient of two hospitals, whose
teachers both vote.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from quorate.accounting import DiscreteGaussian, DiscreteLaplace, GridGaussian, Repeated, calibrate_sigma
from quorate.arguments import count, one_of, real
from quorate.mechanisms.answer_law import AnswerNoise
from quorate.mechanisms.answers import (
    VOTE_L2_SENSITIVITY,
    NoisyHalfLeads,
    NoisyVotes,
    half_lead,
    in_blocks,
    many_queries,
)
from quorate.mechanisms.fields import FROM_TASK, NOISE, Schedule, least
from quorate.mechanisms.gaussian_noise import (
    FORMS,
    Form,
    NoisyMaxTerms,
    gaussian_event,
    gaussian_noise,
    least_sigma,
    n_classes_of,
    with_noise,
)
from quorate.mechanisms.mechanism import QueryMechanism, register, unlisted
from quorate.noise import NoiseSource, discrete_gaussian, discrete_laplace
from quorate.noise.source import MAX_SCALE, checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray


@dataclass(frozen=True, slots=True)
class _GaussianVotes(QueryMechanism):
    """Gaussian noise of σ votes on every count, or on the half-lead; what is made of the noisy values has one price."""

    sigma: float = field(metadata=NOISE)
    form: Form = field(default="histogram", metadata=FROM_TASK)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checked_scale("sigma", self.sigma))
        one_of("form", self.form, FORMS)

    @property
    def event(self) -> DiscreteGaussian:
        """Price of one release."""
        return gaussian_event(self.sigma, self.form)

    @property
    def answer_noise(self) -> AnswerNoise:
        """Gaussian noise, on the counts or on the half-lead."""
        return gaussian_noise(self.sigma, self.form)

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least σ, by the closed price of a schedule."""
        return cls(**values, sigma=least_sigma(values["form"], schedule))


@stored_as("quorate.mechanisms.gaussian_noisy_max.GaussianNoisyMax")
@register
@dataclass(frozen=True, slots=True)
class GaussianNoisyMax(_GaussianVotes):
    r"""Release the class with the most votes after Gaussian noise.

    Parameters
    ----------
    sigma : float
        The σ of the noise, in votes. Must be > 0.
    form : {"histogram", "binary"}, default "histogram"
        ``"histogram"`` releases :math:`\arg\max_c (n_c + Z_c)` with independent noise on every count.
        ``"binary"``, for two classes alone, releases
        :math:`1\{\lceil (n_1 - n_0)/2 \rceil + Z > 0\}`; where all K teachers vote this is
        :math:`1\{n_1 + Z > K/2\}`, and it does not take an abstention for a vote.

    Notes
    -----
    Privacy: one changed teacher moves the histogram by √2 in L2 norm and the half-lead by 1, so one answer is
    :math:`1/\sigma^2`-zCDP in the first form and :math:`1/(2\sigma^2)`-zCDP in the second; what is made of the
    noisy values is post-processing. The price does not depend on the votes. A binary form at σ is the trade-off
    of a histogram at √2 σ, with one draw instead of two.

    Ties go to the lowest class index, before and after noise.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang, 2021), Algorithm 1; BTT18 (Bassily, Thakkar, Thakurta, 2018); PATE18
    (Papernot et al., arXiv:1802.08908), Proposition 8; for integer noise CKS20 (Canonne, Kamath, Steinke,
    arXiv:2004.00010), Proposition 5 on each count.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> GaussianNoisyMax(sigma=5.0).release(np.array([180, 40, 30]), SeededNoise(0))
    0
    >>> binary = GaussianNoisyMax(sigma=5.0, form="binary")
    >>> binary.release_many(np.array([[90, 10], [2, 98]]), SeededNoise(0)).tolist()
    [0, 1]
    >>> binary.event
    DiscreteGaussian(sigma=5.0, l2_sensitivity=1.0)
    """

    @property
    def data_dependent(self) -> NoisyMaxTerms | None:
        """What PATE18's analysis needs; it is known of the histogram form."""
        return NoisyMaxTerms(self.sigma) if self.form == "histogram" else None

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices ``(n_queries,)``."""
        counts = many_queries(counts, n_classes=n_classes_of(self.form))
        answers = np.empty(len(counts), dtype=np.int64)
        for rows, block in in_blocks(counts):
            noisy = with_noise(block, self.sigma, self.form, noise)
            answers[rows] = noisy > 0 if self.form == "binary" else noisy.argmax(axis=1)
        return answers


@stored_as("quorate.mechanisms.noisy_counts.NoisyCounts")
@register
@dataclass(frozen=True, slots=True)
class NoisyCounts(_GaussianVotes):
    r"""Release the votes themselves, with Gaussian noise.

    A student that knows the noise (σ is public) can use the values: soft or noise-aware labels. They cost what
    their argmax costs.

    Parameters
    ----------
    sigma : float
        The σ of the noise, in votes. Must be > 0.
    form : {"histogram", "binary"}, default "histogram"
        ``"histogram"`` releases the vector :math:`n + Z`. ``"binary"``, for two classes alone, releases
        :math:`\lceil (n_1 - n_0)/2 \rceil + Z`, half the noisy lead of class 1 (where all K teachers vote, add
        K/2 for a noisy :math:`n_1`).

    Notes
    -----
    Privacy: as for :class:`GaussianNoisyMax`, which is a post-processing of this release. The values may be
    negative, or more than there are teachers; clipping them is the reader's affair.

    References
    ----------
    CKS20 (Canonne, Kamath, Steinke, arXiv:2004.00010), Proposition 5 on each coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> NoisyCounts(sigma=5.0).release(np.array([180, 40, 30]), SeededNoise(0)).tolist()
    [185, 41, 32]
    >>> NoisyCounts(sigma=5.0, form="binary").release(np.array([10, 90]), SeededNoise(0))
    45
    """

    releases_values: ClassVar[bool] = True

    @property
    def answers(self) -> NoisyVotes | NoisyHalfLeads:
        """The noisy votes themselves, or half the noisy lead of class 1."""
        return NoisyHalfLeads(self.sigma) if self.form == "binary" else NoisyVotes(self.sigma)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Release each row's noisy counts ``(n_queries, n_classes)``, or the noisy half-leads ``(n_queries,)``."""
        return with_noise(many_queries(counts, n_classes=n_classes_of(self.form)), self.sigma, self.form, noise)


@stored_as("quorate.mechanisms.laplace_noisy_max.LaplaceNoisyMax")
@register
@dataclass(frozen=True, slots=True)
class LaplaceNoisyMax(QueryMechanism):
    r"""Release the class with the most votes after Laplace noise: :math:`\arg\max_c (n_c + \mathrm{Lap}_Z(b))`.

    Parameters
    ----------
    laplace_scale : float
        The scale b of the noise, in votes. Must be > 0.

    Notes
    -----
    Privacy: one changed teacher moves two counts by one each (an abstention: one count), and the counts' noises
    are independent. So the noisy histogram, and with it the answer, is two integers of sensitivity 1 released with
    discrete Laplace noise: pure DP with ε = 2/b, and for composition two rounds of randomized response with
    ε₀ = 1/b each, which is tighter than one round with 2/b. The price does not depend on the votes.

    Ties go to the lowest class index, before and after noise.

    References
    ----------
    PATE17 (Papernot et al. 2017, arXiv:1610.05755), Section 2.1.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = LaplaceNoisyMax(laplace_scale=20.0)
    >>> mechanism.release(np.array([180, 40, 30]), SeededNoise(0))
    0
    >>> mechanism.event
    Repeated(event=DiscreteLaplace(scale=20.0, sensitivity=1.0), times=2)
    """

    laplace_scale: float = field(metadata=NOISE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "laplace_scale", checked_scale("laplace_scale", self.laplace_scale))

    @property
    def event(self) -> Repeated:
        """Price of one answer."""
        return Repeated(DiscreteLaplace(self.laplace_scale, 1.0), 2)

    @property
    def answer_noise(self) -> AnswerNoise:
        """Laplace noise on every count."""
        return AnswerNoise(distribution="laplace", scale=self.laplace_scale)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices ``(n_queries,)``."""
        counts = many_queries(counts)
        answers = np.empty(len(counts), dtype=np.int64)
        for rows, block in in_blocks(counts):
            answers[rows] = (block + discrete_laplace(self.laplace_scale, block.shape, noise)).argmax(axis=1)
        return answers


_FINE = 28  # log2 of σ in grid steps: so fine that the price is that of continuous noise to seven digits
_MOST_VOTES = 2**24  # a larger count is cut off there, which moves no two counts further apart
_LEAST_SIGMA = 2.0**-8  # so that every number of steps is a 64-bit integer
_UPWARD = 1 + 2.0**-40  # more than the roundings of a sensitivity can be off by


@stored_as("quorate.mechanisms.several_votes.SeveralVotesNoisyMax")
@unlisted
@dataclass(frozen=True, slots=True)
class SeveralVotesNoisyMax(QueryMechanism):
    r"""Release the class with the most votes after Gaussian noise, where one unit may move up to s votes.

    `sigma`: the σ of the noise, in votes, at least 2⁻⁸. `votes_per_unit`: s ≥ 1: how many teachers change at most,
    where one unit is added, removed or replaced. Whoever is replaced may have been with other teachers than whoever
    comes: that is twice as many as have learned from one unit. `n_classes`: C ≥ 2. With two classes noise is added to
    the half-lead of class 1, else to every count.

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
