"""Tables with named columns: CSV, TSV and Parquet files as polars frames.

A message of the reader below may quote the text it stumbled on; it is replaced by one that names the file and
the column alone.
"""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quorate.data.columns import listed, nearest
from quorate.errors import DataRefused, InvalidParameter

if TYPE_CHECKING:
    import polars as pl

BATCH_ROWS = 65_536
_LOOKED_AT = 1 << 16  # bytes: a binary file shows itself there
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = (".parquet", ".pq")
_PACKED = (".gz", ".xz")
_EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")


def format_of(path: str | Path) -> str:
    """Return the suffix that names the format, without that of the compression.

    Examples
    --------
    >>> format_of("visits.csv.gz"), format_of("a9a.xz")
    ('.csv', '')
    """
    plain = Path(path)
    if plain.suffix.lower() in _PACKED:
        plain = plain.with_suffix("")
    return plain.suffix.lower()


def is_table(path: str | Path) -> bool:
    """Tell by its name whether a file holds a table with named columns.

    Examples
    --------
    >>> is_table("visits.parquet"), is_table("a9a.xz")
    (True, False)
    """
    return format_of(path) in _SEPARATORS or format_of(path) in _PARQUET


def existing_file(path: str | Path) -> Path:
    """Return the path of a file that is there and may be read.

    Raises
    ------
    DataRefused
        If there is no such file, it is a folder or a spreadsheet, or there is no permission to read it.

    Examples
    --------
    >>> existing_file("nowhere.csv")
    Traceback (most recent call last):
    quorate.errors.DataRefused: nowhere.csv: there is no such file
    """
    found = Path(path)
    if found.is_dir():
        raise DataRefused(f"{path}: this is a folder; expected a file, such as a CSV file in it")
    if not found.is_file():
        raise DataRefused(f"{path}: there is no such file")
    if format_of(path) in _EXCEL:
        raise DataRefused(f"{path}: Excel is not read; save as CSV UTF-8")
    try:
        found.open("rb").close()
    except PermissionError:
        raise DataRefused(f"no permission to read {path}; ask its owner for it") from None
    return found


def read_bytes(path: str | Path) -> bytes:
    """Read a file, decompressing ``.gz`` and ``.xz``.

    Raises
    ------
    DataRefused
        If there is no such file, or it is damaged.

    Examples
    --------
    >>> read_bytes("nowhere.csv.gz")
    Traceback (most recent call last):
    quorate.errors.DataRefused: nowhere.csv.gz: there is no such file
    """
    found = existing_file(path)
    openers: dict[str, Callable[[Path, Literal["rb"]], Any]] = {".gz": gzip.open, ".xz": lzma.open}
    opener = openers.get(found.suffix.lower())
    try:
        if opener is None:
            return found.read_bytes()
        with opener(found, "rb") as stream:
            content: bytes = stream.read()
            return content
    except (OSError, EOFError, lzma.LZMAError) as error:
        if opener is None:
            raise DataRefused(f"{path}: the file cannot be read ({type(error).__name__})") from None
        raise DataRefused(f"{path}: the file is damaged, or not compressed as its name says") from None


def read_table(path: str | Path, *, text_columns: Sequence[str] = ()) -> pl.DataFrame:
    r"""Read a CSV, TSV or Parquet file.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv`` (each also ``.gz`` or ``.xz``; the first line names the columns) or ``.parquet``.
    text_columns : sequence of str
        Columns of a CSV file that are read as text whatever they look like: ids, so that ``007`` stays what it is.

    Returns
    -------
    polars.DataFrame
        A column's type is found from all its rows; an empty field is null.

    Raises
    ------
    DataRefused
        If the file is missing or damaged, two columns share a name, or a column of `text_columns` is not there.
    InvalidParameter
        If the name of the file names none of these formats.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "visits.csv")
    ...     _ = path.write_text("person,age\n007,39\n008,50\n")
    ...     read_table(path, text_columns=["person"]).rows()
    [('007', 39), ('008', 50)]
    """
    import polars as pl

    suffix = format_of(path)
    if suffix in _PARQUET:
        return _read_parquet(path, None)
    if suffix not in _SEPARATORS:
        raise InvalidParameter(f"{path}: expected a .csv, .tsv or .parquet file (.csv and .tsv also with .gz or .xz)")
    content, separator = read_bytes(path), _SEPARATORS[suffix]
    names = _header(content, separator, path)
    for name in text_columns:
        require_column(name, names, path)
    try:
        return pl.read_csv(
            io.BytesIO(content),
            separator=separator,
            infer_schema_length=None,  # all rows: guessing from the first ones fails on a later one
            schema_overrides=dict.fromkeys(text_columns, pl.String),
        )
    except pl.exceptions.PolarsError:
        fault = _no_text(content)
        raise DataRefused(
            f"{path}: {fault}"
            if fault
            else f"{path}: not a table with {len(names)} columns; a row has more fields than the header, or a "
            "quotation mark is not closed"
        ) from None


def _no_text(content: bytes) -> str | None:
    """Tell why these bytes are no UTF-8 text and what to do; None where they are. Nothing of them is quoted."""
    if not content.strip():
        return "the file is empty; expected a first line that names the columns, and rows"
    if content.startswith(b"PK\x03\x04"):
        return "Excel is not read, whatever the file's name; save as CSV UTF-8"
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text, not UTF-8; save as CSV UTF-8 (or: iconv -f utf-16 -t utf-8)"
    if b"\0" in content:
        return "a binary file, not text; save the table as CSV UTF-8"
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8 text; save as CSV UTF-8 (or: iconv -f latin1 -t utf-8)"
    return None


def _header(content: bytes, separator: str, path: str | Path) -> list[str]:
    import polars as pl

    try:
        first = pl.read_csv(
            io.BytesIO(content),
            separator=separator,
            has_header=False,
            n_rows=1,
            infer_schema=False,
            truncate_ragged_lines=True,
        )
    except pl.exceptions.PolarsError:
        fault = _no_text(content) or "its first line does not name the columns; write their names there"
        raise DataRefused(f"{path}: {fault}") from None
    if b"\0" in content[:_LOOKED_AT]:  # read as text all the same
        raise DataRefused(f"{path}: {_no_text(content)}")
    names = ["" if name is None else str(name) for name in first.row(0)]
    if not any(name.strip() for name in names):
        raise DataRefused(
            f"{path}: {_no_text(content) or 'its first line does not name the columns; write their names there'}"
        )
    other = next((each for each in ";\t|," if each != separator and each in names[0]), None)
    if len(names) == 1 and other is not None:
        fix = "save with tabs, or name it .csv" if separator == "\t" else "save with commas (or .tsv for tabs)"
        raise DataRefused(f"{path}: the columns look separated by {other!r}; {fix}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataRefused(f"{path}: more than one column is called {listed(twice)}; the first line must name each once")
    return names


def _read_parquet(path: str | Path, columns: Sequence[str] | None) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(existing_file(path), columns=None if columns is None else list(columns))
    except pl.exceptions.PolarsError:
        raise DataRefused(f"{path}: the file is damaged, or not Parquet as its name says") from None


def column_names(path: str | Path) -> list[str]:
    r"""Name the columns of a table without reading its rows.

    Raises
    ------
    DataRefused
        If the file is missing or damaged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "visits.csv").write_text("person,age\n007,39\n")
    ...     column_names(Path(folder, "visits.csv"))
    ['person', 'age']
    """
    import polars as pl

    if format_of(path) not in _PARQUET:
        return _header(read_bytes(path), _SEPARATORS.get(format_of(path), ","), path)
    try:
        return pl.scan_parquet(existing_file(path)).collect_schema().names()
    except pl.exceptions.PolarsError:
        raise DataRefused(f"{path}: the file is damaged, or not Parquet as its name says") from None


def read_batches(
    path: str | Path, *, batch_rows: int = BATCH_ROWS, columns: Sequence[str] | None = None
) -> Iterator[pl.DataFrame]:
    r"""Read a table in batches of rows; of a Parquet file, never more than a batch is held.

    Parameters
    ----------
    path : path
        As in :func:`read_table`. A CSV file is read whole first, since its types come from all its rows.
    batch_rows : int
        Rows a batch, at least 1.
    columns : sequence of str, or None
        The columns to read, in this order; None reads all.

    Yields
    ------
    polars.DataFrame
        With `batch_rows` rows, the last one with what is left.

    Raises
    ------
    DataRefused
        If the file is missing or damaged, or a column is not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    ...     [batch.rows() for batch in read_batches(Path(folder, "t.csv"), batch_rows=2, columns=["b"])]
    [[(2,), (4,)], [(6,)]]
    """
    import polars as pl

    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise InvalidParameter(f"batch_rows: got {batch_rows!r}; expected a whole number of at least 1")
    names = column_names(path)
    chosen = names if columns is None else list(columns)
    for name in chosen:
        require_column(name, names, path)
    if format_of(path) not in _PARQUET:
        yield from read_table(path).select(chosen).iter_slices(batch_rows)
        return
    scan = pl.scan_parquet(existing_file(path))
    try:
        total = int(scan.select(pl.len()).collect().item())
        for start in range(0, total, batch_rows):
            yield scan.select(chosen).slice(start, batch_rows).collect()
    except pl.exceptions.PolarsError:
        raise DataRefused(f"{path}: the file is damaged, or not Parquet as its name says") from None


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
