"""Parquet: typed columns, read in batches where a table is larger than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.data.files import existing_file
from quorate.data.formats.format import TableFormat
from quorate.data.streamed import StreamedFrame
from quorate.errors import DataRefused

if TYPE_CHECKING:
    import polars as pl

    from quorate.data.workspace import Workspace

_OF_A_CELL, _UNPACKED = 48, 4  # bytes in memory, of a cell and of a byte in the file
_CELLS, _BYTES = 1 << 22, 1 << 28  # that are unpacked at once


class Parquet(TableFormat):
    """A Parquet file; columns keep the types that they have there."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of Parquet files."""
        return (".parquet", ".pq")

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        import polars as pl

        try:
            return pl.read_parquet(existing_file(path))
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None

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
        """Return the number of rows that the file's last lines tell."""
        import polars as pl

        try:
            return int(pl.scan_parquet(existing_file(path)).select(pl.len()).collect().item())
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None

    def names(self, path: Path) -> list[str]:
        """Return the names in the schema."""
        import polars as pl

        try:
            return pl.scan_parquet(existing_file(path)).collect_schema().names()
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Return the table as it lies in its file."""
        import polars as pl

        try:
            scan = pl.scan_parquet(existing_file(path))
            schema, height = dict(scan.collect_schema()), int(scan.select(pl.len()).collect().item())
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None
        return StreamedFrame(path, called=path, schema=schema, height=height, workspace=workspace)

    def bytes_in_memory(self, path: Path) -> int:
        """Two copies of every cell as a double and some records of each row; or what text unpacks to."""
        import polars as pl

        try:
            scan = pl.scan_parquet(path)
            cells = len(scan.collect_schema()) * int(scan.select(pl.len()).collect().item())
        except pl.exceptions.PolarsError:
            return 0  # damaged, which is said by who reads it
        return max(_OF_A_CELL * cells, _UNPACKED * path.stat().st_size)

    def batches(self, path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns, never holding more than a batch."""
        import polars as pl

        scan = pl.scan_parquet(existing_file(path))
        try:
            total = int(scan.select(pl.len()).collect().item())
            for start in range(0, total, batch_rows):
                yield scan.select(columns).slice(start, batch_rows).collect()
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None


def rows_at_once(path: Path, height: int, width: int) -> int:
    """Return how many rows of a table may be unpacked at once: so many cells, and so many bytes of texts."""
    return max(1, min(_CELLS // max(width, 1), _BYTES * height // (_UNPACKED * path.stat().st_size)))


def _damaged(path: Path) -> DataRefused:
    return DataRefused(f"{path}: the file is damaged, or not Parquet as its name says")
