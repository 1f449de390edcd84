"""Private rows block by block: parsed, judged and made numbers anew in every pass, never all of them at once.

Whether a row is usable, and which numbers it becomes, depends on that row and on public facts alone, so that it does
not matter where a block ends. Of every row a label and the number of its unit are held, and no cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.ambient import unwarned
from quorate.data import PrivateRecords, fingerprint, is_frame, kind, take, width
from quorate.data.canonical import row_digests
from quorate.data.cell_text import is_missing
from quorate.data.columns import families
from quorate.data.declared_schema import LARGEST, NumberColumn
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.digests import SpooledDigests, pack
from quorate.data.rows import Rows, columns, from_arrow, n_rows, no_rows, summed_cells
from quorate.data.stream import PartedFrame
from quorate.data.unit_ids import UnitKeys, as_unit_keys, usable_slots
from quorate.deferred import sparse
from quorate.errors import DataRefused
from quorate.run.cells import as_the_column, finite_rows, frame_like, lists_of, real
from quorate.run.schema import Schema
from quorate.types import IntArray, Secret, Watching

CELLS = 1 << 22  # numbers of rows that are held at once, in each of some copies
AT_ONCE, TEXTS_AT_ONCE = 1 << 14, 1 << 13  # rows
SORTED_AT_ONCE = 1 << 18  # rows


@dataclass(frozen=True, slots=True, eq=False)
class PrivateTable:
    """A private table of any form, or one that is read part by part, as blocks of rows, each parsed by itself."""

    schema: Schema
    X: Any = field(repr=False)

    @classmethod
    def of(cls, schema: Schema, X: Any) -> PrivateTable:
        """Take a table, or refuse what is none. Whether it is one column of texts is decided for all rows at once."""
        X = from_arrow(X)
        if not (isinstance(X, (list, tuple)) or hasattr(X, "shape")):
            raise DataRefused(f"X: got {no_rows(X)}")
        if is_frame(schema.pool):
            X = as_the_column(X, schema.pool)
        elif sparse.issparse(X) and len(getattr(X, "shape", ())) == 2:
            X = real(X, "X")
            if X.format != "csr":  # whose rows are cut out as they are stored, and summed block by block
                X = summed_cells(X.astype(np.float64, copy=False))
        return cls(schema, X)

    def __len__(self) -> int:
        shape = getattr(self.X, "shape", ())
        return int(shape[0]) if shape else len(self.X)

    def parts(self) -> Iterator[Any]:
        """Yield the rows as they were given, some at once."""
        yield from self._blocks(self._at_once(1))

    def parsed(
        self, *, widest: int = 1, watch: Watching | None = None
    ) -> Iterator[tuple[int, Rows, NDArray[np.bool_]]]:
        """Yield where a block begins, its rows as the pool has them, and which of them can be used; `widest`: numbers
        of a row that are held at once, where those are more than its columns. Raises DataRefused as
        :meth:`Schema.parsed`.
        """
        for start, rows, _, usable in self.judged(widest=widest):
            yield start, rows, usable
            if watch is not None and len(usable):
                watch(start + len(usable), len(self))

    def judged(self, *, widest: int = 1) -> Iterator[tuple[int, Rows, Sequence[NDArray[np.bool_]], NDArray[np.bool_]]]:
        """Yield the same, and which cells of each column can be used, as :meth:`Schema.judged` has it."""
        start = 0
        for block in self._blocks(self._at_once(widest)):
            rows, fits, usable = self.schema.judged(block)
            yield start, rows, fits, usable
            start += len(usable)

    def as_declared(self, declared: DeclaredSchema) -> Rows:
        """Return all rows in one frame, as their schema reads them; unbounded numbers end where leaves end."""
        import polars as pl

        free = [name for name, held in declared.columns.items() if isinstance(held, NumberColumn) and held.low is None]
        parts = []
        for _, rows, fits, _ in self.judged():
            lost = {
                name: pl.Series(~usable) for name, usable in zip(rows.columns, fits, strict=True) if not usable.all()
            }
            missing = (pl.when(where).then(None).otherwise(pl.col(name)).alias(name) for name, where in lost.items())
            parts.append(rows.with_columns(missing).with_columns(pl.col(free).clip(-LARGEST, LARGEST)))
        return pl.concat(parts)

    def _at_once(self, widest: int) -> int:
        texts = is_frame(self.schema.pool) and "text" in families(self.schema.pool).values()
        cells = max(widest, width(self.schema.pool)) if kind(self.schema.pool) != "sparse" else widest
        return max(1, min(TEXTS_AT_ONCE if texts else AT_ONCE, CELLS // cells))

    def _blocks(self, at_once: int) -> Iterator[Any]:
        if isinstance(self.X, PartedFrame):
            yield from self.X.blocks(at_once)
        elif not self._has_rows:  # refused by who looks at it
            yield self.X
        else:
            rows = self.X.iloc if hasattr(self.X, "iloc") else self.X
            for start in range(0, max(len(self), 1), at_once):
                yield rows[start : start + at_once]

    @property
    def _has_rows(self) -> bool:
        framed = hasattr(self.X, "columns") and is_frame(self.X)
        if is_frame(self.schema.pool) or framed:
            return framed
        return isinstance(self.X, (list, tuple)) or len(getattr(self.X, "shape", ())) > 0

    def known(
        self, watch: Watching | None = None, *, folder: Path | None = None, most: int | None = None
    ) -> tuple[SpooledDigests, PrivateRecords]:
        """Return the digest of every row, and by what usable ones are known again, in one pass; `folder`, `most`: as of
        each of three :class:`~quorate.data.spool.Spool`.
        """
        digests = SpooledDigests(folder, most=most)

        def usable_rows() -> Iterator[Rows]:
            for _, rows, usable in self.parsed(watch=watch):
                read = typed(rows)
                digests.append(pack(row_digests(read) if len(usable) else []))
                yield take(read, np.flatnonzero(usable))

        return digests, PrivateRecords(usable_rows(), self.schema.kinds, folder=folder, most=most)

    def fingerprint(self, digests: SpooledDigests, labels: IntArray, slots: Sequence[bytes], key: Secret[bytes]) -> str:
        """Return the keyed fingerprint of the table: digests of its rows and its width tell what the rows are."""
        shape = np.broadcast_to(0.0, (len(digests), width(self.schema.pool)))
        return fingerprint(shape, labels, slots, key, digests=digests)


@dataclass(frozen=True, slots=True, eq=False)
class UsableRows:
    """The private side: a table, read when asked for, the class of each row (−1 for none, or without an id), and whose
    row it is (None where each is a unit). `n_slots`: units, those without a usable row included; public where it was
    declared or read.
    """

    table: PrivateTable = field(repr=False)
    codes: IntArray = field(repr=False)
    units: IntArray | None = field(repr=False)
    n_slots: int = field(repr=False)

    @classmethod
    def of(cls, table: PrivateTable, codes: IntArray, unit_keys: Sequence[bytes], *, grouped: bool) -> UsableRows:
        """Take what :func:`labels_and_slots` returned, beside a table."""
        if not grouped:
            return cls(table, codes, None, len(codes))
        keys = as_unit_keys(unit_keys)
        nobody = np.fromiter((not key for block in keys.blocks() for key in block), dtype=bool, count=keys.n_units)
        codes = np.where(keys.of_rows(nobody), codes.dtype.type(-1), codes)
        return cls(table, codes, keys.unit_of_row, int(keys.n_units - nobody.sum()))

    @property
    def public_row(self) -> Any:
        """One public row as numbers."""
        schema = self.table.schema
        return schema.numbers(take(schema.pool, np.arange(1)))

    def blocks(self, *, widest: int = 1, watch: Watching | None = None) -> Iterator[tuple[IntArray, Any]]:
        """Yield rows that can be used, as their places in the table and as numbers, dense or CSR."""
        schema = self.table.schema
        for start, rows, usable in self.table.parsed(widest=widest, watch=watch):
            kept = np.flatnonzero(usable & (self.codes[start : start + len(usable)] >= 0))
            numbers = _numbers(schema, rows, kept)
            sound = finite_rows(numbers)  # a transformer of the user's own may fail on a row
            yield start + kept[sound], numbers if sound.all() else numbers[sound]


def places_of(codes: IntArray, units: IntArray | None) -> tuple[IntArray | None, IntArray]:
    """Return where each unit begins among rows of all units, and the end, and the place of each row there.

    Rows stand in the order of their units, those of one in their own; −1: a row without a class, or nobody's. The first
    is None where every row is a unit. Sorted block by block, since an order of all rows would take 40 bytes of each.
    """
    known, narrow = codes >= 0, np.int32 if len(codes) <= np.iinfo(np.int32).max else np.int64
    places: IntArray = np.full(len(codes), -1, dtype=narrow)
    if units is None:
        places[known] = np.arange(int(known.sum()), dtype=narrow)
        return None, places
    least = int(units.min()) if len(units) else 0  # a part of a table has some alone
    sizes = np.zeros(int(units.max(initial=least - 1)) + 1 - least, dtype=np.int64)
    for rows in _blocks_of(known):
        np.add.at(sizes, units[rows] - least, 1)
    following = np.cumsum(sizes) - sizes
    starts = np.append(following[sizes > 0], sizes.sum())
    for rows in _blocks_of(known):
        order = np.argsort(units[rows], kind="stable")
        ranked = units[rows[order]] - least
        begins = np.flatnonzero(np.diff(ranked, prepend=-1))
        times = np.diff(begins, append=len(ranked))
        places[rows[order]] = following[ranked] + np.arange(len(ranked)) - np.repeat(begins, times)
        following[ranked[begins]] += times
    return starts, places


def _blocks_of(known: NDArray[np.bool_]) -> Iterator[IntArray]:
    for start in range(0, len(known), SORTED_AT_ONCE):
        yield start + np.flatnonzero(known[start : start + SORTED_AT_ONCE])


def labels_and_slots(
    y: Any, groups: Any, n_rows: int, *, codes: Callable[[list[Any]], IntArray], last: int, **place: Any
) -> tuple[IntArray, UnitKeys]:
    """Return the class of each row, read some at a time, and its slot; `last`: the largest code that there can be;
    `place`: as of :meth:`UnitKeys.read`. Raises DataRefused if there is not one label and one id a row.
    """
    narrow = np.int8 if last <= np.iinfo(np.int8).max else np.int32  # one byte of each row is held
    labels = np.concatenate([np.empty(0, dtype=narrow), *(codes(part).astype(narrow) for part in lists_of(y))])
    if groups is None:
        slots = UnitKeys.of_positions(n_rows)
    else:
        slots = UnitKeys.read((usable_slots(part, len(part)) for part in lists_of(groups)), **place)
    if not len(labels) == len(slots) == n_rows:
        raise DataRefused("X, y and groups differ in length; give one label, and one id, for every row")
    return labels, slots


def _numbers(schema: Schema, rows: Rows, kept: IntArray) -> Any:
    with np.errstate(all="ignore"), unwarned():  # a warning about what a private row holds would tell of it
        if not len(kept):
            return schema.numbers(take(schema.pool, np.arange(1)))[:0]
        return schema.numbers(rows if len(kept) == n_rows(rows) else take(rows, kept))


def typed(rows: Rows) -> Rows:
    """Return parsed rows in a container whose columns have types of their own: of a block without a text, too."""
    if kind(rows) != "pandas" or all(dtype.kind == "f" for dtype in rows.dtypes):
        return rows
    import polars as pl

    cells = [rows.iloc[:, place] for place in range(width(rows))]
    parsed = {
        name: [None if is_missing(cell) else cell for cell in column.tolist()]
        if column.dtype == object
        else column.to_numpy()
        for name, column in zip(columns(rows) or (), cells, strict=True)
    }
    return frame_like(pl.DataFrame(), parsed)
