"""What is refused about a table before anything is fitted or charged: infinite and missing values.

A message names the column and the kind of fault, never a row, a value or how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns import column, doubles, families, listed
from quorate.data.rows import BEYOND, Rows, as_rows, columns, is_frame, kind, n_rows, width
from quorate.errors import DataRefused

_BLOCK_CELLS = 1 << 22  # cells looked at together: 32 MiB of float64


def check_features(X: Any, name: str = "X", *, allow_missing: bool = False) -> Rows:
    """Take a table of features, or refuse it as a whole.

    Parameters
    ----------
    X : array-like, sparse matrix or frame
        See :func:`~quorate.data.rows.as_rows`. Of a frame, only what no model can be given is looked for: text, times,
        missing and infinite values are for the steps of a Pipeline to read.
    name : str
        What the message calls the table.
    allow_missing : bool
        Whether NaN may stand in an array. Infinite values never may.

    Returns
    -------
    Rows
        The same rows, as one of the four kinds.

    Raises
    ------
    DataRefused
        If the table is not two-dimensional, not numeric (and not a frame), or not finite; or if a whole number is
        beyond the floats.

    Examples
    --------
    >>> check_features([[1.0, float("inf")]])
    Traceback (most recent call last):
    quorate.errors.DataRefused: X: Input contains infinity in column 1; expected finite numbers
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
    """Refuse infinite numbers.

    Raises
    ------
    DataRefused
        Naming the columns; not the rows, nor how many.

    Examples
    --------
    >>> import polars
    >>> refuse_infinite(polars.DataFrame({"age": [39.0, float("inf")]}), "private")
    Traceback (most recent call last):
    quorate.errors.DataRefused: private: Input contains infinity in column 'age'; expected finite numbers
    """
    infinite = _infinite_in_frame(X) if is_frame(X) else _columns_where(X, np.isinf)
    if infinite.any():
        raise DataRefused(f"{name}: Input contains infinity in {named(X, infinite)}; expected finite numbers")


def refuse_larger(X: Rows, largest: float, *, name: str = "X", taker: str) -> None:
    """Refuse numbers beyond the largest that a kind of model holds; columns are named, not rows, nor how many."""

    def beyond(values: NDArray[Any]) -> NDArray[np.bool_]:
        larger: NDArray[np.bool_] = np.abs(values) > largest
        return larger

    chosen = _in_frame(X, beyond) if is_frame(X) else _columns_where(X, beyond)
    if chosen.any():
        raise DataRefused(
            f"{name}: a number in {named(X, chosen)} is larger than {taker} holds; expected at most {largest:.3g} in "
            "size"
        )


def _infinite_in_frame(X: Rows) -> NDArray[np.bool_]:
    return _in_frame(X, np.isinf)


def _in_frame(X: Rows, test: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    numbers = [family == "number" for family in families(X).values()]
    return np.array([number and test(doubles(column(X, place))).any() for place, number in enumerate(numbers)])


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
    """Tell which columns have a missing value (NaN, or null in a frame) somewhere.

    Returns
    -------
    (n_features,) array of bool

    Examples
    --------
    >>> missing_columns(np.array([[1.0, np.nan], [2.0, 3.0]])).tolist()
    [False, True]
    """
    if kind(X) == "pandas":
        return np.asarray(X.isna().any(axis=0), dtype=np.bool_)
    if kind(X) == "polars":
        return np.array([_polars_missing(column(X, position)) for position in range(width(X))], dtype=np.bool_)
    return _columns_where(X, np.isnan)


def refuse_missing(X: Rows, *, name: str = "X", taker: str) -> None:
    """Refuse missing values that a model cannot take.

    Parameters
    ----------
    X : Rows
        The features.
    name : str
        What the message calls the table.
    taker : str
        Who cannot take them, for the message.

    Raises
    ------
    DataRefused
        Naming the columns; not the rows, nor how many.

    Examples
    --------
    >>> refuse_missing(np.array([[1.0, np.nan]]), name="private", taker="SVC")
    Traceback (most recent call last):
    quorate.errors.DataRefused: private: Input contains NaN in column 1, which SVC cannot take; fill or drop the column, or give a Pipeline that imputes
    """  # noqa: E501  a doctest's message is one line
    missing = missing_columns(X)
    if missing.any():
        raise DataRefused(
            f"{name}: Input contains NaN in {named(X, missing)}, which {taker} cannot take; "
            "fill or drop the column, or give a Pipeline that imputes"
        )


def _polars_missing(series: Any) -> bool:
    return bool(series.null_count() > 0 or (series.dtype.is_float() and series.is_nan().any()))


def _columns_where(X: Rows, test: Any) -> NDArray[np.bool_]:
    holds = np.zeros(width(X), dtype=np.bool_)
    if X.dtype.kind != "f":
        return holds
    if kind(X) == "sparse":
        holds[X.indices[test(X.data)]] = True
        return holds
    step = max(1, _BLOCK_CELLS // width(X))
    for start in range(0, n_rows(X), step):
        holds |= test(X[start : start + step]).any(axis=0)
    return holds


def named(X: Rows, chosen: NDArray[np.bool_]) -> str:
    """Name the chosen columns of a table in a message, by their names or by their positions."""
    positions = np.flatnonzero(chosen)
    names = columns(X)
    words = listed([names[i] for i in positions]) if names is not None else ", ".join(map(str, positions[:8]))
    return f"column {words}" if len(positions) == 1 else f"columns {words}"
