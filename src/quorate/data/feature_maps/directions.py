"""Leading directions of a wide pool: what linear teachers see in place of thousands of columns, or of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.data.feature_maps.chained import ChainedMap
from quorate.data.feature_maps.coordinates import PublicCoordinates, public_features
from quorate.data.feature_maps.linear import LinearMap
from quorate.data.feature_maps.patches import PatchFeatures
from quorate.data.feature_maps.scale import has_spread, in_one_unit
from quorate.data.feature_maps.shared_patches import SharedPatches
from quorate.data.rows import Rows
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as
from quorate.types import FloatArray

WIDE = 256  # columns beyond which leading directions of the pool stand in for them
DIRECTIONS = 64
OF_IMAGES = 128  # directions of patches
LEAST = 1e-6  # share of the leading variance below which a direction says nothing of other images


@stored_as("quorate.data.feature_maps.directions.PoolDirections")
@dataclass(frozen=True, slots=True, eq=False)
class PoolDirections:
    r"""The leading 64 singular directions of a wide pool, in one common unit: a typical public row has length one.

    Rows are scaled to length one first, dense ones in the units of the pool (:class:`~.linear.LinearMap`). A teacher
    of a few dozen rows cannot tell thousands of weights apart; which combinations of columns rows differ in, the
    unlabelled pool shows for free.

    Attributes
    ----------
    coordinates : PublicCoordinates
        The map, on a grid on which every product is exact: what a row becomes is a function of that row and of the
        pool, bit for bit.

    Examples
    --------
    >>> pool = np.random.default_rng(0).normal(size=(100, 300))
    >>> directions = PoolDirections.of(pool)
    >>> seen = directions.transform(pool)
    >>> seen.shape, round(float(np.sqrt(np.mean(np.sum(seen**2, axis=1)))), 2)
    ((100, 64), 1.0)
    """

    coordinates: PublicCoordinates

    @classmethod
    def of(cls, pool: Rows) -> PoolDirections:
        """Read the directions off the public pool ``(n_public, n_columns)``, an array or a CSR matrix of numbers."""
        from sklearn.decomposition import TruncatedSVD

        told = LinearMap.fit(pool)
        features = public_features(told, pool)[:, :-1]  # without the constant: an intercept says the same
        with np.errstate(divide="ignore", invalid="ignore"):  # the share of variance explained, of a pool without any
            vectors = TruncatedSVD(DIRECTIONS, random_state=0).fit(features).components_.T
        length = float(np.sqrt(np.mean(np.sum(np.asarray(features @ vectors) ** 2, axis=1))))
        constant = np.zeros((1, DIRECTIONS))
        return cls(PublicCoordinates.of(told, np.vstack([vectors / (length or 1.0), constant])))

    @classmethod
    def of_images(cls, pool: FloatArray, *, patches: SharedPatches | None = None) -> PoolDirections:
        r"""Read the leading 128 principal directions of the patches of public images ``(n_public, side * side)``.

        The coordinate along a direction is divided by the root of its standard deviation in the pool: between leaving
        directions as long as they are, of which a model of few rows learns the first alone, and making all equally
        long. They have mean zero. What others ask of `patches` is learned and computed once; they are for public rows.

        Raises
        ------
        InvalidParameter
            As :meth:`PatchFeatures.fit` does.
        """
        from sklearn.decomposition import PCA

        first = PatchFeatures.fit(pool) if patches is None else patches.of(pool)
        numbers = first.numbers(pool)
        told = ChainedMap(first, LinearMap(numbers.shape[1], in_one_unit(numbers)))
        features = public_features(told.second, numbers)[:, :-1]
        if not has_spread(features).any():
            raise InvalidParameter("the public images are all equal, and show no directions; give images that differ")
        found = PCA(min(OF_IMAGES, *features.shape), svd_solver="randomized", random_state=0).fit(features)
        kept = found.explained_variance_ > LEAST * found.explained_variance_[0]
        deviations = np.sqrt(found.explained_variance_[kept])
        length = float(np.sqrt(deviations.sum()))  # of a typical image: so much each coordinate varies
        vectors = found.components_[kept].T / (np.sqrt(deviations) * length)
        return cls(PublicCoordinates.of(told, np.vstack([vectors, -(found.mean_ @ vectors)[None]])))

    @property
    def n_directions(self) -> int:
        """How many numbers a row has."""
        return self.coordinates.n_coordinates

    @property
    def of_patches(self) -> bool:
        """Whether rows are images, told by their patches."""
        return isinstance(self.coordinates.feature_map, ChainedMap)

    @property
    def described(self) -> int | str:
        """What tells these directions from others of the same pool, for the key of a stage."""
        return f"{self.n_directions} of patches" if self.of_patches else self.n_directions

    def transform(self, rows: Rows) -> FloatArray:
        """Return ``(n_rows, n_directions)`` numbers, each row by itself."""
        steps: FloatArray = self.coordinates(rows)
        return steps * 2.0**-self.coordinates.bits

    def transformer(self, rows: Rows) -> Any:
        """Return the same numbers, but for the grid, as a fitted scikit-learn Pipeline.

        Parameters
        ----------
        rows : (n_public, n_columns)
            Of the pool; two of them are enough.
        """
        from sklearn.decomposition import PCA
        from sklearn.pipeline import Pipeline

        weights, constant = self.coordinates.feature_map.weights(self.coordinates.features(np.eye(self.n_directions)))
        first = self.coordinates.feature_map.transformer(rows)
        last = PCA(self.n_directions)  # (x - mean) @ components.T, with the mean that gives this constant
        last.components_ = np.ascontiguousarray(weights.T)
        last.mean_ = -np.linalg.lstsq(last.components_, constant, rcond=None)[0]
        last.n_components_, last.n_features_in_ = self.n_directions, len(weights)
        return Pipeline([("features", first), ("directions", last)])


def is_wide(n_columns: int, n_public: int) -> bool:
    """Whether a pool has more columns than models of its columns can tell apart, and rows to find directions in."""
    return n_columns > WIDE and n_public > DIRECTIONS
