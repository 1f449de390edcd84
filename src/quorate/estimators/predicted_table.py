"""The published model over a table of any size: rows are read, predicted and written some at once."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quorate.arguments import shown
from quorate.data.columns import in_words
from quorate.data.dialect import UNREADABLE, UTF_8, Dialect
from quorate.data.file_reading import files_of, polars_path
from quorate.data.formats import TableFormat, format_for, is_delimited, require_column
from quorate.data.reading import named_columns
from quorate.data.table_reader import TableReader, unread_in_words
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, named
from quorate.estimators.finished_run import FinishedRun
from quorate.folder.table_source import is_there
from quorate.release.keys import file_to_write, told_as_typed
from quorate.students import class_probabilities
from quorate.students.prediction_sets import sets_of
from quorate.types import Watch

if TYPE_CHECKING:
    import polars as pl

AT_ONCE = 1 << 13  # rows whose features the model makes at the same time
LABEL, PROBABILITY, IN_SET, PREDICTION = "label", "probability_{}", "in_set_{}", "prediction"
ENDS = ("lower", "upper")  # of the interval of a number
_OUT = (".parquet", ".csv")


def predict_table(
    run: FinishedRun,
    table: Path,
    out: Path,
    *,
    keep: Sequence[str] = (),
    coverage: float | None = None,
    watch: Watch | None = None,
    tell: Callable[[str], None] | None = None,
) -> int:
    """Write a class, and a probability of each class where the model has them, or a number, for each row of a table.

    `run`: as :func:`quorate.load` returns it. `table`: a file with named columns, or a folder or a pattern of Parquet
    files, which are read in the order of their names. `out`: a new ``.parquet`` or ``.csv`` file; it appears once it
    is whole. CSV has the separator and the decimal mark by which `table` is read.
    `keep`: columns of the table that are written before the predictions, such as an id. `coverage`: where it is given,
    a column for each class tells whether it is in the prediction set of that coverage; of a number, two have the ends
    of its interval. `watch`: ``watch(stage, done,
    total)``, in files and parts of them. `tell`: takes a line on cells that count as missing though something stands
    in them, if there are any. Returns the number of rows. Raises InvalidParameter, DataRefused or
    PreconditionFailed, with one line for each file that cannot be read or lacks a column; nothing is written then.
    """
    import polars as pl

    if out.suffix not in _OUT:
        ends = " or ".join(_OUT)
        raise InvalidParameter(f"{named('out')} must name a file that ends in {ends}, got {shown(str(out))}")
    file_to_write(out, "predictions.parquet")
    if out.exists():
        raise PreconditionFailed(f"{out} is there already, and is not replaced; name another file, or remove it")
    limit = None if coverage is None else run.set_limit(coverage)
    if not is_there(table):
        raise PreconditionFailed(f"there is no file or folder {table}; name the table to predict")
    reader, dialect = run.table_reader(table)
    if (names := named_columns(table, dialect)) is None:
        raise InvalidParameter(f"{table}: expected a table with named columns, such as a .parquet or .csv file")
    columns = _columns_of(reader, table, names, keep)
    if any(name in keep for name in (LABEL, PREDICTION, *_probabilities(run), *_sets(run, limit))):
        raise InvalidParameter(f"{named('keep')}: a column of the output is called so already; rename it in {table}")
    n_rows, unread = 0, Counter[str]()
    with ExitStack() as stack:
        with told_as_typed(out):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=".predictions-", dir=out.parent))
        parts = []
        for number, (file, rows) in enumerate(_blocks(table, columns, dialect, watch)):
            _refuse_other_encoding(rows.drop(keep), file, dialect)
            predictions = _predictions(run, reader, rows.drop(keep), file.name, limit)
            parts.append(Path(folder, f"{number:08}.parquet"))
            with told_as_typed(out):
                pl.DataFrame([*rows.select(keep), *predictions]).write_parquet(polars_path(parts[-1]))
            n_rows += rows.height
            unread.update(reader.unread(rows))
        whole = Path(folder, f"whole{out.suffix}")
        scan = pl.scan_parquet([polars_path(part) for part in parts], glob=False)
        with told_as_typed(out):
            if out.suffix == ".parquet":
                scan.sink_parquet(polars_path(whole))
            else:
                _as_declared(scan, dialect).sink_csv(polars_path(whole), separator=dialect.separator or ",")
            whole.replace(out)
    if unread and tell is not None:
        tell(unread_in_words(unread, table.name))
    return n_rows


def _as_declared(scan: pl.LazyFrame, dialect: Dialect) -> pl.LazyFrame:
    """Return numbers as texts with the decimal mark of the tables, where that is no point."""
    import polars as pl

    if dialect.decimal != ",":
        return scan
    return scan.with_columns(pl.col(pl.Float32, pl.Float64).cast(pl.String).str.replace(".", ",", literal=True))


def _refuse_other_encoding(rows: pl.DataFrame, file: Path, dialect: Dialect) -> None:
    """Refuse cells in another encoding: the model would take a word that it knows for one that it does not."""
    import polars as pl

    texts = {name: rows[name] for name, kind in rows.schema.items() if kind == pl.String} if is_delimited(file) else {}
    if lost := [name for name, cells in texts.items() if cells.str.contains(UNREADABLE, literal=True).any()]:
        raise DataRefused(
            f"{file}: cells of {in_words(lost)} are no {dialect.encoding.upper()} text; save the table as CSV UTF-8 "
            "(of one from Windows: iconv -f cp1252 -t utf-8)"
        )
    others = {name: cells.filter(cells.str.contains(r"[^\x00-\x7F]")).unique() for name, cells in texts.items()}
    if lost := [name for name, cells in others.items() if any(_is_utf_8(cell, dialect.encoding) for cell in cells)]:
        raise DataRefused(
            f'{file}: cells of {in_words(lost)} are UTF-8 text, and the run has encoding = "{dialect.encoding}"; save '
            "the table with a UTF-8 mark, as Excel does with CSV UTF-8, or in that encoding"
        )


def _is_utf_8(cell: str, encoding: str) -> bool:
    """Whether a cell with other letters than A to Z, read in an encoding of a byte a character, is UTF-8 text."""
    try:
        return encoding != UTF_8 and bool(cell.encode(encoding).decode(UTF_8))
    except UnicodeError:
        return False


def _columns_of(reader: TableReader, table: Path, names: Sequence[str], keep: Sequence[str]) -> list[str]:
    """Return the columns to read: those of the model and those to keep, all of them where the model has no names."""
    for name in reader.needed:
        require_column(name, names, table, needed_by="the model")
    for name in keep:
        require_column(name, names, table, public=sorted(reader.needed), key=f"{named('keep')}: ")
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


def _predictions(
    run: FinishedRun, reader: TableReader, rows: pl.DataFrame, name: str, limit: float | None
) -> list[pl.Series]:
    import polars as pl

    if not hasattr(run, "classes_"):
        numbers = run.predictions_of(reader(rows, name)) if rows.height else np.empty(0)
        ends = [] if limit is None else [numbers - limit, numbers + limit]
        named = zip((PREDICTION, *_sets(run, limit)), (numbers, *ends), strict=True)
        return [pl.Series(column, of, dtype=pl.Float64) for column, of in named]
    classes, names, sets = run.classes_.tolist(), _probabilities(run), _sets(run, limit)
    if not rows.height:
        values = [(LABEL, classes), *((column, [0.0]) for column in names), *((column, [True]) for column in sets)]
        return [pl.Series(column, of).head(0) for column, of in values]
    read = reader(rows, name)
    labels = pl.Series(LABEL, np.asarray(run.student_.predict(read)).tolist())
    if not names:
        return [labels]
    shares = class_probabilities(run.student_, read, classes)
    columns = [labels, *(pl.Series(column, shares[:, place]) for place, column in enumerate(names))]
    if limit is None:
        return columns
    members = sets_of(shares, limit)
    return [*columns, *(pl.Series(column, members[:, place]) for place, column in enumerate(sets))]


def _sets(run: FinishedRun, limit: float | None) -> list[str]:
    if limit is not None and not hasattr(run, "classes_"):
        return list(ENDS)
    return [] if limit is None else [IN_SET.format(name) for name in run.classes_.tolist()]


def _probabilities(run: FinishedRun) -> list[str]:
    has_them = hasattr(run.student_, "predict_proba")
    return [PROBABILITY.format(name) for name in run.classes_.tolist()] if has_them else []
