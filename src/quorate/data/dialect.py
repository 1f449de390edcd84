"""How text tables are written, as their owner declares it: what parts cells, and how numbers and dates stand in them.

All of it is public, and what a cell says follows from that cell and from what is declared. Of encodings, those are read
in which a byte is a character and those of ASCII are themselves, beside UTF-8: so no byte of one cell takes in another.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from quorate.data.notation import TRUTH, date_number, number, written_number
from quorate.errors import InvalidParameter, named

NAMES: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars (|)"}  # of separators, in words
SEPARATORS: Final = tuple(NAMES)
QUOTES: Final = ('"', "'", "")
DECIMALS: Final = (".", ",")
THOUSANDS: Final = (
    ".",
    ",",
    "'",
    "\N{RIGHT SINGLE QUOTATION MARK}",
    " ",
    "\N{NO-BREAK SPACE}",
    "\N{NARROW NO-BREAK SPACE}",
)
UTF_8: Final = "utf-8"
LONGEST = 1 << 20  # characters of a record with line breaks
UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"  # stands in a private cell for bytes that are no text
ENCODINGS: Final = (
    UTF_8,
    *(f"cp{number}" for number in (437, 850, 852, 855, 858, 866, *range(1250, 1259))),
    *(f"iso8859-{number}" for number in range(1, 17) if number != 12),
    "koi8-r", "koi8-u", "mac-roman",
)  # fmt: skip
_DATE_PARTS = {"dd": r"(?P<day>\d{1,2})", "mm": r"(?P<month>\d{1,2})", "yyyy": r"(?P<year>\d{4})"}
_DATE_FORMAT = re.compile(r"(dd|mm|yyyy)([./-])(dd|mm|yyyy)\2(dd|mm|yyyy)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """How the owner says that tables are written; by default as CSV in UTF-8, and numbers and dates as they show it.

    `separator`: , ; tab or |; "" leaves it to the file's name. `encoding`: of :data:`ENCODINGS`. `quote`: "" where
    there is none. `line_breaks`: whether quoted cells may hold them (RFC 4180). `decimal`: "" leaves it to each public
    column. `thousands`: between groups of three digits. `date_format`: beside ISO 8601, "dd.mm.yyyy" or "mm/dd/yyyy".
    `missing`: cells that stand for no value, exactly as written.
    """

    separator: str = ""
    encoding: str = UTF_8
    quote: str = '"'
    line_breaks: bool = False
    decimal: str = ""
    thousands: str = ""
    date_format: str = ""
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _one_of("separator", self.separator, ("", *SEPARATORS), "one of , ; | and a tab (\\t)")
        _one_of("quote", self.quote, QUOTES, "\", ', or an empty text for none")
        if self.line_breaks and not self.quote:
            raise InvalidParameter(
                f"{named('line_breaks')} = true needs a quotation mark, and {named('quote')} is empty; leave one of "
                "them out"
            )
        _one_of("decimal", self.decimal, ("", *DECIMALS), "a point or a comma")
        _one_of("thousands", self.thousands, ("", *THOUSANDS), "a point, a comma, ' or a blank")
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        object.__setattr__(self, "date_format", _date_format(self.date_format))
        if self.thousands and self.thousands in (self.decimal or ".", self.quote):
            raise InvalidParameter(
                f"{named('thousands')} is {self.thousands!r}, and so is "
                f"{named('quote' if self.thousands == self.quote else 'decimal')}; one mark has one meaning. Example: "
                'decimal = "," and thousands = "."'
            )
        if not isinstance(self.missing, tuple) or not all(isinstance(mark, str) and mark for mark in self.missing):
            raise InvalidParameter(
                f'{named("missing")} must list what stands for no value (["k.A.", "-999"]), got {self.missing!r}; an '
                "empty cell is missing anyway"
            )

    @property
    def of_cells(self) -> dict[str, str]:
        """What is declared of how numbers and dates are written, for a key of what follows from cells."""
        declared = {"decimal": self.decimal, "thousands": self.thousands, "date_format": self.date_format}
        return {name: mark for name, mark in declared.items() if mark}

    @property
    def declares_numbers(self) -> bool:
        """Whether numbers are written in another way than each public column shows."""
        return bool(self.decimal or self.thousands)

    def number(self, text: str) -> float:
        """Return what a text says as a number; NaN for what is none."""
        if not self.declares_numbers:
            return written_number(text)
        plain = self.plain_number(text.strip())
        return float("nan") if plain is None else float(plain)

    def cell_number(self, cell: Any) -> float:
        """Return a cell of any kind as a float; NaN for no number. Truth values are 0 and 1, also written out."""
        if isinstance(cell, str) and cell.strip().lower() not in TRUTH:
            return self.number(cell)
        return number(cell)

    def plain_number(self, text: str) -> str | None:
        """Return a number of this dialect with a point and without marks of thousands; None for what is none."""
        if _number_pattern(self.decimal or ".", self.thousands).fullmatch(text) is None:
            return None
        bare = text.replace(self.thousands, "") if self.thousands else text
        return bare.replace(self.decimal or ".", ".")

    @property
    def number_pattern(self) -> str:
        """The regular expression of a whole cell that holds a number, for polars."""
        return f"^(?:{_number_pattern(self.decimal or '.', self.thousands).pattern})$"

    def written(self, number: str) -> str:
        """Return a number with a point as it is written here."""
        return number.replace(".", self.decimal or ".")

    def date(self, text: str | None) -> float:
        """Return the days since 1970 of a date as they are written here or in ISO 8601; NaN for what is none."""
        return date_number(self.iso_date(text))

    def iso_date(self, text: str | None) -> str | None:
        """Return a date as they are written here in ISO 8601; any other text as it is."""
        if text is None or not self.date_format:
            return text
        parts = _date_pattern(self.date_format).fullmatch(text.strip())
        if parts is None:
            return text
        return f"{parts['year']}-{parts['month']:0>2}-{parts['day']:0>2}{parts['clock'] or ''}"

    def is_missing(self, cell: Any) -> bool:
        """Whether a cell is a text that stands for no value."""
        return isinstance(cell, str) and cell in self.missing


@lru_cache(maxsize=64)
def _number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = r"[0-9]+" if not thousands else rf"(?:[0-9]+|[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+)"
    mark = re.escape(decimal)
    return re.compile(rf"[+-]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?")


@lru_cache(maxsize=64)
def _date_pattern(date_format: str) -> re.Pattern[str]:
    parts = _DATE_FORMAT.fullmatch(date_format)
    assert parts is not None  # noqa: S101 - checked where it was declared
    first, mark, second, third = parts.groups()
    marked = re.escape(mark).join(_DATE_PARTS[part] for part in (first, second, third))
    return re.compile(rf"{marked}(?P<clock>[T ].+)?", re.ASCII | re.DOTALL)


def _one_of(name: str, value: object, allowed: tuple[str, ...], words: str) -> None:
    if value not in allowed:
        raise InvalidParameter(parameter=name, got=value, expected=words)


def _encoding(name: object) -> str:
    try:
        known = codecs.lookup(str(name)).name
    except (LookupError, ValueError):
        known = ""
    known = UTF_8 if known == "utf-8-sig" else known
    if known not in ENCODINGS:
        raise InvalidParameter(
            parameter="encoding",
            got=name,
            expected=f"one of {', '.join(ENCODINGS)}",
            advice="save other files as CSV UTF-8. Windows writes cp1252 in Western Europe, cp1250 in Central Europe",
        )
    return known


def _date_format(written: object) -> str:
    text = written.strip().lower() if isinstance(written, str) else "?"
    for sign, part in (("%d", "dd"), ("%m", "mm"), ("%y", "yyyy")):
        text = text.replace(sign, part)
    parts = _DATE_FORMAT.fullmatch(text)
    if text and (parts is None or {parts[1], parts[3], parts[4]} != _DATE_PARTS.keys()):
        raise InvalidParameter(
            parameter="date_format",
            got=written,
            expected="dd, mm and yyyy in their order with the mark between them, such as dd.mm.yyyy or mm/dd/yyyy",
            advice="a year of two digits does not tell the century and is not read",
        )
    return text


PLAIN: Final = Dialect()  # as nothing is declared


def records_of(lines: Sequence[str], separator: str, quote: str, *, last: bool) -> tuple[list[str], list[str]]:
    """Return the records of these lines, and the lines of one that has not ended yet (RFC 4180, 2.6).

    A line that opens a quoted cell goes on to the next one with an odd number of marks, if that closes the cell; else
    it is a record by itself, as where a mark stands alone. Line breaks stay; a record of more than :data:`LONGEST`
    characters is left out. `last`: whether no lines follow.
    """
    odd = [at for at, line in enumerate(lines) if line.count(quote) % 2]
    records: list[str] = []
    start = place = 0
    while place < len(odd):
        first, end = odd[place], odd[place + 1] if place + 1 < len(odd) else len(lines)
        ended = end < len(lines)
        opens = _is_whole(f"{lines[first]}\n{quote}", separator, quote)
        if not opens or (not ended and last) or (ended and not _is_whole(quote + lines[end], separator, quote)):
            place += 1
            continue
        records += lines[start:first]
        is_long = sum(map(len, lines[first : end + 1])) > LONGEST
        if not ended:  # of a long one, no more is held than says that it is long
            return records, [lines[first], " " * LONGEST] if is_long else list(lines[first:])
        if not is_long:
            records.append("\n".join(lines[first : end + 1]))
        start, place = end + 1, place + 2
    return [*records, *lines[start:]], []


def _is_whole(record: str, separator: str, quote: str) -> bool:
    """Whether a record can be taken apart, with no line break outside of marks."""
    pattern, start = _field(separator, quote), 0
    while start < len(record):
        match = pattern.match(record, start)
        if match is None or "\n" in (match[2] or ""):
            return False
        start = match.end()
    return True


@lru_cache(maxsize=32)
def _field(separator: str, quote: str) -> re.Pattern[str]:
    """The regular expression of one field of a line, and of what ends it."""
    end, mark = re.escape(separator), re.escape(quote)
    return re.compile(rf"(?:{mark}([^{mark}]*(?:{mark}{mark}[^{mark}]*)*){mark}|([^{end}{mark}][^{end}]*|))({end}|$)")


def fields_of(row: str, separator: str, quote: str) -> list[str | None]:
    """Return the fields of one line with quotation marks in it; none where it cannot be taken apart."""
    fields: list[str | None] = []
    pattern, start = _field(separator, quote), 0
    while start <= len(row):
        match = pattern.match(row, start)
        if match is None:
            return []
        inside, plain, _ = match.groups()
        fields.append(plain or None if inside is None else inside.replace(quote + quote, quote))
        start = match.end() + (match.end() == len(row) and not match[3])
    return fields
