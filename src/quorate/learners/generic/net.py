r"""The few sanitized points that H is made on: every two concepts that agree on them nearly agree on all.

A set N of points of a multiset D is an α-net for a class if concepts that agree on N differ on at most a share α of D.

*On a line.* Let concepts that agree on N differ inside at most g gaps between neighbours of N (thresholds: 1; points
and intervals: 2). Take every k-th of the m sorted points, :math:`k = \lfloor m/(s + 1) \rfloor + 1`: at most s of
them, and strictly between two of them at most m/(s + 1) points. With :math:`s + 1 \ge g/\alpha`, an α-net for certain.

*Any class.* Independent draws from D, as many as :math:`2 S(2s)\, 2^{-\alpha s/2} \le \beta` asks for (S the number of
dichotomies, :math:`s \ge 8/\alpha`): an α-net with probability 1 − β, for the differences to any one concept (Haussler
and Welzl 1987; Blumer, Ehrenfeucht, Haussler and Warmuth 1989, Theorem A2.2).

Nothing here is private: the points were released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, log
from typing import Final

import numpy as np

from quorate.learners.amplification.random_subsets import random_draws
from quorate.learners.base.choice_bound import growth_of
from quorate.learners.concepts.intervals import Intervals
from quorate.learners.concepts.points import PointFunctions
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.concepts.thresholds import Thresholds
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as

#: In how many gaps of a net on a line two concepts of these classes may differ.
_GAPS: Final[dict[type, int]] = {Thresholds: 1, PointFunctions: 2, Intervals: 2}


@stored_as("quorate.learners.sanitized_net.Net")
@dataclass(frozen=True, kw_only=True, slots=True)
class Net:
    """How a net is made: public.

    `size`: it has at most so many points, 1 at least. `on_a_line`: whether the points are taken at even ranks, or drawn
    at random.
    """

    size: int
    on_a_line: bool

    @classmethod
    def for_class(cls, concepts: ConceptClass, alpha: float, beta: float) -> Net:
        """Return an α-net, but for probability β, for what is known of a class."""
        gaps = _GAPS.get(type(concepts))
        size = _random_size(growth_of(concepts), alpha, beta) if gaps is None else ceil(gaps / alpha) - 1
        if concepts.domain_size is not None:
            size = min(size, concepts.domain_size)
        return cls(size=max(1, size), on_a_line=gaps is not None)

    def within(self, limit: int, growth: Callable[[int], int]) -> Net:
        """Return the largest net of this kind, no larger than this one, with at most `limit` dichotomies."""
        low, high = 1, self.size + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if growth(middle) <= limit else (low, middle)
        return replace(self, size=low)

    def of(self, points: Points, noise: NoiseSource) -> Points:
        """Return the distinct points of a net of ``(n_points, n_features)`` released points.

        `points`: with repetitions: a point that occurs often counts often. `noise`: for random nets.
        """
        # Sanitizers give copies one after another: most go by comparing neighbours, which costs no sort.
        first = np.append(True, (points[1:] != points[:-1]).any(axis=1)) if len(points) else np.zeros(0, dtype=np.bool_)
        distinct = np.unique(points[first], axis=0)
        if len(distinct) <= self.size:
            return distinct
        if self.on_a_line:
            step = len(points) // (self.size + 1) + 1
            return np.unique(np.sort(points, axis=0)[step - 1 :: step], axis=0)
        return np.unique(points[random_draws(len(points), self.size, noise)], axis=0)


def _random_size(growth: Callable[[int], int], alpha: float, beta: float) -> int:
    """Return the least s >= 8/α with 2 S(2s) 2^(−αs/2) <= β, by doubling and halving."""

    def enough(s: int) -> bool:
        return log(2 * growth(2 * s)) - alpha * s / 2 * log(2) <= log(beta)

    low = high = ceil(8 / alpha)
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
