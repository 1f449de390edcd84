"""Leading directions of a wide pool: what linear teachers see in place of thousands of columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.data.feature_maps.coordinates import PublicCoordinates, public_features
from quorate.data.feature_maps.linear import LinearMap
from quorate.data.rows import Rows
from quorate.types import FloatArray

WIDE = 256  # columns beyond which leading directions of the pool stand in for them
DIRECTIONS = 64


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

    def transform(self, rows: Rows) -> FloatArray:
        """Return ``(n_rows, 64)`` numbers, each row by itself."""
        steps: FloatArray = self.coordinates(rows)
        return steps * 2.0**-self.coordinates.bits


def is_wide(n_columns: int, n_public: int) -> bool:
    """Tell whether a pool has more columns than models of its columns can tell apart, and rows to find directions in.

    Examples
    --------
    >>> is_wide(784, 5_000), is_wide(123, 976), is_wide(5_000, 60)
    (True, False, False)
    """
    return n_columns > WIDE and n_public > DIRECTIONS
