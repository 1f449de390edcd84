"""What one cell says, and what it holds as a Python value; no cell stops another, and none writes to a terminal.

What a label, an id or a word says is a function of its own cell, not of the type that a library gives a whole column,
which one private cell may decide (docs/reference/cells.md). Columns of times are read by their physical integers, since
one date beyond the years that Python knows makes a library raise, or panic with the year in its message.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from quorate.deferred import pl, sparse
from quorate.errors import DataRefused

Read = TypeVar("Read")
_DAY: Final = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_FIRST, _LAST = dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH  # days since 1970
_LONGEST: Final = 106_751_990  # days of a duration: 292,000 years, all that 64 bits of microseconds hold
_FINER: Final = ("ns", "ps", "fs", "as")  # units of numpy that Python's times do not count in
_WITH_POINT: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+", re.ASCII)
_WHOLE: Final = re.compile(r"-?[0-9]{1,16}", re.ASCII)
_EXACT: Final = 2**53  # below it, every whole number is a float of its own
_SHORT: Final = 10**600  # below it, Python writes a whole number whatever its limit of digits is set to
_MOST_DIGITS: Final = 100_000  # of a decimal, which a few letters make as long as they like
_OBEYED = re.compile(r"'*[=+\-@\t\r\n]")
_QUOTED = re.compile(r"'+[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class OutOfRange:
    """A value that Python has no object for: a date beyond the years 1 to 9999, a duration beyond 292,000 years."""

    def __repr__(self) -> str:
        return "<out of range>"  # the value itself is private


OUT_OF_RANGE: Final = OutOfRange()


def is_missing(value: Any) -> bool:
    """Tell whether a single value stands for no value: None, NaN, NaT or pandas' NA; also as a complex number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    value = without_imaginary(value)
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def without_imaginary(value: Any) -> Any:
    """Return a complex number without imaginary part as its real part: one complex cell makes all of its column
    complex.
    """
    if not isinstance(value, (complex, np.complexfloating)):
        return value
    try:
        return value.real if value.imag == 0 else value
    except Exception:  # noqa: BLE001 - a subclass that raises where it is asked for its value
        return value


def canonical_text(value: Any) -> str | None:
    """Return what a label or a cell says; None for a missing value and for what says nothing.

    A truth value is "1" or "0"; a whole number its digits, from 2⁵³ on those of the nearest float; any other number the
    shortest text of its float; a complex number its real part, or nothing where it has an imaginary one; a text is
    stripped, in the composed form of Unicode (NFC), and loses the point of ``12.0``.
    """
    if type(value) is str:
        return _of_text(value)
    try:
        return None if is_missing(value) else _text(value, _of_float)
    except Exception:  # noqa: BLE001 - beyond the floats, or a subclass that raises where it is asked for its value
        return None


def id_text(value: Any, *, whole_alone: bool = False) -> str | None:
    """Return what a unit id says, as :func:`canonical_text`, but a whole number's digits, of any size; missing if
    empty. `whole_alone`: whether anything but a whole number below 2⁵³, which floats hold, is no id.
    """
    try:
        text = None if is_missing(value) else _text(value, _exactly)
    except Exception:  # noqa: BLE001 - as above
        return None
    if whole_alone and text is not None:
        return str(int(text)) if _WHOLE.fullmatch(text) and abs(int(text)) < _EXACT else None
    return text or None


def category_texts(cat: Any) -> list[str | None]:
    """Return what the cells of categories of pandas say, as labels would; a list, in which whole numbers stay whole."""
    said = [value if isinstance(value, str) else canonical_text(value) for value in pandas_values(cat.categories)]
    return [None if code < 0 else said[code] for code in cat.codes.tolist()]


def each(read: Callable[[Any], Read], cells: Iterable[Any]) -> list[Read]:
    """Return what each cell says. A text, whole number or truth value that recurs says the same, and is read once."""
    known: dict[Any, dict[Any, Read]] = {str: {}, int: {}, bool: {}}  # by type, since True is 1
    values = []
    for cell in cells:
        of_type = known.get(type(cell))
        if of_type is None:
            values.append(read(cell))
            continue
        if cell not in of_type:
            of_type[cell] = read(cell)
        values.append(of_type[cell])
    return values


def truth_text(value: Any) -> str | None:
    """Return :func:`canonical_text` of a declared truth value: one that is written out is "1" or "0" too."""
    text = canonical_text(value)
    return {"true": "1", "false": "0"}.get(text.casefold(), text) if text is not None else None


def text_reader(declared: Iterable[str]) -> Callable[[Any], str | None]:
    """Return :func:`truth_text` where all that was declared are truth values, and :func:`canonical_text` else."""
    words = {text.strip().casefold() for text in declared}
    return truth_text if words and words <= {"true", "false"} else canonical_text


def _text(value: Any, of_number: Callable[[Any], str | None]) -> str | None:
    if isinstance(value, Enum):
        return _text(value.value, of_number)
    if isinstance(value, str):
        return _of_text(str.__str__(value))
    if isinstance(value, (bytes, bytearray)):
        return _of_text(bytes(value).decode("utf-8"))
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, (complex, np.complexfloating)):
        value = without_imaginary(value)
    if isinstance(value, (int, float, np.integer, np.floating, Decimal, Fraction)):
        return of_number(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _text(numpy_values(np.array([value]))[0], of_number)
    return _of_time(value)


def _of_text(text: str) -> str:
    text = text.strip()
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).encode("utf-8", "replace").decode()  # half a character is none
    return text if (whole := _WITH_POINT.fullmatch(text)) is None else whole[1]


def _of_float(value: Any) -> str | None:
    if isinstance(value, (int, np.integer)) and -_EXACT < value < _EXACT:
        return str(int(value))
    number = float(value)
    if math.isnan(number) or (math.isinf(number) and not isinstance(value, (float, np.floating))):
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def _exactly(value: Any) -> str | None:
    """Write a number down; a whole one by its digits, however many."""
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and value.adjusted() < _MOST_DIGITS and value == value.to_integral_value()
    elif isinstance(value, Fraction):
        is_whole = value.denominator == 1
    else:
        is_whole = isinstance(value, (int, np.integer)) or bool(value.is_integer())
    if not is_whole:
        return _of_float(value)
    whole = int(value)
    return str(whole) if abs(whole) < _SHORT else format(Decimal(whole), "f")


def _of_time(value: Any) -> str | None:
    """Write a time down: midnight without a zone is its date, and a duration is its seconds."""
    if isinstance(value, dt.timedelta):
        return _of_float(value.total_seconds())
    if isinstance(value, dt.datetime):
        whole = dt.datetime.isoformat(value)  # without what is finer than microseconds, as of every type
        return whole.removesuffix("T00:00:00")
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else None


def numpy_values(array: NDArray[Any]) -> list[Any]:
    """Return numpy's times as Python's: None for a missing one, OUT_OF_RANGE for what Python cannot hold."""
    kind, unit = array.dtype.kind, np.datetime_data(array.dtype)[0]
    if unit in _FINER:
        array = array.astype(f"{kind}8[us]")
    return [OUT_OF_RANGE if type(value) is int else value for value in array.tolist()]


def polars_values(series: Any) -> list[Any]:
    """Return the cells of a polars series: None for a missing one, OUT_OF_RANGE for what Python cannot hold, and for
    what is nested, which may hold such a date.
    """
    if series.dtype.is_nested():
        return [None if missing else OUT_OF_RANGE for missing in series.is_null().to_list()]
    if not series.dtype.is_temporal():
        return list(series.to_list())
    held = _held(series)
    if held.all():
        return list(series.to_list())
    values = series.zip_with(pl.Series(held), pl.Series(series.name, [None], dtype=series.dtype)).to_list()
    return [value if fits else OUT_OF_RANGE for value, fits in zip(values, held.tolist(), strict=True)]


def _held(series: Any) -> NDArray[np.bool_]:
    """Tell which cells of a polars series of times Python can hold; a missing one is held."""
    first, last = (min(max(end, 1 - 2**63), 2**63 - 1) for end in _range(series.dtype))
    integers = series.to_physical().cast(pl.Int64)
    return np.asarray(((integers >= first) & (integers <= last)).fill_null(True).to_numpy(), dtype=bool)


def _range(dtype: Any) -> tuple[int, int]:
    """Return the least and the largest physical integer of a type of times that Python can hold."""
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


def pandas_values(series: Any) -> list[Any]:
    """Return the cells of a pandas series or index, as :func:`polars_values` does."""
    return _arrow_values(series) if type(series.dtype).__name__ == "ArrowDtype" else _cells(series)


def _cells(series: Any) -> list[Any]:
    """Return cells as pandas does, all at once, or one by one where it fails on one: at a moment in a zone, say."""
    try:
        return list(series.tolist())
    except Exception:  # noqa: BLE001 - whatever it is, it is about one cell, and may quote it
        return [_cell(series.array, at) for at in range(len(series))]


def _cell(cells: Any, at: int) -> Any:
    try:
        return cells[at]
    except Exception:  # noqa: BLE001 - as above
        return OUT_OF_RANGE


def _arrow_values(series: Any) -> list[Any]:
    """Return the cells of a pandas series of an Arrow type; pandas reads its times where all of them fit."""
    import pyarrow as pa

    array = series.array.__arrow_array__()
    if pa.types.is_nested(array.type):
        return [None if missing else OUT_OF_RANGE for missing in series.isna().tolist()]
    if not pa.types.is_temporal(array.type) or pa.types.is_interval(array.type):
        return _cells(series)
    held = _held(pl.Series(_in_a_unit_of_polars(array)))
    if held.all():
        return _cells(series)
    values = iter(_cells(series[held]))
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


def as_column(values: Any) -> Any:
    """Return one column of cells: that of a table with one column, an Arrow array as a series; others as they are."""
    if (type(values).__module__ or "").startswith("pyarrow"):
        values = pl.from_arrow(values)
    shape: Any = getattr(values, "shape", ())
    if len(shape) != 2 or shape[1] != 1 or sparse.issparse(values):
        return values
    if isinstance(values, np.ndarray):
        return values[:, 0]
    return values.iloc[:, 0] if hasattr(values, "iloc") else values.to_series(0)


def one_column(values: Any, name: str, *, entry: str = "label") -> Any:
    """Return one column of cells, `entry` by row, whatever it holds; refuse a text, and what has no order or several
    columns.
    """
    column = as_column(values)
    if isinstance(column, str | bytes | Mapping | Set):
        raise DataRefused(
            f"{name}: got {type(column).__name__}, expected one {entry} for every row; give the column itself, such as "
            f'table["{name}"]'
        )
    if getattr(column, "ndim", len(getattr(column, "shape", ("rows",)))) != 1:
        raise DataRefused(f"{name}: expected one {entry} per row, got a table with columns; give one column")
    return column


def refuse_another_number(found: int, n_rows: int, name: str, *, entry: str = "label") -> None:
    """Refuse so many entries for so many *public* rows; `name`: what gave them. Raises DataRefused."""
    if found != n_rows:
        raise DataRefused(f"{name}: got {found:,} for {n_rows:,} rows; give one {entry} for every row")


def as_list(values: Any) -> list[Any]:
    """Take a 1-D array, series or sequence as a list of Python values, each a function of its own cell. A date that
    Python cannot hold is :data:`OUT_OF_RANGE`; libraries raise, and quote it.
    """
    values = as_column(values)
    if hasattr(values, "to_physical"):  # polars
        return polars_values(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return numpy_values(values)
    if hasattr(values, "dtype") and hasattr(values, "array"):  # pandas
        return pandas_values(values)
    for method in ("tolist", "to_list"):
        if hasattr(values, method):
            items = getattr(values, method)()
            return items if isinstance(items, list) else [items]
    return list(values)


def as_cell(value: Any) -> Any:
    """Return `value` as it may stand in a spreadsheet: a text that would be run, or has such quotes already, gets a
    quote before it, so that two texts never become one.
    """
    if isinstance(value, str) and _OBEYED.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def from_cell(text: str) -> str:
    """Return the text that :func:`as_cell` has written as `text`."""
    return text[1:] if _QUOTED.match(text) else text


def csv_text(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return a table as CSV, every cell as :func:`as_cell` has it; None is an empty cell."""
    return "".join(f"{','.join(map(_field, line))}\n" for line in (names, *rows))


def _field(value: Any) -> str:
    """One cell; :mod:`csv` would leave a bare carriage return unquoted, which ends a line for some readers."""
    text = "" if value is None else str(as_cell(value))
    return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',"\r\n') else text
