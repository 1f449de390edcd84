"""Permute-and-flip: the exponential mechanism's price, never a worse choice (McKenna and Sheldon 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.accounting import PureDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.mechanisms.scores import many_choices, one_choice
from quorate.mechanisms.votes import in_blocks
from quorate.noise import NoiseSource, geometric
from quorate.noise.arguments import MAX_SCALE
from quorate.types import IntArray

_PRIORITY_WORDS = 4


@dataclass(frozen=True, slots=True)
class PermuteAndFlip:
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

    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "sensitivity", real("sensitivity", self.sensitivity, above=0))
        if not self._scale <= MAX_SCALE:
            raise InvalidParameter(
                f"epsilon must be at least 2^-39 times the sensitivity, got {self.epsilon!r}; use a coarser grid"
            )

    @property
    def _scale(self) -> float:
        return float(np.nextafter(2 * (self.sensitivity / self.epsilon), np.inf))

    @property
    def event(self) -> PureDP:
        """Price of one choice."""
        return PureDP(self.epsilon)

    def release(self, counts: IntArray, noise: NoiseSource) -> int:
        """Choose for one query from its ``(n_candidates,)`` int64 scores: a candidate's index."""
        return int(self._choices(one_choice(counts), noise)[0])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Choose for each row of ``(n_queries, n_candidates)`` int64 scores: indices ``(n_queries,)``."""
        return self._choices(many_choices(counts), noise)

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
