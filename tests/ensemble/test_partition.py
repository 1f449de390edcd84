"""One unit, one shard, whatever the others do.

The check of a partition finds every way in which one unit could change two teachers; a sound one it lets pass.
"""

from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.data.unit_ids import as_unit_keys
from quorate.ensemble import (
    PartitionFault,
    balanced_shards,
    change_of_one_teacher,
    check_partition,
    hash_shards,
    partition_rows,
    seeds_of_units,
)
from quorate.ensemble.partition import _modulo
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import Secret, derive

FALSE_ALARM = 1e-6
KEY = Secret(bytes(range(32)))
RULES = [hash_shards, balanced_shards]
slot_lists = st.lists(st.binary(min_size=0, max_size=6), min_size=4, max_size=40).filter(lambda s: len(set(s)) >= 4)


def unit_keys(n: int) -> list[bytes]:
    return [row.to_bytes(4, "big") for row in range(n)]


def shard_of_slot(rule, rows: list[bytes], n_teachers: int, key: Secret[bytes] = KEY) -> dict[bytes, int]:
    return dict(zip(rows, rule(rows, n_teachers, key).reveal().tolist(), strict=True))


@pytest.mark.heavy
@pytest.mark.parametrize("rule", RULES)
@given(rows=slot_lists)
def test_rows_of_one_unit_never_cross_shards(rule, rows):
    shards = rule(rows, 3, KEY).reveal()

    assert all(len({s for r, s in zip(rows, shards, strict=True) if r == slot}) == 1 for slot in set(rows))
    assert shards.dtype == np.int64
    assert ((shards >= 0) & (shards < 3)).all()


@given(rows=slot_lists, new=st.binary(max_size=6))
def test_adding_or_removing_a_unit_moves_no_other_under_the_hash(rows, new):
    before = shard_of_slot(hash_shards, rows, 3)
    after = shard_of_slot(hash_shards, [new, *rows], 3)

    assert all(after[slot] == shard for slot, shard in before.items())


@given(rows=slot_lists, seed=st.integers(0, 99))
def test_neither_rule_looks_at_the_order_of_rows_or_how_many_a_unit_has(rows, seed):
    other = list(rows) + [rows[0]] * 3
    np.random.default_rng(seed).shuffle(other)

    for rule in RULES:
        assert shard_of_slot(rule, rows, 3) == shard_of_slot(rule, other, 3)


def test_the_balanced_rule_moves_others_when_a_unit_is_removed():
    """Why its guarantee is for replacement only; and this test would notice if the rules were swapped."""
    rows = unit_keys(200)
    before, after = shard_of_slot(balanced_shards, rows, 10), shard_of_slot(balanced_shards, rows[1:], 10)

    assert any(before[slot] != after[slot] for slot in rows[1:])


def test_the_hash_rule_is_the_keyed_blake2b_of_the_slot():
    rows = unit_keys(50)
    key = derive(KEY, "partition")
    slow = [int.from_bytes(blake2b(row, key=key, digest_size=32).digest(), "big") % 7 for row in rows]

    assert hash_shards(rows, 7, KEY).reveal().tolist() == slow
    words = np.array([[0, 0, 1, 2], [2**64 - 1] * 4], dtype=np.uint64)
    for modulus in (1000, 2**40 + 1):
        assert _modulo(words, modulus).tolist() == [(2**64 + 2) % modulus, (2**256 - 1) % modulus]


@settings(max_examples=30)
@given(n=st.integers(1, 60), n_teachers=st.integers(1, 60))
def test_balanced_shards_differ_by_at_most_one_unit(n, n_teachers):
    if n_teachers > n:
        return
    sizes = np.bincount(balanced_shards(unit_keys(n), n_teachers, KEY).reveal(), minlength=n_teachers)

    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("rule", RULES)
def test_another_key_gives_an_unrelated_partition(rule):
    rows = unit_keys(1000)
    same = (rule(rows, 10, KEY).reveal() == rule(rows, 10, Secret(bytes(32))).reveal()).mean()

    assert 0.04 < same < 0.18


@pytest.mark.parametrize("rule", RULES)
def test_more_teachers_than_units_are_refused_without_telling_how_many_units(rule):
    with pytest.raises(DataRefused, match="too many teachers: n_teachers=20 ") as refusal:
        rule([b"a", b"b", b"c"] * 7, 20, KEY)

    assert "3" not in str(refusal.value)
    assert "21" not in str(refusal.value)


@pytest.mark.parametrize("n_teachers", [0, -1, True, 2.0, "2", float("nan")])
def test_a_number_of_teachers_that_is_none_is_refused(n_teachers):
    with pytest.raises(InvalidParameter, match="n_teachers"):
        hash_shards(unit_keys(5), n_teachers, KEY)


@pytest.mark.parametrize("rule", RULES)
def test_a_numpy_whole_number_of_teachers_is_taken(rule):
    assert (rule(unit_keys(50), np.int64(7), KEY).reveal() == rule(unit_keys(50), 7, KEY).reveal()).all()


def test_slots_that_are_not_bytes_and_keys_that_are_not_secret_are_refused():
    with pytest.raises(InvalidParameter, match="unit_keys must be bytes") as refusal:
        hash_shards(["ann"], 1, KEY)
    assert "ann" not in str(refusal.value)
    with pytest.raises(InvalidParameter, match="key must be"):
        hash_shards(unit_keys(5), 1, bytes(32))


def test_each_rule_names_the_neighbours_it_is_valid_for():
    assert change_of_one_teacher("hash") == "add-remove-replace"
    assert change_of_one_teacher("balanced") == "replace"
    with pytest.raises(InvalidParameter, match='did you mean "hash"'):
        change_of_one_teacher("hahs")


def test_a_teacher_of_one_unit_has_its_seed_whoever_else_is_there():
    rows = [b"ann", b"bob", b"cleo", b"ann"]
    assert partition_rows(rows, 9, KEY, partition="unit").reveal().tolist()[::3] in ([0, 0], [1, 1], [2, 2])
    seeds = [
        set(seeds_of_units(part, partition_rows(part, 1, KEY, partition="unit"), KEY).reveal().tolist())
        for part in (rows[:2], rows)
    ]
    assert seeds[0] < seeds[1]
    assert len(seeds[1]) == 3


def test_partition_rows_picks_the_rule_by_name():
    rows = unit_keys(30)

    assert (partition_rows(rows, 3, KEY).reveal() == hash_shards(rows, 3, KEY).reveal()).all()
    balanced = partition_rows(rows, 3, KEY, partition="balanced").reveal()
    assert (balanced == balanced_shards(rows, 3, KEY).reveal()).all()
    with pytest.raises(InvalidParameter, match="partition"):
        partition_rows(rows, 3, KEY, partition="blocks")


SLOTS = [f"unit {row // 3}".encode() for row in range(60)]  # twenty units of three rows

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


def faults(assigned, partition="hash"):
    n_teachers = 20 if partition == "unit" else 5
    return check_partition(SLOTS, Secret(np.asarray(assigned)), n_teachers, KEY, partition=partition)


def sound(partition="hash"):
    return partition_rows(SLOTS, 5, KEY, partition=partition).reveal()


def moved(rows, partition="hash", to=None):
    """A sound partition in which some rows are in the next shard, or in another one."""
    assigned = sound(partition).copy()
    assigned[rows] = (assigned[rows] + 1) % 5 if to is None else to
    return assigned


ROW, UNIT, HASH = PartitionFault
UNKEYED = [int.from_bytes(blake2b(slot, digest_size=32).digest(), "big") % 5 for slot in SLOTS]
FAULTY = {
    **{f"row {row}": (moved(row), "hash", {UNIT, HASH}) for row in (0, 1, 2, 31, 59)},
    **{f"row {row}, balanced": (moved(row, "balanced"), "balanced", {UNIT, HASH}) for row in (0, 31, 59)},
    "rows dealt out one by one": (np.arange(60) % 5, "hash", {UNIT, HASH}),
    # Units are whole, and yet the shard of this one hangs on something else.
    "a whole unit": (moved(slice(3)), "hash", {HASH}),
    "a whole unit, balanced": (moved(slice(3), "balanced"), "balanced", {HASH}),
    "a hash without the key": (UNKEYED, "hash", {HASH}),
    "two units in one shard where each has its own": (np.minimum(sound("unit"), 18), "unit", {HASH}),
    "balanced taken for hash": (sound("balanced"), "hash", {HASH}),
    "hash taken for balanced": (sound("hash"), "balanced", {HASH}),
    **{f"a row that no teacher gets, {lost}": (moved(7, to=lost), "hash", {ROW, UNIT, HASH}) for lost in (-1, 5, 99)},
    "too few numbers": (sound()[:-1], "hash", {ROW}),
    "too many numbers": (np.append(sound(), 0), "hash", {ROW}),
}


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("fault", FAULTY)
def test_each_fault_of_a_partition_is_found(fault):
    assigned, partition, found = FAULTY[fault]
    assert faults(assigned, partition) == found


def test_a_row_that_two_teachers_get_is_found(monkeypatch):
    """What the teachers get is looked at, and not only what was assigned."""
    module = "quorate.ensemble.partition.rows_of_shards"
    monkeypatch.setattr(module, lambda assigned, n, numbers: {number: np.arange(12) for number in numbers})
    assert faults(sound()) == {ROW}


def test_the_check_works_the_hash_out_by_itself(monkeypatch):
    """A partition with a broken hash must not be measured by that same hash."""
    broken = np.tile(np.array([0, 0, 0, 3], dtype=np.uint64), (len(set(SLOTS)), 1))
    monkeypatch.setattr(
        "quorate.ensemble.partition._hash_units",
        lambda unit_keys, n, key, **_: (as_unit_keys(unit_keys), iter([broken])),
    )
    assert faults(partition_rows(SLOTS, 5, KEY).reveal()) == {HASH}
    assert derive(KEY, "partition") != KEY.reveal()
