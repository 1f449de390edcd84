"""Scores are scikit-learn's, and a threshold does what it says on the public pool."""

from __future__ import annotations

import warnings
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import average_precision_score, f1_score, get_scorer, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from quorate.errors import InvalidParameter
from quorate.run.scores import _ranking
from quorate.students.decision_threshold import (
    check_decision_threshold,
    decides_from,
    require_probabilities,
    with_threshold,
)
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
from quorate.students.scores import SCORINGS, ScoredRows, check_class_shares, default_scoring

SCORERS = {"log_loss": "neg_log_loss"}  # by another name, and with the other sign


def table(n_classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    weights = [0.9, *([0.1 / (n_classes - 1)] * (n_classes - 1))]
    X, y = make_classification(
        1_500, n_features=8, n_informative=6, n_classes=n_classes, weights=weights, random_state=seed
    )
    return X, y


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("rare_first", [False, True])
def test_a_score_is_that_of_scikit_learn(scoring, rare_first):
    X, y = table()
    labels = np.array(["a common", "b rare"])[y]  # the rare one is second for scikit-learn
    model = LogisticRegression().fit(X, labels)
    classes = ["b rare", "a common"] if rare_first else ["a common", "b rare"]
    codes = np.array([classes.index(label) for label in labels])
    value = ScoredRows.of(model, X, codes, classes).score(scoring)
    if scoring == "f1":
        expected = f1_score(labels, model.predict(X), pos_label="b rare")
    elif scoring == "average_precision":
        expected = average_precision_score(labels == "b rare", model.predict_proba(X)[:, 1])
    else:
        expected = abs(get_scorer(SCORERS.get(scoring, scoring))(model, X, labels))
    assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scoring", "scorer"), [("balanced_accuracy", "balanced_accuracy"), ("roc_auc", "roc_auc_ovr"), ("f1", "f1_macro")]
)
def test_a_score_of_several_classes_is_a_plain_mean_over_them(scoring, scorer):
    X, y = table(4)
    model = LogisticRegression(max_iter=1_000).fit(X, y)
    value = ScoredRows.of(model, X, y, [0, 1, 2, 3]).score(scoring)
    assert value == pytest.approx(get_scorer(scorer)(model, X, y), abs=1e-12)


def test_the_default_follows_from_public_shares():
    assert default_scoring([0.81, 0.19]) == "roc_auc"
    assert default_scoring([0.8, 0.2]) == "accuracy"
    assert default_scoring([0.5, 0.46, 0.04]) == "balanced_accuracy"
    assert default_scoring([0.5, 0.45, 0.05]) == "accuracy"
    assert default_scoring([1.0, 0.0]) == "accuracy"  # nothing can be said of a class without rows
    assert default_scoring(None) == "accuracy"


def test_what_needs_no_model_is_the_baseline():
    X, y = table()
    scored = ScoredRows.of(LogisticRegression().fit(X, y), X, y, [0, 1])
    assert scored.baseline("roc_auc") == 0.5
    assert scored.baseline("balanced_accuracy") == 0.5
    assert scored.baseline("average_precision") == pytest.approx(y.mean())
    assert scored.baseline("accuracy") == pytest.approx(1 - y.mean())


def test_no_score_of_a_perfect_model_passes_one_by_its_last_bit():
    """scikit-learn adds up the average precision: 1.0000000000000002 of 20 rows found, which no report takes."""
    passed = 0
    for n in range(2, 60):
        truth = np.r_[np.ones(n, dtype=np.int64), np.zeros(90, dtype=np.int64)]
        said = np.linspace(0.9, 0.1, n + 90)
        rows = ScoredRows(
            truth=truth, predicted=(said > said[n]).astype(int), probabilities=np.column_stack([1 - said, said]),
            n_classes=2, positive=1,
        )  # fmt: skip
        passed += average_precision_score(truth, said) > 1
        for scoring in ("accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision"):
            assert 1 - 1e-12 < (rows.score(scoring) or 0) <= 1
        assert _ranking(rows, 0.5) is not None
    assert passed


def test_a_model_without_probabilities_has_no_ranking():
    X, y = table()
    scored = ScoredRows.of(LinearSVC().fit(X, y), X, y, [0, 1])
    assert scored.score("roc_auc") is None
    assert scored.interval("roc_auc") is None
    assert scored.score("balanced_accuracy") is not None


def test_declared_shares_are_checked():
    assert check_class_shares({"ja": 0.04}, ["nein", "ja"]) == (0.96, 0.04)
    assert check_class_shares({"b": 0.1}, ["a", "b", "c"]) == (None, 0.1, None)
    for given, said in (
        ({"yes": 0.1}, "names 'yes'"),
        ({"ja": 1.0}, "must be a number > 0 and < 1"),
        ({"ja": 0.1, "nein": 0.8}, "must add up to 1"),
        (0.04, "must give classes their shares"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            check_class_shares(given, ["nein", "ja"])  # type: ignore[arg-type]


def test_balanced_is_the_mean_probability_of_the_pool():
    X, y = table()
    model = LogisticRegression().fit(X, y)
    moved = with_threshold(model, "balanced", classes=[0, 1], shares=None, pool=X)
    mean = model.predict_proba(X)[:, 1].mean()
    assert decides_from(moved) == (pytest.approx(mean), 1)
    np.testing.assert_array_equal(moved.predict(X), (model.predict_proba(X)[:, 1] >= mean).astype(int))
    np.testing.assert_array_equal(moved.predict_proba(X), model.predict_proba(X))
    scores = [ScoredRows.of(each, X, y, [0, 1]).score("balanced_accuracy") for each in (model, moved)]
    assert scores[1] > scores[0] + 0.05  # type: ignore[operator]


@pytest.mark.parametrize(("classes", "rare"), [(["ja", "nein"], "ja"), (["nein", "ja"], "ja"), ([False, True], True)])
def test_share_flags_as_many_rows_of_the_pool_as_were_declared(classes, rare):
    X, y = table()
    common = next(name for name in classes if name != rare)
    model = LogisticRegression().fit(X, np.array([common, rare])[y])
    shares = check_class_shares({rare: 0.04}, classes)
    moved = with_threshold(model, "share", classes=classes, shares=shares, pool=X)
    assert np.sum(moved.predict(X) == rare) == round(0.04 * len(X))


def test_accuracy_and_a_constant_move_nothing():
    X, y = table()
    model = LogisticRegression().fit(X, y)
    assert with_threshold(model, "accuracy", classes=[0, 1], shares=None, pool=X) is model
    for constant in (
        DummyClassifier(strategy="constant", constant=0).fit(X, np.zeros(len(X), dtype=int)),
        DummyClassifier(strategy="prior").fit(X, y),
    ):
        assert with_threshold(constant, "balanced", classes=[0, 1], shares=None, pool=X) is constant


def test_what_no_threshold_can_be_made_of_is_refused_in_a_line():
    for given, classes, said in (
        ("balanced", ["a", "b", "c"], "between two classes, got 'balanced' with 3"),
        (0.2, ["a", "b", "c"], "between two classes"),
        ("share", ["a", "b"], "declare class_shares"),
        (1.0, ["a", "b"], "must be a number > 0 and < 1"),
        (True, ["a", "b"], "must be a number"),
        ("blanced", ["a", "b"], 'did you mean "balanced"'),
    ):
        with pytest.raises(InvalidParameter, match=said) as refusal:
            check_decision_threshold(given, classes, None)
        assert "\n" not in str(refusal.value)
    costs: Any
    for costs, said in (
        (
            {"false_negative": 1},
            "must have the keys false_negative and false_positive, got {'false_negative': 1}; give what",
        ),
        ({"yes": 1, "no": 10}, "must have the keys false_negative and false_positive, got {'yes'"),
        ({"false_negative": 0, "false_positive": 1}, r"decision_threshold\['false_negative'\] must be a number > 0"),
        ({"false_negative": 1, "false_positive": "much"}, r"decision_threshold\['false_positive'\] must be a number"),
        ({"false_negative": 1e300, "false_positive": 1e-300}, "differ by too much; give a number"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            check_decision_threshold(costs, ["no", "yes"], None)
    with pytest.raises(InvalidParameter, match="moves the border between two classes"):
        check_decision_threshold({"false_negative": 1, "false_positive": 1}, list("abc"), None)
    with pytest.raises(InvalidParameter, match="needs public rows"):
        with_threshold(None, "balanced", classes=[0, 1], shares=None, pool=None)
    with pytest.raises(InvalidParameter, match="LinearSVC has none"):
        require_probabilities(LinearSVC(), "balanced")


@pytest.mark.parametrize("costs", [(10.0, 1.0), (1.0, 1.0), (0.2, 3.0)])
def test_from_the_threshold_of_costs_on_calling_the_rarer_class_costs_less(costs):
    missed, wrong = costs
    given: Any = {"false_negative": missed, "false_positive": wrong}
    threshold = check_decision_threshold(given, ["no", "yes"], None)
    assert isinstance(threshold, float)
    for probability in np.linspace(0.001, 0.999, 400):  # what each of the two predictions costs on average
        of_calling, of_not = (1 - probability) * wrong, probability * missed
        assert (of_calling <= of_not) == (probability >= threshold) or abs(of_calling - of_not) < 1e-12


def below(n_rows: int, rank: int, share: float) -> float:
    """Probability that the score at a rank of n covers less than a share: that many of n uniform numbers lie below."""
    x = Fraction(share)
    return float(sum(comb(n_rows, k) * x**k * (1 - x) ** (n_rows - k) for k in range(rank, n_rows + 1)))


@pytest.mark.parametrize(("n_rows", "coverage", "rank"), [(9, 0.9, 9), (50, 0.9, 46), (199, 0.95, 190), (120, 0.5, 61)])
def test_the_slack_is_exact_by_another_road(n_rows, coverage, rank):
    promise = promised(n_rows, coverage)
    assert below(n_rows, rank, promise.least) <= FAILURE < below(n_rows, rank, promise.least + 2e-6)
    assert below(n_rows, rank - 1, promise.least) > FAILURE  # twin: a rank too low promises more than it holds


def test_of_many_rows_a_rank_above_is_taken_and_the_promise_is_that_of_the_least():
    n_rows = 2_500
    ranks = kept_ranks(n_rows)
    assert (len(ranks), ranks[-1], bool(np.all(np.diff(ranks) > 0))) == (1_000, n_rows, True)
    scores = np.random.default_rng(0).random(n_rows)
    for coverage in (0.5, 0.9, 0.9995):
        exact = np.sort(scores)[int(np.ceil(coverage * (n_rows + 1))) - 1]
        limit = Limits.of(scores).limit(coverage)
        assert exact <= limit <= np.sort(scores)[min(int(np.ceil(coverage * (n_rows + 1))) + 1, n_rows - 1)] + 1e-8


@pytest.mark.parametrize("ties", [False, True])
def test_of_any_rows_at_least_the_share_is_within_the_limit_of_the_others(ties):
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


def test_too_few_rows_are_refused_with_the_number_that_would_do():
    for coverage, needed in ((0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999), (0.7, 3)):
        with pytest.raises(InvalidParameter, match=f"coverage={coverage} needs {needed} rows that calibrate sets, and"):
            promised(needed - 1, coverage)
        assert 0 < promised(needed, coverage).slack < coverage
    with pytest.raises(InvalidParameter, match=r"one in 2 does; calibrate with 198 .* a coverage of at most 0.98$"):
        promised(50, 0.99, of_each=2)
    for wrong in (0, 1, 1.5, "much"):
        with pytest.raises(InvalidParameter, match="coverage must be"):
            promised(50, wrong)  # type: ignore[arg-type]


def test_halves_are_told_by_places_alone_and_last_bits_move_no_class():
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
def test_it_is_the_one_under_which_labels_are_most_likely(seed, n_classes):
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


def test_a_class_that_the_model_never_saw_and_one_without_a_row_are_no_error():
    X, codes, model = task(1, 2)
    unseen = np.where(np.arange(len(codes)) < 5, 2, codes)
    seen = fit_temperature(model, X[5:], codes[5:], list("ab")).value
    assert fit_temperature(model, X, unseen, list("abc")).value == pytest.approx(seen, rel=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sure = fit_temperature(model, X, (model.predict(X) == "b").astype(np.int64), list("ab"))
    assert sure.value == pytest.approx(0.05, rel=1e-3)  # all rows are right, and certainty is not said all the same


def test_a_model_of_one_class_stays_as_it_is():
    X, codes, _ = task(0, 2)
    constant = DummyClassifier(strategy="constant", constant="a").fit(None, ["a"])
    require_calibration(constant, len(X), name="calibration")
    assert fit_temperature(constant, X, codes, list("ab")).value == 1.0
    np.testing.assert_array_equal(at_temperature(constant, 2.0).predict_proba(X), constant.predict_proba(X))


def test_too_few_rows_and_models_without_scores_are_refused():
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
