"""Intervals on a grid: 1 from the low end to the high end (the rectangles of BNS15 in one dimension)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.learners.concepts.boxes import BoxConcepts, box_scores, heaviest_box, tight_boxes
from quorate.learners.concepts.protocol import DICHOTOMY_LIMIT, Labels, Points, grid_bits, grid_points, refuse_beyond
from quorate.learners.concepts.weighing import signed_weights, unit_scores
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.learners.concepts.intervals.Interval")
@dataclass(frozen=True, slots=True)
class Interval:
    """Label x 1 where ``low <= x <= high``; the empty interval, all 0, is ``Interval(1, 0)``.

    Examples
    --------
    >>> Interval(2, 3).labels(np.array([[1], [2], [3]])).tolist()
    [0, 1, 1]
    """

    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", count("low", self.low))
        object.__setattr__(self, "high", count("high", self.high))
        if self.low > self.high and (self.low, self.high) != (1, 0):
            raise InvalidParameter(
                f"low must be <= high, got {self.low} and {self.high}; the empty interval is Interval(1, 0)"
            )

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, 1)`` points, 0 or 1 each."""
        return ((points[:, 0] >= self.low) & (points[:, 0] <= self.high)).astype(np.uint8)


@stored_as("quorate.learners.concepts.intervals.IntervalConcepts")
@dataclass(frozen=True, eq=False)
class IntervalConcepts(BoxConcepts):
    """Intervals in a fixed order: ends ``(n_concepts, 1)``, both included."""

    def __getitem__(self, index: int) -> Interval:
        return Interval(self.low[index, 0], self.high[index, 0])


@stored_as("quorate.learners.concepts.intervals.Intervals")
@dataclass(frozen=True)
class Intervals:
    r"""All intervals of :math:`\{0, \dots, 2^{bits} - 1\}`, the empty one included.

    Parameters
    ----------
    bits : int
        1 to 62.

    Notes
    -----
    VC dimension 2. On n distinct points there are ``n (n + 1) / 2 + 1`` dichotomies, each represented by its smallest
    interval. Fixed order of the class: the empty interval, then by the low end, the highest first, then by the high
    end, the lowest first.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Section 4: RECTANGLE in one dimension.

    Examples
    --------
    >>> concepts = Intervals(bits=8)
    >>> points = concepts.check([10, 200])
    >>> list(concepts.dichotomies(points))
    [Interval(low=1, high=0), Interval(low=200, high=200), Interval(low=10, high=10), Interval(low=10, high=200)]
    >>> concepts.erm(concepts.check([10, 20, 30, 40]), np.array([0, 1, 1, 0]))
    Interval(low=20, high=30)
    """

    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", grid_bits("bits", self.bits))

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    @property
    def vc_dimension(self) -> int:
        """2: of three points the middle one is labelled 1 wherever the others are."""
        return 2

    @property
    def xor_vc_dimension(self) -> int:
        """VC(C⊕): two intervals differ on at most two, which shatter 4 points but not 5; there are 2 with 1 bit."""
        return min(4, self.domain_size)

    @property
    def domain_size(self) -> int:
        """Number of points of the grid."""
        return 1 << self.bits

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        distinct = min(n_points, self.domain_size)
        return distinct * (distinct + 1) // 2 + 1

    def check(self, X: Any) -> IntArray:
        """Return ``(n_points, 1)`` int64 points of the grid, or refuse the table."""
        return grid_points(X, (self.bits,), self)

    def n_dichotomies(self, points: Points) -> int:
        """Return :meth:`growth` of the number of points."""
        return self.growth(len(points))

    def dichotomies(self, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> IntervalConcepts:
        """Return one concept for every dichotomy on `points`, in the order of the class."""
        refuse_beyond(limit, self.n_dichotomies(points), self)
        boxes = tight_boxes(points)
        return IntervalConcepts(boxes.low, boxes.high)

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Interval:
        """Return a concept of least weighted error, in O(n log n): the first in the order of the class."""
        _, signed = signed_weights(len(points), labels, weights)
        _, corners = heaviest_box(points, signed)
        return Interval(1, 0) if corners is None else Interval(corners[0][0], corners[1][0])

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        unit_scores(n_T, n_W)
        refuse_beyond(DICHOTOMY_LIMIT, self.growth(n_T), self)

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[IntervalConcepts, IntArray]:
        """Return the dichotomies on T and their exact scores (LWY25 Algorithm 1), in ``O(|T|² + |W| log |W|)``."""
        self.refuse_relabelling(len(T), len(W))
        ones, signed = signed_weights(len(W), labels_of_W)
        concepts = self.dichotomies(T)
        if len(T) == 0 or len(W) == 0:  # no errors at all
            return concepts, np.zeros(len(concepts), dtype=np.int64)
        return concepts, box_scores(concepts, T, W, ones, signed)
