r"""Whitened coordinates of a public pool, scaled to length one: what many small teachers and their student see.

A row becomes :math:`u = z/\|z\|`, with z its coordinates in one block or two, each whitened by itself. The length of z
says how usual a row is and not of which class, and a teacher of a few rows would follow the longest of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from quorate.data.feature_maps.coordinates import FeatureMap, PublicCoordinates
from quorate.data.feature_maps.exact import squared_lengths
from quorate.data.feature_maps.residual import longest_features
from quorate.data.rows import Rows
from quorate.stored_names import stored_as
from quorate.types import FloatArray


@stored_as("quorate.data.feature_maps.unit_coordinates.UnitCoordinates")
@dataclass(frozen=True, slots=True, eq=False)
class UnitCoordinates:
    r"""Rows to vectors of length one; a row that the pool says nothing of becomes zeros.

    Attributes
    ----------
    coordinates : PublicCoordinates
        z, on a grid on which every product is exact: what a row becomes is a function of that row and of the pool, bit
        for bit.
    effects : FloatArray, (n_directions,)
        :math:`\lambda_j/(\lambda_j + \kappa)` in (0, 1]: the mean square of each coordinate over the pool.

    Examples
    --------
    >>> from quorate.data.feature_maps import LinearMap
    >>> pool = np.random.default_rng(0).normal(size=(50, 2))
    >>> coordinates = UnitCoordinates.of(LinearMap.fit(pool), np.eye(3), np.full(3, 0.5))
    >>> seen = coordinates.transform(pool)
    >>> seen.shape, bool(np.allclose(np.linalg.norm(seen, axis=1), 1.0))
    ((50, 3), True)
    """

    coordinates: PublicCoordinates
    effects: FloatArray = field(repr=False)

    @classmethod
    def of(cls, feature_map: FeatureMap, whitening: FloatArray, effects: FloatArray) -> UnitCoordinates:
        """Put a whitening ``(n_features, n_directions)`` on the grid.

        Each direction gets the sign of its largest weight: which one a decomposition gives is a matter of the machine.
        """
        largest = np.take_along_axis(whitening, np.abs(whitening).argmax(axis=0)[None], axis=0)
        signed = whitening * np.where(largest < 0, -1.0, 1.0)
        return cls(PublicCoordinates.of(feature_map, signed, longest_features=longest_features(feature_map)), effects)

    @property
    def n_directions(self) -> int:
        """How many numbers a row has."""
        return self.coordinates.n_coordinates

    @property
    def of_patches(self) -> bool:
        """Whether rows are images, told by their patches: never."""
        return False

    @property
    def described(self) -> str:
        """What tells these coordinates from others of the same pool, for the key of a charge."""
        return f"{self.n_directions} of length one"

    @property
    def digest(self) -> str:
        """What tells them from the same ones on another machine, whose rounding differs, for the key of a stage."""
        return blake2b(self.coordinates.content, digest_size=16).hexdigest()

    def transform(self, rows: Rows) -> FloatArray:
        """Return ``(n_rows, n_directions)`` numbers, each row by itself."""
        steps: FloatArray = self.coordinates(rows)
        lengths = np.sqrt(squared_lengths(steps))
        steps /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return steps

    def transformer(self, rows: Rows) -> Any:
        """Return the same numbers, but for the grid, as a fitted scikit-learn Pipeline.

        Parameters
        ----------
        rows : (n_public, n_columns)
            Of the pool; two of them are enough.
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import Normalizer, PolynomialFeatures

        feature_map = self.coordinates.feature_map
        weights, constants = feature_map.weights(self.coordinates.features(np.eye(self.n_directions)))
        first = feature_map.transformer(rows)
        with_one = PolynomialFeatures(1).fit(first.transform(rows))  # a constant 1, and the features as they are
        last = TruncatedSVD(self.n_directions)  # a product with a matrix
        last.components_ = np.ascontiguousarray(np.vstack([constants, weights]).T)
        last.n_features_in_ = last.components_.shape[1]
        unit = Normalizer().fit(np.zeros((1, self.n_directions)))
        return Pipeline([("features", first), ("constant", with_one), ("directions", last), ("unit", unit)])
