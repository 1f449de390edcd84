"""Kernels approximated by rows of the pool (Nyström): the Gaussian one of numbers, additive chi-squared of counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2
from typing import Any

import numpy as np

from quorate.data.feature_maps.exact import MANTISSA_BITS, exp, squared_lengths
from quorate.data.feature_maps.scale import BITS as ROW_BITS
from quorate.data.feature_maps.scale import PoolScale
from quorate.errors import InvalidParameter, named
from quorate.stored_names import stored_as
from quorate.types import FloatArray

BITS = 24  # images are multiples of 2^-24
LANDMARKS = 2_000  # rows of the pool that the kernel is told by, at most
WIDTH = 0.7  # of the kernel where nothing is said: gamma = 0.7 / median squared distance in the pool
_LEAST = 1e-8  # eigenvalues of the landmarks' kernel below this share of the largest are left out
SHARE_BITS = 20  # shares of a row's total are multiples of 2^-20
COUNT_LANDMARKS = 1_000  # rows of the pool that the kernel is told by, at most
_BLOCK = 1_024  # rows at once


class _OnLandmarks:
    """Images are kernel values with rows of the pool."""

    __slots__ = ()

    landmarks: FloatArray
    root: FloatArray

    @property
    def bits(self) -> int:
        """Images are integer numbers of steps of ``2**-bits``."""
        return BITS

    @property
    def n_images(self) -> int:
        """Numbers an image has: one kernel value a landmark."""
        return len(self.landmarks)

    @property
    def mixing(self) -> FloatArray:
        """What images are multiplied by to be features."""
        return self.root


@stored_as("quorate.data.feature_maps.rbf.RBFMap")
@dataclass(frozen=True, slots=True, eq=False)
class RBFMap(_OnLandmarks):
    r"""Features :math:`K_{mm}^{-1/2}\,(k(x, x_1), \dots, k(x, x_m))` with :math:`k(x, x') = e^{-\gamma\|x - x'\|^2}`.

    `scale`: units of the pool, in which rows are put first. `landmarks`: scaled rows of the pool, as integer numbers of
    grid steps. `gamma`: > 0, per squared unit of a scaled row. `root`: :math:`K_{mm}^{-1/2}`, on the directions that
    are kept. Williams and Seeger (2001), Using the Nyström method to speed up kernel machines.

    Examples
    --------
    >>> pool = np.random.default_rng(0).normal(size=(50, 3))
    >>> fitted = RBFMap.fit(pool, np.random.default_rng(0))
    >>> features = fitted.images(pool) / 2**fitted.bits @ fitted.mixing
    >>> features.shape, bool(np.all(np.linalg.norm(features, axis=1) < 1.001))
    ((50, 50), True)
    """

    scale: PoolScale
    landmarks: FloatArray = field(repr=False)
    gamma: float
    root: FloatArray = field(repr=False)

    @classmethod
    def fit(
        cls, pool: FloatArray, rng: np.random.Generator, *, scale: PoolScale | None = None, width: float = WIDTH
    ) -> RBFMap:
        """Read scales, landmarks and the kernel's width off the dense public pool ``(n_public, n_columns)``.

        `width`: gamma times the median squared distance in the pool.
        """
        scale = scale or PoolScale.fit(pool)
        chosen = np.sort(rng.permutation(len(pool))[:LANDMARKS])
        landmarks = scale.on_grid(pool[chosen])
        distances = squared_distances(landmarks, landmarks)
        apart = distances[np.triu_indices(len(distances), 1)]
        middle = float(np.median(apart)) if apart.size else 0.0
        gamma = width / middle if middle > 0 else 1.0
        return cls(scale, landmarks, gamma, inverse_root(exp(-gamma * distances)))

    @property
    def words(self) -> str:
        """What features are, in words."""
        return "a Gaussian kernel with rows of the pool"

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes: every kernel value is at most 1."""
        return float(np.sqrt(self.n_images)) + 1e-6

    def images(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_landmarks)`` integers, each row a function of that row alone."""
        values = exp(-self.gamma * squared_distances(self.scale.on_grid(rows), self.landmarks))
        return np.rint(values * 2.0**BITS)

    def transformer(self, rows: Any) -> Any:
        """Return the same map as a fitted scikit-learn Pipeline: scaled, cut off, Nyström."""
        from sklearn.kernel_approximation import Nystroem
        from sklearn.pipeline import Pipeline

        landmarks = self.landmarks / 2.0**ROW_BITS
        nystroem = Nystroem(gamma=self.gamma, n_components=len(landmarks), random_state=0).fit(landmarks)
        nystroem.components_, nystroem.normalization_ = landmarks, self.root
        return Pipeline([("scale", self.scale.transformer()), ("kernel", nystroem)])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights ``(n_features, n_outputs)`` and no intercepts: features here hold no constant."""
        return weights, np.zeros(weights.shape[1])


def squared_distances(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return squared distances in scaled units of rows on the grid, ``(n_a, n_b)``, exact in any order: integers of at
    most 2¹⁴, summed over fewer than 2²³ columns.
    """
    integers = squared_lengths(a)[:, None] + squared_lengths(b)[None, :] - 2.0 * (a @ b.T)
    return np.asarray(integers * 4.0**-ROW_BITS)


def inverse_root(kernel: FloatArray) -> FloatArray:
    """Return :math:`K^{-1/2}` of a kernel between landmarks, on the directions that rounding does not drown."""
    values, vectors = np.linalg.eigh(kernel)
    kept = values > _LEAST * values[-1]
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T)


@stored_as("quorate.data.feature_maps.chi_squared.ChiSquaredMap")
@dataclass(frozen=True, slots=True, eq=False)
class ChiSquaredMap(_OnLandmarks):
    r"""Features :math:`K_{mm}^{-1/2}(k(x, x_1), \dots)` with :math:`k(x, y) = \sum_j 2 x_j y_j / (x_j + y_j)`.

    Rows are counts, and stand in the kernel as shares of their total; a number below 0 counts as 0. `landmarks`: shares
    of rows of the pool, in steps of 2⁻²⁰. `root`: as of :class:`RBFMap`. Vedaldi and Zisserman (2012), Efficient
    additive kernels via explicit feature maps.

    Examples
    --------
    >>> pool = np.random.default_rng(0).poisson(2.0, (30, 12)).astype(float)
    >>> fitted = ChiSquaredMap.fit(pool, np.random.default_rng(0))
    >>> fitted.images(pool).shape, bool(np.allclose(np.diag(fitted.images(pool)) / 2**fitted.bits, 1.0, atol=1e-4))
    ((30, 30), True)
    """

    landmarks: FloatArray = field(repr=False)
    root: FloatArray = field(repr=False)

    @classmethod
    def fit(cls, pool: FloatArray, rng: np.random.Generator) -> ChiSquaredMap:
        """Choose landmarks from the dense public pool of counts ``(n_public, n_columns)``; refuse a number below 0."""
        if (pool < 0).any():
            raise InvalidParameter(
                f"{named('feature_map', 'chi2')} takes counts, and the public pool holds numbers below 0"
            )
        chosen = np.sort(rng.permutation(len(pool))[:COUNT_LANDMARKS])
        landmarks = shares(pool[chosen])
        landmarks = landmarks[landmarks.any(axis=1)]
        if not len(landmarks):
            raise InvalidParameter(
                f"{named('feature_map', 'chi2')} takes counts, and those of the public pool are all 0"
            )
        return cls(landmarks, inverse_root(kernel(landmarks, landmarks) * 2.0**-BITS))

    @property
    def words(self) -> str:
        """What features are, in words."""
        return "the additive chi-squared kernel of counts with rows of the pool"

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes: shares sum to 1, but for the grid, and so does every value."""
        return float(np.sqrt(self.n_images) * (1 + self.landmarks.shape[1] * 2.0**-SHARE_BITS)) + 1e-6

    def images(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_landmarks)`` integers, each row a function of that row alone."""
        return kernel(shares(rows), self.landmarks)

    def transformer(self, rows: Any) -> Any:
        r"""Return the same map as a fitted scikit-learn Pipeline.

        scikit-learn's kernel of this name is :math:`-\sum (x - y)^2/(x + y) = 2k - 2` for shares.
        """
        from sklearn.kernel_approximation import Nystroem
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import Normalizer

        landmarks = self.landmarks * 2.0**-SHARE_BITS
        nystroem = Nystroem(kernel="additive_chi2", n_components=len(landmarks), random_state=0).fit(landmarks)
        nystroem.components_, nystroem.normalization_ = landmarks, self.root.T / 2
        return Pipeline([("shares", Normalizer(norm="l1").fit(landmarks)), ("kernel", nystroem)])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights of the transformer's columns, and the intercepts that its −2 takes."""
        return weights, np.asarray(self.root.sum(axis=0) @ weights)


def shares(rows: FloatArray) -> FloatArray:
    """Return each row as shares of its total (rounded to sum exactly in any order), in integer steps of 2⁻²⁰; zeros
    stay.
    """
    counts = np.maximum(np.ascontiguousarray(rows, dtype=np.float64), 0.0)
    fine = int(MANTISSA_BITS - 2 - log2(max(rows.shape[1], 2)))
    exponents = np.frexp(counts.max(axis=1, initial=0.0))[1].astype(np.int64)
    integers = np.rint(np.ldexp(counts, fine - exponents[:, None]))
    totals = integers.sum(axis=1)
    np.divide(integers, totals[:, None], out=integers, where=totals[:, None] > 0)
    return np.asarray(np.rint(integers * 2.0**SHARE_BITS))


def kernel(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return kernel values of shares, ``(n_a, n_b)`` integer steps of 2⁻²⁴; every term is an integer before the sum."""
    values = np.empty((len(a), len(b)))
    for first in range(0, len(a), _BLOCK):
        columns = np.ascontiguousarray(a[first : first + _BLOCK].T)
        for at, other in enumerate(b):
            positive = np.flatnonzero(other)
            x, y = columns[positive], other[positive, None]
            values[first : first + _BLOCK, at] = np.rint(2.0 ** (BITS - SHARE_BITS + 1) * x * y / (x + y)).sum(axis=0)
    return values
