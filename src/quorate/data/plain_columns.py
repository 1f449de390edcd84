"""Columns as plain ones, floats and texts, and frames of such columns; in pandas a missing one is NaN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from quorate.data.columns import column, doubles, texts
from quorate.data.rows import Rows, kind


def plain_columns(X: Rows, numbers: Mapping[int, bool]) -> dict[int, Any]:
    """Return the columns of a pandas frame that are not plain already, by their places: floats, or texts and None.

    `numbers`: which columns are looked at, and whether a column holds numbers, or else texts.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [1, 2], "ward": ["a", "b"], "code": pd.Series([1, None], dtype="category")})
    >>> plain_columns(frame, {0: True, 1: False, 2: False})
    {2: ['1', None]}
    """
    plain: dict[int, Any] = {}
    for place, of_numbers in numbers.items():
        series = column(X, place)
        if not _is_plain(series, of_numbers=of_numbers):
            plain[place] = doubles(series) if of_numbers else texts(series)
    return plain


def _is_plain(series: Any, *, of_numbers: bool) -> bool:
    dtype = series.dtype
    if of_numbers:
        return isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    if str(dtype) != "object":
        return str(dtype) == "str"  # of which a missing one is NaN
    return all(isinstance(value, float) for value in series[series.isna()].tolist())


def with_cells(X: Rows, read: Mapping[int, Any]) -> Rows:
    """Put columns in the places of others: all of them at once, since each frame made anew goes through all columns.

    `read`: by place, an array of floats, a list of texts and None, or a series of the frame's library.
    """
    if kind(X) == "polars":
        return X.with_columns(_polars_series(X.columns[place], cells) for place, cells in read.items())
    changed = X.copy(deep=False)
    for place, cells in read.items():
        changed.isetitem(place, _pandas_series(cells).set_axis(X.index))
    return changed


def frame_of(cells: Mapping[str, Any], library: str) -> Rows:
    """Return a frame of polars or pandas of such columns, by their names.

    Examples
    --------
    >>> frame_of({"age": np.array([39.0]), "sex": ["F"]}, "polars").rows()
    [(39.0, 'F')]
    """
    if library == "polars":
        import polars as pl

        return pl.DataFrame([_polars_series(name, held) for name, held in cells.items()])
    import pandas as pd

    return pd.DataFrame({name: _pandas_series(held) for name, held in cells.items()})


def _polars_series(name: str, cells: Any) -> Any:
    import polars as pl

    if isinstance(cells, pl.Series):
        return cells.alias(name)
    return pl.Series(name, cells, dtype=pl.Float64 if isinstance(cells, np.ndarray) else pl.String)


def _pandas_series(cells: Any) -> Any:
    import pandas as pd

    if isinstance(cells, (pd.Series, np.ndarray)):
        return pd.Series(cells)
    absent = float("nan")
    return pd.Series([absent if cell is None else cell for cell in cells], dtype=object)
