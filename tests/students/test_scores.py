"""Scores are scikit-learn's, and a threshold does what it says on the public pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, get_scorer
from sklearn.svm import LinearSVC

from quorate.errors import InvalidParameter
from quorate.run.scores import _ranking
from quorate.students.decision_threshold import (
    check_decision_threshold,
    decides_from,
    require_probabilities,
    with_threshold,
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
def test_a_score_is_that_of_scikit_learn(scoring: str, rare_first: bool) -> None:
    X, y = table()
    labels = np.array(["a common", "b rare"])[y]  # the rare one is second for scikit-learn
    model = LogisticRegression().fit(X, labels)
    classes = ["b rare", "a common"] if rare_first else ["a common", "b rare"]
    codes = np.array([classes.index(label) for label in labels])
    value = ScoredRows.of(model, X, codes, classes).score(scoring)
    if scoring == "f1":
        from sklearn.metrics import f1_score

        expected = f1_score(labels, model.predict(X), pos_label="b rare")
    elif scoring == "average_precision":
        from sklearn.metrics import average_precision_score

        expected = average_precision_score(labels == "b rare", model.predict_proba(X)[:, 1])
    else:
        expected = abs(get_scorer(SCORERS.get(scoring, scoring))(model, X, labels))
    assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scoring", "scorer"), [("balanced_accuracy", "balanced_accuracy"), ("roc_auc", "roc_auc_ovr"), ("f1", "f1_macro")]
)
def test_a_score_of_several_classes_is_a_plain_mean_over_them(scoring: str, scorer: str) -> None:
    X, y = table(4)
    model = LogisticRegression(max_iter=1_000).fit(X, y)
    value = ScoredRows.of(model, X, y, [0, 1, 2, 3]).score(scoring)
    assert value == pytest.approx(get_scorer(scorer)(model, X, y), abs=1e-12)


def test_the_default_follows_from_public_shares() -> None:
    assert default_scoring([0.81, 0.19]) == "roc_auc"
    assert default_scoring([0.8, 0.2]) == "accuracy"
    assert default_scoring([0.5, 0.46, 0.04]) == "balanced_accuracy"
    assert default_scoring([0.5, 0.45, 0.05]) == "accuracy"
    assert default_scoring([1.0, 0.0]) == "accuracy"  # nothing can be said of a class without rows
    assert default_scoring(None) == "accuracy"


def test_what_needs_no_model_is_the_baseline() -> None:
    X, y = table()
    scored = ScoredRows.of(LogisticRegression().fit(X, y), X, y, [0, 1])
    assert scored.baseline("roc_auc") == 0.5
    assert scored.baseline("balanced_accuracy") == 0.5
    assert scored.baseline("average_precision") == pytest.approx(y.mean())
    assert scored.baseline("accuracy") == pytest.approx(1 - y.mean())


def test_no_score_of_a_perfect_model_passes_one_by_its_last_bit() -> None:
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


def test_a_model_without_probabilities_has_no_ranking() -> None:
    X, y = table()
    scored = ScoredRows.of(LinearSVC().fit(X, y), X, y, [0, 1])
    assert scored.score("roc_auc") is None
    assert scored.interval("roc_auc") is None
    assert scored.score("balanced_accuracy") is not None


def test_declared_shares_are_checked() -> None:
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


# --- thresholds ------------------------------------------------------------------------------------------------------


def test_balanced_is_the_mean_probability_of_the_pool() -> None:
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
def test_share_flags_as_many_rows_of_the_pool_as_were_declared(classes: list[Any], rare: Any) -> None:
    X, y = table()
    common = next(name for name in classes if name != rare)
    model = LogisticRegression().fit(X, np.array([common, rare])[y])
    shares = check_class_shares({rare: 0.04}, classes)
    moved = with_threshold(model, "share", classes=classes, shares=shares, pool=X)
    assert np.sum(moved.predict(X) == rare) == round(0.04 * len(X))


def test_accuracy_and_a_constant_move_nothing() -> None:
    X, y = table()
    model = LogisticRegression().fit(X, y)
    assert with_threshold(model, "accuracy", classes=[0, 1], shares=None, pool=X) is model
    for constant in (
        DummyClassifier(strategy="constant", constant=0).fit(X, np.zeros(len(X), dtype=int)),
        DummyClassifier(strategy="prior").fit(X, y),
    ):
        assert with_threshold(constant, "balanced", classes=[0, 1], shares=None, pool=X) is constant


def test_what_no_threshold_can_be_made_of_is_refused_in_a_line() -> None:
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
def test_from_the_threshold_of_costs_on_calling_the_rarer_class_costs_less(costs: tuple[float, float]) -> None:
    missed, wrong = costs
    given: Any = {"false_negative": missed, "false_positive": wrong}
    threshold = check_decision_threshold(given, ["no", "yes"], None)
    assert isinstance(threshold, float)
    for probability in np.linspace(0.001, 0.999, 400):  # what each of the two predictions costs on average
        of_calling, of_not = (1 - probability) * wrong, probability * missed
        assert (of_calling <= of_not) == (probability >= threshold) or abs(of_calling - of_not) < 1e-12
