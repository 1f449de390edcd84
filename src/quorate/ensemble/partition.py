"""Which teacher sees which unit: the partition that makes one unit the business of exactly one teacher.

A *slot* is a unit's identity as canonical bytes. Rows that share a slot always share a shard, so a person with
many rows is still one unit. Neither rule looks at a feature or a label.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import numpy as np

from quorate.arguments import count, one_of
from quorate.data.packed import order_of, words_of
from quorate.data.unit_keys import as_unit_keys
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import Secret, derive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from quorate.data.unit_keys import UnitKeys
    from quorate.types import IntArray, WordArray

Partition: TypeAlias = Literal["hash", "balanced"]

# 256 bits reduced modulo K: no shard's probability is off by more than 2^-256 absolutely, whatever K is, far under
# the 2^-64 that would already be below every other failure probability in the package.
_HASH_BYTES = 32


def change_of_one_teacher(partition: Partition) -> Literal["add-remove-replace", "replace"]:
    """Return the change of one unit that changes exactly one teacher.

    Examples
    --------
    >>> change_of_one_teacher("hash"), change_of_one_teacher("balanced")
    ('add-remove-replace', 'replace')
    """
    one_of("partition", partition, get_args(Partition))
    return "add-remove-replace" if partition == "hash" else "replace"


def hash_shards(unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes]) -> Secret[IntArray]:
    """Assign every row to a shard by a keyed hash of its slot alone.

    ``shard = BLAKE2b(slot; derived key) mod K``. Since no other row, and no count of rows, enters, adding, removing
    or replacing the rows of one slot leaves the shard of every other slot where it was.

    Parameters
    ----------
    unit_keys : sequence of bytes, (n_rows,)
        The canonical bytes of each row's unit.
    n_teachers : int
        K, at least 1.
    key : Secret[bytes]
        The run's key; the partition's own key is derived from it.

    Returns
    -------
    Secret[IntArray], (n_rows,)
        Shard numbers, 0..K-1. A shard may be empty: its teacher abstains.

    Raises
    ------
    InvalidParameter
        If `n_teachers` is not a whole number >= 1, a slot is not bytes, or `key` is not a Secret.
    DataRefused
        If `n_teachers` is above the number of units.

    Notes
    -----
    Privacy: valid for neighbours by add, remove and replace. Secret, because a shard number tells who was trained
    on together.

    Examples
    --------
    >>> key = Secret(bytes(32))
    >>> shards = hash_shards([b"ann", b"bob", b"ann", b"cleo"], 2, key).reveal()
    >>> shards[0] == shards[2]
    np.True_
    """
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    keys, hashes = _hash_units(unit_keys, n_teachers, key)
    return Secret(keys.of_rows(np.concatenate([_modulo(words, n_teachers) for words in hashes])))


def balanced_shards(unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes]) -> Secret[IntArray]:
    """Assign units to shards of equal size, ±1 unit, by a random permutation of the distinct slots.

    The permutation sorts the slots by a keyed hash, so it is uniform to anyone without the key, and depends neither
    on the order of the rows nor on how many rows a unit has.

    Parameters
    ----------
    unit_keys, n_teachers, key
        As in :func:`hash_shards`.

    Returns
    -------
    Secret[IntArray], (n_rows,)
        Shard numbers, 0..K-1; no shard is empty.

    Raises
    ------
    InvalidParameter, DataRefused
        As in :func:`hash_shards`.

    Notes
    -----
    Privacy: valid for neighbours by *replace* only. One more or one fewer slot moves the ranks, and so the shards,
    of others; a guarantee that rests on this partition must say so (:func:`change_of_one_teacher`).

    Examples
    --------
    >>> shards = balanced_shards([b"ann", b"bob", b"cleo", b"dan"], 2, Secret(bytes(32)))
    >>> np.bincount(shards.reveal()).tolist()
    [2, 2]
    """
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    keys, hashes = _hash_units(unit_keys, n_teachers, key)
    shard = np.empty(keys.n_units, dtype=np.int64)
    shard[order_of(*np.concatenate(list(hashes)).T)] = np.arange(keys.n_units) % n_teachers
    return Secret(keys.of_rows(shard))


def partition_rows(
    unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes], *, partition: Partition = "hash"
) -> Secret[IntArray]:
    """Assign every row to a shard by the rule named `partition`.

    Examples
    --------
    >>> partition_rows([b"ann", b"bob"], 2, Secret(bytes(32)), partition="balanced")
    Secret(…)
    """
    one_of("partition", partition, get_args(Partition))
    return (hash_shards if partition == "hash" else balanced_shards)(unit_keys, n_teachers, key)


def rows_of_shards(shards: IntArray, n_teachers: int, numbers: Iterable[int]) -> dict[int, IntArray]:
    """Return, for each teacher in `numbers`, the positions of its rows in the order of the table.

    The order inside a shard is that of the table, so that one changed unit cannot reorder another teacher's rows.

    Examples
    --------
    >>> rows_of_shards(np.array([1, 0, 1]), 2, range(2))
    {0: array([1]), 1: array([0, 2])}
    """
    order = np.argsort(shards, kind="stable")
    edges = np.searchsorted(shards[order], np.arange(n_teachers + 1))
    return {number: order[edges[number] : edges[number + 1]] for number in numbers}


def _hash_units(
    unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes]
) -> tuple[UnitKeys, Iterator[WordArray]]:
    """Return the distinct slots, and the 256-bit keyed hash of each, block by block, as four words a slot."""
    if not isinstance(cast("object", key), Secret):
        raise InvalidParameter(f"key must be the run's Secret key of bytes, got {type(key).__name__}")
    keys = as_unit_keys(unit_keys)
    if n_teachers > keys.n_units:
        raise DataRefused(
            f"too many teachers: n_teachers={n_teachers} is more than the units in the private table, so some teachers "
            'could only abstain. Use fewer teachers, or n_teachers="auto"'
        )
    partition_key = derive(key, "partition")

    def hashed() -> Iterator[WordArray]:
        for units in keys.blocks():
            digests = [blake2b(unit, key=partition_key, digest_size=_HASH_BYTES).digest() for unit in units]
            yield words_of(np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, _HASH_BYTES))

    return keys, hashed()


def _modulo(words: WordArray, n_teachers: int) -> IntArray:
    """Return whole numbers of four words each, the highest first, modulo K.

    Examples
    --------
    >>> _modulo(np.array([[0, 0, 1, 2], [2**64 - 1] * 4], dtype=np.uint64), 1000).tolist()
    [618, 935]
    >>> (2**64 + 2) % 1000, (2**256 - 1) % 1000
    (618, 935)
    """
    if n_teachers >= 2**31:  # the products below would not fit
        numbers = [int.from_bytes(row.astype(">u8").tobytes(), "big") % n_teachers for row in words]
        return np.array(numbers, dtype=np.int64)
    modulus, step = np.uint64(n_teachers), np.uint64(2**64 % n_teachers)
    rest = np.zeros(len(words), dtype=np.uint64)
    for word in words.T:
        rest = (rest * step + word % modulus) % modulus
    return rest.astype(np.int64)
