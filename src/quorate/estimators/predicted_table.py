"""The published model over a table of any size: rows are read, predicted and written some at once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quorate.arguments import shown
from quorate.data.dialect import Dialect
from quorate.data.file_reading import files_of
from quorate.data.formats import TableFormat, format_for, require_column
from quorate.data.reading import column_names, has_named_columns
from quorate.data.table_reader import TableReader
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.estimators.finished_run import FinishedRun
from quorate.folder.table_source import is_there
from quorate.release.keys import file_to_write
from quorate.students import class_probabilities
from quorate.types import Watch

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 1 << 13  # rows whose features the model makes at the same time
LABEL, PROBABILITY, PREDICTION = "label", "probability_{}", "prediction"
_OUT = (".parquet", ".csv")


def predict_table(
    run: FinishedRun, table: Path, out: Path, *, keep: Sequence[str] = (), watch: Watch | None = None
) -> int:
    """Write a class, and a probability of each class where the model has them, or a number, for each row of a table.

    `run`: as :func:`quorate.load` returns it. `table`: a file with named columns, or a folder or a pattern of Parquet
    files, which are read in the order of their names. `out`: a new ``.parquet`` or ``.csv`` file; it appears once it
    is whole.
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
    _check_table(table, dialect)
    columns = _columns_of(reader, table, keep, dialect)
    if any(name in keep for name in (LABEL, PREDICTION, *_probabilities(run))):
        raise InvalidParameter(f"--keep: a column of the output is called so already; rename it in {table}")
    n_rows = 0
    with tempfile.TemporaryDirectory(prefix=".predictions-", dir=out.parent) as folder:
        parts = []
        for number, (file, rows) in enumerate(_blocks(table, columns, dialect, watch)):
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


def _check_table(table: Path, dialect: Dialect) -> None:
    if not is_there(table):
        raise PreconditionFailed(f"there is no file or folder {table}; name the table to predict")
    if not has_named_columns(table, dialect):
        raise InvalidParameter(f"{table}: expected a table with named columns, such as a .parquet or .csv file")


def _columns_of(reader: TableReader, table: Path, keep: Sequence[str], dialect: Dialect) -> list[str]:
    """Return the columns to read: those of the model and those to keep, all of them where the model has no names."""
    names = column_names(table, dialect)
    for name in (*reader.needed, *keep):
        require_column(name, names, table)
    return [*keep, *(name for name in reader.families or names if name in names and name not in keep)]


def _blocks(
    table: Path, columns: Sequence[str], dialect: Dialect, watch: Watch | None
) -> Iterator[tuple[Path, pl.DataFrame]]:
    format_, n_files = format_for(table, dialect), len(files_of(table))
    assert isinstance(format_, TableFormat)  # noqa: S101 - what was looked at before
    watch = None if n_files == 1 else watch
    for number, (file, parts) in enumerate(format_.pieces(table, columns)):
        if watch is not None:
            watch("files", number, n_files)
        for part in parts:
            yield from ((file, rows) for rows in (part.iter_slices(AT_ONCE) if part.height else [part]))
    if watch is not None:
        watch("files", n_files, n_files)


def _predictions(run: FinishedRun, reader: TableReader, rows: pl.DataFrame, name: str) -> list[pl.Series]:
    import polars as pl

    names = _probabilities(run)
    if not hasattr(run, "classes_"):
        read = reader(rows, name)
        return [pl.Series(PREDICTION, run.predictions_of(read) if rows.height else [], dtype=pl.Float64)]
    classes = run.classes_.tolist()
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
