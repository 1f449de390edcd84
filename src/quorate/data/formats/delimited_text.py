"""CSV and TSV: text with one row a line, whose first line names the columns; also compressed.

A message of the reader below may quote the text it stumbled on; it is replaced by one that names the file and
the column alone.
"""

from __future__ import annotations

import codecs
import io
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.data.columns import listed
from quorate.data.files import first_line, format_of, is_plain, opened, read_bytes, reading
from quorate.data.formats.format import TableFormat, require_column
from quorate.data.formats.text_parts import AT_ONCE, parts_of, read_part, schema_of
from quorate.data.streamed import StreamedFrame
from quorate.data.workspace import Workspace, cannot_hold
from quorate.errors import DataRefused, PreconditionFailed

if TYPE_CHECKING:
    import polars as pl

_OF_HEADER = 1 << 22  # bytes in which a first line ends
_OF_A_BYTE, _OF_A_PACKED_BYTE = 8, 40  # bytes in memory, of a byte in the file
_SHOWN = 8  # columns in a message
_LOOKED_AT = 1 << 16  # bytes: a binary file shows itself there
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_OTHERS = (b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff")  # how files of other kinds begin
_FIELD = {
    each: re.compile(rf'(?:"([^"]*(?:""[^"]*)*)"|([^{each}"][^{each}]*|))({each}|$)') for each in _SEPARATORS.values()
}


class DelimitedText(TableFormat):
    """A CSV or TSV file. A column's type is found from all its rows; an empty field is null."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of comma- and tab-separated text."""
        return tuple(_SEPARATORS)

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        import polars as pl

        content, separator = read_bytes(path), _SEPARATORS[format_of(path)]
        names = _header(content, separator, path)
        for name in text_columns:
            require_column(name, names, path)
        try:
            return pl.read_csv(
                io.BytesIO(content),
                separator=separator,
                infer_schema_length=None,  # all rows: guessing from the first ones fails on a later one
                schema_overrides=dict.fromkeys(text_columns, pl.String),
            )
        except pl.exceptions.PolarsError:
            raise _no_table(content, separator, names, path) from None

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Write the table as Parquet into the workspace, some lines at a time, and return that.

        Types are found from all rows, as always, in a first look at the same parts.
        """
        import polars as pl

        separator = _SEPARATORS[format_of(path)]
        with reading(path), opened(path) as file:
            start = file.read(_OF_HEADER)
        names = _header(start[: start.rfind(b"\n") + 1] or start, separator, path)
        for name in text_columns:
            require_column(name, names, path)
        found, before = workspace.path / "table", path.stat()
        try:
            with reading(path):
                schema = schema_of(path, separator=separator, given=dict.fromkeys(text_columns, pl.String))
                _make(found)
                height = 0
                for number, part in enumerate(parts_of(path)):
                    rows = read_part(part, separator=separator, types=schema, whole=True)
                    _write(rows, found / f"{number:08d}.parquet")
                    height += rows.height
        except pl.exceptions.PolarsError:
            raise _no_table(path, separator, names, path) from None
        if (path.stat().st_size, path.stat().st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise PreconditionFailed(f"{path} was changed while it was read; start again")
        return StreamedFrame(found, called=path, schema=schema, height=height, workspace=workspace)

    def bytes_in_memory(self, path: Path) -> int:
        """The text, and two copies of every cell as a double; more where the text is packed."""
        return (_OF_A_BYTE if is_plain(path) else _OF_A_PACKED_BYTE) * path.stat().st_size

    def cells(self, path: Path) -> pl.DataFrame:
        """Return every cell as text, each line by itself: a line is a row, whatever stands in the others.

        A row may be too long or too short, or hold bytes that are no text. A line whose quotation marks do not match
        has no value in any column; so has each line of a cell that holds line breaks.
        """
        import polars as pl

        return pl.concat(list(self.cell_parts(path, None)))

    def cell_parts(self, path: Path, columns: Sequence[str] | None) -> Iterator[pl.DataFrame]:
        """Yield the same, so many lines at once; None chooses all columns."""
        separator, names = _SEPARATORS[format_of(path)], None
        for content in _whole_lines(path):
            if names is None and (fault := content.startswith(_OTHERS) and _no_text(path)):
                raise DataRefused(f"{path}: {fault}")
            text = content.decode("utf-8" if names else "utf-8-sig", "replace")
            rows = text.replace("\0", "\N{REPLACEMENT CHARACTER}").split("\n")
            if names is None:
                names = _header(rows.pop(0).removesuffix("\r").encode(), separator, path)
            cells = _cells([line for row in rows if (line := row.removesuffix("\r"))], names, separator)
            yield cells if columns is None else cells.select(columns)

    def names(self, path: Path) -> list[str]:
        """Return the names in the first line."""
        return _header(first_line(path, most=_OF_HEADER), _SEPARATORS[format_of(path)], path)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield a file of text in parts that end where a line does, one at least."""
    rest, parts = b"", 0
    with reading(path), opened(path) as file:
        while more := file.read(AT_ONCE):
            whole, found, after = more.rpartition(b"\n")
            if not found:
                rest += more
                continue
            yield rest + whole
            rest, parts = after, parts + 1
    if rest or not parts:
        yield rest


def _make(place: Path) -> None:
    """Make an empty folder."""
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_hold(place.parent, error) from None


def _write(rows: pl.DataFrame, place: Path) -> None:
    try:
        rows.write_parquet(place)
    except OSError as error:
        raise cannot_hold(place.parent, error) from None


def _cells(rows: list[str], names: list[str], separator: str) -> pl.DataFrame:
    """Return one row a line, of as many cells as there are names; an empty one is null, one of two marks is not."""
    import polars as pl

    fields = pl.Series("fields", rows, dtype=pl.String).str.split(separator)
    columns = [fields.list.get(place, null_on_oob=True) for place in range(len(names))]
    quoted = [at for at, row in enumerate(rows) if '"' in row]
    columns = [column.set(column == "", None) for column in columns]
    if quoted:
        read = [_fields(rows[at], separator) for at in quoted]
        for place, column in enumerate(columns):
            cells = [row[place] if place < len(row) else None for row in read]
            columns[place] = column.scatter(quoted, pl.Series(cells, dtype=pl.String))
    return pl.DataFrame(dict(zip(names, columns, strict=True)), schema=dict.fromkeys(names, pl.String))


def _fields(row: str, separator: str) -> list[str | None]:
    """Return the fields of one line with quotation marks in it; none where it cannot be taken apart."""
    fields: list[str | None] = []
    start = 0
    while start <= len(row):
        found = _FIELD[separator].match(row, start)
        if found is None:
            return []
        inside, plain, _ = found.groups()
        fields.append(plain or None if inside is None else inside.replace('""', '"'))
        start = found.end() + (found.end() == len(row) and not found[3])
    return fields


def _no_table(content: bytes | Path, separator: str, names: list[str], path: Path) -> DataRefused:
    """Return what is said of text, or of a file of text, that is no table."""
    fault = _no_text(content) or _no_numbers(content, separator, names)
    return DataRefused(
        f"{path}: {fault}"
        if fault
        else f"{path}: not a table with {len(names)} columns; a row has more fields than the header, or a quotation "
        "mark is not closed"
    )


def _no_text(content: bytes | Path) -> str | None:
    """Tell why these bytes are no UTF-8 text and what to do; None where they are. Nothing of them is quoted."""
    if not any(part.strip() for part in _parts(content)):
        return "the file is empty; expected a first line that names the columns, and rows"
    first = next(_parts(content))
    if first.startswith(b"PK\x03\x04"):
        return "Excel is not read, whatever the file's name; save as CSV UTF-8"
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text, not UTF-8; save as CSV UTF-8 (or: iconv -f utf-16 -t utf-8)"
    if any(b"\0" in part for part in _parts(content)):
        return "a binary file, not text; save the table as CSV UTF-8"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for part in _parts(content):
            decoder.decode(part)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "not UTF-8 text; save as CSV UTF-8 (or: iconv -f latin1 -t utf-8)"
    return None


def _parts(content: bytes | Path) -> Iterator[bytes]:
    """Yield bytes as they are, and those of a file some at a time."""
    if isinstance(content, bytes):
        yield content
        return
    with opened(content) as file:
        while part := file.read(_OF_HEADER):
            yield part


def _no_numbers(content: bytes | Path, separator: str, names: list[str]) -> str | None:
    """Tell which columns hold an entry that is taken for a number and cannot be read; None where that is not it."""
    import polars as pl

    def fails(**options: Any) -> bool:
        try:
            for part in [content] if isinstance(content, bytes) else parts_of(content):
                pl.read_csv(io.BytesIO(part), separator=separator, **options)
        except pl.exceptions.PolarsError:
            return True
        return False

    if fails(infer_schema=False):
        return None
    found = [name for place, name in enumerate(names) if fails(infer_schema_length=None, columns=[place])]
    if not found:
        return None
    return (
        f"column{'s' * (len(found) > 1)} {listed(found)}: an entry looks like a number and cannot be read as one (more "
        "digits than 64 bits hold, or digits of another script); mend it, or leave the column out"
    )


def _header(content: bytes, separator: str, path: str | Path) -> list[str]:
    """Return the names in the first line, which is all that is read of what begins with it; it is never quoted."""
    import polars as pl

    line = content[: content.find(b"\n") + 1] or content
    if line.count(b'"') % 2 and not line.startswith(_OTHERS) and b"\0" not in line:  # it would go on into rows
        raise DataRefused(
            f"{path}: its first line ends within quotation marks; write the names of the columns there, each on one "
            "line and with matching marks"
        )
    try:
        first = pl.read_csv(
            io.BytesIO(content),
            separator=separator,
            has_header=False,
            n_rows=1,
            infer_schema=False,
            truncate_ragged_lines=True,
        )
    except pl.exceptions.PolarsError:
        fault = _no_text(content) or "its first line does not name the columns; write their names there"
        raise DataRefused(f"{path}: {fault}") from None
    if b"\0" in content[:_LOOKED_AT]:  # read as text all the same
        raise DataRefused(f"{path}: {_no_text(content)}")
    names = ["" if name is None else str(name) for name in first.row(0)]
    if not any(name.strip() for name in names):
        raise DataRefused(
            f"{path}: {_no_text(content) or 'its first line does not name the columns; write their names there'}"
        )
    other = next((each for each in ";\t|," if each != separator and each in names[0]), None)
    if len(names) == 1 and other is not None:
        fix = "save with tabs, or name it .csv" if separator == "\t" else "save with commas (or .tsv for tabs)"
        raise DataRefused(f"{path}: the columns look separated by {other!r}; {fix}")
    if twice := [f"{place}" for place, name in enumerate(names, start=1) if names.count(name) > 1]:
        raise DataRefused(
            f"{path}: columns {', '.join(twice[:_SHOWN])} have names that occur twice; the first line must name each "
            "once"
        )
    if any('"' in name for name in names):  # which the reader of the whole table may leave as they are written
        read = pl.read_csv(
            io.BytesIO(content), separator=separator, n_rows=0, infer_schema=False, truncate_ragged_lines=True
        )
        return read.columns
    return names
