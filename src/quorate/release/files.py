"""How a file is written so that a crash leaves no half of it."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write `content` to a file beside `path`, make it durable, and only then give it the name `path`."""
    write_beside(path, content, mode=mode).replace(path)
    sync(path.parent)


def write_beside(path: Path, content: bytes, *, mode: int) -> Path:
    """Write `content` to a hidden file beside `path`, durably, and return where it is."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
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
