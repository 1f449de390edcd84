"""Files as bytes: which format a name tells of, which files it means, and what is inside a compressed one."""

from __future__ import annotations

import glob
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from quorate.errors import DataRefused

_PACKED = (".gz", ".xz")
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)
_OPENERS: dict[str, Callable[[Path, Literal["rb"]], Any]] = {".gz": gzip.open, ".xz": lzma.open}
_AS_EXCEL, _AS_TABLE = "save it as .xlsx or CSV", "save the table as CSV or Parquet"
#: What is no table that is read, unless a package or the owner brings a reader, and what to do with it.
UNREAD = MappingProxyType({
    **dict.fromkeys((".xls", ".xlsb", ".ods", ".numbers"), _AS_EXCEL),
    **dict.fromkeys((".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt", ".rds", ".rda", ".rdata"), _AS_TABLE),
    **dict.fromkeys((".json", ".jsonl", ".ndjson", ".xml", ".html", ".docx", ".doc", ".pdf"), _AS_TABLE),
    **dict.fromkeys((".mdb", ".accdb", ".orc", ".avro", ".h5", ".hdf5", ".npy", ".pkl", ".pickle"), _AS_TABLE),
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz", ".bz2", ".zst"), "unpack it"),
})  # fmt: skip
PARQUET = (".parquet", ".pq")

# Folders whose names polars does not take, by device and inode, and how many are kept open at the most.
_OPEN_FOLDERS: dict[tuple[int, int], int] = {}
_MOST_OPEN = 64


def format_of(path: str | Path) -> str:
    """Return the suffix that names the format, without that of the compression."""
    plain = Path(path)
    if plain.suffix.lower() in _PACKED:
        plain = plain.with_suffix("")
    return plain.suffix.lower()


def is_partitioned(path: str | Path) -> bool:
    """Tell whether a path is a folder or a pattern of names, such as ``visits/*.parquet``, and no file."""
    place = Path(path)
    return place.is_dir() or (glob.has_magic(str(path)) and not place.exists())


def files_of(path: Path) -> list[Path]:
    """Return the file; of a folder or a pattern its Parquet files at any depth, in the order of their names, without
    those that begin with a dot or, without ``=``, an underscore.
    """
    if not is_partitioned(path):
        return [path]
    base = base_of(path)
    pattern = str(path.relative_to(base))
    matched = [base] if pattern == "." else base.glob(pattern)
    files = {file for place in matched for file in (place.rglob("*") if place.is_dir() else [place])}
    parts = [file for file in files if file.suffix.lower() in PARQUET and not _is_hidden(file.relative_to(base))]
    return sorted((file for file in parts if file.is_file()), key=lambda file: file.relative_to(base).parts)


def base_of(path: Path) -> Path:
    """Return the folder below which names tell of parts: all of a path that is no pattern."""
    if path.is_dir():
        return path
    plain = next(place for place, name in enumerate(path.parts) if glob.has_magic(name))
    return Path(*path.parts[:plain])


def _is_hidden(path: Path) -> bool:
    return any(name.startswith(".") or (name.startswith("_") and "=" not in name) for name in path.parts)


def bytes_of(path: Path) -> int:
    """Return the bytes of a file, or of all parts."""
    return sum(file.stat().st_size for file in files_of(path))


def state_of(path: Path) -> tuple[tuple[str, int, int, int], ...]:
    """Return by what a file that was changed meanwhile is known; of a folder or a pattern each of its parts."""
    return tuple((str(file), s.st_ino, s.st_size, s.st_mtime_ns) for file in files_of(path) for s in [file.stat()])


def existing_file(path: str | Path) -> Path:
    """Return the path of a file that is there and may be read; refuse a folder too."""
    file = Path(path)
    if file.is_dir():
        raise DataRefused(f"{path}: this is a folder; expected a file, such as a CSV file in it")
    if not file.is_file():
        raise DataRefused(f"{path}: there is no such file; correct the path, or put the file there")
    try:
        file.open("rb").close()
    except PermissionError:
        raise DataRefused(f"no permission to read {path}; ask its owner for it") from None
    return file


def polars_source(path: str | Path) -> Any:
    """Return what polars reads a file by: its path, or its bytes where polars can be given no path."""
    named = polars_path(path)
    if _is_utf8(Path(path)) or (_is_utf8(named) and named.exists()):  # without /proc nothing is there
        return named
    return io.BytesIO(Path(path).read_bytes())


def polars_path(path: str | Path) -> Path:
    """Return a path by which polars reads or writes a file; where a folder is no UTF-8, by an open descriptor."""
    path = Path(path)
    if _is_utf8(path) or not path.parent.is_dir():
        return path
    status = path.parent.stat()
    folder = (status.st_dev, status.st_ino)
    if folder not in _OPEN_FOLDERS:
        if len(_OPEN_FOLDERS) == _MOST_OPEN:
            return path
        _OPEN_FOLDERS[folder] = os.open(path.parent, os.O_RDONLY)
    return Path(f"/proc/self/fd/{_OPEN_FOLDERS[folder]}", path.name)


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def read_bytes(path: str | Path) -> bytes:
    """Read a file, decompressing ``.gz`` and ``.xz``; DataRefused if there is none, or it is damaged."""
    with reading(path), opened(path) as stream:
        content: bytes = stream.read()
    return content


def first_line(path: str | Path, *, most: int) -> bytes:
    """Read a file of text, perhaps ``.gz`` or ``.xz``, up to the end of its first line or `most` bytes, and no byte
    further.
    """
    with reading(path), opened(path, buffering=0) as stream:
        line: bytes = stream.readline(most)
    return line


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Say in one line what keeps a file from being read: that it is damaged, or that the machine does not read it."""
    try:
        yield
    except _DAMAGED:
        raise DataRefused(f"{path}: the file is damaged, or not compressed as its name says") from None
    except OSError as error:
        raise DataRefused(f"{path}: the file cannot be read ({type(error).__name__})") from None


def is_plain(path: Path) -> bool:
    """Tell by its name whether a file is not compressed."""
    return path.suffix.lower() not in _OPENERS


def opened(path: str | Path, *, buffering: int = -1) -> Any:
    """Open a file to be read as bytes, decompressing ``.gz`` and ``.xz``; a context manager. DataRefused if there is
    none.
    """
    file = existing_file(path)
    opener = _OPENERS.get(file.suffix.lower())
    return file.open("rb", buffering=buffering) if opener is None else opener(file, "rb")
