"""Columns of a pandas frame as plain ones: floats and texts, of which a missing one is NaN, whatever stood for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from quorate.data.columns import column, doubles, texts
from quorate.data.rows import Rows


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
