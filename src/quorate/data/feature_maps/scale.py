"""Number columns in units of the public pool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.rows import kind
from quorate.deferred import preprocessing
from quorate.stored_names import stored_as
from quorate.types import FloatArray

BITS = 12  # scaled rows are multiples of 2^-12
ONE_UNIT = 0.05  # how large the middle column of one scale is, at least, of the largest
CLIP = 4.0  # entries are cut off at this many public standard deviations
_NARROW = 1e-14  # a range below which scikit-learn takes columns for constant, and a little more
SHARED = 16  # columns from which a common range says that they are one quantity


@stored_as("quorate.data.feature_maps.scale.PoolScale")
@dataclass(frozen=True, slots=True, eq=False)
class PoolScale:
    """Entries ``(x - mean)/scale``, ``(n_columns,)`` each, `scale` > 0, cut off at ±4 and put on a grid.

    Columns of 0 and 1 keep their unit, since a rare indicator is rare and not small; so does a column that is constant
    in the pool. Columns that share their lowest and highest value, as pixels do, are one quantity, and have one unit,
    its range: in units of their own, those that hardly vary would count as much as the others.
    """

    mean: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)

    @classmethod
    def fit(cls, pool: FloatArray) -> PoolScale:
        """Read the units off the dense public pool ``(n_public, n_columns)``."""
        indicator, varied = ((pool == 0) | (pool == 1)).all(axis=0), has_spread(pool)
        kept = indicator | ~varied
        if holds_one_quantity(pool):
            low, high = pool[:, ~kept].min(), pool[:, ~kept].max()
            return cls(np.where(indicator, 0.0, low), np.where(indicator, 1.0, high - low))
        return cls(np.where(indicator, 0.0, means(pool, varied)), np.where(kept, 1.0, deviations(pool)))

    @property
    def numbers(self) -> bool:
        """Whether any column is in a unit of its own: a table of indicators alone has none."""
        return bool((self.scale != 1.0).any())

    @property
    def differing(self) -> bool:
        """Whether columns have units of their own: pixels and counts have one, ages beside indicators do not.

        Columns are of one scale where the middle one has values at least a twentieth as large, in root mean square, as
        the largest.
        """
        size = np.hypot(self.mean, self.scale)
        return self.numbers and bool(np.quantile(size, 0.5, method="lower") < ONE_UNIT * size.max())

    def on_grid(self, rows: FloatArray) -> FloatArray:
        """Return scaled rows as integer numbers of grid steps, entry by entry."""
        scaled = (np.asarray(rows, dtype=np.float64) - self.mean) / self.scale
        return np.rint(np.minimum(np.maximum(scaled, -CLIP), CLIP) * 2.0**BITS)

    def transformer(self) -> Any:
        """Return the same change of rows, but for the grid, as a fitted scikit-learn transformer."""
        edges = np.vstack([self.mean - CLIP * self.scale, self.mean + CLIP * self.scale])
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = with_narrow(preprocessing.MinMaxScaler(feature_range=(-CLIP, CLIP), clip=True).fit(edges))
        same = edges[0] == edges[1]  # large numbers, for which the scale is less than rounding
        fitted.scale_[same], fitted.min_[same] = 1 / self.scale[same], -self.mean[same] / self.scale[same]
        return fitted


def with_narrow(fitted: Any) -> Any:
    """Have a ``MinMaxScaler`` scale narrow columns too, whose ends it takes for one value; return it."""
    narrow = (fitted.data_range_ > 0) & (fitted.data_range_ < _NARROW)
    low, high = fitted.feature_range
    fitted.scale_[narrow] = (high - low) / fitted.data_range_[narrow]
    fitted.min_[narrow] = low - fitted.data_min_[narrow] * fitted.scale_[narrow]
    return fitted


def has_spread(columns: Any) -> NDArray[np.bool_]:
    """Tell which columns hold two values, ``(n_columns,)``, by least and largest: standard deviations are rounded."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    if kind(columns) == "sparse":
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return ~np.asarray(low == high)


def means(columns: FloatArray, varied: NDArray[np.bool_]) -> FloatArray:
    """Return the mean of each dense column; of one without spread it is its value, and not what is near it."""
    with np.errstate(over="ignore"):
        return np.asarray(np.where(varied, columns.mean(axis=0), columns[0]))


def deviations(columns: Any) -> FloatArray:
    """Return the standard deviation of each column, sparse or dense: 0 where it has no spread, and nowhere else."""
    varied = has_spread(columns)
    if kind(columns) == "sparse":
        return np.where(varied, _sparse_deviations(columns), 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        spreads = np.asarray(columns.std(axis=0))
        for at in np.flatnonzero(
            varied & ((spreads == 0) | np.isinf(spreads) | np.isnan(spreads))
        ):  # of squares, that is
            low, high = columns[:, at].min(), columns[:, at].max()
            spreads[at] = max((high - low) * ((columns[:, at] - low) / (high - low)).std(), 5e-324)
    return np.where(varied, spreads, 0.0)


def _sparse_deviations(columns: Any) -> FloatArray:
    apart = columns.tocsc(copy=True)
    m, stored = apart.shape[0], np.diff(apart.indptr)
    largest = abs(apart).max(axis=0).toarray().ravel()
    unit = np.where(largest > 0, largest, 1.0)  # in which no square is 0 or infinite
    apart.data = apart.data / np.repeat(unit, stored)
    mean = np.asarray(apart.mean(axis=0)).ravel()
    apart.data = (apart.data - np.repeat(mean, stored)) ** 2
    return np.asarray(unit * np.sqrt((np.asarray(apart.sum(axis=0)).ravel() + (m - stored) * mean**2) / m))


def in_one_unit(pool: FloatArray) -> PoolScale:
    """Return a scale of numbers ≥ 0 that all have one unit, the largest of the dense pool; none is centred."""
    n_columns, largest = pool.shape[1], max(float(pool.max()), 1e-300)
    return PoolScale(np.zeros(n_columns), np.full(n_columns, largest / CLIP))


def has_numbers(pool: FloatArray) -> bool:
    """Tell whether any column of the dense pool holds more than 0 and 1."""
    return bool((~((pool == 0) | (pool == 1)).all(axis=0) & has_spread(pool)).any())


def holds_one_quantity(pool: FloatArray) -> bool:
    """Tell whether numbers of the dense pool are one quantity; columns of 0 and 1, or without spread, do not count."""
    indicator = ((pool == 0) | (pool == 1)).all(axis=0)
    return is_one_quantity(pool[:, ~indicator & has_spread(pool)])


def is_one_quantity(columns: FloatArray) -> bool:
    """Tell by their ranges whether 16 or more columns are one quantity at many places, as pixels are: half of them
    reach down to the lowest value of all, and a tenth up to the highest.
    """
    if columns.shape[1] < SHARED:
        return False
    low, high = columns.min(axis=0), columns.max(axis=0)
    return bool((low == low.min()).mean() >= 0.5 and (high == high.max()).mean() >= 0.1)
