"""A row on which voters fail takes no vote on another row, and a voter without scores moves its own column alone."""

import sys
import warnings

import cloudpickle
import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.ensemble.voters import misbehave

from quorate.ensemble import (
    AbstainingVoter,
    ClassifierTeacher,
    ClassifierVoter,
    ConstantVoter,
    Ensemble,
    count_votes,
    gather_scores,
)
from quorate.ensemble.ensemble import largest_number
from quorate.ensemble.teachers.function import FunctionVoter
from quorate.ensemble.teachers.prior_matching import MatchedVoter
from quorate.ensemble.teachers.teacher import by_halves
from quorate.ensemble.votes import votes_of_prompt
from quorate.errors import InvalidParameter
from quorate.types import Secret

POISON = 1e39  # finite, and beyond a 32-bit float


def rows(n=40):
    return np.random.default_rng(3).normal(size=(n, 2))


def fitted(estimator=None):
    X = rows()
    return (DecisionTreeClassifier(random_state=0) if estimator is None else estimator).fit(
        X, (X[:, 0] > 0).astype(int)
    )


class Picky:
    """A voter of a user's own: fails on a poisoned row, in one way or another."""

    keeps_no_global_state = True

    def __init__(self, how):
        self.how = how

    def vote(self, X):
        bad = (np.asarray(X) == POISON).any(axis=1)
        if bad.any() and self.how == "raises":
            raise ValueError(f"{X}")
        votes = (np.asarray(X)[:, 0] > 0).astype(np.int64)
        return votes[~bad] if self.how == "another length" else votes.astype(float if bad.any() else int)


VOTERS = {
    "tree": lambda: ClassifierVoter(fitted(), np.array([0, 1])),
    "forest": lambda: ClassifierVoter(fitted(RandomForestClassifier(3, random_state=0)), np.array([0, 1])),
    "matched": lambda: MatchedVoter(fitted(), np.array([0, 1]), 0.5),
    "function": lambda: FunctionVoter(lambda X: Picky("raises").vote(X), (), {}, None),
    "another length": lambda: Picky("another length"),
    "another type": lambda: Picky("another type"),
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("kind", VOTERS)
def test_a_row_that_fails_takes_no_vote_on_another_row_and_has_none_itself(kind):
    voters = Ensemble(Secret((VOTERS[kind](), ConstantVoter(1), AbstainingVoter())), n_classes=2)
    X = rows(7)
    alone = count_votes(voters, X).reveal()
    for at in (0, 3, 7):
        counts = count_votes(voters, np.insert(X, at, POISON, axis=0)).reveal()
        assert np.delete(counts, at, axis=0).tolist() == alone.tolist()
        assert counts[at].tolist() == [0, 1]  # the one that fails abstains; nobody else does
        assert counts.sum(axis=1).max() <= 2  # one teacher, one vote


@pytest.mark.heavy
def test_scores_are_asked_row_by_row_too():
    voter = ClassifierVoter(fitted(), np.array([0, 1]))
    X = rows(7)
    scores = gather_scores(Ensemble(Secret((voter,)), n_classes=2), X).reveal()
    poisoned = gather_scores(Ensemble(Secret((voter,)), n_classes=2), np.insert(X, 2, POISON, axis=0)).reveal()
    assert np.delete(poisoned, 2, axis=0).tolist() == scores.tolist()


def test_a_prompt_is_asked_row_by_row_too():
    X = rows(5)
    votes = votes_of_prompt(Picky("raises"), np.insert(X, 4, POISON, axis=0), 2)
    assert votes.tolist() == [*Picky("raises").vote(X[:4]).tolist(), -1, *Picky("raises").vote(X[4:]).tolist()]


def test_memory_that_ends_is_not_a_failure_on_a_row():
    with pytest.raises(MemoryError):
        by_halves(lambda X: (_ for _ in ()).throw(MemoryError), rows(4), np.zeros)


def test_a_few_bad_rows_cost_a_few_calls():
    calls = []

    def answer(X):
        calls.append(len(X))
        return Picky("raises").vote(X)

    X = np.insert(rows(1_023), 500, POISON, axis=0)
    assert by_halves(answer, X, lambda n: np.full(n, -1))[500] == -1
    assert len(calls) <= 2 * 10 + 1


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("model", "holds"),
    [
        (DecisionTreeClassifier(), False),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), False),
        (BaggingClassifier(), False),
        (AdaBoostClassifier(), False),
        (BaggingClassifier(LogisticRegression()), True),
        (LogisticRegression(), True),
        (ClassifierTeacher(DecisionTreeClassifier()), False),
        (lambda X: X, True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_largest_number_is_a_rule_of_the_declared_kind(model, holds):
    assert (largest_number(model) == np.inf) is holds
    if not holds and hasattr(model, "fit"):
        X = rows()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, (X[:, 0] > 0).astype(int))
            within, beyond = X[:1].copy(), X[:1].copy()
            within[0, 1], beyond[0, 1] = np.finfo(np.float32).max, 1e39
            assert len(model.predict(within)) == 1
            if not hasattr(model, "steps"):
                with pytest.raises(ValueError, match=r"[Ii]nf"):
                    model.predict(beyond)


cloudpickle.register_pickle_by_value(sys.modules[__name__])

RNG = np.random.default_rng(12)
X = RNG.normal(size=(31, 3))
Y = (X[:, 0] > 0).astype(np.int64)


class Told(ClassifierMixin, BaseEstimator):
    def __init__(self, told=None):
        self.told = told

    def predict(self, X):
        return np.zeros(len(X), dtype=np.int64)

    def predict_proba(self, X):
        return self.told


class Does(Told):
    def predict_proba(self, X):
        misbehave(self.told)


class Drawn(Told):
    """Draws from the global generator, as a careless teacher does."""

    def predict_proba(self, X):
        p = np.random.rand(len(X))  # noqa: NPY002
        return np.column_stack([1 - p, p])


def voter(estimator, codes=(0, 1)):
    return ClassifierVoter(estimator, np.array(codes, dtype=np.int64))


def ensemble(*voters, n_classes=2):
    return Ensemble(Secret(tuple(voters)), n_classes=n_classes)


def scores(*voters, rows=X, **how):
    return gather_scores(ensemble(*voters), rows, **how).reveal()


THREE = [
    voter(LogisticRegression().fit(X, Y)),
    voter(GaussianNB().fit(X, RNG.integers(0, 2, 31))),
    voter(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)),
]


@pytest.mark.heavy
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_are_the_voters_own_probabilities_of_class_one(n_jobs):
    secret = gather_scores(ensemble(*THREE), X, n_jobs=n_jobs)
    assert repr(secret) == "Secret(…)"
    expected = np.column_stack([each.estimator.predict_proba(X)[:, 1] for each in THREE])
    assert secret.reveal().shape == (31, 3)
    np.testing.assert_array_equal(secret.reveal(), expected)


@pytest.mark.heavy
def test_a_frame_reaches_the_voters_as_a_frame():
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, Y)
    np.testing.assert_array_equal(scores(voter(pipeline), rows=frame)[:, 0], pipeline.predict_proba(frame)[:, 1])


def test_constants_are_sure_and_abstainers_tell_nothing():
    found = scores(ConstantVoter(1), AbstainingVoter(), ConstantVoter(0))
    np.testing.assert_array_equal(found, np.tile([1.0, np.nan, 0.0], (31, 1)))


@pytest.mark.heavy
def test_the_column_of_class_one_is_found_by_its_code():
    """A shard may know its classes in another order, or lack one."""
    swapped = voter(LogisticRegression().fit(X, Y), (1, 0))
    np.testing.assert_array_equal(scores(swapped)[:, 0], swapped.estimator.predict_proba(X)[:, 0])
    alone = np.tile([0.3], (31, 1))
    np.testing.assert_array_equal(scores(voter(Told(alone), (1,)))[:, 0], 0.3)
    assert np.isnan(scores(voter(Told(alone), (0,)))).all()  # it never saw class 1, and says nothing about it


@pytest.mark.heavy
@pytest.mark.parametrize(("way", "n_jobs"), [("raise", 1), ("exit", 1), ("killed", 1), ("killed", 2)])
def test_a_voter_that_fails_abstains_and_takes_nobody_with_it(way, n_jobs):
    found = scores(THREE[0], voter(Does(way)), THREE[1], n_jobs=n_jobs)
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[:, [0, 2]], scores(THREE[0], THREE[1]))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "told",
    [None, "a row", np.ones(31), np.ones((31, 3)), np.ones((30, 2)), np.array([["a", "b"]] * 31)],
    ids=["nothing", "text", "one dimension", "three columns", "a row less", "words"],
)
def test_what_is_no_table_of_probabilities_is_an_abstention(told):
    assert np.isnan(scores(voter(Told(told)))).all()


def test_a_classifier_without_probabilities_abstains():
    assert np.isnan(scores(voter(RidgeClassifier().fit(X, Y)))).all()


def test_scores_stay_between_zero_and_one_and_nan_is_an_abstention_for_that_query_alone():
    wild = np.column_stack([np.zeros(31), np.resize([-3.0, 0.5, 7.0, np.nan, np.inf, -np.inf], 31)])
    found = scores(voter(Told(wild)))[:, 0]
    np.testing.assert_array_equal(found, np.resize([0.0, 0.5, 1.0, np.nan, np.nan, np.nan], 31))


def test_one_voters_draws_do_not_move_anothers_scores():
    first, second = scores(voter(Drawn()), voter(Drawn())).T
    np.testing.assert_array_equal(first, second)  # each begins from the same state
    np.testing.assert_array_equal(scores(voter(Drawn()))[:, 0], first)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("changed", [ConstantVoter(0), AbstainingVoter(), voter(Does("killed")), THREE[2]])
def test_one_changed_teacher_changes_one_column(changed):
    before = scores(*THREE)
    after = scores(THREE[0], changed, THREE[2])
    np.testing.assert_array_equal(before[:, [0, 2]], after[:, [0, 2]])


@pytest.mark.parametrize("n_classes", [3, 10])
def test_more_than_two_classes_are_refused(n_classes):
    with pytest.raises(InvalidParameter, match=f"scores of the second of two classes, got {n_classes}"):
        gather_scores(ensemble(ConstantVoter(1), n_classes=n_classes), X)


@pytest.mark.parametrize("n_jobs", [0, True, 1.5])
def test_jobs_must_be_a_whole_number(n_jobs):
    with pytest.raises(InvalidParameter, match="n_jobs"):
        gather_scores(ensemble(ConstantVoter(1)), X, n_jobs=n_jobs)


def test_progress_does_not_tell_how_many_voters_had_to_be_asked():
    told = []
    for voters in ([*THREE, ConstantVoter(1)], [THREE[0], *[ConstantVoter(1)] * 3]):
        scores(*voters, progress=lambda done, total: told.append((done, total)))
    assert told == [(4, 4), (4, 4)]
