"""Classes on a line, a grid of 2^bits points: thresholds, intervals and point functions.

THRESH of BNS15, Section 3; its RECTANGLE, Section 4, in one dimension; POINT.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.learners.concepts.boxes import BoxConcepts, box_scores, heaviest_box, tight_boxes
from quorate.learners.concepts.protocol import (
    EnumeratedClass,
    Labels,
    Points,
    gaps,
    grid_bits,
    grid_points,
    over_gaps,
    prefix_sums,
    signed_weights,
)
from quorate.stored_names import stored_as
from quorate.types import IntArray


@dataclass(frozen=True)
class LineClass(EnumeratedClass, ABC):
    r"""A class on one column, the grid :math:`\{0, \dots, 2^{bits} - 1\}` of 1 to 62 bits."""

    n_features: ClassVar[int] = 1

    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", grid_bits("bits", self.bits))

    @property
    def domain_size(self) -> int:
        """Number of points of the grid."""
        return 1 << self.bits

    def check(self, X: Any) -> IntArray:
        """Return ``(n_points, 1)`` int64 points of the grid, or refuse the table."""
        return grid_points(X, (self.bits,), self)


@stored_as("quorate.learners.concepts.thresholds.Threshold")
@dataclass(frozen=True, slots=True)
class Threshold:
    """Label x 1 where ``x < cut``.

    Examples
    --------
    >>> Threshold(3).labels(np.array([[2], [3]])).tolist()
    [1, 0]
    """

    cut: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cut", count("cut", self.cut))

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, 1)`` points, 0 or 1 each."""
        return (points[:, 0] < self.cut).astype(np.uint8)


@stored_as("quorate.learners.concepts.thresholds.ThresholdConcepts")
@dataclass(frozen=True, eq=False)
class ThresholdConcepts:
    """Thresholds in a fixed order, by their cuts ``(n_concepts,)``."""

    cuts: IntArray

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, index: int) -> Threshold:
        return Threshold(self.cuts[index])

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``."""
        return (points[:, 0] < self.cuts[:, np.newaxis]).astype(np.uint8)

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return the weight that each concept labels otherwise, ``(n_concepts,)``, by one sort and prefix sums."""
        ones, signed = signed_weights(len(points), labels, weights)
        distinct, sums = prefix_sums(points[:, 0], signed)
        mistakes: IntArray = ones - sums[np.searchsorted(distinct, self.cuts, side="left")]
        return mistakes


@stored_as("quorate.learners.concepts.thresholds.Thresholds")
class Thresholds(LineClass):
    r"""The thresholds :math:`c_j(x) = 1` iff :math:`x < j`, for :math:`0 \le j \le 2^{bits}`.

    VC dimension 1. On a set P there are ``|P| + 1`` dichotomies, each represented by its lowest cut. Fixed order of
    the class: by the cut.

    BNS15 (Beimel, Nissim, Stemmer), Section 3: THRESH_d, with d = `bits`.

    Examples
    --------
    >>> concepts = Thresholds(bits=8)
    >>> points = concepts.check([10, 200, 10])
    >>> list(concepts.dichotomies(points))
    [Threshold(cut=0), Threshold(cut=11), Threshold(cut=201)]
    >>> concepts.erm(points, np.array([1, 0, 0]), weights=np.array([5, 1, 2]))
    Threshold(cut=11)
    """

    vc_dimension: ClassVar[int] = 1  #: of two points the lower is labelled 1 wherever the higher is
    xor_vc_dimension: ClassVar[int] = 2  #: VC(C⊕): two thresholds differ on an interval

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        return min(n_points, self.domain_size) + 1

    def _dichotomies(self, points: Points) -> ThresholdConcepts:
        return ThresholdConcepts(_lowest_cuts(np.unique(points[:, 0])))

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Threshold:
        """Return a concept of least weighted error, in O(n log n); ties go to the lowest cut."""
        _, signed = signed_weights(len(points), labels, weights)
        distinct, sums = prefix_sums(points[:, 0], signed)
        return ThresholdConcepts(_lowest_cuts(distinct))[int(np.argmax(sums))]

    def _scores(self, concepts: ThresholdConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        r"""The scores, in O(n log n).

        With :math:`N_k` rows of T below the cuts of gap k, and :math:`b_k` the least number of mistakes on W of a cut
        in it, the score of gap h is :math:`\min_k |W||N_h - N_k| + |T| b_k`: the smaller of two running minima.
        """
        borders, below = prefix_sums(T[:, 0], np.ones(len(T), dtype=np.int64))
        distinct, sums = prefix_sums(W[:, 0], signed)
        own = len(T) * (ones - over_gaps(np.maximum, sums, *gaps(borders, distinct)))
        rows = len(W) * below
        from_below = np.minimum.accumulate(own - rows) + rows
        from_above = np.minimum.accumulate((own + rows)[::-1])[::-1] - rows
        return np.minimum(from_below, from_above)


def _lowest_cuts(distinct: IntArray) -> IntArray:
    """Return the lowest cut of every dichotomy: 0, and one behind each point."""
    return np.concatenate([np.zeros(1, dtype=np.int64), distinct + 1])


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
class Intervals(LineClass):
    r"""All intervals of :math:`\{0, \dots, 2^{bits} - 1\}`, the empty one included.

    VC dimension 2. On n distinct points there are ``n (n + 1) / 2 + 1`` dichotomies, each represented by its smallest
    interval. Fixed order of the class: the empty interval, then by the low end, the highest first, then by the high
    end, the lowest first.

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

    vc_dimension: ClassVar[int] = 2  #: of three points the middle one is labelled 1 wherever the others are

    @property
    def xor_vc_dimension(self) -> int:
        """VC(C⊕): two intervals differ on at most two, which shatter 4 points but not 5; there are 2 with 1 bit."""
        return min(4, self.domain_size)

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        distinct = min(n_points, self.domain_size)
        return distinct * (distinct + 1) // 2 + 1

    def _dichotomies(self, points: Points) -> IntervalConcepts:
        boxes = tight_boxes(points)
        return IntervalConcepts(boxes.low, boxes.high)

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Interval:
        """Return a concept of least weighted error, in O(n log n): the first in the order of the class."""
        _, signed = signed_weights(len(points), labels, weights)
        _, corners = heaviest_box(points, signed)
        return Interval(1, 0) if corners is None else Interval(corners[0][0], corners[1][0])

    def _scores(self, concepts: IntervalConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        """The scores, in ``O(|T|² + |W| log |W|)``."""
        return box_scores(concepts, T, W, ones, signed)


@stored_as("quorate.learners.concepts.points.PointFunction")
@dataclass(frozen=True, slots=True)
class PointFunction:
    """Label `value` 1 and every other point 0.

    Examples
    --------
    >>> PointFunction(3).labels(np.array([[2], [3]])).tolist()
    [0, 1]
    """

    value: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", count("value", self.value))

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, 1)`` points, 0 or 1 each."""
        return np.asarray(points[:, 0] == self.value, dtype=np.uint8)


@stored_as("quorate.learners.concepts.points.PointConcepts")
@dataclass(frozen=True, eq=False)
class PointConcepts:
    """Point functions in a fixed order, by their values ``(n_concepts,)``, which differ."""

    values: IntArray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> PointFunction:
        return PointFunction(self.values[index])

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``."""
        return np.asarray(self.values[:, np.newaxis] == points[:, 0], dtype=np.uint8)

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return the weight that each concept labels otherwise, ``(n_concepts,)``, by one sort."""
        ones, signed = signed_weights(len(points), labels, weights)
        return ones - _weights_at(self.values, *prefix_sums(points[:, 0], signed))


@stored_as("quorate.learners.concepts.points.PointFunctions")
class PointFunctions(LineClass):
    r"""The :math:`2^{bits}` functions that label one point of :math:`\{0, \dots, 2^{bits} - 1\}` 1.

    VC dimension 1. On a set P there are at most ``|P| + 1`` dichotomies: one for each point, and all 0 where the
    domain has another point, which the least of these represents. Fixed order of the class: by the point.

    Beimel, Kasiviswanathan and Nissim (2010), Bounds on the sample complexity for private learning: POINT_d.

    Examples
    --------
    >>> concepts = PointFunctions(bits=3)
    >>> points = concepts.check([5, 0, 5])
    >>> list(concepts.dichotomies(points))
    [PointFunction(value=0), PointFunction(value=1), PointFunction(value=5)]
    >>> concepts.erm(points, np.array([1, 0, 1]))
    PointFunction(value=5)
    """

    vc_dimension: ClassVar[int] = 1  #: no concept labels two points 1, and one point alone takes both labels

    @property
    def xor_vc_dimension(self) -> int:
        """VC(C⊕): two point functions differ on two points or none, so 2 where there are more than two points."""
        return min(2, self.bits)

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        return min(n_points + 1, self.domain_size)

    def _dichotomies(self, points: Points) -> PointConcepts:
        distinct = np.unique(points[:, 0])
        absent = self._least_absent(distinct)
        values = distinct if absent is None else np.insert(distinct, np.searchsorted(distinct, absent), absent)
        return PointConcepts(values)

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> PointFunction:
        """Return a concept of least weighted error; ties go to the lowest point."""
        concepts = self._dichotomies(points)
        return concepts[int(np.argmin(concepts.mistakes(points, labels, weights)))]

    def _scores(self, concepts: PointConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        """The scores, in O(n log n)."""
        distinct, sums = prefix_sums(W[:, 0], signed)
        _, multiplicity = prefix_sums(T[:, 0], np.ones(len(T), dtype=np.int64))
        in_T = np.isin(concepts.values, T[:, 0])
        n_in_T = np.zeros(len(concepts), dtype=np.int64)
        n_in_T[in_T] = np.diff(multiplicity)
        least = ones - _weights_at(concepts.values, distinct, sums)  # of errors on W, for each dichotomy of T
        elsewhere = np.diff(sums)[~np.isin(distinct, T[:, 0])]  # points of W that share the dichotomy "all 0" on T
        if not in_T.all():
            outside = len(np.union1d(distinct, T[:, 0])) < self.domain_size  # a point that neither has: weight 0
            least[~in_T] = ones - max([*elsewhere.tolist(), *([0] if outside else [])])
        own = len(T) * least
        # Another dichotomy g differs from h on the rows of both. For g = h that is too much, never too little.
        scores: IntArray = np.minimum(own, len(W) * n_in_T + (len(W) * n_in_T + own).min())
        return scores

    def _least_absent(self, distinct: IntArray) -> int | None:
        if len(distinct) == self.domain_size:
            return None
        misplaced = np.flatnonzero(distinct != np.arange(len(distinct)))
        return int(misplaced[0]) if len(misplaced) else len(distinct)


def _weights_at(values: IntArray, distinct: IntArray, sums: IntArray) -> IntArray:
    """Return the signed weight of the points at each of `values`; 0 where there is none."""
    up_to, below = (sums[np.searchsorted(distinct, values, side=side)] for side in ("right", "left"))
    weights: IntArray = up_to - below
    return weights
