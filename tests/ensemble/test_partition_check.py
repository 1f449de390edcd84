"""The check of a partition finds every way in which one unit could change two teachers; a sound one it lets pass."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.data.unit_keys import as_unit_keys
from quorate.ensemble import PartitionFault, check_partition, partition_rows
from quorate.types import Secret, derive

KEY = Secret(bytes(range(32)))
SLOTS = [f"unit {row // 3}".encode() for row in range(60)]  # twenty units of three rows
ALL = frozenset(PartitionFault)

units = st.lists(st.integers(0, 12), min_size=1, max_size=40).map(lambda rows: [bytes([row]) for row in rows])


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("partition", ["hash", "balanced", "unit"])
@given(unit_keys=units, n=st.integers(1, 13), byte=st.integers(0, 255))
def test_every_partition_that_is_made_is_sound(partition, unit_keys, n, byte):
    n_teachers, key = min(n, len(set(unit_keys))), Secret(bytes([byte]) * 32)
    if partition == "unit":
        n_teachers = len(set(unit_keys))
    made = partition_rows(unit_keys, n_teachers, key, partition=partition)
    assert check_partition(unit_keys, made, n_teachers, key, partition=partition) == frozenset()


def faults(assigned, *, unit_keys=SLOTS, partition="hash", n_teachers=5):
    return check_partition(unit_keys, Secret(np.asarray(assigned)), n_teachers, KEY, partition=partition)


def sound(partition="hash"):
    return partition_rows(SLOTS, 5, KEY, partition=partition).reveal()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("partition", ["hash", "balanced"])
@pytest.mark.parametrize("row", [0, 1, 2, 31, 59])
def test_one_row_in_another_shard_is_found(partition, row):
    moved = sound(partition).copy()
    moved[row] = (moved[row] + 1) % 5
    assert PartitionFault.UNIT_IN_TWO_SHARDS in faults(moved, partition=partition)


def test_two_units_in_one_shard_are_found_where_each_is_to_have_its_own():
    found = sound("unit")
    assert len(set(found.tolist())) == 20
    found = np.minimum(found, 18)
    assert faults(found, partition="unit", n_teachers=20) == {PartitionFault.NOT_THE_KEYED_HASH}


def test_rows_dealt_out_one_by_one_are_found():
    assert faults(np.arange(60) % 5) == {PartitionFault.UNIT_IN_TWO_SHARDS, PartitionFault.NOT_THE_KEYED_HASH}


@pytest.mark.parametrize("partition", ["hash", "balanced"])
def test_a_whole_unit_that_was_moved_is_found(partition):
    """Units are whole, and yet the shard of this one hangs on something else."""
    moved = sound(partition).copy()
    moved[:3] = (moved[:3] + 1) % 5
    assert faults(moved, partition=partition) == {PartitionFault.NOT_THE_KEYED_HASH}


def test_a_hash_without_the_key_is_found():
    unkeyed = [int.from_bytes(blake2b(slot, digest_size=32).digest(), "big") % 5 for slot in SLOTS]
    assert faults(unkeyed) == {PartitionFault.NOT_THE_KEYED_HASH}


def test_one_kind_of_partition_is_not_taken_for_the_other():
    assert faults(sound("balanced"), partition="hash") == {PartitionFault.NOT_THE_KEYED_HASH}
    assert faults(sound("hash"), partition="balanced") == {PartitionFault.NOT_THE_KEYED_HASH}


@pytest.mark.parametrize("lost", [-1, 5, 99])
def test_a_row_that_no_teacher_gets_is_found(lost):
    assigned = sound().copy()
    assigned[7] = lost
    assert PartitionFault.ROW_NOT_IN_ONE_SHARD in faults(assigned)


def test_too_few_and_too_many_shard_numbers_are_found():
    assert PartitionFault.ROW_NOT_IN_ONE_SHARD in faults(sound()[:-1])
    assert PartitionFault.ROW_NOT_IN_ONE_SHARD in faults(np.append(sound(), 0))


def test_a_row_that_two_teachers_get_is_found(monkeypatch):
    """What the teachers get is looked at, and not only what was assigned."""
    module = "quorate.ensemble.partition.rows_of_shards"
    monkeypatch.setattr(module, lambda assigned, n, numbers: {number: np.arange(12) for number in numbers})
    assert faults(sound()) == {PartitionFault.ROW_NOT_IN_ONE_SHARD}


def test_the_check_works_the_hash_out_by_itself(monkeypatch):
    """A partition with a broken hash must not be measured by that same hash."""
    broken = np.tile(np.array([0, 0, 0, 3], dtype=np.uint64), (len(set(SLOTS)), 1))
    monkeypatch.setattr(
        "quorate.ensemble.partition._hash_units", lambda unit_keys, n, key: (as_unit_keys(unit_keys), iter([broken]))
    )
    assert faults(partition_rows(SLOTS, 5, KEY).reveal()) == {PartitionFault.NOT_THE_KEYED_HASH}
    assert derive(KEY, "partition") != KEY.reveal()
