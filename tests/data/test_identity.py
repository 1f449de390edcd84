"""Slots, fingerprints, the private table given again as public, and columns that say whose row it is."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from quorate.data import digests, fingerprint, is_same_table, load_adult, public_digest, row_digests, slot_bytes, take
from quorate.data.unit_ids import likely_units, only_whole_ids
from quorate.errors import DataRefused
from quorate.run.pool_cautions import pool_cautions, unit_caution
from quorate.types import Secret

KEY = Secret(bytes(range(32)))


@given(st.lists(st.integers(-(2**52), 2**52), min_size=1, max_size=20))
def test_a_whole_number_a_float_and_its_digits_are_one_id(ids):
    expected = slot_bytes(ids, len(ids))
    assert slot_bytes([float(i) for i in ids], len(ids)) == expected
    assert slot_bytes([str(i) for i in ids], len(ids)) == expected
    assert slot_bytes(np.array(ids), len(ids)) == expected
    assert slot_bytes(only_whole_ids(pd.Series(ids, dtype=float)), len(ids)) == expected
    assert slot_bytes(pl.Series(ids), len(ids)) == expected
    for i, a in zip(ids, expected, strict=True):
        for j, b in zip(ids, expected, strict=True):
            assert (a == b) == (i == j)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10))
def test_one_more_row_with_a_letter_in_its_id_leaves_every_other_slot_where_it_was(ids):
    alone = slot_bytes(np.array(ids), len(ids))
    with_letter = slot_bytes(np.array([*ids, "x7"]), len(ids) + 1)  # numpy makes text of all of them
    assert with_letter[:-1] == alone


def test_without_ids_every_row_is_a_slot_of_its_own_and_none_is_an_id():
    positions = slot_bytes(None, 300)
    assert len(set(positions)) == 300
    assert list(positions)[:3] == list(slot_bytes(None, 3))
    assert not set(positions) & set(slot_bytes(list(range(300)), 300))


MISSING = [None, float("nan"), np.nan, pd.NA, pd.NaT, "", np.float64("nan")]


@pytest.mark.parametrize("wrong", [*MISSING, b"\xff", ("a",), [1], {"a": 1}, object(), 1j])
def test_an_id_that_is_missing_or_neither_text_nor_a_number_is_refused_without_being_shown(wrong):
    with pytest.raises(DataRefused, match=r"unit ids are missing.*a text or a number") as refusal:
        slot_bytes(["a", wrong, "b"], 3)
    assert repr(wrong) not in str(refusal.value)


def test_ids_must_be_one_per_row():
    with pytest.raises(DataRefused, match="one unit id per row"):
        slot_bytes(["a"], 2)
    with pytest.raises(DataRefused, match="one column"):
        slot_bytes(np.zeros((2, 2)), 2)


def test_dates_can_be_ids():
    day = dt.date(2024, 2, 29)
    assert slot_bytes([day, "2024-02-29"], 2) == slot_bytes(pl.Series([day, day]), 2)


@given(st.permutations(range(12)))
def test_a_fingerprint_does_not_depend_on_the_order_of_the_rows(order):
    rng = np.random.default_rng(1)
    X, y, ids = rng.normal(size=(12, 3)), rng.integers(0, 2, 12), rng.integers(0, 4, 12)
    order = np.array(order)
    again = fingerprint(X[order], y[order], slot_bytes(ids[order], 12), KEY)
    assert fingerprint(X, y, slot_bytes(ids, 12), KEY) == again
    assert fingerprint(X, y, slot_bytes(None, 12), KEY) == fingerprint(X[order], y[order], None, KEY)


def test_a_fingerprint_changes_with_each_row_label_id_copy_and_key():
    X, y, ids = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1]), np.arange(6)
    moved, relabelled, reowned = X.copy(), y.copy(), ids.copy()
    moved[3, 1] += 1
    relabelled[2] = 1
    reowned[5] = 0
    prints = [
        fingerprint(X, y, slot_bytes(ids, 6), KEY),
        fingerprint(moved, y, slot_bytes(ids, 6), KEY),
        fingerprint(X, relabelled, slot_bytes(ids, 6), KEY),
        fingerprint(X, y, slot_bytes(reowned, 6), KEY),
        fingerprint(X, y, None, KEY),
        fingerprint(X, y.astype(str), None, KEY),
        fingerprint(X, None, None, KEY),
        fingerprint(X[[0, 0, 1, 2, 3, 4, 5]], y[[0, 0, 1, 2, 3, 4, 5]], None, KEY),
        fingerprint(X[:5], y[:5], None, KEY),
        fingerprint(X, y, slot_bytes(ids, 6), Secret(bytes(32))),
    ]
    assert len(set(prints)) == len(prints)
    assert all(len(text) == 64 for text in prints)
    assert fingerprint(X, y, None, KEY) == fingerprint(sparse.csr_array(X), y.astype(float), None, KEY)


@pytest.mark.parametrize("n_digests", [2, 4])
def test_digests_and_labels_that_are_not_one_a_row_are_refused(n_digests):
    with pytest.raises(DataRefused, match="length"):
        fingerprint(np.zeros((2, 1)), [0], None, KEY)
    X, digests = np.eye(3), row_digests(np.eye(4))[:n_digests]
    for act in (
        lambda: fingerprint(X, None, None, KEY, digests=digests),
        lambda: public_digest(X, digests=digests),
        lambda: is_same_table(X, X + 1, digests=(digests, row_digests(X))),
        lambda: is_same_table(X, X + 1, digests=(row_digests(X), digests)),
    ):
        with pytest.raises(DataRefused, match="one digest for every row"):
            act()


def test_a_public_digest_depends_on_rows_order_and_names():
    X = np.arange(6.0).reshape(3, 2)
    frame = pl.DataFrame(X, schema=["a", "b"])
    digests = [
        public_digest(table) for table in (X, X[::-1], X[:2], frame, frame.rename({"a": "c"}), frame.select("b", "a"))
    ]
    assert len(set(digests)) == len(digests)
    assert public_digest(X) == public_digest(sparse.csr_array(X))
    assert public_digest(frame) == public_digest(frame.to_pandas())


def honest_pair(seed, n, m, values, columns):
    rng = np.random.default_rng(seed)
    return rng.integers(0, values, (n, columns)), rng.integers(0, values, (m, columns))


def test_the_same_object_a_view_a_shuffle_and_a_copy_in_another_container_are_the_same_table():
    X = np.random.default_rng(2).normal(size=(200, 4))
    order = np.random.default_rng(3).permutation(200)
    frame = pl.DataFrame(X, schema=list("abcd"))
    assert is_same_table(X, X)
    assert is_same_table(X, X[:10])
    assert is_same_table(X, X[order])
    assert is_same_table(X, sparse.csr_array(X))
    assert is_same_table(frame, frame[order])
    assert is_same_table(frame.to_pandas(), frame)
    assert is_same_table(sparse.csr_array(X)[order], sparse.csr_array(X))


def test_a_file_that_was_cut_or_grew_is_still_the_same_table():
    X = np.random.default_rng(4).normal(size=(500, 3))
    extra = np.random.default_rng(5).normal(size=(100, 3))
    assert is_same_table(X, X[:300].copy())
    assert is_same_table(X, np.concatenate([X, extra]))
    assert is_same_table(X, np.concatenate([X[:110], extra]))
    assert not is_same_table(X, np.concatenate([X[:90], extra]))
    assert not is_same_table(X, extra)


def test_disjoint_parts_of_one_array_are_two_tables():
    X = np.random.default_rng(6).normal(size=(300, 3))
    assert not is_same_table(X[:200], X[200:])
    assert not is_same_table(X, np.zeros((300, 4)))
    assert not is_same_table(X[::2], X[1::2])  # their memory interleaves without sharing an entry


# An honest pair of small tables may still hold the same rows by chance: 32 cells and 20 rows or more make that
# rarer than 20!/32**20 < 1e-11 a pair.
@pytest.mark.heavy
@pytest.mark.parametrize(("values", "columns"), [(2, 5), (2, 8), (2, 10), (3, 6), (2, 14)])
@pytest.mark.parametrize(
    ("n", "m"), [(5000, 4000), (1000, 20), (200, 200), (40, 30), (25, 25), (20, 1000), (3000, 300)]
)
def test_honest_samples_of_few_values_are_never_refused(values, columns, n, m):
    for seed in range(30):
        assert not is_same_table(*honest_pair(seed, n, m, values, columns))


def test_honest_samples_with_one_common_row_are_never_refused():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        private, public = rng.normal(size=(400, 3)), rng.normal(size=(100, 3))
        private[rng.random(400) < 0.08] = 0
        public[rng.random(100) < 0.08] = 0
        assert not is_same_table(private, public)


def test_overlap_alone_would_refuse_honest_samples_so_that_test_can_fail():
    private, public = honest_pair(0, 5000, 25, values=2, columns=5)
    assert set(row_digests(public)) <= set(row_digests(private))


@pytest.mark.heavy
def test_the_published_split_of_adult_is_two_tables():
    adult = load_adult()
    assert not is_same_table(adult.train, adult.test)
    assert is_same_table(adult.train, take(adult.train, np.arange(20_000)))


def test_a_fingerprint_is_the_same_however_many_rows_are_ordered_at_once(monkeypatch):
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 9, (3_000, 2)).astype(float), rng.integers(0, 3, 3_000)
    units = [f"P{at // 7}".encode() for at in range(3_000)]
    whole = fingerprint(X, y, units, KEY)
    for at_once in (1, 11, 700):
        monkeypatch.setattr(digests, "ORDERED_AT_ONCE", at_once)
        assert fingerprint(X, y, units, KEY) == whole
        assert fingerprint(X[::-1], y[::-1], units[::-1], KEY) == whole


N = 300
RNG = np.random.default_rng(4)
PERSONS = [f"P{place // 3:05d}" for place in range(N)]

LIKELY = {
    "named as persons": ("Patienten_ID", PERSONS),
    "named as persons, of numbers": ("patient_id", [place // 3 for place in range(N)]),
    "each once": ("PatientID", [f"P{place:05d}" for place in range(N)]),
    "one word": ("Kundennummer", [10_000 + place // 2 for place in range(N)]),
    "short": ("MRN", [f"{place // 3:06d}" for place in range(N)]),
    "an id of something that repeats": ("case_id", [place // 3 for place in range(N)]),
    "no name at all": ("key", PERSONS),
    "a hash": ("pseudo", [f"{place // 3:08d}"[::-1] + "af" for place in range(N)]),
}
OTHERS = {
    "of persons, and no id": ("patient_age", RNG.integers(18, 95, N)),
    "yes or no": ("customer", RNG.integers(0, 2, N)),
    "an id of few things": ("ward_id", RNG.integers(0, 5, N)),
    "an id of each row": ("case_id", list(range(N))),
    "a code of few values": ("bed", [f"B{number:03d}" for number in RNG.integers(0, 9, N)]),
    "places": ("zip", [f"0{number}" for number in RNG.integers(9_000, 9_100, N)]),
    "counts": ("leukocytes", RNG.integers(900, 1_100, N)),
    "days": ("seen", [f"2024-03-{day:02d}" for day in RNG.integers(1, 29, N)]),
    "words": ("note", [f"seen {number} times" for number in RNG.integers(0, 99, N)]),
}


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize("case", [*LIKELY, *OTHERS])
def test_a_column_looks_like_an_id_of_persons_or_does_not(case, frame):
    name, cells = {**LIKELY, **OTHERS}[case]
    pool = frame({"age": RNG.normal(size=N), name: cells})
    assert likely_units(pool) == ((name,) if case in LIKELY else ())


def test_of_columns_that_no_public_table_has_the_name_alone_counts():
    named = ["subject", "case_id", "userId", "user_agent"]
    assert likely_units(pl.DataFrame({"age": [1.0]}), named) == ("subject", "userId")
    assert likely_units(np.zeros((3, 2)), ["patient_id"]) == ("patient_id",)
    assert likely_units(np.zeros((3, 2))) == ()


def test_a_column_that_is_asked_about_is_not_said_to_be_left_out():
    pool = pl.DataFrame({"age": RNG.normal(size=N), "key": PERSONS, "name": [f"n{place}" for place in range(N)]})
    assert "'key'" in unit_caution(pool).words
    [distinct] = [each.words for each in pool_cautions(pool, "public.csv") if each.applies]
    assert "'name'" in distinct
    assert "'key'" not in distinct


def test_entries_that_repeat_and_are_rare_are_not_called_texts_of_their_own():
    rooms = [f"room {chr(97 + place % 26)}{place // 4}" for place in range(1_200)]
    pool = pl.DataFrame({"age": RNG.normal(size=1_200), "room": [*rooms[:600], *rooms[:600]]})
    [words] = [each.words for each in pool_cautions(pool, "public.csv") if each.applies]
    assert "entries repeat there" in words
    assert "of its own" not in words
