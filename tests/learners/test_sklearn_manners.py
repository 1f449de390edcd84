"""Learners among scikit-learn's tools: clones, folds and grids; labels of any kind; names of columns."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.tree import DecisionTreeClassifier
from tests.learners.test_private_learner import AROUND

from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter
from quorate.learners import (
    UNLABELLED,
    AgnosticPrediction,
    ExponentialLearner,
    GenericLearner,
    NoisyThreshold,
    SubSampling,
)
from quorate.learners.concepts import FiniteClass, Thresholds
from quorate.learners.sample import coded_labels
from quorate.learners.sanitizers import Tree
from quorate.ledger import Budget, Ledger


def trees() -> FiniteClass:
    """Three classifiers, fitted on public rows of one column."""
    X = np.arange(100.0)[:, None]
    fitted = [DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] < cut) for cut in (20, 50, 80)]
    return FiniteClass(fitted, n_features=1)


def rows(n=400):
    X = np.random.default_rng(0).integers(0, 100, (n, 1)).astype(float)
    return X, (X[:, 0] < 50).astype(int)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("around", AROUND)
def test_a_copy_of_a_learner_around_a_finite_class_and_a_base_fits(around):
    learner = around(base=ExponentialLearner(concepts=trees(), epsilon=1.0), epsilon=1.0, unsafe_noise_seed=0)
    copied = clone(learner)
    assert copied.base is not learner.base
    assert copied.fit(*rows()).score(*rows()) > 0.5
    named = clone(learner.set_params(concepts=learner.base.concepts))  # copies the class twice
    assert named.fit(*rows()).concept_ == copied.concept_


def test_another_class_than_the_bases_is_refused():
    base = ExponentialLearner(concepts=trees(), epsilon=1.0)
    fewer = FiniteClass(trees().classifiers[:2], n_features=1)
    around = SubSampling(concepts=base.concepts, base=base, epsilon=1.0)
    assert pickle.loads(pickle.dumps(around)).check(99)  # noqa: S301  our own; another process would do so
    assert around.concepts == base.concepts != fewer
    with pytest.raises(InvalidParameter, match="leave concepts out"):
        SubSampling(concepts=fewer, base=base, epsilon=1.0).fit(*rows())


@pytest.mark.heavy
def test_folds_and_grids():
    base = ExponentialLearner(concepts=trees(), epsilon=1.0, unsafe_noise_seed=0)
    assert cross_val_score(base, *rows(), cv=3).mean() > 0.9
    around = SubSampling(base=base, epsilon=1.0, unsafe_noise_seed=0)
    search = GridSearchCV(around, {"base__epsilon": [1.0, 2.0], "n_labels": [5, 60]}, cv=2, error_score="raise")
    assert search.fit(*rows()).best_score_ > 0.9
    assert search.best_estimator_.base.epsilon == search.best_params_["base__epsilon"]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (["no", "yes"], ["no", "yes", None]),
        ([False, True], [False, True, None]),
        ([1, 2], [1, 2, -1]),
        ([1, 2], [1.0, 2.0, float("nan")]),
        ([0, 1], [0, 1, UNLABELLED]),
        ([-1, 1], [-1, 1, None]),
        ([0, 1], ["0", "1", None]),
    ],
)
@pytest.mark.parametrize("container", [list, np.array, pd.Series, lambda y: pl.Series(y, strict=False)])
def test_labels_of_any_kind(classes, labels, container):
    if container is np.array and any(each is None for each in labels):
        labels = np.array(labels, dtype=object)
    assert coded_labels(container(labels), classes).tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("classes", "labels"),
    [(["no", "yes"], ["no", "maybe"]), ([1, 2], ["1", "3"]), (["no", "yes"], [["no"], ["yes"]]), ([0, 1], [0, 0.5])],
)
def test_other_labels_are_refused_and_not_shown(classes, labels):
    with pytest.raises(DataRefused) as refusal:
        coded_labels(np.array(labels), classes)
    assert "maybe" not in str(refusal.value)
    assert "0.5" not in str(refusal.value)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("classes", [["yes"], ["a", "b", "c"], "ab", [None, 1]])
def test_what_is_no_pair_of_classes_is_refused(classes):
    with pytest.raises(InvalidParameter, match="classes"):
        ExponentialLearner(concepts=trees(), epsilon=1.0, classes=classes).fit(*rows())


def test_named_labels_give_the_concept_of_zeros_and_ones_at_no_further_charge():
    X, y = rows()
    ledger = Ledger(budget=Budget(5.0, 0.0))
    plain = GenericLearner(concepts=Thresholds(7), sanitizer=Tree(), epsilon=1.0, ledger=ledger)
    few = np.where(np.arange(400) < 200, y, UNLABELLED)
    words = np.array([["no", "yes"][each] if each >= 0 else None for each in few.tolist()], dtype=object)
    named = clone(plain).set_params(classes=["no", "yes"], ledger=ledger).fit(X, words)
    assert named.classes_.tolist() == ["no", "yes"]
    assert named.score(X, np.array(["no", "yes"])[y]) > 0.9
    assert plain.fit(X, few).concept_ == named.concept_
    assert ledger.spent.epsilon == 1.0


@pytest.mark.heavy
def test_an_oracle_and_single_predictions_speak_the_same_words():
    X, y = rows(4_000)
    words = np.array(["no", "yes"])[y]
    base = NoisyThreshold(concepts=Thresholds(7), epsilon=1.0)
    asked = SubSampling(base=base, epsilon=1.0, n_labels=100, classes=["no", "yes"], unsafe_noise_seed=0)
    assert asked.fit(X, lambda indices: words[indices]).score(X, words) > 0.9
    single = AgnosticPrediction(concepts=Thresholds(7), epsilon=4.0, classes=["no", "yes"], unsafe_noise_seed=0)
    assert single.fit(X, words).ask([[0]]).tolist() == ["yes"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns_are_kept_and_held_against(frame):
    X, y = rows()
    learner = NoisyThreshold(concepts=Thresholds(7), epsilon=1.0, unsafe_noise_seed=0)
    learner.fit(frame({"age": X[:, 0]}), y)
    assert learner.feature_names_in_.tolist() == ["age"]
    assert (learner.predict(frame({"age": X[:, 0]})) == learner.predict(X)).all()
    with pytest.raises(DataRefused, match=r"columns .hours., and the learner was fitted on .age."):
        learner.predict(frame({"hours": X[:, 0]}))
    assert not hasattr(learner.fit(X, y), "feature_names_in_")


def test_an_exhausted_budget_is_told_in_a_learners_words():
    ledger = Ledger(budget=Budget(1.2, 0.0))
    learner = NoisyThreshold(concepts=Thresholds(7), epsilon=1.0, ledger=ledger).fit(*rows())
    with pytest.raises(BudgetExhausted) as refusal:
        learner.set_params(epsilon=0.5).fit(*rows())
    assert str(refusal.value).startswith("NoisyThreshold.fit costs ε=0.5, and the ledger has 0.2 left of 1.2; lower")
    assert (refusal.value.spent, refusal.value.requested, refusal.value.limit) == (1.0, 0.5, 1.2)
    assert "queries" not in str(refusal.value)
