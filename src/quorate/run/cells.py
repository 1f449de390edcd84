"""Private cells and tables as rounds take them: numbers, columns, blocks; no cell raises, warns or stops another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data import families, kind, width
from quorate.data.cell_text import as_column, as_list, is_missing
from quorate.data.column_cells import frame_of
from quorate.data.digests import AT_ONCE
from quorate.data.notation import number
from quorate.data.rows import Rows, flat_images, summed_cells
from quorate.data.stream import PartedColumn
from quorate.deferred import sparse
from quorate.errors import DataRefused
from quorate.types import FloatArray


def lists_of(values: Any) -> Iterator[list[Any]]:
    """Take values as lists, some at once where they can be cut."""
    if isinstance(values, PartedColumn):
        yield from map(as_list, values.blocks(AT_ONCE))
        return
    values = without_unit(as_column(values))
    if not (hasattr(values, "iloc") or hasattr(values, "to_physical") or isinstance(values, (list, tuple, np.ndarray))):
        yield as_list(values)
        return
    rows = values.iloc if hasattr(values, "iloc") else values
    for start in range(0, len(values), AT_ONCE):
        yield as_list(rows[start : start + AT_ONCE])


def without_unit(values: Any) -> Any:
    """Return numpy's durations as their numbers: one duration makes durations of all whole numbers of an array."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "m":
        return values
    numbers = values.view(np.int64).astype(object)
    numbers[np.isnat(values)] = None
    return numbers


def real(X: Any, name: str) -> Any:
    """Return an array or sparse matrix as real numbers; no entry decides whether it is refused. Of complex entries one
    with an imaginary part is infinite.
    """
    if isinstance(X, np.ma.MaskedArray):
        raise DataRefused(f"{name}: a masked array hides what is under its mask; fill it with NaN first")
    if X.dtype.kind == "c":
        if isinstance(X, np.ndarray):
            return np.where(X.imag == 0, X.real, np.inf)
        X = summed_cells(X.astype(np.complex128))
        X.data = np.where(X.data.imag == 0, X.data.real, np.inf)
    if X.dtype.kind not in "biuf":
        raise DataRefused(f"{name} is of type {X.dtype}; expected real numbers")
    return X


def as_numbers(X: Any, n_columns: int, name: str) -> FloatArray:
    """Return a table of anything as floats; what is no number, or of another length, is infinite, and so left out."""
    X = flat_images(X)
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):  # a frame beside a pool that is an array
        X = X.to_numpy()
    if not isinstance(X, (list, tuple, np.ndarray)) and hasattr(X, "__array__"):
        X = np.asarray(X)
    X = without_unit(X)
    if isinstance(X, np.ndarray) and X.dtype.kind not in "OSU":
        return np.asarray(real(X, name), dtype=np.float64)
    if isinstance(X, np.ndarray) and (X.dtype.kind != "O" or X.ndim != 1):
        return np.array([_cell(cell) for cell in X.ravel()], dtype=np.float64).reshape(X.shape)
    if not isinstance(X, (list, tuple, np.ndarray)):
        raise DataRefused(
            f"{name} is of type {type(X).__name__}; expected an array, a sparse matrix, a frame or a list"
        )
    rows = np.full((len(X), n_columns), np.inf)
    for row, cells in zip(rows, X, strict=True):
        if isinstance(cells, np.ndarray) and cells.ndim in (2, 3):  # one image
            cells = cells.ravel()
        if isinstance(cells, (list, tuple, np.ndarray)) and len(cells) == n_columns:
            row[:] = [_cell(cell) for cell in cells]
    return rows


def _cell(cell: Any) -> float:
    value = number(cell)
    return np.inf if np.isnan(value) and not is_missing(cell) else value


def as_the_column(X: Any, pool: Rows) -> Any:
    """Return cells that come without a frame as the pool's one column; no cell decides that."""
    sequence = isinstance(X, (list, tuple)) or (getattr(X, "ndim", 1) == 1 and hasattr(X, "__array__"))
    if hasattr(X, "columns") or not sequence or width(pool) != 1:  # a frame of polars has no ndim
        return X
    [(name, family)] = families(pool).items()
    if family == "text" and isinstance(X, np.ndarray) and X.dtype.kind in "biufcmM":
        return X  # refused by the form of the array, which holds no text whatever its numbers are
    import polars as pl

    cells = [cell if family != "text" or isinstance(cell, str) else None for cell in as_list(X)]
    return pl.DataFrame({name: pl.Series(name, cells, dtype=pl.Object)})


def frame_like(pool: Rows, parsed: dict[str, Any]) -> Rows:
    """Return a frame of the pool's library, with float64 and text columns alone."""
    frame = frame_of(parsed, kind(pool))
    if kind(pool) == "pandas":
        frame.columns = pool.columns  # of which some may be no texts
    return frame


def finite_rows(numbers: Any) -> NDArray[np.bool_]:
    """Tell which rows of numbers, dense or CSR, are finite."""
    dense = not sparse.issparse(numbers)
    if dense:
        return np.asarray(np.isfinite(numbers).all(axis=1))
    finite, finite_cells = np.ones(numbers.shape[0], dtype=bool), np.isfinite(numbers.data)
    if not finite_cells.all():
        finite[np.repeat(np.arange(numbers.shape[0]), np.diff(numbers.indptr))[~finite_cells]] = False
    return finite
