"""Coordinates of private rows that memory does not hold: made once, in blocks, in a file without a name.

What is kept of a row are its integer coordinates, in 32 bits each, at the place that its unit has among all units; of
sparse rows what they are made of, block by block. Up to a bound the bytes are held in memory; beyond it in a file
that has no name from the moment it is opened, so that a process that is killed leaves nothing. All of it is written
before the charge. A round reads it block by block and adds integers, so that neither the order of the blocks nor where
one ends changes a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from quorate.data.feature_maps.coordinates import FactoredRows, PublicCoordinates
from quorate.data.spool import Spool
from quorate.deferred import sparse
from quorate.direct.contributions import (
    GROUP_ROWS,
    SLOPE_BITS,
    Grid,
    cells_of,
    counted,
    lengths_of,
    of_groups,
    of_records,
    of_stretches,
    slopes,
)
from quorate.run.resources import Threads
from quorate.run.usable_rows import AT_ONCE, CELLS, places_of
from quorate.types import FloatArray, IntArray, Watching

NUMBERS = 1 << 19  # coordinates times outputs that a thread works on at once: what stays near a core
ROWS_TOGETHER = 1 << 13  # sparse rows of a few units that are summed together
_COPIES = 4  # of the coordinates of a block, that are held beside each other
WIDE = np.iinfo(np.int32).min  # as its first coordinate: a row whose coordinates are no numbers; no integer of one is


@dataclass(slots=True, eq=False)
class DenseUnits:
    """Rows of `width` integers of 32 bits each and the row's class, ordered by their units.

    A class has one added to it, so that 0, as which all begin, is none. `starts`: where each unit begins; None where
    every row is a unit, and lengths stand before everything, as doubles.
    """

    spool: Spool
    width: int
    n_rows: int
    starts: IntArray | None
    threads: Threads = field(default_factory=Threads)

    @classmethod
    def of(
        cls, width: int, n_rows: int, starts: IntArray | None, threads: Threads, folder: Path | None, most: int | None
    ) -> DenseUnits:
        """Take room for rows; none has a class yet. `folder`, `most`: of the spool."""
        of_a_row = 4 * width + 4 + 8 * (starts is None)
        return cls(Spool(of_a_row * n_rows, folder, most=most), width, n_rows, starts, threads)

    @property
    def _rows_at(self) -> int:
        return 8 * self.n_rows if self.starts is None else 0

    def put(self, z: FloatArray, codes: IntArray, places: IntArray) -> None:
        """Write integer coordinates of rows, each at its place."""
        order, sound = np.argsort(places, kind="stable"), np.asarray(np.isfinite(z).all(axis=1))
        rows = np.empty((len(z), self.width + 1), dtype=np.int32)
        rows[:, :-1] = z if sound.all() else np.where(sound[:, None], z, 0.0)
        rows[:, -1] = codes.astype(np.int32) + 1
        if self.starts is None:
            lengths = np.where(sound, lengths_of(rows[:, :-1].astype(np.float64)), 0.0)
            self.spool.write_rows(lengths[order], 0, places[order])
        else:
            rows[~sound, 0] = WIDE
        self.spool.write_rows(rows[order], self._rows_at, places[order])

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""
        sum_of = self._of_records if self.starts is None else self._of_units

        def summed(weights: FloatArray) -> IntArray:
            # With one output NumPy's calls are so short that two threads wait for one another, and gain nothing.
            threads = Threads(1) if weights.shape[1] == 1 else self.threads
            blocks = self._blocks(self._at_once(weights.shape[1]))
            return _total(threads, lambda block: sum_of(block, weights, grid), blocks, self.width, weights)

        return summed

    def _at_once(self, n_outputs: int) -> int:
        return max(1, NUMBERS // (self.width * n_outputs))

    def _blocks(self, step: int) -> Iterator[tuple[int, int]]:
        """Yield the first and one past the last of `step` rows, or of some units that have as many; one at least."""
        if self.starts is None:
            yield from ((first, min(first + step, self.n_rows)) for first in range(0, self.n_rows, step))
            return
        unit = 0
        while unit < len(self.starts) - 1:
            stop = int(np.searchsorted(self.starts, self.starts[unit] + step, side="right")) - 1
            yield unit, (unit := max(stop, unit + 1))

    def _read(self, first: int, last: int) -> tuple[FloatArray, IntArray]:
        """Return coordinates and classes of some rows; −1: none."""
        at = self._rows_at + first * (self.width + 1) * 4
        stored = self.spool.read(at, (last - first, self.width + 1), np.int32)
        z = stored[:, :-1].astype(np.float64)
        if self.starts is not None:
            z[stored[:, 0] == WIDE] = np.nan
        return z, stored[:, -1] - 1

    def _of_records(self, block: tuple[int, int], weights: FloatArray, grid: Grid) -> IntArray:
        first, last = block
        z, codes = self._read(first, last)
        lengths = self.spool.read(first * 8, (last - first,), np.float64)
        if codes.min(initial=0) < 0:
            known = codes >= 0
            z, codes, lengths = z[known], codes[known], lengths[known]
        return of_records(z, lengths, codes, weights, grid)

    def _of_units(self, block: tuple[int, int], weights: FloatArray, grid: Grid) -> IntArray:
        assert self.starts is not None  # noqa: S101 - the caller's condition
        starts = self.starts[block[0] : block[1] + 1]
        first, last = int(starts[0]), int(starts[-1])
        if last - first > self._at_once(weights.shape[1]):  # one unit alone has more rows
            return self._of_long_unit(first, last, weights, grid)
        z, codes = self._read(first, last)
        usable = codes >= 0
        if not usable.any():
            return np.zeros((self.width, weights.shape[1]), dtype=np.int64)
        if not usable.all():
            z, codes = z[usable], codes[usable]
        begins = np.concatenate([[0], np.cumsum(usable)])[starts - first]
        begins = np.append(begins[:-1][np.diff(begins) > 0], begins[-1])  # without units that have no row
        return of_groups(z, codes, begins, weights, grid)

    def _of_long_unit(self, first: int, last: int, weights: FloatArray, grid: Grid) -> IntArray:
        """Return one unit's integers, its usable rows read 1,024 at once as they are counted from the first."""
        parts = [(start, min(start + GROUP_ROWS, last)) for start in range(first, last, GROUP_ROWS)]
        codes = np.concatenate([self._read(*part)[1] for part in parts])
        codes = codes[codes >= 0]

        def stretches() -> Iterator[tuple[FloatArray, IntArray]]:
            z, done = np.empty((0, self.width)), 0
            for start, end in parts:
                more, of_these = self._read(start, end)
                z = np.concatenate([z, more[of_these >= 0]])
                while len(z) >= GROUP_ROWS or (end == last and len(z)):
                    own, z = z[:GROUP_ROWS], z[GROUP_ROWS:]
                    yield own, codes[done : done + len(own)]
                    done += len(own)

        shape = (self.width, weights.shape[1])
        if not len(codes):
            return np.zeros(shape, dtype=np.int64)
        if grid.cells:
            cells = np.concatenate([cells_of(z, own, weights, grid) for z, own in stretches()])
            return counted(cells, np.array([0, len(codes)]), shape, grid)
        sloped = ((z, np.rint(slopes(z, own, weights, grid) * 2.0**SLOPE_BITS)) for z, own in stretches())
        return of_stretches(sloped, len(codes), shape, grid)


@dataclass(slots=True, eq=False)
class SparseRecords:
    """Sparse rows, each a unit: images and lengths of the coordinates, or coordinates, block by block.

    `model`: what a block is, beside its arrays. `blocks`: places, shapes and types of its arrays, the last of them the
    classes of its rows.
    """

    spool: Spool
    model: Any
    blocks: list[list[tuple[int, tuple[int, ...], Any]]] = field(default_factory=list)
    threads: Threads = field(default_factory=Threads)

    def put(self, z: Any, codes: IntArray) -> None:
        """Write some rows."""
        images = z.images if isinstance(z, FactoredRows) else z
        arrays = [images.data, images.indices, images.indptr]
        arrays += [z.lengths] if isinstance(z, FactoredRows) else []
        arrays += [codes.astype(np.int64)]
        self.blocks.append([(self.spool.append(np.ascontiguousarray(part)), part.shape, part.dtype) for part in arrays])

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""

        def of_block(block: list[Any], weights: FloatArray) -> IntArray:
            z, codes = self.read(block)
            return of_records(z, lengths_of(z), codes, weights, grid)

        return lambda weights: _total(
            self.threads, lambda block: of_block(block, weights), self.blocks, self.model.shape[1], weights
        )

    def put_blocks(self, blocks: Iterator[tuple[IntArray, Any]], codes: IntArray, form: Callable[[Any], Any]) -> None:
        """Write all rows, of blocks of their places and numbers; small blocks are put together."""
        held: list[tuple[IntArray, Any]] = []

        def put_held() -> None:
            if held:
                places = np.concatenate([at for at, _ in held])
                self.put(form(sparse.vstack([numbers for _, numbers in held], format="csr")), codes[places])
                held.clear()

        for places, numbers in blocks:
            held.append((places, numbers))
            if sum(len(at) for at, _ in held) >= AT_ONCE or sum(rows.nnz for _, rows in held) >= CELLS:
                put_held()
        put_held()

    def read(self, block: list[Any]) -> tuple[Any, IntArray]:
        """Return the rows of a block, and their classes."""
        *arrays, codes = [self.spool.read(*part) for part in block]
        factored = isinstance(self.model, FactoredRows)
        width = (self.model.images if factored else self.model).shape[1]
        images = sparse.csr_matrix(tuple(arrays[:3]), shape=(len(codes), width))
        z = FactoredRows(images, self.model.matrix, self.model.bound, arrays[3]) if factored else images
        return z, codes


@dataclass(slots=True, eq=False)
class SparseUnits:
    """Sparse rows of units that have several: pieces of blocks, each with rows of a few units, and the rows' places.

    `starts`: where each unit begins. `together`: the pieces that hold the same few units.
    """

    records: SparseRecords
    places: list[IntArray]
    starts: IntArray
    together: list[list[int]]

    @property
    def spool(self) -> Spool:
        """Where the rows lie."""
        return self.records.spool

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""

        def of_pieces(pieces: list[int], weights: FloatArray) -> IntArray:
            places = np.concatenate([self.places[piece] for piece in pieces])
            read = [self.records.read(self.records.blocks[piece]) for piece in pieces]
            z, codes = sparse.vstack([z for z, _ in read], format="csr"), np.concatenate([codes for _, codes in read])
            order = np.argsort(places)
            whose = np.searchsorted(self.starts, places[order], side="right")
            begins = np.append(np.flatnonzero(np.diff(whose, prepend=-1)), len(whose))
            return of_groups(z[order], codes[order], begins, weights, grid)

        width, threads = self.records.model.shape[1], self.records.threads
        return lambda weights: _total(threads, lambda pieces: of_pieces(pieces, weights), self.together, width, weights)


def _total(
    threads: Threads, of_block: Callable[[Any], IntArray], blocks: Iterable[Any], width: int, weights: FloatArray
) -> IntArray:
    """Return the sum of what all blocks add, ``(width, n_outputs)``."""
    total = np.zeros((width, weights.shape[1]), dtype=np.int64)
    for part in threads.map(of_block, blocks):
        total += part
    return total


SummedRows: TypeAlias = DenseUnits | SparseRecords | SparseUnits


class RowsOfUnits(Protocol):
    """Private rows as coordinates are made of them: :class:`~quorate.run.usable_rows.UsableRows`, or a part of such.

    `public_row`: one encoded public row. `codes`, `units`, `blocks`: as of usable rows.
    """

    @property
    def public_row(self) -> Any: ...  # noqa: D102
    @property
    def codes(self) -> IntArray: ...  # noqa: D102
    @property
    def units(self) -> IntArray | None: ...  # noqa: D102
    def blocks(self, *, widest: int = 1, watch: Watching | None = None) -> Iterator[tuple[IntArray, Any]]: ...  # noqa: D102


def units_of(
    coordinates: PublicCoordinates,
    private: RowsOfUnits,
    *,
    folder: Path | None = None,
    most: int | None = None,
    watch: Watching | None = None,
    threads: Threads | None = None,
) -> SummedRows:
    """Read all usable rows once, and put their coordinates aside, block by block, for the rounds.

    `folder`: where what is more than `most` bytes may lie. `threads`: by default one a core. Raises PreconditionFailed
    if the disk has no room for them.
    """
    form, threads = coordinates.for_rounds if private.units is None else coordinates, threads or Threads()
    with np.errstate(all="ignore"):  # a warning about what a private row holds would tell of it
        numbers = private.public_row
        model = form(numbers)[:0]
        if isinstance(model, np.ndarray):
            widest = max(model.shape[1], 1 if sparse.issparse(numbers) else numbers.shape[1])
            starts, place = (None, None) if private.units is None else places_of(private.codes, private.units)
            n_rows = len(private.codes) if starts is None else int(starts[-1])
            units = DenseUnits.of(model.shape[1], n_rows, starts, threads, folder, most)

            def put(block: tuple[IntArray, Any]) -> None:
                rows, numbers = block
                units.put(form(numbers), private.codes[rows], rows if place is None else place[rows])

            for _ in units.threads.map(put, private.blocks(widest=_COPIES * widest, watch=watch)):
                pass
            return units
        blocks = private.blocks(watch=watch)
        records = SparseRecords(Spool(0, folder, most=most), model, threads=threads)
        if private.units is None:
            records.put_blocks(blocks, private.codes, form)
            return records
        return _sparse_units(private, blocks, form, records)


def _sparse_units(
    private: RowsOfUnits, blocks: Iterator[tuple[IntArray, Any]], form: Callable[[Any], Any], records: SparseRecords
) -> SparseUnits:
    """Write rows of units of several rows, block by block, those of a few units each as a piece."""
    starts, place = places_of(private.codes, private.units)
    assert starts is not None  # noqa: S101 - the caller's condition
    edges = starts[np.unique(np.searchsorted(starts, np.arange(ROWS_TOGETHER, starts[-1], ROWS_TOGETHER)))]
    units = SparseUnits(records, [], starts, [[] for _ in range(len(edges) + 1)])
    for rows, numbers in blocks:
        places = place[rows]
        order = np.argsort(places)
        z, ranked = form(numbers)[order], places[order]
        cuts = [0, *np.searchsorted(ranked, edges).tolist(), len(ranked)]
        for few, (first, end) in enumerate(pairwise(cuts)):
            if end > first:
                units.together[few].append(len(units.places))
                units.places.append(ranked[first:end])
                records.put(z[first:end], private.codes[rows[order[first:end]]])
    units.together = [pieces for pieces in units.together if pieces]
    return units
