"""Read a table as the model beside this file takes it: numbers, dates and times as numbers, all else as text.

It needs Python 3.11 and polars alone. A cell that is not written as the public table was is refused, but
for one that is no number in a column that the run was told to be numeric: it is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import polars as pl

COLUMNS: list[dict[str, Any]] = []  # of the model: `quorate export` writes them here
WRITTEN: dict[str, Any] = {}  # how CSV files of the run are written, for `polars.read_csv`: likewise

MISSING = {"", "na", "n/a", "nan", "null", "none", "unknown", "?", "-", "."}  # where a number or a time is expected
TRUTH = {"true": 1.0, "false": 0.0}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_table(path: str, **how: Any) -> pl.DataFrame:
    """Read a Parquet file, or a CSV file as those of the run; where it is written otherwise, `how` is what
    ``polars.read_csv`` takes: ``separator=";"``, ``encoding="cp1252"``.
    """
    if path.endswith(".parquet"):
        return converted(pl.read_parquet(path))
    return converted(pl.read_csv(path, infer_schema=False, **{**WRITTEN, **how}))


def converted(table: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of the model as it takes them: dates in days since 1970, hours of a day, durations in days; a
    missing running text is an empty one.
    """
    return pl.DataFrame([_column(column, table[column["name"]].to_list()) for column in COLUMNS])


def onnx_inputs(rows: pl.DataFrame, names: Iterable[str]) -> dict[str, Any]:
    """Return converted rows as the inputs of ``student.onnx`` of these names take them, ``(n_rows, 1)`` each."""
    words = {column["name"] for column in COLUMNS if column["kind"] == "words"}
    inputs = {}
    for name in names:
        if rows[name].dtype == pl.String:
            cells = rows[name].fill_null("<missing>")
            inputs[name] = (cells.replace("", "<missing>") if name in words else cells).to_numpy().astype(object)
        else:
            inputs[name] = rows[name].fill_null(float("nan")).to_numpy()
    return {name: cells[:, None] for name, cells in inputs.items()}


def _column(column: dict[str, Any], cells: list[Any]) -> pl.Series:
    say = {"number": _number, "date": _days, "time": _hours, "duration": _duration}.get(column["kind"], _text)
    nothing, is_text = "" if column["kind"] == "words" else None, column["kind"] in ("text", "words")
    values: list[Any] = []
    for cell in cells:
        absent = cell is None or cell in column["missing"]
        if not absent and not is_text:
            absent = str(cell).strip().lower() in MISSING
        try:
            values.append(nothing if absent else say(cell, column))
        except ValueError:
            if column["gaps"]:  # what is no number is missing, as whoever made the model said
                values.append(None)
                continue
            raise ValueError(f"column {column['name']!r}: {cell!r} is no {column['kind']} as expected") from None
    return pl.Series(column["name"], values, dtype=pl.String if is_text else pl.Float64)


def _text(cell: Any, _: dict[str, Any]) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _number(cell: Any, column: dict[str, Any]) -> float:
    if not isinstance(cell, str):
        return float(cell)
    text = cell.strip()
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    text = text.replace(column["thousands"], "") if column["thousands"] else text
    if column["decimal"] == "," or (column["comma"] and "." not in text):
        text = text.replace(",", ".")
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) is None:
        raise ValueError
    return float(text)


def _days(cell: Any, column: dict[str, Any]) -> float:
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day, tzinfo=UTC)
    if isinstance(cell, str):
        cell = datetime.fromisoformat(_iso(cell.strip(), column["date_format"]))
    moment: datetime = cell if cell.tzinfo else cell.replace(tzinfo=UTC)
    return (moment - EPOCH) / timedelta(days=1)


def _iso(text: str, date_format: str) -> str:
    mark = re.sub(r"[a-z]", "", date_format)[:1]
    digits = {"dd": r"(?P<dd>\d{1,2})", "mm": r"(?P<mm>\d{1,2})", "yyyy": r"(?P<yyyy>\d{4})"}
    pattern = re.escape(mark).join(digits[part] for part in date_format.split(mark)) if mark else r"(?!)"
    parts = re.fullmatch(pattern + r"(?P<clock>[T ].+)?", text, re.ASCII)
    return text if parts is None else f"{parts['yyyy']}-{parts['mm']:0>2}-{parts['dd']:0>2}{parts['clock'] or ''}"


def _hours(cell: Any, _: dict[str, Any]) -> float:
    clock = time.fromisoformat(cell.strip()) if isinstance(cell, str) else cell
    spent = timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
    return spent / timedelta(hours=1)


def _duration(cell: Any, _: dict[str, Any]) -> float:
    spent = cell if isinstance(cell, timedelta) else timedelta(seconds=float(cell))
    return spent / timedelta(days=1)
