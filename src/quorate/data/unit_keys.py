"""The unit of every row, each unit written down once: what is hashed is a unit, however many rows it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from quorate.data.digests import AT_ONCE
from quorate.errors import InvalidParameter
from quorate.types import IntArray, Secret, derive

if TYPE_CHECKING:
    import polars as pl

ID, POSITION = b"id:", b"row:"


class UnitKeys(Sequence[bytes]):
    """The canonical bytes of each row's unit, as a sequence of one entry a row.

    `held`: the bytes of each unit, or a column of ids as canonical texts; None where every row is a unit of its own,
    known by its place. `unit_of_row`: the place of each row's unit among them. `n_units`: number of distinct units.
    """

    def __init__(self, n_units: int, held: list[bytes] | pl.Series | None, unit_of_row: IntArray | None) -> None:
        self.n_units, self._held, self._unit_of_row = n_units, held, unit_of_row

    @classmethod
    def of_positions(cls, n_rows: int) -> UnitKeys:
        """Take every row as a unit of its own."""
        return cls(n_rows, None, None)

    @classmethod
    def of_units(cls, held: list[bytes] | pl.Series, unit_of_row: IntArray) -> UnitKeys:
        """Take units that may have several rows."""
        return cls(len(held), held, unit_of_row)

    @property
    def by_position(self) -> bool:
        """Whether every row is a unit of its own."""
        return self._unit_of_row is None

    @property
    def named(self) -> bool:
        """Whether a unit is known by an id, and not by the place of its row."""
        if isinstance(self._held, list):
            return not all(unit.startswith(POSITION) for unit in self._held)
        return self._held is not None

    def units(self, start: int, stop: int) -> list[bytes]:
        """Return the bytes of the units from `start` to `stop`, in an order of their own."""
        if self._held is None:
            return [POSITION + position.to_bytes(8, "big") for position in range(start, stop)]
        if isinstance(self._held, list):
            return self._held[start:stop]
        return [ID + text.encode("utf-8", "surrogatepass") for text in self._held[start:stop].to_list()]

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield the bytes of all units, so many at once that they fit into memory."""
        for start in range(0, self.n_units, AT_ONCE):
            yield self.units(start, min(start + AT_ONCE, self.n_units))

    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give every row the value of its unit: ``(n_units, …)`` to ``(n_rows, …)``."""
        return values if self._unit_of_row is None else values[self._unit_of_row]

    def __len__(self) -> int:
        return self.n_units if self._unit_of_row is None else len(self._unit_of_row)

    def __iter__(self) -> Iterator[bytes]:
        if self._unit_of_row is None:
            for units in self.blocks():
                yield from units
            return
        for start in range(0, len(self), AT_ONCE):
            yield from self[start : start + AT_ONCE]

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        row = index % len(self)
        unit = row if self._unit_of_row is None else int(self._unit_of_row[row])
        return self.units(unit, unit + 1)[0]


def as_unit_keys(unit_keys: Sequence[bytes]) -> UnitKeys:
    """Take the units of rows as distinct ones; refuse an entry of a list that is not bytes."""
    if isinstance(unit_keys, UnitKeys):
        return unit_keys
    if not all(isinstance(unit, bytes) for unit in unit_keys):
        raise InvalidParameter("unit_keys must be bytes, one per row; encode unit ids canonically first")
    number = {unit: place for place, unit in enumerate(dict.fromkeys(unit_keys))}
    places = np.fromiter((number[unit] for unit in unit_keys), dtype=np.int64, count=len(unit_keys))
    return UnitKeys.of_units(list(number), places)


def count_units(unit_keys: Sequence[bytes]) -> int:
    """Count the distinct units."""
    return unit_keys.n_units if isinstance(unit_keys, UnitKeys) else len(set(unit_keys))


def one_row_of_each(unit_keys: Sequence[bytes], key: Secret[bytes]) -> IntArray:
    """Return one row of every unit, ``(n_units,)``, in the order of the table: the least keyed BLAKE2b(unit ‖ number).

    A unit's rows are numbered in their order, so that the row follows from the unit, how many rows it has and the key:
    not from places in the table, what rows hold, nor other units. A row without id (empty bytes) is nobody's.
    """
    keys = as_unit_keys(unit_keys)
    if keys.by_position:
        return np.arange(len(keys))
    units = keys.of_rows(np.arange(keys.n_units))
    order = np.argsort(units, kind="stable")
    n_rows = np.bincount(units, minlength=keys.n_units)
    ends = np.cumsum(n_rows)
    choice, number = derive(key, "one row of each unit"), 0
    numbers = np.zeros(keys.n_units, dtype=np.int64)
    nobody = np.zeros(keys.n_units, dtype=bool)
    for block in keys.blocks():
        for unit, times in zip(block, n_rows[number : number + len(block)].tolist(), strict=True):
            nobody[number] = not unit
            if times > 1 and unit:
                ranks = [
                    blake2b(unit + at.to_bytes(8, "big"), key=choice, digest_size=16).digest() for at in range(times)
                ]
                numbers[number] = ranks.index(min(ranks))
            number += 1
    rows = order[ends - n_rows + numbers]
    return np.sort(rows[~nobody])
