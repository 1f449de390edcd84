"""Whether a partition that was made is the one that the guarantee rests on: looked at, and not taken for granted."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from hashlib import blake2b

import numpy as np

from quorate.data.unit_keys import UnitKeys, as_unit_keys
from quorate.ensemble.partition import Partition, rows_of_shards
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret, derive


class PartitionFault(StrEnum):
    """What is wrong with a partition. Public: it tells of the code, and of no row."""

    ROW_NOT_IN_ONE_SHARD = "a row is in no shard, or in two"
    UNIT_IN_TWO_SHARDS = "the rows of one unit are in two shards"
    NOT_THE_KEYED_HASH = "a shard is not the one that the keyed hash of the unit gives"


@stored_as("quorate.ensemble.partition_check.check_partition")
def check_partition(
    unit_keys: Sequence[bytes], shards: Secret[IntArray], n_teachers: int, key: Secret[bytes], *, partition: Partition
) -> frozenset[PartitionFault]:
    """Look at a whole partition, as the teachers will get it.

    Three things are looked at, each by itself: every row reaches exactly one teacher, so that the teachers' rows
    together are as many as there are; all rows of a unit reach the same teacher; and the number of that teacher is the
    keyed hash of the unit modulo K (for ``"balanced"``: its place in the order of the hashes, modulo K; for ``"unit"``:
    that place, which no other unit has), in which no feature, no label and no other unit's row has a say.

    Parameters
    ----------
    unit_keys : sequence of bytes, (n_rows,)
        The canonical bytes of each row's unit.
    shards : Secret[IntArray], (n_rows,)
        Shard numbers, as they were assigned.
    n_teachers : int
        K; for ``"unit"`` the number of shards.
    key : Secret[bytes]
        The run's key.
    partition : {"hash", "balanced", "unit"}
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
    assigned, keys = shards.reveal(), as_unit_keys(unit_keys)
    found = set()
    if not _each_row_once(assigned, len(keys), n_teachers):
        found.add(PartitionFault.ROW_NOT_IN_ONE_SHARD)
    unit_of_row = keys.of_rows(np.arange(keys.n_units))[: len(assigned)]
    lowest = np.full(keys.n_units, np.iinfo(np.int64).max)
    highest = np.full(keys.n_units, np.iinfo(np.int64).min)
    np.minimum.at(lowest, unit_of_row, assigned[: len(unit_of_row)])
    np.maximum.at(highest, unit_of_row, assigned[: len(unit_of_row)])
    if (lowest < highest).any():
        found.add(PartitionFault.UNIT_IN_TWO_SHARDS)
    expected = _expected(keys, n_teachers, key, partition)
    if not (np.array_equal(lowest, expected) and np.array_equal(highest, expected)):
        found.add(PartitionFault.NOT_THE_KEYED_HASH)
    return frozenset(found)


def _each_row_once(assigned: IntArray, n_rows: int, n_teachers: int) -> bool:
    """Whether the rows that the teachers get are all rows, each once."""
    if len(assigned) != n_rows:
        return False
    given = rows_of_shards(assigned, n_teachers, range(n_teachers))
    rows = np.concatenate(list(given.values()))
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
