"""Laplace noisy max: the class with the most votes, after Laplace noise (LNMax of PATE17)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quorate.accounting import DiscreteLaplace, Repeated
from quorate.mechanisms.answerable import AnswerNoise
from quorate.mechanisms.fields import NOISE
from quorate.mechanisms.mechanism import QueryMechanism
from quorate.mechanisms.registry import register
from quorate.mechanisms.votes import in_blocks, many_queries
from quorate.noise import NoiseSource, discrete_laplace
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.mechanisms.laplace_noisy_max.LaplaceNoisyMax")
@register
@dataclass(frozen=True, slots=True)
class LaplaceNoisyMax(QueryMechanism):
    r"""Release the class with the most votes after Laplace noise: :math:`\arg\max_c (n_c + \mathrm{Lap}_Z(b))`.

    Parameters
    ----------
    laplace_scale : float
        The scale b of the noise, in votes. Must be > 0.

    Raises
    ------
    InvalidParameter
        If the scale is out of range; on release, if the counts are not int64 votes.

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
        return self._answers(many_queries(counts), noise)

    def _answers(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        answers = np.empty(counts.shape[0], dtype=np.int64)
        for rows, block in in_blocks(counts):
            answers[rows] = (block + discrete_laplace(self.laplace_scale, block.shape, noise)).argmax(axis=1)
        return answers
