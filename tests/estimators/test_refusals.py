"""A wrong argument or table is one line, and charges nothing."""

from __future__ import annotations

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

from quorate import PublicPool
from quorate.errors import (
    DataRefused,
    InvalidParameter,
    PreconditionFailed,
)
from quorate.mechanisms import GaussianNoisyMax

ARGUMENTS = [
    ("classes that are not given", {"classes": None}, InvalidParameter, "classes= is required. Reading the label set"),
    ("one class", {"classes": [0]}, InvalidParameter, "must be a list of at least two labels, got [0]"),
    ("a set of classes", {"classes": {0, 1}}, InvalidParameter, "a set has no order"),
    ("a label outside classes", {"classes": [0, 2]}, DataRefused, "a label outside classes was found"),
    ("epsilon of zero", {"epsilon": 0}, InvalidParameter, "epsilon must be a number > 0, got 0"),
    ("epsilon below zero", {"epsilon": -2}, InvalidParameter, "epsilon must be a number > 0, got -2"),
    ("epsilon NaN", {"epsilon": float("nan")}, InvalidParameter, "epsilon must be a number > 0, got nan"),
    ("epsilon infinite", {"epsilon": float("inf")}, InvalidParameter, "got inf"),
    ("epsilon True", {"epsilon": True}, InvalidParameter, "got True"),
    ("epsilon a text", {"epsilon": "1"}, InvalidParameter, "got '1'"),
    ("epsilon None", {"epsilon": None}, InvalidParameter, "got None"),
    ("epsilon below the ledger's unit", {"epsilon": 1e-10}, InvalidParameter, "at least 1e-9"),
    ("delta of one", {"delta": 1}, InvalidParameter, "delta must be a number > 0 and < 1, got 1"),
    ("delta of zero", {"delta": 0.0}, InvalidParameter, "got 0.0"),
    ("delta NaN", {"delta": float("nan")}, InvalidParameter, "got nan"),
    ("delta below the ledger's unit", {"delta": 1e-20}, InvalidParameter, "at least 1e-18"),
    ("no teachers", {"n_teachers": 0}, InvalidParameter, "n_teachers must be a whole number >= 1, got 0"),
    ("teachers as a float", {"n_teachers": 10.0}, InvalidParameter, "n_teachers must be a whole number"),
    ("teachers as a truth value", {"n_teachers": True}, InvalidParameter, "n_teachers must be a whole number"),
    ("more teachers than units", {"n_teachers": N + 1}, DataRefused, "too many teachers"),
    ("a declared n above the truth", {"n_teachers": "auto", "n_records": 10**9}, DataRefused, "the true number of"),
    ("more queries than points", {"queries": M + 1}, InvalidParameter, "ask at most that many"),
    ("queries in words", {"queries": "most"}, InvalidParameter, "queries must be a whole number"),
    ("online answers below zero", {"online_answers": -1}, InvalidParameter, "online_answers must be a whole number"),
    ("an unknown mechanism", {"mechanism": "NoisyMax"}, InvalidParameter, "did you mean"),
    ("a mechanism of another form", {"mechanism": GaussianNoisyMax(9.0, "histogram")}, InvalidParameter, "form"),
    ("a unit without groups", {"unit": "person"}, InvalidParameter, "persons may cross shards"),
    ("an unknown partition", {"partition": "random"}, InvalidParameter, "partition must be one of"),
    ("an unknown treatment of declined", {"declined": "guess"}, InvalidParameter, "declined must be one of"),
    ("no jobs", {"n_jobs": 0}, InvalidParameter, "n_jobs must be a whole number"),
    ("a seed as a text", {"unsafe_noise_seed": "1"}, InvalidParameter, "unsafe_noise_seed must be a whole number"),
    ("a teacher that is a class", {"teacher": GaussianNB}, InvalidParameter, "instance"),
    ("a fitted teacher", {"teacher": GaussianNB().fit(POOL, POOL[:, 0] > 0)}, InvalidParameter, "already fitted"),
    ("a fitted step", {"teacher": make_pipeline(StandardScaler().fit(POOL), GaussianNB())}, InvalidParameter,
     "this Pipeline step is already fitted: StandardScaler"),
    ("a ledger in no folder", {"ledger": "/no/such/folder/ledger.db"}, PreconditionFailed, "no folder"),
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
    ("labels too few", {"y": Y[:-1]}, "differ in length"),
    ("groups too few", {"groups": np.arange(N - 1)}, "differ"),
    ("an id that is missing", {"groups": [None, *range(1, N)]}, "unit ids are missing"),
    ("a pool of another width", {"public": PublicPool(POOL[:, :3])}, "public has 3 features, but private has 4"),
    ("a pool of another kind", {"public": PublicPool(pl.DataFrame(POOL))}, "give both in the same kind"),
    ("a pool that is an array", {"public": POOL}, "public must be a PublicPool, got ndarray"),
    ("no pool", {"public": None}, "public must be a PublicPool, got NoneType"),
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
