"""What a format of files is: one small class, found by the suffix of a file's name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from quorate.data.columns import nearest
from quorate.data.rows import Rows, columns, kind, width
from quorate.errors import DataRefused

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """What a file holds. The repr tells the schema, and neither rows nor how many there are.

    Parameters
    ----------
    X : polars.DataFrame or csr_array of float64
        Features only.
    y : (n_rows,) array or None
        Labels as they stand in the file.
    unit : list of n_rows ids or None
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

        Raises
        ------
        DataRefused
            If the file is damaged or a column is not there. The message names columns and quotes nothing else.
        """


class TableFormat(ABC):
    """Base of formats with named columns: a subclass reads a frame, and the names of its columns.

    It has ``suffixes`` and two methods, ``frame(path, text_columns)`` and ``names(path)``; ``batches`` where a file
    need not be held as a whole.
    """

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
        """Return the whole table so that what one row holds never changes how another is read: untyped, if need be."""
        return self.frame(path)

    def batches(self, path: Path, columns: Sequence[str], batch_rows: int) -> Iterator[pl.DataFrame]:
        """Yield the chosen columns, so many rows at once."""
        yield from self.frame(path).select(columns).iter_slices(batch_rows)

    def read(
        self, path: Path, *, label: str | None, unit: str | None, drop: Sequence[str], n_features: int | None
    ) -> Table:
        """Return features, labels and unit ids; `n_features` is a matter of sparse rows."""
        frame = self.frame(path, text_columns=() if unit is None else (unit,))
        for name in (label, unit):
            if name is not None:
                require_column(name, frame.columns, path)
        gone = {label, unit, *drop}
        features = frame.select([name for name in frame.columns if name not in gone])
        if frame.height == 0:
            raise DataRefused(f"{path}: the file names its columns and holds no row; at least one is needed")
        if features.width == 0:
            raise DataRefused(f"{path}: no feature is left beside the label and the unit")
        return Table(
            X=features,
            y=None if label is None else frame[label].to_numpy(),
            unit=None if unit is None else frame[unit].to_list(),
        )


def require_column(name: str, names: Sequence[str], path: str | Path) -> None:
    """Refuse a column that a table does not have, naming the nearest one it has.

    Examples
    --------
    >>> require_column("incom", ["age", "income"], "adult.csv")
    Traceback (most recent call last):
    quorate.errors.DataRefused: adult.csv: there is no column 'incom'; did you mean 'income'?
    """
    if name not in names and sum(map(_is_number, names)) > len(names) / 2:  # a row, which is not to be quoted
        raise DataRefused(
            f"{path}: there is no column {name!r}; the first line looks like a row, write the columns' names above it"
        )
    if name not in names:
        raise DataRefused(f"{path}: there is no column {name!r}{nearest(name, names)}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
