"""The table that a query makes of a database, among the formats of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quorate.data.formats.format import TableFormat, require_column

if TYPE_CHECKING:
    import polars as pl


class Database(TableFormat):
    """A :class:`~quorate.data.database.DatabaseQuery` as a table."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """None: a URL names it."""
        return ()

    def frame(self, path: Any, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table: numbers and truth values where the database has them, text elsewhere."""
        for name in text_columns:
            require_column(name, path.names(), path)
        found: pl.DataFrame = path.table(text=text_columns)
        return found

    def cells(self, path: Any) -> pl.DataFrame:
        """Return every value as text."""
        found: pl.DataFrame = path.cells()
        return found

    def names(self, path: Any) -> list[str]:
        """Return the names of the columns."""
        found: list[str] = path.names()
        return found
