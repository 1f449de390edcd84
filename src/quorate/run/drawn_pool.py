"""Noisy one-way marginals of private rows, level by level: counted, drawn, durable, noise, stored, used.

Of each unit one row counts. What a private row adds is its codes, one a column, and follows from that row and the
schema alone; exact counts of nodes are sums of these, and none is made before its node is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.data.columns import column as column_of
from quorate.data.declared_schema import NumberColumn, Schema
from quorate.data.rows import Rows, columns
from quorate.ledger import Reservation
from quorate.mechanisms import MarginalLevel, NoisyMarginals, Partition
from quorate.noise import NoiseSource
from quorate.release import DrawnBlock, release
from quorate.release.target import MARGINAL_LEVEL
from quorate.types import BoolArray, IntArray, Secret

_MERGED_AT = 1 << 16  # different cells of a column that are held apart before they are joined


def partitions_of(schema: Schema) -> tuple[Partition, ...]:
    """Return how each column that is read is cut.

    Examples
    --------
    >>> partitions_of(Schema({"age": (0, 120), "sex": ["F", "M"], "note": "drop"}))
    (Partition(cells=16385, depth=14), Partition(cells=3, depth=0))
    """
    return tuple(
        Partition.tree(held.depth) if isinstance(held, NumberColumn) else Partition(held.missing + 1)
        for held in schema.columns.values()
    )


@dataclass(slots=True)
class CellCounts:
    """How many units are in each cell of one column that any unit is in: sorted cells, and sums up to each."""

    _cells: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _times: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _apart: list[tuple[IntArray, IntArray]] = field(default_factory=list)
    _n_apart: int = 0

    def add(self, codes: IntArray) -> None:
        """Count a code a unit; one below 0 adds nothing."""
        cells, times = np.unique(codes[codes >= 0], return_counts=True)
        self._apart.append((cells, times))
        self._n_apart += len(cells)
        if self._n_apart > max(_MERGED_AT, len(self._cells)):
            self._join()

    def within(self, first: IntArray, behind: IntArray) -> IntArray:
        """Return how many units are in each range of cells ``first <= cell < behind``, ``(n_ranges,)``."""
        self._join()
        sums = np.concatenate([[0], np.cumsum(self._times)])
        inside = sums[np.searchsorted(self._cells, behind)] - sums[np.searchsorted(self._cells, first)]
        return np.asarray(inside, dtype=np.int64)

    def _join(self) -> None:
        if not self._apart:
            return
        parts = [(self._cells, self._times), *self._apart]
        every = np.concatenate([cells for cells, _ in parts])
        self._cells, places = np.unique(every, return_inverse=True)
        times = np.zeros(len(self._cells), dtype=np.int64)
        np.add.at(times, places, np.concatenate([times for _, times in parts]))
        self._times, self._apart, self._n_apart = times, [], 0


def count_cells(schema: Schema, parts: Iterable[Rows], counted: BoolArray) -> Secret[tuple[CellCounts, ...]]:
    """Count the cells of every column in one pass.

    `schema`: of the columns. `parts`: the private rows, some at once and in order; frames that have all columns that
    are read. `counted`: which rows count, one of each unit.
    """
    counts = tuple(CellCounts() for _ in schema.columns)
    start = 0
    for part in parts:
        places = {name: place for place, name in enumerate(columns(part) or ())}
        chosen = counted[start : start + part.shape[0]]
        for (name, held), count in zip(schema.columns.items(), counts, strict=True):
            count.add(held.codes(column_of(part, places[name]))[chosen])
        start += part.shape[0]
    return Secret(counts)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedMarginals:
    """Noisy counts as they were stored: public.

    `marginals`: what released them. `levels`: the nodes of each level with their noisy counts, column by column.
    `lost`: the level that was drawn and not stored, which counts as zeros and ended the trees; None where none was.
    """

    marginals: NoisyMarginals
    levels: tuple[tuple[MarginalLevel, tuple[IntArray, ...]], ...] = field(repr=False)
    lost: int | None = None


def release_marginals(
    marginals: NoisyMarginals,
    counts: Secret[tuple[CellCounts, ...]],
    reservation: Reservation,
    noise: NoiseSource,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> ReleasedMarginals:
    """Release every level that is left, each one as a block: drawn, durable, noise, stored, and only then used.

    `marginals`: what the reservation was made for, with ``marginals.n_levels`` levels. `counts`: of the private side.
    `noise`: addressed by purpose and level. `progress`: ``progress(done, total)``. Privacy: a level that an earlier
    process stored is read from the ledger, and one that it drew and did not store is taken as zeros and never drawn
    again. Exact counts are worked out for the nodes of a level alone, once the level before is stored.
    """
    level, levels, lost = marginals.first, [], None
    for block in reservation.blocks(MARGINAL_LEVEL):
        if block.answers is None:
            lost, noisy = level.number, marginals.nothing(level)
        else:
            noisy = _read(block.answers[0], level)
        levels.append((level, noisy))
        level = marginals.after(level, noisy)
    while not level.is_empty:
        if progress:
            progress(level.number - 1, marginals.n_levels)
        exact = _exact(marginals, level, counts)

        def compute(drawn: DrawnBlock, level: MarginalLevel = level, exact: Sequence[IntArray] = exact) -> Any:
            return marginals.release_level(level, exact, drawn.noise(noise))

        _, noisy = release(reservation, MARGINAL_LEVEL, 1, compute, record=lambda answer: [_written(answer)])
        levels.append((level, noisy))
        level = marginals.after(level, noisy)
    if progress:
        progress(marginals.n_levels, marginals.n_levels)
    return ReleasedMarginals(marginals, tuple(levels), lost)


def _exact(
    marginals: NoisyMarginals, level: MarginalLevel, counts: Secret[tuple[CellCounts, ...]]
) -> tuple[IntArray, ...]:
    """Return how many units are in each node of a level, column by column."""
    return tuple(
        count.within(*partition.cells_of(nodes, level.number))
        for partition, nodes, count in zip(marginals.partitions, level.nodes, counts.reveal(), strict=True)
    )


def _written(noisy: Sequence[IntArray]) -> list[list[int]]:
    return [column.tolist() for column in noisy]


def _read(stored: Sequence[Sequence[int]], level: MarginalLevel) -> tuple[IntArray, ...]:
    return tuple(
        np.array(column, dtype=np.int64).reshape(nodes.shape) for column, nodes in zip(stored, level.nodes, strict=True)
    )
