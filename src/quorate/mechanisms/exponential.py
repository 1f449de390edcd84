"""The exponential mechanism: one of finitely many candidates, the better ones more often (BNS15 Algorithm 5)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from quorate.mechanisms.answerable import AnswerNoise
from quorate.mechanisms.candidate_choice import CandidateChoice
from quorate.mechanisms.registry import register
from quorate.noise import NoiseSource
from quorate.noise.table import exp_negative
from quorate.stored_names import stored_as
from quorate.types import IntArray

_UNIFORM_WORDS = 4


@stored_as("quorate.mechanisms.exponential.Exponential")
@register
@dataclass(frozen=True, slots=True)
class Exponential(CandidateChoice):
    r"""Choose a candidate h with probability proportional to :math:`e^{\varepsilon q(h)/(2\Delta)}`.

    Parameters
    ----------
    epsilon : float
        ε of one choice; must be > 0.
    sensitivity : float, default 1.0
        Δ > 0: how far one changed teacher or record moves any one score. Votes have 1.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the scores are not int64.

    Notes
    -----
    Privacy: each weight moves by a factor of at most :math:`e^{\varepsilon/2}`, and so does their sum: ε-DP.
    The number of candidates does not enter. Larger scores are better; negate an error. See
    :class:`PermuteAndFlip` for a sampler that is never worse at the same price.

    Exactness: weights are computed relative to the best score, in 320-bit integers, from the exact rational
    :math:`\varepsilon/(2\Delta)`, and one 256-bit uniform integer chooses: within 2^-250 in total variation.

    References
    ----------
    McSherry and Talwar (2007); BNS15 (Beimel, Nissim, Stemmer), Algorithm 5; LWY25 (Li, Wang, Ye), Lemma 2.9.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> Exponential(epsilon=1.0).release(np.array([10, 40, 12]), SeededNoise(0))
    1
    """

    @property
    def answer_noise(self) -> AnswerNoise:
        r"""Gumbel noise of scale :math:`2\Delta/\varepsilon` on every score: its largest has the mechanism's law."""
        return AnswerNoise(distribution="gumbel", scale=2 * self.sensitivity / self.epsilon)

    def _choices(self, scores: IntArray, noise: NoiseSource) -> IntArray:
        rate = Fraction(self.epsilon) / (2 * Fraction(self.sensitivity))
        gaps, place = np.unique(scores.max(axis=1, keepdims=True) - scores, return_inverse=True)
        weights = [exp_negative(rate * gap) for gap in gaps.tolist()]
        choices = np.empty(scores.shape[0], dtype=np.int64)
        words = noise.words(_UNIFORM_WORDS * scores.shape[0]).reshape(-1, _UNIFORM_WORDS)
        for i, row in enumerate(place.reshape(scores.shape)):
            borders = list(accumulate(weights[j] for j in row.tolist()))
            uniform = int.from_bytes(words[i].astype(">u8").tobytes(), "big")
            # The number of borders at or below total·U/2^256: the inverse CDF at a 256-bit uniform.
            choices[i] = bisect_right(borders, (borders[-1] * uniform) >> 64 * _UNIFORM_WORDS)
        return choices
