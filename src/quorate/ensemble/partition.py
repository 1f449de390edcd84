"""Which teacher sees which unit: the partition that makes one unit the business of exactly one teacher.

A *slot* is a unit's identity as canonical bytes. Rows that share a slot always share a shard, so a person with
many rows is still one unit. Neither rule looks at a feature or a label. Whether a partition that was made is the one
that the guarantee rests on is looked at, and not taken for granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

import numpy as np

from quorate.arguments import count, one_of
from quorate.data.digests import order_of, words_of
from quorate.data.unit_ids import UnitKeys, as_unit_keys
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret, derive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.types import WordArray

Partition: TypeAlias = Literal["hash", "balanced", "unit"]

# 256 bits reduced modulo K: no shard's probability is off by more than 2^-256 absolutely, whatever K is, far under
# the 2^-64 that would already be below every other failure probability in the package.
_HASH_BYTES = 32


def change_of_one_teacher(partition: Partition) -> Literal["add-remove-replace", "replace"]:
    """Return the change of one unit that changes exactly one teacher."""
    one_of("partition", partition, get_args(Partition))
    return "replace" if partition == "balanced" else "add-remove-replace"


def hash_shards(
    unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes], *, fewer: bool = False
) -> Secret[IntArray]:
    """Assign every row to a shard 0..K-1 by a keyed hash of its slot alone; a shard may be empty: its teacher abstains.

    ``shard = BLAKE2b(slot; derived key) mod K``. Since no other row, and no count of rows, enters, adding, removing
    or replacing the rows of one slot leaves the shard of every other slot where it was.

    `unit_keys`: the canonical bytes of each row's unit, ``(n_rows,)``. `n_teachers`: K ≥ 1. `key`: the run's; the
    partition's own is derived from it. `fewer`: whether there may be fewer units than teachers, some of whom then
    abstain: no message tells of it. Raises InvalidParameter if `n_teachers` is no whole number >= 1, a slot is not
    bytes, or `key` is not a Secret; DataRefused if `n_teachers` is above the number of units, and `fewer` is False.

    Privacy: valid for neighbours by add, remove and replace. Secret, because a shard number tells who was trained on
    together.
    """
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    keys, hashes = _hash_units(unit_keys, n_teachers, key, fewer=fewer)
    shard = [np.empty(0, dtype=np.int64), *(_modulo(words, n_teachers) for words in hashes)]  # there may be no unit
    return Secret(keys.of_rows(np.concatenate(shard)))


def balanced_shards(unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes]) -> Secret[IntArray]:
    """Assign units to shards of equal size, ±1 unit, none empty, by a random permutation of the distinct slots.

    Arguments, errors and shape are those of :func:`hash_shards`. The permutation sorts the slots by a keyed hash, so it
    is uniform to anyone without the key, and depends neither on the order of the rows nor on how many rows a unit has.

    Privacy: valid for neighbours by *replace* only. One more or one fewer slot moves the ranks, and so the shards, of
    others; a guarantee that rests on this partition must say so (:func:`change_of_one_teacher`).
    """
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    keys, hashes = _hash_units(unit_keys, n_teachers, key)
    return Secret(keys.of_rows(_ranks(keys, hashes) % n_teachers))


def unit_shards(unit_keys: Sequence[bytes], key: Secret[bytes]) -> Secret[IntArray]:
    """Give every unit a shard of its own, so that its teacher is trained on the rows of that unit and no other.

    Arguments and errors are those of :func:`hash_shards`. Returns ``(n_rows,)`` shard numbers, 0..U-1 for U units, in
    the order of the units' keyed hashes; U is what there is, and as secret as the shards. The numbers mean nothing: a
    teacher's seed comes from its unit (:func:`seeds_of_units`), and votes are summed.

    Privacy: valid for neighbours by add, remove and replace. One more or one fewer slot moves the ranks of others, and
    no teacher with them: the set of pairs (rows of a unit, seed of that unit) gains one, or loses one, or has one
    changed. A sum of votes over that set changes by one vote.
    """
    keys, hashes = _hash_units(unit_keys, 1, key)
    return Secret(keys.of_rows(_ranks(keys, hashes)))


def _ranks(keys: UnitKeys, hashes: Iterator[WordArray]) -> IntArray:
    """Return the place of each unit in the order of the hashes, ``(n_units,)``."""
    ranks = np.empty(keys.n_units, dtype=np.int64)
    if keys.n_units:
        ranks[order_of(*np.concatenate(list(hashes)).T)] = np.arange(keys.n_units)
    return ranks


def seeds_of_units(unit_keys: Sequence[bytes], shards: Secret[IntArray], key: Secret[bytes]) -> Secret[IntArray]:
    """Return the seed 0..2^63-1 of each shard of :func:`unit_shards`, ``(U,)``: a keyed hash of the unit's identity
    alone.

    Privacy: a seed that came from a shard's number would change with the number of units before it, and a forest's
    votes with the seed: one unit would move many teachers.
    """
    keys, seed_key = as_unit_keys(unit_keys), derive(key, "teacher of a unit")
    digests = (blake2b(unit, key=seed_key, digest_size=8).digest() for units in keys.blocks() for unit in units)
    seeds = np.fromiter((int.from_bytes(digest, "big") >> 1 for digest in digests), dtype=np.int64, count=keys.n_units)
    by_shard = np.empty(keys.n_units, dtype=np.int64)
    by_shard[shards.reveal()] = keys.of_rows(seeds)
    return Secret(by_shard)


def partition_rows(
    unit_keys: Sequence[bytes],
    n_teachers: int,
    key: Secret[bytes],
    *,
    partition: Partition = "hash",
    fewer: bool = False,
) -> Secret[IntArray]:
    """Assign every row to a shard by the rule named `partition`; with ``"unit"``, whatever `n_teachers` is.

    `fewer`: as for :func:`hash_shards`.
    """
    one_of("partition", partition, get_args(Partition))
    if partition == "unit":
        return unit_shards(unit_keys, key)
    if partition == "hash":
        return hash_shards(unit_keys, n_teachers, key, fewer=fewer)
    return balanced_shards(unit_keys, n_teachers, key)


def shared_shards(partition: str) -> None:
    """Refuse, with InvalidParameter, a partition into shards of one unit where several units are meant to share one."""
    one_of("partition", partition, ("hash", "balanced"))


def rows_of_shards(shards: IntArray, n_teachers: int, numbers: Iterable[int]) -> dict[int, IntArray]:
    """Return the places of each teacher's rows, in the table's order: no unit can reorder another one's rows."""
    order = np.argsort(shards, kind="stable")
    edges = np.searchsorted(shards[order], np.arange(n_teachers + 1))
    return {number: order[edges[number] : edges[number + 1]] for number in numbers}


def _hash_units(
    unit_keys: Sequence[bytes], n_teachers: int, key: Secret[bytes], *, fewer: bool = False
) -> tuple[UnitKeys, Iterator[WordArray]]:
    """Return the distinct slots, and the 256-bit keyed hash of each, block by block, as four words a slot."""
    if not isinstance(cast("object", key), Secret):
        raise InvalidParameter(f"key must be the run's Secret key of bytes, got {type(key).__name__}")
    keys = as_unit_keys(unit_keys)
    if n_teachers > keys.n_units and not fewer:
        raise DataRefused(
            f"too many teachers: {named('n_teachers', n_teachers)} is more than the units in the private table, so "
            f"some teachers could only abstain. Use fewer teachers, or {named('n_teachers', 'auto')}"
        )
    partition_key = derive(key, "partition")

    def hashed() -> Iterator[WordArray]:
        for units in keys.blocks():
            digests = [blake2b(unit, key=partition_key, digest_size=_HASH_BYTES).digest() for unit in units]
            yield words_of(np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, _HASH_BYTES))

    return keys, hashed()


def _modulo(words: WordArray, n_teachers: int) -> IntArray:
    """Return whole numbers of four words each, the highest first, modulo K."""
    if n_teachers >= 2**31:  # the products below would not fit
        numbers = [int.from_bytes(row.astype(">u8").tobytes(), "big") % n_teachers for row in words]
        return np.array(numbers, dtype=np.int64)
    modulus, step = np.uint64(n_teachers), np.uint64(2**64 % n_teachers)
    rest = np.zeros(len(words), dtype=np.uint64)
    for word in words.T:
        rest = (rest * step + word % modulus) % modulus
    return rest.astype(np.int64)


class PartitionFault(StrEnum):
    """What is wrong with a partition. Public: it tells of the code, and of no row."""

    ROW_NOT_IN_ONE_SHARD = "a row is in no shard, or in two"
    UNIT_IN_TWO_SHARDS = "the rows of one unit are in two shards"
    NOT_THE_KEYED_HASH = "a shard is not the one that the keyed hash of the unit gives"


@stored_as("quorate.ensemble.partition_check.check_partition")
def check_partition(
    unit_keys: Sequence[bytes], shards: Secret[IntArray], n_teachers: int, key: Secret[bytes], *, partition: Partition
) -> frozenset[PartitionFault]:
    """Look at a whole partition, as the teachers will get it; return its faults, none where it is sound.

    Three things are looked at, each by itself: every row reaches exactly one teacher, so that the teachers' rows
    together are as many as there are; all rows of a unit reach the same teacher; and the number of that teacher is the
    keyed hash of the unit modulo K (for ``"balanced"``: its place in the order of the hashes, modulo K; for ``"unit"``:
    that place, which no other unit has), in which no feature, no label and no other unit's row has a say.

    `shards`: ``(n_rows,)``, as they were assigned; the rest as for the rule that was meant, `partition`. `n_teachers`:
    for ``"unit"`` the number of shards.
    """
    assigned, keys = shards.reveal(), as_unit_keys(unit_keys)
    faults = set()
    if not _each_row_once(assigned, len(keys), n_teachers):
        faults.add(PartitionFault.ROW_NOT_IN_ONE_SHARD)
    unit_of_row = keys.unit_of_row[: len(assigned)]
    lowest = np.full(keys.n_units, np.iinfo(np.int64).max)
    highest = np.full(keys.n_units, np.iinfo(np.int64).min)
    np.minimum.at(lowest, unit_of_row, assigned[: len(unit_of_row)])
    np.maximum.at(highest, unit_of_row, assigned[: len(unit_of_row)])
    if (lowest < highest).any():
        faults.add(PartitionFault.UNIT_IN_TWO_SHARDS)
    expected = _expected(keys, n_teachers, key, partition)
    if not (np.array_equal(lowest, expected) and np.array_equal(highest, expected)):
        faults.add(PartitionFault.NOT_THE_KEYED_HASH)
    return frozenset(faults)


def _each_row_once(assigned: IntArray, n_rows: int, n_teachers: int) -> bool:
    """Whether the rows that the teachers get are all rows, each once."""
    if len(assigned) != n_rows:
        return False
    by_shard = rows_of_shards(assigned, n_teachers, range(n_teachers))
    rows = np.concatenate(list(by_shard.values()))
    return len(rows) == n_rows and bool((np.bincount(rows, minlength=n_rows) == 1).all())


def _expected(keys: UnitKeys, n_teachers: int, key: Secret[bytes], partition: Partition) -> IntArray:
    """Return the shard of each unit, by the rule as it is written down and not by the code that assigned it."""
    partition_key = derive(key, "partition")
    hashes = (blake2b(unit, key=partition_key, digest_size=32).digest() for units in keys.blocks() for unit in units)
    if partition == "hash":
        numbers = (int.from_bytes(digest, "big") % n_teachers for digest in hashes)
        return np.fromiter(numbers, dtype=np.int64, count=keys.n_units)
    order = np.argsort(np.fromiter(hashes, dtype="S32", count=keys.n_units), kind="stable")
    shards = np.empty(keys.n_units, dtype=np.int64)
    shards[order] = np.arange(keys.n_units)
    return shards if partition == "unit" else shards % n_teachers
