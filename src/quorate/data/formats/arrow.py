"""Arrow files (IPC), which Feather files of version 2 are: typed columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.data.files import existing_file
from quorate.data.formats.format import TableFormat
from quorate.data.formats.parquet import rows_at_once
from quorate.data.streamed import StreamedFrame
from quorate.data.workspace import Workspace, cannot_hold
from quorate.errors import DataRefused

if TYPE_CHECKING:
    import polars as pl

_IN_MEMORY = 6  # bytes, of a byte in the file: it is not packed, or lightly


class Arrow(TableFormat):
    """An Arrow or Feather file; columns keep the types that they have there."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of Arrow files."""
        return (".arrow", ".feather", ".ipc")

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table."""
        import polars as pl

        try:
            return pl.read_ipc(existing_file(path).read_bytes())
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None

    def cells(self, path: Path) -> pl.DataFrame:
        """Return the whole table: the file itself says the type of a column, and no row of it does."""
        return self.frame(path)

    def cell_parts(self, path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the same, some rows at once."""
        import polars as pl

        try:
            scan = pl.scan_ipc(existing_file(path))
            height = int(scan.select(pl.len()).collect().item())
            step = rows_at_once(path, height, len(columns))
            for start in range(0, max(height, 1), step):
                yield scan.select(columns).slice(start, step).collect()
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None

    def names(self, path: Path) -> list[str]:
        """Return the names in the schema."""
        import polars as pl

        try:
            return list(pl.read_ipc_schema(existing_file(path)))
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame:
        """Write the table as Parquet into the workspace, and return that."""
        import polars as pl

        found = workspace.path / "table.parquet"
        try:
            pl.scan_ipc(existing_file(path)).sink_parquet(found)
            scan = pl.scan_parquet(found, glob=False)
            schema, height = dict(scan.collect_schema()), int(scan.select(pl.len()).collect().item())
        except pl.exceptions.PolarsError:
            raise _damaged(path) from None
        except OSError as error:
            raise cannot_hold(workspace.path, error) from None
        return StreamedFrame(found, called=path, schema=schema, height=height, workspace=workspace)

    def bytes_in_memory(self, path: Path) -> int:
        """What the file unpacks to, and what is kept of each row."""
        return _IN_MEMORY * path.stat().st_size


def _damaged(path: Path) -> DataRefused:
    return DataRefused(f"{path}: the file is damaged, or not Arrow (IPC) as its name says")
