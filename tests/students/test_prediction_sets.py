"""Prediction sets and temperatures: exact ranks, what chance may take of the coverage, and how many rows it needs."""

from __future__ import annotations

import warnings
from fractions import Fraction
from math import comb
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
from quorate.students.prediction_sets import (
    FAILURE,
    FEWEST_LABELLED,
    Limits,
    at_temperature,
    calibrated,
    fit_temperature,
    halves,
    kept_ranks,
    promised,
    require_calibration,
    sets_of,
    takes_temperature,
)


def below(n_rows: int, rank: int, share: float) -> float:
    """Probability that the score at a rank of n covers less than a share: that many of n uniform numbers lie below."""
    x = Fraction(share)
    return float(sum(comb(n_rows, k) * x**k * (1 - x) ** (n_rows - k) for k in range(rank, n_rows + 1)))


@pytest.mark.parametrize(("n_rows", "coverage", "rank"), [(9, 0.9, 9), (50, 0.9, 46), (199, 0.95, 190), (120, 0.5, 61)])
def test_the_slack_is_exact_by_another_road(n_rows: int, coverage: float, rank: int) -> None:
    promise = promised(n_rows, coverage)
    assert below(n_rows, rank, promise.least) <= FAILURE < below(n_rows, rank, promise.least + 2e-6)
    assert below(n_rows, rank - 1, promise.least) > FAILURE  # twin: a rank too low promises more than it holds


def test_of_many_rows_a_rank_above_is_taken_and_the_promise_is_that_of_the_least() -> None:
    n_rows = 2_500
    ranks = kept_ranks(n_rows)
    assert (len(ranks), ranks[-1], bool(np.all(np.diff(ranks) > 0))) == (1_000, n_rows, True)
    scores = np.random.default_rng(0).random(n_rows)
    for coverage in (0.5, 0.9, 0.9995):
        exact = np.sort(scores)[int(np.ceil(coverage * (n_rows + 1))) - 1]
        limit = Limits.of(scores).limit(coverage)
        assert exact <= limit <= np.sort(scores)[min(int(np.ceil(coverage * (n_rows + 1))) + 1, n_rows - 1)] + 1e-8


@pytest.mark.parametrize("ties", [False, True])
def test_of_any_rows_at_least_the_share_is_within_the_limit_of_the_others(ties: bool) -> None:
    """What exchangeable rows are promised, counted: each of n + 1 rows in turn is the new one."""
    rng = np.random.default_rng(1)
    for n_rows in (9, 19, 60):
        scores = rng.integers(0, 4, n_rows + 1) / 4 if ties else rng.random(n_rows + 1)
        for coverage in (0.5, 0.8, 0.9):
            others = [np.delete(scores, place) for place in range(n_rows + 1)]
            within = [score <= Limits.of(rest).limit(coverage) for score, rest in zip(scores, others, strict=True)]
            assert np.mean(within) >= coverage
            if not ties:  # twin: the next score below
                lower = [np.sort(rest)[int(np.ceil(coverage * (n_rows + 1))) - 2] for rest in others]
                assert np.mean(scores <= lower) < coverage


def test_too_few_rows_are_refused_with_the_number_that_would_do() -> None:
    for coverage, needed in ((0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999), (0.7, 3)):
        with pytest.raises(InvalidParameter, match=f"coverage={coverage} needs {needed} rows that calibrate sets, and"):
            promised(needed - 1, coverage)
        assert 0 < promised(needed, coverage).slack < coverage
    with pytest.raises(InvalidParameter, match=r"one in 2 does; calibrate with 198 .* a coverage of at most 0.98$"):
        promised(50, 0.99, of_each=2)
    for wrong in (0, 1, 1.5, "much"):
        with pytest.raises(InvalidParameter, match="coverage must be"):
            promised(50, wrong)  # type: ignore[arg-type]


def test_halves_are_told_by_places_alone_and_last_bits_move_no_class() -> None:
    fitting, held = halves(101)
    assert (len(fitting), len(held)) == (50, 51)
    assert sorted([*fitting, *held]) == list(range(101))
    assert 10 < np.sum(fitting < 50) < 40  # neither the first rows nor every second one
    probabilities = np.array([[0.25, 0.75], [0.4, 0.6]])
    limit = Limits.of(1 - probabilities[:, 1]).limit(0.5)
    assert sets_of(probabilities * (1 - 1e-12), limit).tolist() == [[False, True], [False, True]]


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
    require_calibration(model, FEWEST_LABELLED, name="calibration")
    with pytest.raises(InvalidParameter, match="calibration got 99 rows, and needs at least 100: one half fits the"):
        require_calibration(model, FEWEST_LABELLED - 1, name="calibration")
    forest = make_pipeline(ExtraTreesClassifier(n_estimators=2).fit(X, np.array(list("ab"))[codes]))
    assert takes_temperature(model)
    assert not takes_temperature(forest)
    same, calibration = calibrated(forest, X, codes, list("ab"))
    assert same is forest
    assert calibration.temperature is None
    with pytest.raises(InvalidParameter, match="ends in RidgeClassifier, which has no predict_proba; leave it out"):
        require_calibration(RidgeClassifier().fit(X, codes), len(X), name="calibration")
