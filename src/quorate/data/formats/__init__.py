"""Formats of files: a registry of one small class each.

A format says by which suffixes its files are known and how they are read; :func:`register_format` adds one, and so
does an installed package that declares it (:mod:`quorate.plugins`). Here
belongs whatever turns a file into rows; what rows must look like belongs to the files beside this folder. Begin with
``format``.
"""

from __future__ import annotations

from pathlib import Path

from quorate.data.files import format_of
from quorate.data.formats.delimited_text import DelimitedText
from quorate.data.formats.format import Format, Table, TableFormat, require_column
from quorate.data.formats.parquet import Parquet
from quorate.data.formats.sparse_archive import SparseArchive
from quorate.data.formats.svmlight import Svmlight
from quorate.errors import InvalidParameter
from quorate.plugins import FORMATS, load

_BY_SUFFIX: dict[str, Format] = {}


def register_format(added: Format) -> None:
    """Have files with the suffixes of a format read by it, here and on the command line.

    Raises
    ------
    InvalidParameter
        If a suffix has no dot or belongs to another format, or `added` has no ``read``.

    Examples
    --------
    >>> register_format(Parquet())
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: the suffix '.parquet' belongs to the format Parquet; choose another
    """
    if not isinstance(added, Format) or not added.suffixes:
        raise InvalidParameter(f"a format needs suffixes and a read method, got {type(added).__name__}")
    for suffix in added.suffixes:
        if suffix and (not suffix.startswith(".") or suffix != suffix.lower()):
            raise InvalidParameter(f"suffixes are small letters after a dot, such as '.csv', got {suffix!r}")
        if suffix in _BY_SUFFIX:
            other = type(_BY_SUFFIX[suffix]).__name__
            raise InvalidParameter(f"the suffix {suffix!r} belongs to the format {other}; choose another")
    for suffix in added.suffixes:
        _BY_SUFFIX[suffix] = added


for _shipped in (DelimitedText(), Parquet(), SparseArchive(), Svmlight()):
    register_format(_shipped)


def format_for(path: str | Path) -> Format:
    """Return what reads a file of this name; what a name does not tell is svmlight text.

    Examples
    --------
    >>> [type(format_for(name)).__name__ for name in ("visits.csv.gz", "visits.parquet", "rows.npz", "a9a.xz")]
    ['DelimitedText', 'Parquet', 'SparseArchive', 'Svmlight']
    """
    suffix = format_of(path)
    if suffix not in _BY_SUFFIX and (declared := load(FORMATS, suffix.removeprefix("."))) is not None:
        register_format(declared)
    return _BY_SUFFIX.get(suffix, _BY_SUFFIX[""])


__all__ = ["Format", "Table", "TableFormat", "format_for", "register_format", "require_column"]
