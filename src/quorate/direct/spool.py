"""Coordinates of private rows that memory does not hold: made once, in blocks, in a file without a name.

What is kept of a row are its integer coordinates, in 32 bits each, at the place that its unit has among all units; of
sparse rows what they are made of, block by block. Up to a bound the bytes are held in memory; beyond it in a file
that has no name from the moment it is opened, so that a process that is killed leaves nothing. All of it is written
before the charge. A round reads it block by block and adds integers, so that neither the order of the blocks nor where
one ends changes a sum.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from quorate.data.feature_maps.coordinates import FactoredRows, PublicCoordinates
from quorate.data.rows import take
from quorate.deferred import sparse
from quorate.direct.contributions import (
    GROUP_ROWS,
    SLOPE_BITS,
    Grid,
    lengths_of,
    of_groups,
    of_records,
    of_stretches,
    slopes,
)
from quorate.direct.rounds import PrivateUnits
from quorate.errors import PreconditionFailed
from quorate.run.usable_rows import AT_ONCE, CELLS, UsableRows, Watching
from quorate.types import FloatArray, IntArray

_NO_FILE = -1
IN_MEMORY = 1 << 28  # bytes that are held without a file
WIDE = np.iinfo(np.int32).min  # as its first coordinate: a row whose coordinates are no numbers; no integer of one is


class Spool:
    """Bytes by their place: in memory as far as `size` is small, else in a file that has no name.

    `size`: bytes there will be, at least; the room for them is taken at once. `folder`: where the file lies, one that
    its owner alone may enter; by default a temporary one that is gone at once. Raises PreconditionFailed if the disk
    has no room, now or when more is written.
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
        """Return an array that was written from this place on."""
        found: Any = np.empty(shape, dtype)
        if not found.size:
            return found
        view = memoryview(found.reshape(-1).view(np.uint8))
        if self._held is not None:
            view[:] = self._held[at : at + len(view)]
            return found
        while len(view):
            done = os.preadv(self._file, [view], at)
            if not done:
                raise PreconditionFailed("the coordinates of private rows were cut off; start again")
            view, at = view[done:], at + done
        return found

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


@dataclass(slots=True, eq=False)
class DenseUnits:
    """Rows of as many integers each, ordered by their units; a class of −1 says that a row is none.

    `spool`: integer coordinates, 32 bits each, row by row. `width`: coordinates of a row. `codes`: classes. `starts`:
    where each unit begins; None where every row is a unit.
    """

    spool: Spool
    width: int
    codes: IntArray
    starts: IntArray | None

    def put(self, z: FloatArray, codes: IntArray, places: IntArray) -> None:
        """Write integer coordinates of rows, each at its place."""
        order = np.argsort(places)
        rows = np.where(np.isfinite(z), z, 0.0).astype(np.int32)
        rows[~np.isfinite(z).all(axis=1), 0] = WIDE
        rows, ranked = np.ascontiguousarray(rows[order]), places[order]
        self.codes[places] = codes
        ends = np.append(np.flatnonzero(np.diff(ranked) != 1) + 1, len(ranked))
        first = 0
        for end in ends.tolist():
            if end > first:
                self.spool.write(rows[first:end], int(ranked[first]) * self.width * 4)
            first = end

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""

        def summed(weights: FloatArray) -> IntArray:
            parts = self._of_records(weights, grid) if self.starts is None else self._of_units(weights, grid)
            total = np.zeros((self.width, weights.shape[1]), dtype=np.int64)
            for part in parts:
                total += part
            return total

        return summed

    @property
    def _step(self) -> int:
        return max(1, CELLS // self.width)

    def _rows(self, first: int, last: int) -> FloatArray:
        stored = self.spool.read(first * self.width * 4, (last - first, self.width), np.int32)
        z = stored.astype(np.float64)
        z[stored[:, 0] == WIDE] = np.nan
        return np.asarray(z)

    def _of_records(self, weights: FloatArray, grid: Grid) -> Iterator[IntArray]:
        for first in range(0, len(self.codes), self._step):
            codes = self.codes[first : first + self._step]
            z = self._rows(first, first + len(codes))
            if (none := codes < 0).any():
                z, codes = z[~none], codes[~none]
            yield of_records(z, lengths_of(z), codes, weights, grid)

    def _of_units(self, weights: FloatArray, grid: Grid) -> Iterator[IntArray]:
        assert self.starts is not None  # noqa: S101 - the caller's condition
        unit, starts = 0, self.starts
        while unit < len(starts) - 1:
            stop = int(np.searchsorted(starts, starts[unit] + self._step, side="right")) - 1
            if stop <= unit:  # one unit alone has more rows
                yield self._of_long_unit(int(starts[unit]), int(starts[unit + 1]), weights, grid)
                unit += 1
                continue
            first, last = int(starts[unit]), int(starts[stop])
            there = self.codes[first:last] >= 0
            z, codes = self._rows(first, last)[there], self.codes[first:last][there]
            begins = np.concatenate([[0], np.cumsum(there)])[starts[unit : stop + 1] - first]
            begins = np.append(begins[:-1][np.diff(begins) > 0], begins[-1])  # without units that have no row
            if len(codes):
                yield of_groups(z, codes, begins, weights, grid)
            unit = stop

    def _of_long_unit(self, first: int, last: int, weights: FloatArray, grid: Grid) -> IntArray:
        """Return one unit's integers, its usable rows read 1,024 at once as they are counted from the first."""
        codes = self.codes[first:last]
        codes = codes[codes >= 0]

        def stretches() -> Iterator[tuple[FloatArray, FloatArray]]:
            z, done = np.empty((0, self.width)), 0
            for start in range(first, last, self._step):
                end = min(start + self._step, last)
                z = np.concatenate([z, self._rows(start, end)[self.codes[start:end] >= 0]])
                while len(z) >= GROUP_ROWS or (end == last and len(z)):
                    own, z = z[:GROUP_ROWS], z[GROUP_ROWS:]
                    slope = slopes(own, codes[done : done + len(own)], weights, grid.bits)
                    yield own, np.rint(slope * 2.0**SLOPE_BITS)
                    done += len(own)

        if not len(codes):
            return np.zeros((self.width, weights.shape[1]), dtype=np.int64)
        return of_stretches(stretches(), len(codes), (self.width, weights.shape[1]), grid)


@dataclass(slots=True, eq=False)
class SparseRecords:
    """Sparse rows, each a unit of its own: images and lengths of the coordinates, or coordinates, block by block.

    `spool`: their arrays, one behind the other. `model`: without a row: what a block is, beside its arrays. `blocks`:
    of each block the places, shapes and types of its arrays, and the classes of its rows.
    """

    spool: Spool
    model: Any
    blocks: list[tuple[list[tuple[int, tuple[int, ...], Any]], IntArray]] = field(default_factory=list)

    def put(self, z: Any, codes: IntArray) -> None:
        """Write some rows."""
        images = z.images if isinstance(z, FactoredRows) else z
        arrays = [images.data, images.indices, images.indptr]
        arrays += [z.lengths] if isinstance(z, FactoredRows) else []
        parts = [(self.spool.append(np.ascontiguousarray(part)), part.shape, part.dtype) for part in arrays]
        self.blocks.append((parts, codes))

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""

        def summed(weights: FloatArray) -> IntArray:
            total = np.zeros((self.model.shape[1], weights.shape[1]), dtype=np.int64)
            for parts, codes in self.blocks:
                z = self._block([self.spool.read(*part) for part in parts], len(codes))
                total += of_records(z, lengths_of(z), codes, weights, grid)
            return total

        return summed

    def put_blocks(self, blocks: Iterator[tuple[IntArray, Any]], codes: IntArray, form: Callable[[Any], Any]) -> None:
        """Write all rows, of blocks of their places and numbers; small blocks are put together."""
        held: list[tuple[IntArray, Any]] = []

        def put_held() -> None:
            if held:
                places = np.concatenate([each for each, _ in held])
                self.put(form(sparse.vstack([numbers for _, numbers in held], format="csr")), codes[places])
                held.clear()

        for places, numbers in blocks:
            held.append((places, numbers))
            if sum(len(at) for at, _ in held) >= AT_ONCE or sum(rows.nnz for _, rows in held) >= CELLS:
                put_held()
        put_held()

    def _block(self, arrays: list[Any], n_rows: int) -> Any:
        factored = isinstance(self.model, FactoredRows)
        width = (self.model.images if factored else self.model).shape[1]
        images = sparse.csr_matrix(tuple(arrays[:3]), shape=(n_rows, width))
        return FactoredRows(images, self.model.matrix, self.model.bound, arrays[3]) if factored else images


def units_of(
    coordinates: PublicCoordinates,
    private: UsableRows,
    *,
    folder: Path | None = None,
    watch: Watching | None = None,
) -> PrivateUnits | DenseUnits | SparseRecords:
    """Make the coordinates of all rows that can be used, block by block, for the rounds to read.

    `coordinates`: of the plan. `private`: the rows, which are read once. `folder`: where what memory does not hold may
    lie; by default a temporary folder. `watch`: ``watch(done, total)``, in rows. Raises PreconditionFailed if the disk
    has no room for them.
    """
    schema = private.table.schema
    form = coordinates.for_rounds if private.units is None else coordinates
    with np.errstate(all="ignore"):  # a warning about what a private row holds would tell of it
        numbers = schema.numbers(take(schema.pool, np.arange(1)))
        model = form(numbers)[:0]
        if isinstance(model, np.ndarray):
            widest = max(model.shape[1], 1 if sparse.issparse(numbers) else numbers.shape[1])
            units = _dense(private, model.shape[1], folder)
            place = np.full(len(private.codes), -1, dtype=np.int64)
            place[private.candidates] = np.arange(len(units.codes))
            for rows, numbers in private.blocks(widest=widest, watch=watch):
                units.put(form(numbers), private.codes[rows], place[rows])
            return units
        blocks = private.blocks(watch=watch)
        if private.units is None:
            records = SparseRecords(Spool(0, folder), model)
            records.put_blocks(blocks, private.codes, form)
            return records
        return _held(private, blocks, form)


def _dense(private: UsableRows, width: int, folder: Path | None) -> DenseUnits:
    """Take room for the coordinates of each row that has a class and a unit."""
    candidates = private.candidates
    spool = Spool(4 * width * len(candidates), folder)
    codes, starts = np.full(len(candidates), -1, dtype=np.int64), None
    if private.units is not None:
        whose = private.units[candidates]
        starts = np.concatenate([np.flatnonzero(np.diff(whose, prepend=-1)), [len(whose)]]).astype(np.int64)
    return DenseUnits(spool, width, codes, starts)


def _held(private: UsableRows, blocks: Iterator[tuple[IntArray, Any]], form: Callable[[Any], Any]) -> PrivateUnits:
    """Return sparse rows of units of several rows, in memory as they came."""
    assert private.units is not None  # noqa: S101 - the caller's condition
    parts = [(rows, form(numbers)) for rows, numbers in blocks]
    rows = np.concatenate([at for at, _ in parts])
    order = np.argsort(private.units[rows], kind="stable")
    whose = private.units[rows][order]
    starts = np.concatenate([np.flatnonzero(np.diff(whose, prepend=-1)), [len(whose)]]).astype(np.int64)
    return PrivateUnits(sparse.vstack([z for _, z in parts], format="csr")[order], private.codes[rows][order], starts)
