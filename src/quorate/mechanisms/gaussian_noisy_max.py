"""Gaussian noisy max: the class with the most votes, after noise (LZCW21 Algorithm 1; GNMax of PATE18)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from quorate.accounting import DiscreteGaussian
from quorate.arguments import one_of
from quorate.mechanisms.answerable import AnswerNoise
from quorate.mechanisms.calibrated import Schedule
from quorate.mechanisms.fields import FROM_TASK, NOISE
from quorate.mechanisms.gaussian_noise import (
    FORMS,
    Form,
    gaussian_event,
    gaussian_noise,
    least_sigma,
    n_classes_of,
    with_noise,
)
from quorate.mechanisms.mechanism import QueryMechanism
from quorate.mechanisms.noisy_max_terms import NoisyMaxTerms
from quorate.mechanisms.registry import register
from quorate.mechanisms.votes import in_blocks, many_queries
from quorate.noise import NoiseSource
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.mechanisms.gaussian_noisy_max.GaussianNoisyMax")
@register
@dataclass(frozen=True, slots=True)
class GaussianNoisyMax(QueryMechanism):
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

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the counts are not int64 votes of the right width.

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

    sigma: float = field(metadata=NOISE)
    form: Form = field(default="histogram", metadata=FROM_TASK)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checked_scale("sigma", self.sigma))
        one_of("form", self.form, FORMS)

    @property
    def event(self) -> DiscreteGaussian:
        """Price of one answer."""
        return gaussian_event(self.sigma, self.form)

    @property
    def answer_noise(self) -> AnswerNoise:
        """Gaussian noise, on the counts or on the half-lead."""
        return gaussian_noise(self.sigma, self.form)

    @property
    def data_dependent(self) -> NoisyMaxTerms | None:
        """What PATE18's analysis needs; it is known of the histogram form."""
        return NoisyMaxTerms(self.sigma) if self.form == "histogram" else None

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least σ, by the closed price of a schedule."""
        return cls(**values, sigma=least_sigma(values["form"], schedule))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices ``(n_queries,)``."""
        return self._answers(many_queries(counts, n_classes=n_classes_of(self.form)), noise)

    def _answers(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        answers = np.empty(counts.shape[0], dtype=np.int64)
        for rows, block in in_blocks(counts):
            noisy = with_noise(block, self.sigma, self.form, noise)
            answers[rows] = noisy > 0 if self.form == "binary" else noisy.argmax(axis=1)
        return answers
