"""A pool drawn from noisy one-way marginals of private rows, for where there are no public ones.

Marginals are released level by level: counted, drawn, durable, noise, stored, used. Of each unit one row counts. What a
private row adds is its codes, one a column, and follows from that row and the schema alone; exact counts of nodes are
sums of these, and none is made before its node is opened. Rows are drawn from what was released, each column by itself,
and cost nothing. They are not people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from typing import Any, Final, NoReturn

import numpy as np

from quorate.accounting import Composed
from quorate.accounting.figures import at_least, several
from quorate.accounting.neighbouring import Relation
from quorate.data.columns import column as column_of
from quorate.data.declared_schema import NumberColumn, Schema
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.rows import Rows, columns
from quorate.errors import InvalidParameter, PreconditionFailed, named
from quorate.ledger import Reservation
from quorate.mechanisms import MarginalLevel, NoisyMarginals, Partition
from quorate.mechanisms.marginals import THRESHOLD, Levels
from quorate.noise import NoiseSource
from quorate.release import DrawnBlock, release
from quorate.release.charge import COORDINATES, MARGINAL_LEVEL
from quorate.report import Part
from quorate.report.notation import percent
from quorate.report.spending import part_of
from quorate.run.counted_by_halves import counted_by_halves, level_by_halves
from quorate.types import BoolArray, IntArray, Secret

ENOUGH_PUBLIC: Final = 100  #: public rows that are worth more than rows that are drawn
N_ROWS: Final = 1_200  #: drawn for the direct method, beside those with a listed value that no other has
STATEMENTS: Final = 16  #: of a pool or coordinates: one is made, and a process may end while it is
LEAST_SHARE, MOST_SHARE = 0.1, 0.3  #: of μ², for marginals
SHORT_LIST: Final = 50  #: values of a list of which each gets a row, and whose counts need less to be believed

_LEAST_RESOLUTION: Final = 6.0  # parts of a range that the default share of marginals tells apart
_MERGED_AT = 1 << 16  # different cells of a column that are held apart before they are joined


def refuse_both() -> NoReturn:
    """Refuse public rows beside a schema: which of them is better follows from how many rows there are."""
    raise InvalidParameter(
        f"{named('schema')} is for where there is no public pool to tell what columns hold; give one of them: the rows "
        f"where there are {ENOUGH_PUBLIC} or more, the schema where there are fewer"
    )


def partitions_of(schema: Schema) -> tuple[Partition, ...]:
    """Return how each column that is read is cut."""
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

    def joined(self) -> tuple[IntArray, IntArray]:
        """Return the cells in their order, and how many units are in each."""
        self._join()
        return self._cells, self._times

    def add_joined(self, cells: IntArray, times: IntArray) -> None:
        """Add what was counted of other units elsewhere."""
        self._apart.append((cells, times))
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


def count_cells(
    schema: Schema, parts: Iterable[Rows], counted: BoolArray, dialect: Dialect = PLAIN
) -> Secret[tuple[CellCounts, ...]]:
    """Count the cells of every column in one pass over `parts`; `counted`: which rows count, one of each unit."""
    counts = tuple(CellCounts() for _ in schema.columns)
    start = 0
    for part in parts:
        places = {name: place for place, name in enumerate(columns(part) or ())}
        chosen = counted[start : start + part.shape[0]]
        for (name, held), count in zip(schema.columns.items(), counts, strict=True):
            count.add(held.codes(column_of(part, places[name]), dialect)[chosen])
        start += part.shape[0]
    return Secret(counts)


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedMarginals:
    """Noisy counts as they were stored, public. `lost`: levels that were drawn and not stored. `by_halves`: whether the
    run was begun when a level counted the halves of large parts alone. `tails`: whether rows are drawn from parts of a
    number's range that are not believed, too.
    """

    marginals: NoisyMarginals
    levels: Levels = field(repr=False)
    lost: tuple[int, ...] = ()
    by_halves: bool = False
    tails: bool = False


def release_marginals(
    marginals: NoisyMarginals,
    counts: Secret[tuple[CellCounts, ...]],
    reservation: Reservation,
    noise: NoiseSource,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> ReleasedMarginals:
    """Release every level that is left, each one as a block: drawn, durable, noise, stored, and only then used.
    Privacy: a level that an earlier process stored is read from the ledger, and one that it drew and did not store is
    left out and never drawn again. Exact counts are worked out for the nodes of a level alone, once the level before is
    stored. Once coordinates rest on what was released, nothing more is.
    """
    stored = [None if block.answers is None else block.answers[0] for block in reservation.blocks(MARGINAL_LEVEL)]
    by_halves = counted_by_halves(marginals, [answers for answers in stored if answers is not None])
    levels: list[tuple[MarginalLevel, tuple[IntArray, ...]]] = []
    follow = partial(level_by_halves if by_halves else NoisyMarginals.level, marginals)
    for number, answers in enumerate(stored, start=1):
        level = follow(number, levels)
        if answers is not None:
            stored_columns = zip(answers, level.nodes, strict=True)
            noisy = tuple(np.array(column, dtype=np.int64).reshape(nodes.shape) for column, nodes in stored_columns)
            levels.append((level, noisy))
        elif by_halves:
            levels.append((level, tuple(np.zeros(len(nodes), dtype=np.int64) for nodes in level.nodes)))
    level = follow(len(stored) + 1, levels)
    while not level.is_empty and not stated_coordinates(reservation):
        if progress:
            progress(level.number - 1, marginals.n_levels)
        exact = tuple(  # how many units are in each node of the level, column by column
            count.within(*partition.cells_of(nodes))
            for partition, nodes, count in zip(marginals.partitions, level.nodes, counts.reveal(), strict=True)
        )

        def compute(drawn: DrawnBlock, level: MarginalLevel = level, exact: Sequence[IntArray] = exact) -> Any:
            return marginals.release_level(level, exact, drawn.noise(noise))

        _, noisy = release(reservation, MARGINAL_LEVEL, 1, compute, record=lambda of: [[part.tolist() for part in of]])
        levels.append((level, noisy))
        level = follow(level.number + 1, levels)
    if progress:
        progress(marginals.n_levels, marginals.n_levels)
    lost = tuple(number for number, answers in enumerate(stored, start=1) if answers is None)
    return ReleasedMarginals(marginals, levels, lost, by_halves)


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolPlan:
    """What is paid for noisy counts, by public facts alone, for a pool of `n_rows` at least; `share`: of μ²."""

    declared: Schema = field(repr=False)
    share: float
    marginals: NoisyMarginals
    n_units: int
    n_rows: int = N_ROWS

    @property
    def resolution(self) -> float:
        """Return q of the column with the most noise: how many parts of its range can be told apart."""
        return resolution_of(self.marginals, self.n_units)

    def event_for(self, neighbours: Relation | None) -> Composed:
        """Return what the marginals release, for a change of one unit."""
        return self.marginals.event_for(neighbours or "replace")

    @property
    def released_in_words(self) -> str:
        """What is released, in words."""
        marginals = self.marginals
        noise = " or ".join(dict.fromkeys(at_least(marginals.sigma(partition)) for partition in marginals.partitions))
        return (
            f"noisy counts of {several(len(marginals.partitions), 'column')} in at most "
            f"{several(marginals.n_levels, 'level')}, discrete Gaussian noise of {noise} on each"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What the noisy counts are, in plain values."""
        marginals = self.marginals
        names = zip(self.declared.columns, marginals.partitions, strict=True)
        return {
            "columns": len(marginals.partitions),
            "levels": marginals.n_levels,
            "noise": {name: marginals.sigma(partition) for name, partition in names},
            "share": self.share,
            "resolution": self.resolution,
            "rows": self.n_rows,
        }

    @property
    def step(self) -> tuple[str, str]:
        """The line of a check about the pool that will be drawn."""
        columns = several(len(self.marginals.partitions), "column")
        return "draw", (
            f"{self.n_rows:,} rows from noisy counts of {columns}: they stand for public rows, and take "
            f"{percent(self.share)} of the budget. No accuracy can be estimated"
        )

    def part(self, reservation: Reservation) -> Part:
        """What became of the noisy counts, and their share of the charge."""
        sigma, how = self.marginals.sigma, {"mechanism": "discrete Gaussian noise on counts", "share": self.share}
        sigmas = tuple(dict.fromkeys(sigma(partition) for partition in self.marginals.partitions))
        how |= {"sigma": max(sigmas), "sigmas": sigmas if len(sigmas) > 1 else None}
        return part_of(reservation, MARGINAL_LEVEL, **how, reserved=self.marginals.n_levels)

    def pool_in_words(self, released: ReleasedMarginals | None, n_rows: int | None = None) -> str:
        """Say in a sentence what the pool is; `n_rows`: of it, once it is drawn."""
        verb, more = "will be" if n_rows is None else "were", ""
        if released is not None and released.lost:
            levels = ", ".join(map(str, released.lost))
            more = f"; level {levels} was drawn and lost when a process ended, and is left out"
        return (
            f"{n_rows or self.n_rows:,} rows {verb} drawn from noisy counts of "
            f"{several(len(self.marginals.partitions), 'column')}; the counts take {percent(self.share)} of the budget "
            "(of μ², in which prices of Gaussian noise add up). The rows stand for public ones, and are not "
            f"people{more}"
        )


def plan_pool(
    declared: Schema,
    mu: float,
    *,
    n_units: int,
    neighbours: Relation,
    share: float | None = None,
    n_rows: int = N_ROWS,
    averaged: bool = True,
) -> PoolPlan:
    """Fix the noise of marginals, and their share of `mu`²: the least of .1 to .3 that tells six parts apart.
    `averaged`: whether a part is taken to be counted by half of the levels, or by one, as runs were begun once.
    """
    whole = NoisyMarginals(partitions_of(declared), mu, neighbours)
    if share is None:
        percents = range(round(100 * LEAST_SHARE), round(100 * MOST_SHARE))
        fitting = (
            percent / 100
            for percent in percents
            if resolution_of(replace(whole, mu=mu * sqrt(percent / 100)), n_units, averaged=averaged)
            >= _LEAST_RESOLUTION
        )
        share = next(fitting, MOST_SHARE)
    marginals = replace(whole, mu=mu * sqrt(share))
    return PoolPlan(declared=declared, share=share, marginals=marginals, n_units=n_units, n_rows=n_rows)


def resolution_of(marginals: NoisyMarginals, n_units: int, *, averaged: bool = True) -> float:
    """Return q = n₀/(3 σ) of the column with the most noise, σ that of a count, or of the mean of half of a tree's
    levels.
    """

    def noise(partition: Partition) -> float:
        return marginals.sigma(partition) / sqrt(max(partition.depth / 2, 1) if averaged else 1)

    return n_units / (THRESHOLD * max(map(noise, marginals.partitions)))


def stated_coordinates(reservation: Reservation) -> set[str]:
    """Return the digests that were written down behind a charge: of a pool, or of coordinates that follow from it."""
    return {block.answers[0] for block in reservation.blocks(COORDINATES) if block.answers is not None}


def state_coordinates(reservation: Reservation, digest: str, *, refusal: str) -> None:
    """Write down what the answers of a reservation rest on, before the first, or refuse another than was stated."""
    stated = stated_coordinates(reservation)
    if stated - {digest}:
        raise PreconditionFailed(refusal)
    if not stated and reservation.remaining(COORDINATES):
        release(reservation, COORDINATES, 1, lambda drawn: digest, record=lambda digest: [digest])
