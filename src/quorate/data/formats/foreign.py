"""A format from outside this package: asked for its own suffix alone, named in reports, and never quoted.

Whatever it raises may quote a cell of the table, and so may a warning; neither is heard. What is said instead names the
file, the format and the kind of error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quorate.ambient import unwarned
from quorate.data.formats.format import Format, ReadsEach, Table, TableFormat, cannot_read_each_row
from quorate.errors import DataRefused

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")


class Foreign:
    """What is known of a format from outside: the format itself, who brought it, and how it is asked.

    `inner`: as it was registered or declared. `package`: name and version of the package that declares it; empty where
    it was registered in this process.
    """

    def __init__(self, inner: Format, package: str) -> None:
        self.inner: Any = inner
        self.package = package

    @property
    def suffixes(self) -> tuple[str, ...]:
        """As it says itself."""
        return tuple(self.inner.suffixes)

    @property
    def name(self) -> str:
        """Its class, with its module."""
        return f"{type(self.inner).__module__}.{type(self.inner).__qualname__}"

    def asked(self, path: Path, read: Callable[[], T], kind: type[T]) -> T:
        """Return what it reads, of a kind; or raise a refusal that quotes nothing of what it raised.

        Raises DataRefused if it raises anything, or returns something else.
        """
        try:
            with unwarned():
                found = read()
            failure = "" if isinstance(found, kind) else f"it returns no {kind.__name__}"
        except Exception as error:  # noqa: BLE001 - another package's code
            failure = type(error).__name__
        if failure:  # here, where what was raised is no longer at hand
            of = f" of the package {self.package}" if self.package else ""
            raise DataRefused(
                f"{path}: the format {self.name}{of} cannot read this file ({failure}); what it says is not quoted, "
                "since it may hold cells. Open the file with that format to see it"
            )
        return found


class ForeignTable(Foreign, TableFormat):
    """A table format from outside."""

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table, as it reads it."""
        import polars as pl

        return self.asked(path, lambda: self.inner.frame(path, text_columns=text_columns), pl.DataFrame)

    def names(self, path: Path) -> list[str]:
        """Return the names of the columns, as it reads them."""
        return self.asked(path, lambda: [str(name) for name in self.inner.names(path)], list)

    def cells(self, path: Path) -> pl.DataFrame:
        """Return each cell as it is written, where the format says how that is read."""
        import polars as pl

        if type(self.inner).cells is TableFormat.cells:
            raise cannot_read_each_row(self.inner, path)
        return self.asked(path, lambda: self.inner.cells(path), pl.DataFrame)

    def batches(self, path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns, so many rows at once."""
        import polars as pl

        batches = self.asked(path, lambda: iter(self.inner.batches(path, columns, batch_rows)), object)
        while (batch := self.asked(path, lambda: next(batches, None), object)) is not None:  # type: ignore[call-overload]
            yield self.asked(path, lambda batch=batch: batch, pl.DataFrame)  # type: ignore[misc]


class ForeignRows(Foreign):
    """A format of rows without named columns, from outside."""

    def read(self, path: Path, **how: Any) -> Table:
        """Return what the file holds, as it reads it."""
        return self.asked(path, lambda: self.inner.read(path, **how), Table)


class ForeignEachRow(ForeignRows):
    """One that reads each row by itself."""

    def read_each(self, path: Path, **how: Any) -> Table:
        """Return what the file holds, row by row."""
        return self.asked(path, lambda: self.inner.read_each(path, **how), Table)


def foreign(inner: Format, package: str = "") -> Format:
    """Return a format from outside, as it is asked here."""
    if isinstance(inner, TableFormat):
        return ForeignTable(inner, package)
    return ForeignEachRow(inner, package) if isinstance(inner, ReadsEach) else ForeignRows(inner, package)
