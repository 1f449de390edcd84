"""Column types that no single value decides, so that one person's value does not change what others' rows look like.

A library infers the type of a column from all its values: one missing value turns a pandas column of integers into
floats, one new word gives every category of a polars column another code. A type read off the whole table would
carry a trace of every row into every part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quorate.data.cell_text import as_list, is_missing
from quorate.data.columns import Family, column, doubles, families
from quorate.data.rows import Rows, kind
from quorate.data.stream import StreamedFrame
from quorate.deferred import pd, pl, sparse

_TIME_UNIT: Literal["us"] = "us"


def fixed_types(X: Rows, marks: Mapping[str, Any] | None = None) -> Rows:
    """Give every column the one type of its family, in a container of the same kind, with the same values.

    Numbers of every type, truth values, and columns without any value are float64, but for those of pandas that the
    public pool has as text or times; a missing number in pandas is NaN, in polars null. Categories of a polars frame
    are text. Those of a pandas frame stay: which of them a part of the table has is settled where the part is taken.
    Dates with a time of day, and durations, count in microseconds, what is finer is dropped. Text is as it was.

    `marks`: from :func:`absent_marks` of the public pool: which columns of Python objects are no numbers, whatever
    these rows hold, and what stands for a missing value there. Without it a column without any value is numbers.
    DataRefused if a column holds neither numbers, text nor times.

    Privacy: every cell of the result is a function of that cell and of its column's family. The families, like names
    and order of the columns, are the public schema; rows of pandas objects without any value do not show theirs, which
    is why it is read off the pool.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"age": [39, 50], "sex": polars.Series(["F", "M"], dtype=polars.Categorical)})
    >>> fixed_types(frame).dtypes
    [Float64, String]
    >>> fixed_types(np.array([[1, 0]])).dtype
    dtype('float64')
    """
    if isinstance(X, StreamedFrame):
        X = X.collect()
    container, held = kind(X), families(X)
    if container == "numpy":
        return X.astype(np.float64, copy=False)
    if container == "sparse":  # made anew, so that the width of the indices is what these rows need
        form = sparse.csr_matrix if sparse.isspmatrix(X) else sparse.csr_array
        return form((X.data.astype(np.float64, copy=False), X.indices, X.indptr), shape=X.shape)
    return _polars(X, held) if container == "polars" else _pandas(X, held, marks)


def absent_marks(X_public: Rows) -> dict[str, Any]:
    """Tell by column of text or times of a public pandas frame its first missing value, or NaN; nothing of another
    pool.
    """
    if kind(X_public) != "pandas":
        return {}
    marks: dict[str, Any] = {}
    for position, (name, family) in enumerate(families(X_public).items()):
        if family in ("text", "time"):
            series = column(X_public, position)
            marks[name] = next(iter(series[series.isna()].tolist()), float("nan"))
    return marks


def fixed_labels(y: Any) -> list[Any]:
    """Take labels one by one: numbers and truth values are floats, missing ones NaN, text is text, others stay."""
    if isinstance(y, np.ndarray) and y.dtype.kind in "mM":
        y = y.astype(f"{y.dtype.kind}8[{_TIME_UNIT}]")  # as a list, finer units would be bare whole numbers
    return [_label(value) for value in as_list(y)]


def label_array(labels: list[Any]) -> NDArray[Any]:
    """Put the labels of one part of a table into an array: float64 where all of them are numbers, else objects."""
    if all(type(value) is float for value in labels):
        return np.array(labels, dtype=np.float64)
    alone = np.empty(len(labels), dtype=object)
    alone[:] = labels
    return alone


def _label(value: Any) -> Any:
    if is_missing(value):
        return float("nan")
    if isinstance(value, (bool, int, float, Decimal, np.bool_, np.integer, np.floating)):
        try:
            return float(value)
        except OverflowError:  # beyond the doubles
            return float("inf") if value > 0 else float("-inf")
        except ValueError:  # a signalling NaN of decimal
            return float("nan")
    return str(value) if isinstance(value, str) else value


def _polars(X: Rows, held: Mapping[str, Family]) -> Rows:
    schema = dict(X.schema)  # once: a frame makes it anew each time that it is asked for
    wanted: dict[str, Any] = {}
    for name, family in held.items():
        dtype = schema[name]
        if family in ("number", "missing"):
            wanted[name] = pl.Float64
        elif family == "text":
            wanted[name] = pl.String
        elif isinstance(dtype, pl.Datetime):
            wanted[name] = pl.Datetime(_TIME_UNIT, dtype.time_zone)
        elif isinstance(dtype, pl.Duration):
            wanted[name] = pl.Duration(_TIME_UNIT)
    changed = {name: dtype for name, dtype in wanted.items() if schema[name] != dtype}
    return X.cast(changed) if changed else X


def _pandas(X: Rows, held: Mapping[str, Family], marks: Mapping[str, Any] | None) -> Rows:
    parts: list[Any] = []
    for position, (name, family) in enumerate(held.items()):
        series = column(X, position)
        if marks is not None and name in marks and series.dtype == object:
            series = _marked(series, marks[name])
        elif family in ("number", "missing"):
            series = pd.Series(doubles(series), index=series.index, name=series.name)
        elif family == "time" and series.dtype.kind in "mM":
            series = series.dt.as_unit(_TIME_UNIT)
        parts.append(series)
    changed = pd.concat(parts, axis=1)
    changed.columns = X.columns
    return changed


def _marked(series: Any, mark: Any) -> Any:
    """Put one mark in place of every missing value of a column of Python objects."""
    gaps = series.isna().tolist()
    values = [mark if gone else value for value, gone in zip(series.tolist(), gaps, strict=True)]
    return pd.Series(values, index=series.index, name=series.name, dtype=object)
