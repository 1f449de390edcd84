"""Files as bytes: which format a name tells of, whether the file is there, and what is inside a compressed one."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from quorate.data.workspace import Workspace, cannot_hold
from quorate.errors import DataRefused

_PACKED = (".gz", ".xz")
_OPENERS: dict[str, Callable[[Path, Literal["rb"]], Any]] = {".gz": gzip.open, ".xz": lzma.open}
_AT_ONCE = 1 << 22  # bytes
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
    opener = _OPENERS.get(found.suffix.lower())
    try:
        if opener is None:
            return found.read_bytes()
        with opener(found, "rb") as stream:
            content: bytes = stream.read()
            return content
    except (OSError, EOFError, lzma.LZMAError) as error:
        if opener is None:
            raise DataRefused(f"{path}: the file cannot be read ({type(error).__name__})") from None
        raise _damaged(path) from None


def is_plain(path: Path) -> bool:
    """Tell by its name whether a file is not compressed.

    Examples
    --------
    >>> is_plain(Path("visits.csv")), is_plain(Path("visits.csv.gz"))
    (True, False)
    """
    return path.suffix.lower() not in _OPENERS


def unpacked(path: Path, workspace: Workspace) -> Path:
    """Return a file that is not compressed: the one that was given, or what it holds, in the workspace.

    Raises
    ------
    DataRefused
        As :func:`read_bytes`.
    """
    found = existing_file(path)
    if is_plain(found):
        return found
    made = workspace.path / "unpacked"
    with made.open("wb") as target:
        try:
            with _OPENERS[found.suffix.lower()](found, "rb") as stream:
                while part := stream.read(_AT_ONCE):
                    try:
                        target.write(part)
                    except OSError as error:
                        raise cannot_hold(workspace.path, error) from None
        except (OSError, EOFError, lzma.LZMAError):
            raise _damaged(path) from None
    return made


def _damaged(path: str | Path) -> DataRefused:
    return DataRefused(f"{path}: the file is damaged, or not compressed as its name says")
