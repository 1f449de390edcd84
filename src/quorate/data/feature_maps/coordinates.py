r"""Public coordinates: features whitened by the second moment of the public pool.

With :math:`M = \frac1m \sum \varphi\varphi^T` over the pool and its eigenpairs :math:`(\lambda_j, v_j)`, a row has the
coordinates

.. math:: z_j(x) = (\lambda_j + \kappa)^{-1/2}\, v_j^T \varphi(x),

so that one step size fits all directions. The mean of :math:`\|z\|^2` over the pool is the *effective dimension*
:math:`d(\kappa) = \sum_j \lambda_j/(\lambda_j + \kappa)`. Outside the span of the pool nothing is learned.
Conditioning by public moments is known for regression and for label privacy: Li et al. (2022), arXiv:2202.05963.

A text has a hundred words and a thousand coordinates, which are never written out (:class:`FactoredRows`). Where
coordinates are the exact product of integer images Φ and an integer matrix W, a product with them is two products,
:math:`(\Phi W) u = \Phi (W u)` and :math:`(\Phi W)^T s = W^T (\Phi^T s)`, and is the same integers bit for bit: no
partial sum passes 2⁵³, so that nothing is rounded on either way. Only the lengths of the rows ask for their
coordinates, once, block by block, in single precision: their partial sums stay below 2²⁴.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, floor, log2
from typing import Any, Protocol

import numpy as np

from quorate.data.feature_maps.exact import bits_for, squared_lengths, to_grid
from quorate.deferred import optimize, sparse
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

SINGLE_BITS = 24  # of the mantissa of a float32
HALF_BITS = 26  # a number below 2^53 is cut into two of at most these, and one more, bits
BLOCK = 2**10  # rows whose images or coordinates are held at once: for more, memory would be taken anew each time
STRIP = 2**7  # columns of a matrix that stay near the processor while many rows are multiplied by them
_SELDOM, _NEVER = -1, -2
OFTEN = 256  # words with the largest rows in the matrix: for them one product of matrices is quicker
LEAST_SHARE = 1e-8  # eigenvalues below this share of the largest are dropped
LEAST_RIDGE = 1e-3  # kappa is at least this share of the smallest eigenvalue that is kept
LENGTH_BITS = 26  # a row's coordinates are integers of length at most 2^26, so that squares sum exactly
LONGEST_FEATURES = 2.0  # linear ones have length √2, those of a kernel 1, and both together √3
FINEST = 12  # and multiples of 2^-12 at the finest: entries are about 1


@stored_as("quorate.data.feature_maps.factored.FactoredRows")
@dataclass(frozen=True, slots=True, eq=False)
class FactoredRows:
    """Integer coordinates of sparse rows, as images times a matrix of integers; no row of images is longer than
    `bound`, and one that is too long, or no numbers, is 0.
    """

    images: Any = field(repr=False)
    matrix: FloatArray = field(repr=False)
    bound: float
    lengths: FloatArray = field(repr=False)

    @classmethod
    def of(cls, images: Any, matrix: FloatArray, single: Any, bits: int, bound: float, longest: float) -> FactoredRows:
        """Look how long each row's coordinates are; longer than `longest`, it becomes 0. `single`: the matrix in steps
        of ``2**-bits``.
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
        combined = self.matrix @ weights  # exact: an entry is at most 2^24 times 2^25
        if self.bound * float(np.linalg.norm(combined, axis=0).max(initial=0.0)) <= 2.0**52:
            return np.asarray(self.images @ combined)
        high, low = in_two(combined)
        return np.asarray(np.ldexp(self.images @ high, HALF_BITS) + self.images @ low)

    def summed(self, factors: FloatArray, largest: float) -> FloatArray:
        """Return ``(n_coordinates, n_outputs)``: coordinates times integer `factors`, none above the public `largest`,
        summed over the rows.
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
    """Cut integers below 2⁵³ in two, ``high * 2**26 + low``, neither above 2²⁷."""
    high = np.rint(np.ldexp(integers, -HALF_BITS))
    return high, integers - np.ldexp(high, HALF_BITS)


def squared_lengths_of_product(images: Any, single: Any) -> FloatArray:
    """Return the squared length of each row of ``images @ single``, an exact sum of squares of integers. The product of
    a row's length and a column's is at most 2²⁴ steps, so that no partial sum passes it (Cauchy, Schwarz).
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
    """Cut a wide matrix into some columns at a time: a product with sparse rows reads each strip again and again."""
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


class FeatureMap(Protocol):
    """Rows to images: a function of public data alone, each image a function of its row alone, bit for bit."""

    @property
    def bits(self) -> int:
        """Images are integer numbers of steps of ``2**-bits``."""

    @property
    def n_images(self) -> int:
        """Numbers an image has."""

    @property
    def words(self) -> str:
        """What features are, in words."""

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes, for any row there could be."""

    @property
    def mixing(self) -> Any:
        """``(n_images, n_features)``, dense or CSR, from images to features; None where they are features."""

    def images(self, rows: Any) -> Any:
        """Return ``(n_rows, n_images)`` integers, dense or CSR."""

    def transformer(self, rows: Any) -> Any:
        """Return the map as a fitted scikit-learn transformer of encoded rows like `rows`."""

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split weights of features into those of the transformer's columns and the intercepts."""


@stored_as("quorate.data.feature_maps.coordinates.Spectrum")
@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Eigenpairs of the pool's second moment, largest first. `rest`: eigenvalues, as far as known, of directions left
    out.
    """

    values: FloatArray
    vectors: FloatArray = field(repr=False)
    rest: FloatArray = field(repr=False, default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, features: Any) -> Spectrum:
        """Decompose the second moment of public features ``(n_public, n_features)``, in its dual form where wide."""
        m, width = features.shape
        if width <= m:
            product = features.T @ features / m
            values, vectors = np.linalg.eigh(np.asarray(product.todense() if hasattr(product, "todense") else product))
        else:
            values, dual = dual_eigenpairs(features)
            if hasattr(features, "tocsr"):  # of thousands of words: half the memory, and public
                dual = (dual / np.sqrt(m * values)).astype(np.float32)
                vectors = np.asarray(features.astype(np.float32).T @ dual)
            else:
                vectors = np.asarray(features.T @ dual) / np.sqrt(m * values)
        kept = values > LEAST_SHARE * max(values[-1], 0.0)
        return cls(values[kept][::-1], (vectors if kept.all() else vectors[:, kept])[:, ::-1])

    def leading(self, most: int) -> Spectrum:
        """Return the largest eigenvalues and their directions alone."""
        return self if len(self.values) <= most else Spectrum(self.values[:most], self.vectors[:, :most])

    @property
    def least_ridge(self) -> float:
        """The smallest κ that is ever used."""
        return float(LEAST_RIDGE * self.values[-1])

    def effective_dimension(self, ridge: float) -> float:
        r"""Return :math:`d(\kappa) = \sum_j \lambda_j/(\lambda_j + \kappa)`, over the directions left out, too."""
        return float(np.sum(self.values / (self.values + ridge)) + np.sum(self.rest / (self.rest + ridge)))

    def ridge_for(self, dimension: float) -> float:
        """Return the smallest κ, of those ever used, with ``effective_dimension(κ) <= dimension``."""
        low = self.least_ridge
        if self.effective_dimension(low) <= dimension:
            return low
        high = 2.0 * float(self.values[0]) * (len(self.values) + len(self.rest)) / dimension
        root: Any = optimize.brentq(
            lambda log_ridge: self.effective_dimension(np.exp(log_ridge)) - dimension, np.log(low), np.log(high)
        )
        return float(np.exp(root))

    def whitening(self, ridge: float) -> FloatArray:
        r"""Return the matrix :math:`(v_j (\lambda_j + \kappa)^{-1/2})_j`, ``(n_features, n_kept)``."""
        lengths = np.sqrt(self.values + ridge)
        return np.asarray(self.vectors / lengths.astype(self.vectors.dtype))


def dual_eigenpairs(features: Any) -> tuple[FloatArray, FloatArray]:
    """Return what is kept of the eigenpairs of products of m public rows, smallest first: (k,) and (m, k)."""
    gram = features @ features.T / features.shape[0]
    values, dual = np.linalg.eigh(np.asarray(gram.todense() if hasattr(gram, "todense") else gram))
    kept = values > LEAST_SHARE * values[-1]
    return values[kept], dual[:, kept]


@stored_as("quorate.data.feature_maps.coordinates.PublicCoordinates")
@dataclass(frozen=True, slots=True, eq=False)
class PublicCoordinates:
    """A feature map and a whitening, both functions of public data alone.

    `whitening`: features to coordinates, in single precision where `factored`; None where these are the features.
    `bits`: coordinates are integer numbers of steps of ``2**-bits``. `matrix`: images to coordinates, column j in steps
    of ``2**-matrix_bits[j]``. `factored`: images times `matrix` are exact in single precision.
    """

    feature_map: FeatureMap
    whitening: Any = field(repr=False)
    bits: int
    matrix: FloatArray | None = field(repr=False)
    matrix_bits: Any = field(repr=False)
    factored: bool = False

    @classmethod
    def of(
        cls, feature_map: FeatureMap, whitening: FloatArray, *, longest_features: float = LONGEST_FEATURES
    ) -> PublicCoordinates:
        """Put the whitening on a grid on which the product with any image there could be is exact: coordinates are as
        fine as features of this length allow, and those of a longer row are 0.
        """
        mixing = feature_map.mixing
        matrix = whitening if mixing is None else mixing @ whitening
        matrix = np.asarray(matrix, dtype=np.float64)
        columns = np.linalg.norm(matrix, axis=0)
        room = [bits_for(feature_map.bound * (1 + 1e-6) * max(float(column), 1e-300)) for column in columns]
        bits = np.array(room, dtype=np.int64) - feature_map.bits - 1
        expected = longest_features * float(np.linalg.norm(whitening, axis=0).max(initial=0.0))
        longest = feature_map.bound * float(columns.max(initial=0.0))
        if longest < expected:  # elsewhere the matrix's norm, at least that of a column, changes nothing
            longest = feature_map.bound * float(np.linalg.norm(matrix, 2)) * (1 + 1e-6)
        return cls(
            feature_map,
            whitening,
            min(LENGTH_BITS - 1 - ceil(log2(max(min(longest, expected), 1e-300))), FINEST),
            np.rint(np.ldexp(matrix, bits[None, :])),
            bits,
        )

    @classmethod
    def of_words(cls, feature_map: FeatureMap, whitening: Any, *, most_bits: float) -> PublicCoordinates | None:
        """Round the whitening to steps of no less than ``2**-most_bits``, so that coordinates of sparse rows need not
        be written out; None where a column is lost. The memory of one in single precision is taken over.
        """
        lengths = np.sqrt(np.einsum("ij,ij->j", whitening, whitening)).astype(np.float64)
        most = 2.0 ** (SINGLE_BITS - feature_map.bits) / (feature_map.bound * (1 + 1e-6))  # a column's length
        moved = np.sqrt(len(whitening)) / 2  # by rounding, at most
        if moved > most / 2:
            return None
        bits = floor(log2((most - moved) / max(float(lengths.max(initial=0.0)) * (1 + 1e-4), 1e-300)))
        bits = min(bits, floor(most_bits) - feature_map.bits)
        if np.ldexp(lengths.min(initial=np.inf), bits) < moved:
            return None
        single = np.asarray(whitening, dtype=np.float32)
        single *= np.float32(2.0**bits)
        matrix = np.rint(single, out=single).astype(np.float64)
        single *= np.float32(2.0**-bits)  # exact
        column_bits = np.full(len(lengths), bits, dtype=np.int64)
        return cls(feature_map, single, feature_map.bits + bits, matrix, column_bits, factored=True)

    @classmethod
    def of_features(cls, feature_map: FeatureMap) -> PublicCoordinates:
        """Take the features of a map as they are; it mixes no images."""
        return cls(feature_map, None, min(LENGTH_BITS - 1 - ceil(log2(feature_map.bound)), FINEST), None, None)

    @property
    def n_coordinates(self) -> int:
        """How many numbers a row has."""
        return self.feature_map.n_images if self.whitening is None else int(self.whitening.shape[1])

    def __call__(self, rows: Any) -> Any:
        """Return coordinates ``(n_rows, n_coordinates)`` as integer numbers of steps, each row by itself; CSR where
        features are taken as they are and rows are sparse.
        """
        if self.matrix is None:
            return to_grid(self.feature_map.images(rows), self.bits - self.feature_map.bits)
        coordinates = np.empty((rows.shape[0], self.n_coordinates))
        for start in range(0, rows.shape[0], BLOCK):
            images = self.feature_map.images(rows[start : start + BLOCK])
            product = np.asarray(images @ self.matrix)  # of integers below 2^53: exact
            np.ldexp(product, self.bits - self.feature_map.bits - self.matrix_bits[None, :], out=product)
            own = np.rint(product, out=coordinates[start : start + BLOCK])
            own[squared_lengths(own) > 4.0 ** (LENGTH_BITS - 1)] = 0.0  # a longer sum is not exact, and longer still
        return coordinates

    def for_rounds(self, rows: Any) -> Any:
        """Return the same integers as a call, not written out where rows are sparse and that is exact."""
        if not self.factored or self.matrix is None:
            return self(rows)
        bound, longest = np.ldexp(self.feature_map.bound, self.feature_map.bits), 2.0 ** (LENGTH_BITS - 1)
        bits = int(self.matrix_bits[0])
        images = self.feature_map.images(rows)
        return FactoredRows.of(images, self.matrix, self.whitening, bits, float(bound), longest)

    @property
    def content(self) -> bytes | memoryview:
        """The bytes that tell these coordinates from others; none where features are taken as they are."""
        if self.factored and self.matrix is not None:
            return np.ascontiguousarray(self.matrix, dtype=np.int16).data
        return b"" if self.whitening is None else self.whitening.tobytes()

    def features(self, weights: FloatArray) -> FloatArray:
        """Return weights of features, ``(n_features, n_outputs)``, for weights of coordinates."""
        if self.factored and self.matrix is not None:  # the whitening in other units
            return np.asarray(np.ldexp(self.matrix @ weights, -self.matrix_bits[0]))
        return weights if self.whitening is None else np.asarray(self.whitening @ weights)


def public_features(feature_map: FeatureMap, pool: Any) -> Any:
    """Return the features of public rows, ``(n_public, n_features)``, as floats."""
    images = feature_map.images(pool)
    features = images * 2.0**-feature_map.bits
    return features if feature_map.mixing is None else features @ feature_map.mixing
