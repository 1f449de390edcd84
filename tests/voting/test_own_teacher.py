"""A teacher that is no estimator: it trains on a shard and votes in its own way."""

from dataclasses import dataclass

import numpy as np
import pytest

from quorate import LabelPrivateClassifier, PrivateClassifier, PublicPool
from quorate.ensemble import ABSTAINED
from quorate.errors import InvalidParameter
from quorate.findings import Outcome


@dataclass(frozen=True)
class Centroids:
    """The mean of each class in the shard."""

    means: np.ndarray
    codes: np.ndarray

    def vote(self, X):
        if not len(self.codes):
            return np.full(len(X), ABSTAINED)
        return self.codes[((np.asarray(X)[:, None, :] - self.means) ** 2).sum(axis=2).argmin(axis=1)]


@dataclass(frozen=True)
class NearestMean:
    """Has ``train`` alone: no ``fit``, no ``predict``, no tags of scikit-learn."""

    def train(self, X, y, seed):
        codes = np.unique(y)
        return Centroids(np.array([np.asarray(X)[y == code].mean(axis=0) for code in codes]), codes)


@dataclass(frozen=True)
class OutOfRange:
    def train(self, X, y, seed):
        return Centroids(np.zeros((1, X.shape[1])), np.array([7]))


class PlainClassifier:
    """``fit`` and ``predict``, and nothing else that scikit-learn has."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def get_params(self, deep=True):
        return {"shift": self.shift}

    def set_params(self, **params):
        vars(self).update(params)
        return self

    def fit(self, X, y):
        self.voter_ = NearestMean().train(np.asarray(X), y, 0)
        return self

    def predict(self, X):
        return self.voter_.vote(np.asarray(X) + self.shift)


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).normal(size=(1_500, 4))
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("estimator", "teacher"),
    [(PrivateClassifier, PlainClassifier()), (LabelPrivateClassifier, NearestMean())],
    ids=["plain class", "Teacher"],
)
def test_it_is_taken_wherever_an_estimator_is(table, teacher, estimator):
    X, y = table
    pool = {"public": PublicPool(X[800:1_000])} if estimator is PrivateClassifier else {}
    clf = estimator(teacher=teacher, classes=[0, 1], epsilon=8.0, delta=1e-5, n_teachers=24, unsafe_noise_seed=0)
    clf.fit(X[:800], y[:800], **pool)
    assert clf.score(X[1_000:], y[1_000:]) > 0.75
    facts = clf.facts() if estimator is PrivateClassifier else clf._facts
    assert facts.setup.teacher == type(teacher).__name__
    (unfitted,) = (check for check in facts.checks if check.code == "preprocessing")
    assert (unfitted.outcome is Outcome.NOT_COVERED) == isinstance(teacher, NearestMean)


def test_one_that_votes_for_no_class_is_found_on_public_rows(table):
    with pytest.raises(InvalidParameter, match="OutOfRange fails on the public rows"):
        fitted(table, OutOfRange())


def test_it_has_no_scores_to_match_priors_with(table):
    with pytest.raises(InvalidParameter, match="fit"):
        fitted(table, NearestMean(), prior_matching=True)


def fitted(table, teacher, **how):
    X, y = table
    clf = PrivateClassifier(teacher=teacher, classes=[0, 1], epsilon=4.0, delta=1e-5, n_teachers=60, **how)
    return clf.fit(X[:800], y[:800], public=PublicPool(X[800:1_000]))
