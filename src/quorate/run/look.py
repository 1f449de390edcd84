"""The owner's own look at a private table: how much of it can be used, and how it compares with the public rows.

No message of a direct run may depend on private rows, so that nothing warns of labels, ids or cells that say nothing.
This is what warns: where it is asked for, on the owner's terminal alone. It holds counts and names of columns, and no
cell; it is outside the guarantee, in no JSON, log or file, and nothing of a run or a fit keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.figures import plural
from quorate.data import PrivateRecords, is_frame, kind
from quorate.data.canonical import row_digests
from quorate.data.cell_text import is_missing
from quorate.data.columns import column, in_words, listed
from quorate.data.digests import PackedDigests, pack, shared, tally
from quorate.data.labels import codes_of
from quorate.data.rows import Rows, columns, n_rows, width
from quorate.data.unit_ids import UnitKeys, count_units, usable_slots
from quorate.findings import Finding, note
from quorate.run.cell_task import CellTask
from quorate.run.cells import lists_of
from quorate.run.remarks import NAMES, TOLERATED, Names, notes_on_tables, remarks
from quorate.run.usable_rows import PrivateTable, typed
from quorate.types import Secret

OUTSIDE = (
    "what follows was counted in {private} for you alone: it is outside the guarantee, is written nowhere, and must "
    "not be reported"
)
COMPARED = 1 << 24  # numbers of private rows that are held to be compared with the public ones
SHOWN = 30  # columns that have a line of their own


@dataclass(slots=True)
class ColumnCells:
    """How many cells of one column can be used, and what keeps others from saying what they might."""

    name: str
    usable: int = 0
    missing: int = 0
    unread: int = 0  # texts of a column of numbers that are none
    unknown: int = 0  # categories that no public row has, or no declared list
    beyond: int = 0  # numbers outside of the declared bounds
    entries: set[str] = field(default_factory=set, repr=False)  # the different categories
    public: frozenset[str] | None = field(default=None, repr=False)  # public or declared ones; None: not compared
    bounds: tuple[float, float] | None = None  # that were declared
    declared: bool = False  # whether a schema stands in the place of public rows

    def add(self, fits: NDArray[np.bool_], cells: Any, unread: int) -> None:
        """Count the cells of a block, as they were read."""
        texts = not isinstance(cells, np.ndarray) or cells.dtype == object
        gone = np.array([is_missing(cell) for cell in cells], dtype=bool) if texts else np.isnan(cells)
        self.usable += int(fits.sum()) - unread
        self.missing += int((gone & fits).sum())
        self.unread += unread
        if texts and self.public is not None:
            words = [cell for cell, absent in zip(cells, gone.tolist(), strict=True) if not absent]
            self.unknown += sum(word not in self.public for word in words)
            self.entries.update(words)
        if self.bounds is not None and not texts:
            numbers = cells[~gone]
            self.beyond += int(((numbers < self.bounds[0]) | (numbers > self.bounds[1])).sum())

    @property
    def lost(self) -> set[str]:
        """The different categories that no public row has."""
        return self.entries - self.public if self.public is not None else set()

    @property
    def complete(self) -> bool:
        """Whether there is nothing to say of the column."""
        return not (self.missing or self.unread or self.unknown or self.beyond)

    def words(self, n: int) -> str:
        """Return what is said of the column, of `n` rows."""
        rest = (
            (self.missing, "of these missing"),
            (self.unread, "no number, and taken as missing"),
            (
                self.unknown,
                f"with an entry that {'the schema does not list' if self.declared else 'no public row has'}",
            ),
            (self.beyond, "beyond the bounds of the schema"),
        )
        said = ", ".join(f"{times:,} {what}" for times, what in rest if times)
        return f"{self.name!r}: {self.usable:,} of {n:,} can be used{f' ({said})' if said else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """How much of a private table can be used, in counts; `rows`: as a whole, None where teachers vote."""

    names: Names
    n: int
    labels: tuple[int, int]
    ids: int | None
    rows: int | None
    cells: tuple[ColumnCells, ...]
    notes: tuple[Finding, ...] = ()
    of_number: bool = False
    without_rows: tuple[str, ...] = ()  # declared classes

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what is printed: a word and a line each."""
        n, (usable, missing) = self.n, self.labels
        yield "LOOK", OUTSIDE.format(private=self.names.private)
        wrong = "no number" if self.of_number else "none of the declared classes"
        rest = ((n - usable - missing, wrong), (missing, "missing"))
        said = "".join(f"; {times:,} {'is' if times == 1 else 'are'} {what}" for times, what in rest if times)
        yield "targets" if self.of_number else "labels", f"{usable:,} of {n:,} can be used{said}"
        if self.without_rows:
            classes = ("class " if len(self.without_rows) == 1 else "classes ") + listed(self.without_rows)
            yield "labels", f"no row has the {classes}; a declared class without rows costs budget all the same"
        if self.ids is not None:
            without = n - self.ids
            said = f"; {without:,} {'row has' if without == 1 else 'rows have'} none" if without else ""
            yield "ids", f"{self.ids:,} of {n:,} can be used{said}"
        whole = [cells for cells in self.cells if cells.usable == n and cells.complete]
        lacking = [cells for cells in self.cells if cells.usable != n or not cells.complete]
        yield from (("cells", cells.words(n)) for cells in lacking[:SHOWN])
        if len(lacking) > SHOWN:
            yield "cells", f"{len(lacking) - SHOWN:,} more columns lack some, or hold missing ones"
        if whole:
            yield "cells", f"{in_words([cells.name for cells in whole])}: all of {n:,} can be used"
        if self.rows is not None:
            left = f"; {n - self.rows:,} would be left out{self._remedy()}" if self.rows < n else ""
            yield "rows", f"{self.rows:,} of {n:,} can be used as a whole{left}"
        yield from (("note", note.words) for note in self.notes)
        if self.is_hopeless:
            words = (
                "no row can be used, so that a run would spend the whole budget for nothing: see the lines with 0. "
                "[data] says how tables are written (date_format, decimal, encoding, missing), [schema] and classes "
                "say what they hold"
            )
            yield "note", words

    def _remedy(self) -> str:
        """Return what can be done about cells that cannot be read; no cell is quoted."""
        unread = [cells.name for cells in self.cells if cells.usable < self.n]
        if not unread:
            return ""
        how = 'list such texts under [data], as in missing = ["<0,6", "k.A."], which reads them as missing'
        mostly = [cells.name for cells in self.cells if 2 * cells.usable < self.n]
        write = 'say under [data] how they are written: decimal = ",", thousands = "." or date_format = "dd.mm.yyyy"'
        if not self.names.n_records.startswith("["):
            how, write = "write them as None, which is a missing value", "give numbers or dates, and not texts"
        most = f". Most cells of {in_words(mostly)} cannot be read: {write}" if mostly else ""
        return (
            f"{most}. A cell of {in_words(unread)} that cannot be read leaves out its row: {how}, or clean the column"
        )

    @property
    def is_hopeless(self) -> bool:
        """Whether no row can be used."""
        return self.n > 0 and (self.rows == 0 or self.labels[0] == 0 or self.ids == 0)


NO_LOOK: Secret[Look | None] = Secret(None)


@dataclass(slots=True)
class CountedCells:
    """What one pass over a private table counts."""

    cells: list[ColumnCells]
    whole: int = 0
    digests: list[NDArray[np.uint8]] = field(default_factory=list, repr=False)
    kept: list[Rows] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, table: PrivateTable, *, compared: bool, whole_rows: NDArray[np.bool_] | None = None) -> CountedCells:
        """Count the cells of a table; rows are held where they are `compared`. `whole_rows`: by their label and id."""
        schema, pool = table.schema, table.schema.pool
        names = columns(pool) or tuple(str(place) for place in range(width(pool)))
        counted = cls([] if kind(pool) == "sparse" else [ColumnCells(name) for name in names])
        if is_frame(pool) and (compared or schema.declared):
            for at, known in schema.categories().items():
                counted.cells[at].public = known
            for at, bounds in schema.bounds().items():
                counted.cells[at].bounds = bounds
            for cells in counted.cells:
                cells.declared = bool(schema.declared)
        room = COMPARED
        for start, rows, fits, usable in table.judged():
            unread = schema.unread(rows)
            for at, cells in enumerate(counted.cells):
                cells.add(fits[at], _cells(rows, at), unread.get(at, 0))
            if whole_rows is not None:
                counted.whole += int((usable & whole_rows[start : start + len(usable)]).sum())
            if compared and len(usable):
                counted.digests.append(pack(row_digests(typed(rows))).array)
                if room > 0:
                    counted.kept.append(rows)
                    room -= n_rows(rows) * width(rows)
        return counted

    def rows(self) -> Rows:
        """The rows that are held, as one table of the pool's types."""
        if kind(self.kept[0]) == "polars":
            import polars as pl

            return pl.concat(self.kept)
        if kind(self.kept[0]) == "pandas":
            import pandas as pd

            return pd.concat(self.kept, ignore_index=True)
        return np.concatenate(self.kept) if kind(self.kept[0]) == "numpy" else self.kept[0]  # sparse: not compared


def _cells(rows: Rows, at: int) -> Any:
    if not is_frame(rows):
        return rows[:, at]
    series = column(rows, at)
    return series.to_list() if hasattr(series, "to_physical") and not series.dtype.is_float() else series.to_numpy()


def compared_with_schema(counted: CountedCells, n: int, names: Names) -> tuple[Finding, ...]:
    """Return of which columns most cells of `n` rows are not what their owner declared."""
    strange = [cells.name for cells in counted.cells if 2 * (cells.unknown + cells.beyond) > max(n - cells.missing, 1)]
    words = (
        f"most cells of {in_words(strange)} of {names.private} are in no list and within no bounds of the schema, so "
        "that what they say is lost, and the budget would be spent all the same. See that values are written as in the "
        "table; what is declared must be public knowledge, and not read off it"
    )
    return (note("private-cells-are-not-declared", words),) if strange else ()


def compared_with_pool(counted: CountedCells, records: PrivateRecords, pool: Rows, names: Names) -> tuple[Finding, ...]:
    """Return what the rows and the categories of both tables say, beside each other."""
    return remarks(lambda: _equal_rows(counted, records, pool, names), lambda: _unknown_categories(counted, names))


def _equal_rows(counted: CountedCells, records: PrivateRecords, pool: Rows, names: Names) -> Iterator[Finding]:
    """Yield that private rows are public ones, cell by cell."""
    theirs = tally(PackedDigests(np.concatenate(counted.digests)))
    here, _ = shared(theirs, tally(row_digests(typed(pool))))
    equal = int(theirs.counts[here].sum())
    if not equal:
        return
    more = (
        "that is more than chance explains: leave those rows out of the public ones, since for whoever they are about "
        "the guarantee does not hold"
        if records.are_in(pool)
        else "where rows hold few different values, chance makes them so"
    )
    yield note(
        "private-rows-are-public",
        f"{equal:,} {'row' if equal == 1 else 'rows'} of {names.private} equal{'s' * (equal == 1)} a row of "
        f"{names.public} in every cell; {more}",
    )


def _unknown_categories(counted: CountedCells, names: Names) -> Iterator[Finding]:
    """Yield of which columns most categories stand in no public row."""
    unknown = [cells for cells in counted.cells if 2 * len(cells.lost) > len(cells.entries)]
    if unknown:
        of = ", ".join(f"{c.name!r} ({len(c.lost):,} of {len(c.entries):,} different entries)" for c in unknown)
        yield note(
            "private-categories-are-unknown",
            f"most entries of {of} of {names.private} stand in no row of {names.public}, so that what they say is "
            "lost. See that both are written in the same way, or give public rows that hold them",
        )


def look_by_cells(
    task: CellTask,
    y: Any,
    groups: Any | None,
    *,
    names: Names = NAMES,
    ids: Callable[[UnitKeys], Iterable[Finding]] = lambda _: (),
) -> Secret[Look | None]:
    """Look at the private rows of a task, part by part; `ids`: makes what there is to say of shared ids. Privacy:
    outside the guarantee, for the owner's terminal alone.
    """
    private = task.private.reveal()
    labels = np.concatenate([np.empty(0, dtype=np.int64), *(_codes(part, task) for part in lists_of(y))])
    keys = UnitKeys.read(usable_slots(part, len(part)) for part in lists_of(groups)) if task.grouped else None
    counted = CountedCells.of(private.table, compared=task.has_public_pool, whole_rows=private.codes >= 0)
    notes: tuple[Finding, ...] = ()
    if task.has_public_pool:
        pool = task.schema.parsed(task.schema.pool)[0]
        notes = (
            *compared_with_pool(counted, task.records, pool, names),
            *remarks(lambda: notes_on_tables(counted.rows(), pool, task.schema.kinds, names).reveal()),
        )
    elif task.schema.declared:
        notes = compared_with_schema(counted, len(labels), names)
    notes += () if keys is None else remarks(lambda: ids(keys))
    notes += remarks(lambda: _declared_number(task, len(labels) if keys is None else count_units(keys), names))
    return Secret(
        Look(
            names=names,
            n=len(labels),
            labels=(int((labels >= 0).sum()), int((labels == -2).sum())),
            ids=None if keys is None else sum(map(bool, keys)),
            rows=counted.whole,
            cells=tuple(counted.cells),
            notes=notes,
            of_number=task.target_range is not None,
            without_rows=without_rows(labels, task.classes),
        )
    )


def without_rows(codes: NDArray[np.int64], classes: Sequence[Any]) -> tuple[str, ...]:
    """Return the declared classes that no row has, by the codes of labels."""
    return tuple(str(name) for code, name in enumerate(classes) if not (codes == code).any())


def _declared_number(task: CellTask, units: int, names: Names) -> Iterator[Finding]:
    """Say that the declared number of units is far from theirs, by which the plan of a run was made."""
    if not task.n_was_read and abs(task.n_declared - units) > TOLERATED * units:
        yield note(
            "declared-number-is-off",
            f"{names.n_records.rstrip('=')} = {task.n_declared:,} is more than 10 % off the number of "
            f"{plural(task.unit)} in {names.private}, and the run is planned by the declared one",
        )


def _codes(labels: list[Any], task: CellTask) -> NDArray[np.int64]:
    """Return the class of each label, or its step in the range; −1 for what is none, −2 for a missing one."""
    held = task.target_range
    codes = codes_of(labels, task.classes) if held is None else held.steps_of(labels)
    return np.where([is_missing(label) for label in labels], -2, codes) if len(codes) else codes
