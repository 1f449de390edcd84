"""What the owner is told beside an answer: no remark fails a command, and what voids the guarantee is said."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, check
from quorate.data.column_kinds import column_kinds
from quorate.errors import PrivacyWarning
from quorate.findings import note
from quorate.run.remarks import note_on_shared_ids, notes_on_tables, remarks

SETTINGS = {"classes": [False, True], "epsilon": 2.0, "delta": 1e-5, "n_records": 400}
VOTES = {**SETTINGS, "n_teachers": 10, "queries": 30, "n_jobs": 1}


def tables(seed=0):
    rng = np.random.default_rng(seed)
    X, pool = rng.normal(size=(400, 3)) * 100 + 500, rng.normal(size=(100, 3)) * 100 + 500
    return X, X[:, 0] > 500, pool


class Panic(BaseException):
    """As a panic of Rust is: no Exception."""


def test_a_remark_that_cannot_be_worked_out_is_left_out_and_the_others_are_made():
    def panics():
        yield note("half", "a half")
        raise Panic

    def warns():
        yield note("large", str(np.array([1e300]) ** 2))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = remarks(panics, lambda: [][0], warns, lambda: [note("last", "last")])
    assert [note.code for note in made] == ["half", "large", "last"]
    with pytest.raises(KeyboardInterrupt):
        remarks(lambda: (_ for _ in ()).throw(KeyboardInterrupt))


HOSTILE = {
    "an integer of 20 digits": pl.Series([5] * 59 + [12345678901234568363], dtype=pl.Int128),
    "a number near the end": pl.Series([5.0] * 59 + [1e300]),
    "numbers whose squares are infinite": pl.Series(np.linspace(-1e300, 1e300, 60)),
    "infinite": pl.Series([5.0, 6.0, 7.0] * 19 + [float("inf")] * 3),
    "a decimal": pl.Series(["5"] * 59 + ["7"]).cast(pl.Decimal(38, 2)),
    "none": pl.Series([None] * 60, dtype=pl.Float64),
    "no type": pl.Series([None] * 60),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_no_private_cell_fails_a_remark_or_hides_one_on_another_column(name, library):
    rng = np.random.default_rng(1)
    pool = pl.DataFrame({"a": rng.normal(5, 1, 60), "b": rng.normal(50, 9, 60)})
    values = pool["b"].to_numpy()
    rows = pl.DataFrame({"a": HOSTILE[name], "b": (values - values.mean()) / values.std()})
    kinds = column_kinds(pool)
    if library == "pandas":
        objects = name == "an integer of 20 digits"  # which pandas has as Python objects alone
        cells = pd.Series(rows["a"].to_list(), dtype=object) if objects else rows["a"].to_pandas()
        rows, pool = pd.DataFrame({"a": cells, "b": rows["b"].to_numpy()}), pool.to_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        notes = notes_on_tables(rows, pool, kinds).reveal()
    scaled = next(note for note in notes if note.code == "private-columns-were-scaled")
    assert "'b'" in scaled.words
    assert "the public rows do not" in scaled.words


def test_a_whole_number_beyond_the_floats_is_no_reason_for_a_check_to_fail():
    frame = pd.DataFrame({"a": pd.Series([5] * 59 + [10**400], dtype=object), "b": np.arange(60.0)})
    pool = pd.DataFrame({"a": np.arange(60.0), "b": np.arange(60.0)})
    assert isinstance(notes_on_tables(frame, pool, column_kinds(pool)).reveal(), tuple)


def test_a_scaler_around_the_classifier_is_said_by_fit_before_the_charge_in_the_words_of_check():
    X, y, pool = tables()
    Z = StandardScaler().fit_transform(X)
    checked = check(PrivateClassifier(method="votes", **VOTES), Z, y, public=PublicPool(pool))
    (note,) = checked.private_notes.reveal()
    assert note.code == "private-columns-were-scaled"
    assert note.words.split()[0] in str(checked)  # the owner's terminal
    assert "scaled by what was fitted on all" in " ".join(str(checked).split())
    assert "scaled" not in checked.to_json()
    piped = make_pipeline(StandardScaler(), PrivateClassifier(method="votes", **VOTES))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        with pytest.raises(PrivacyWarning) as raised:  # before the charge, so that it can be made a refusal
            piped.fit(X, y, privateclassifier__public=PublicPool(pool))
    assert str(raised.value) == f"{note.code}: {note.words}"


@pytest.mark.heavy
def test_the_direct_method_warns_of_nothing_that_private_rows_show():
    X, y, pool = tables()
    for rows in (X, StandardScaler().fit_transform(X)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            PrivateLogisticRegression(**SETTINGS, rounds=2).fit(rows, y, public=PublicPool(pool))
        assert not [each for each in heard if "scaled" in str(each.message)]


def test_a_column_of_other_words_is_noted():
    pool, rows = (pl.DataFrame({"ward": words * 30}) for words in (["north", "south"], ["3", "4"]))
    notes = notes_on_tables(rows, pool, column_kinds(pool)).reveal()
    assert "private-words-are-unknown" in [note.code for note in notes]


def test_ids_in_both_tables_are_noted_without_a_word_of_which_or_how_many():
    (note,) = note_on_shared_ids([b"id:1", b"", b"id:7"], [b"id:7"], private="private.csv", public="public.csv")
    assert note.code == "public-rows-carry-private-ids"
    assert not set("0123456789") & set(note.words)
    assert not list(note_on_shared_ids([b"id:1", b""], [b"id:2", b""], private="a", public="b"))
