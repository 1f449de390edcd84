"""Rows that memory does not hold, as bytes in a file without a name: a process that is killed leaves nothing."""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from quorate.errors import PreconditionFailed

_NO_FILE = -1
IN_MEMORY = 1 << 28  # bytes that are held without a file


class Spool:
    """Bytes by their place: in memory as far as `size` is small, else in a file that has no name.

    The room is taken at once, in a `folder` that its owner alone may enter. Raises PreconditionFailed if the disk has
    no room, now or when more is written.
    """

    def __init__(self, size: int, folder: Path | None = None) -> None:
        self._folder, self.size = folder, 0
        self._most = IN_MEMORY
        self._held: bytearray | None = bytearray(size if size <= self._most else 0)
        self._file = _NO_FILE
        if size > self._most:
            self._to_file(size)

    @property
    def is_file(self) -> bool:
        """Whether it is more than memory holds."""
        return self._file != _NO_FILE

    def write(self, content: Any, at: int) -> None:
        """Write the bytes of an array from a place on."""
        flat: Any = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        view = memoryview(flat)
        self.size = max(self.size, at + len(view))
        if self._held is not None and self.size > self._most:
            self._to_file(self.size)
        if self._held is not None:
            self._held[at : at + len(view)] = view
            return
        try:
            while len(view):
                done = os.pwrite(self._file, view, at)
                view, at = view[done:], at + done
        except OSError as error:
            raise self._no_room(error) from None

    def append(self, content: Any) -> int:
        """Write an array behind all others, and return its place."""
        at = self.size
        self.write(content, at)
        return at

    def read(self, at: int, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an array that was written from this place on; what is held in memory is not copied, and read-only."""
        if self._held is not None:
            held = memoryview(self._held).toreadonly()
            return np.frombuffer(held, dtype, prod(shape), at).reshape(shape) if prod(shape) else np.empty(shape, dtype)
        array: Any = np.empty(shape, dtype)
        view = memoryview(array.reshape(-1).view(np.uint8))
        while len(view):
            done = os.preadv(self._file, [view], at)
            if not done:
                raise PreconditionFailed("the coordinates of private rows were cut off; start again")
            view, at = view[done:], at + done
        return array

    def _to_file(self, size: int) -> None:
        held, self._held = self._held, None
        try:
            self._file = _without_name(self._folder)
            weakref.finalize(self, os.close, self._file)
            _take_room(self._file, size)
        except OSError as error:
            raise self._no_room(error) from None
        if self.size and held:
            self.write(np.frombuffer(held, dtype=np.uint8), 0)

    def _no_room(self, error: OSError) -> PreconditionFailed:
        where = "the folder for temporary files (TMPDIR)" if self._folder is None else str(self._folder)
        return PreconditionFailed(
            f"{where}: the coordinates of the private rows cannot be kept there ({os.strerror(error.errno or 0)}); "
            "make room on that disk"
        )


def _take_room(descriptor: int, size: int) -> None:
    """Have the disk keep so many bytes for a file, where it can be asked to."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):  # which says no more than that it cannot
            raise


def _without_name(folder: Path | None) -> int:
    """Open a file that is nowhere to be found, in a folder of its owner alone; return its descriptor."""
    place = Path(tempfile.mkdtemp()) if folder is None else folder  # 0700
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            return os.dup(file.fileno())
    finally:
        if folder is None:
            place.rmdir()
