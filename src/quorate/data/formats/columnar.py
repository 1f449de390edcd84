"""Files of typed columns: Parquet, and Arrow (IPC), which Feather files of version 2 are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.data.file_reading import existing_file, polars_path, polars_source
from quorate.data.formats.format import TableFormat
from quorate.data.stream import StreamedFrame, Workspace, cannot_hold
from quorate.errors import DataRefused

if TYPE_CHECKING:
    import polars as pl

_OF_A_CELL, _UNPACKED = 48, 4  # bytes in memory, of a cell and of a byte in the file
_IN_MEMORY = 6  # bytes, of a byte in an Arrow file: it is not packed, or lightly
_CELLS, _BYTES = 1 << 21, 1 << 27  # that are unpacked at once


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
        import polars as pl

        try:
            yield
        except pl.exceptions.PolarsError:
            raise DataRefused(f"{path}: the file is damaged, or not {self.called} as its name says") from None


class Parquet(_Columnar):
    """A Parquet file, read in batches where a table is larger than memory."""

    called = "Parquet"

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of Parquet files."""
        return (".parquet", ".pq")

    def scan(self, path: Path) -> pl.LazyFrame:
        """Return the table, of which nothing is read yet."""
        import polars as pl

        return pl.scan_parquet(polars_source(path))

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        import polars as pl

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
        import polars as pl

        try:
            scan = self.scan(path)
            cells = len(scan.collect_schema()) * _height(scan)
        except pl.exceptions.PolarsError:
            return 0  # damaged, which is said by who reads it
        return max(_OF_A_CELL * cells, _UNPACKED * path.stat().st_size)


class Arrow(_Columnar):
    """An Arrow or Feather file."""

    called = "Arrow (IPC)"

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of Arrow files."""
        return (".arrow", ".feather", ".ipc")

    def scan(self, path: Path) -> pl.LazyFrame:
        """Return the table, of which nothing is read yet."""
        import polars as pl

        return pl.scan_ipc(polars_source(path))

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        import polars as pl

        with self.sound(path):
            return pl.read_ipc(existing_file(path).read_bytes())

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Write the table as Parquet into the workspace, and return that."""
        import polars as pl

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
    import polars as pl

    return int(scan.select(pl.len()).collect().item())


def rows_at_once(path: Path, height: int, width: int) -> int:
    """Return how many rows of a table may be unpacked at once: so many cells, and so many bytes of texts."""
    return max(1, min(_CELLS // max(width, 1), _BYTES * height // (_UNPACKED * path.stat().st_size)))
