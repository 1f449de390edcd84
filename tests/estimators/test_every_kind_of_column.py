"""Texts, dates, ids and categories in one table, by the defaults, for both methods."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.data.test_column_kinds import WORDS, table

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.students import as_student
from quorate.voting import inputs

N, M = 600, 120
BUDGET = {"epsilon": 8.0, "delta": 1e-5, "n_records": N, "unsafe_noise_seed": 1}
pytestmark = [
    pytest.mark.mostly_heavy,
    pytest.mark.filterwarnings("ignore:columns-of-distinct-texts"),
    pytest.mark.filterwarnings("ignore:column-that-may-be-the-unit"),
    pytest.mark.several_fits,
]


def notes(n, seed):
    """Texts about the ill and the well."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.5
    words = {True: WORDS[:3], False: WORDS[3:6]}
    return [" ".join(rng.choice([*words[bool(each)], *WORDS[6:]], 6)) for each in ill], ill


def estimators():
    votes = PrivateClassifier(classes=[False, True], n_teachers=12, n_jobs=1, allow_hopeless=True, **BUDGET)
    return [votes, PrivateLogisticRegression(classes=[False, True], **BUDGET)]


CONTAINERS = {
    "list": list,
    "numpy": lambda texts: np.array(texts, dtype=object),
    "polars": lambda texts: pl.Series("review", texts),
    "pandas": lambda texts: pd.Series(texts, name="review"),
    "polars frame": lambda texts: pl.DataFrame({"review": texts}),
    "pandas frame": lambda texts: pd.DataFrame({"review": texts}),
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("which", [0, 1], ids=["votes", "direct"])
def test_bare_texts_are_learned_from_and_are_the_one_column_of_a_frame(name, which):
    clf, (X, y), (public, _), (new, truth) = estimators()[which], notes(N, 1), notes(M, 2), notes(200, 3)
    hold = list if "frame" in name else CONTAINERS[name]
    clf.fit(hold(X), y, public=PublicPool(CONTAINERS[name](public)))
    assert (clf.predict(hold(new)) == truth).mean() > 0.9
    assert (clf.predict(new[:3]) == clf.predict(hold(new))[:3]).all()


@pytest.mark.heavy_cases(7)  # each cell once
@pytest.mark.parametrize("odd", [b"bytes", None, ["a", "list"], 5.0, float("nan"), {"a": 1}, np.zeros(2)], ids=repr)
@pytest.mark.parametrize("container", [list, lambda texts: pd.Series(texts, dtype=object)], ids=["list", "pandas"])
def test_one_cell_that_is_no_text_stops_no_direct_fit_and_is_a_missing_one(container, odd):
    """Whether private rows are bare texts is decided by what they come in, not by what a cell holds."""
    (X, y), (public, _) = notes(60, 1), notes(30, 2)
    budget = {**BUDGET, "n_records": 60}
    one, none = (
        PrivateLogisticRegression(classes=[False, True], **budget).fit(container(rows), y, public=PublicPool(public))
        for rows in ([odd, *X[1:]], [None, *X[1:]])
    )
    assert (one.coef_ == none.coef_).all()
    every = PrivateLogisticRegression(classes=[False, True], **budget).fit([odd] * 60, y, public=PublicPool(public))
    assert every.coef_.shape == one.coef_.shape


@pytest.mark.parametrize("which", [0, 1], ids=["votes", "direct"])
def test_a_table_of_every_kind_is_learned_from_and_read_the_same_later(which):
    private, public, new = table(N, 1), table(M, 2), table(100, 3)
    clf = estimators()[which]
    y = (private["age"] > 55).to_numpy()
    clf.fit(private, y, public=PublicPool(public, drop=["stayed"]))
    found = clf.predict(new)
    assert (found == (new["age"] > 55).to_numpy()).mean() > 0.8
    lacking = new.with_columns(note=pl.lit(None, dtype=pl.String), seen=pl.lit("unknown"))
    assert len(clf.predict(lacking)) == 100
    if which:
        assert (pickle.loads(pickle.dumps(clf)).predict(new) == found).all()  # noqa: S301


N_PUBLIC = 200
RNG = np.random.default_rng(3)
PLAIN = RNG.normal(size=(N + N_PUBLIC, 3))
LABELS = (PLAIN[:, 0] + PLAIN[:, 1] > 0).astype(np.int64)
UNITS, MIDDLES = np.array([1e-3, 1e4, 1.0]), np.array([0.5, 2e6, 0.0])  # a share, an income, a score
ROWS = PLAIN * UNITS + MIDDLES


def fitted(X, **changes):
    settings = {"classes": [0, 1], "epsilon": 8.0, "delta": 1e-5, "n_teachers": 20, "unsafe_noise_seed": 1, "n_jobs": 1}
    made = PrivateClassifier(method="votes", **{**settings, **changes})
    return made.fit(X[:N], LABELS[:N], public=PublicPool(X[N:]))


def right(made, X):
    return float(np.mean(made.predict(X[:N]) == LABELS[:N]))


@pytest.mark.several_fits
def test_the_default_learns_whatever_units_columns_have():
    made = fitted(ROWS)
    assert right(made, ROWS) > 0.9
    assert made.student_.named_steps["encoder"].transform(ROWS[N:]).std() == pytest.approx(1, rel=0.05)


@pytest.mark.quick
@pytest.mark.several_fits
def test_that_test_sees_numbers_that_are_not_scaled(monkeypatch):
    monkeypatch.setattr(inputs, "_units_of", lambda pool: None)
    assert right(fitted(ROWS), ROWS) < 0.9


def test_a_model_of_ones_own_and_columns_of_one_scale_are_left_alone():
    assert "encoder" not in fitted(PLAIN).student_.get_params()
    own = LogisticRegression(max_iter=100)
    looked = inputs.look(
        inputs.check_inputs(ROWS[:N], LABELS[:N], public=PublicPool(ROWS[N:]), classes=[0, 1], groups=None),
        teacher=own, student=as_student(own), built_in=False,
    )  # fmt: skip
    assert (looked.teacher.encoder, looked.student.encoder) == (None, None)


@pytest.mark.quick
def test_how_a_private_row_is_scaled_follows_from_that_row_and_the_pool_alone():
    def seen(private):
        made = inputs.check_inputs(
            private, LABELS[: len(private)], public=PublicPool(ROWS[N:]), classes=[0, 1], groups=None
        )
        return inputs.look(
            made, teacher=LogisticRegression(), student=as_student(LogisticRegression()), built_in=True
        ).teacher(private)

    extreme = np.vstack([ROWS[:5], [[1e9, -1e12, 1e300]]])
    np.testing.assert_array_equal(seen(ROWS[:5]), seen(extreme)[:5])
    assert np.abs(seen(extreme)).max() <= 4
