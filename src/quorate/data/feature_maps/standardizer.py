"""How the vote-share model measures public points: mean zero, typical length one."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import Any

import numpy as np

from quorate.data.feature_maps.scale import deviations, means
from quorate.data.rows import kind
from quorate.stored_names import stored_as
from quorate.types import FloatArray


@stored_as("quorate.data.feature_maps.standardizer.PoolStandardizer")
@dataclass(frozen=True, slots=True, eq=False)
class PoolStandardizer:
    r"""Affine change of public points :math:`z = (x - \bar x)/r`, column by column.

    Columns of 0 and 1 keep their unit, since a rare indicator is rare and not small; other dense columns are put in
    units of their public standard deviation first. Sparse columns are all taken as they are. Then every column is
    divided by the root mean squared length of what came out. A column that is constant in the pool says nothing
    there, and keeps its unit.

    Attributes
    ----------
    mean, scale : FloatArray
        ``(n_features,)`` each, in the unit of the column; `scale` > 0.

    Examples
    --------
    >>> standard = PoolStandardizer.of(np.array([[0.0, 10.0], [1.0, 30.0]]))
    >>> standard.mean.tolist(), np.round(standard.scale, 3).tolist()
    ([0.5, 20.0], [1.118, 11.18])
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, pool: Any, *, one_unit: bool = False) -> PoolStandardizer:
        """Read mean and scale off the public pool ``(n_public, n_features)``, an array or a sparse matrix.

        With `one_unit` no column is put in a unit of its own: where their lengths are what tells them apart.
        """
        points = pool.astype(np.float64)  # before anything is squared: small integers overflow
        spread = deviations(points)
        if kind(pool) == "sparse":
            mean, unit = np.asarray(points.mean(axis=0)).ravel(), np.ones(points.shape[1])
        else:
            mean = means(points, spread > 0)
            indicator = ((points == 0) | (points == 1)).all(axis=0)
            unit = np.where(indicator | (spread == 0) | one_unit, 1.0, spread)
        length = hypot(*(spread / unit).tolist())
        return cls(mean, unit * (length if length > 0 else 1.0))

    def scaler(self, rows: Any) -> Any:
        """Return the same change of points as a fitted scikit-learn transformer; a sparse matrix is not centred."""
        from sklearn.preprocessing import StandardScaler

        with np.errstate(over="ignore", invalid="ignore"):  # what it makes of the rows is not used
            fitted = StandardScaler(with_mean=kind(rows) != "sparse").fit(rows)
        fitted.mean_, fitted.scale_, fitted.var_ = self.mean, self.scale, self.scale**2
        return fitted

    def scores(self, X: Any, weights: FloatArray, intercepts: FloatArray) -> FloatArray:
        """Return :math:`b + Wz` for every row, ``(n_rows, n_outputs)``, without centring a sparse matrix."""
        scaled = weights / self.scale
        return np.asarray(X @ scaled.T) - self.mean @ scaled.T + intercepts

    def pull_back(self, X: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient in the weights, given that in the scores, ``(n_outputs, n_features)``."""
        return (np.asarray((X.T @ slopes).T) - np.outer(slopes.sum(axis=0), self.mean)) / self.scale
