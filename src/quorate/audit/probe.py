"""One changed unit: neighbouring tables, which teachers the change moved, and the likely cause of several.

In a neighbouring table the rows of one unit are removed, added, or replaced by others, in any container of rows. A
cause is read off what kind of change moved whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quorate.data.rows import Rows, kind, take
from quorate.deferred import sparse
from quorate.types import IntArray, Secret

Change: TypeAlias = Literal["add", "remove", "replace"]
CHANGES: tuple[Change, ...] = get_args(Change)

#: What of a unit was replaced, in place: its features by another unit's, or stretched far out; its labels; stretched
#: features and labels that contradict them; the label of its first row alone. "everything" leaves one row of the unit.
Touched: TypeAlias = Literal["features", "outlier", "label", "contradiction", "one row", "everything", "rows"]


@dataclass(frozen=True, slots=True, eq=False)
class NeighbouringTable:
    """Private rows with their labels and units; every field has one entry a row."""

    X: Rows
    y: NDArray[Any]
    units: NDArray[Any]

    def without(self, rows: IntArray) -> NeighbouringTable:
        """Return the table without these rows; the others keep their order and their units."""
        return self._of_rows(np.setdiff1d(np.arange(len(self.y)), rows))

    def _of_rows(self, rows: IntArray) -> NeighbouringTable:
        return NeighbouringTable(take(self.X, rows), self.y[rows], self.units[rows])


def neighbours_of(
    table: NeighbouringTable, unit: Any, change: Change, classes: NDArray[Any], rng: np.random.Generator
) -> Iterator[tuple[Touched, NeighbouringTable]]:
    """Yield tables that differ from one of at least two units in the rows of one; `rng` chooses rows that come in."""
    mine = np.flatnonzero(table.units == unit)
    others = np.flatnonzero(table.units != unit)
    everyone = np.arange(len(table.y))
    donors = rng.choice(others, size=mine.size)
    if change == "remove":
        yield "rows", table.without(mine)
    elif change == "add":
        longer = table._of_rows(np.concatenate([everyone, donors]))
        added = slice(len(everyone), None)
        longer.y[added] = _other_labels(longer.y[added], classes)
        units = np.concatenate([table.units, np.array([_new_unit(table.units)] * mine.size)])
        yield "rows", NeighbouringTable(longer.X, longer.y, units)
    else:
        yield from _replaced(table, mine, donors, classes)


def _replaced(
    table: NeighbouringTable, mine: IntArray, donors: IntArray, classes: NDArray[Any]
) -> Iterator[tuple[Touched, NeighbouringTable]]:
    everyone = np.arange(len(table.y))
    donated = everyone.copy()
    donated[mine] = donors
    contrary, contrary_in_one_row = table.y.copy(), table.y.copy()
    contrary[mine] = _other_labels(table.y[mine], classes)
    contrary_in_one_row[mine[0]] = contrary[mine[0]]
    yield "features", NeighbouringTable(take(table.X, donated), table.y, table.units)
    yield "label", NeighbouringTable(table.X, contrary, table.units)
    for factor in _FACTORS:
        stretched = _stretched(table.X, mine, factor)
        if stretched is not None:
            yield "outlier", NeighbouringTable(stretched, table.y, table.units)
            yield "contradiction", NeighbouringTable(stretched, contrary, table.units)
    if mine.size > 1:
        yield "one row", NeighbouringTable(table.X, contrary_in_one_row, table.units)
    yield "everything", NeighbouringTable(take(table.X, donated), contrary, table.units).without(mine[1:])


def _other_labels(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return the next class for each label."""
    places = np.argmax(labels[:, None] == classes[None, :], axis=1)
    return np.asarray(classes[(places + 1) % len(classes)].astype(labels.dtype))


def _new_unit(units: NDArray[Any]) -> Any:
    if units.dtype.kind in "iu":
        return units.max() + 1
    new = "added by the audit"
    while new in set(units.tolist()):
        new += "+"
    return new


#: A rule that only hard rows trip is found with rows of some difficulty, not with the farthest.
_FACTORS = (30.0, 1000.0)


def _stretched(X: Rows, rows: IntArray, factor: float) -> Rows | None:
    """Return `X` with these rows far out; None for a frame, whose columns may not be numbers."""
    if kind(X) == "numpy":
        table = np.array(X, dtype=np.float64)
        table[rows] = factor * table[rows] + factor / 10
        return table
    if kind(X) == "sparse":
        factors = np.ones(X.shape[0])
        factors[rows] = factor
        product = sparse.csr_matrix(sparse.diags_array(factors) @ X)
        product.sort_indices()  # a product leaves them in an order of its own, and sums would round otherwise
        return product
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One changed unit, and what it did.

    `change`: "add", "remove" or "replace": what was done to the unit.
    `touched`: what of the unit changed: its features, an outlier among them, its label, …
    `unit`: which of the audited units, 0, 1, …; not its id.
    `moved`: how many teachers' parameters or votes changed.
    `voted_otherwise`: how many of these vote otherwise somewhere on the table.
    `resized`: whether the number of teachers changed.
    `stopped`: whether the whole training stopped with an exception.
    `teachers`: which ones moved.
    """

    change: Change
    touched: Touched
    unit: int
    moved: int
    voted_otherwise: int
    resized: bool
    stopped: bool
    teachers: Secret[frozenset[int]] = field(repr=False)


RESIZED = "the number of teachers depends on the rows: fix it beforehand."
STOPPED = (
    "the rows of one unit can stop the whole training, and that it stopped is an output: let a teacher that cannot be "
    "trained abstain."
)
SEVERAL_SHARDS = "the rows of one unit lie in several shards: split by unit (groups), not by row."
BY_POSITION = (
    "rows are dealt out by position or by their number (blocks, renumbering, equal sizes): when a unit comes or goes, "
    "others change shard. Assign each unit by a keyed hash of its id."
)
POOLED_FEATURES = (
    "something is fitted on the features of all rows together: a scaler, an encoder, a vocabulary or a feature "
    "selection. Put it inside each teacher, or fit it on public data."
)
POOLED_LABELS = (
    "something is fitted on the labels of all rows together: class weights, a target encoding or a feature selection; "
    "or the teachers share one optimiser. Put it inside each teacher."
)
SHARED_STOPPING = (
    "the teachers share a rule that only some records trip: when to stop, a step size, a tolerance. "
    "Let each teacher stop by its own shard."
)
CHAIN = (
    "the teachers after the changed one moved too: something is handed on from teacher to teacher, such as a random "
    "generator, a warm start or a cache. Derive each teacher's seed from its number."
)


def likely_causes(probes: Sequence[Probe], n_teachers: int) -> tuple[str, ...]:
    """Return likely causes, the likeliest first; none where no probe moved more than one teacher.

    What is fitted on pooled features moves everybody whenever any feature changes, and nobody else when only a label
    does; a shared stopping rule moves everybody or nobody; a partition by position is blind to replacement in place; a
    unit spread over shards moves no more than one teacher a row.
    """
    causes = []
    if any(probe.stopped for probe in probes):
        causes.append(STOPPED)
        probes = [probe for probe in probes if not probe.stopped]
    if any(probe.resized for probe in probes):
        causes.append(RESIZED)
    in_place = [probe for probe in probes if probe.touched in {"features", "outlier", "label", "contradiction"}]
    wide = [probe for probe in in_place if probe.moved > 1]
    if wide:
        causes.append(_of_replacement(probes, in_place, wide, n_teachers))
    elif any(probe.moved > 1 for probe in probes):
        causes.append(BY_POSITION)
        if _is_chain(probes, n_teachers):  # consecutive blocks move in the same way
            causes.append(CHAIN)
    return tuple(dict.fromkeys(causes))


def _of_replacement(probes: Sequence[Probe], in_place: Sequence[Probe], wide: Sequence[Probe], n_teachers: int) -> str:
    by_features = [probe for probe in in_place if probe.touched != "label"]
    by_label = [probe for probe in in_place if probe.touched == "label"]
    one_row = [probe for probe in probes if probe.touched == "one row"]
    if one_row and all(probe.moved <= 1 for probe in one_row) and max(probe.moved for probe in wide) < n_teachers:
        return SEVERAL_SHARDS
    if by_label and all(probe.moved > 1 for probe in by_label):
        return CHAIN if _is_chain(wide, n_teachers) else POOLED_LABELS
    if all(probe.moved > 1 for probe in by_features) and all(probe.moved <= 1 for probe in by_label):
        return POOLED_FEATURES
    return CHAIN if _is_chain(wide, n_teachers) else SHARED_STOPPING


def _is_chain(probes: Sequence[Probe], n_teachers: int) -> bool:
    """Whether always the teachers from some number on moved, and not always all of them."""
    moved = [probe.teachers.reveal() for probe in probes if probe.moved > 1]
    tails = all(numbers == frozenset(range(min(numbers), n_teachers)) for numbers in moved)
    return bool(moved) and tails and any(len(numbers) < n_teachers for numbers in moved)
