"""A private quantile on a public grid: the place that a share of units is at or below, by one exact choice.

It is what makes prediction sets where only private rows have labels (arXiv:2102.06202, Algorithm 1, with
permute-and-flip in the place of the exponential mechanism).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from quorate.accounting import PureDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.mechanisms.choice import PermuteAndFlip
from quorate.mechanisms.counts import many_queries
from quorate.mechanisms.fields import PRICE
from quorate.mechanisms.mechanism import QueryMechanism, Takes, unlisted
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import IntArray

_FINEST = 1_000  # denominator of a share


@stored_as("quorate.mechanisms.quantile.PrivateQuantile")
@unlisted
@dataclass(frozen=True, slots=True)
class PrivateQuantile(QueryMechanism):
    r"""Choose the place on a grid that a share of units is at or below.

    Parameters
    ----------
    epsilon : float
        ε of one release; must be > 0.
    share : float
        In (0, 1), of at most three decimals.

    Notes
    -----
    Counts are ``(n_places,)``: how many units have each place, each unit one. With the share p/q of n units and
    :math:`N_j` of them at or below place j, :math:`D_j = pn - qN_j` is how many are missing there, in q-ths, and
    :math:`-D_{j-1}` how many too many lie below. The score of j is
    :math:`-\max(0, D_j, -D_{j-1})`, so that the quantile itself has 0, whatever the data are.

    Privacy: one unit replaced moves one :math:`N_j` by at most 1 and n not at all, so :math:`D_j` by at most q; one
    added or removed moves it by p or by p − q. A largest of such numbers moves no further. So the sensitivity is q for
    each of the three changes, and the choice by :class:`~quorate.mechanisms.PermuteAndFlip` is ε-DP.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> PrivateQuantile(epsilon=5.0, share=0.9).release(np.array([500, 300, 150, 50]), SeededNoise(0))
    2
    """

    takes: ClassVar[Takes] = "sums"

    epsilon: float = field(metadata=PRICE)
    share: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", real("share", self.share, above=0, below=1))
        if self.as_fraction.denominator > _FINEST:
            raise InvalidParameter(
                parameter="share", got=self.share, expected="at most three decimals", advice="round it, as 0.9"
            )
        object.__setattr__(self, "epsilon", self.choice.epsilon)

    @property
    def as_fraction(self) -> Fraction:
        """The share as it is typed: 0.9 is nine tenths."""
        return Fraction(repr(self.share))

    @property
    def choice(self) -> PermuteAndFlip:
        """What chooses, by scores in q-ths of a unit."""
        return PermuteAndFlip(epsilon=self.epsilon, sensitivity=float(self.as_fraction.denominator))

    @property
    def event(self) -> PureDP:
        """Price of one release, for a unit added, removed or replaced."""
        return PureDP(self.epsilon)

    def missing(self, n_places: int, failure: float) -> float:
        """Return how many units fewer than the share are at or below the place, but with probability `failure`."""
        return self.choice.shortfall(n_places, failure) / self.as_fraction.denominator

    def scores(self, counts: IntArray) -> IntArray:
        """Return the scores of all places, ``(n_queries, n_places)``."""
        p, q = self.as_fraction.as_integer_ratio()
        deficits = p * counts.sum(axis=1, keepdims=True) - q * np.cumsum(counts, axis=1)
        below = np.concatenate([np.zeros((len(counts), 1), dtype=np.int64), -deficits[:, :-1]], axis=1)
        return np.asarray(-np.maximum(np.maximum(deficits, below), 0), dtype=np.int64)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Choose a place for each row of ``(n_queries, n_places)`` counts: ``(n_queries,)``, from 0."""
        return self.choice.release_many(self.scores(many_queries(counts)), noise)
