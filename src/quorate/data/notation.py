"""What an entry of a table says, by one public rule: each number, date, time or duration follows from that one entry.

What a comma means in a column (3,5) is a public fact: the pool shows it, or the owner says that the column holds
numbers. Which text columns hold dates is read off the pool too; private columns are never looked at.

A date, with or without a time of day, is the number of days since 1970-01-01 00:00 UTC (2024-03-01 is 19783, its noon
19783.5). One without a time zone is read as UTC; one with a zone is the same instant in UTC. A time of day is the
number of hours since midnight, a duration a number of days. All are counted in microseconds first; what is finer is
dropped. As text, ISO 8601 is read: 2024-03, 2024-03-01, 2024-03-01T12:30, with seconds, fractions, Z or an offset (and
2024/03/01); 12:30 and 12:30:05 for times. Day and month in another order cannot be told apart and are no dates, unless
a dialect declares their order (:mod:`~quorate.data.dialect`).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import isnan
from typing import Any, Literal

import numpy as np

from quorate.data.cell_text import each, is_missing, without_imaginary
from quorate.data.columns import as_text, texts
from quorate.deferred import pd, pl
from quorate.types import FloatArray

_WRITTEN = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)

_NUMBERS = (str, bytes, bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
TRUTH = {"true": 1.0, "false": 0.0}
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)  # 1,234 may be a decimal, or thousands
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[.,'\u2019\u00a0\u202f ]\d{3})*(?:[.,]\d+)?", re.ASCII)
_NAN = float("nan")


def written_number(text: str) -> float:
    """Read a text as a number as tables write it; NaN for anything else, also ``1_2`` and digits of other scripts."""
    text = text.strip()
    return float(text) if _WRITTEN.fullmatch(text) is not None else float("nan")


def number(cell: Any) -> float:
    """Return a cell as a float; NaN for no number. Truth values are 0 and 1, also written out; a complex number without
    imaginary part is its real part.
    """
    try:
        if isinstance(cell, str):
            truth = TRUTH.get(cell.strip().lower())
            return written_number(cell) if truth is None else truth
        cell = without_imaginary(cell)
        return float(cell) if isinstance(cell, _NUMBERS) else float("nan")  # other objects may warn
    except Exception:  # noqa: BLE001 - beyond the floats, or a subclass that raises where it is asked for its value
        return float("nan")


def has_decimal_comma(text: str) -> bool:
    """Tell whether a text is a number with one comma, which may be a decimal one."""
    return _WITH_COMMA.fullmatch(text.strip()) is not None


def has_thousands(text: str) -> bool:
    """Tell whether a text is a number with marks between its digits that can be read in more than one way."""
    text = text.strip()
    grouped = _GROUPED.fullmatch(text) is not None and not text.lstrip("+-").isdigit()
    return grouped and (not has_decimal_comma(text) or _EITHER.fullmatch(text) is not None)


def are_decimal_commas(texts: Sequence[str]) -> bool:
    """Tell whether these numbers show that a comma is the decimal mark: one has not three digits after each comma."""
    with_comma = [text.strip() for text in texts if has_decimal_comma(text)]
    return any(_EITHER.fullmatch(text) is None for text in with_comma)


def comma_number(text: str | None) -> float:
    """Read a number whose decimal mark is a comma, or that has none; NaN for what is no number."""
    if text is None:
        return _NAN
    return written_number(text.replace(",", ".") if has_decimal_comma(text) else text)


def plain_comma_number(text: str) -> float:
    """Read a number with a decimal comma that can be nothing else; NaN for thousands, and for what has no comma."""
    return comma_number(text) if are_decimal_commas([text]) else _NAN


def number_with_comma(cell: Any) -> float:
    """Return a cell as a float, also where it has a decimal comma; one that may mean thousands is no number."""
    value = number(cell)
    return plain_comma_number(cell) if isnan(value) and isinstance(cell, str) else value


TimeKind = Literal["date", "time", "duration"]

DAY = 86_400_000_000  # microseconds
_HOUR = 3_600_000_000
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?"
_ZONE = r"Z|UTC|[+-]\d{2}(?::?\d{2})?"
_DATE = re.compile(rf"(\d{{4}})([-/])(\d{{2}})(?:\2(\d{{2}})(?:[T ]{_CLOCK} ?({_ZONE})?)?)?", re.IGNORECASE)
_TIME = re.compile(_CLOCK)
_EPOCH = dt.date(1970, 1, 1).toordinal()
_TIMES = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)
_TIME_SHAPE = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?( ?(z|utc|[+-]\d{2}:?\d{2}))?"
_MONTH = r"(jan|feb|m[a\u00e4]r|mrz|apr|may|mai|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]*\.?"  # also in German
_SHAPES = (
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}",
    r"\d{1,2}([-/.])\d{1,2}\1(\d{4}|\d{2})",
    rf"\d{{1,2}}(?:[-. ]|\. ){_MONTH}[-. ]\d{{2,4}}",
    rf"{_MONTH} \d{{1,2}},? \d{{4}}",
)
_DATED = tuple(re.compile(rf"{date}([t ,]+{_TIME_SHAPE})?", re.IGNORECASE) for date in _SHAPES)
_TIMED = re.compile(_TIME_SHAPE, re.IGNORECASE)


def microseconds(text: str | None, kind: TimeKind) -> int | None:
    """Return the microseconds that a text says (since 1970-01-01 UTC or midnight, or of a duration), or None. The one
    reader of such texts: ISO 8601, or seconds of a duration; what is finer is dropped.
    """
    if text is None:
        return None
    return {"date": _of_date, "time": _of_clock, "duration": _of_duration}[kind](text.strip())


def time_number(text: str | None, kind: TimeKind) -> float:
    """Return what a text says as days since 1970-01-01 00:00 UTC, hours since midnight or days; NaN for nothing."""
    said = microseconds(text, kind)
    return float("nan") if said is None else said / (_HOUR if kind == "time" else DAY)


def date_number(text: str | None) -> float:
    """Return what a text says as days since 1970-01-01 00:00 UTC; NaN for what is no date in ISO 8601."""
    return time_number(text, "date")


def _of_date(text: str) -> int | None:
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, _, month, day, *clock, zone = match.groups()
    try:
        days = dt.date(int(year), int(month), int(day or 1)).toordinal() - _EPOCH
    except ValueError:  # the 31st of April
        return None
    since_midnight = 0 if clock[0] is None else _microseconds(*clock)
    return None if since_midnight is None else days * DAY + since_midnight - _offset(zone)


def _of_clock(text: str) -> int | None:
    match = _TIME.fullmatch(text)
    return None if match is None else _microseconds(*match.groups())


def _of_duration(text: str) -> int | None:
    try:
        return round(float(text) * 1_000_000)
    except (ValueError, OverflowError):
        return None


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
    """Tell whether every one of these texts is a date, as `date` reads it, or every one a time of day; None where
    neither.
    """
    different = set(present)
    if different and not any(np.isnan(date(text)) for text in different):
        return "date"
    return "time" if different and all(microseconds(text, "time") is not None for text in different) else None


def time_kind(series: Any) -> TimeKind:
    """Tell what a column of a type of times holds, by that type."""
    if hasattr(series, "cast"):  # polars
        if isinstance(series.dtype, pl.Duration):
            return "duration"
        return "time" if series.dtype == pl.Time else "date"
    named = pd.api.types.infer_dtype(series, skipna=True)
    return {"timedelta": "duration", "timedelta64": "duration", "time": "time"}.get(named, "date")  # type: ignore[return-value]


def time_type(series: Any) -> str:
    """Name the type of a column of times: "date", "time", "duration", "datetime", or "datetime ZONE"."""
    kind, dtype = time_kind(series), series.dtype
    if kind != "date":
        return kind
    if hasattr(series, "cast"):
        is_days, zone = str(dtype) == "Date", getattr(dtype, "time_zone", None)
    else:
        is_days = pd.api.types.infer_dtype(series, skipna=True) == "date"
        zone = getattr(dtype, "tz", None) or getattr(getattr(dtype, "pyarrow_dtype", None), "tz", None)
    return "date" if is_days else "datetime" if zone is None else f"datetime {zone}"


def times_of_type(said: Sequence[int | None], type_: str, library: str) -> Any:
    """Return microseconds as a series of a type of times of polars or pandas: whole days of a date, an instant in its
    zone.
    """
    name, _, zone = type_.partition(" ")
    cells = pl.Series(said, dtype=pl.Int64)
    if name == "date":
        series = (cells // DAY).cast(pl.Int32).cast(pl.Date)
    elif name == "time":
        series = (cells * 1_000).cast(pl.Time)
    else:
        series = cells.cast(pl.Duration("us") if name == "duration" else pl.Datetime("us"))
    if library == "polars":
        return series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else series
    if name in ("date", "time"):
        return pd.Series(series.to_list(), dtype=object)
    plain = pd.Series(series.to_numpy())
    return plain.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else plain


def time_numbers(series: Any, kind: TimeKind, date: Callable[[str | None], float] = date_number) -> FloatArray:
    """Return a column of times, or of texts, as days, hours or days (see the module); NaN for no such time."""
    read = date if kind == "date" else partial(time_number, kind=kind)
    return np.array(each(read, texts(series)), dtype=np.float64)


def time_reader(kind: Any, date: Callable[[str | None], float] = date_number) -> Callable[[Any], float]:
    """Return what reads one cell of a column of dates, times or durations as a number; NaN for what is none."""
    read = date if (kind or "date") == "date" else partial(time_number, kind=kind)

    def time(cell: Any) -> float:
        try:
            text = None if is_missing(cell) or not isinstance(cell, (str, *_TIMES)) else as_text(cell)
            return read(text)
        except Exception:  # noqa: BLE001 - a subclass that raises where it is asked for its value
            return float("nan")

    return time


def are_dates(texts: Sequence[str]) -> bool:
    """Tell whether each of these texts is a date or a time, in any common way of writing one."""
    return bool(texts) and all(
        _TIMED.fullmatch(text) or any(dated.fullmatch(text) for dated in _DATED) for text in texts
    )
