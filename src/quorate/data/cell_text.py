"""What one cell of a column holds as a Python value; no cell stops another, and none writes to a terminal.

A library turns a whole column into Python objects at once, and one date beyond the years that Python knows makes it
raise, or panic with the year in its message. So columns of times are read by their physical integers: each is checked
against the range that Python's types have, and one beyond it becomes :data:`OUT_OF_RANGE`, which is neither missing
nor a value.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray


class OutOfRange:
    """A value that Python has no object for: a date beyond the years 1 to 9999, a duration beyond 292,000 years."""

    def __repr__(self) -> str:
        return "<out of range>"  # the value itself is private


OUT_OF_RANGE: Final = OutOfRange()

_DAY: Final = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_FIRST, _LAST = dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH  # days since 1970
_LONGEST: Final = 106_751_990  # days of a duration: 292,000 years, all that 64 bits of microseconds hold


def polars_values(series: Any) -> list[Any]:
    """Return the cells of a polars series: None for a missing one, OUT_OF_RANGE for what Python cannot hold.

    What is nested (lists, structures) is no single value, and is out of range as a whole: it may hold such a date.
    """
    if series.dtype.is_nested():
        return [None if missing else OUT_OF_RANGE for missing in series.is_null().to_list()]
    if not series.dtype.is_temporal():
        return list(series.to_list())
    held = _held(series)
    if held.all():
        return list(series.to_list())
    import polars as pl

    values = series.zip_with(pl.Series(held), pl.Series(series.name, [None], dtype=series.dtype)).to_list()
    return [value if fits else OUT_OF_RANGE for value, fits in zip(values, held.tolist(), strict=True)]


def _held(series: Any) -> NDArray[np.bool_]:
    """Tell which cells of a polars series of times Python can hold; a missing one is held."""
    import polars as pl

    first, last = (min(max(end, 1 - 2**63), 2**63 - 1) for end in _range(series.dtype))
    integers = series.to_physical().cast(pl.Int64)
    return np.asarray(((integers >= first) & (integers <= last)).fill_null(True).to_numpy(), dtype=bool)


def _range(dtype: Any) -> tuple[int, int]:
    """Return the least and the largest physical integer of a type of times that Python can hold."""
    import polars as pl

    if dtype == pl.Date:
        return _FIRST, _LAST
    if isinstance(dtype, pl.Datetime):
        day = _DAY[dtype.time_unit]
        margin = 1 if dtype.time_zone else 0  # local time may be a day ahead or behind
        return (_FIRST + margin) * day, (_LAST + 1 - margin) * day - 1
    if isinstance(dtype, pl.Duration):
        day = _DAY[dtype.time_unit]
        return -_LONGEST * day, _LONGEST * day
    return 0, _DAY["ns"] - 1  # a time of day


def arrow_values(series: Any) -> list[Any]:
    """Return the cells of a pandas series of an Arrow type, as :func:`polars_values` does.

    Times that pandas turns into its own objects are read by it where all of them fit.
    """
    import pyarrow as pa

    array = series.array.__arrow_array__()
    if pa.types.is_nested(array.type):
        return [None if missing else OUT_OF_RANGE for missing in series.isna().tolist()]
    if not pa.types.is_temporal(array.type) or pa.types.is_interval(array.type):
        return list(series.tolist())
    import polars as pl

    held = _held(pl.Series(_in_a_unit_of_polars(array)))
    if held.all():
        return list(series.tolist())
    values = iter(series[held].tolist())
    return [next(values) if fits else OUT_OF_RANGE for fits in held.tolist()]


def _in_a_unit_of_polars(array: Any) -> Any:
    """Return Arrow times without those in seconds or in days as milliseconds, which would have to be multiplied."""
    import pyarrow as pa

    kind = array.type
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "s":
        limit = 2**63 // 1000 - 1
        seconds = np.clip(array.cast(pa.int64()).fill_null(0).to_numpy(), -limit, limit) * 1000
        unit = pa.timestamp("ms", tz=kind.tz) if pa.types.is_timestamp(kind) else pa.duration("ms")
        return pa.array(seconds).cast(unit)
    return array
