"""How a public table is written, as its own bytes show; of a private one the first line alone is looked at.

What cannot be shown is not guessed: whether 03.04.2023 is in March or in April is told where another entry of these
columns has a day above 12, and left to the owner where none has.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from quorate.data.column_kinds import MISSING_MARKS
from quorate.data.columns import listed
from quorate.data.dialect import DECIMALS, PLAIN, QUOTES, SEPARATORS, THOUSANDS, UTF_8, Dialect
from quorate.data.file_reading import first_line, format_of, read_bytes
from quorate.data.formats import DelimitedText, has_named_columns, is_delimited
from quorate.data.notation import are_decimal_commas, comma_number, date_number, written_number
from quorate.data.reading import read_table
from quorate.deferred import pl
from quorate.errors import DataRefused

_WINDOWS: Final = "cp1252"
_OF_HEADER = 1 << 22  # bytes in which a first line ends
_LINES = 200  # of a public table, by which separators are compared
_LOOKED_AT = 5_000  # different entries of a column
NEARLY_ALL: Final = 0.9  # share of the entries that show what a column holds; the others are marks of no value
_LIKE_NUMBER = re.compile(r"[+-]?\d[\d.,'\u2019\u00a0\u202f ]*(?:[eE][+-]?\d+)?", re.ASCII)
_DAY_FIRST_OR_SECOND = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2\d{4}(?:[T ].+)?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownDialect:
    """How a public table is written, and what its owner should know of it; public entries may be quoted."""

    dialect: Dialect = PLAIN
    said: tuple[str, ...] = ()


def dialect_of_first_line(path: Path, known: Dialect = PLAIN) -> Dialect:
    """Return what is known of a table, with the separator that its first line shows where none is known; nothing else
    of it is looked at.
    """
    if known.separator or not is_delimited(path):
        return known
    return replace(known, separator=_separator([_first_line(path).decode(known.encoding, "replace")], path))


def _first_line(path: Path) -> bytes:
    return first_line(path, most=_OF_HEADER).removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")


def _is_of_windows(path: Path) -> bool:
    """Whether the first line of a table is text in Windows' encoding, and not in UTF-8."""
    if not is_delimited(path):
        return False
    line, readable = _first_line(path), []
    for encoding in (UTF_8, _WINDOWS):
        with suppress(UnicodeDecodeError):
            line.decode(encoding)
            readable.append(encoding)
    return readable == [_WINDOWS]


def dialect_of_public(path: Path) -> ShownDialect:
    """Return how a public table is written; nothing of one that is no text. Refuses an encoding that cannot be told."""
    if not is_delimited(path):
        dialect, more = _of_cells(PLAIN, read_table(path)) if has_named_columns(path) else (PLAIN, [])
        return ShownDialect(dialect=dialect, said=tuple(more))
    content = read_bytes(path)
    text, encoding, said = _decoded(content, path)
    lines = text.splitlines()[:_LINES]
    first = lines[0] if lines else ""
    quote = "'" if first.startswith("'") and first.endswith("'") and '"' not in first else QUOTES[0]
    dialect = Dialect(separator=_separator(lines, path), quote=quote, encoding=encoding)
    if format_of(path) == ".txt" and not dialect.separator:
        return ShownDialect()

    reader = DelimitedText(dialect)
    names = reader.names(path)
    cells = reader.frame(path, text_columns=names)
    dialect, said_of_cells = _of_cells(dialect, cells)
    if broken := columns_with_line_breaks(cells):
        said.append(
            f"cells of {listed(broken)} hold line breaks, so line_breaks = true is written. It also states that the "
            "writer of all tables doubles quotation marks within cells; if you do not know that, remove the line"
        )
    dialect = replace(dialect, line_breaks=bool(broken))
    return ShownDialect(dialect=dialect, said=(*said, *said_of_cells))


def dialect_beside(private: Path, public: Path | None) -> ShownDialect:
    """Return how a private table is written, as a public one shows; where that is no text table, or there is none, the
    separator and the encoding by its own first line alone.
    """
    by_public = ShownDialect() if public is None else dialect_of_public(public)
    if public is not None and is_delimited(public):
        return by_public
    if not _is_of_windows(private):
        return replace(by_public, dialect=dialect_of_first_line(private, by_public.dialect))
    said = (
        f"the names of the columns of {private.name} are not UTF-8 text, so that the table is read as encoding = "
        f'"{_WINDOWS}", that of Windows in Western Europe. Correct it under [data] if that is wrong'
    )
    dialect = dialect_of_first_line(private, replace(by_public.dialect, encoding=_WINDOWS))
    return ShownDialect(dialect=dialect, said=(*by_public.said, said))


def date_orders(entries: Sequence[str]) -> tuple[str, ...]:
    """Return the orders of day, month and year, as `date_format`, that nearly all of these public entries can have.
    ISO 8601 is read beside any.
    """
    others = [text for text in entries if math.isnan(date_number(text))]
    dates = [date for text in others if (date := _DAY_FIRST_OR_SECOND.fullmatch(text.strip())) is not None]
    if not dates or len(others) - len(dates) > (1 - NEARLY_ALL) * len(entries) or len({date[2] for date in dates}) > 1:
        return ()
    mark, first, second = dates[0][2], *(max(int(date[place]) for date in dates) for place in (1, 3))
    return (f"dd{mark}mm{mark}yyyy",) * (second <= 12) + (f"mm{mark}dd{mark}yyyy",) * (first <= 12)


def columns_with_line_breaks(table: pl.DataFrame) -> list[str]:
    """Return the columns of a public table in which a text holds one."""
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return [name for name in texts if table[name].str.contains("\n", literal=True).any()]


def _decoded(content: bytes, path: Path) -> tuple[str, str, list[str]]:
    """Return the text, its encoding, and what to say of that."""
    try:
        return content.decode("utf-8-sig"), UTF_8, []
    except UnicodeDecodeError:
        pass
    if b"\0" in content or content.startswith(b"PK"):  # UTF-16, or no text: the reader of tables says so
        DelimitedText().names(path)
    try:
        text = content.decode(_WINDOWS)
    except UnicodeDecodeError:
        raise DataRefused(
            f"{path}: neither UTF-8 text nor cp1252, that of Windows in Western Europe; save it as CSV UTF-8, or write "
            "quorate.toml by quorate init alone, with encoding under [data]"
        ) from None
    word = next(iter(re.findall(r"\w*[^\W\x00-\x7f]\w*", text)), "")
    example = f', in which it has the word "{word}"' if word else ""
    said = f'{path.name} is not UTF-8 text; it is read as encoding = "{_WINDOWS}"{example}. Correct it if that is wrong'
    return text, _WINDOWS, [said]


def _separator(lines: Sequence[str], path: Path) -> str:
    """Return what parts the cells of these lines; "" where it is what the name of the file says."""
    usual = {".tsv": "\t", ".tab": "\t", ".txt": ""}.get(format_of(path), ",")
    if format_of(path) == ".txt" and lines and _is_number(re.split(r"[\s,;|]", lines[0])[0]):
        return ""  # svmlight text, whose first line names nothing

    def rank(separator: str) -> tuple[bool, int, bool]:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        return len(set(widths)) == 1, widths[0] if widths else 0, separator != ","

    chosen = max((mark for mark in SEPARATORS if lines and mark in lines[0]), key=rank, default=usual)
    return "" if chosen == usual else chosen


def _is_number(text: str) -> bool:
    return not math.isnan(written_number(text))


def _of_cells(dialect: Dialect, table: pl.DataFrame) -> tuple[Dialect, list[str]]:
    """Return the dialect with how the texts of a table write numbers and dates, and what to say of that."""
    columns = {name: _entries(table[name]) for name, kind in table.schema.items() if kind == pl.String}
    decimal, thousands, said_of_numbers = _number_marks(columns)
    date_format, said_of_dates = _date_format(columns)
    dialect = replace(dialect, decimal=decimal, thousands=thousands, date_format=date_format)
    return dialect, [*said_of_numbers, *said_of_dates]


def _entries(series: pl.Series) -> list[str]:
    """Return the first different entries of a column, without marks of a missing one."""
    some = series.drop_nulls().unique(maintain_order=True)[:_LOOKED_AT].to_list()
    return [text.strip() for text in some if text.strip().lower() not in MISSING_MARKS | {""}]


def _number_marks(columns: dict[str, list[str]]) -> tuple[str, str, list[str]]:
    """Return the decimal mark and that of thousands which all columns of numbers share, "" for none, and what to say of
    them. Once the decimal mark is known, the other one between groups of three digits can mean thousands alone.
    """
    columns = {name: _without_marks(entries) for name, entries in columns.items()}
    decimals = {mark for entries in columns.values() if (mark := _decimal(entries))}
    decimals |= {decimal for entries in columns.values() for decimal, _ in _grouped(entries, DECIMALS)}
    if len(decimals) != 1:
        return "", "", []
    [decimal] = decimals
    groups = {name: mark for name, entries in columns.items() for _, mark in _grouped(entries, (decimal,))}
    if len(set(groups.values())) != 1:
        return ("" if decimal == "." else decimal), "", []
    thousands = next(iter(groups.values()))
    example = next(text for text in columns[next(iter(groups))] if thousands in text)
    said = f"numbers of {listed(list(groups))}, such as {example}, are read as thousands = {thousands!r}"
    return ("" if decimal == "." else decimal), thousands, [f"{said}, since {decimal!r} is the decimal mark"]


def _without_marks(entries: list[str]) -> list[str]:
    """Return the entries that look like numbers, if nearly all do; "<0,6" and "k.A." are marks of no value beside."""
    like = [text for text in entries if _LIKE_NUMBER.fullmatch(text)]
    return like if len(like) >= NEARLY_ALL * len(entries) else entries


def _decimal(entries: Sequence[str]) -> str:
    """Return the decimal mark of a column of numbers without other marks; "" where it shows none."""
    if entries and all(map(_is_number, entries)):
        return "." * any(re.search(r"\.(?!\d{3}$)\d", text) for text in entries)
    only_commas = bool(entries) and not any(math.isnan(comma_number(text)) for text in entries)
    return "," * (only_commas and are_decimal_commas(entries))


def _grouped(entries: Sequence[str], decimals: Sequence[str]) -> set[tuple[str, str]]:
    """Return the marks by which all entries are numbers, one of them in groups; none if two pairs do. Without a known
    decimal mark, one entry has to have both.
    """
    pairs = {
        (decimal, thousands)
        for decimal in decimals
        for thousands in THOUSANDS
        if decimal != thousands
        and entries
        and any(thousands in text and (decimal in text or len(decimals) == 1) for text in entries)
        and all(Dialect(decimal=decimal, thousands=thousands).plain_number(text) is not None for text in entries)
    }
    return pairs if len(pairs) == 1 else set()


def _date_format(columns: dict[str, list[str]]) -> tuple[str, list[str]]:
    """Return how dates are written where the entries show it, and what to say of that; what is open, a caution says."""
    orders = {name: fit[0] for name, entries in columns.items() if len(fit := date_orders(entries)) == 1}
    formats = sorted(set(orders.values()))
    if len(formats) > 1:
        return "", [f"dates are written in {len(formats)} ways, {' and '.join(formats)}; one date_format is read"]
    if not formats:
        return "", []
    return formats[0], [
        f'the dates of {listed(list(orders))} are written as date_format = "{formats[0]}", since no other order fits'
    ]
