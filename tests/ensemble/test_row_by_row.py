"""A row on which teachers fail takes no vote on another row: nobody who waits spoils another one's answers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.ensemble import AbstainingVoter, ConstantVoter, Ensemble, count_votes
from quorate.ensemble.ensemble import largest_number
from quorate.ensemble.teachers.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.teachers.function import FunctionVoter
from quorate.ensemble.teachers.prior_matching import MatchedVoter
from quorate.ensemble.teachers.teacher import by_halves
from quorate.ensemble.votes import gather_scores, votes_of_prompt
from quorate.types import Secret

POISON = 1e39  # finite, and beyond a 32-bit float


def rows(n=40, width=2):
    return np.random.default_rng(3).normal(size=(n, width))


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


def boosted():
    from sklearn.ensemble import AdaBoostClassifier

    return AdaBoostClassifier()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("model", "holds"),
    [
        (DecisionTreeClassifier(), False),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), False),
        (BaggingClassifier(), False),
        (boosted(), False),
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
