r"""Linear features, and beside them what two kernels add to them: the default map of tables.

The kernels' features :math:`K` (Gaussian and product, side by side) are taken less their regression on the linear ones
:math:`L` over the pool, :math:`R = K - L W`. So the linear block keeps what is linear, and the other block, which is
whitened by itself, spends its directions on what is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import hypot
from typing import Any

import numpy as np

from quorate.data.feature_maps.composed import LinearMap
from quorate.data.feature_maps.coordinates import LONGEST_FEATURES, FeatureMap
from quorate.data.feature_maps.nystroem import RBFMap
from quorate.data.feature_maps.product_kernel import ProductKernelMap
from quorate.deferred import linalg, optimize, sparse
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

LANDMARKS = 800  # rows of the pool that both kernels are told by, at most
WIDTH = 2.0  # of the Gaussian one: gamma times the median squared distance
RIDGE = 1e-3  # of the regression, in mean squares of a linear feature
WRITTEN_OUT = 2_000  # linear features up to which matrices of their square are written out
MOST_FREEDOM = 0.25  # degrees of freedom of the regression, at most, for each public row


@stored_as("quorate.data.feature_maps.residual.ResidualMap")
@dataclass(frozen=True, slots=True, eq=False)
class ResidualMap:
    r"""Linear features, a Gaussian and a product kernel of the same rows, and the kernels' regression on the first.

    Attributes
    ----------
    linear : LinearMap
    gaussian : RBFMap
        In the same units.
    product : ProductKernelMap
    regression : FloatArray, (n_linear_images, n_kernel_features)
        W above.

    Examples
    --------
    >>> pool = np.random.default_rng(0).normal(size=(50, 3))
    >>> fitted = ResidualMap.fit(pool)
    >>> features = fitted.images(pool) / 2**fitted.bits @ fitted.mixing
    >>> features.shape, fitted.n_linear
    ((50, 104), 4)
    """

    linear: LinearMap
    gaussian: RBFMap
    product: ProductKernelMap
    regression: FloatArray = field(repr=False)

    @classmethod
    def fit(cls, pool: FloatArray, *, categories: Sequence[tuple[int, int]] = (), rows: str = "rows") -> ResidualMap:
        """Read everything off the dense public pool ``(n_public, n_columns)``.

        `categories`: first and one past the last column of the indicators of each category. `rows`: what a row is, in
        words.

        Raises
        ------
        InvalidParameter
            As :meth:`ProductKernelMap.fit` does.
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
    def bits(self) -> int:
        """Images are integer numbers of steps of ``2**-bits``."""
        return self.linear.bits

    @property
    def n_linear(self) -> int:
        """Features of the linear block, which come first."""
        return self.linear.n_images

    @property
    def n_images(self) -> int:
        """Numbers an image has."""
        return self.linear.n_images + self.gaussian.n_images + self.product.n_images

    @property
    def words(self) -> str:
        """What features are, in words."""
        return (
            f"{self.linear.words}, and what a Gaussian kernel and a product of kernels of single columns, with rows of "
            "the pool, add to them"
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

    def images(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_images)`` integers, each row a function of that row alone."""
        kernels = np.hstack([self.gaussian.images(rows), self.product.images(rows)])
        steps = 2.0 ** (self.linear.bits - self.gaussian.bits)
        np.rint(np.multiply(kernels, steps, out=kernels), out=kernels)
        return np.hstack([self.linear.images(rows), kernels])

    def transformer(self, rows: Any) -> Any:
        """Return linear features and those of both kernels as a fitted scikit-learn FeatureUnion."""
        from sklearn.pipeline import FeatureUnion

        return FeatureUnion(
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
    """Return the ridge regression of kernels on linear features over the pool, ``(n_linear, n_kernel_features)``.

    With few public rows for their columns it would fit these rows and say nothing of others, so the ridge is the least
    from 10⁻³ of a mean square on with which it has a quarter of the public rows as degrees of freedom, at most.
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
