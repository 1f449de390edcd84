"""Two feature maps side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.data.feature_maps.linear import LinearMap
from quorate.data.feature_maps.rbf import RBFMap
from quorate.deferred import linalg
from quorate.stored_names import stored_as
from quorate.types import FloatArray


@stored_as("quorate.data.feature_maps.stacked.StackedMap")
@dataclass(frozen=True, slots=True, eq=False)
class StackedMap:
    """Linear and Gaussian-kernel features of the same scaled rows, in one vector.

    Examples
    --------
    >>> pool = np.random.default_rng(0).normal(size=(50, 3))
    >>> rbf = RBFMap.fit(pool, np.random.default_rng(0))
    >>> StackedMap(LinearMap.fit(pool), rbf).images(pool).shape
    (50, 54)
    """

    linear: LinearMap
    rbf: RBFMap

    @property
    def bits(self) -> int:
        """Images are integer numbers of steps of ``2**-bits``."""
        return self.linear.bits

    @property
    def n_images(self) -> int:
        """Numbers an image has."""
        return self.linear.n_images + self.rbf.n_images

    @property
    def words(self) -> str:
        """What features are, in words."""
        return "rows scaled to length one, beside a Gaussian kernel with rows of the pool"

    @property
    def bound(self) -> float:
        """What no image's Euclidean length passes."""
        return float(np.hypot(self.linear.bound, self.rbf.bound))

    @property
    def mixing(self) -> FloatArray:
        """What images are multiplied by to be features."""
        return np.asarray(linalg.block_diag(np.eye(self.linear.n_images), self.rbf.mixing))

    def images(self, rows: FloatArray) -> FloatArray:
        """Return ``(n_rows, n_images)`` integers, each row a function of that row alone."""
        coarser = np.rint(self.rbf.images(rows) * 2.0 ** (self.linear.bits - self.rbf.bits))
        return np.hstack([self.linear.images(rows), coarser])

    def transformer(self, rows: Any) -> Any:
        """Return the same map as a fitted scikit-learn FeatureUnion."""
        from sklearn.pipeline import FeatureUnion

        return FeatureUnion([("linear", self.linear.transformer(rows)), ("rbf", self.rbf.transformer(rows))])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split ``(n_features, n_outputs)`` weights into those of the transformer's columns and the intercepts."""
        n = self.linear.n_columns
        return np.vstack([weights[:n], weights[n + 1 :]]), weights[n]
