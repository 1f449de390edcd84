"""Delimited text taken apart: whole lines, fields of a line, types of columns, some lines at a time or all at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from quorate.data.dialect import Dialect
from quorate.data.file_reading import opened, reading
from quorate.deferred import pl

AT_ONCE = 1 << 25  # bytes of text
BLOCK = 1 << 22  # bytes that are looked at together; a first line ends in them
LONGEST = 1 << 20  # characters of a record with line breaks


def parts_of(path: Path, *, quote: str = '"') -> Iterator[bytes]:
    """Yield a file of text, unpacked, in parts of whole lines, each with the first line before it. A later line within
    quotation marks (`quote`; "" for none) goes on; unmatched, a part is as long as it takes.
    """
    with opened(path) as stream:
        header = stream.readline()
        rest, yielded = b"", False
        while more := stream.read(AT_ONCE):
            rest += more
            end = _last_line_end(rest, quote.encode())
            if end:
                yield header + rest[:end]
                rest, yielded = rest[end:], True
        if rest or not yielded:
            yield header + rest


def _last_line_end(text: bytes, quote: bytes) -> int:
    """Return where the last line ends that lies outside quotation marks; 0 where there is none."""
    if not quote:
        return text.rfind(b"\n") + 1
    quotes, at = text.count(quote), len(text)
    while (end := text.rfind(b"\n", 0, at)) >= 0:
        quotes -= text.count(quote, end, at)
        if quotes % 2 == 0:
            return end + 1
        at = end
    return 0


def schema_of(parts: Iterator[bytes], read: Callable[..., pl.DataFrame], *, given: dict[str, Any]) -> dict[str, Any]:
    """Find the type of each column, if not `given`, from all rows, a part at a time; the same as of all together."""
    types: dict[str, Any] = {}
    for part in parts:
        frame = read(part, types=given)
        for name, dtype in frame.schema.items():
            if frame[name].null_count() < frame.height:
                types[name] = _both(types.get(name), dtype)
            else:
                types.setdefault(name, None)
    return {name: given.get(name, pl.String if dtype is None else dtype) for name, dtype in types.items()}


def _both(one: Any, other: Any) -> Any:
    """Return the type of a column of which one part has one type, and another part another."""
    if one is None or one == other:
        return other
    return pl.Float64 if {one, other} == {pl.Int64, pl.Float64} else pl.String


def typed(texts: pl.DataFrame, dialect: Dialect, types: dict[str, Any]) -> pl.DataFrame:
    """Return a frame of texts in which each column of numbers alone, as they are declared to be written, holds numbers.
    `types`: of columns that are known; text where a cell does not fit.
    """

    def of(column: pl.Series) -> pl.Series:
        known = types.get(column.name)
        if known == pl.String or (known is None and column.null_count() == len(column)):
            return column
        if column.drop_nulls().is_in(["true", "false"]).all() and known in (None, pl.Boolean):
            return column == "true"
        numbers = column.set(column == "", None)  # of two marks of quotation
        if numbers.null_count() == len(numbers) or len(
            numbers.filter(~numbers.str.contains(dialect.number_pattern)).drop_nulls()
        ):
            return column
        column = numbers
        if dialect.thousands:
            column = column.str.replace_all(dialect.thousands, "", literal=True)
        column = column.str.replace(dialect.decimal or ".", ".", literal=True)
        whole = column.cast(pl.Int64, strict=False)
        if known != pl.Float64 and whole.null_count() == column.null_count():
            return whole
        return column.cast(pl.Float64)

    return texts.with_columns(map(of, texts.get_columns()))


def whole_lines(path: Path) -> Iterator[bytes]:
    """Yield a file of text in parts that end where a line does, one at least."""
    rest, parts = b"", 0
    with reading(path), opened(path) as file:
        while more := file.read(AT_ONCE):
            whole, line_end, after = more.rpartition(b"\n")
            if not line_end:
                rest += more
                continue
            yield rest + whole
            rest, parts = after, parts + 1
    if rest or not parts:
        yield rest


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


def blocks_of(content: bytes | Path) -> Iterator[bytes]:
    """Yield bytes as they are, and those of a file some at a time."""
    if isinstance(content, bytes):
        yield content
        return
    with opened(content) as file:
        while part := file.read(BLOCK):
            yield part
