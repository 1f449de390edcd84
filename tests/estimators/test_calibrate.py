"""Probabilities of published models are fitted on labelled public rows, after the fit and free of charge."""

import io
import pickle
import warnings
from contextlib import redirect_stderr

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

from quorate import (
    Budget,
    LabelPrivateClassifier,
    Ledger,
    PrivateClassifier,
    PrivateLogisticRegression,
    PrivateRegressor,
    PublicPool,
)
from quorate.deferred import skops
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, QuorateWarning
from quorate.students.prediction_sets import halves

pytestmark = pytest.mark.heavy

WAYS = (
    (PrivateClassifier, {"method": "votes", "n_teachers": 20, "n_jobs": 1}),
    (PrivateClassifier, {"method": "direct"}),
    (PrivateLogisticRegression, {}),
)


X, CODES = make_classification(1_600, n_features=4, flip_y=0.2, class_sep=0.8, random_state=3)
Y = np.array(["no", "yes"])[CODES]
PRIVATE, POOL, CALIBRATION, HELD = slice(800), slice(800, 1_000), slice(1_000, 1_300), slice(1_300, 1_600)


def fitted(kind, how):
    clf = kind(classes=["no", "yes"], epsilon=1.0, delta=1e-5, n_records=800, **how)
    return refitted(clf)


def refitted(clf):
    clf.set_params(ledger=Ledger(budget=Budget(1.0, 1e-5)))
    return clf.fit(X[PRIVATE], Y[PRIVATE], public=PublicPool(X[POOL]))


@pytest.mark.parametrize(("kind", "how"), WAYS)
def test_probabilities_are_fitted_and_classes_stay(kind, how, tmp_path):
    clf = fitted(kind, how)
    classes, before, spent = clf.predict(X), clf.predict_proba(X), clf.ledger_.spent
    flagged = shares_and_costs(clf)
    assert clf.temperature_ == 1.0
    assert clf.calibrate(X[CALIBRATION], Y[CALIBRATION]) is clf
    after, first = clf.predict_proba(X), clf.temperature_
    fitting, held = (CALIBRATION.start + half for half in halves(300))
    assert log_loss(Y[fitting], after[fitting]) <= log_loss(Y[fitting], before[fitting])
    odds, calibrated = (np.log(told[:, 1] / told[:, 0]) for told in (before, after))
    np.testing.assert_allclose(calibrated, odds / first, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(clf.predict(X), classes)
    assert clf.ledger_.spent == spent
    facts = clf.facts(evaluation=(X[HELD], Y[HELD]))
    assert (facts.fitted.temperature, facts.fitted.calibration_rows) == (first, 150)
    assert "calibrated  probabilities fit 150 labelled public rows" in clf.summary()
    sets_hold_the_class_as_often_as_promised(clf, held, facts.fitted.prediction_sets)
    student = skops.io.load(clf.export(tmp_path / "student.skops"), trusted=[])
    np.testing.assert_allclose(student.predict_proba(X), after)
    if kind is PrivateLogisticRegression:
        np.testing.assert_array_equal(clf.coef_, clf.model_[-1].coef_)
        np.testing.assert_allclose(clf.decision_function(X), calibrated, atol=1e-9)
    clf.set_params(decision_threshold="balanced", class_shares={"yes": 0.3})  # worked out again
    assert clf.decision_threshold_ == pytest.approx(after[POOL, 1].mean())
    clf.set_params(decision_threshold="share")
    assert np.sum(clf.predict(X[POOL]) == "yes") == 60
    clf.set_params(decision_threshold="accuracy")
    np.testing.assert_array_equal(shares_and_costs(clf)[0], flagged[0])  # a quantile of the score stays where it was
    assert (shares_and_costs(clf)[1] != flagged[1]).any()  # costs are weighed by probabilities as they are now
    clf.calibrate(X[HELD], Y[HELD])  # from the model as it was fitted, not from the one of the first call
    np.testing.assert_allclose(np.log(clf.predict_proba(X)[:, 1] / clf.predict_proba(X)[:, 0]), odds / clf.temperature_)
    assert clf.temperature_ != first
    private_rows_calibrate_nothing(clf, direct=how.get("method") != "votes")
    assert refitted(clf).temperature_ == 1.0


def shares_and_costs(clf):
    predictions = []
    for rule in ("share", {"false_negative": 4, "false_positive": 1}):
        moved = clf.set_params(decision_threshold=rule, class_shares={"yes": 0.3})
        predictions.append(moved.predict(X))
    assert clf.decision_threshold_ == 0.2
    np.testing.assert_array_equal(predictions[1] == "yes", clf.predict_proba(X)[:, 1] >= 0.2)
    clf.set_params(decision_threshold="accuracy", class_shares=None)
    return predictions


def sets_hold_the_class_as_often_as_promised(clf, held, told):
    codes = (Y == "yes").astype(int)
    true = clf.predict_proba(X)[np.arange(len(X)), codes]
    for coverage in (0.8, 0.9):
        rank = int(np.ceil(coverage * 151))  # by another road: every class as likely as the true one of that rank
        least = np.sort(true[held])[::-1][rank - 1] - 1e-8
        sets = clf.predict_set(X, coverage=coverage)
        np.testing.assert_array_equal(sets, clf.predict_proba(X) >= least)
        promise = clf.coverage_promise(coverage)
        assert promise.n_rows == 150
        assert sets[np.arange(1_300, 1_600), codes[HELD]].mean() > promise.least - 0.08  # four standard errors
    assert (told.coverage, told.slack, told.n_rows) == (0.9, clf.coverage_promise().slack, 150)
    sizes = clf.predict_set(X[held]).sum(axis=1)
    assert (told.mean_size, told.empty) == (sizes.mean(), np.mean(sizes == 0))
    assert told.limits.limit(0.9) == clf.set_limit(0.9)
    assert "of 90 % hold the true class of at least" in " ".join(clf.summary().split())
    with pytest.raises(InvalidParameter, match=r"coverage=0.999 needs 999 rows .* calibrate with 1,998 labelled"):
        clf.predict_set(X, coverage=0.999)


def private_rows_calibrate_nothing(clf, *, direct):
    before = clf.predict_proba(X)
    with pytest.raises(DataRefused, match="calibration labels: got 200 for 300 rows; give one label for every row"):
        clf.calibrate(X[CALIBRATION], Y[CALIBRATION][:200])
    with pytest.raises(NotFittedError, match="is not fitted"):
        clone(clf).calibrate(X[CALIBRATION], Y[CALIBRATION])
    if direct:  # where private rows decide on no refusal
        line = io.StringIO()
        with redirect_stderr(line):
            clf.calibrate(X[PRIVATE], Y[PRIVATE])
        assert "the calibration was left out: calibration holds private rows" in line.getvalue()
    else:
        with pytest.raises(DataRefused, match="calibration holds the private rows again"):
            clf.calibrate(X[PRIVATE], Y[PRIVATE])
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_too_few_rows_are_refused_and_a_copy_calibrates_nothing():
    clf = fitted(PrivateLogisticRegression, {})
    with pytest.raises(
        PreconditionFailed, match=r"First call calibrate\(X, y\)\. Without such rows, fit with calibration_share="
    ):
        clf.predict_set(X)
    with pytest.raises(InvalidParameter, match=r"calibrate\(X, y\) got 20 rows, and needs at least 100: one half fits"):
        clf.calibrate(X[1_000:1_020], Y[1_000:1_020])
    clf.calibrate(X[CALIBRATION], Y[CALIBRATION])
    probabilities = clf.predict_proba(X)
    copy = pickle.loads(pickle.dumps(clf.set_params(ledger=None)))  # noqa: S301 - our own
    np.testing.assert_array_equal(copy.predict_proba(X), probabilities)
    assert copy.temperature_ == clf.temperature_
    np.testing.assert_array_equal(copy.predict_set(X), clf.predict_set(X))
    with pytest.raises(PreconditionFailed, match="the original takes them"):
        copy.calibrate(X[CALIBRATION], Y[CALIBRATION])


def test_labels_alone_are_private_and_public_ones_calibrate():
    X, y = make_classification(1_600, n_features=4, flip_y=0.1, random_state=2)
    clf = LabelPrivateClassifier(classes=[0, 1], epsilon=2.0, delta=1e-5, n_teachers=40, unsafe_noise_seed=1)
    clf.fit(X[:800], y[:800])
    with pytest.raises(PreconditionFailed, match="prediction sets need labelled public rows"):
        clf.predict_set(X[800:])
    with pytest.raises(DataRefused, match="calibration"):
        clf.calibrate(X[:400], y[:400])
    clf.calibrate(X[800:1_200], y[800:1_200])
    sets = clf.predict_set(X[1_200:])
    assert sets[np.arange(400), y[1_200:]].mean() > clf.coverage_promise().least - 0.03
    assert clf._facts.fitted.calibration_rows == 200


@pytest.mark.parametrize("by", ["classes", "direct", "votes"])
def test_rows_of_the_pool_calibrate_with_a_warning_and_others_with_none(by):
    if by == "classes":
        model, y = fitted(PrivateLogisticRegression, {}), Y
    else:
        y = X[:, 0]
        how = {"target_range": (-5, 5), "epsilon": 1.0, "delta": 1e-5, "n_records": 800, "method": by}
        model = PrivateRegressor(**how).fit(X[PRIVATE], y[PRIVATE], public=PublicPool(X[POOL]))
    with pytest.warns(
        QuorateWarning, match=r"calibration-rows-used-twice: some rows of calibrate\(X, y\) are also in the public pool"
    ):
        model.calibrate(X[900:1_100], y[900:1_100])
    with warnings.catch_warnings():
        warnings.simplefilter("error", QuorateWarning)
        model.calibrate(X[CALIBRATION], y[CALIBRATION])
