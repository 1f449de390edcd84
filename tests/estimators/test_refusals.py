"""A wrong argument or table is one line, and charges nothing."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.small_task import POOL, M, N, X, Y, classifier

from quorate import LabelPrivateClassifier, PrivateClassifier, PrivateLogisticRegression, PublicPool, SubsampleAggregate
from quorate.errors import DataRefused, InvalidParameter
from quorate.mechanisms import GaussianNoisyMax

ARGUMENTS = [
    ("one class", {"classes": [0]}, InvalidParameter, "must be a list of at least two labels, got [0]"),
    ("a set of classes", {"classes": {0, 1}}, InvalidParameter, "a set has no order"),
    ("a label outside classes", {"classes": [0, 2]}, DataRefused, "a label outside classes was found"),
    ("epsilon below the ledger's unit", {"epsilon": 1e-10}, InvalidParameter, "at least 1e-9"),
    ("delta NaN", {"delta": float("nan")}, InvalidParameter, "got nan"),
    ("delta below the ledger's unit", {"delta": 1e-20}, InvalidParameter, "at least 1e-18"),
    ("teachers as a truth value", {"n_teachers": True}, InvalidParameter, "n_teachers must be a whole number"),
    ("more teachers than units", {"n_teachers": N + 1}, DataRefused, "too many teachers"),
    ("a declared n above the truth", {"n_teachers": "auto", "n_records": 10**9}, DataRefused, "the true number of"),
    ("more queries than points", {"queries": M + 1}, InvalidParameter, "ask at most that many"),
    ("queries in words", {"queries": "most"}, InvalidParameter, "queries must be a whole number"),
    ("online answers below zero", {"online_answers": -1}, InvalidParameter, "online_answers must be a whole number"),
    ("a mechanism of another form", {"mechanism": GaussianNoisyMax(9.0, "histogram")}, InvalidParameter, "form"),
    ("a unit without groups", {"unit": "person"}, InvalidParameter, "persons may cross shards"),
    ("an unknown partition", {"partition": "random"}, InvalidParameter, "partition must be one of"),
    ("an unknown treatment of declined", {"declined": "guess"}, InvalidParameter, "declined must be one of"),
    ("a fitted step", {"teacher": make_pipeline(StandardScaler().fit(POOL), GaussianNB())}, InvalidParameter,
     "this Pipeline step is already fitted: StandardScaler"),
]  # fmt: skip


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("changes", "error", "expected"), [row[1:] for row in ARGUMENTS], ids=[row[0] for row in ARGUMENTS]
)
def test_a_wrong_argument_is_one_line_and_charges_nothing(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], expected: str
) -> None:
    clf = classifier(**{"ledger": tmp_path / "ledger.db", **changes})
    with pytest.raises(error) as refusal:
        clf.fit(X, Y, public=PublicPool(POOL))
    assert expected in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "ledger.db").exists()
    assert not hasattr(clf, "student_")


gaps = X.copy()
gaps[3, 1] = np.nan
TABLES: list[tuple[str, dict[str, Any], str]] = [
    ("missing values that the teacher cannot take", {"X": gaps}, "Input contains NaN in column 1"),
    ("infinity", {"X": np.where(np.isnan(gaps), np.inf, gaps)}, "infinity in column 1"),
    ("labels missing", {"y": [None] * N}, "a label is missing"),
    ("an id that is missing", {"groups": [None, *range(1, N)]}, "unit ids are missing"),
    ("a pool of another kind", {"public": PublicPool(pl.DataFrame(POOL))}, "give both in the same kind"),
    ("the private rows as the pool", {"public": PublicPool(X)}, "the private rows again"),
    ("a copy of the private rows", {"public": PublicPool(X.copy())}, "the private rows again"),
    ("the private rows shuffled", {"public": PublicPool(X[::-1].copy())}, "the private rows again"),
]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("changes", "expected"), [row[1:] for row in TABLES], ids=[row[0] for row in TABLES])
def test_a_wrong_table_is_one_line_and_charges_nothing(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    given: dict[str, Any] = {"X": X, "y": Y, "public": PublicPool(POOL), **changes}
    clf = classifier(teacher=LogisticRegression(), ledger=tmp_path / "ledger.db")
    with pytest.raises((DataRefused, InvalidParameter)) as refusal:
        clf.fit(given.pop("X"), given.pop("y"), **given)
    assert expected in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "ledger.db").exists()


def test_groups_with_the_unit_record_are_a_contradiction() -> None:
    with pytest.raises(InvalidParameter, match='unit is "record"'):
        classifier(unit="record").fit(X, Y, public=PublicPool(POOL), groups=np.arange(N))


ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
COMMON: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "unsafe_noise_seed": 1}
GIVEN: dict[type, dict[str, Any]] = {
    PrivateClassifier: {**COMMON, "classes": [0, 1], "n_records": 60, "n_teachers": 4, "allow_hopeless": True},
    LabelPrivateClassifier: {**COMMON, "classes": [0, 1], "n_teachers": 4, "allow_hopeless": True},
    PrivateLogisticRegression: {**COMMON, "classes": [0, 1], "n_records": 60},
    SubsampleAggregate: {**COMMON, "epsilon": 50.0, "n_shards": 30, "cutoff": 1, "n_queries": 5},
}
EVERY = [(kind, name) for kind in GIVEN for name in signature(kind.__init__).parameters if name != "self"]


@pytest.mark.default_cases(12)
@pytest.mark.parametrize("wrong", [{"a": 1}, -3], ids=["a mapping", "below zero"])
@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[f"{kind.__name__}-{name}" for kind, name in EVERY])
def test_a_wrong_argument_is_named_with_what_it_got(kind: type, name: str, wrong: Any) -> None:
    if name == "class_shares" and isinstance(wrong, dict):
        wrong = {0: 2.0}
    made = kind(**{**GIVEN[kind], name: wrong})
    with pytest.raises(InvalidParameter) as refusal:
        _fit(made)
    words = str(refusal.value)
    assert words.startswith(name), words
    assert repr(wrong) in words or type(wrong).__name__ in words or "2.0" in words, words
    assert "\n" not in words


def _fit(made: Any) -> None:
    if isinstance(made, (SubsampleAggregate, LabelPrivateClassifier)):
        made.fit(ROWS, LABELS)
    else:
        made.fit(ROWS, LABELS, public=PublicPool(ROWS[:30] + 0.5))


def test_nothing_is_left_in_the_place_of_a_wrong_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match=r"^ledger must be a path or a Ledger, got int"):
        _fit(PrivateClassifier(**{**GIVEN[PrivateClassifier], "ledger": 3}))
    assert not list(tmp_path.iterdir())
