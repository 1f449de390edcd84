"""Prior matching: what it cures, what it leaves alone, and that one unit still changes one teacher."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import NearestCentroid
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.voters import KEY, shards_of

from quorate.audit import audit_shards
from quorate.ensemble import (
    AbstainingVoter,
    ClassifierTeacher,
    ConstantVoter,
    Ensemble,
    PriorMatchingTeacher,
    count_votes,
    train_teachers,
)
from quorate.ensemble.teachers.prior_matching import matching_threshold
from quorate.errors import InvalidParameter


def rare_class(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sixty weak indicators, one row in eight positive: what a strongly regularised teacher of 30 rows gives up on."""
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n) < 0.125).astype(np.int64)
    X = (rng.uniform(size=(n, 60)) < np.where(y[:, None] == 1, 0.65, 0.35)).astype(float)
    return X, y


def trained(teacher: object, X: np.ndarray, y: np.ndarray, n_teachers: int) -> Ensemble:
    how = {"n_teachers": n_teachers, "n_classes": 2, "key": KEY}
    return train_teachers(teacher, X, y, shards_of(len(y), n_teachers), **how)


def votes_of(teacher: object, X: np.ndarray, y: np.ndarray, asked: np.ndarray, n_teachers: int) -> np.ndarray:
    ensemble = trained(teacher, X, y, n_teachers)
    return count_votes(ensemble, asked).reveal()


@pytest.mark.heavy
def test_it_cures_the_collapse_onto_the_larger_class():
    """Unequal classes, small shards, strong regularisation: everyone votes the larger class, whatever is asked."""
    X, y = rare_class(6_000, 0)
    asked, truth = rare_class(800, 1)
    plain = ClassifierTeacher(LogisticRegression(C=1e-3))
    collapsed = votes_of(plain, X, y, asked, 200)
    assert (collapsed.argmax(axis=1) == 0).all()
    assert (collapsed[:, 0] >= 195).mean() > 0.99  # no noise, however small, would find the positives

    matched = votes_of(PriorMatchingTeacher(plain, asked), X, y, asked, 200)
    recall = [np.mean(matched.argmax(axis=1)[truth == each] == each) for each in (0, 1)]
    assert min(recall) > 0.85


def test_a_teacher_votes_for_class_1_as_often_as_its_shard_holds_it():
    X, y = rare_class(64, 2)
    pool, _ = rare_class(400, 3)
    for rate in (0.25, 0.5):
        y[: int(64 * rate)], y[int(64 * rate) :] = 1, 0
        X[y == 1, 0], X[y == 0, 0] = 1.0, 0.0
        X += np.random.default_rng(4).normal(scale=1e-6, size=X.shape)  # so that no two scores are equal
        noisy = pool + np.random.default_rng(5).normal(scale=1e-6, size=pool.shape)
        voter = PriorMatchingTeacher(ClassifierTeacher(LogisticRegression()), noisy).train(X, y, 0)
        assert voter.vote(noisy).sum() == round(rate * 400)


def test_the_threshold_is_the_one_that_counting_finds():
    rng = np.random.default_rng(6)
    for _ in range(200):
        scores = rng.integers(0, 12, size=rng.integers(1, 9)) / 4.0
        rate = rng.uniform()
        threshold = matching_threshold(scores, rate)
        wanted, found = round(rate * len(scores)), int((scores > threshold).sum())
        assert found <= wanted
        if len(set(scores.tolist())) == len(scores):
            assert found == wanted
        above = [value for value in scores if value > threshold]
        assert found == wanted or (scores == threshold).sum() + len(above) > wanted  # a tie, all of which stays below


def test_neighbouring_floats_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2.0)
    assert (np.array([low, high]) > matching_threshold(np.array([low, high]), 0.5)).tolist() == [False, True]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("estimator", [LogisticRegression(), Perceptron(), BernoulliNB(), DecisionTreeClassifier()])
def test_scores_come_from_either_method(estimator):
    X, y = rare_class(200, 7)
    voter = PriorMatchingTeacher(ClassifierTeacher(estimator), X).train(X, y, 0)
    assert set(voter.vote(X).tolist()) == {0, 1}


def test_a_shard_of_one_class_votes_for_it_and_an_empty_one_abstains():
    X, y = rare_class(20, 8)
    teacher = PriorMatchingTeacher(ClassifierTeacher(LogisticRegression()), X)
    assert isinstance(teacher.train(X, np.ones_like(y), 0), ConstantVoter)
    assert isinstance(teacher.train(X[:0], y[:0], 0), AbstainingVoter)


def test_a_teacher_without_scores_is_refused_before_anything_is_fitted():
    with pytest.raises(InvalidParameter, match="NearestCentroid"):
        PriorMatchingTeacher(ClassifierTeacher(_NoScores(NearestCentroid())), np.zeros((1, 1)))
    with pytest.raises(InvalidParameter, match="at least one"):
        PriorMatchingTeacher(ClassifierTeacher(LogisticRegression()), np.zeros((0, 2)))


class _NoScores:
    """As its classifier, without scores."""

    def __new__(cls, classifier):
        class NearestCentroid(type(classifier)):
            decision_function = predict_proba = None

            def __getattribute__(self, name):
                if name in {"decision_function", "predict_proba"}:
                    raise AttributeError(name)
                return super().__getattribute__(name)

        return NearestCentroid()


@pytest.mark.heavy
def test_one_changed_unit_still_changes_one_teacher():
    X, y = rare_class(240, 11)
    pool, _ = rare_class(60, 12)
    teacher = PriorMatchingTeacher(ClassifierTeacher(LogisticRegression()), pool)
    found = audit_shards(teacher, X, y, None, classes=[0, 1], n_teachers=8, units=6, seed=0)
    assert not found.violated
    assert found.worst == 1


@pytest.mark.heavy
def test_a_threshold_from_the_base_rate_of_all_rows_is_caught():
    """The cheat: every teacher matches the base rate of the whole table, which one unit moves for all of them."""

    class Pooled:
        keeps_no_global_state = True

        def __init__(self, classifier, pool, labels):
            self._matching = PriorMatchingTeacher(classifier, pool)
            self._labels = labels

        def train(self, X, y, seed, /):
            voter = self._matching.train(X, y, seed)
            if not hasattr(voter, "threshold"):
                return voter
            scores = voter.estimator.decision_function(self._matching.pool)
            return type(voter)(voter.estimator, voter.codes, matching_threshold(scores, float(self._labels.mean())))

    X, y = rare_class(240, 13)
    pool = np.random.default_rng(14).normal(size=(400, 60))
    voters = []
    for labels in (y, np.where(np.arange(240) == 0, 1 - y, y)):
        teacher = Pooled(ClassifierTeacher(LogisticRegression()), pool, labels)
        voters.append([voter.vote(pool) for voter in trained(teacher, X, labels, 8).voters.reveal()])
    assert sum((a != b).any() for a, b in zip(*voters, strict=True)) > 1


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("shape", ["a column", "two columns", "a number", "too few", "raised"])
def test_a_teacher_whose_scores_fail_or_are_no_column_abstains_whatever_its_shard_holds(shape):
    class Shaped(LogisticRegression):
        def decision_function(self, X):
            if shape == "raised":
                raise ValueError(X)
            scores = super().decision_function(X)
            ways = {"a column": scores[:, None], "two columns": np.column_stack([scores, scores])}
            return {**ways, "a number": scores.sum(), "too few": scores[1:]}[shape]

    X, y = rare_class(40, 15)
    y[:2] = 0, 1
    teacher = PriorMatchingTeacher(ClassifierTeacher(Shaped()), X)
    for labels in (y, 1 - y, (np.arange(40) < 20).astype(int)):
        assert isinstance(teacher.train(X, labels, 0), AbstainingVoter)
