"""Rounds on the workers of a scheduler: the same integers, bit for bit, as on this machine.

Rows are parsed and encoded here, once, and cut into parts of whole units, wherever the rows of a unit stand. Each part
lies in files of the run's owner that the workers read
(:mod:`quorate.ensemble.workers.cluster.exchange`): Dask sees names of files and digests, no row and no sum. A worker
makes the coordinates of its parts by the code of one machine, keeps them as far as its memory allows or makes them
anew, and answers each round with one sum of integers a part. Sums of integers are exact in every order, and a part
counts once, by its number, however often its task was begun. Noise is drawn here.

How many parts there are follows from public facts, so that the number of tasks tells nothing of the private rows.
Where a pool is drawn from noisy counts, cells go to the workers in parts of rows, and counts come back.

What a unit adds must not hang on which worker has it. Before the charge each worker is asked for a digest of what it
makes of public rows, extreme ones among them, and so is each task before it reads a private row: a worker may have
come late. One that computes other bits than this machine is refused in one line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quorate.ambient import one_thread
from quorate.data import take as take_rows
from quorate.data.declared_schema import CategoryColumn, NumberColumn, Schema
from quorate.data.dialect import Dialect
from quorate.data.feature_maps.exact import exp
from quorate.data.rows import Rows
from quorate.data.stream import cannot_hold
from quorate.direct.contribution_check import made_up
from quorate.direct.contributions import Grid, lengths_of, of_records, slopes
from quorate.direct.plan import DirectPlan
from quorate.direct.spool import SummedRows, units_of
from quorate.direct.temperature import edges_of
from quorate.errors import Interrupted, PreconditionFailed, QuorateError
from quorate.run.drawn_pool import CellCounts, count_cells
from quorate.run.resources import Threads
from quorate.run.usable_rows import PrivateTable, UsableRows, places_of
from quorate.types import BoolArray, FloatArray, IntArray, Secret, Watching

if TYPE_CHECKING:
    from quorate.ensemble.workers.cluster.exchange import Stored
    from quorate.ensemble.workers.cluster.scheduler import Connection, DaskScheduler
    from quorate.ensemble.workers.isolation import Lost

_OF_A_PART, _FEWEST, _MOST = 1 << 26, 8, 1 << 12  # bytes of coordinates; parts
_BUFFERED = 1 << 26  # bytes of rows that are held here before they are written
_KEPT = 1 << 30  # bytes of coordinates that a worker's process keeps from one round to the next
_ARGUMENTS = -np.geomspace(1e-12, 700.0, 4_096)
_ODD_NUMBERS = (np.nan, np.inf, -np.inf, 0.0, -0.0)
_ODD_CELLS = (
    None, "", " ", "nan", "1,5", "1e400", "2024-02-29", "2024-02-29T12:30:01.25", "29.02.2024", "no such word",
)  # fmt: skip
_EXTREMES = (1e6, -1e-9, 0.0)  # by which public rows are multiplied to see what unusual rows become


@dataclass(frozen=True, slots=True)
class PublicSide:
    """All that workers need beside rows: what coordinates are, and by which answer a worker's arithmetic is known."""

    plan: DirectPlan
    pool: Any = field(repr=False)  # some encoded public rows
    answer: bytes

    def computed(self) -> bytes:
        """Return the answer as this process computes it."""
        return answer_of(self.plan, self.pool)


@dataclass(frozen=True, slots=True)
class DeclaredSide:
    """The same where workers count the cells of declared columns."""

    declared: Schema
    dialect: Dialect
    answer: bytes

    def computed(self) -> bytes:
        """Return the answer as this process computes it."""
        return answer_of_cells(self.declared, self.dialect)


@dataclass(frozen=True, slots=True)
class PartOfRows:
    """Rows of whole units as a worker reads them: a :class:`~quorate.direct.spool.RowsOfUnits`."""

    public_row: Any = field(repr=False)
    codes: IntArray = field(repr=False)
    units: IntArray | None = field(repr=False)
    pieces: Callable[[], Iterator[tuple[IntArray, Any]]] = field(repr=False)

    def blocks(self, *, widest: int = 1, watch: Watching | None = None) -> Iterator[tuple[IntArray, Any]]:
        """Yield rows that can be used, as their places and as numbers."""
        return self.pieces()


@dataclass(frozen=True, slots=True)
class UnitsElsewhere:
    """The private side of the rounds where workers add up: a :class:`~quorate.direct.rounds.SummedUnits`. `parts`: for
    each part the file of classes and units, and the files of its rows. `public`: where the public side lies.
    """

    scheduler: DaskScheduler
    public: Stored
    shape: tuple[int, int]
    parts: tuple[tuple[Stored, tuple[Stored, ...]], ...] = field(repr=False)

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``. It raises
        Interrupted where a part was lost again and again, or the scheduler is gone.
        """
        return partial(self._summed, grid=grid)

    def _summed(self, weights: FloatArray, *, grid: Grid) -> IntArray:
        from quorate.ensemble.workers.cluster.elsewhere import map_elsewhere

        sums: dict[int, IntArray] = {}
        with self.scheduler.connected() as connection:
            work = partial(sums_of_parts, str(connection.folder), self.public, weights, grid)
            for number, answer in map_elsewhere(self.scheduler, work, enumerate(self.parts), size=1, near=True):
                if answer is not None:
                    sums[number] = np.frombuffer(answer, dtype=np.int64).reshape(self.shape)
        if len(sums) < len(self.parts):
            raise _lost("its sum is missing and the round was not drawn")
        return np.asarray(sum(sums.values(), np.zeros(self.shape, dtype=np.int64)))


def units_elsewhere(
    scheduler: DaskScheduler,
    plan: DirectPlan,
    private: UsableRows,
    pool: Any,
    *,
    watch: Watching | None = None,
) -> UnitsElsewhere:
    """Write the usable rows for the workers, and ask each of them whether it computes what this machine does. `pool`:
    encoded public rows. Raises PreconditionFailed where a worker computes other bits, or the shared folder has no room.
    The caller holds the connection open.
    """
    from quorate.ensemble.workers.cluster.exchange import put

    with scheduler.connected() as connection:
        folder, side = connection.folder, public_side(plan, pool)
        try:
            public = put(folder, side)
            _ask_workers(connection, public, side.answer)
            parts = _written(folder, private, _n_parts(plan.n_units, int(plan.start.shape[0])), watch)
        except OSError as error:
            raise cannot_hold(folder.parent, error) from None
        shape = (int(plan.start.shape[0]), int(plan.start.shape[1]))
        return UnitsElsewhere(scheduler, public, shape, parts)


def _lost(then: str) -> Interrupted:
    from quorate.ensemble.workers.cluster.scheduler import STAYS

    return Interrupted(
        f"the workers were lost at one part of the rows again and again, so that {then}; see their logs, then the same "
        "command goes on",
        charged=STAYS,
    )


def counts_elsewhere(
    scheduler: DaskScheduler,
    declared: Schema,
    table: PrivateTable,
    counted: BoolArray,
    dialect: Dialect,
    n_units: int,
) -> Secret[tuple[CellCounts, ...]]:
    """Have workers count the cells of declared columns, as :func:`~quorate.run.drawn_pool.count_cells` does here.
    `counted`: which rows count. `n_units`: the public number, which says how many parts there are. Raises
    PreconditionFailed where a worker computes other codes of public cells, Interrupted where a part was lost.
    """
    from quorate.ensemble.workers.cluster.elsewhere import map_elsewhere
    from quorate.ensemble.workers.cluster.exchange import put

    with scheduler.connected() as connection:
        side = declared_side(declared, dialect)
        public = put(connection.folder, side)
        _ask_workers(connection, public, side.answer)
        n_parts = _n_parts(n_units, len(declared.columns))
        work = partial(counts_of_parts, str(connection.folder), public)
        parts = enumerate(_cells_in_parts(table, counted, n_parts))
        answers = dict(map_elsewhere(scheduler, work, parts, size=1))
    counts = tuple(CellCounts() for _ in declared.columns)
    for number in range(n_parts):
        if (answer := answers.get(number)) is None:
            raise _lost("its rows were not counted")
        left = np.frombuffer(answer, dtype=np.int64)
        for count in counts:
            n_cells, left = int(left[0]), left[1:]
            count.add_joined(left[:n_cells], left[n_cells : 2 * n_cells])
            left = left[2 * n_cells :]
    return Secret(counts)


def _cells_in_parts(table: PrivateTable, counted: BoolArray, n_parts: int) -> Iterator[tuple[list[Rows], BoolArray]]:
    """Yield as many parts of a table as are asked for, each with which of its rows count; some may have no row."""
    edges = np.linspace(0, len(counted), n_parts + 1).astype(np.int64).tolist()
    held: list[Rows] = []
    start, part = 0, 0
    for rows in table.parts():
        done, height = 0, rows.shape[0]
        while part < n_parts and start + height >= edges[part + 1]:
            cut = edges[part + 1] - start
            yield [*held, take_rows(rows, np.arange(done, cut))], counted[edges[part] : edges[part + 1]]
            held, done, part = [], cut, part + 1
        if done < height:
            held.append(take_rows(rows, np.arange(done, height)))
        start += height


def counts_of_parts(folder: str, public: Stored, parts: Sequence[tuple[list[Rows], BoolArray]]) -> list[bytes | Lost]:
    """On a worker, in a clean process: of each part and column the number of cells, the cells, and their counts."""
    side = _side(Path(folder), public)
    answers: list[bytes | Lost] = []
    for rows, counted in parts:
        counts = [count.joined() for count in count_cells(side.declared, rows, counted, side.dialect).reveal()]
        answers.append(b"".join(np.concatenate([[len(cells)], cells, times]).tobytes() for cells, times in counts))
    return answers


def declared_side(declared: Schema, dialect: Dialect) -> DeclaredSide:
    """Return what workers need to count cells, with this machine's own answer."""
    return DeclaredSide(declared, dialect, answer_of_cells(declared, dialect))


def answer_of_cells(declared: Schema, dialect: Dialect) -> bytes:
    """Return a digest of the codes that public cells get: numbers of every size, dates, words, and what is none."""
    sizes = np.geomspace(1e-15, 1e15, 241)
    hashed = sha256()
    for held in declared.columns.values():
        numbers = [*_ODD_NUMBERS, *sizes.tolist(), *(-sizes).tolist()]
        if isinstance(held, NumberColumn) and held.low is not None and held.high is not None:
            numbers += np.linspace(held.low, held.high, 1_025).tolist()
        words = held.values if isinstance(held, CategoryColumn) else ()
        hashed.update(held.codes(np.array(numbers), dialect).tobytes())
        hashed.update(held.codes([*map(repr, numbers), *words, *_ODD_CELLS], dialect).tobytes())
    return hashed.digest()


def public_side(plan: DirectPlan, pool: Any) -> PublicSide:
    """Return what workers need beside rows, with this machine's own answer."""
    rows = pool[: min(pool.shape[0], 48)]
    return PublicSide(plan, rows, answer_of(plan, rows))


def answer_of(plan: DirectPlan, pool: Any) -> bytes:
    """Return a digest of the coordinates and the contributions of public rows, extreme ones among them. What is rounded
    to integers hides most of the last bits that could make another row's integers others; so slopes, lengths and
    exponentials are under it as they are before that.
    """
    rows, codes, weights = made_up(plan, pool)
    hashed = sha256()
    with one_thread(), np.errstate(all="ignore"):
        if plan.settings.judges:
            hashed.update(edges_of(plan.settings.cells // 2, max(plan.n_outputs, 2)).tobytes())
        hashed.update(exp(_ARGUMENTS).tobytes() + np.sqrt(-_ARGUMENTS).tobytes() + (1.0 / _ARGUMENTS).tobytes())
        for factor in (1.0, *_EXTREMES):
            own = rows * factor
            z = plan.coordinates(own)
            dense = z.toarray() if hasattr(z, "toarray") else z
            hashed.update(np.where(np.isnan(dense), np.nan, dense).tobytes())  # one NaN, whatever its sign is
            in_rounds = plan.coordinates.for_rounds(own)
            lengths, slope = lengths_of(in_rounds), slopes(in_rounds, codes, weights, plan.grid)
            hashed.update(np.where(np.isnan(lengths), np.nan, lengths).tobytes())
            hashed.update(np.where(np.isnan(slope), np.nan, slope).tobytes())
            for grid in plan.grids:
                hashed.update(of_records(in_rounds, lengths, codes, weights, grid).tobytes())
    return hashed.digest()


def _ask_workers(connection: Connection, public: Stored, answer: bytes) -> None:
    """Ask each worker that is there for its answer, before anything is charged."""
    arguments = (str(connection.folder), public, connection.environment)
    for address, said in sorted(connection.call(lambda: connection.client.run(answer_there, *arguments)).items()):
        if isinstance(said, str):
            raise PreconditionFailed(said)
        if said != answer:
            raise PreconditionFailed(other_bits(f"the worker {address}"))


def answer_there(folder: str, public: Stored, environment: Mapping[str, str]) -> bytes | str:
    """On a worker: return its answer, or what keeps it from giving one, in words; nothing private is read."""
    from quorate.ensemble.workers.cluster.exchange import check_folder, take
    from quorate.ensemble.workers.cluster.remote import not_as_here, unlike

    try:
        if unequal := unlike(environment):
            return not_as_here(f"a worker on {os.uname().nodename}", unequal)
        check_folder(Path(folder))
        side: PublicSide | DeclaredSide = take(Path(folder), public)
    except QuorateError as error:
        return str(error)
    return side.computed()


def other_bits(whose: str) -> str:
    """Return what is said of a worker whose arithmetic differs."""
    return (
        f"{whose} computes other coordinates or contributions of public rows than this machine, so that what a unit "
        "adds would depend on who computes it; take machines of one kind with the same versions, or set "
        "NPY_DISABLE_CPU_FEATURES alike on all of them, and end this worker"
    )


def _n_parts(n_units: int, width: int) -> int:
    """Return the number of parts, by the public number of units and how wide rows are."""
    return max(_FEWEST, min(_MOST, -(-4 * n_units * width // _OF_A_PART)))


def _written(
    folder: Path, private: UsableRows, n_parts: int, watch: Watching | None
) -> tuple[tuple[Stored, tuple[Stored, ...]], ...]:
    """Write the rows of whole units, part by part."""
    from quorate.ensemble.workers.cluster.exchange import put

    starts, place = places_of(private.codes, private.units)
    known = np.flatnonzero(place >= 0)
    in_order = np.empty(len(known), dtype=np.int64)  # the row at each place
    in_order[place[known]] = known
    even = np.linspace(0, len(known), n_parts + 1).astype(np.int64)
    edges = even if starts is None else starts[np.searchsorted(starts, even)]
    pieces: list[list[Stored]] = [[] for _ in range(n_parts)]
    held: list[list[tuple[IntArray, Any]]] = [[] for _ in range(n_parts)]
    size = 0

    def write_held() -> None:
        for part, rows in enumerate(held):
            if rows:
                pieces[part].append(put(folder, rows))
            held[part] = []

    for rows, numbers in private.blocks(watch=watch):
        places = place[rows]
        whose = np.searchsorted(edges, places, side="right") - 1
        order = np.argsort(whose, kind="stable")
        cuts = [0, *(np.flatnonzero(np.diff(whose[order])) + 1).tolist(), len(order)]
        for own in (order[first:end] for first, end in pairwise(cuts) if end > first):
            part = int(whose[own[0]])
            held[part].append((places[own] - edges[part], numbers[own]))
        size += int(numbers.nbytes if isinstance(numbers, np.ndarray) else numbers.data.nbytes)
        if size > _BUFFERED:
            write_held()
            size = 0
    write_held()
    parts = []
    for part, (first, last) in enumerate(pairwise(edges.tolist())):
        own = in_order[first:last]
        units = None if private.units is None else private.units[own]
        parts.append((put(folder, (private.codes[own], units)), tuple(pieces[part])))
    return tuple(parts)


def sums_of_parts(
    folder: str,
    public: Stored,
    weights: FloatArray,
    grid: Grid,
    parts: Sequence[tuple[Stored, tuple[Stored, ...]]],
) -> list[bytes | Lost]:
    """On a worker, in a clean process: return the sum of each part's integers, as bytes of 64-bit numbers."""
    side = _side(Path(folder), public)
    with one_thread(), np.errstate(all="ignore"):
        return [_units(Path(folder), side, part).summing(grid)(weights).tobytes() for part in parts]


_sides: dict[Stored, Any] = {}
_coordinates: dict[Stored, SummedRows] = {}


def _side(folder: Path, public: Stored) -> Any:
    """Return the public side, once this process has shown that it computes the same; nothing private was read yet."""
    from quorate.ensemble.workers.cluster.exchange import take

    if public not in _sides:
        side: PublicSide | DeclaredSide = take(folder, public)
        if side.computed() != side.answer:
            raise PreconditionFailed(other_bits(f"a worker on {os.uname().nodename}"))
        _sides.clear()
        _coordinates.clear()  # those of an earlier pool
        _sides[public] = side
    return _sides[public]


def _units(folder: Path, side: PublicSide, part: tuple[Stored, tuple[Stored, ...]]) -> SummedRows:
    """Return the coordinates of a part: kept from an earlier round, or made anew."""
    from quorate.ensemble.workers.cluster.exchange import take

    labels, pieces = part  # the file of classes and units, by which the part is known
    if labels in _coordinates:
        return _coordinates[labels]
    codes, units = take(folder, labels)

    def rows() -> Iterator[tuple[NDArray[np.int64], Any]]:
        for stored in pieces:
            yield from take(folder, stored)

    summed = units_of(side.plan.coordinates, PartOfRows(side.pool[:1], codes, units, rows), threads=Threads(1))
    if sum(kept.spool.size for kept in _coordinates.values()) + summed.spool.size <= _KEPT:
        _coordinates[labels] = summed
    return summed
