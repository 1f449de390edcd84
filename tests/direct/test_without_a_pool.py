"""Numeric rows without a public pool: rows of length one, as they are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from quorate import Budget, Ledger, PrivateLogisticRegression, PublicPool, check
from quorate.direct.contribution_check import faults_of, made_up
from quorate.direct.defaults import WITHOUT_POOL
from quorate.direct.plan import plan_without_pool
from quorate.errors import DataRefused, InvalidParameter

pytestmark = pytest.mark.mostly_heavy
N = 3_000
rng = np.random.default_rng(0)
X = rng.normal(size=(N + 500, 12))
Y = (X @ np.linspace(1, -1, 12) > 0.3).astype(int)


def fitted(rows, labels=Y[:N], schema=None, **changes):
    given = {"classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_records": N, "unsafe_noise_seed": 4, **changes}
    return PrivateLogisticRegression(marginals=0, **given).fit(rows, labels, schema=schema)


@pytest.fixture(scope="module")
def clf():
    rows = X[:N].copy()
    rows[7, 3] = np.nan  # left out without a word
    return fitted(rows, unsafe_noise_seed=None)


def test_the_settings_are_those_of_the_defaults_and_the_rule_is_learned(clf):
    for settings in (clf.plan_.settings, WITHOUT_POOL):
        assert (settings.clip, settings.rounds, settings.momentum) == (1.0, 100, 0.9)
    assert clf.plan_.coordinates.n_coordinates == 13
    assert clf.guarantee_.epsilon <= 2.0
    assert clf.score(X[N:], Y[N:]) > 0.85


def test_sparse_rows_give_what_dense_ones_give():
    rows = X * (X > 0)
    dense, of_sparse = fitted(rows[:N]), fitted(sparse.csr_matrix(rows[:N]))
    assert np.allclose(dense.coef_, of_sparse.coef_)
    assert (of_sparse.predict(sparse.csr_matrix(rows[N:])) == dense.predict(rows[N:])).mean() > 0.999


def test_persons_and_many_classes():
    rows = X[:200]
    labels = np.digitize(rows[:, 0], [-0.5, 0.5])
    clf = PrivateLogisticRegression(classes=[0, 1, 2], epsilon=4.0, delta=1e-5, unsafe_noise_seed=1)
    clf.fit(sparse.csr_matrix(rows), labels, groups=np.arange(len(rows)) // 2)
    assert clf.coef_.shape == (3, 12)
    assert clf.guarantee_.neighbours == "replace one person"


@pytest.mark.quick
def test_contributions_are_exact_on_dense_and_sparse_rows():
    plan = plan_without_pool(30, n_classes=3, n_units=1_000, epsilon=1.0, delta=1e-5)
    rows = rng.normal(size=(60, 30)) * (rng.random((60, 30)) < 0.3)
    for each in (rows, sparse.csr_matrix(rows)):
        assert faults_of(plan, *made_up(plan, each)) == []


@pytest.mark.quick
@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_a_frame_needs_a_pool_and_is_refused_in_one_line(frame):
    table = frame({"a": ["x", "y"] * 20, "b": list(range(40))})
    with pytest.raises(InvalidParameter, match="give public=PublicPool") as refusal:
        fitted(table, [0, 1] * 20)
    assert "\n" not in str(refusal.value)
    with pytest.raises(InvalidParameter, match="feature_map"):
        fitted(X[:N], feature_map="rbf")


def test_the_report_says_that_there_was_no_pool(clf, tmp_path):
    facts = clf.facts()
    assert facts.setup.n_public == 0
    assert facts.provenance.public_digests == ()
    assert "public coordinate" not in clf.summary()
    assert clf.report(tmp_path / "report.html").stat().st_size > 10_000
    assert clf.export(tmp_path / "model.skops").exists()


DECLARED = {"age": (0, 100), "pulse": (40, 180), "ward": ("north", "south")}


def patients(n, seed):
    draw = np.random.default_rng(seed)
    age, pulse = draw.uniform(0, 100, n), draw.normal(90, 20, n)
    ward = draw.choice(["north", "south"], n)
    y = ((age - 50) / 50 + (ward == "north") - 0.5 > 0).astype(int)
    return pl.DataFrame({"age": age, "pulse": pulse, "ward": ward}), y.tolist()


def test_a_frame_whose_columns_are_declared_is_learned_from():
    rows, labels = patients(N, 1)
    new, truth = patients(500, 2)
    clf = fitted(rows, labels, schema=DECLARED, unsafe_noise_seed=None)
    assert clf.score(new, truth) > 0.85
    assert clf.score(new.to_pandas(), truth) == clf.score(new, truth)
    assert clf.plan_.coordinates.n_coordinates == 5
    assert clf.facts().setup.n_public == 0
    other = fitted(rows.to_pandas(), labels, schema=DECLARED)
    assert (other.coef_ == fitted(rows, labels, schema=DECLARED).coef_).all()


def test_a_declared_row_that_cannot_be_used_is_left_out():
    rows, labels = patients(N, 1)
    odd = rows.with_columns(pl.Series("age", ["old", "inf", *[str(age) for age in rows["age"][2:]]]))
    assert (fitted(odd, labels, schema=DECLARED).coef_ == fitted(rows[2:], labels[2:], schema=DECLARED).coef_).all()


def test_two_schemas_are_two_fits():
    rows, labels = patients(N, 1)
    ledger = Ledger(budget=Budget(10.0, 1e-3))
    for ward in (("north", "south"), ("north", "west", "south"), ("north", "south")):
        fitted(rows, labels, schema={**DECLARED, "ward": ward}, ledger=ledger)
    assert len(ledger.reservations()) == 2


def test_a_model_of_a_schema_names_the_columns_that_it_does_not_know():
    rows, labels = patients(200, 1)
    clf = fitted(rows, labels, schema=DECLARED)
    with pytest.raises(
        DataRefused, match=r"^X has the columns 'note', 'id', which the model does not take\. Leave them"
    ):
        clf.predict(rows.with_columns(note=pl.lit("x"), id=pl.lit("1")))
    with pytest.raises(DataRefused, match=r"^X lacks the column 'pulse' of the "):
        clf.predict(rows.drop("pulse"))


@pytest.mark.quick
def test_a_check_notes_what_was_declared_in_the_place_of_public_rows():
    rows, labels = patients(200, 1)
    clf = PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5, marginals=0)
    said = {each["code"]: each["message"] for each in check(clf, rows, labels, schema=DECLARED).found["notes"]}
    assert "such as class_shares={1: 0.05}: without it" in said["class-shares-not-declared"]
    assert "bounds-are-texts" not in said
    clf.set_params(class_shares={1: 0.05})
    declared = {**DECLARED, "pulse": ["0", "200"]}
    found = check(clf, rows, labels, schema=declared).found
    assert "class-shares-not-declared" not in [each["code"] for each in found["notes"]]
    said = {each["code"]: each["message"] for each in found["cautions"]}
    assert said["bounds-are-texts"].startswith("schema 'pulse' is a list of the two texts '0' and '200'")


@pytest.mark.quick
def test_a_schema_that_does_not_fit_is_refused_before_a_charge():
    rows, labels = patients(200, 1)
    with pytest.raises(InvalidParameter, match="give one of them"):
        PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5).fit(
            rows, labels, public=PublicPool(rows), schema=DECLARED
        )
    with pytest.raises(DataRefused, match="pulse"):
        fitted(rows.drop("pulse"), labels, schema=DECLARED)
    for marginals in (0, None):
        clf = PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5, marginals=marginals)
        with pytest.raises(DataRefused, match=r"the schema lacks the column 'note' of X\."):
            clf.fit(rows.with_columns(note=pl.lit("x")), labels, schema=DECLARED)
    noted = rows.with_columns(note=pl.lit("x"))
    with pytest.raises(DataRefused, match=r'got the text \'note\', .* groups=X\["note"\], and X without it'):
        PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5).fit(
            noted, labels, schema=DECLARED, groups="note"
        )
    with pytest.raises(InvalidParameter, match="schema names 'ill', the column of labels; leave it out of schema"):
        fitted(rows, pl.Series("ill", labels), schema={**DECLARED, "ill": ["0", "1"]})
    with pytest.raises(DataRefused, match="give a data frame"):
        fitted(X[:200], labels, schema=DECLARED)
    with pytest.raises(InvalidParameter, match="'age'"):
        fitted(rows, labels, schema={**DECLARED, "age": (9, 1)})
