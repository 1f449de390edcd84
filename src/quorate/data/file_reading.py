"""Files as bytes: which format a name tells of, whether the file is there, and what is inside a compressed one."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from quorate.errors import DataRefused

_PACKED = (".gz", ".xz")
_DAMAGED = (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error)
_OPENERS: dict[str, Callable[[Path, Literal["rb"]], Any]] = {".gz": gzip.open, ".xz": lzma.open}
_SPREADSHEETS = (".xls", ".xlsb", ".ods")


def format_of(path: str | Path) -> str:
    """Return the suffix that names the format, without that of the compression."""
    plain = Path(path)
    if plain.suffix.lower() in _PACKED:
        plain = plain.with_suffix("")
    return plain.suffix.lower()


def existing_file(path: str | Path) -> Path:
    """Return the path of a file that is there and may be read.

    Raises DataRefused if there is no such file, it is a folder or a spreadsheet, or there is no permission to read it.
    """
    file = Path(path)
    if file.is_dir():
        raise DataRefused(f"{path}: this is a folder; expected a file, such as a CSV file in it")
    if not file.is_file():
        raise DataRefused(f"{path}: there is no such file")
    if format_of(path) in _SPREADSHEETS:
        raise DataRefused(f"{path}: such spreadsheets are not read; save as .xlsx or as CSV UTF-8")
    try:
        file.open("rb").close()
    except PermissionError:
        raise DataRefused(f"no permission to read {path}; ask its owner for it") from None
    return file


def read_bytes(path: str | Path) -> bytes:
    """Read a file, decompressing ``.gz`` and ``.xz``.

    Raises DataRefused if there is no such file, or it is damaged.

    Examples
    --------
    >>> read_bytes("nowhere.csv.gz")
    Traceback (most recent call last):
    quorate.errors.DataRefused: nowhere.csv.gz: there is no such file
    """
    with reading(path), opened(path) as stream:
        content: bytes = stream.read()
    return content


def first_line(path: str | Path, *, most: int) -> bytes:
    r"""Read a file of text up to the end of its first line, and no byte further.

    `path`: the file; ``.gz`` and ``.xz`` are decompressed. `most`: bytes after which it is enough. Raises DataRefused
    as :func:`read_bytes`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "visits.csv").write_text("person,age\n007,39\n")
    ...     first_line(Path(folder, "visits.csv"), most=100)
    b'person,age\n'
    """
    file = existing_file(path)
    opener = _OPENERS.get(file.suffix.lower())
    with reading(path), file.open("rb", buffering=0) if opener is None else opener(file, "rb") as stream:
        line: bytes = stream.readline(most)
    return line


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Say in one line what keeps a file from being read: that it is damaged, or that the machine does not read it."""
    try:
        yield
    except _DAMAGED:
        raise damaged(path) from None
    except OSError as error:
        raise cannot_read(path, error) from None


def is_plain(path: Path) -> bool:
    """Tell by its name whether a file is not compressed."""
    return path.suffix.lower() not in _OPENERS


def opened(path: str | Path) -> Any:
    """Open a file to be read as bytes, decompressing ``.gz`` and ``.xz``; a context manager.

    Raises DataRefused if there is no such file.
    """
    file = existing_file(path)
    opener = _OPENERS.get(file.suffix.lower())
    return file.open("rb") if opener is None else opener(file, "rb")


def cannot_read(path: str | Path, error: BaseException) -> DataRefused:
    """Return what is said of a file that the machine does not read."""
    return DataRefused(f"{path}: the file cannot be read ({type(error).__name__})")


def damaged(path: str | Path) -> DataRefused:
    """Return what is said of a file that cannot be unpacked."""
    return DataRefused(f"{path}: the file is damaged, or not compressed as its name says")
