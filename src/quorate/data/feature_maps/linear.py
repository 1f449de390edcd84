"""Rows scaled to length one: the feature map of indicators and words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from quorate.data.feature_maps.exact import unit_rows
from quorate.data.feature_maps.scale import PoolScale
from quorate.data.rows import kind
from quorate.deferred import sparse
from quorate.stored_names import stored_as
from quorate.types import FloatArray

BITS = 20  # images are multiples of 2^-20
COARSE_BITS = 10  # or of 2^-10, where products with a matrix are to be exact in single precision


@stored_as("quorate.data.feature_maps.linear.LinearMap")
@dataclass(frozen=True, slots=True)
class LinearMap:
    r"""Each row :math:`x/\|x\|` with a constant 1 appended; it needs nothing from the pool but its width.

    Dense rows are put in the units of the pool first; sparse ones, of words, are taken as they are.

    Parameters
    ----------
    n_columns : int
        Columns of a row.
    scale : PoolScale or None
        Units of dense rows; None for sparse ones.
    rows : str
        What a row is, in words.
    bits : int
        Images are integer numbers of steps of ``2**-bits``.

    Examples
    --------
    >>> fitted = LinearMap.fit(np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]))
    >>> (fitted.images(np.array([[1.0, 1.0]])) / 2**fitted.bits).round(3).tolist()
    [[0.707, 0.707, 1.0]]
    """

    n_columns: int
    scale: PoolScale | None
    rows: str = "rows"
    bits: int = BITS

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

    @property
    def mixing(self) -> None:
        """Images are features as they are."""

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
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import Normalizer

        if self.scale is None:
            return Normalizer().fit(rows)
        scale = self.scale.transformer()
        return Pipeline([("scale", scale), ("unit", Normalizer().fit(scale.transform(rows)))])

    def weights(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split ``(n_images, n_outputs)`` weights into those of the transformer's columns and the intercepts."""
        return weights[:-1], weights[-1]


def _with_last(rows: Any, value: float) -> Any:
    """Append a column that holds `value` in each row of a CSR matrix."""
    n_rows, n_columns = rows.shape
    starts = rows.indptr + np.arange(n_rows + 1, dtype=rows.indptr.dtype)
    given = np.ones(rows.nnz + n_rows, dtype=bool)
    given[starts[1:] - 1] = False  # the last cell of each row
    data, indices = np.full(len(given), value), np.full(len(given), n_columns, dtype=rows.indices.dtype)
    data[given], indices[given] = rows.data, rows.indices
    return sparse.csr_matrix((data, indices, starts), shape=(n_rows, n_columns + 1))
