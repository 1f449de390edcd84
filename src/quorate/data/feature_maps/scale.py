"""Number columns in units of the public pool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.types import FloatArray

BITS = 12  # scaled rows are multiples of 2^-12
ONE_UNIT = 0.05  # how large the middle column of one scale is, at least, of the largest
CLIP = 4.0  # entries are cut off at this many public standard deviations
SHARED = 16  # columns from which a common range says that they are one quantity


@dataclass(frozen=True, slots=True, eq=False)
class PoolScale:
    """Entries ``(x - mean)/scale``, cut off at ±4 and put on a grid.

    Columns of 0 and 1 keep their unit, since a rare indicator is rare and not small; so does a column that is
    constant in the pool. Columns that share their lowest and highest value, as pixels do, are one quantity, and have
    one unit, its range: in units of their own, those that hardly vary would count as much as the others.

    Attributes
    ----------
    mean, scale : FloatArray, (n_columns,)
        In the unit of the column; `scale` > 0.

    Examples
    --------
    >>> scale = PoolScale.fit(np.array([[0.0, 10.0], [1.0, 30.0]]))
    >>> (scale.on_grid(np.array([[1.0, 30.0]])) / 2**BITS).tolist()
    [[1.0, 1.0]]
    """

    mean: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)

    @classmethod
    def fit(cls, pool: FloatArray) -> PoolScale:
        """Read the units off the dense public pool ``(n_public, n_columns)``."""
        indicator = ((pool == 0) | (pool == 1)).all(axis=0)
        spread = pool.std(axis=0)
        kept = indicator | (pool == pool[0]).all(axis=0) | (spread == 0)
        if is_one_quantity(pool[:, ~kept]):
            low, high = pool[:, ~kept].min(), pool[:, ~kept].max()
            return cls(np.where(indicator, 0.0, low), np.where(indicator, 1.0, high - low))
        return cls(np.where(indicator, 0.0, pool.mean(axis=0)), np.where(kept, 1.0, spread))

    @property
    def numbers(self) -> bool:
        """Whether any column is in a unit of its own: a table of indicators alone has none."""
        return bool((self.scale != 1.0).any())

    @property
    def differing(self) -> bool:
        """Whether columns have units of their own: pixels and counts have one, ages beside indicators do not.

        Columns are of one scale where the middle one has values at least a twentieth as large, in root mean square, as
        the largest.

        Examples
        --------
        >>> ages = np.array([[0.0, 30.0], [1.0, 50.0], [1.0, 70.0]])
        >>> [PoolScale.fit(ages[:, chosen]).differing for chosen in ([0, 1], [1, 1], [0, 0])]
        [True, False, False]
        """
        size = np.hypot(self.mean, self.scale)
        return self.numbers and bool(np.quantile(size, 0.5, method="lower") < ONE_UNIT * size.max())

    def on_grid(self, rows: FloatArray) -> FloatArray:
        """Return scaled rows as integer numbers of grid steps, entry by entry."""
        scaled = (np.asarray(rows, dtype=np.float64) - self.mean) / self.scale
        return np.rint(np.minimum(np.maximum(scaled, -CLIP), CLIP) * 2.0**BITS)

    def transformer(self) -> Any:
        """Return the same change of rows, but for the grid, as a fitted scikit-learn transformer."""
        from sklearn.preprocessing import MinMaxScaler

        edges = np.vstack([self.mean - CLIP * self.scale, self.mean + CLIP * self.scale])
        return MinMaxScaler(feature_range=(-CLIP, CLIP), clip=True).fit(edges)


def in_one_unit(pool: FloatArray) -> PoolScale:
    """Return a scale of numbers ≥ 0 that all have one unit, the largest of the dense pool; none is centred.

    Examples
    --------
    >>> in_one_unit(np.array([[0.0, 8.0], [2.0, 4.0]])).scale.tolist()
    [2.0, 2.0]
    """
    n_columns, largest = pool.shape[1], max(float(pool.max()), 1e-300)
    return PoolScale(np.zeros(n_columns), np.full(n_columns, largest / CLIP))


def has_numbers(pool: FloatArray) -> bool:
    """Tell whether any column of the dense pool holds more than 0 and 1.

    Examples
    --------
    >>> has_numbers(np.array([[0.0, 1.0], [1.0, 1.0]])), has_numbers(np.array([[0.0], [2.0]]))
    (False, True)
    """
    return not bool((((pool == 0) | (pool == 1)).all(axis=0) | (pool == pool[0]).all(axis=0)).all())


def is_one_quantity(columns: FloatArray) -> bool:
    """Tell by their ranges whether columns of numbers are one quantity at many places, as pixels of an image are.

    Sixteen or more, half of which reach down to the lowest value of all, and a tenth up to the highest.

    Examples
    --------
    >>> pixels = np.random.default_rng(0).integers(0, 4, (50, 16)).astype(float)
    >>> is_one_quantity(pixels), is_one_quantity(pixels * np.arange(1, 17))
    (True, False)
    """
    if columns.shape[1] < SHARED:
        return False
    low, high = columns.min(axis=0), columns.max(axis=0)
    return bool((low == low.min()).mean() >= 0.5 and (high == high.max()).mean() >= 0.1)
