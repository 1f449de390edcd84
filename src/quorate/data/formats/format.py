"""What a format of files is: one small class, found by the suffix of a file's name; and those that are none of ours.

A format from outside this package is named in reports, and whatever it raises or warns of, which may quote a cell, is
replaced by the file, the format and the kind of error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np

from quorate.ambient import unwarned
from quorate.data.cell_text import as_list
from quorate.data.columns import listed, names_columns
from quorate.data.database import DatabaseQuery
from quorate.data.rows import Rows, columns, kind, width
from quorate.data.stream import StreamedColumn, StreamedFrame, Workspace
from quorate.deferred import pl
from quorate.errors import DataRefused

_NEAR = 0.75  # of 1, where a name is the other one: a slip of the hand, and no other word
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """What a file holds. The repr tells the schema, and neither rows nor how many there are.

    Parameters
    ----------
    X : polars.DataFrame or csr_array of float64
        Features only.
    y : (n_rows,) array or None
        Labels as they stand in the file.
    unit : list of n_rows ids, a series of floats, or None
        Unit ids; of a CSV file always as text.

    Examples
    --------
    >>> import numpy as np
    >>> Table(X=np.zeros((3, 2)), y=None, unit=None)
    Table(numpy, 2 features, without labels, without unit ids)
    """

    X: Rows = field(repr=False)
    y: Any | None = field(default=None, repr=False)
    unit: Any | None = field(default=None, repr=False)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the features, where the file has them."""
        return columns(self.X)

    def __repr__(self) -> str:
        labels, units = ("without" if part is None else "with" for part in (self.y, self.unit))
        return f"Table({kind(self.X)}, {width(self.X)} features, {labels} labels, {units} unit ids)"


@runtime_checkable
class Format(Protocol):
    """Reads features, labels and unit ids from files of one format."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Endings of a file's name, in small letters and with their dot; ``""`` for what a name does not tell."""

    def read(
        self, path: Path, *, label: str | None, unit: str | None, drop: Sequence[str], n_features: int | None
    ) -> Table:
        """Return what the file holds; the arguments are those of :func:`quorate.data.read_data`.

        DataRefused if the file is damaged or a column is not there; the message names columns and quotes nothing else.
        """


@runtime_checkable
class ReadsEach(Protocol):
    """A format of rows without named columns that reads each private row by itself, as the direct method needs it."""

    def read_each(self, path: Path, *, label: str | None, unit: str | None, n_features: int) -> Table:
        """Return ``n_features`` columns, labels and unit ids; what cannot be read of a row is missing, and no row
        refuses.
        """


class TableFormat(ABC):
    """Base of formats with named columns: a subclass reads a frame, and the names of its columns.

    It has ``suffixes`` and two methods, ``frame(path, text_columns)`` and ``names(path)``; ``batches`` where a file
    need not be held as a whole, and ``cells`` where each row can be read by itself, as the direct method needs it.
    """

    #: Whether parts of the cells have types of their own, so that no frame holds all.
    parts_differ: ClassVar[bool] = False

    @property
    @abstractmethod
    def suffixes(self) -> tuple[str, ...]:
        """Endings of a file's name, in small letters and with their dot."""

    @abstractmethod
    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table; `text_columns` are read as text whatever they look like."""

    @abstractmethod
    def names(self, path: Path) -> list[str]:
        """Return the names of the columns without reading the rows."""

    def cells(self, path: Path) -> pl.DataFrame:
        """Return the whole table so that what one row holds never changes how another is read, nor stops it.

        Each cell is as it is written, as text if need be; what cannot be read of a row is null. A frame whose types
        were found from all rows is none of this: by default DataRefused, so that the direct method has no private rows
        of it.
        """
        raise cannot_read_each_row(self, path)

    def ids(self, path: Path, column: pl.Series, *, each: bool) -> pl.Series:
        """Return a column that was read as the unit ids that it holds, where the format can lose digits of them.

        `each`: whether what is wrong with one id leaves it out, and refuses nothing.
        """
        return column

    def cell_parts(self, path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns of :meth:`cells`, some rows at once; by default all of them."""
        yield self.cells(path).select(columns)

    def height(self, path: Path) -> int | None:
        """Return the number of rows, where the file tells it; None where every row has to be read for that."""
        return None

    def pieces(self, path: Path, columns: Sequence[str]) -> Iterator[tuple[Path, Iterator[pl.DataFrame]]]:
        """Yield each file of the table with what :meth:`cell_parts` yields of it; by default the one file."""
        yield path, self.cell_parts(path, columns)

    def batches(self, path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns, so many rows at once."""
        yield from self.frame(path).select(columns).iter_slices(batch_rows)

    def stream(self, path: Path, *, text_columns: Sequence[str], workspace: Workspace) -> StreamedFrame | None:
        """Return the whole table as one that stays in its file; None where the format reads files as a whole alone.

        `text_columns`: as in :meth:`frame`. `workspace`: where the rows may be written in another form.
        """
        return None

    def bytes_in_memory(self, path: Path) -> int:
        """Guess what the table, its encoded rows and what is kept of each row take in memory, from above."""
        return 0

    def read(
        self,
        path: Path,
        *,
        label: str | None,
        unit: str | None,
        drop: Sequence[str],
        n_features: int | None,
        text: Sequence[str] = (),
        workspace: Workspace | None = None,
    ) -> Table:
        """Return features, labels and unit ids; `n_features` is a matter of sparse rows.

        Columns of `text` are read as text whatever they look like, where they are there. With a `workspace` rows stay
        in their file, where :meth:`stream` has them so.
        """
        held = set(self.names(path)) if text else set()
        as_text = [*([] if unit is None else [unit]), *(name for name in text if name in held and name != unit)]
        frame: Any = None if workspace is None else self.stream(path, text_columns=as_text, workspace=workspace)
        frame = self.frame(path, text_columns=as_text) if frame is None else frame
        for name in (label, unit):
            if name is not None:
                require_column(name, frame.columns, path)
        kept = [name for name in frame.columns if name not in {label, unit, *drop}]
        if frame.height == 0:
            fault = "it returns no row" if _is_query(path) else "the file names its columns and holds no row"
            raise DataRefused(f"{path}: {fault}; at least one is needed")
        if not kept:
            raise DataRefused(f"{path}: no feature is left beside the label and the unit")
        if isinstance(frame, StreamedFrame):
            columns = {name: StreamedColumn(frame[[name]].to_series()) for name in (label, unit) if name is not None}
            return Table(X=frame.only(kept), y=columns.get(label or ""), unit=columns.get(unit or ""))
        return Table(
            X=frame.select(kept),
            y=None if label is None else _labels(frame[label]),
            unit=None if unit is None else ids_of(self.ids(path, frame[unit], each=False)),
        )


def ids_of(column: pl.Series) -> Any:
    """Return unit ids as a list; of a column of floats the column, by which a reader of ids knows what they are."""
    return column if column.dtype.is_float() else as_list(column)


def cannot_read_each_row(format_: object, path: object) -> DataRefused:
    """Return what is said of a format that reads a file as a whole alone: in it one row may change another."""
    return DataRefused(
        f"{path}: the format {type(format_).__name__} does not say how one private row is read by itself, and read as "
        "a whole one row could change how another is read, or stop it. For the direct method define cells(path) in it, "
        "or save the table as CSV or Parquet"
    )


def require_column(
    name: str,
    names: Sequence[str],
    path: object,
    *,
    public: Sequence[str] = (),
    key: str = "",
    needed_by: str = "",
) -> None:
    """Refuse a column that a table does not have, naming one that is nearly called so where names are known to be some.

    `public`: names of a public table's columns. Where they do not show that the first line of this one names columns,
    nothing of that line is quoted: it may be a private row. `key`: the key that names the column, to begin with.
    `needed_by`: what needs the column.
    """
    if name not in names:
        missing = (
            ". See that its first line names the columns (that line is not printed here, since it may be a private row)"
        )
        if _is_query(path):
            missing = "; have the query return it (… as name)"
        if names_columns(names, public):
            missing = nearly(name, names) or f"; its columns are {listed(names)}"
        needs = f", which {needed_by} needs" * bool(needed_by)
        raise DataRefused(f"{key}{path} has no column {name!r}{needs}{missing}", names_key=bool(key))


def _is_query(path: object) -> bool:
    return isinstance(path, DatabaseQuery)


def nearly(name: str, names: Sequence[str]) -> str:
    """Word a hint at a name that is nearly the same; nothing where there is none."""
    close = get_close_matches(name, names, n=1, cutoff=_NEAR) or [n for n in names if n.casefold() == name.casefold()]
    return f"; did you mean {close[0]!r}?" if close else ""


def _labels(series: pl.Series) -> Any:
    """Return labels as an array; those of more than 64 bits as Python has them: numpy has no such type."""
    if str(series.dtype) in ("Int128", "UInt128"):
        return np.array(series.to_list(), dtype=object)
    return series.to_numpy()


class Foreign:
    """What is known of a format from outside: `inner`, as it was registered or declared, and the name and version of
    the `package` that declares it, or "".
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

    def call(self, path: Path, read: Callable[[], T], kind: type[T]) -> T:
        """Return what it reads, of a kind; or refuse, quoting nothing of what it raised or returned."""
        try:
            with unwarned():
                value = read()
            failure = "" if isinstance(value, kind) else f"it returns no {kind.__name__}"
        except Exception as error:  # noqa: BLE001 - another package's code
            failure = type(error).__name__
        if failure:  # here, where what was raised is no longer at hand
            of = f" of the package {self.package}" if self.package else ""
            raise DataRefused(
                f"{path}: the format {self.name}{of} cannot read this file ({failure}); what it says is not quoted, "
                "since it may hold cells. Open the file with that format to see it"
            )
        return value


class ForeignTable(Foreign, TableFormat):
    """A table format from outside."""

    def frame(self, path: Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table, as it reads it."""
        return self.call(path, lambda: self.inner.frame(path, text_columns=text_columns), pl.DataFrame)

    def names(self, path: Path) -> list[str]:
        """Return the names of the columns, as it reads them."""
        return self.call(path, lambda: [str(name) for name in self.inner.names(path)], list)

    def cells(self, path: Path) -> pl.DataFrame:
        """Return each cell as it is written, where the format says how that is read."""
        if type(self.inner).cells is TableFormat.cells:
            raise cannot_read_each_row(self.inner, path)
        return self.call(path, lambda: self.inner.cells(path), pl.DataFrame)

    def batches(self, path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns, so many rows at once."""
        batches = self.call(path, lambda: iter(self.inner.batches(path, columns, batch_rows)), object)
        while (batch := self.call(path, lambda: next(batches, None), object)) is not None:  # type: ignore[call-overload]
            yield self.call(path, lambda batch=batch: batch, pl.DataFrame)  # type: ignore[misc]


class ForeignRows(Foreign):
    """A format of rows without named columns, from outside."""

    def read(self, path: Path, **how: Any) -> Table:
        """Return what the file holds, as it reads it."""
        return self.call(path, lambda: self.inner.read(path, **how), Table)

    def read_each(self, path: Path, **how: Any) -> Table:
        """Return what the file holds, row by row, where the format says how that is read."""
        if not isinstance(self.inner, ReadsEach):
            raise cannot_read_each_row(self.inner, path)
        return self.call(path, lambda: self.inner.read_each(path, **how), Table)


def foreign(inner: Format, package: str = "") -> Format:
    """Return a format from outside, as it is asked here."""
    if isinstance(inner, TableFormat):
        return ForeignTable(inner, package)
    return ForeignRows(inner, package)


class Database(TableFormat):
    """A :class:`~quorate.data.database.DatabaseQuery` as a table."""

    suffixes = ()  # a URL names it

    def frame(self, path: Any, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
        """Return the whole table: numbers and truth values where the database has them, text elsewhere."""
        for name in text_columns:
            require_column(name, path.names(), path)
        table: pl.DataFrame = path.table(text=text_columns)
        return table

    def cells(self, path: Any) -> pl.DataFrame:
        """Return every value as text."""
        cells: pl.DataFrame = path.cells()
        return cells

    def names(self, path: Any) -> list[str]:
        """Return the names of the columns."""
        names: list[str] = path.names()
        return names
