"""The published model over a table of any size: rows are read, predicted and written some at once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quorate.arguments import shown
from quorate.data.dialect import Dialect
from quorate.data.formats import TableFormat, format_for, require_column
from quorate.data.reading import has_named_columns
from quorate.data.table_reader import TableReader
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, QuorateError
from quorate.estimators.finished_run import FinishedRun
from quorate.release.keys import file_to_write
from quorate.students import class_probabilities
from quorate.types import Watch

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 1 << 13  # rows whose features the model makes at the same time
LABEL, PROBABILITY = "label", "probability_{}"
_OUT = (".parquet", ".csv")


def predict_table(
    run: FinishedRun, table: Path, out: Path, *, keep: Sequence[str] = (), watch: Watch | None = None
) -> int:
    """Write a class, and a probability of each class where the model has them, for each row of a table.

    `run`: as :func:`quorate.load` returns it. `table`: a file with named columns, or a folder of Parquet files, which
    are read in the order of their names. `out`: a new ``.parquet`` or ``.csv`` file; it appears once it is whole.
    `keep`: columns of the table that are written before the predictions, such as an id. `watch`: ``watch(stage, done,
    total)``, in files and parts of them. Returns the number of rows. Raises InvalidParameter, DataRefused or
    PreconditionFailed, with one line for each file that cannot be read or lacks a column; nothing is written then.
    """
    import polars as pl

    if out.suffix not in _OUT:
        raise InvalidParameter(f"--out: got {shown(str(out))}; expected a file that ends in {' or '.join(_OUT)}")
    file_to_write(out, "predictions.parquet")
    if out.exists():
        raise PreconditionFailed(f"{out} is there already, and is not replaced; name another file, or remove it")
    reader, dialect = run.table_reader()
    files = _files_of(table, dialect)
    columns = _columns_of(reader, files, keep, dialect)
    if any(name in keep for name in (LABEL, *_probabilities(run))):
        raise InvalidParameter(f"--keep: a column of the output is called so already; rename it in {table}")
    n_rows = 0
    with tempfile.TemporaryDirectory(prefix=".predictions-", dir=out.parent) as folder:
        parts = []
        for number, (file, rows) in enumerate(_blocks(files, columns, dialect, watch)):
            predictions = _predictions(run, reader, rows.drop(keep), file.name)
            parts.append(Path(folder, f"{number:08}.parquet"))
            pl.DataFrame([*rows.select(keep), *predictions]).write_parquet(parts[-1])
            n_rows += rows.height
        whole = Path(folder, f"whole{out.suffix}")
        scan = pl.scan_parquet(parts, glob=False)
        if out.suffix == ".parquet":
            scan.sink_parquet(whole)
        else:
            scan.sink_csv(whole)
        whole.replace(out)
    return n_rows


def _files_of(table: Path, dialect: Dialect) -> list[Path]:
    if not table.exists():
        raise PreconditionFailed(f"there is no file or folder {table}; name the table to predict")
    if not table.is_dir():
        if not has_named_columns(table, dialect):
            raise InvalidParameter(f"{table}: expected a table with named columns, such as a .parquet or .csv file")
        return [table]
    files = sorted(path for path in table.iterdir() if path.suffix == ".parquet" and not path.name.startswith("."))
    if not files:
        raise PreconditionFailed(f"{table} holds no .parquet file; name a folder that does, or a file")
    return files


def _columns_of(reader: TableReader, files: Sequence[Path], keep: Sequence[str], dialect: Dialect) -> list[str]:
    """Return the columns to read: those of the model and those to keep, all of them where the model has no names."""
    faults: list[str] = []
    columns: list[str] = []
    for file in files:
        try:
            names = _format(file, dialect).names(file)
            columns = [*keep, *(name for name in reader.families or names if name in names and name not in keep)]
            for name in (*reader.needed, *keep):
                require_column(name, names, file)
        except QuorateError as error:
            faults.append(str(error))
    if faults:
        raise DataRefused("\n".join(faults))
    return columns


def _blocks(
    files: Sequence[Path], columns: Sequence[str], dialect: Dialect, watch: Watch | None
) -> Iterator[tuple[Path, pl.DataFrame]]:
    watch = None if len(files) == 1 else watch
    for number, file in enumerate(files):
        if watch is not None:
            watch("files", number, len(files))
        for part in _format(file, dialect).cell_parts(file, columns):
            yield from ((file, rows) for rows in (part.iter_slices(AT_ONCE) if part.height else [part]))
    if watch is not None:
        watch("files", len(files), len(files))


def _predictions(run: FinishedRun, reader: TableReader, rows: pl.DataFrame, name: str) -> list[pl.Series]:
    import polars as pl

    classes, names = run.classes_.tolist(), _probabilities(run)
    if not rows.height:
        return [pl.Series(LABEL, classes).head(0), *(pl.Series(column, [0.0]).head(0) for column in names)]
    read = reader(rows, name)
    labels = pl.Series(LABEL, np.asarray(run.student_.predict(read)).tolist())
    if not names:
        return [labels]
    shares = class_probabilities(run.student_, read, classes)
    return [labels, *(pl.Series(column, shares[:, place]) for place, column in enumerate(names))]


def _probabilities(run: FinishedRun) -> list[str]:
    has_them = hasattr(run.student_, "predict_proba")
    return [PROBABILITY.format(name) for name in run.classes_.tolist()] if has_them else []


def _format(file: Path, dialect: Dialect) -> TableFormat:
    format_ = format_for(file, dialect)
    assert isinstance(format_, TableFormat)  # noqa: S101 - what was looked at before
    return format_
