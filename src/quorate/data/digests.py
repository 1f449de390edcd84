"""Digests of many rows in one array, 16 bytes a row, and what is asked of them: no object a row is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from quorate.data.spool import HashedRows, parts_of_bytes
from quorate.types import IntArray, Secret, WordArray, derive

DIGEST_BYTES = 16
AT_ONCE = 1 << 16  # rows of which there are objects at the same time
ORDERED_AT_ONCE = 1 << 18  # rows
_PLACE = np.dtype(np.int64)  # of a row, behind its digest
_COPIES_OF, _ALIKE = 20, 0.9  # fewer rows occur equally often by chance


class PackedDigests(Sequence[bytes]):
    """Digests of 16 bytes each, held as one array."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[np.uint8]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> PackedDigests: ...
    def __getitem__(self, index: int | slice) -> bytes | PackedDigests:
        return PackedDigests(self.array[index]) if isinstance(index, slice) else self.array[index].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        for content in self.blocks():
            whole = content.tobytes()
            for place in range(0, len(whole), DIGEST_BYTES):
                yield whole[place : place + DIGEST_BYTES]

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the digests in their order, some at once, ``(n, 16)``."""
        for start in range(0, len(self.array), AT_ONCE):
            yield self.array[start : start + AT_ONCE]

    def parts(self) -> Iterator[tuple[IntArray, NDArray[np.uint8]]]:
        """Yield places and digests of those rows whose first byte is in a range, from the least range on."""
        for low, high in parts_of_bytes(len(self.array), ORDERED_AT_ONCE):
            places = np.flatnonzero((self.array[:, 0] >= low) & (self.array[:, 0] < high))
            yield places, self.array[places]


class SpooledDigests:
    """The same of more rows than memory should hold: :meth:`blocks` and :meth:`parts` as of packed ones."""

    __slots__ = ("_rows",)

    def __init__(self, folder: Path | None = None, *, most: int | None = None) -> None:
        self._rows = HashedRows(DIGEST_BYTES + _PLACE.itemsize, folder, most=most)

    def __len__(self) -> int:
        return self._rows.n_rows

    def append(self, digests: PackedDigests) -> None:
        """Put the digests of further rows aside."""
        places = np.arange(len(self), len(self) + len(digests), dtype=_PLACE)
        self._rows.append(np.concatenate([digests.array, places.view(np.uint8).reshape(-1, _PLACE.itemsize)], axis=1))

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the digests in their order, some at once, ``(n, 16)``."""
        for rows in self._rows.blocks():
            yield rows[np.argsort(_places(rows)), :DIGEST_BYTES]

    def parts(self) -> Iterator[tuple[IntArray, NDArray[np.uint8]]]:
        """Yield places and digests of those rows whose first byte is in a range, from the least range on."""
        for _, _, rows in self._rows.parts(ORDERED_AT_ONCE):
            yield _places(rows), rows[:, :DIGEST_BYTES]

    def packed(self) -> PackedDigests:
        """Hold all of them."""
        return PackedDigests(np.concatenate([np.empty((0, DIGEST_BYTES), dtype=np.uint8), *self.blocks()]))


def _places(rows: NDArray[np.uint8]) -> IntArray:
    return np.ascontiguousarray(rows[:, DIGEST_BYTES:]).view(_PLACE)[:, 0]


def first_rows(digests: PackedDigests | SpooledDigests) -> IntArray:
    """Return the first row that has the same digest as each row, ``(n,)``."""
    first: IntArray = np.empty(len(digests), dtype=np.int32 if len(digests) <= np.iinfo(np.int32).max else np.int64)
    for places, array in digests.parts():
        words = words_of(array)
        order = order_of(*words.T)  # which is stable, and each place stands behind those before it
        ranked = words[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
        first[places[order]] = places[order][np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
    return first


def pack(digests: Sequence[bytes]) -> PackedDigests:
    """Put digests of 16 bytes side by side; what is packed comes back as it is."""
    if isinstance(digests, PackedDigests):
        return digests
    return PackedDigests(np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES))


class Tally(NamedTuple):
    """Distinct digests in their order, and how often each occurs."""

    words: WordArray  # (k, 2), or (k, 1) of shorter ones
    counts: NDArray[np.signedinteger[Any]]  # (k,)

    def __repr__(self) -> str:
        return "Tally(…)"


def tally(digests: Sequence[bytes]) -> Tally:
    """Count how often each digest occurs."""
    return tally_of_words(words_of(pack(digests).array))


def tally_of_words(words: WordArray) -> Tally:
    """Count how often each row of words ``(n, 2)`` or ``(n, 1)`` occurs."""
    words = np.sort(words, axis=0) if words.shape[1] == 1 else words[order_of(*words.T)]
    first = np.ones(len(words), dtype=np.bool_)
    first[1:] = (words[1:] != words[:-1]).any(axis=1)
    if first.all():
        return Tally(words, np.ones(len(words), dtype=np.int32))
    edges = np.append(np.flatnonzero(first), len(words))
    return Tally(words[first], np.diff(edges).astype(np.int32))


class Overlap(NamedTuple):
    """How often rows occur in another table, theirs, in ours, and in both ``(s, 2)``; of theirs no row is held.
    `times`, `rows`: how many of their distinct rows occur so often, ascending. `ours`: of each of our distinct rows.
    """

    times: IntArray
    rows: IntArray
    ours: IntArray
    both: IntArray

    def __repr__(self) -> str:
        return "Overlap(…)"

    @classmethod
    def of(cls, theirs: Iterable[tuple[int, int, Tally]], ours: Tally) -> Overlap:
        """Compare two tables. `theirs`: in parts, each of the rows whose first byte is in ``[low, high)``."""
        frequencies: Counter[int] = Counter()
        both = [np.empty((0, 2), dtype=np.int64)]
        first = ours.words[:, 0] >> np.uint64(56)
        for low, high, part in theirs:
            _count(frequencies, *np.unique(part.counts, return_counts=True))
            own = slice(*np.searchsorted(first, [low, high]).tolist())
            of_theirs, of_ours = shared(part, Tally(ours.words[own], ours.counts[own]))
            both.append(np.stack([part.counts[of_theirs], ours.counts[own][of_ours]], axis=1))
        return cls(*_sorted(frequencies), ours.counts.astype(np.int64), np.concatenate(both).astype(np.int64))

    @property
    def distinct(self) -> int:
        """Number of their distinct rows."""
        return int(self.rows.sum())

    def uncopied(self) -> Overlap:
        """Return it for the table that was copied, where nearly all their rows occur equally often; else itself."""
        if self.distinct < _COPIES_OF or self.rows.max() < _ALIKE * self.distinct:
            return self
        copies = self.times[self.rows.argmax()]
        frequencies: Counter[int] = Counter()
        _count(frequencies, -(-self.times // copies), self.rows)
        both = np.stack([-(-self.both[:, 0] // copies), self.both[:, 1]], axis=1)
        return Overlap(*_sorted(frequencies), self.ours, both)


def _count(frequencies: Counter[int], times: IntArray, rows: IntArray) -> None:
    for often, many in zip(times.tolist(), rows.tolist(), strict=True):
        frequencies[often] += many


def _sorted(frequencies: Counter[int]) -> tuple[IntArray, IntArray]:
    times = sorted(frequencies)
    return np.array(times, dtype=np.int64), np.array([frequencies[often] for often in times], dtype=np.int64)


def shared(one: Tally, other: Tally) -> tuple[IntArray, IntArray]:
    """Return where the digests that occur in both stand, in the one and in the other."""
    both = np.concatenate([one.words, other.words])
    order = order_of(*both.T)
    ranked = both[order]
    same = (ranked[1:] == ranked[:-1]).all(axis=1)  # the order is stable: the one's stands before the other's
    return order[:-1][same], order[1:][same] - len(one.words)


def words_of(array: NDArray[np.uint8]) -> WordArray:
    """Read bytes ``(n, 8 k)`` as whole numbers ``(n, k)`` whose order is that of the bytes."""
    words: WordArray = np.ascontiguousarray(array).view(">u8").astype(np.uint64)
    return words


def order_of(*columns: NDArray[np.uint64] | IntArray) -> IntArray:
    """Return the stable order of rows by the first column, then the others, read for the few rows that tie."""
    first = columns[0]
    order = np.argsort(first, kind="stable").astype(np.int64, copy=False)
    ranked = first[order]
    tied = np.zeros(len(first), dtype=np.bool_)
    tied[1:] = ranked[1:] == ranked[:-1]
    tied[:-1] |= tied[1:].copy()
    rows = order[tied]
    order[tied] = rows[np.lexsort([column[rows] for column in reversed(columns)])]
    return order


def order_of_rows(digests: PackedDigests | SpooledDigests, codes: IntArray, key: Secret[bytes]) -> str:
    """Return a keyed hash of rows in their order, by digests and codes: a shuffle gives a unit known by its place
    another, and what goes on must never see a row in two teachers, or both learning and held out.
    """
    hashed = blake2b(key=derive(key, "order"), digest_size=16)
    for block in digests.blocks():
        hashed.update(block.tobytes())
    for start in range(0, len(codes), AT_ONCE):
        hashed.update(codes[start : start + AT_ONCE].astype(np.int64).tobytes())
    return hashed.hexdigest()
