"""Which teacher sees which unit: the partition that makes one unit the business of exactly one teacher.

A *slot* is a unit's identity as canonical bytes. Rows that share a slot always share a shard, so a person with
many rows is still one unit. Neither rule looks at a feature or a label.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import numpy as np

from quorate.arguments import count, one_of
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import Secret, derive

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quorate.types import IntArray

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
    units, hashes = _hash_units(unit_keys, n_teachers, key)
    shard_of = {unit: hashed % n_teachers for unit, hashed in zip(units, hashes, strict=True)}
    return _assigned(unit_keys, shard_of)


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
    units, hashes = _hash_units(unit_keys, n_teachers, key)
    ranked = sorted(zip(hashes, units, strict=True))
    return _assigned(unit_keys, {unit: rank % n_teachers for rank, (_, unit) in enumerate(ranked)})


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


def _hash_units(unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes]) -> tuple[list[bytes], list[int]]:
    """Return the distinct slots and the 256-bit keyed hash of each."""
    if not isinstance(cast("object", key), Secret):
        raise InvalidParameter(f"key must be the run's Secret key of bytes, got {type(key).__name__}")
    if not all(isinstance(slot, bytes) for slot in unit_keys):
        raise InvalidParameter("unit_keys must be bytes, one per row; encode unit ids canonically first")
    units = list(dict.fromkeys(unit_keys))
    if n_teachers > len(units):
        raise DataRefused(
            f"too many teachers: n_teachers={n_teachers} is more than the units in the private table, so some teachers "
            'could only abstain. Use fewer teachers, or n_teachers="auto"'
        )
    partition_key = derive(key, "partition")
    hashed = (blake2b(unit, key=partition_key, digest_size=_HASH_BYTES).digest() for unit in units)
    return units, [int.from_bytes(digest, "big") for digest in hashed]


def _assigned(unit_keys: Sequence[bytes], shard_of: dict[bytes, int]) -> Secret[IntArray]:
    return Secret(np.fromiter((shard_of[slot] for slot in unit_keys), dtype=np.int64, count=len(unit_keys)))
