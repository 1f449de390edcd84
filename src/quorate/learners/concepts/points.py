"""Point functions: one point of the grid is labelled 1, all others 0 (POINT)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.learners.concepts.protocol import DICHOTOMY_LIMIT, Labels, Points, grid_bits, grid_points, refuse_beyond
from quorate.learners.concepts.weighing import prefix_sums, signed_weights, unit_scores
from quorate.stored_names import stored_as
from quorate.types import IntArray


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
@dataclass(frozen=True)
class PointFunctions:
    r"""The :math:`2^{bits}` functions that label one point of :math:`\{0, \dots, 2^{bits} - 1\}` 1.

    Parameters
    ----------
    bits : int
        1 to 62.

    Notes
    -----
    VC dimension 1. On a set P there are at most ``|P| + 1`` dichotomies: one for each point, and all 0 where the
    domain has another point, which the least of these represents. Fixed order of the class: by the point.

    References
    ----------
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

    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", grid_bits("bits", self.bits))

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    @property
    def vc_dimension(self) -> int:
        """1: no concept labels two points 1, and one point alone takes both labels."""
        return 1

    @property
    def xor_vc_dimension(self) -> int:
        """VC(C⊕): two point functions differ on two points or none, so 2 where there are more than two points."""
        return min(2, self.bits)

    @property
    def domain_size(self) -> int:
        """Number of points of the grid."""
        return 1 << self.bits

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        return min(n_points + 1, self.domain_size)

    def check(self, X: Any) -> IntArray:
        """Return ``(n_points, 1)`` int64 points of the grid, or refuse the table."""
        return grid_points(X, (self.bits,), self)

    def n_dichotomies(self, points: Points) -> int:
        """Return :meth:`growth` of the number of points."""
        return self.growth(len(points))

    def dichotomies(self, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> PointConcepts:
        """Return one concept for every dichotomy on `points`, by the value of the point."""
        refuse_beyond(limit, self.n_dichotomies(points), self)
        distinct = np.unique(points[:, 0])
        absent = self._least_absent(distinct)
        values = distinct if absent is None else np.insert(distinct, np.searchsorted(distinct, absent), absent)
        return PointConcepts(values)

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> PointFunction:
        """Return a concept of least weighted error; ties go to the lowest point."""
        concepts = self.dichotomies(points, limit=max(1, self.n_dichotomies(points)))
        return concepts[int(np.argmin(concepts.mistakes(points, labels, weights)))]

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        unit_scores(n_T, n_W)
        refuse_beyond(DICHOTOMY_LIMIT, self.growth(n_T), self)

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[PointConcepts, IntArray]:
        """Return the dichotomies on T and their exact scores (LWY25 Algorithm 1), in O(n log n)."""
        self.refuse_relabelling(len(T), len(W))
        ones, signed = signed_weights(len(W), labels_of_W)
        concepts = self.dichotomies(T)
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
        return concepts, np.minimum(own, len(W) * n_in_T + (len(W) * n_in_T + own).min())

    def _least_absent(self, distinct: IntArray) -> int | None:
        if len(distinct) == self.domain_size:
            return None
        misplaced = np.flatnonzero(distinct != np.arange(len(distinct)))
        return int(misplaced[0]) if len(misplaced) else len(distinct)


def _weights_at(values: IntArray, distinct: IntArray, sums: IntArray) -> IntArray:
    """Return the signed weight of the points at each of `values`; 0 where there is none."""
    found: IntArray = (
        sums[np.searchsorted(distinct, values, side="right")] - sums[np.searchsorted(distinct, values, side="left")]
    )
    return found
