"""Whether a partition that was made is the one that the guarantee rests on: looked at, and not taken for granted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b

from quorate.ensemble.partition import Partition, rows_of_shards
from quorate.types import IntArray, Secret, derive


class PartitionFault(StrEnum):
    """What is wrong with a partition. Public: it tells of the code, and of no row."""

    ROW_NOT_IN_ONE_SHARD = "a row is in no shard, or in two"
    UNIT_IN_TWO_SHARDS = "the rows of one unit are in two shards"
    NOT_THE_KEYED_HASH = "a shard is not the one that the keyed hash of the unit gives"


def check_partition(
    unit_keys: Sequence[bytes], shards: Secret[IntArray], n_teachers: int, key: Secret[bytes], *, partition: Partition
) -> frozenset[PartitionFault]:
    """Look at a whole partition, as the teachers will get it.

    Three things are looked at, each by itself: every row reaches exactly one teacher, so that the teachers' rows
    together are as many as there are; all rows of a unit reach the same teacher; and the number of that teacher is the
    keyed hash of the unit modulo K (for ``"balanced"``: its place in the order of the hashes, modulo K), which no
    feature, no label and no other unit's row has a say in.

    Parameters
    ----------
    unit_keys : sequence of bytes, (n_rows,)
        The canonical bytes of each row's unit.
    shards : Secret[IntArray], (n_rows,)
        Shard numbers, as they were assigned.
    n_teachers : int
        K.
    key : Secret[bytes]
        The run's key.
    partition : {"hash", "balanced"}
        Which rule was meant.

    Returns
    -------
    frozenset of PartitionFault
        Empty where the partition is sound.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.ensemble.partition import hash_shards
    >>> unit_keys, key = [b"ann", b"bob", b"ann", b"cleo"], Secret(bytes(32))
    >>> check_partition(unit_keys, hash_shards(unit_keys, 2, key), 2, key, partition="hash")
    frozenset()
    >>> sorted(check_partition(unit_keys, Secret(np.arange(4) % 2), 2, key, partition="hash"))[:1]
    [<PartitionFault.NOT_THE_KEYED_HASH: 'a shard is not the one that the keyed hash of the unit gives'>]
    """
    assigned = shards.reveal().tolist()
    found = set()
    if not _each_row_once(shards.reveal(), len(unit_keys), n_teachers):
        found.add(PartitionFault.ROW_NOT_IN_ONE_SHARD)
    shard_of: dict[bytes, int] = {}
    for slot, shard in zip(unit_keys, assigned, strict=False):
        if shard_of.setdefault(slot, shard) != shard:
            found.add(PartitionFault.UNIT_IN_TWO_SHARDS)
    if shard_of != _expected(list(shard_of), n_teachers, key, partition):
        found.add(PartitionFault.NOT_THE_KEYED_HASH)
    return frozenset(found)


def _each_row_once(assigned: IntArray, n_rows: int, n_teachers: int) -> bool:
    """Whether the rows that the teachers get are all rows, each once."""
    if len(assigned) != n_rows:
        return False
    given = rows_of_shards(assigned, n_teachers, range(n_teachers))
    times = Counter(row for rows in given.values() for row in rows.tolist())
    return sum(times.values()) == n_rows and times.keys() == set(range(n_rows))


def _expected(units: list[bytes], n_teachers: int, key: Secret[bytes], partition: Partition) -> dict[bytes, int]:
    partition_key = derive(key, "partition")
    hashes = {unit: int.from_bytes(blake2b(unit, key=partition_key, digest_size=32).digest(), "big") for unit in units}
    if partition == "hash":
        return {unit: hashed % n_teachers for unit, hashed in hashes.items()}
    return {unit: place % n_teachers for place, unit in enumerate(sorted(units, key=lambda unit: (hashes[unit], unit)))}
