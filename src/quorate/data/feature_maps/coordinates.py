r"""Public coordinates: features whitened by the second moment of the public pool.

With :math:`M = \frac1m \sum \varphi\varphi^T` over the pool and its eigenpairs :math:`(\lambda_j, v_j)`, a row has the
coordinates

.. math:: z_j(x) = (\lambda_j + \kappa)^{-1/2}\, v_j^T \varphi(x),

so that one step size fits all directions. The mean of :math:`\|z\|^2` over the pool is the *effective dimension*
:math:`d(\kappa) = \sum_j \lambda_j/(\lambda_j + \kappa)`. Outside the span of the pool nothing is learned.

Conditioning by public moments is known for regression and for label privacy: Li et al. (2022), arXiv:2202.05963.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, log2
from typing import Any, Protocol

import numpy as np

from quorate.data.feature_maps.exact import bits_for, squared_lengths, to_grid
from quorate.data.feature_maps.factored import SINGLE_BITS, FactoredRows
from quorate.deferred import optimize
from quorate.stored_names import stored_as
from quorate.types import FloatArray

LEAST_SHARE = 1e-8  # eigenvalues below this share of the largest are dropped
LEAST_RIDGE = 1e-3  # kappa is at least this share of the smallest eigenvalue that is kept
LENGTH_BITS = 26  # a row's coordinates are integers of length at most 2^26, so that squares sum exactly
BLOCK = 2**10  # rows whose images are held at once: of more, memory would be taken anew each time
LONGEST_FEATURES = 2.0  # linear ones have length √2, those of a kernel 1, and both together √3
FINEST = 12  # and multiples of 2^-12 at the finest: entries are about 1


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
    def mixing(self) -> FloatArray | None:
        """``(n_images, n_features)``, by which images are multiplied to be features; None where they are features."""

    def images(self, rows: Any) -> Any:
        """Return ``(n_rows, n_images)`` integers, dense or CSR."""

    def transformer(self, rows: Any) -> Any:
        """Return the map as a fitted scikit-learn transformer of encoded rows like `rows`."""

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split weights of features into those of the transformer's columns and the intercepts."""


@stored_as("quorate.data.feature_maps.coordinates.Spectrum")
@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Eigenpairs of the pool's second moment, largest first.

    `values`: eigenvalues, > 0. `vectors`: directions of length one. `rest`: eigenvalues whose directions are left out,
    as far as they are known: of a large pool of texts.
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

    `feature_map`: rows to images.
    `whitening`: features to coordinates, of single precision where `factored`; None where coordinates are the features
        themselves, without a pool.
    `bits`: coordinates are integer numbers of steps of ``2**-bits``.
    `matrix`: images to coordinates, as integers: column j in steps of ``2**-matrix_bits[j]``.
    `matrix_bits`: see `matrix`.
    `factored`: whether images times `matrix` are the coordinates as they are, and exact in single precision.
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
        """Put the whitening on a grid on which the product with any image there could be is exact.

        Coordinates are as fine as features of this length allow, which no row's are but for rounding: those of a kernel
        have length one, though images that no row has could be longer by thousands. A row beyond has coordinates 0.
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
        """Round the whitening so that coordinates of sparse rows need not be written out (:mod:`.factored`).

        The rounded matrix is the whitening from then on: coordinates are images times the matrix, and nothing is
        rounded after that. None where the shortest column would be lost in the rounding, or columns are too long.

        `feature_map`: of sparse images. `whitening`: as for :meth:`of`. Where it is of single precision already, its
        memory is taken over. `most_bits`: coordinates are multiples of no less than ``2**-most_bits``.
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
        each = np.full(len(lengths), bits, dtype=np.int64)
        return cls(feature_map, single, feature_map.bits + bits, matrix, each, factored=True)

    @classmethod
    def of_features(cls, feature_map: FeatureMap) -> PublicCoordinates:
        """Take the features of a map as they are; it mixes no images."""
        return cls(feature_map, None, min(LENGTH_BITS - 1 - ceil(log2(feature_map.bound)), FINEST), None, None)

    @property
    def n_coordinates(self) -> int:
        """How many numbers a row has."""
        return self.feature_map.n_images if self.whitening is None else int(self.whitening.shape[1])

    def __call__(self, rows: Any) -> Any:
        """Return coordinates ``(n_rows, n_coordinates)`` as integer numbers of steps, each row by itself.

        CSR where features are taken as they are and rows are sparse.
        """
        if self.matrix is None:
            return to_grid(self.feature_map.images(rows), self.bits - self.feature_map.bits)
        made = np.empty((rows.shape[0], self.n_coordinates))
        for start in range(0, rows.shape[0], BLOCK):
            images = self.feature_map.images(rows[start : start + BLOCK])
            product = np.asarray(images @ self.matrix)  # of integers below 2^53: exact
            np.ldexp(product, self.bits - self.feature_map.bits - self.matrix_bits[None, :], out=product)
            own = np.rint(product, out=made[start : start + BLOCK])
            own[squared_lengths(own) > 4.0 ** (LENGTH_BITS - 1)] = 0.0  # a longer sum is not exact, and longer still
        return made

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
