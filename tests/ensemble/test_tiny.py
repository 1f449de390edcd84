"""Tiny teachers: what each is, by definition, and that no shard touches another."""

import numpy as np
import pytest
from tests.ensemble.voters import KEY, shards_of

from quorate.ensemble import (
    AbstainingVoter,
    ConstantVoter,
    Ensemble,
    PriorMatchingTeacher,
    count_votes,
    dump_voters,
    load_voters,
    train_teachers,
)
from quorate.ensemble.linear.tiny import DITHER, TinyTeacher
from quorate.types import Secret

N, D, K = 240, 40, 60


def rows(n: int = N, seed: int = 0) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, D))
    return X / np.linalg.norm(X, axis=1)[:, None]


def test_two_classes_are_a_ridge_regression_of_signs_without_an_intercept():
    X, y = rows(7), np.array([0, 1, 1, 0, 1, 0, 0])
    model = TinyTeacher(0.3, 2).train(X, y, 0).estimator
    normal = np.linalg.solve(X.T @ X + 0.3 * np.eye(D), X.T @ (2.0 * y - 1))  # in columns; it is solved in rows
    np.testing.assert_allclose(model.coef_[0], normal, rtol=1e-9)
    assert model.intercept_.tolist() == [0.0]


def test_more_classes_are_sums_with_one_constant_a_class_that_the_teacher_draws():
    X, y = rows(5), np.array([3, 0, 3, 1, 0])
    model = TinyTeacher(0.3, 4).train(X, y, 17).estimator
    np.testing.assert_allclose(model.coef_, [X[y == code].sum(axis=0) for code in range(4)], atol=1e-12)
    typical = np.sqrt(np.mean(model.coef_**2))
    drawn = np.random.default_rng(17).gumbel(size=4)
    np.testing.assert_allclose(model.intercept_, DITHER * typical * drawn)
    others = TinyTeacher(0.3, 4).train(X, y, 18).estimator
    assert (others.coef_ == model.coef_).all() and (others.intercept_ != model.intercept_).all()  # noqa: PT018


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_shard_of_one_class_votes_by_its_rows_and_an_empty_one_abstains(n_classes):
    teacher, X = TinyTeacher(0.1, n_classes), rows(3)
    voter = teacher.train(X, np.ones(3, dtype=np.int64), 0)
    assert len(np.unique(voter.vote(rows(200, seed=1)))) > 1
    assert teacher.train(X[:0], np.zeros(0, dtype=np.int64), 0) == AbstainingVoter()


HOSTILE = {
    "huge": lambda X, mine: X.__setitem__(mine, 1e300),
    "not finite": lambda X, mine: X.__setitem__(mine, np.nan),
    "all alike": lambda X, mine: X.__setitem__(mine, X[0]),
    "zero": lambda X, mine: X.__setitem__(mine, 0.0),
}


def attacked(hostile, n_classes, teacher_of=lambda X, n_classes: TinyTeacher(0.05, n_classes)):
    """Return which teachers one shard moved beside its own, and the moves of votes, ``(n_queries, n_classes)``."""
    X, queries = rows(), rows(50, seed=1)
    y = np.random.default_rng(2).integers(n_classes, size=N)
    shards = shards_of(N, K)
    other_X, other_y = X.copy(), y.copy()
    mine = np.flatnonzero(shards.reveal() == shards.reveal()[0])
    HOSTILE[hostile](other_X, mine)
    other_y[mine] = n_classes - 1
    how = {"n_teachers": K, "n_classes": n_classes, "key": KEY}
    ensembles = [
        train_teachers(teacher_of(each, n_classes), each, labels, shards, **how)
        for each, labels in ((X, y), (other_X, other_y))
    ]
    pairs = zip(*(each.voters.reveal() for each in ensembles), strict=True)
    bits = [
        [b"" if isinstance(each, AbstainingVoter) else each.estimator.coef_.tobytes() for each in pair]
        for pair in pairs
    ]
    counts = [count_votes(each, queries).reveal() for each in ensembles]
    moved = {number for number, (before, after) in enumerate(bits) if before != after}
    return moved - {shards.reveal()[0]}, np.abs(counts[0] - counts[1])


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_one_shard_moves_no_bit_of_another_teacher_and_one_vote_a_query(n_classes, hostile):
    others, moves = attacked(hostile, n_classes)
    assert others == set()
    assert moves.max() <= 1
    assert moves.sum(axis=1).max() <= 2


def test_a_penalty_that_all_rows_share_is_found():
    others, _ = attacked("zero", 2, lambda X, n_classes: TinyTeacher(0.05 * float(np.abs(X).mean()), n_classes))
    assert others


@pytest.mark.parametrize("n_classes", [2, 4])
def test_they_are_counted_as_they_vote_and_come_back_from_a_file(n_classes):
    X, y, queries = rows(), np.arange(N) % n_classes, rows(80, seed=3)
    how = {"n_teachers": K, "n_classes": n_classes, "key": KEY}
    ensemble = train_teachers(TinyTeacher(0.05, n_classes), X, y, shards_of(N, K), **how)
    voters = ensemble.voters.reveal()
    one_by_one = np.zeros((80, n_classes), dtype=np.int64)
    for voter in voters:
        codes = voter.vote(queries)
        one_by_one[np.flatnonzero(codes >= 0), codes[codes >= 0]] += 1
    assert (count_votes(ensemble, queries).reveal() == one_by_one).all()
    again = Ensemble(load_voters(dump_voters(Secret(voters)).reveal()), n_classes)
    assert (count_votes(again, queries).reveal() == one_by_one).all()


def test_prior_matching_moves_the_threshold_to_the_base_rate_of_the_shard():
    pool, X, y = rows(100, seed=4), rows(5), np.array([0, 0, 0, 0, 1])
    matching = PriorMatchingTeacher(TinyTeacher(0.1, 2), pool)
    assert matching.train(X, y, 0).vote(pool).sum() == 20
    assert matching.train(X, np.zeros(5, dtype=np.int64), 0) == ConstantVoter(0)
    assert matching.train(X, np.ones(5, dtype=np.int64), 0) == ConstantVoter(1)
