"""Permute-and-flip: the exponential mechanism's price, never a worse choice (McKenna and Sheldon 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, log1p

import numpy as np

from quorate.errors import InvalidParameter
from quorate.mechanisms.answerable import Answerable
from quorate.mechanisms.candidate_choice import CandidateChoice
from quorate.mechanisms.registry import register
from quorate.mechanisms.votes import in_blocks
from quorate.noise import NoiseSource, geometric
from quorate.noise.source import MAX_SCALE
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

_PRIORITY_WORDS = 4


@stored_as("quorate.mechanisms.permute_and_flip.PermuteAndFlip")
@register
@dataclass(frozen=True, slots=True)
class PermuteAndFlip(CandidateChoice):
    r"""Visit the candidates in random order and choose the first whose coin says so.

    The coin of candidate h says so with probability :math:`e^{\varepsilon(q(h) - q^*)/(2\Delta)}`, where :math:`q^*` is
    the best score.

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
    The best candidate's coin always says so. Privacy: ε-DP (McKenna and Sheldon 2020, Theorem 1),
    and the chosen score is stochastically at least that of :class:`Exponential`.

    Exactness: no candidate is visited twice, so all coins may be flipped first and the choice is a uniform one among
    those that say so. A coin of probability :math:`r^g` with :math:`r = e^{-1/\lambda}`, λ = 2Δ/ε rounded up, is
    the event that an exact geometric draw of scale λ is at least the gap g. The uniform choice is the largest
    of independent random words, ties broken by further words, up to 256 bits.

    References
    ----------
    McKenna and Sheldon (2020), arXiv:2010.12603.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> PermuteAndFlip(epsilon=1.0).release(np.array([10, 40, 12]), SeededNoise(0))
    1
    """

    def __post_init__(self) -> None:
        CandidateChoice.__post_init__(self)
        if not self._scale <= MAX_SCALE:
            raise InvalidParameter(
                f"epsilon must be at least 2^-39 times the sensitivity, got {self.epsilon!r}; use a coarser grid"
            )

    @property
    def _scale(self) -> float:
        return float(np.nextafter(2 * (self.sensitivity / self.epsilon), np.inf))

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        r"""Return what K teachers can get answered: the best of C is chosen with :math:`(1 - (1-q)^C)/(Cq)`.

        q is the probability that the coin of one of the others says so; the best one is among :math:`1 + B` that do,
        B binomial.
        """
        q = exp(-n_teachers / self._scale)
        return Answerable(probability=-expm1(n_classes * log1p(-q)) / (n_classes * q) if 0 < q < 1 else 1.0)

    def answer_law(self, counts: IntArray, only: int | None = None) -> FloatArray:
        r"""Return the law of the choice: candidate c with probability :math:`q_c\, \mathbf{E}[1/(1 + B_c)]`.

        :math:`q_c` is the probability that its coin says so, and :math:`B_c` how many of the others' do.
        """
        heads = np.exp(-(counts.max(axis=1, keepdims=True) - counts) / self._scale)
        found = []
        for c in range(counts.shape[1]) if only is None else (only,):
            others = np.delete(heads, c, axis=1)
            number = np.zeros((len(counts), others.shape[1] + 1))  # its law, one coin after the other
            number[:, 0] = 1.0
            for j in range(others.shape[1]):
                moved = number * others[:, [j]]
                number *= 1 - others[:, [j]]
                number[:, 1:] += moved[:, :-1]
            found.append(heads[:, c] * (number / np.arange(1, number.shape[1] + 1)).sum(axis=1))
        return np.column_stack([*found, np.zeros(len(counts))])

    def _choices(self, scores: IntArray, noise: NoiseSource) -> IntArray:
        choices = np.empty(scores.shape[0], dtype=np.int64)
        for rows, block in in_blocks(scores):
            gaps = block.max(axis=1, keepdims=True) - block
            heads = geometric(self._scale, block.shape, noise) >= gaps
            for _ in range(_PRIORITY_WORDS):  # one round, but for ties of 64 bits
                priority = noise.words(block.size).reshape(block.shape)
                largest = np.where(heads, priority, np.uint64(0)).max(axis=1, keepdims=True)
                heads &= priority == largest
                if (heads.sum(axis=1) == 1).all():
                    break
            choices[rows] = heads.argmax(axis=1)
        return choices
