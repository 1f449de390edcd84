"""Digests of many rows in one array, 16 bytes a row, and what is asked of them: no object a row is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from quorate.types import IntArray, Secret, WordArray, derive

DIGEST_BYTES = 16
AT_ONCE = 1 << 16  # rows of which there are objects at the same time
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
        for start in range(0, len(self.array), AT_ONCE):
            content = self.array[start : start + AT_ONCE].tobytes()
            for place in range(0, len(content), DIGEST_BYTES):
                yield content[place : place + DIGEST_BYTES]


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


def once(table: Tally) -> Tally:
    """Count every distinct digest once: a table that was repeated is no disguise."""
    return Tally(table.words, np.ones_like(table.counts))


def uncopied(table: Tally) -> Tally:
    """Return the table that was copied, where nearly all distinct digests occur one number of times; itself else.

    Examples
    --------
    >>> rows = [bytes([place] * 16) for place in range(30)]
    >>> uncopied(tally(3 * rows + rows[:1])).counts.tolist() == [2] + 29 * [1]
    True
    >>> uncopied(tally(3 * rows[:2])).counts.tolist()
    [3, 3]
    """
    if len(table.counts) < _COPIES_OF:
        return table
    times, frequencies = np.unique(table.counts, return_counts=True)
    copies = int(times[frequencies.argmax()])
    if frequencies.max() < _ALIKE * len(table.counts):
        return table
    return Tally(table.words, -(-table.counts // copies))


def shared(one: Tally, other: Tally) -> tuple[IntArray, IntArray]:
    """Return where the digests that occur in both stand, in the one and in the other.

    Examples
    --------
    >>> one, other = tally([b"a" * 16, b"b" * 16]), tally([b"b" * 16, b"c" * 16])
    >>> [places.tolist() for places in shared(one, other)]
    [[1], [0]]
    """
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
    """Return the order of rows by the first column, then by the second and so on; equal rows keep their places.

    Columns of hashes hardly repeat, so that all but the first are looked at for the few rows that tie there.
    """
    first = columns[0]
    order = np.argsort(first, kind="stable").astype(np.int64, copy=False)
    ranked = first[order]
    tied = np.zeros(len(first), dtype=np.bool_)
    tied[1:] = ranked[1:] == ranked[:-1]
    tied[:-1] |= tied[1:].copy()
    rows = order[tied]
    order[tied] = rows[np.lexsort([column[rows] for column in reversed(columns)])]
    return order


def order_of_rows(digests: PackedDigests, codes: IntArray, key: Secret[bytes]) -> str:
    """Return a keyed hash of rows in their order, by their digests and codes.

    A fingerprint does not see a shuffle. Where a unit is known by its place a shuffle gives each row another one, and
    what goes on must never see a row in two teachers, or among those that learn and those that are held out.
    """
    hashed = blake2b(key=derive(key, "order"), digest_size=16)
    hashed.update(digests.array.tobytes())
    hashed.update(np.asarray(codes, dtype=np.int64).tobytes())
    return hashed.hexdigest()
