"""What is refused about a table before anything is fitted or charged: infinite and missing values.

A message names the column and the kind of fault, never a row, a value or how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns import column, doubles, families, listed
from quorate.data.rows import BEYOND, Rows, as_rows, blocks, columns, is_frame, kind, width
from quorate.errors import DataRefused

_BLOCK_CELLS = 1 << 22  # cells looked at together: 32 MiB of float64


def check_features(X: Any, name: str = "X", *, allow_missing: bool = False) -> Rows:
    """Take a table of features as one of the four kinds of rows, or refuse it as a whole.

    `X`: see :func:`~quorate.data.rows.as_rows`. Of a frame, only what no model can be given is looked for: text, times,
    missing and infinite values are for the steps of a Pipeline to read. `allow_missing`: whether NaN may stand in an
    array; infinite values never may. DataRefused, by the table's `name`, if it is not two-dimensional, not numeric (and
    not a frame), or not finite; or if a whole number is beyond the floats.
    """
    rows = as_rows(X, name)
    if is_frame(rows):
        _refuse_beyond(rows, name)
        return rows
    refuse_infinite(rows, name)
    if not allow_missing:
        refuse_missing(rows, name=name, taker="this model")
    return rows


def refuse_infinite(X: Rows, name: str = "X") -> None:
    """Refuse infinite numbers, with DataRefused that names the columns; not the rows, nor how many."""
    infinite = _columns_where(X, np.isinf)
    if infinite.any():
        raise DataRefused(f"{name}: Input contains infinity in {named(X, infinite)}; expected finite numbers")


def refuse_larger(X: Rows, largest: float, *, name: str = "X", taker: str) -> None:
    """Refuse numbers beyond the largest that a kind of model holds; columns are named, not rows, nor how many."""
    chosen = _columns_where(X, lambda values: np.abs(values) > largest)
    if chosen.any():
        raise DataRefused(
            f"{name}: a number in {named(X, chosen)} is larger than {taker} holds; expected at most {largest:.3g} in "
            "size"
        )


def _refuse_beyond(X: Rows, name: str) -> None:
    """Refuse a column of Python objects with a whole number that no float can hold."""
    if kind(X) != "pandas":
        return  # polars has no such number
    beyond = np.zeros(width(X), dtype=np.bool_)
    for place, family in enumerate(families(X).values()):
        series = column(X, place)
        if family == "number" and series.dtype.kind == "O":
            try:
                doubles(series)
            except OverflowError:
                beyond[place] = True
    if beyond.any():
        raise DataRefused(f"{name}: {BEYOND} in {named(X, beyond)}; write it as text, or drop it")


def missing_columns(X: Rows) -> NDArray[np.bool_]:
    """Tell which columns have a missing value (NaN, or null in a frame) somewhere, ``(n_features,)``."""
    if kind(X) == "pandas":
        return np.asarray(X.isna().any(axis=0), dtype=np.bool_)
    if kind(X) == "polars":
        series = [column(X, position) for position in range(width(X))]
        return np.array([s.null_count() > 0 or (s.dtype.is_float() and s.is_nan().any()) for s in series], dtype=bool)
    return _columns_where(X, np.isnan)


def refuse_missing(X: Rows, *, name: str = "X", taker: str) -> None:
    """Refuse missing values that `taker` cannot take, with DataRefused that names the columns; not the rows, nor how
    many.
    """
    missing = missing_columns(X)
    if missing.any():
        raise DataRefused(
            f"{name}: Input contains NaN in {named(X, missing)}, which {taker} cannot take; "
            "fill or drop the column, or give a Pipeline that imputes"
        )


def _columns_where(X: Rows, test: Callable[[NDArray[Any]], Any]) -> NDArray[np.bool_]:
    """Tell which columns of numbers hold a number, stored in them, that a test is true of, ``(n_features,)``."""
    if is_frame(X):
        numbers = [family == "number" for family in families(X).values()]
        return np.array([is_number and test(doubles(column(X, at))).any() for at, is_number in enumerate(numbers)])
    holds = np.zeros(width(X), dtype=np.bool_)
    if X.dtype.kind != "f":
        return holds
    if kind(X) == "sparse":
        holds[X.indices[test(X.data)]] = True
        return holds
    for block in blocks(X, _BLOCK_CELLS):
        holds |= test(block).any(axis=0)
    return holds


def named(X: Rows, chosen: NDArray[np.bool_]) -> str:
    """Name the chosen columns of a table in a message, by their names or by their positions."""
    positions = np.flatnonzero(chosen)
    names = columns(X)
    words = listed([names[i] for i in positions]) if names is not None else ", ".join(map(str, positions[:8]))
    return f"column {words}" if len(positions) == 1 else f"columns {words}"
