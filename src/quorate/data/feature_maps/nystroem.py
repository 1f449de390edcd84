r"""Kernels approximated by rows of the pool (Nyström): Gaussian of numbers, chi-squared of counts, products of columns.

A product of kernels of single columns is for columns that act together:

.. math:: k(x, x') = \prod_j \frac{1 + a k_j(x_j, x'_j)}{1 + a}, \qquad a = 2/\text{columns},

where :math:`k_j = e^{-2 |r_j - r'_j|}` on the pool's ranks of a number, from 0 to 1, and :math:`k_j` is 1 for equal
categories and 0 for others. A rank is that of one of at most 64 intervals, each of about equally many public rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any, ClassVar

import numpy as np

from quorate.data.feature_maps.exact import MANTISSA_BITS, exp, squared_lengths
from quorate.data.feature_maps.first_maps import linear_step
from quorate.data.feature_maps.scale import BITS as ROW_BITS
from quorate.data.feature_maps.scale import PoolScale, has_spread
from quorate.deferred import compose, frozen, kernel_approximation, pipeline, preprocessing
from quorate.errors import InvalidParameter, named
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

BITS = 24  # images are multiples of 2^-24
LANDMARKS = 2_000  # rows of the pool that the kernel is told by, at most
WIDTH = 0.7  # of the kernel where nothing is said: gamma = 0.7 / median squared distance in the pool
_LEAST = 1e-8  # eigenvalues of the landmarks' kernel below this share of the largest are left out
SHARE_BITS = 20  # shares of a row's total are multiples of 2^-20
COUNT_LANDMARKS = 1_000  # rows of the pool that the kernel is told by, at most
_BLOCK = 1_024  # rows at once
INTERVALS = 64  # of the pool's values of a number, at most
FEWEST = 8  # intervals, however many numbers there are
ALL_INTERVALS = 2_048  # of all numbers together, which have a factor for each landmark
MOST_VALUES = 32  # of a category, beside that it is missing
WEIGHT = 2.0  # a times the number of columns
RANK_WIDTH = 0.5  # of the kernel of a number, in ranks from 0 to 1
_AT_ONCE = 2**8  # rows at once: what they are multiplied in stays near the processor


class _OnLandmarks:
    """Images are kernel values with rows of the pool, at most 1 each."""

    __slots__ = ()

    root: FloatArray
    bits: ClassVar[int] = BITS

    @property
    def n_images(self) -> int:
        return len(self.root)

    @property
    def bound(self) -> float:
        return float(np.sqrt(self.n_images)) + 1e-6

    @property
    def mixing(self) -> FloatArray:
        return self.root


@stored_as("quorate.data.feature_maps.rbf.RBFMap")
@dataclass(frozen=True, slots=True, eq=False)
class RBFMap(_OnLandmarks):
    r"""Features :math:`K_{mm}^{-1/2}\,(k(x, x_1), \dots, k(x, x_m))` with :math:`k(x, x') = e^{-\gamma\|x - x'\|^2}`.

    `scale`: units of the pool, in which rows are put first. `landmarks`: scaled rows of the pool, as integer numbers of
    grid steps. `gamma`: > 0, per squared unit of a scaled row. `root`: :math:`K_{mm}^{-1/2}`, on the directions that
    are kept. Williams and Seeger (2001), Using the Nyström method to speed up kernel machines.
    """

    scale: PoolScale
    landmarks: FloatArray = field(repr=False)
    gamma: float
    root: FloatArray = field(repr=False)
    words: ClassVar[str] = "a Gaussian kernel with rows of the pool"

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

    def images(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_landmarks)`` integers, each row a function of that row alone."""
        values = exp(-self.gamma * squared_distances(self.scale.on_grid(rows), self.landmarks))
        return np.rint(values * 2.0**BITS)

    def transformer(self, rows: Any) -> Any:
        """Return the same map as a fitted scikit-learn Pipeline: scaled, cut off, Nyström."""
        landmarks = self.landmarks / 2.0**ROW_BITS
        n = len(landmarks)
        nystroem = kernel_approximation.Nystroem(gamma=self.gamma, n_components=n, random_state=0).fit(landmarks)
        nystroem.components_, nystroem.normalization_ = landmarks, self.root
        return pipeline.Pipeline([("scale", self.scale.transformer()), ("kernel", nystroem)])

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
    """

    landmarks: FloatArray = field(repr=False)
    root: FloatArray = field(repr=False)
    words: ClassVar[str] = "the additive chi-squared kernel of counts with rows of the pool"

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
        landmarks = self.landmarks * 2.0**-SHARE_BITS
        n = len(landmarks)
        nystroem = kernel_approximation.Nystroem(kernel="additive_chi2", n_components=n, random_state=0).fit(landmarks)
        nystroem.components_, nystroem.normalization_ = landmarks, self.root.T / 2
        return pipeline.Pipeline([("shares", preprocessing.Normalizer(norm="l1").fit(landmarks)), ("kernel", nystroem)])

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


@stored_as("quorate.data.feature_maps.product_kernel.ProductKernelMap")
@dataclass(frozen=True, slots=True, eq=False)
class ProductKernelMap(_OnLandmarks):
    r"""Features :math:`K_{mm}^{-1/2}\,(k(x, x_1), \dots, k(x, x_m))` of the product kernel.

    What a column of a row says becomes a code, an integer, and each code has one factor for each landmark. So an image
    is a product of numbers that are read from a public table, one column after another. `numbers`: places of the
    columns of numbers. `cuts`: for each of them, where the next interval begins: rising. `categories`: the first and
    one past the last column of the indicators of each category. `factors`: ``(n_codes, n_landmarks)`` of :math:`(1 + a
    k_j)/(1 + a)`: those of the first number's intervals, of the next one's, and so on, then for each category that of a
    value without an indicator and those of its values. `root`: as of :class:`RBFMap`.
    """

    numbers: IntArray
    cuts: tuple[FloatArray, ...] = field(repr=False)
    categories: tuple[tuple[int, int], ...]
    factors: FloatArray = field(repr=False)
    root: FloatArray = field(repr=False)

    @classmethod
    def fit(
        cls, pool: FloatArray, landmarks: IntArray, *, categories: Sequence[tuple[int, int]] = ()
    ) -> ProductKernelMap:
        """Read intervals and factors off the dense public pool ``(n_public, n_columns)``; refuse where no column is
        left.

        `landmarks`: rows of the pool, by number. `categories`: the last indicator of each is that of a missing value;
        one of more than 32 values is left out, as is what has no spread in the pool.
        """
        numbers, categories = columns_of(pool, categories)
        if not len(numbers) + len(categories):
            raise InvalidParameter(
                f"{named('feature_map', 'kernels')} takes columns of numbers, or of categories of at most "
                f'{MOST_VALUES} values, and the public pool has none; take "linear"'
            )
        most = min(max(ALL_INTERVALS // max(len(numbers), 1), FEWEST), INTERVALS)
        return cls.of_landmarks(
            pool, landmarks, numbers, tuple(_cuts(pool[:, place], most) for place in numbers), categories
        )

    @classmethod
    def of_landmarks(
        cls,
        pool: FloatArray,
        landmarks: IntArray,
        numbers: IntArray,
        cuts: tuple[FloatArray, ...],
        categories: tuple[tuple[int, int], ...],
    ) -> ProductKernelMap:
        """Read ranks and factors alone off the pool, where columns and intervals are known."""
        weight = WEIGHT / (len(numbers) + len(categories))
        of_numbers = (_of_number(pool[:, place], own, landmarks) for place, own in zip(numbers, cuts, strict=True))
        of_categories = (_of_category(pool[:, first:end], landmarks) for first, end in categories)
        kernels = np.vstack([*of_numbers, *of_categories])
        factors = (1 + weight * kernels) / (1 + weight)
        root = np.empty((len(landmarks), 0))
        kernel = cls(numbers, cuts, categories, factors, root).images(pool[landmarks]) * 2.0**-BITS
        return cls(numbers, cuts, categories, factors, inverse_root((kernel + kernel.T) / 2))

    @property
    def starts(self) -> IntArray:
        """The first code of each column, numbers first."""
        sizes = [len(own) + 1 for own in self.cuts] + [1 + end - first for first, end in self.categories]
        return np.cumsum([0, *sizes[:-1]], dtype=np.int64)

    def codes(self, rows: FloatArray) -> IntArray:
        """Return the code of each column, ``(n_rows, n_columns)`` integers: comparisons, entry by entry."""
        of_numbers = [
            np.searchsorted(own, rows[:, place], side="right")
            for place, own in zip(self.numbers, self.cuts, strict=True)
        ]
        of_categories = [category_codes(rows[:, first:end]) for first, end in self.categories]
        return np.stack([*of_numbers, *of_categories], axis=1).astype(np.int64) + self.starts

    def images(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_landmarks)`` integers, each row a function of that row alone."""
        codes = self.codes(np.asarray(rows, dtype=np.float64))
        images = np.empty((len(codes), self.n_images))
        room = np.empty((min(_AT_ONCE, len(codes)), self.n_images))
        for start in range(0, len(codes), _AT_ONCE):
            own = codes[start : start + _AT_ONCE]
            product = np.take(self.factors, own[:, 0], axis=0, out=images[start : start + _AT_ONCE], mode="clip")
            for column in own.T[1:]:
                product *= np.take(self.factors, column, axis=0, out=room[: len(own)], mode="clip")
            np.rint(np.ldexp(product, BITS, out=product), out=product)
        return images

    def transformer(self, n_columns: int) -> Any:
        r"""Return the same map as a fitted scikit-learn Pipeline: :math:`\exp \sum_j \log`, then the root.

        `n_columns`: of the rows that it takes, those among them that are not compared.

        Codes are indicators there: those of intervals, and those of categories as they are, so that a value without an
        indicator has zeros alone. What its factors are is left to the root.
        """
        places = [place for first, end in self.categories for place in range(first, end)]
        parts: list[tuple[str, Any, list[int]]] = []
        if len(self.numbers):
            parts.append(("numbers", _intervals(self.cuts), self.numbers.tolist()))
        if places:
            parts.append(("categories", "passthrough", places))
        logs, starts = np.log(self.factors), self.starts
        n_of_numbers, bases = sum(len(own) + 1 for own in self.cuts), starts[len(self.numbers) :]
        of_values = [
            logs[base + 1 : base + 1 + end - first] - logs[base]
            for base, (first, end) in zip(bases, self.categories, strict=True)
        ]
        unknown = np.exp(logs[bases].sum(axis=0))
        return pipeline.Pipeline(
            [
                ("codes", compose.ColumnTransformer(parts, sparse_threshold=1.0).fit(np.zeros((1, n_columns)))),
                ("logarithms", linear_step(np.vstack([logs[:n_of_numbers], *of_values]).T)),
                ("product", preprocessing.FunctionTransformer(np.exp)),
                ("root", linear_step((unknown[:, None] * self.root).T)),
            ]
        )


def columns_of(pool: FloatArray, categories: Sequence[tuple[int, int]]) -> tuple[IntArray, tuple[tuple[int, int], ...]]:
    """Return the places of the numbers that the kernel compares, and its categories; neither has one without spread."""
    varied, number = has_spread(pool), np.ones(pool.shape[1], dtype=np.bool_)
    for first, end in categories:
        number[first:end] = False
    kept = ((a, b) for a, b in categories if b - a <= MOST_VALUES + 1 and varied[a:b].any())
    return np.flatnonzero(number & varied), tuple((int(first), int(end)) for first, end in kept)


def category_codes(indicators: FloatArray) -> IntArray:
    """Return 1, 2, … for a row with the first, second, … indicator, and 0 for one with none."""
    one = indicators == 1.0
    return np.asarray(np.where(one.any(axis=1), 1 + one.argmax(axis=1), 0), dtype=np.int64)


def _cuts(values: FloatArray, most: int) -> FloatArray:
    """Return where intervals begin, but for the first: between values of the pool, at most `most` - 1 of them."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) > most:
        before = np.cumsum(counts) - counts
        interval = before * most // len(values)  # of the first row that has the value
        begins = np.flatnonzero(np.diff(interval)) + 1
    else:
        begins = np.arange(1, len(distinct))
    low, high = distinct[begins - 1], distinct[begins]
    middle = low + (high - low) / 2
    return np.where((middle > low) & (middle <= high), middle, high)


def _of_number(values: FloatArray, cuts: FloatArray, landmarks: IntArray) -> FloatArray:
    """Return one number's kernel between intervals and landmarks, ``(n_intervals, n_landmarks)``; two are two
    categories.
    """
    codes = np.searchsorted(cuts, values, side="right")
    counts = np.bincount(codes, minlength=len(cuts) + 1)
    ranks = (np.cumsum(counts) - counts / 2) / len(values)
    if len(cuts) == 1:
        return np.eye(2)[:, codes[landmarks]]
    return np.asarray(np.exp(-np.abs(ranks[:, None] - ranks[codes[landmarks]]) / RANK_WIDTH))


def _of_category(indicators: FloatArray, landmarks: IntArray) -> FloatArray:
    """Return 1 for equal values, else 0, ``(1 + n_values, n_landmarks)``; what has no indicator equals nothing."""
    codes = category_codes(indicators)[landmarks]
    every = np.arange(1 + indicators.shape[1])[:, None]
    return np.asarray((every == codes) & (every > 0), dtype=np.float64)


def _intervals(cuts: Sequence[FloatArray]) -> Any:
    """Return indicators of intervals as a fitted scikit-learn transformer."""
    fitted = preprocessing.KBinsDiscretizer(n_bins=2, strategy="uniform", encode="onehot", subsample=None)
    fitted.fit(np.tile([[0.0], [1.0]], len(cuts)))
    fitted.bin_edges_ = np.array([None] * len(cuts), dtype=object)
    for place, own in enumerate(cuts):
        fitted.bin_edges_[place] = np.concatenate([[own[0] - 1], own, [own[-1] + 1]])  # the ends are not looked at
    fitted.n_bins_ = np.array([len(own) + 1 for own in cuts])
    intervals = [np.arange(n, dtype=np.float64) for n in fitted.n_bins_]
    fitted._encoder = preprocessing.OneHotEncoder(categories=intervals).fit(np.zeros((1, len(cuts))))
    return frozen.FrozenEstimator(fitted)
