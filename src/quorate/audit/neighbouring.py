"""Neighbouring tables: the rows of one unit removed, added, or replaced by others; any container of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from quorate.data.rows import Rows, kind, take
from quorate.types import IntArray

Change: TypeAlias = Literal["add", "remove", "replace"]
CHANGES: tuple[Change, ...] = get_args(Change)

#: What of a unit was replaced: its features alone, its labels alone, all (by a single row), or its first row's label.
Touched: TypeAlias = Literal["features", "outlier", "label", "everything", "one row", "rows"]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Private rows with their labels and units; every field has one entry a row."""

    X: Rows
    y: NDArray[Any]
    units: NDArray[Any]

    def without(self, rows: IntArray) -> Table:
        """Return the table without these rows; the others keep their order and their units."""
        return self._taken(np.setdiff1d(np.arange(len(self.y)), rows))

    def _taken(self, rows: IntArray) -> Table:
        return Table(take(self.X, rows), self.y[rows], self.units[rows])


def neighbours_of(
    table: Table, unit: Any, change: Change, classes: NDArray[Any], rng: np.random.Generator
) -> Iterator[tuple[Touched, Table]]:
    """Yield tables that differ from `table` in the rows of one unit.

    Parameters
    ----------
    table : Table
        Of at least two units.
    unit : object
        A value of ``table.units``.
    change : {"add", "remove", "replace"}
        "add" appends a copy of the unit's rows, with other labels, as a unit that was not there.
    classes : array
        Labels to choose from.
    rng : numpy.random.Generator
        Chooses the rows that come in.
    """
    mine = np.flatnonzero(table.units == unit)
    others = np.flatnonzero(table.units != unit)
    everyone = np.arange(len(table.y))
    donors = rng.choice(others, size=mine.size)
    if change == "remove":
        yield "rows", table.without(mine)
    elif change == "add":
        longer = table._taken(np.concatenate([everyone, donors]))
        added = slice(len(everyone), None)
        longer.y[added] = _other_labels(longer.y[added], classes)
        units = np.concatenate([table.units, np.array([_new_unit(table.units)] * mine.size)])
        yield "rows", Table(longer.X, longer.y, units)
    else:
        yield from _replaced(table, mine, donors, classes)


def _replaced(table: Table, mine: IntArray, donors: IntArray, classes: NDArray[Any]) -> Iterator[tuple[Touched, Table]]:
    moved = np.arange(len(table.y))
    moved[mine] = donors
    yield "features", Table(take(table.X, moved), table.y, table.units)
    outlier = _stretched(table.X, mine)
    if outlier is not None:
        yield "outlier", Table(outlier, table.y, table.units)
    labels = table.y.copy()
    labels[mine] = _other_labels(labels[mine], classes)
    yield "label", Table(table.X, labels, table.units)
    if mine.size > 1:
        labels = table.y.copy()
        labels[mine[:1]] = _other_labels(labels[mine[:1]], classes)
        yield "one row", Table(table.X, labels, table.units)
    labels = table.y.copy()
    labels[mine] = _other_labels(labels[mine], classes)
    changed = Table(take(table.X, moved), labels, table.units)
    yield "everything", changed.without(mine[1:])


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


def _stretched(X: Rows, rows: IntArray) -> Rows | None:
    """Return `X` with these rows far out; None for a frame, whose columns may not be numbers."""
    if kind(X) == "numpy":
        table = np.array(X, dtype=np.float64)
        table[rows] = 30 * table[rows] + 3
        return table
    if kind(X) == "sparse":
        from scipy.sparse import csr_matrix, diags_array

        factors = np.ones(X.shape[0])
        factors[rows] = 30.0
        return csr_matrix(diags_array(factors) @ X)
    return None
