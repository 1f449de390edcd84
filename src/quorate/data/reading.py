"""One door to every file: features, labels and unit ids, or a table as a polars frame."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from quorate.data.cell_text import as_list, each, id_text
from quorate.data.database import DatabaseQuery
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.formats import (
    Table,
    TableFormat,
    format_for,
    is_delimited,
    place_of,
    require_column,
    table_suffixes,
)
from quorate.data.formats.format import ReadsEach, cannot_read_each_row, ids_of
from quorate.data.stream import PartedColumn, PartedFrame, Workspace, put_aside
from quorate.deferred import pl
from quorate.errors import InvalidParameter, named

BATCH_ROWS = 65_536


def read_data(
    path: str | Path | DatabaseQuery,
    *,
    label: str | None = None,
    unit: str | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    n_features: int | None = None,
    memory: int | None = None,
    workspace: Workspace | None = None,
    dialect: Dialect = PLAIN,
) -> Table:
    r"""Read features, labels and unit ids from a file of any known format.

    Parameters
    ----------
    path : path
        Of any format of :mod:`quorate.data.formats`: CSV, TSV, Parquet, Arrow, a ``.npz`` or svmlight text of sparse
        rows, and what was registered; or a :class:`~quorate.data.database.DatabaseQuery`. What a name does
        not tell is taken as svmlight text.
    label : str or None
        Column of the label. It is no feature. A svmlight file carries its labels without a name.
    unit : str or None
        Column of the unit id. It is no feature.
    drop : sequence of str
        Columns of a table to leave out where they are there: the label and the unit in a public file.
    text : sequence of str
        Columns of a table to read as text whatever they look like, where they are there.
    n_features : int or None
        Number of columns of sparse rows.
    memory : int or None
        Bytes that may be taken. A CSV, TSV, Parquet or Arrow file that would take more stays in a file
        (:class:`~quorate.data.stream.StreamedFrame`); None reads every file as a whole.
    workspace : Workspace or None
        Where rows may be put aside; with `memory`.
    dialect : Dialect
        How text tables are written.

    Returns
    -------
    Table

    Raises
    ------
    DataRefused
        If the file cannot be read, a column is not there (naming the nearest one), or no feature or row
        is left.
    InvalidParameter
        If `label` and `unit` name one column.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "visits.csv").write_text("person,age,ill\n007,39,no\n008,50,yes\n")
    ...     table = read_data(Path(folder, "visits.csv"), label="ill", unit="person")
    >>> table
    Table(polars, 1 features, with labels, with unit ids)
    >>> table.y.tolist(), table.unit
    (['no', 'yes'], ['007', '008'])
    """
    if label is not None and label == unit:
        raise InvalidParameter(f"{named('label')} and {named('unit')} both name {label!r}; they must be two columns")
    place, known = place_of(path), format_for(path, dialect)
    how: dict[str, Any] = {}
    if isinstance(known, TableFormat):
        is_held = memory is None or workspace is None or known.bytes_in_memory(place) <= memory
        how = {"text": text, "workspace": None if is_held else workspace}
    return known.read(place, label=label, unit=unit, drop=drop, n_features=n_features, **how)


def read_cells(
    path: str | Path | DatabaseQuery,
    *,
    label: str,
    unit: str | None = None,
    drop: Sequence[str] = (),
    n_features: int,
    memory: int | None = None,
    folder: Callable[[], Path] | None = None,
    dialect: Dialect = PLAIN,
) -> Table:
    """Read private rows so that what one row holds never changes how another is read.

    Of a CSV or TSV file every cell is text, whatever it looks like, and every line is a row: a type that is found from
    all rows would turn on each of them, and a mark that is left open would take in the rows after it. Of svmlight text,
    a line that is none becomes a row with a missing value and no label, and so does one with an index beyond the public
    columns, `n_features`. There may be no row at all.

    `path`, `label`, `unit`, `drop`, `dialect`: as in :func:`read_data`. `memory`: bytes that may be taken. A CSV, TSV,
    Parquet or Arrow file that would take more stays where it is, and is read part by part
    (:class:`~quorate.data.stream.PartedFrame`), and so are rows of a query, from a file that has no name; None reads
    everything as a whole. `folder`: makes the folder for the rows of a query, which its owner alone may enter; by
    default a temporary one. DataRefused if the file cannot be opened, a column is not there, or its format reads files
    as a whole alone.
    """
    format_ = format_for(path, dialect)
    if isinstance(format_, TableFormat):
        place = place_of(path)
        frame: pl.DataFrame | PartedFrame | None = None
        if isinstance(path, DatabaseQuery) and memory is not None:
            frame = put_aside(path.blocks(), memory, folder)
        elif not format_.parts_differ and (memory is None or format_.bytes_in_memory(place) <= memory):
            frame = format_.cells(place)
        names = format_.names(place) if frame is None else frame.columns
        for name in (label, unit):
            if name is not None:
                require_column(name, names, path)
        kept = [name for name in names if name not in (label, unit, *drop)]
        if frame is None or isinstance(frame, PartedFrame):
            return _parted(format_, place, frame, kept, label=label, unit=unit)
        ids = None if unit is None else ids_of(format_.ids(place, frame[unit], each=True))
        return Table(X=frame.select(kept), y=as_list(frame[label]), unit=ids)
    if not isinstance(format_, ReadsEach):
        raise cannot_read_each_row(format_, path)
    return format_.read_each(place_of(path), label=label, unit=unit, n_features=n_features)


def bytes_held(path: str | Path | DatabaseQuery) -> int:
    """Guess from above the memory of a file that :func:`read_cells` can read as a whole alone; 0 for other files."""
    guess = getattr(format_for(path), "bytes_held", None)
    return 0 if guess is None else int(guess(place_of(path)))


def _parted(
    known: TableFormat,
    path: Path,
    frame: PartedFrame | None,
    kept: Sequence[str],
    *,
    label: str,
    unit: str | None,
) -> Table:
    """Return a table that is read part by part, from its file or `frame`; ids are held, and labels if the file has no
    count.
    """
    height = known.height(path) if frame is None else frame.height
    named = [name for name in (label if height is None else None, unit) if name is not None]
    held: list[pl.DataFrame] = []
    if named:
        held = list(known.cell_parts(path, named) if frame is None else frame.only(named).blocks(BATCH_ROWS))
        height = sum(part.height for part in held)
    if frame is None:
        assert height is not None  # noqa: S101 - it was told, or counted
        frame = PartedFrame(partial(known.cell_parts, path), path=path, columns=kept, height=height)
    y = _joined([part[label] for part in held]) if label in named else PartedColumn(frame.only([label]))
    ids = None if unit is None else _joined([part[unit] for part in held], ids=True)
    if isinstance(ids, pl.Series):
        ids = known.ids(path, ids, each=True)
    return Table(X=frame.only(kept), y=y, unit=ids)


def _joined(parts: Sequence[pl.Series], *, ids: bool = False) -> pl.Series | list[Any]:
    """Return a column whose parts may differ in type: as one series, or as a list of what each cell is. Ids partly of
    floats are all floats, whose reader asks whether digits were lost.
    """
    types = {part.dtype for part in parts} - {pl.Null()}
    if len(types) < 2:
        return pl.concat([part.cast(dtype) for dtype in types for part in parts] or parts)
    if ids and any(dtype.is_float() for dtype in types):
        whole = [text for part in parts for text in each(partial(id_text, whole_alone=True), as_list(part))]
        return pl.Series([None if text is None else float(text) for text in whole], dtype=pl.Float64)
    return [cell for part in parts for cell in as_list(part)]


def read_table(
    path: str | Path | DatabaseQuery, *, text_columns: Sequence[str] = (), dialect: Dialect = PLAIN
) -> pl.DataFrame:
    """Read a table with named columns: a CSV, TSV, Parquet or Arrow file, or what was registered.

    `path`: ``.csv``, ``.tsv`` (each also ``.gz`` or ``.xz``; the first line names the columns), ``.parquet``,
    ``.arrow`` and the others of :mod:`quorate.data.formats`; or a :class:`~quorate.data.database.DatabaseQuery`.
    `text_columns`: of a CSV file, read as text whatever they look like: ids, so that ``007`` stays what it is.
    `dialect`: how text tables are written. A column's type is found from all its rows; an empty field is null.
    DataRefused if the file is missing or damaged, two columns share a name, or a column of `text_columns` is not there;
    InvalidParameter if the name of the file names none of these formats.
    """
    return _table_format(path, dialect).frame(place_of(path), text_columns=text_columns)


def refuse_uneven_rows(path: Path, dialect: Dialect) -> None:
    """Refuse a text table of which a row has more or fewer cells than the first line names."""
    if is_delimited(path):
        for _, parts in _table_format(path, dialect).pieces(path, ()):
            deque(parts, maxlen=0)


def column_names(path: str | Path | DatabaseQuery, dialect: Dialect = PLAIN) -> list[str]:
    r"""Name the columns of a table without reading its rows; DataRefused if the file is missing or damaged."""
    return _table_format(path, dialect).names(place_of(path))


def named_columns(path: str | Path | DatabaseQuery, dialect: Dialect = PLAIN) -> list[str] | None:
    """Name the columns of a table likewise; None of a file whose format has no names for them."""
    format_ = format_for(path, dialect)
    return format_.names(place_of(path)) if isinstance(format_, TableFormat) else None


def read_batches(
    path: str | Path | DatabaseQuery, *, batch_rows: int = BATCH_ROWS, columns: Sequence[str] | None = None
) -> Iterator[pl.DataFrame]:
    r"""Read a table in frames of `batch_rows` ≥ 1 rows, the last one with what is left; of a Parquet file no more is
    held.

    `path`: as in :func:`read_table`; a CSV file is read whole first, since its types come from all its rows. `columns`:
    those to read, in this order; None reads all. DataRefused if the file is missing or damaged, or a column is not
    there.
    """
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise InvalidParameter(f"batch_rows: got {batch_rows!r}; expected a whole number of at least 1")
    table = _table_format(path)
    names = table.names(place_of(path))
    chosen = names if columns is None else list(columns)
    for name in chosen:
        require_column(name, names, path)
    yield from table.batches(place_of(path), chosen, batch_rows)


def _table_format(path: str | Path | DatabaseQuery, dialect: Dialect = PLAIN) -> TableFormat:
    format_ = format_for(path, dialect)
    if not isinstance(format_, TableFormat):
        raise InvalidParameter(
            f"{path}: expected a table with named columns ({', '.join(table_suffixes())}; text also with .gz or .xz)"
        )
    return format_
