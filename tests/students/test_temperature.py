"""A temperature: the one under which labels are most likely, on a copy that says the same classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quorate.errors import InvalidParameter
from quorate.students.prediction_sets import calibrated
from quorate.students.temperature import (
    FEWEST,
    at_temperature,
    fit_temperature,
    require_calibration,
    takes_temperature,
)


def task(seed: int, n_classes: int) -> tuple[Any, Any, Any]:
    """Return rows, codes, and a model in two Pipelines that is as many times too sure as `seed` says."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 3))
    codes = (X @ rng.normal(size=(3, n_classes)) + rng.gumbel(size=(600, n_classes))).argmax(axis=1)
    last = LogisticRegression().fit(X, np.array(list("abc"))[codes])
    factor = (0.2, 1.0, 6.0)[seed % 3]
    last.coef_, last.intercept_ = factor * last.coef_, factor * last.intercept_
    return X, codes, make_pipeline(StandardScaler().fit(X), make_pipeline(last))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("seed", "n_classes"), [(0, 2), (2, 2), (1, 3), (5, 3)])
def test_it_is_the_one_under_which_labels_are_most_likely(seed: int, n_classes: int) -> None:
    X, codes, model = task(seed, n_classes)
    classes = list("abc")[:n_classes]
    fitted = fit_temperature(model, X, codes, classes)
    scores = np.atleast_2d(model.decision_function(X).T).T
    scores = np.column_stack([np.zeros(len(X)), scores]) if n_classes == 2 else scores
    grid = np.geomspace(0.05, 20, 150)
    losses = []  # by another road: minus the logarithm of a softmax of scores
    for temperature in grid:
        divided = scores / temperature
        losses.append(np.mean(logsumexp(divided, axis=1) - divided[np.arange(len(X)), codes]))
    assert abs(np.log(fitted.value / grid[int(np.argmin(losses))])) <= np.log(grid[1] / grid[0])
    calibrated = at_temperature(model, fitted.value)
    assert log_loss(np.array(classes)[codes], calibrated.predict_proba(X), labels=classes) <= min(losses) + 1e-9
    np.testing.assert_array_equal(calibrated.predict(X), model.predict(X))
    assert fit_temperature(calibrated, X, codes, classes).value == pytest.approx(1, abs=1e-3)
    np.testing.assert_array_equal(model.decision_function(X), task(seed, n_classes)[2].decision_function(X))


def test_a_class_that_the_model_never_saw_and_one_without_a_row_are_no_error() -> None:
    X, codes, model = task(1, 2)
    unseen = np.where(np.arange(len(codes)) < 5, 2, codes)
    seen = fit_temperature(model, X[5:], codes[5:], list("ab")).value
    assert fit_temperature(model, X, unseen, list("abc")).value == pytest.approx(seen, rel=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sure = fit_temperature(model, X, (model.predict(X) == "b").astype(np.int64), list("ab"))
    assert sure.value == pytest.approx(0.05, rel=1e-3)  # all rows are right, and certainty is not said all the same


def test_a_model_of_one_class_stays_as_it_is() -> None:
    X, codes, _ = task(0, 2)
    constant = DummyClassifier(strategy="constant", constant="a").fit(None, ["a"])
    require_calibration(constant, len(X), name="calibration")
    assert fit_temperature(constant, X, codes, list("ab")).value == 1.0
    np.testing.assert_array_equal(at_temperature(constant, 2.0).predict_proba(X), constant.predict_proba(X))


def test_too_few_rows_and_models_without_scores_are_refused() -> None:
    X, codes, model = task(0, 2)
    require_calibration(model, FEWEST, name="calibration")
    with pytest.raises(InvalidParameter, match="calibration got 99 rows, and needs at least 100: one half fits the"):
        require_calibration(model, FEWEST - 1, name="calibration")
    forest = make_pipeline(ExtraTreesClassifier(n_estimators=2).fit(X, np.array(list("ab"))[codes]))
    assert takes_temperature(model)
    assert not takes_temperature(forest)
    same, calibration = calibrated(forest, X, codes, list("ab"))
    assert same is forest
    assert calibration.temperature is None
    with pytest.raises(InvalidParameter, match="ends in RidgeClassifier, which has no predict_proba; leave it out"):
        require_calibration(RidgeClassifier().fit(X, codes), len(X), name="calibration")
