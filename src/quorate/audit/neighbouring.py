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
        return self._taken(np.setdiff1d(np.arange(len(self.y)), rows))

    def _taken(self, rows: IntArray) -> NeighbouringTable:
        return NeighbouringTable(take(self.X, rows), self.y[rows], self.units[rows])


def neighbours_of(
    table: NeighbouringTable, unit: Any, change: Change, classes: NDArray[Any], rng: np.random.Generator
) -> Iterator[tuple[Touched, NeighbouringTable]]:
    """Yield tables that differ from `table` in the rows of one unit.

    Parameters
    ----------
    table : NeighbouringTable
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
        from scipy.sparse import csr_matrix, diags_array

        factors = np.ones(X.shape[0])
        factors[rows] = factor
        product = csr_matrix(diags_array(factors) @ X)
        product.sort_indices()  # a product leaves them in an order of its own, and sums would round otherwise
        return product
    return None
