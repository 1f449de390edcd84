"""Rows that memory does not hold, as bytes in a file without a name: a process that is killed leaves nothing."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.errors import PreconditionFailed

_NO_FILE = -1
IN_MEMORY = 1 << 28  # bytes that are held without a file


def most_held(memory: int | None) -> int:
    """Return the bytes of a spool that are held in memory where private rows may take `memory`: half of it."""
    return IN_MEMORY if memory is None else memory // 2


class Spool:
    """Bytes by their place: in memory up to `most`, by default :data:`IN_MEMORY`, else in a file without a name in
    `folder`, its owner's alone. The room is taken at once, or PreconditionFailed.
    """

    def __init__(self, size: int, folder: Path | None = None, *, most: int | None = None) -> None:
        self._folder, self.size = folder, 0
        self._most = IN_MEMORY if most is None else most
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
        self._write_to_file(view, at)

    def write_rows(self, rows: Any, at: int, places: NDArray[np.integer[Any]]) -> None:
        """Write row i of an array ``places[i]`` rows behind `at`, within the size taken; places ascend."""
        if not len(rows):
            return
        flat: Any = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
        size = flat.shape[1]
        self.size = max(self.size, at + (int(places[-1]) + 1) * size)
        if self._held is not None:
            behind = np.frombuffer(self._held, np.uint8, offset=at)
            behind[: len(behind) // size * size].reshape(-1, size)[places] = flat
            return
        view = memoryview(flat.reshape(-1))
        edges = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(rows)]
        for begin, (first, end) in zip(places[edges[:-1]].tolist(), pairwise(edges), strict=True):
            self._write_to_file(view[first * size : end * size], at + begin * size)

    def _write_to_file(self, view: memoryview, at: int) -> None:
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
                raise PreconditionFailed(
                    "a temporary file of the private rows is shorter than what was written to it; type the same "
                    "command again"
                )
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
            f"{where}: what is made of the private rows cannot be kept there ({os.strerror(error.errno or 0)}); "
            "make room on that disk, and type the same command again"
        )


class HashedRows:
    """Rows of `width` bytes that begin with a hash, put aside block by block, and read in parts by their first byte."""

    def __init__(self, width: int, folder: Path | None = None, *, most: int | None = None) -> None:
        self._spool, self._width = Spool(0, folder, most=sys.maxsize if most is None else most), width
        self._blocks: list[tuple[int, NDArray[np.int32]]] = []  # its place; where the rows of each first byte begin
        self.n_rows = 0

    def append(self, rows: NDArray[np.uint8]) -> None:
        """Put a block aside, ``(n, width)``."""
        order = np.argsort(rows[:, 0], kind="stable")
        begins = np.searchsorted(rows[order, 0], np.arange(257)).astype(np.int32)
        self._blocks.append((self._spool.append(rows[order]), begins))
        self.n_rows += len(rows)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the blocks as they were put aside, each in the order of its first bytes."""
        for at, begins in self._blocks:
            yield self._spool.read(at, (int(begins[-1]), self._width), np.uint8)

    def parts(self, at_once: int) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
        """Yield all rows whose first byte is in ``[low, high)``, and these two, from the least on; about so many rows,
        those of one block and first byte in their order.
        """
        for low, high in parts_of_bytes(self.n_rows, at_once):
            yield low, high, np.concatenate([np.empty((0, self._width), dtype=np.uint8), *self._between(low, high)])

    def _between(self, low: int, high: int) -> Iterator[NDArray[np.uint8]]:
        for at, begins in self._blocks:
            first, last = int(begins[low]), int(begins[high])
            if last > first:
                yield self._spool.read(at + first * self._width, (last - first, self._width), np.uint8)


def parts_of_bytes(n_rows: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Cut the 256 values of a byte into ranges that about so many rows of `n_rows` hashes are in."""
    return pairwise(np.linspace(0, 256, min(256, 1 + n_rows // at_once) + 1).astype(np.int64).tolist())


def _take_room(descriptor: int, size: int) -> None:
    """Have the disk keep so many bytes for a file, where it can be asked to."""
    if not hasattr(os, "posix_fallocate"):
        os.ftruncate(descriptor, size)
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):  # which says no more than that it cannot
            raise
        os.ftruncate(descriptor, size)  # what nobody writes is read as zeros


def _without_name(folder: Path | None) -> int:
    """Open a file that is nowhere to be found, in a folder of its owner alone; return its descriptor."""
    place = Path(tempfile.mkdtemp()) if folder is None else folder  # 0700
    try:
        with tempfile.TemporaryFile(dir=place, buffering=0) as file:
            return os.dup(file.fileno())
    finally:
        if folder is None:
            place.rmdir()
