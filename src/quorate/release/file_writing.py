"""How a file is written so that a crash leaves no half of it."""

from __future__ import annotations

import os
from pathlib import Path

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger.ledger_files import keep_owner


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write `content` to a file beside `path`, make it durable, and only then give it the name `path`."""
    write_beside(path, content, mode=mode).replace(path)
    sync(path.parent)


def write_beside(path: Path, content: bytes, *, mode: int) -> Path:
    """Write `content` to a hidden file beside `path`, durably, and return where it is.

    It has the owner of the file that it is to replace, also where root writes it.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        keep_owner(file.fileno(), path)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return beside


def sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def file_to_write(path: object, example: str, *, charged: str = "nothing more was charged") -> Path:
    """Return the path of a file that is to be written, and refuse a folder, or one in a folder that is not there.

    Raises InvalidParameter, PreconditionFailed naming the path and a file to give instead.
    """
    if not isinstance(path, str | Path):
        raise InvalidParameter(f"path must be the path of a file, got {type(path).__name__}; such as {example!r}")
    page = Path(path)
    if page.is_dir():
        raise PreconditionFailed(f"{page} is a folder; name a file in it, such as {page / example}", charged=charged)
    if not page.parent.is_dir():
        raise PreconditionFailed(
            f"there is no folder {page.parent} for {page.name}; create it first, or name another place",
            charged=charged,
        )
    return page
