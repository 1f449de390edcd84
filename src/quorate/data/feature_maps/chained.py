"""A feature map of what was made of each row before: patches, leaves of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.data.feature_maps.linear import LinearMap
from quorate.data.feature_maps.patches import PatchFeatures
from quorate.data.feature_maps.rbf import RBFMap
from quorate.data.feature_maps.scale import in_one_unit
from quorate.data.feature_maps.shared_patches import SharedPatches
from quorate.data.feature_maps.trees import TreeLeaves
from quorate.stored_names import stored_as
from quorate.types import FloatArray


@stored_as("quorate.data.feature_maps.chained.ChainedMap")
@dataclass(frozen=True, slots=True, eq=False)
class ChainedMap:
    """Images of the second map, of the numbers that the first makes of a row.

    Attributes
    ----------
    first : PatchFeatures or TreeLeaves
        Rows to numbers, each row a function of that row alone, bit for bit.
    second : LinearMap or RBFMap
        Fitted on what the first makes of the pool.
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
        from sklearn.pipeline import Pipeline

        first = self.first.transformer()
        return Pipeline([("first", first), ("second", self.second.transformer(self.first.numbers(rows[:2])))])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split weights of features into those of the transformer's columns and the intercepts."""
        return self.second.weights(weights)


def patch_map(pool: FloatArray, *, patches: SharedPatches | None = None) -> ChainedMap:
    """Return patches of images by a Gaussian kernel, learned from the dense public pool.

    What others ask of `patches` is learned and computed once; they are for public rows.
    """
    first = PatchFeatures.fit(pool) if patches is None else patches.of(pool)
    features = first.numbers(pool)
    return ChainedMap(first, RBFMap.fit(features, np.random.default_rng(0), scale=in_one_unit(features)))


def tree_map(pool: FloatArray) -> ChainedMap:
    """Return leaves of random trees, grown on the dense public pool."""
    first = TreeLeaves.fit(pool)
    return ChainedMap(first, LinearMap.fit(first.numbers(pool)))
