"""scikit-learn's own checks on every estimator: what fails stands in a public table, with its reason."""

import copy
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from tests.estimators.small_task import POOL, N, X, Y, classifier

import quorate
from quorate import (
    LabelPrivateClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    PrivateRegressor,
    PublicPool,
    SubsampleAggregate,
)
from quorate.errors import SecretRefused
from quorate.estimators.decided import Scored

pytestmark = pytest.mark.mostly_heavy
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scikit-learn.md"
PUBLIC = PublicPool(POOL)


def from_one_table(fit, self, X, y):
    """Fit with a pool and classes taken from the very table that is given.

    That is what nobody must do with private rows: here it lets scikit-learn call ``fit(X, y)``.
    """
    X, y = validate_data(self, X, y, accept_sparse="csr")
    check_classification_targets(y)
    pool = X[: max(1, X.shape[0] - 1)] * 0.999
    found, self.classes = self.classes, np.unique(y).tolist()
    try:
        return fit(X, y, public=PublicPool(pool))
    finally:
        self.classes = found


class Votes(PrivateClassifier):
    """Votes with a pool from the table; noise is seeded, since the checks compare one fit with another."""

    def __init__(self, teacher=None, student=None):
        fixed = {"epsilon": 60.0, "delta": 1e-5, "n_teachers": 2, "n_jobs": 1, "unsafe_noise_seed": 1}
        super().__init__(teacher, student, classes=[0, 1], **fixed)

    def fit(self, X, y):
        return from_one_table(super().fit, self, X, y)


class Rounds(PrivateLogisticRegression):
    def __init__(self, rounds=None):
        super().__init__(
            classes=[0, 1], rounds=rounds, epsilon=8.0, delta=1e-5, feature_map="linear", unsafe_noise_seed=1
        )

    def fit(self, X, y):
        return from_one_table(super().fit, self, X, y)


class Numbers(PrivateRegressor):
    """A number by rounds, with a pool and a range from the table, which nobody must do with private rows."""

    def __init__(self, rounds=None):
        super().__init__(
            target_range=(0, 1), rounds=rounds, epsilon=8.0, delta=1e-5, feature_map="linear", unsafe_noise_seed=1
        )

    def fit(self, X, y):
        X, y = validate_data(self, X, y, accept_sparse="csr", y_numeric=True)
        found, self.target_range = self.target_range, (float(np.min(y)), float(np.max(y)) + 1.0)
        try:
            super().fit(X, y, public=PublicPool(X[: max(1, X.shape[0] - 1)] * 0.999))
        finally:
            self.target_range = found
        return self


# By the heading that each has in the table.
MADE = {
    "PrivateClassifier": lambda: Votes(LogisticRegression()),
    "LabelPrivateClassifier": lambda: LabelPrivateClassifier(
        classes="public", epsilon=8.0, delta=1e-5, n_teachers=3, n_jobs=1, unsafe_noise_seed=0
    ),
    "PrivateLogisticRegression": Rounds,
    "PrivateLogisticRegression without a pool": lambda: PrivateLogisticRegression(
        classes=[0, 1], epsilon=8.0, delta=1e-5, unsafe_noise_seed=1
    ),
    "PrivateRegressor": Numbers,
    "SubsampleAggregate": lambda: SubsampleAggregate(
        epsilon=2_000.0, delta=0.5, n_shards=3, cutoff=1, n_queries=2, n_jobs=1, unsafe_noise_seed=1
    ),
}


def in_the_table():
    """Read the page: for each estimator the checks that it fails, and why."""
    found = {}
    for part in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        rows = re.findall(r"^\| `(check_\w+)` \| (.+) \|$", text, re.MULTILINE)
        found[name.strip("`")] = dict(rows)
    return found


@pytest.mark.quick
def test_every_estimator_has_its_table():
    assert in_the_table().keys() == MADE.keys()


@pytest.mark.heavy_cases(3)
@pytest.mark.parametrize("name", MADE)
def test_what_fails_is_what_the_table_says(name):
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(MADE[name](), on_fail=None, on_skip=None)
    failed = {each["check_name"]: repr(each["exception"]) for each in results if each["status"] == "failed"}
    table = in_the_table()[name]
    assert {check: failed[check] for check in failed.keys() - table.keys()} == {}
    assert table.keys() - failed.keys() == set()
    assert sum(each["status"] == "passed" for each in results) >= 35


def direct():
    return PrivateLogisticRegression(classes=[0, 1], epsilon=4.0, delta=1e-5, unsafe_noise_seed=1)


def test_a_fitted_one_travels_or_says_why_not(tmp_path):
    votes = classifier(queries=20, unsafe_noise_seed=1).fit(X, Y, public=PUBLIC)
    for act in (lambda fitted: joblib.dump(fitted, tmp_path / "votes.joblib"), pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused, match=r"holds the run's key.*export\(\) writes the student"):
            act(votes)
    fitted = direct().fit(X, Y, public=PUBLIC)
    joblib.dump(fitted, tmp_path / "direct.joblib")
    assert (joblib.load(tmp_path / "direct.joblib").predict(X) == fitted.predict(X)).all()
    unfitted = clone(votes)
    assert repr(pickle.loads(pickle.dumps(unfitted)).get_params()) == repr(unfitted.get_params())  # noqa: S301


def test_columns_have_their_names_and_other_ones_are_refused():
    frame, pool = (pd.DataFrame(each, columns=["a", "b", "c", "d"]) for each in (X, POOL))
    for made in (classifier(queries=20, unsafe_noise_seed=1), direct()):
        made.fit(frame, Y, public=PublicPool(pool))
        assert (made.n_features_in_, made.feature_names_in_.tolist()) == (4, ["a", "b", "c", "d"])
        assert (made.predict(frame[["d", "a", "b", "c"]]) == made.predict(frame)).all()  # known by name
        made.fit(X, Y, public=PUBLIC)
        assert not hasattr(made, "feature_names_in_")


def test_a_frame_as_output_of_the_step_before_is_read():
    names = ["a", "b", "c", "d"]
    with config_context(enable_metadata_routing=True):
        step = FunctionTransformer(lambda rows: rows, feature_names_out="one-to-one").set_output(transform="pandas")
        inner = direct().set_fit_request(public=True, groups=True)
        pool = PublicPool(pd.DataFrame(POOL, columns=names))
        pipeline = make_pipeline(step, inner).fit(
            pd.DataFrame(X, columns=names), Y, public=pool, groups=np.arange(N) // 2
        )
        assert pipeline[-1].guarantee_.unit == "person"  # groups arrived
        assert pipeline.predict(pd.DataFrame(X, columns=names)).shape == (N,)


@pytest.mark.several_fits
def test_groups_and_the_pool_reach_every_fold_by_metadata_routing():
    with config_context(enable_metadata_routing=True):
        inner = classifier(queries=10, teacher=GaussianNB(), unsafe_noise_seed=1).set_fit_request(
            public=True, groups=True
        )
        found = cross_validate(
            inner, X, Y, cv=2, params={"public": PUBLIC, "groups": np.arange(N) // 2}, return_estimator=True
        )
    assert [each.guarantee_.unit for each in found["estimator"]] == ["person", "person"]


@pytest.mark.several_fits
def test_a_fitted_one_has_what_people_reach_for(tmp_path):
    votes = classifier(queries=20, epsilon=1.0, ledger=tmp_path / "ledger.db").fit(X, Y, public=PUBLIC)
    assert (votes.n_teachers_, votes.mechanism_) == (votes.recipe_.n_teachers, votes.recipe_.mechanism)
    assert votes.ledger_ == tmp_path / "ledger.db"
    rounds = PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5).fit(X, Y, public=PUBLIC)
    assert rounds.ledger_.left.epsilon < 1e-6
    labels = LabelPrivateClassifier(classes=[0, 1], epsilon=1.0, delta=1e-5, n_teachers=8).fit(X, Y)
    for made in (votes, rounds, labels):
        assert (made.epsilon_, made.delta_) == (1.0, 1e-5)
        chances, scores = made.predict_proba(X), made.decision_function(X)
        assert np.allclose(np.exp(made.predict_log_proba(X)), chances)
        assert scores.shape == (N,)
        assert ((scores > 0) == (chances[:, 1] > chances[:, 0])).all()
        assert get_scorer("roc_auc")(made, X, Y) == pytest.approx(made.score(X, Y, scoring="roc_auc"))


@pytest.mark.several_fits
@pytest.mark.heavy_cases(2)  # a frame and an array
@pytest.mark.parametrize("container", [pl.DataFrame, pd.DataFrame, np.asarray, csr_array])
def test_columns_that_decide_have_the_largest_importances_whatever_holds_them(container):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(2_400, 3))
    labels = (rows[:, 1] + 0.1 * rng.normal(size=2_400) > 0).astype(int)
    public = PublicPool(container(rows[2_000:]))
    common = {"classes": [0, 1], "epsilon": 8.0, "delta": 1e-5, "unsafe_noise_seed": 1}
    for made in (PrivateClassifier(GaussianNB(), **common, n_teachers=40), PrivateLogisticRegression(**common)):
        if container is csr_array and isinstance(made, PrivateClassifier):
            made.set_params(teacher=LogisticRegression())
        importances = made.fit(container(rows[:2_000]), labels[:2_000], public=public).importances_
        first, *others = sorted(importances, key=lambda name: -importances[name])
        assert first in ("1", "column_1")
        assert importances[first] > 3 * importances[others[0]]


@pytest.mark.quick
def test_scores_are_finite_where_a_class_has_no_chance():
    class Sure(Scored):
        def predict_proba(self, X):
            return np.array([[1.0, 0.0, 0.0], [0.25, 0.25, 0.5]])

    assert np.isfinite(Sure().decision_function(None)).all()
    assert Sure().predict_log_proba(None)[0].tolist() == [0.0, -np.inf, -np.inf]


@pytest.mark.quick
def test_names_of_the_package_that_people_try(capsys):
    code = "import quorate; assert quorate.accounting.PureDP and quorate.mechanisms and quorate.__version__"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'acounting'"):
        _ = quorate.acounting
    quorate.show_versions()
    said = capsys.readouterr().out
    assert re.search(rf"^quorate +{re.escape(quorate.__version__)}$", said, re.MULTILINE)
    assert re.search(rf"^numpy +{re.escape(np.__version__)}$", said, re.MULTILINE)
