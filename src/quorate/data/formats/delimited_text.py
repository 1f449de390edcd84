"""CSV and its like: text with one row a line, whose first line names the columns; also compressed.

A message of the reader below may quote the text it stumbled on; it is replaced by one that names the file and
the column alone.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from quorate.accounting.figures import several
from quorate.data.dialect import NAMES, PLAIN, SEPARATORS, UNREADABLE, UTF_8, Dialect, fields_of, records_of
from quorate.data.file_reading import first_line, format_of, is_plain, opened, read_bytes, reading
from quorate.data.formats.format import TableFormat, require_column
from quorate.data.stream import StreamedFrame, Workspace, put_in_parts
from quorate.deferred import pl
from quorate.errors import DataRefused, PreconditionFailed

_OF_A_BYTE, _OF_A_PACKED_BYTE = 8, 40  # bytes in memory, of a byte in the file
AT_ONCE = 1 << 25  # bytes of text
BLOCK = 1 << 22  # bytes that are looked at together; a first line ends in them
_SHOWN = 8  # columns in a message
_LOOKED_AT = 1 << 16  # bytes: a binary file shows itself there
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_OTHERS = (b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff")  # how files of other kinds begin


@dataclass(frozen=True, slots=True)
class DelimitedText(TableFormat):
    """A CSV or TSV file, as `dialect` says. A column's type is found from all its rows; an empty field is null."""

    dialect: Dialect = PLAIN
    suffixes: ClassVar[tuple[str, ...]] = tuple(_SEPARATORS)

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        content = read_bytes(path)
        names = self._header(content, path)
        for name in text_columns:
            require_column(name, names, path)
        try:
            return self._read(content, path, types=dict.fromkeys(text_columns, pl.String))
        except pl.exceptions.PolarsError:
            raise self._no_table(content, names, path) from None

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Write the table as Parquet into the workspace, some lines at a time, and return that.

        Types are found from all rows, as always, in a first look at the same parts.
        """
        with reading(path), opened(path) as file:
            start = file.read(BLOCK)
        names = self._header(start[: start.rfind(b"\n") + 1] or start, path)
        for name in text_columns:
            require_column(name, names, path)
        folder, before = workspace.path / "table", path.stat()
        read, quote = partial(self._read, path=path), self.dialect.quote
        try:
            with reading(path):
                known = dict.fromkeys(text_columns, pl.String)
                schema = schema_of(parts_of(path, quote=quote), read, given=known)
                parts = parts_of(path, quote=quote)
                height = put_in_parts((read(part, types=schema, whole=True) for part in parts), folder)
        except pl.exceptions.PolarsError:
            raise self._no_table(path, names, path) from None
        if (path.stat().st_size, path.stat().st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise PreconditionFailed(f"{path} was changed while it was read; start again")
        return StreamedFrame(folder, called=path, schema=schema, height=height, workspace=workspace)

    def bytes_in_memory(self, path: Path) -> int:
        """The text, and two copies of every cell as a double; more where the text is packed."""
        return (_OF_A_BYTE if is_plain(path) else _OF_A_PACKED_BYTE) * path.stat().st_size

    def cells(self, path: Path) -> pl.DataFrame:
        """Return every cell as text, each line by itself: a line is a row, whatever stands in the others.

        A row may be too long or too short, or hold bytes that are no text. A line whose quotation marks do not match
        has no value in any column; so has each line of a cell that holds line breaks, unless these are declared.
        """
        return pl.concat(list(self.cell_parts(path, None)))

    def pieces(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[Path, Iterator[pl.DataFrame]]]:
        """Yield the file with its rows; one with more or fewer cells than the first line is refused."""
        yield path, self.cell_parts(path, columns, even=True)

    def cell_parts(self, path: Path, columns: Sequence[str] | None, *, even: bool = False) -> Iterator[pl.DataFrame]:
        """Yield the same, so many lines at once; None chooses all columns. `even`: refuse rows of another length."""
        names, encoding, begun, n_rows = None, UTF_8, list[str](), 0
        for content in whole_lines(path):
            if names is None and (fault := content.startswith(_OTHERS) and self._no_text(path)):
                raise DataRefused(f"{path}: {fault}")
            if names is None:
                self._first_line(content, path)
                encoding = self._encoding(content)
                content = content.removeprefix(codecs.BOM_UTF8)
            text = content.decode(encoding, "replace")
            rows = text.replace("\0", UNREADABLE).split("\n")
            if names is None:
                names = self._names(rows.pop(0).removesuffix("\r").encode(), path)
            if self.dialect.line_breaks:
                lines = [*begun, *rows]
                rows, begun = records_of(lines, self._separator(path), self.dialect.quote, last=False)
            cells = self._cells(rows, names, path, before=n_rows if even else None)
            n_rows += cells.height
            yield cells if columns is None else cells.select(columns)
        if begun and names is not None:
            rows, _ = records_of(begun, self._separator(path), self.dialect.quote, last=True)
            cells = self._cells(rows, names, path, before=n_rows if even else None)
            n_rows += cells.height
            yield cells if columns is None else cells.select(columns)

    def names(self, path: Path) -> list[str]:
        """Return the names in the first line."""
        return self._header(first_line(path, most=BLOCK), path)

    def _separator(self, path: str | Path) -> str:
        return self.dialect.separator or _SEPARATORS.get(format_of(path), ",")

    def _header(self, content: bytes, path: Path) -> list[str]:
        """Return the names in the first line of a file, or of its first bytes."""
        if content.startswith(_OTHERS):
            raise DataRefused(f"{path}: {self._no_text(content)}")
        return self._names(self._decoded(self._first_line(content, path), path), path, content)

    def _first_line(self, content: bytes, path: Path) -> bytes:
        """Return the line that names columns, which are public; refuse one that rows stand in, or that is UTF-8 where
        another encoding is declared.
        """
        line = content[: content.find(b"\n") + 1] or content
        if b"\r" in line.rstrip(b"\r\n"):
            raise DataRefused(
                f"{path}: its lines end with a carriage return alone, as those of old Macs did; save it with the line "
                "ends of Windows or Unix"
            )
        if line.isascii() or self._encoding(line) == UTF_8:
            return line
        with suppress(UnicodeDecodeError):
            line.decode()
            said = f"UTF-8 text, and [data] encoding says {self.dialect.encoding}; leave encoding out, or save it so"
            raise DataRefused(f"{path}: its first line is {said}")
        return line

    def _encoding(self, beginning: bytes) -> str:
        """Return the encoding of a file: what is declared, or UTF-8 where the file begins with the mark of that."""
        return UTF_8 if beginning.startswith(codecs.BOM_UTF8) else self.dialect.encoding

    def _decoded(self, content: bytes, path: Path) -> bytes:
        """Return text in UTF-8; refuse a byte that is none of the encoding, without its value or place."""
        if (encoding := self._encoding(content)) == UTF_8:
            return content
        try:
            return content.decode(encoding).encode(UTF_8)
        except UnicodeDecodeError:
            raise DataRefused(
                f"{path}: not {self.dialect.encoding} text, as [data] encoding says; save it in that encoding, or all "
                "tables as CSV UTF-8"
            ) from None

    def _options(self, path: str | Path) -> dict[str, Any]:
        """Return how polars is to take the text apart."""
        return {
            "separator": self._separator(path),
            "quote_char": self.dialect.quote or None,
            "null_values": list(self.dialect.missing) or None,
        }

    def _read(self, content: bytes, path: Path, *, types: dict[str, Any], whole: bool = False) -> pl.DataFrame:
        """Read text, or a part of it with the first line before it, with types found from all rows, since a later one
        may not fit; `whole`: `types` are those of all columns.
        """
        content = self._decoded(content, path)
        options = self._options(path)
        if self.dialect.declares_numbers:
            return typed(pl.read_csv(io.BytesIO(content), **options, infer_schema=False), self.dialect, types)
        how: dict[str, Any] = {"schema": types} if whole else {"schema_overrides": types, "infer_schema_length": None}
        return pl.read_csv(io.BytesIO(content), **options, **how)

    def _cells(self, lines: list[str], names: list[str], path: Path, *, before: int | None) -> pl.DataFrame:
        """Return one row a line that is not empty, of as many cells as names; an empty cell is null, one of two marks
        is not. `before`: how many rows came before, where one of another length is refused.
        """
        rows = [row for line in lines if (row := line.removesuffix("\r"))]
        separator, quote, missing = self._separator(path), self.dialect.quote, list(self.dialect.missing)
        fields = pl.Series("fields", rows, dtype=pl.String).str.split(separator)
        columns = [fields.list.get(place, null_on_oob=True) for place in range(len(names))]
        quoted = [at for at, row in enumerate(rows) if quote in row] if quote else []
        columns = [column.set(column == "", None) for column in columns]
        read = [fields_of(rows[at], separator, quote) for at in quoted]
        if before is not None:
            lengths = fields.list.len().cast(pl.Int64).scatter(quoted, list(map(len, read)))
            if (other := (lengths != len(names)).arg_true()).len():
                cells_of_row = lengths[other[0]]
                held = several(cells_of_row, "cell") if cells_of_row else "quotation marks that do not match"
                raise DataRefused(
                    f"{path}: row {before + other[0] + 1:,} below the first line has {held}, and the first line names "
                    f"{several(len(names), 'column')}; give each row a cell for each column, which may be empty"
                )
        if quoted:
            for place, column in enumerate(columns):
                cells = [row[place] if place < len(row) else None for row in read]
                columns[place] = column.scatter(quoted, pl.Series(cells, dtype=pl.String))
        if missing:
            columns = [column.set(column.is_in(missing), None) for column in columns]
        return pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))

    def _names(self, line: bytes, path: Path, content: bytes = b"") -> list[str]:
        """Return the names in a first line of UTF-8 text; it is never quoted. `content`: what begins with it."""
        separator, quote = self._separator(path), self.dialect.quote
        options: dict[str, Any] = {"separator": separator, "quote_char": quote or None, "infer_schema": False}
        if quote and line.count(quote.encode()) % 2 and b"\0" not in line:  # it would go on into rows
            raise DataRefused(
                f"{path}: its first line ends within quotation marks; write the names of the columns there, each on "
                "one line and with matching marks"
            )
        nameless = "its first line does not name the columns; write their names there"
        try:
            first = pl.read_csv(io.BytesIO(line), has_header=False, n_rows=1, truncate_ragged_lines=True, **options)
        except pl.exceptions.PolarsError:
            raise DataRefused(f"{path}: {self._no_text(content or line) or nameless}") from None
        if b"\0" in (content or line)[:_LOOKED_AT]:  # read as text all the same
            raise DataRefused(f"{path}: {self._no_text(content or line)}")
        names = ["" if name is None else str(name) for name in first.row(0)]
        if not any(name.strip() for name in names):
            raise DataRefused(f"{path}: {self._no_text(content or line) or nameless}")
        other = next((mark for mark in SEPARATORS if mark != separator and mark in names[0]), None)
        if len(names) == 1 and other is not None:
            raise DataRefused(
                f"{path}: the columns look separated by {NAMES[other]}, and {NAMES[separator]} are expected; all "
                f"tables of a run have one separator: save this one with {NAMES[separator]} or, where all have "
                f"{NAMES[other]}, write separator = {json.dumps(other)} under [data] of quorate.toml"
            )
        if twice := [f"{place}" for place, name in enumerate(names, start=1) if names.count(name) > 1]:
            raise DataRefused(
                f"{path}: columns {', '.join(twice[:_SHOWN])} have names that occur twice; the first line must name "
                "each once"
            )
        if quote and any(quote in name for name in names):  # the reader of the whole table may leave them as written
            return pl.read_csv(io.BytesIO(line), n_rows=0, truncate_ragged_lines=True, **options).columns
        return names

    def _no_table(self, content: bytes | Path, names: list[str], path: Path) -> DataRefused:
        """Return what is said of text, or of a file of text, that is no table."""
        fault = self._no_text(content) or self._no_numbers(content, names, path)
        return DataRefused(
            f"{path}: {fault}"
            if fault
            else f"{path}: not a table with {len(names)} columns; a row has more fields than the header, or a "
            "quotation mark is not closed"
        )

    def _no_numbers(self, content: bytes | Path, names: list[str], path: Path) -> str | None:
        """Tell which columns hold an entry that is taken for a number and cannot be read; None if that is not it."""

        def fails(**options: Any) -> bool:
            try:
                for part in [content] if isinstance(content, bytes) else parts_of(content, quote=self.dialect.quote):
                    pl.read_csv(io.BytesIO(self._decoded(part, path)), **self._options(path), **options)
            except pl.exceptions.PolarsError:
                return True
            return False

        if fails(infer_schema=False):
            return None
        places = [place for place in range(len(names)) if fails(infer_schema_length=None, columns=[place])]
        if not places:
            return None
        counted = ", ".join(f"{place + 1}" for place in places[:_SHOWN])  # names may be cells of a row
        return (
            f"column{'s' * (len(places) > 1)} {counted}, counted from the left: an entry looks like a number and "
            "cannot be read as one (more digits than 64 bits hold, or digits of another script); mend it, or leave the "
            "column out"
        )

    def _no_text(self, content: bytes | Path) -> str | None:
        """Tell why these bytes are no text, and what to do; None where they are. Nothing of them is quoted."""
        if not any(part.strip() for part in blocks_of(content)):
            return "the file is empty; expected a first line that names the columns, and rows"
        first = next(blocks_of(content))
        if first.startswith(b"PK\x03\x04"):
            return "an Excel file, whatever its name says; name it .xlsx, or save it as CSV UTF-8"
        if first.startswith((b"\xff\xfe", b"\xfe\xff")):
            declared = self.dialect.encoding
            said, then = (
                ("not UTF-8", "") if declared == UTF_8 else (f"not {declared}", ", and leave out [data] encoding")
            )
            return f"UTF-16 text, {said}; save as CSV UTF-8 (or: iconv -f utf-16 -t utf-8){then}"
        if any(b"\0" in part for part in blocks_of(content)):
            return "a binary file, not text; save the table as CSV UTF-8"
        if self._encoding(first) != UTF_8:
            return None
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for part in blocks_of(content):
                decoder.decode(part)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return (
                "not UTF-8 text; save as CSV UTF-8 (or: iconv -f latin1 -t utf-8), or name its encoding under [data] "
                'of quorate.toml, such as encoding = "cp1252", that of Windows in Western Europe'
            )
        return None


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


def blocks_of(content: bytes | Path) -> Iterator[bytes]:
    """Yield bytes as they are, and those of a file some at a time."""
    if isinstance(content, bytes):
        yield content
        return
    with opened(content) as file:
        while part := file.read(BLOCK):
            yield part
