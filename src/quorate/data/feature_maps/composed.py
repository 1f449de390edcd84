"""Maps made of others: linear rows, two side by side, what one makes of another, the default map; and all by name.

The default map (:class:`ResidualMap`) has linear features :math:`L`, and beside them two kernels' features :math:`K`
less their regression on these over the pool, :math:`R = K - L W`; that block is whitened by itself, and spends its
directions on what is not linear.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import hypot, sqrt
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from quorate.arguments import one_of
from quorate.data.feature_maps.coordinates import LONGEST_FEATURES, FeatureMap
from quorate.data.feature_maps.exact import unit_rows
from quorate.data.feature_maps.first_maps import PatchFeatures, SharedPatches, TreeLeaves
from quorate.data.feature_maps.nystroem import ChiSquaredMap, ProductKernelMap, RBFMap, columns_of
from quorate.data.feature_maps.scale import PoolScale, has_numbers, has_spread, holds_one_quantity, in_one_unit
from quorate.data.rows import kind
from quorate.deferred import linalg, optimize, pipeline, preprocessing, sparse
from quorate.errors import InvalidParameter, named
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

BITS = 20  # images are multiples of 2^-20
COARSE_BITS = 10  # or of 2^-10, where products with a matrix are to be exact in single precision


@stored_as("quorate.data.feature_maps.linear.LinearMap")
@dataclass(frozen=True, slots=True)
class LinearMap:
    r"""Each row :math:`x/\|x\|` with a constant 1 appended; it needs nothing from the pool but its width and units.

    `scale`: units of the pool, of dense rows; None for sparse ones, of words, which are taken as they are. `rows`: what
    a row is, in words. `bits`: images are integer numbers of steps of ``2**-bits``.
    """

    n_columns: int
    scale: PoolScale | None
    rows: str = "rows"
    bits: int = BITS
    mixing: ClassVar[None] = None  # images are features as they are

    @classmethod
    def fit(cls, pool: Any, *, rows: str = "rows") -> LinearMap:
        """Read the units off the public pool ``(n_public, n_columns)``, an array or a CSR matrix."""
        return cls(pool.shape[1], None if kind(pool) == "sparse" else PoolScale.fit(pool), rows)

    @property
    def n_images(self) -> int:
        """Numbers an image has."""
        return self.n_columns + 1

    @property
    def words(self) -> str:
        """What features are, in words."""
        return f"{self.rows} scaled to length one"

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes, for any row there could be."""
        rounded = 1 + 2.0 ** -(self.bits + 1) * sqrt(self.n_columns)  # each entry by half a step at most
        return max(1.5, sqrt(rounded**2 + 1) * (1 + 1e-6))

    def images(self, rows: Any) -> Any:
        """Return ``(n_rows, n_images)`` integers, each row a function of that row alone; CSR for sparse rows."""
        units = unit_rows(rows if self.scale is None else self.scale.on_grid(rows), self.bits)
        if kind(rows) == "sparse":
            return _with_last(units, 2.0**self.bits)
        return np.hstack([units, np.full((rows.shape[0], 1), 2.0**self.bits)])

    def coarse(self) -> LinearMap:
        """Return the same map on the coarser grid."""
        return replace(self, bits=COARSE_BITS)

    def transformer(self, rows: Any) -> Any:
        """Return the same map without the constant as a fitted scikit-learn transformer; the intercept holds that."""
        if self.scale is None:
            return preprocessing.Normalizer().fit(rows)
        scale = self.scale.transformer()
        return pipeline.Pipeline([("scale", scale), ("unit", preprocessing.Normalizer().fit(scale.transform(rows)))])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split ``(n_images, n_outputs)`` weights into those of the transformer's columns and the intercepts."""
        return weights[:-1], weights[-1]


def _with_last(rows: Any, value: float) -> Any:
    """Append a column that holds `value` in each row of a CSR matrix."""
    n_rows, n_columns = rows.shape
    starts = rows.indptr + np.arange(n_rows + 1, dtype=rows.indptr.dtype)
    stored = np.ones(rows.nnz + n_rows, dtype=bool)
    stored[starts[1:] - 1] = False  # the last cell of each row
    data, indices = np.full(len(stored), value), np.full(len(stored), n_columns, dtype=rows.indices.dtype)
    data[stored], indices[stored] = rows.data, rows.indices
    return sparse.csr_matrix((data, indices, starts), shape=(n_rows, n_columns + 1))


@stored_as("quorate.data.feature_maps.chained.ChainedMap")
@dataclass(frozen=True, slots=True, eq=False)
class ChainedMap:
    """Images of the second map, of the numbers that the first makes of a row, bit for bit a function of that row alone.

    `first`: patches or leaves. `second`: linear or of a Gaussian kernel, fitted on what the first makes of the pool.
    """

    first: PatchFeatures | TreeLeaves
    second: LinearMap | RBFMap

    @property
    def bits(self) -> int:
        """Images are integer numbers of steps of ``2**-bits``."""
        return self.second.bits

    @property
    def n_images(self) -> int:
        """Numbers an image has."""
        return self.second.n_images

    @property
    def words(self) -> str:
        """What features are, in words."""
        kernel = ", by a Gaussian kernel with those of the pool" if isinstance(self.second, RBFMap) else ""
        return f"{self.first.words}{kernel}"

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes."""
        return self.second.bound

    @property
    def mixing(self) -> FloatArray | None:
        """What images are multiplied by to be features."""
        return self.second.mixing

    def images(self, rows: FloatArray) -> Any:
        """Return ``(n_rows, n_images)`` integers, each row a function of that row alone."""
        return self.second.images(self.first.numbers(rows))

    def transformer(self, rows: Any) -> Any:
        """Return the same map as a fitted scikit-learn Pipeline."""
        first = self.first.transformer()
        return pipeline.Pipeline([("first", first), ("second", self.second.transformer(self.first.numbers(rows[:2])))])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split weights of features into those of the transformer's columns and the intercepts."""
        return self.second.weights(weights)


def patch_map(pool: FloatArray, *, patches: SharedPatches | None = None) -> ChainedMap:
    """Return patches of images by a Gaussian kernel, learned from the dense public pool; what others ask of `patches`,
    which are for public rows, is computed once.
    """
    first = PatchFeatures.fit(pool) if patches is None else patches.of(pool)
    features = first.numbers(pool)
    return ChainedMap(first, RBFMap.fit(features, np.random.default_rng(0), scale=in_one_unit(features)))


def tree_map(pool: FloatArray) -> ChainedMap:
    """Return leaves of random trees, grown on the dense public pool."""
    first = TreeLeaves.fit(pool)
    return ChainedMap(first, LinearMap.fit(first.numbers(pool)))


class _BesideLinear(ABC):
    """Linear features, which come first, and those of kernels of the same rows, on the grid of the linear ones."""

    __slots__ = ()

    linear: LinearMap

    @property
    @abstractmethod
    def kernels(self) -> tuple[RBFMap | ProductKernelMap, ...]: ...

    @property
    def bits(self) -> int:
        return self.linear.bits

    @property
    def n_linear(self) -> int:
        return self.linear.n_images

    @property
    def n_images(self) -> int:
        return self.n_linear + sum(kernel.n_images for kernel in self.kernels)

    def images(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_images)`` integers, each row a function of that row alone."""
        images = np.hstack([kernel.images(rows) for kernel in self.kernels])
        steps = 2.0 ** (self.bits - self.kernels[0].bits)
        np.rint(np.multiply(images, steps, out=images), out=images)
        return np.hstack([self.linear.images(rows), images])


@stored_as("quorate.data.feature_maps.stacked.StackedMap")
@dataclass(frozen=True, slots=True, eq=False)
class StackedMap(_BesideLinear):
    """Linear and Gaussian-kernel features of the same scaled rows, in one vector."""

    linear: LinearMap
    rbf: RBFMap
    words: ClassVar[str] = "rows scaled to length one, beside a Gaussian kernel with rows of the pool"

    @property
    def kernels(self) -> tuple[RBFMap]:
        """The Gaussian one."""
        return (self.rbf,)

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes."""
        return float(np.hypot(self.linear.bound, self.rbf.bound))

    @property
    def mixing(self) -> FloatArray:
        """What images are multiplied by to be features."""
        return np.asarray(linalg.block_diag(np.eye(self.linear.n_images), self.rbf.mixing))

    def transformer(self, rows: Any) -> Any:
        """Return the same map as a fitted scikit-learn FeatureUnion."""
        return pipeline.FeatureUnion([("linear", self.linear.transformer(rows)), ("rbf", self.rbf.transformer(rows))])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split ``(n_features, n_outputs)`` weights into those of the transformer's columns and the intercepts."""
        n = self.linear.n_columns
        return np.vstack([weights[:n], weights[n + 1 :]]), weights[n]


LANDMARKS = 800  # rows of the pool that both kernels are told by, at most
WIDTH = 2.0  # of the Gaussian one: gamma times the median squared distance
RIDGE = 1e-3  # of the regression, in mean squares of a linear feature
WRITTEN_OUT = 2_000  # linear features up to which matrices of their square are written out
MOST_FREEDOM = 0.25  # degrees of freedom of the regression, at most, for each public row


@stored_as("quorate.data.feature_maps.residual.ResidualMap")
@dataclass(frozen=True, slots=True, eq=False)
class ResidualMap(_BesideLinear):
    """Linear features, a Gaussian and a product kernel of the same rows, and the kernels' regression on the first.

    `regression`: W above, ``(n_linear_images, n_kernel_features)``. Both kernels have the same units.
    """

    linear: LinearMap
    gaussian: RBFMap
    product: ProductKernelMap
    regression: FloatArray = field(repr=False)

    @classmethod
    def fit(cls, pool: FloatArray, *, categories: Sequence[tuple[int, int]] = (), rows: str = "rows") -> ResidualMap:
        """Read everything off the dense public pool ``(n_public, n_columns)``; refuse as :meth:`ProductKernelMap.fit`
        does.

        `categories`: first and one past the last column of the indicators of each category. `rows`: what a row is, in
        words.
        """
        product = ProductKernelMap.fit(pool, _landmarks(pool), categories=categories)
        return cls._with_regression(LinearMap.fit(pool, rows=rows), product, pool)

    @classmethod
    def _with_regression(cls, linear: LinearMap, product: ProductKernelMap, pool: FloatArray) -> ResidualMap:
        gaussian = RBFMap.fit(pool[_landmarks(pool)], np.random.default_rng(0), scale=linear.scale, width=WIDTH)
        kernels = np.hstack([kernel.images(pool) * 2.0**-kernel.bits @ kernel.root for kernel in (gaussian, product)])
        regression = regression_on(linear.images(pool) * 2.0**-linear.bits, kernels)
        return cls(linear, gaussian, product, regression)

    def fitted_on(self, pool: FloatArray) -> ResidualMap:
        """Return the map with landmarks and a regression of some public rows alone, in the same units."""
        own = self.product
        product = ProductKernelMap.of_landmarks(pool, _landmarks(pool), own.numbers, own.cuts, own.categories)
        return ResidualMap._with_regression(self.linear, product, pool)

    @property
    def kernels(self) -> tuple[RBFMap, ProductKernelMap]:
        """Both, in the order of their features."""
        return self.gaussian, self.product

    @property
    def words(self) -> str:
        """What features are, in words."""
        return (
            f"{self.linear.words}, and their likeness to rows of the pool by two kernels, a Gaussian one and a product "
            "of kernels of single columns"
        )

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes."""
        return float(np.linalg.norm([self.linear.bound, self.gaussian.bound, self.product.bound])) + 1e-6

    @property
    def longest(self) -> float:
        """What no row's features are longer than, but for rounding: √2 for the linear ones and for both kernels."""
        largest = float(np.linalg.norm(self.regression, 2)) if self.regression.size else 0.0
        return float(np.sqrt(2.0) * hypot(1.0, 1.0 + largest)) * (1 + 1e-6)

    @property
    def mixing(self) -> Any:
        """What images are multiplied by to be features: dense, or CSR where it has many linear features."""
        n, roots = self.n_linear, linalg.block_diag(self.gaussian.root, self.product.root)
        if n > WRITTEN_OUT:
            blocks: list[list[Any]] = [[sparse.identity(n), -self.regression], [None, roots]]
            return sparse.bmat(blocks, format="csr")
        above = np.hstack([np.eye(n), -self.regression])
        return np.vstack([above, np.hstack([np.zeros((len(roots), n)), roots])])

    def transformer(self, rows: Any) -> Any:
        """Return linear features and those of both kernels as a fitted scikit-learn FeatureUnion."""
        return pipeline.FeatureUnion(
            [
                ("linear", self.linear.transformer(rows)),
                ("gaussian", self.gaussian.transformer(rows)),
                ("product", self.product.transformer(rows.shape[1])),
            ]
        )

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split ``(n_features, n_outputs)`` weights into those of the transformer's columns and the intercepts."""
        own, of_kernels = weights[: self.n_linear], weights[self.n_linear :]
        own = own - self.regression @ of_kernels
        return np.vstack([own[:-1], of_kernels]), own[-1]


def _landmarks(pool: FloatArray) -> IntArray:
    return np.sort(np.random.default_rng(0).permutation(len(pool))[:LANDMARKS])


def regression_on(linear: FloatArray, kernels: FloatArray) -> FloatArray:
    """Return the ridge regression of kernels on linear features over the pool, ``(n_linear, n_kernel_features)``. With
    few public rows it would fit these alone: the least ridge from 10⁻³ of a mean square on with at most a quarter of
    them as degrees of freedom.
    """
    m, width = len(linear), int(linear.shape[1])
    wide = width > max(m, WRITTEN_OUT)  # then by products of rows, of which there are fewer: the same matrix
    values, vectors = np.linalg.eigh((linear @ linear.T if wide else linear.T @ linear) / m)
    values, least = np.maximum(values, 0.0), RIDGE * float((linear**2).mean(axis=0).mean())

    def beyond(log_ridge: float) -> float:
        return float((values / (values + np.exp(log_ridge))).sum()) - MOST_FREEDOM * m

    ridge = least
    if beyond(np.log(least)) > 0:
        most = width * float(values[-1]) / (MOST_FREEDOM * m)
        root: Any = optimize.brentq(beyond, np.log(least), np.log(most))
        ridge = float(np.exp(root))
    if wide:
        return np.asarray(linear.T @ ((vectors / (values + ridge)) @ (vectors.T @ (kernels / m))))
    return np.asarray((vectors / (values + ridge)) @ (vectors.T @ (linear.T @ kernels / m)))


def longest_features(feature_map: FeatureMap) -> float:
    """Return what no row's features are longer than, but for rounding."""
    return feature_map.longest if isinstance(feature_map, ResidualMap) else LONGEST_FEATURES


FeatureMapName = Literal["auto", "linear", "rbf", "both", "kernels", "chi2", "trees", "patches"]
FEATURE_MAPS: tuple[FeatureMapName, ...] = get_args(FeatureMapName)


def default_map(pool: Any, categories: Sequence[tuple[int, int]] = ()) -> FeatureMapName:
    """Return the feature map of an encoded public pool ``(n_public, n_columns)`` of which nothing is said.

    Linear where rows are sparse or all columns are words or indicators; linear beside a Gaussian kernel where numbers
    are one quantity at many places, as pixels are; else linear beside what kernels add to it. `categories`: the first
    and one past the last column of each one's indicators.
    """
    if kind(pool) == "sparse":
        return "linear"
    if has_numbers(pool):
        return "both" if holds_one_quantity(pool) else "kernels"
    return "kernels" if columns_of(pool, categories)[1] else "linear"


def default_map_before(pool: Any) -> FeatureMapName:
    """Return the feature map of a run that left it open, begun before kernels were the default of tables."""
    return "both" if kind(pool) != "sparse" and has_numbers(pool) else "linear"


def feature_map_for(
    name: FeatureMapName,
    pool: Any,
    *,
    rows: str = "rows",
    categories: Sequence[tuple[int, int]] = (),
    patches: SharedPatches | None = None,
) -> FeatureMap:
    """Return a feature map fitted on the encoded public pool ``(n_public, n_columns)``; ``"auto"`` is
    :func:`default_map`'s. `rows`: what a row of the pool is, in words. `patches`: of public images, where others ask
    for them too.
    """
    one_of("feature_map", name, FEATURE_MAPS)
    if not has_spread(pool).any():
        raise InvalidParameter(
            "the public pool has no spread: all its rows are equal once they are numbers; give rows that differ, and "
            "where a column names files of images, their folder as images"
        )
    if name == "auto":
        name = default_map(pool, categories)
    if name == "linear":
        return LinearMap.fit(pool, rows=rows)
    if kind(pool) == "sparse":
        raise InvalidParameter(f'{named("feature_map", name)} takes dense rows, and these are sparse; take "linear"')
    rng = np.random.default_rng(0)
    makers: dict[str, Callable[[], FeatureMap]] = {
        "rbf": lambda: RBFMap.fit(pool, rng),
        "both": lambda: StackedMap(LinearMap.fit(pool, rows=rows), RBFMap.fit(pool, rng)),
        "kernels": lambda: ResidualMap.fit(pool, categories=categories, rows=rows),
        "chi2": lambda: ChiSquaredMap.fit(pool, rng),
        "trees": lambda: tree_map(pool),
        "patches": lambda: patch_map(pool, patches=patches),
    }
    return makers[name]()
