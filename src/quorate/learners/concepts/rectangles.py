"""Axis-aligned rectangles on a grid (RECTANGLE of BNS15, Section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.learners.concepts.boxes import (
    BoxConcepts,
    box_scores,
    heaviest_box,
    refuse_table,
    search_cells,
    tight_boxes,
)
from quorate.learners.concepts.protocol import (
    EnumeratedClass,
    Labels,
    Points,
    grid_bits,
    grid_points,
    refuse_work,
    signed_weights,
    symmetric_difference_vc,
)
from quorate.stored_names import stored_as
from quorate.theory.bns15 import sauer
from quorate.types import IntArray


@stored_as("quorate.learners.concepts.rectangles.Rectangle")
@dataclass(frozen=True, slots=True)
class Rectangle:
    """Label x 1 where ``low[j] <= x[j] <= high[j]`` in every column j; all 0 is ``low = (1, …), high = (0, …)``.

    Examples
    --------
    >>> Rectangle((2, 0), (3, 5)).labels(np.array([[2, 5], [2, 6]])).tolist()
    [1, 0]
    """

    low: tuple[int, ...]
    high: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", tuple(count("low", value) for value in self.low))
        object.__setattr__(self, "high", tuple(count("high", value) for value in self.high))
        empty = set(self.low) == {1} and set(self.high) == {0}
        if len(self.low) != len(self.high) or not (
            empty or all(low <= high for low, high in zip(self.low, self.high, strict=True))
        ):
            raise InvalidParameter(
                f"low must be <= high in each column, got {self.low} and {self.high}; the empty one is (1, …), (0, …)"
            )

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, n_features)`` points, 0 or 1 each."""
        return np.asarray(((points >= self.low) & (points <= self.high)).all(axis=1), dtype=np.uint8)


@stored_as("quorate.learners.concepts.rectangles.RectangleConcepts")
@dataclass(frozen=True, eq=False)
class RectangleConcepts(BoxConcepts):
    """Rectangles in a fixed order: corners ``(n_concepts, n_features)``, both included."""

    def __getitem__(self, index: int) -> Rectangle:
        return Rectangle(tuple(self.low[index].tolist()), tuple(self.high[index].tolist()))


@stored_as("quorate.learners.concepts.rectangles.Rectangles")
@dataclass(frozen=True)
class Rectangles(EnumeratedClass):
    r"""All axis-aligned rectangles of a grid, the empty one included.

    `bits`: column j has the values :math:`0, \dots, 2^{bits_j} - 1`; one number is for all columns. 1 to 62.
    `n_features`: number ℓ of columns.

    VC dimension 2ℓ where every column has more than two values; see :attr:`vc_dimension` for the others. On n points
    there are at most as many dichotomies as Sauer's lemma allows, O(n^{2ℓ}); each is represented by its smallest
    rectangle. Fixed order of the class: the empty rectangle, then by the low end of the first column, the highest
    first, then by its high end, the lowest first, then by the next column.

    The error is minimised by looking at every pair of ends in all columns but the last: O(n^{2ℓ-1}); what would take
    more than :data:`~quorate.learners.concepts.protocol.WORK_LIMIT` steps is refused, and so are scores of LWY25
    that need more than :data:`~quorate.learners.concepts.boxes.TABLE_LIMIT` entries. All refusals are
    functions of the number of points and the grid alone.

    BNS15 (Beimel, Nissim, Stemmer), Section 4: RECTANGLE, with d = `bits` and ℓ = `n_features`.

    Examples
    --------
    >>> concepts = Rectangles(bits=8, n_features=2)
    >>> concepts.vc_dimension, concepts.domain_size
    (4, 65536)
    >>> points = concepts.check([[10, 10], [20, 20], [30, 10]])
    >>> concepts.erm(points, np.array([1, 1, 0]))
    Rectangle(low=(10, 10), high=(20, 20))
    >>> len(concepts.dichotomies(points))
    8
    """

    bits: int | tuple[int, ...]
    n_features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_features", count("n_features", self.n_features, at_least=1))
        if not isinstance(self.bits, (tuple, list)):
            object.__setattr__(self, "bits", grid_bits("bits", self.bits))
            return
        object.__setattr__(self, "bits", tuple(grid_bits("bits", value) for value in self.bits))
        if len(self.column_bits) != self.n_features:
            raise InvalidParameter(
                f"bits must be one number, or one for each of the {self.n_features} columns, got {len(self.bits)}"
            )

    @property
    def column_bits(self) -> tuple[int, ...]:
        """`bits` of each column."""
        return self.bits if isinstance(self.bits, tuple) else (self.bits,) * self.n_features

    @property
    def vc_dimension(self) -> int:
        """VC(C) = max(2, 2ℓ − k), where k columns have two values only; 2ℓ for k = 0.

        Each point of a shattered set has a face of its own that keeps it out, so a column serves at most two points.
        With two values it serves two only where there are no others: with three points or more, one. That many are
        reached by points that leave a common centre in one column each.
        """
        return max(2, 2 * self.n_features - self.column_bits.count(1))

    @property
    def xor_vc_dimension(self) -> int:
        """The least bound on VC(C⊕) that Sauer's lemma gives (BNS15, Section 3)."""
        return min(symmetric_difference_vc(lambda n: sauer(n, self.vc_dimension)), self.domain_size)

    @property
    def domain_size(self) -> int:
        """Number of points of the grid."""
        return 1 << sum(self.column_bits)

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        ranges = prod(size * (size + 1) // 2 for size in self._sizes(n_points))
        return min(sauer(min(n_points, self.domain_size), self.vc_dimension), ranges + 1)

    def growth_on(self, points: Points) -> int:
        """Return an upper bound on the dichotomies on *public* points, by how many values each column has there."""
        values = [len(np.unique(points[:, j])) for j in range(self.n_features)]
        return min(self.growth(len(points)), 1 + prod(size * (size + 1) // 2 for size in values))

    def check(self, X: Any) -> IntArray:
        """Return ``(n_points, n_features)`` int64 points of the grid, or refuse the table."""
        return grid_points(X, self.column_bits, self)

    def _dichotomies(self, points: Points) -> RectangleConcepts:
        boxes = tight_boxes(points)
        return RectangleConcepts(boxes.low, boxes.high)

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Rectangle:
        """Return a concept of least weighted error: the first in the order of the class."""
        _, signed = signed_weights(len(points), labels, weights)
        refuse_work(search_cells(self._sizes(len(points))), self)
        _, corners = heaviest_box(points, signed)
        return Rectangle(*corners) if corners else Rectangle((1,) * self.n_features, (0,) * self.n_features)

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        super().refuse_relabelling(n_T, n_W)
        refuse_work(search_cells(self._sizes(n_T + n_W)), self)
        refuse_table(self._sizes(n_T), self)

    def _scores(self, concepts: RectangleConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        """The scores; in two columns ``O(|T|⁴ + |W|³)``."""
        return box_scores(concepts, T, W, ones, signed)

    def _sizes(self, n_points: int) -> list[int]:
        """Return how many values each column of `n_points` points can have: the grid and their number, nothing else."""
        return [min(n_points, 1 << bits) for bits in self.column_bits]
