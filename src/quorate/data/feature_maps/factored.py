r"""Sparse rows in public coordinates that are never written out: products of images and a matrix, both integers.

A text has a hundred words and a thousand coordinates. Where coordinates are the exact product of integer images Φ and
an integer matrix W, a product with them is two products, :math:`(\Phi W) u = \Phi (W u)` and
:math:`(\Phi W)^T s = W^T (\Phi^T s)`, and is the same integers bit for bit: no partial sum passes 2⁵³, so that nothing
is rounded on either way. Only the lengths of the rows ask for their coordinates, once, block by block, in single
precision: their partial sums stay below 2²⁴.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, log2
from typing import Any

import numpy as np

from quorate.deferred import sparse
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

SINGLE_BITS = 24  # of the mantissa of a float32
HALF_BITS = 26  # a number below 2^53 is cut into two of at most these, and one more, bits
BLOCK = 2**12  # rows whose coordinates are looked at at once
STRIP = 2**7  # columns of a matrix that stay near the processor while many rows are multiplied by them
_SELDOM, _NEVER = -1, -2
OFTEN = 256  # words with the largest rows in the matrix: for them one product of matrices is quicker


@stored_as("quorate.data.feature_maps.factored.FactoredRows")
@dataclass(frozen=True, slots=True, eq=False)
class FactoredRows:
    """Integer coordinates of sparse rows, as images times a matrix.

    `images`: integers; all 0 in a row whose coordinates would be too long, or are no numbers. `matrix`: integers.
    `bound`: what the Euclidean length of no row of `images` passes. `lengths`: euclidean lengths of the coordinates: of
    an exact sum of squares, one rounding.
    """

    images: Any = field(repr=False)
    matrix: FloatArray = field(repr=False)
    bound: float
    lengths: FloatArray = field(repr=False)

    @classmethod
    def of(cls, images: Any, matrix: FloatArray, single: Any, bits: int, bound: float, longest: float) -> FactoredRows:
        """Look how long the coordinates of each row are; a row that is longer than `longest` becomes 0.

        `single` is the matrix in single precision and in steps of ``2**-bits``.
        """
        squares = np.ldexp(squared_lengths_of_product(images, single), 2 * bits)
        if not (finite := np.isfinite(images.data)).all():  # in a word without a part in the product, too
            squares[np.repeat(np.arange(images.shape[0]), np.diff(images.indptr))[~finite]] = np.nan
        sound = squares <= longest * longest  # false for what is no number
        if not sound.all():
            images = images.copy()
            images.data = np.where(np.repeat(sound, np.diff(images.indptr)), images.data, 0.0)
        return cls(images, matrix, bound, np.sqrt(np.where(sound, squares, 0.0)))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and coordinates there are."""
        return int(self.images.shape[0]), int(self.matrix.shape[1])

    def __getitem__(self, rows: slice) -> FactoredRows:
        if rows.indices(self.shape[0]) == (0, self.shape[0], 1):
            return self
        return FactoredRows(self.images[rows], self.matrix, self.bound, self.lengths[rows])

    def __matmul__(self, weights: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_outputs)`` exact products with integers of length at most 2²⁵."""
        told = self.matrix @ weights  # exact: an entry is at most 2^24 times 2^25
        if self.bound * float(np.linalg.norm(told, axis=0).max(initial=0.0)) <= 2.0**52:
            return np.asarray(self.images @ told)
        high, low = in_two(told)
        return np.asarray(np.ldexp(self.images @ high, HALF_BITS) + self.images @ low)

    def summed(self, factors: FloatArray, largest: float) -> FloatArray:
        """Return ``(n_coordinates, n_outputs)``: coordinates times integer factors, summed over the rows.

        `factors`: integers; 0 where the coordinates are. `largest`: what no factor's absolute value passes, from public
        facts.
        """
        step = 2 ** min(max(floor(52 - log2(self.bound * largest)), 0), 62)  # rows whose sum is exact in every order
        total = np.zeros((self.matrix.shape[1], factors.shape[1]))
        for start in range(0, len(factors), step):
            rows = slice(start, start + step)
            high, low = in_two(np.asarray(self[rows].images.T @ factors[rows]))
            both = np.hstack([high, low]).T @ self.matrix
            total += (np.ldexp(both[: high.shape[1]], HALF_BITS) + both[high.shape[1] :]).T
        return total


def in_two(integers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut integers below 2⁵³ in two, ``high * 2**26 + low``, neither above 2²⁷.

    Examples
    --------
    >>> [part.tolist() for part in in_two(np.array([2.0**26 + 3, 5.0]))]
    [[1.0, 0.0], [3.0, 5.0]]
    """
    high = np.rint(np.ldexp(integers, -HALF_BITS))
    return high, integers - np.ldexp(high, HALF_BITS)


def squared_lengths_of_product(images: Any, single: Any) -> FloatArray:
    """Return the squared Euclidean length of each row of ``images @ single``, an exact sum of squares.

    `images`: integers. `single`: integer numbers of some power of two, such that the length of a row of images times
    that of a column is at most 2²⁴ of these steps whatever the row: by Cauchy and Schwarz no partial sum passes it
    then, in whichever order.
    """
    sizes = np.einsum("ij,ij->i", single, single)  # large where a word is frequent: public, and no sum depends on it
    often = np.sort(np.argsort(sizes)[-OFTEN:])
    place = np.where(sizes > 0, _SELDOM, _NEVER)
    place[often] = np.arange(len(often))
    strips = [(strip, strip[often]) for strip in strips_of(single)]
    squares = np.zeros(images.shape[0])
    for start in range(0, images.shape[0], BLOCK):
        dense, seldom = _cut(images[start : start + BLOCK], len(often), place)
        for strip, frequent in strips:
            product = seldom @ strip
            product += dense @ frequent
            fine = product.astype(np.float64)
            squares[start : start + BLOCK] += np.einsum("ij,ij->i", fine, fine)
    return squares


def strips_of(matrix: Any) -> Iterator[Any]:
    """Cut a wide matrix into some columns at a time: a product with sparse rows reads each strip again and again.

    Examples
    --------
    >>> [strip.shape for strip in strips_of(np.zeros((3, 300)))]
    [(3, 128), (3, 128), (3, 44)]
    """
    return (np.ascontiguousarray(matrix[:, start : start + STRIP]) for start in range(0, matrix.shape[1], STRIP))


def by_strips(rows: Any, matrix: Any, out: Any) -> Any:
    """Multiply sparse rows by a wide matrix, strip by strip, and write the product over `out`."""
    for start, strip in zip(range(0, matrix.shape[1], STRIP), strips_of(matrix), strict=True):
        out[:, start : start + STRIP] = rows @ strip
    return out


def _cut(images: Any, n_often: int, place: IntArray) -> tuple[Any, Any]:
    """Return the frequent words of images as a dense matrix, and the seldom ones as a sparse one."""
    where = place[images.indices]
    rest, well = where == _SELDOM, where >= 0
    whose = np.repeat(np.arange(images.shape[0]), np.diff(images.indptr))
    values = images.data.astype(np.float32)
    dense = np.zeros((images.shape[0], n_often), dtype=np.float32)
    dense[whose[well], where[well]] = values[well]
    starts = np.concatenate([[0], np.cumsum(rest)])[images.indptr]
    return dense, sparse.csr_matrix((values[rest], images.indices[rest], starts), shape=images.shape)
