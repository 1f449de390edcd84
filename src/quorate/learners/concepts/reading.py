"""Points as a concept class takes them: whole numbers on a grid, or finite real columns; anything else is refused.

A message names the column and the domain, never a value or a row.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.data.rows import as_rows, is_frame, kind, width
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import FloatArray, IntArray

MAX_BITS = 62  # a cut behind the last point of the grid, 2^62, is still an int64


def grid_bits(name: str, value: object) -> int:
    """Return the logarithm of a grid's size, from 1 to 62.

    Examples
    --------
    >>> grid_bits("bits", 8)
    8
    """
    bits = count(name, value, at_least=1)
    if bits > MAX_BITS:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {MAX_BITS}, got {bits}; use a coarser grid")
    return bits


def grid_points(X: Any, bits: tuple[int, ...], told: object) -> IntArray:
    """Return ``(n_points, n_features)`` int64 points of the grid with ``2**bits[j]`` values in column j.

    Examples
    --------
    >>> grid_points([0.0, 3.0], (2,), "Thresholds(bits=2)").tolist()
    [[0], [3]]
    >>> grid_points([0, 4], (2,), "Thresholds(bits=2)")
    Traceback (most recent call last):
    quorate.errors.DataRefused: X: column 0 leaves the domain of 'Thresholds(bits=2)'; expected whole numbers from 0 to 3
    """  # noqa: E501  a doctest's message is one line
    columns = _read(X, len(bits), told)
    points = np.empty((len(columns[0]), len(bits)), dtype=np.int64)
    for j, column in enumerate(columns):
        if not _on_grid(column, 2 ** bits[j]):
            raise DataRefused(
                f"X: column {j} leaves the domain of {told!r}; expected whole numbers from 0 to {2 ** bits[j] - 1}"
            )
        points[:, j] = column
    return points


def real_points(X: Any, n_features: int, told: object) -> FloatArray:
    """Return ``(n_points, n_features)`` finite float64 points.

    Examples
    --------
    >>> real_points([[1, 2.5]], 2, "Stumps(n_features=2)").tolist()
    [[1.0, 2.5]]
    """
    columns = _read(X, n_features, told)
    points = np.empty((len(columns[0]), n_features), dtype=np.float64)
    for j, column in enumerate(columns):
        points[:, j] = column
        if not np.isfinite(points[:, j]).all():
            raise DataRefused(f"X: column {j} leaves the domain of {told!r}; expected finite numbers, none missing")
    points += 0.0  # −0.0 becomes 0.0: equal points are written alike
    return points


def _on_grid(column: NDArray[Any], size: int) -> bool:
    if column.dtype.kind == "f" and not (np.isfinite(column) & (np.floor(column) == column)).all():
        return False
    return bool(int(column.min()) >= 0 and int(column.max()) < size)


def _read(X: Any, n_features: int, told: object) -> list[NDArray[Any]]:
    """Split a table of any kind into numeric columns, whole numbers not passed through floats."""
    rows = as_rows(_as_table(X, n_features))
    if width(rows) != n_features:
        # "X has … features, but …": the words that scikit-learn's users know
        raise DataRefused(f"X has {width(rows)} features, but {told!r} is expecting {n_features} features as input")
    if is_frame(rows):
        frame = [rows.iloc[:, j] if kind(rows) == "pandas" else rows[:, j] for j in range(n_features)]
        columns = [_whole_objects(np.asarray(column)) for column in frame]
    else:
        table = rows.toarray() if kind(rows) == "sparse" else rows
        columns = [table[:, j] for j in range(n_features)]
    for j, column in enumerate(columns):
        if column.dtype.kind not in "biuf":
            raise DataRefused(f"X: column {j} does not hold numbers; encode it first")
    return columns


def _as_table(X: Any, n_features: int) -> Any:
    """Make a 2-D array of what is neither a table nor sparse; one column may come as ``(n_points,)``."""
    is_frame_like = not isinstance(X, np.ndarray) and len(getattr(X, "shape", ())) == 2
    if is_frame_like or isinstance(X, (str, bytes, dict, np.ma.MaskedArray)):
        return X  # frames, sparse matrices, and what as_rows refuses in its own words
    try:
        array = _whole_objects(np.asarray(X))
    except ValueError:  # rows that differ in length: told by as_rows
        return X
    return array.reshape(-1, 1) if array.ndim == 1 and n_features == 1 else array


def _whole_objects(array: NDArray[Any]) -> NDArray[Any]:
    """Turn Python integers and floats, held as objects, into numbers; text that looks like one stays text."""
    if array.dtype != object:
        return array
    values = array.ravel().tolist()
    try:
        if all(isinstance(value, Integral) for value in values):
            return np.array([int(value) for value in values], dtype=np.int64).reshape(array.shape)
        if all(value is None or isinstance(value, Real) for value in values):
            return array.astype(np.float64)
    except (OverflowError, TypeError, ValueError):  # a number beyond int64 lies outside every domain
        return np.full(array.shape, np.nan)
    raise DataRefused("X: an array holds something else than numbers; encode it first")
