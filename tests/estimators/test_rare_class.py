"""Scores and thresholds of the estimators: free, before the fit and after it."""

import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import roc_auc_score

from quorate import LabelPrivateClassifier, PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.errors import InvalidParameter

pytestmark = pytest.mark.mostly_heavy
CLASSES = ["ja", "nein"]  # the rare one first, as nobody who looks for it would be surprised by


X, codes = make_classification(3_000, n_features=6, weights=[0.9], class_sep=1.2, random_state=3)
y = np.array(["nein", "ja"])[codes]


def fitted(kind, **how):
    clf = kind(classes=CLASSES, epsilon=4.0, delta=1e-5, n_records=2_000, **how)
    if kind is PrivateClassifier:
        clf.set_params(n_teachers=20, n_jobs=1)
    return clf.fit(X[:2_000], y[:2_000], public=PublicPool(X[2_000:2_200]))


@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateLogisticRegression])
def test_a_threshold_may_be_moved_after_the_fit(kind):
    clf = fitted(kind, class_shares={"ja": 0.1})
    held, truth = X[2_400:], y[2_400:]
    before, probabilities = clf.predict(held), clf.predict_proba(held)
    assert clf.decision_threshold_ == 0.5
    assert clf.score(held, truth) == np.mean(before == truth)
    area = roc_auc_score(truth == "ja", probabilities[:, 0])
    assert clf.score(held, truth, scoring="roc_auc") == pytest.approx(area)
    spent = clf.guarantee_.epsilon
    clf.set_params(decision_threshold="share")
    pool = X[2_000:2_200]
    assert np.sum(clf.predict(pool) == "ja") == 20
    clf.set_params(decision_threshold="balanced")
    mean = clf.predict_proba(pool)[:, 0].mean()
    assert clf.decision_threshold_ == pytest.approx(mean)
    np.testing.assert_array_equal(clf.predict(held) == "ja", probabilities[:, 0] >= mean)
    np.testing.assert_array_equal(clf.predict_proba(held), probabilities)
    clf.set_params(decision_threshold=0.05)
    assert clf.decision_threshold_ == 0.05
    told_before = clf.predict(held)
    clf.set_params(decision_threshold={"false_negative": 19, "false_positive": 1})  # of "ja", the rarer one
    assert clf.decision_threshold_ == 0.05
    np.testing.assert_array_equal(clf.predict(held), told_before)
    facts = clf.facts(evaluation=(held, truth))
    assert (facts.fitted.threshold, facts.fitted.threshold_class) == (0.05, "ja")
    assert facts.utility.student.chosen.scoring == "roc_auc"
    assert facts.utility.student.ranking.positive == 0
    assert "decides     “ja” is predicted from a probability of 0.05 on" in clf.summary()
    clf.set_params(decision_threshold="accuracy")
    np.testing.assert_array_equal(clf.predict(held), before)
    assert clf.guarantee_.epsilon == spent


def test_a_copy_without_its_pool_keeps_the_threshold_that_it_was_fitted_with():
    clf = fitted(PrivateLogisticRegression, decision_threshold="balanced")
    copy = pickle.loads(pickle.dumps(clf))  # noqa: S301 - our own
    np.testing.assert_array_equal(copy.predict(X), clf.predict(X))
    with pytest.raises(InvalidParameter, match="needs public rows, and there are none at hand"):
        copy.set_params(decision_threshold="share", class_shares={"ja": 0.1}).predict(X)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateLogisticRegression])
def test_a_threshold_that_cannot_be_is_refused_before_a_charge(kind, tmp_path):
    with pytest.raises(InvalidParameter, match="declare class_shares"):
        fitted(kind, decision_threshold="share", ledger=tmp_path / "ledger.db")
    assert not (tmp_path / "ledger.db").exists()


def test_there_is_no_balance_without_public_rows():
    clf = PrivateLogisticRegression(classes=CLASSES, epsilon=4.0, delta=1e-5, decision_threshold="balanced")
    with pytest.raises(InvalidParameter, match='decision_threshold="balanced" needs public rows'):
        clf.fit(X, y)
    clf.set_params(decision_threshold=0.2, class_shares={"ja": 0.1}).fit(X, y)
    np.testing.assert_array_equal(clf.predict(X) == "ja", clf.predict_proba(X)[:, 0] >= 0.2)


@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateLogisticRegression])
def test_without_public_rows_a_declared_share_is_the_balanced_threshold(kind):
    frame = pl.DataFrame((X[:800] > 0).astype(int), schema=[f"x{at}" for at in range(X.shape[1])])
    schema = {name: [0, 1] for name in frame.columns}
    clf = kind(classes=CLASSES, epsilon=4.0, delta=1e-5, n_records=800, decision_threshold="balanced")
    voted = {"n_teachers": 20, "n_jobs": 1, "queries": 60}
    clf.set_params(**(voted if kind is PrivateClassifier else {"feature_map": "linear"}))
    with pytest.raises(InvalidParameter, match="none at hand; declare class_shares, or give a number"):
        clf.fit(frame, y[:800], schema=schema)
    clf.set_params(class_shares={"ja": 0.1}).fit(frame, y[:800], schema=schema)
    assert clf.decision_threshold_ == 0.1
    np.testing.assert_array_equal(clf.predict(frame) == "ja", clf.predict_proba(frame)[:, 0] >= 0.1)
    with pytest.raises(InvalidParameter, match='take "balanced", which does with the declared share'):
        clf.set_params(decision_threshold="share").predict(frame)


def test_what_is_no_score_is_refused_by_name():
    clf = LabelPrivateClassifier(classes=CLASSES, epsilon=4.0, delta=1e-5, n_jobs=1).fit(X[:400], y[:400])
    assert clf.score(X, y, scoring="roc_auc") > 0.5
    with pytest.raises(InvalidParameter, match="scoring must be one of"):
        clf.score(X, y, scoring="auc")
    with pytest.raises(InvalidParameter, match="sample_weight is for"):
        clf.score(X, y, np.ones(len(y)), scoring="f1")
