"""Noisy counts: the values behind a noisy max, at the same price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from quorate.accounting import DiscreteGaussian
from quorate.arguments import one_of
from quorate.mechanisms.answerable import AnswerNoise
from quorate.mechanisms.answers import NoisyHalfLeads, NoisyVotes
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
from quorate.mechanisms.registry import register
from quorate.mechanisms.votes import many_queries
from quorate.noise import NoiseSource
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.mechanisms.noisy_counts.NoisyCounts")
@register
@dataclass(frozen=True, slots=True)
class NoisyCounts(QueryMechanism):
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

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the counts are not int64 votes of the right width.

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
    def answers(self) -> NoisyVotes | NoisyHalfLeads:
        """The noisy votes themselves, or half the noisy lead of class 1."""
        return NoisyHalfLeads(self.sigma) if self.form == "binary" else NoisyVotes(self.sigma)

    @property
    def answer_noise(self) -> AnswerNoise:
        """Gaussian noise, on the counts or on the half-lead."""
        return gaussian_noise(self.sigma, self.form)

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least σ, by the closed price of a schedule."""
        return cls(**values, sigma=least_sigma(values["form"], schedule))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Release each row's noisy counts ``(n_queries, n_classes)``, or the noisy half-leads ``(n_queries,)``."""
        return with_noise(many_queries(counts, n_classes=n_classes_of(self.form)), self.sigma, self.form, noise)
