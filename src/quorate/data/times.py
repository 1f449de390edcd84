"""Dates, times and durations as numbers, by one public rule: each number follows from the one entry.

A date, with or without a time of day, is the number of days since 1970-01-01 00:00 UTC (2024-03-01 is 19783, its noon
19783.5). One without a time zone is read as UTC; one with a zone is the same instant in UTC. A time of day is the
number of hours since midnight, a duration a number of days. All are counted in microseconds first; what is finer is
dropped. As text, ISO 8601 is read: 2024-03, 2024-03-01, 2024-03-01T12:30, with seconds, fractions, Z or an offset (and
2024/03/01); 12:30 and 12:30:05 for times. Day and month in another order cannot be told apart and are no dates here.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from quorate.data.cell_text import is_missing
from quorate.data.columns import as_text, texts
from quorate.types import FloatArray

TimeKind = Literal["date", "time", "duration"]

_DAY_US, _HOUR_US = 86_400_000_000, 3_600_000_000  # microseconds
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
_ZONE = r"Z|UTC|[+-]\d{2}(?::?\d{2})?"
_DATE = re.compile(rf"(\d{{4}})([-/])(\d{{2}})(?:\2(\d{{2}})(?:[T ]{_CLOCK} ?({_ZONE})?)?)?", re.IGNORECASE)
_TIME = re.compile(_CLOCK)
_EPOCH = dt.date(1970, 1, 1).toordinal()
_NAN = float("nan")
_TIMES = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)


def date_number(text: str | None) -> float:
    """Return the days since 1970-01-01 00:00 UTC; NaN for what is no date in ISO 8601."""
    found = None if text is None else _DATE.fullmatch(text.strip())
    if found is None:
        return _NAN
    year, _, month, day, *clock, zone = found.groups()
    try:
        days = dt.date(int(year), int(month), int(day or 1)).toordinal() - _EPOCH
    except ValueError:  # the 31st of April
        return _NAN
    since_midnight = 0 if clock[0] is None else _microseconds(*clock)
    if since_midnight is None:
        return _NAN
    return (days * _DAY_US + since_midnight - _offset(zone)) / _DAY_US


def clock_number(text: str | None) -> float:
    """Return the hours since midnight; NaN for what is no time of day in ISO 8601."""
    found = None if text is None else _TIME.fullmatch(text.strip())
    since_midnight = None if found is None else _microseconds(*found.groups())
    return _NAN if since_midnight is None else since_midnight / _HOUR_US


def _microseconds(hour: str, minute: str, second: str | None, fraction: str | None) -> int | None:
    parts = int(hour), int(minute), int(second or 0)
    if parts[0] > 23 or parts[1] > 59 or parts[2] > 59:
        return None
    return ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1_000_000 + int((fraction or "").ljust(6, "0")[:6] or 0)


def _offset(zone: str | None) -> int:
    if zone is None or zone.upper() in ("Z", "UTC"):
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    return (-1 if zone[0] == "-" else 1) * (hours * 60 + minutes) * 60_000_000


def text_kind(present: Iterable[str], date: Callable[[str], float] = date_number) -> Literal["date", "time"] | None:
    """Tell whether every one of these texts is a date, or every one a time of day; None where neither.

    `date`: what reads a date.

    Examples
    --------
    >>> text_kind(["2024-03-01", "2024-03-02 10:00"]), text_kind(["10:30"]), text_kind(["2024-03-01", "soon"])
    ('date', 'time', None)
    """
    different = set(present)
    if different and all(date(text) == date(text) for text in different):
        return "date"
    return "time" if different and all(clock_number(text) == clock_number(text) for text in different) else None


def time_kind(series: Any) -> TimeKind:
    """Tell what a column of a type of times holds, by that type."""
    if hasattr(series, "cast"):  # polars
        import polars as pl

        if isinstance(series.dtype, pl.Duration):
            return "duration"
        return "time" if series.dtype == pl.Time else "date"
    from pandas.api import types

    named = types.infer_dtype(series, skipna=True)
    return {"timedelta": "duration", "timedelta64": "duration", "time": "time"}.get(named, "date")  # type: ignore[return-value]


def time_numbers(series: Any, kind: TimeKind, date: Callable[[str | None], float] = date_number) -> FloatArray:
    """Return a column of times, or of texts, as numbers; NaN where there is no such time.

    `series`: of a type of times, or text. `kind`: what it is read as. `date`: what reads a date. Returns: days,
    hours or days; see the module.

    Examples
    --------
    >>> import datetime, polars
    >>> time_numbers(polars.Series([datetime.datetime(1970, 1, 2, 12), None]), "date").tolist()
    [1.5, nan]
    """
    if kind == "duration":
        return np.array([duration_number(value) for value in texts(series)], dtype=np.float64)
    return each_text(texts(series), date if kind == "date" else clock_number)


def duration_number(seconds: str | None) -> float:
    """Return the days of a duration, of the seconds that :func:`~quorate.data.columns.texts` writes.

    Examples
    --------
    >>> duration_number("43200.0")
    0.5
    """
    try:
        return _NAN if seconds is None else round(float(seconds) * 1_000_000) / _DAY_US
    except (ValueError, OverflowError):
        return _NAN


def each_text(cells: Iterable[str | None], read: Callable[[str | None], float]) -> FloatArray:
    """Return what each text says; one that occurs again is read once."""
    known: dict[str | None, float] = {}
    found = []
    for cell in cells:
        if cell not in known:
            known[cell] = read(cell)
        found.append(known[cell])
    return np.array(found, dtype=np.float64)


def time_reader(kind: str | None, date: Callable[[str | None], float] = date_number) -> Callable[[Any], float]:
    """Return what reads one cell of a column of dates, times or durations as a number; NaN for what is none.

    `date`: what reads a date that is text.

    Examples
    --------
    >>> time_reader("date")("1970-01-02"), time_reader("date")(dt.date(1970, 1, 3)), time_reader("time")("soon")
    (1.0, 2.0, nan)
    """
    read = {"date": date, "time": clock_number, "duration": duration_number}[kind or "date"]

    def time(cell: Any) -> float:
        try:
            return read(None if is_missing(cell) or not isinstance(cell, (str, *_TIMES)) else as_text(cell))
        except Exception:  # noqa: BLE001 - a subclass that raises where it is asked for its value
            return _NAN

    return time
