"""The unit of every row, each unit written down once: what is hashed is a unit, however many rows it has."""

from __future__ import annotations

from abc import abstractmethod
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
    """The canonical bytes of each row's unit, as a sequence of one entry a row."""

    @property
    @abstractmethod
    def n_units(self) -> int:
        """Number of distinct units."""

    @abstractmethod
    def units(self, start: int, stop: int) -> list[bytes]:
        """Return the bytes of the units from `start` to `stop`, in an order of their own."""

    @abstractmethod
    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give every row the value of its unit: ``(n_units, …)`` to ``(n_rows, …)``."""

    @abstractmethod
    def unit_of(self, row: int) -> int:
        """Return the number of a row's unit."""

    @property
    def named(self) -> bool:
        """Whether a unit is known by an id, and not by the place of its row."""
        return True

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), AT_ONCE):
            yield from self[start : start + AT_ONCE]

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield the bytes of all units, so many at once that they fit into memory."""
        for start in range(0, self.n_units, AT_ONCE):
            yield self.units(start, min(start + AT_ONCE, self.n_units))

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        unit = self.unit_of(index % len(self))
        return self.units(unit, unit + 1)[0]


class PositionKeys(UnitKeys):
    r"""Every row is a unit of its own, known by its place."""

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    @property
    def n_units(self) -> int:
        """Number of rows."""
        return self._n_rows

    @property
    def named(self) -> bool:
        """Places are no names."""
        return False

    def units(self, start: int, stop: int) -> list[bytes]:
        """Return the places from `start` to `stop`."""
        return [POSITION + position.to_bytes(8, "big") for position in range(start, stop)]

    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values as they are."""
        return values

    def unit_of(self, row: int) -> int:
        """Return the row."""
        return row

    def __iter__(self) -> Iterator[bytes]:
        for units in self.blocks():
            yield from units


class _Indexed(UnitKeys):
    """Units that may have several rows."""

    def __init__(self, unit_of_row: IntArray) -> None:
        self._unit_of_row = unit_of_row

    def __len__(self) -> int:
        return len(self._unit_of_row)

    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Look the unit of each row up."""
        return values[self._unit_of_row]

    def unit_of(self, row: int) -> int:
        """Look the unit of a row up."""
        return int(self._unit_of_row[row])


class IdKeys(_Indexed):
    """Units known by ids, held as one column of distinct canonical texts, and each row's place among them."""

    def __init__(self, texts: pl.Series, unit_of_row: IntArray) -> None:
        super().__init__(unit_of_row)
        self._texts = texts

    @property
    def n_units(self) -> int:
        """Number of distinct ids."""
        return len(self._texts)

    def units(self, start: int, stop: int) -> list[bytes]:
        """Return the ids from `start` to `stop`."""
        return [ID + text.encode("utf-8", "surrogatepass") for text in self._texts[start:stop].to_list()]


class ListedKeys(_Indexed):
    """Units whose bytes are listed once each, and each row's place among them."""

    def __init__(self, units: list[bytes], unit_of_row: IntArray) -> None:
        super().__init__(unit_of_row)
        self._units = units

    @property
    def named(self) -> bool:
        """Whether any of them is more than a place."""
        return not all(unit.startswith(POSITION) for unit in self._units)

    @property
    def n_units(self) -> int:
        """Number of distinct units."""
        return len(self._units)

    def units(self, start: int, stop: int) -> list[bytes]:
        """Return the units from `start` to `stop`."""
        return self._units[start:stop]


def as_unit_keys(unit_keys: Sequence[bytes]) -> UnitKeys:
    """Take the units of rows as distinct ones; refuse an entry of a list that is not bytes."""
    if isinstance(unit_keys, UnitKeys):
        return unit_keys
    if not all(isinstance(unit, bytes) for unit in unit_keys):
        raise InvalidParameter("unit_keys must be bytes, one per row; encode unit ids canonically first")
    number = {unit: place for place, unit in enumerate(dict.fromkeys(unit_keys))}
    places = np.fromiter((number[unit] for unit in unit_keys), dtype=np.int64, count=len(unit_keys))
    return ListedKeys(list(number), places)


def count_units(unit_keys: Sequence[bytes]) -> int:
    """Count the distinct units."""
    return unit_keys.n_units if isinstance(unit_keys, UnitKeys) else len(set(unit_keys))


def one_row_of_each(unit_keys: Sequence[bytes], key: Secret[bytes]) -> IntArray:
    """Return one row of every unit, ``(n_units,)``, in the order of the table: the least keyed BLAKE2b(unit ‖ number).

    A unit's rows are numbered in their order, so that the row follows from the unit, how many rows it has and the key:
    not from places in the table, what rows hold, nor other units. A row without id (empty bytes) is nobody's.
    """
    keys = as_unit_keys(unit_keys)
    if isinstance(keys, PositionKeys):
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
                numbers[number] = min(range(times), key=lambda place: _rank(choice, unit, place))
            number += 1
    rows = order[ends - n_rows + numbers]
    return np.sort(rows[~nobody])


def _rank(choice: bytes, unit: bytes, number: int) -> bytes:
    return blake2b(unit + number.to_bytes(8, "big"), key=choice, digest_size=16).digest()
