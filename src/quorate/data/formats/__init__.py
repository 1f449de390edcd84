"""Formats of files: a registry of one small class each, which says by which suffixes its files are known.

:func:`register_format` adds one, and so does an installed package that declares it (:mod:`quorate.plugins`). Begin with
``format``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorate.data.database import DatabaseQuery
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.file_reading import UNREAD, existing_file, format_of, is_partitioned
from quorate.data.formats.columnar import Arrow, Parquet, PartitionedParquet
from quorate.data.formats.delimited_text import DelimitedText
from quorate.data.formats.format import Database, Foreign, Format, Table, TableFormat, foreign, nearly, require_column
from quorate.data.formats.sparse import SparseArchive, Svmlight
from quorate.data.formats.spreadsheet import Spreadsheet
from quorate.errors import DataRefused, InvalidParameter
from quorate.plugins import FORMATS, added, load, package_of

_BY_SUFFIX: dict[str, Format] = {}
_DATABASE = Database()
_PARTITIONED = PartitionedParquet()
_DELIMITED, _SPREADSHEETS = DelimitedText().suffixes, Spreadsheet().suffixes


def register_format(new: Format) -> None:
    """Have files with the suffixes of a format read by it, here and on the command line.

    Raises
    ------
    InvalidParameter
        If a suffix has no dot or belongs to another format, or `new` has no ``read``.

    Examples
    --------
    >>> register_format(Parquet())
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: the suffix '.parquet' belongs to the format Parquet; choose another
    """
    if not isinstance(new, Format) or not new.suffixes:
        raise InvalidParameter(f"a format needs suffixes and a read method, got {type(new).__name__}")
    for suffix in new.suffixes:
        if suffix and (not suffix.startswith(".") or suffix != suffix.lower()):
            raise InvalidParameter(f"suffixes are small letters after a dot, such as '.csv', got {suffix!r}")
        if suffix in _BY_SUFFIX:
            holder = _BY_SUFFIX[suffix]
            other = type(holder.inner if isinstance(holder, Foreign) else holder).__name__
            raise InvalidParameter(f"the suffix {suffix!r} belongs to the format {other}; choose another")
    for suffix in new.suffixes:
        _BY_SUFFIX[suffix] = foreign(new)


for _shipped in (DelimitedText(), Parquet(), Arrow(), Spreadsheet(), SparseArchive(), Svmlight()):
    for _suffix in _shipped.suffixes:
        _BY_SUFFIX[_suffix] = _shipped


def format_for(path: str | Path | DatabaseQuery, dialect: Dialect = PLAIN) -> Format:
    """Return what reads a file of this name; what a name does not tell is svmlight text.

    `dialect`: how text tables are written; a ``.txt`` file is one where a separator is declared.
    """
    if isinstance(path, DatabaseQuery):
        return _DATABASE
    if is_partitioned(path):
        return _PARTITIONED
    suffix = format_of(path)
    if dialect != PLAIN and (suffix in _DELIMITED or (suffix == ".txt" and dialect.separator)):
        return DelimitedText(dialect)
    if dialect != PLAIN and suffix in _SPREADSHEETS:
        return Spreadsheet(dialect)
    if suffix not in _BY_SUFFIX and (declared := load(FORMATS, suffix.removeprefix("."))) is not None:
        [point] = added(FORMATS)[suffix.removeprefix(".")]
        if not isinstance(declared, Format) or suffix not in declared.suffixes:
            raise InvalidParameter(
                f"the package {package_of(point)} declares a format of {suffix} files, and what it declares is none: "
                f"it has no read, or no {suffix!r} among its suffixes; mend it or remove it"
            )
        version = "" if point.dist is None else f" {point.dist.version}"
        _BY_SUFFIX[suffix] = foreign(declared, f"{package_of(point)}{version}")  # for this suffix, and no other of its
    if suffix in UNREAD and suffix not in _BY_SUFFIX:
        raise DataRefused(f"{path}: {suffix} is not read; {UNREAD[suffix]}")
    return _BY_SUFFIX.get(suffix, _BY_SUFFIX[""])


def place_of(path: Any) -> Any:
    """Return what a format takes: a file that is there and may be read, where parts lie, or a query, which is asked."""
    if isinstance(path, DatabaseQuery):
        return path
    return Path(path) if is_partitioned(path) else existing_file(path)


def has_named_columns(path: str | Path | DatabaseQuery, dialect: Dialect = PLAIN) -> bool:
    """Tell by its name, and by how text tables are written, whether a file holds a table with named columns."""
    return isinstance(format_for(path, dialect), TableFormat)


def is_delimited(path: str | Path | DatabaseQuery) -> bool:
    """Tell by its name whether a file may be a text table, of which its owner may say how it is written."""
    return not isinstance(path, DatabaseQuery) and format_of(path) in (*_DELIMITED, ".txt")


def is_spreadsheet(path: str | Path | DatabaseQuery) -> bool:
    """Tell by its name whether a file is one of Excel."""
    return not isinstance(path, DatabaseQuery) and format_of(path) in _SPREADSHEETS


def table_suffixes() -> list[str]:
    """Return by which suffixes files of tables with named columns are known."""
    return [suffix for suffix, known in _BY_SUFFIX.items() if isinstance(known, TableFormat)]


def reader_of(path: str | Path | DatabaseQuery) -> tuple[str, str] | None:
    """Name what reads a file, and the package that brought it, where that is not quorate; a report says so."""
    format_ = format_for(path)
    if not isinstance(format_, Foreign) or isinstance(path, DatabaseQuery):
        return None
    return f"reader of {format_of(path)} files", f"{format_.name}, {format_.package or 'registered by the owner'}"


__all__ = [
    "DelimitedText",
    "Format",
    "Table",
    "TableFormat",
    "format_for",
    "has_named_columns",
    "is_delimited",
    "is_spreadsheet",
    "nearly",
    "place_of",
    "reader_of",
    "register_format",
    "require_column",
]
