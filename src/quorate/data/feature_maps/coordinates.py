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
from math import ceil, log2
from typing import Any, Protocol

import numpy as np

from quorate.data.feature_maps.exact import bits_for, squared_lengths, to_grid
from quorate.deferred import optimize
from quorate.types import FloatArray

LEAST_SHARE = 1e-8  # eigenvalues below this share of the largest are dropped
LEAST_RIDGE = 1e-3  # kappa is at least this share of the smallest eigenvalue that is kept
LENGTH_BITS = 26  # a row's coordinates are integers of length at most 2^26, so that squares sum exactly
BLOCK = 2**12  # rows whose images are held at once
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


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Eigenpairs of the pool's second moment, largest first.

    Attributes
    ----------
    values : FloatArray, (n_kept,)
        Eigenvalues, > 0.
    vectors : FloatArray, (n_features, n_kept)
        Directions of length one.
    """

    values: FloatArray
    vectors: FloatArray = field(repr=False)

    @classmethod
    def of(cls, features: Any) -> Spectrum:
        """Decompose the second moment of public features ``(n_public, n_features)``, in its dual form where wide."""
        m, width = features.shape
        if width <= m:
            product = features.T @ features / m
            values, vectors = np.linalg.eigh(np.asarray(product.todense() if hasattr(product, "todense") else product))
        else:
            gram = features @ features.T / m
            values, dual = np.linalg.eigh(np.asarray(gram.todense() if hasattr(gram, "todense") else gram))
            kept = values > LEAST_SHARE * values[-1]
            values, dual = values[kept], dual[:, kept]
            vectors = np.asarray(features.T @ dual) / np.sqrt(m * values)
        kept = values > LEAST_SHARE * max(values[-1], 0.0)
        return cls(values[kept][::-1], vectors[:, kept][:, ::-1])

    @property
    def least_ridge(self) -> float:
        """The smallest κ that is ever used."""
        return float(LEAST_RIDGE * self.values[-1])

    def effective_dimension(self, ridge: float) -> float:
        r"""Return :math:`d(\kappa) = \sum_j \lambda_j/(\lambda_j + \kappa)`."""
        return float(np.sum(self.values / (self.values + ridge)))

    def ridge_for(self, dimension: float) -> float:
        """Return the smallest κ, of those ever used, with ``effective_dimension(κ) <= dimension``.

        Examples
        --------
        >>> spectrum = Spectrum(np.array([1.0, 0.1]), np.eye(2))
        >>> round(spectrum.effective_dimension(spectrum.ridge_for(1.0)), 9)
        1.0
        """
        low = self.least_ridge
        if self.effective_dimension(low) <= dimension:
            return low
        high = 2.0 * float(self.values[0]) * len(self.values) / dimension
        root: Any = optimize.brentq(
            lambda log_ridge: self.effective_dimension(np.exp(log_ridge)) - dimension, np.log(low), np.log(high)
        )
        return float(np.exp(root))

    def whitening(self, ridge: float) -> FloatArray:
        r"""Return the matrix :math:`(v_j (\lambda_j + \kappa)^{-1/2})_j`, ``(n_features, n_kept)``."""
        return np.asarray(self.vectors / np.sqrt(self.values + ridge))


@dataclass(frozen=True, slots=True, eq=False)
class PublicCoordinates:
    """A feature map and a whitening, both functions of public data alone.

    Attributes
    ----------
    feature_map : FeatureMap
        Rows to images.
    whitening : FloatArray, (n_features, n_coordinates), or None
        Features to coordinates; None where coordinates are the features themselves, without a pool.
    bits : int
        Coordinates are integer numbers of steps of ``2**-bits``.
    matrix : FloatArray, (n_images, n_coordinates), or None
        Images to coordinates, as integers: column j in steps of ``2**-matrix_bits[j]``.
    matrix_bits : (n_coordinates,) integers, or None
        See `matrix`.
    """

    feature_map: FeatureMap
    whitening: FloatArray | None = field(repr=False)
    bits: int
    matrix: FloatArray | None = field(repr=False)
    matrix_bits: Any = field(repr=False)

    @classmethod
    def of(cls, feature_map: FeatureMap, whitening: FloatArray) -> PublicCoordinates:
        """Put the whitening on a grid on which the product with any image there could be is exact.

        Coordinates are as fine as features of length 2 allow, which no row's are but for rounding: those of a kernel
        have length one, though images that no row has could be longer by thousands. A row beyond has coordinates 0.
        """
        mixing = feature_map.mixing
        matrix = whitening if mixing is None else mixing @ whitening
        columns = np.linalg.norm(matrix, axis=0)
        room = [bits_for(feature_map.bound * (1 + 1e-6) * max(float(column), 1e-300)) for column in columns]
        bits = np.array(room, dtype=np.int64) - feature_map.bits - 1
        longest = feature_map.bound * float(np.linalg.norm(matrix, 2)) * (1 + 1e-6)
        expected = LONGEST_FEATURES * float(np.linalg.norm(whitening, axis=0).max(initial=0.0))
        return cls(
            feature_map,
            whitening,
            min(LENGTH_BITS - 1 - ceil(log2(max(min(longest, expected), 1e-300))), FINEST),
            np.rint(np.ldexp(matrix, bits[None, :])),
            bits,
        )

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

    def features(self, weights: FloatArray) -> FloatArray:
        """Return weights of features, ``(n_features, n_outputs)``, for weights of coordinates."""
        return weights if self.whitening is None else np.asarray(self.whitening @ weights)


def public_features(feature_map: FeatureMap, pool: Any) -> Any:
    """Return the features of public rows, ``(n_public, n_features)``, as floats."""
    images = feature_map.images(pool)
    features = images * 2.0**-feature_map.bits
    return features if feature_map.mixing is None else features @ feature_map.mixing
