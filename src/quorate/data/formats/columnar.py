"""Files of typed columns: Parquet, and Arrow (IPC), which Feather files of version 2 are; and tables in parts.

A table in parts is the Parquet files of a folder or of a pattern of names, as Spark and Dask write them. A part's own
types decide nothing: a library gives them by the cells that the part happens to hold. Where a table needs a type, it is
the least that holds all parts. A folder's ``year=2024`` is a column of texts. Names of folders and files may tell of
private rows, and stand in refusals alone, which the table's owner reads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from quorate.data.cell_text import as_list, canonical_text, each, id_text
from quorate.data.columns import families, in_words, texts
from quorate.data.file_reading import base_of, existing_file, files_of, polars_path, polars_source, state_of
from quorate.data.formats.format import TableFormat
from quorate.data.stream import StreamedFrame, Workspace, cannot_hold, put_in_parts
from quorate.deferred import pl
from quorate.errors import DataRefused, PreconditionFailed

_OF_A_CELL, _UNPACKED = 48, 4  # bytes in memory, of a cell and of a byte in the file
_IN_MEMORY = 6  # bytes, of a byte in an Arrow file: it is not packed, or lightly
_CELLS, _BYTES = 1 << 20, 1 << 27  # that are unpacked at once


class _Columnar(TableFormat):
    """A file whose columns keep the types that they have there."""

    called: str

    @abstractmethod
    def scan(self, path: Path) -> pl.LazyFrame:
        """Return the table, of which nothing is read yet."""

    def cells(self, path: Path) -> pl.DataFrame:
        """Return the whole table: the file itself says the type of a column, and no row of it does."""
        return self.frame(path)

    def cell_parts(self, path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the same, some rows at once; of a table without rows, no row."""
        height = self.height(path)
        if not height:
            yield self.frame(path).select(columns)
        yield from self.batches(path, columns, rows_at_once(path, height, len(columns)))

    def height(self, path: Path) -> int:
        """Return the number of rows that the file tells."""
        with self.sound(path):
            return _height(self.scan(existing_file(path)))

    def names(self, path: Path) -> list[str]:
        """Return the names in the schema."""
        with self.sound(path):
            return self.scan(existing_file(path)).collect_schema().names()

    def batches(self, path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns, never holding more than a batch."""
        with self.sound(path):
            scan = self.scan(existing_file(path))
            for start in range(0, _height(scan), batch_rows):
                yield scan.select(columns).slice(start, batch_rows).collect()

    @contextmanager
    def sound(self, path: Path) -> Iterator[None]:
        """Refuse a file that is not what its name says."""
        try:
            yield
        except pl.exceptions.PolarsError:
            raise DataRefused(f"{path}: the file is damaged, or not {self.called} as its name says") from None


class Parquet(_Columnar):
    """A Parquet file, read in batches where a table is larger than memory."""

    called = "Parquet"
    suffixes = (".parquet", ".pq")

    def scan(self, path: Path) -> pl.LazyFrame:
        """Return the table, of which nothing is read yet."""
        return pl.scan_parquet(polars_source(path))

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        with self.sound(path):
            return pl.read_parquet(polars_source(existing_file(path)))

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Return the table as it lies in its file."""
        with self.sound(path):
            scan = self.scan(existing_file(path))
            schema, height = dict(scan.collect_schema()), _height(scan)
        return StreamedFrame(path, called=path, schema=schema, height=height, workspace=workspace)

    def bytes_in_memory(self, path: Path) -> int:
        """Two copies of every cell as a double and some records of each row; or what text unpacks to."""
        try:
            scan = self.scan(path)
            cells = len(scan.collect_schema()) * _height(scan)
        except pl.exceptions.PolarsError:
            return 0  # damaged, which is said by who reads it
        return max(_OF_A_CELL * cells, _UNPACKED * path.stat().st_size)


class Arrow(_Columnar):
    """An Arrow or Feather file."""

    called = "Arrow (IPC)"
    suffixes = (".arrow", ".feather", ".ipc")

    def scan(self, path: Path) -> pl.LazyFrame:
        """Return the table, of which nothing is read yet."""
        return pl.scan_ipc(polars_source(path))

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        with self.sound(path):
            return pl.read_ipc(existing_file(path).read_bytes())

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Write the table as Parquet into the workspace, and return that."""
        copy = workspace.path / "table.parquet"
        try:
            with self.sound(path):
                self.scan(existing_file(path)).sink_parquet(polars_path(copy))
                scan = pl.scan_parquet(polars_path(copy), glob=False)
                schema, height = dict(scan.collect_schema()), _height(scan)
        except OSError as error:
            raise cannot_hold(workspace.path, error) from None
        return StreamedFrame(copy, called=path, schema=schema, height=height, workspace=workspace)

    def bytes_in_memory(self, path: Path) -> int:
        """What the file unpacks to, and what is kept of each row."""
        return _IN_MEMORY * path.stat().st_size


def _height(scan: pl.LazyFrame) -> int:
    return int(scan.select(pl.len()).collect().item())


def rows_at_once(path: Path, height: int, width: int) -> int:
    """Return how many rows of a table may be unpacked at once: so many cells, and so many bytes of texts."""
    return max(1, min(_CELLS // max(width, 1), _BYTES * height // (_UNPACKED * path.stat().st_size)))


_MISSING = "__HIVE_DEFAULT_PARTITION__"
_SHOWN = 10  # parts in a message
_PARQUET = Parquet()


@dataclass(frozen=True, slots=True)
class _Part:
    """One file; the columns that the names of its folders tell, and the schema of the file itself."""

    path: Path
    named: Mapping[str, str | None] = field(repr=False)
    schema: Mapping[str, Any] = field(repr=False)

    def read(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns with the types that they have here, some rows at once."""
        stored = [name for name in columns if name in self.schema] or list(self.schema)[:1]
        constant = [pl.lit(text, dtype=pl.String).alias(name) for name, text in self.named.items() if name in columns]
        for rows in _PARQUET.cell_parts(self.path, stored):
            yield rows.with_columns(constant).select(columns)


class PartitionedParquet(TableFormat):
    """A folder or a pattern of Parquet files: one table, its parts in the order of their names."""

    parts_differ = True
    suffixes = ()  # that it is a folder or a pattern tells

    def names(self, path: Path) -> list[str]:
        """Return the columns of every part, those of the folders' names last; refuse, a line each, parts that have
        others.
        """
        first = _parts(path)[0]
        return [*first.schema, *first.named]

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table, with the least types that hold all parts."""
        types = self._types(path, text_columns)
        return pl.concat([_as(types, rows, text_columns) for rows in self.cell_parts(path, list(types))])

    def cell_parts(self, path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns part by part; parts without rows are left out, unless all are."""
        empty: list[pl.DataFrame] = []
        has_rows = False
        for _, frames in self.pieces(path, columns):
            for rows in frames:
                if rows.height:
                    has_rows = True
                    yield rows
                else:
                    empty = [rows]
        if not has_rows:
            yield from empty

    def height(self, path: Path) -> int:
        """Return the number of rows that the parts tell."""
        return sum(_PARQUET.height(part.path) for part in _parts(path))

    def pieces(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[Path, Iterator[pl.DataFrame]]]:
        """Yield each part with its rows, some at once."""
        for part in _parts(path):
            yield part.path, part.read(columns)

    def batches(self, path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns of one type in all parts, so many rows of a part at once."""
        types = self._types(path, ())
        for rows in self.cell_parts(path, columns):
            yield from _as(types, rows, ()).iter_slices(batch_rows)

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Write the parts with the types of all of them into the workspace, and return that."""
        types, before, folder = self._types(path, text_columns), state_of(path), workspace.path / "table"
        height = put_in_parts((_as(types, rows, text_columns) for rows in self.cell_parts(path, list(types))), folder)
        if state_of(path) != before:
            raise PreconditionFailed(f"{path} was changed while it was read; start again")
        return StreamedFrame(folder, called=path, schema=types, height=height, workspace=workspace)

    def bytes_in_memory(self, path: Path) -> int:
        """The sum of all parts."""
        return sum(_PARQUET.bytes_in_memory(file) for file in files_of(path))

    def _types(self, path: Path, text_columns: Sequence[str]) -> dict[str, Any]:
        """Return the least type of each column that holds all parts: text where one part has text and another none."""
        parts = _parts(path)
        types: dict[str, Any] = {}
        for name in parts[0].schema:
            held = list(dict.fromkeys(part.schema[name] for part in parts if part.schema[name] != pl.Null))
            types[name] = _least(name, held, text=name in text_columns)
        return {**types, **dict.fromkeys(parts[0].named, pl.String)}


def _least(name: str, held: Sequence[Any], *, text: bool) -> Any:
    """Return the type that holds several; of a column that is to be text, text, unless floats have lost its digits."""
    if len(held) < 2:
        return held[0] if held else pl.Null()
    frames = [pl.DataFrame(schema={name: dtype}) for dtype in held]
    if len({families(frame)[name] for frame in frames}) > 1 or (text and not any(dtype.is_float() for dtype in held)):
        return pl.String()
    try:
        return pl.concat(frames, how="vertical_relaxed").schema[name]
    except pl.exceptions.PolarsError:  # times in different zones, say
        return pl.String()


def _as(types: Mapping[str, Any], rows: pl.DataFrame, text_columns: Sequence[str]) -> pl.DataFrame:
    """Return rows of one part with the types of all parts; what becomes text says what it said."""

    def of(column: pl.Series) -> pl.Series:
        wanted = types[column.name]
        if column.dtype == wanted:
            return column
        if wanted != pl.String or column.dtype in (pl.Categorical, pl.Enum, pl.Null):
            return column.cast(wanted)
        if column.dtype.is_temporal():
            return pl.Series(column.name, texts(column), dtype=pl.String)
        says = id_text if column.name in text_columns else canonical_text
        return pl.Series(column.name, each(says, as_list(column)), dtype=pl.String)

    return rows.with_columns(map(of, rows.get_columns()))


def _parts(path: Path) -> tuple[_Part, ...]:
    return _parts_at(path, state_of(path))


@lru_cache(maxsize=8)
def _parts_at(path: Path, state: tuple[tuple[str, int, int, int], ...]) -> tuple[_Part, ...]:
    """Return the parts of a table that was in a state; refuse those that do not fit the others."""
    base = base_of(path)
    faults: dict[Path, str] = {}
    parts: list[_Part] = []
    for file in (Path(name) for name, *_ in state):
        try:
            with _PARQUET.sound(file):
                schema = dict(pl.read_parquet_schema(polars_source(existing_file(file))))
            parts.append(_Part(file, _named(file.relative_to(base)), schema))
        except DataRefused as error:
            faults[file] = str(error)
    columns = Counter(frozenset([*part.schema, *part.named]) for part in parts)
    if not columns:
        if faults:
            raise DataRefused(_listed(list(faults.values())))
        kind = "this is a folder and holds no .parquet file" if path.is_dir() else "no .parquet file has such a name"
        raise DataRefused(f"{path}: {kind}; expected a file, such as a CSV file, or a folder of Parquet files")
    [(most, _)] = columns.most_common(1)
    for part in parts:
        if fault := _fault(part, most):
            faults[part.path] = f"{part.path}: {fault}"
    if faults:
        raise DataRefused(_listed([faults[file] for file in sorted(faults)]))
    return tuple(parts)


def _named(place: Path) -> dict[str, str | None]:
    """Return the columns that the names of folders tell, each with its text; an empty one is missing."""
    named: dict[str, str | None] = {}
    for name in place.parts[:-1]:
        key, _, value = name.partition("=")
        if key and key != name:
            text = unquote(value, errors="surrogateescape")
            sound = text not in ("", _MISSING) and not any(0xD800 <= ord(char) < 0xE000 for char in text)
            named[unquote(key)] = text if sound else None
    return named


def _fault(part: _Part, columns: frozenset[str]) -> str:
    """Say what keeps a part from being one of a table with such columns; nothing where it is one."""
    own = [*part.schema, *part.named]
    if twice := [name for name in part.named if name in part.schema]:
        return f"the {in_words(twice)} stands in the file and in the names of folders; leave it out of one of them"
    if lacking := sorted(columns - set(own)):
        return f"the part lacks the {in_words(lacking)}, which other parts have; give all parts the same columns"
    if more := [name for name in own if name not in columns]:
        return f"the part has the {in_words(more)}, which other parts lack; give all parts the same columns"
    if nested := [name for name, dtype in part.schema.items() if dtype.is_nested()]:
        return f"the {in_words(nested)} of the part holds lists or structures; expected numbers, text or dates"
    return ""


def _listed(faults: Sequence[str]) -> str:
    more = len(faults) - _SHOWN
    return "\n".join([*faults[:_SHOWN], *([f"and {more} more parts that do not fit"] if more > 0 else [])])
