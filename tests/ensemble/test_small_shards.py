"""Teachers of small shards, prior matching and tiny teachers: what each cures or is, and that a unit changes one."""

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
    dump_voters,
    load_voters,
    train_teachers,
)
from quorate.ensemble.linear.tiny import DITHER, TinyRegressor, TinyTeacher, places_of
from quorate.ensemble.teachers.prior_matching import matching_threshold
from quorate.errors import InvalidParameter
from quorate.types import Secret


def rare_class(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sixty weak indicators, one row in eight positive: what a strongly regularised teacher of 30 rows gives up on."""
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n) < 0.125).astype(np.int64)
    X = (rng.uniform(size=(n, 60)) < np.where(y[:, None] == 1, 0.65, 0.35)).astype(float)
    return X, y


def trained(teacher: object, X: np.ndarray, y: np.ndarray, n_teachers: int, n_classes: int = 2) -> Ensemble:
    how = {"n_teachers": n_teachers, "n_classes": n_classes, "key": KEY}
    return train_teachers(teacher, X, y, shards_of(len(y), n_teachers), **how)


@pytest.mark.heavy
def test_it_cures_the_collapse_onto_the_larger_class():
    """Unequal classes, small shards, strong regularisation: everyone votes the larger class, whatever is asked."""
    X, y = rare_class(6_000, 0)
    asked, truth = rare_class(800, 1)
    plain = ClassifierTeacher(LogisticRegression(C=1e-3))
    collapsed = count_votes(trained(plain, X, y, 200), asked).reveal()
    assert (collapsed.argmax(axis=1) == 0).all()
    assert (collapsed[:, 0] >= 195).mean() > 0.99  # no noise, however small, would find the positives

    matched = count_votes(trained(PriorMatchingTeacher(plain, asked), X, y, 200), asked).reveal()
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
    ensembles = [
        trained(teacher_of(each, n_classes), each, labels, K, n_classes)
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
    ensemble = trained(TinyTeacher(0.05, n_classes), X, y, K, n_classes)
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


def test_a_regressor_votes_for_the_place_of_its_number_and_for_none_where_that_is_no_number():
    assert places_of(np.array([-7.0, 0.0, 0.5, np.inf, np.nan]), 100).tolist() == [0, 100, 150, -1, -1]
    voter = TinyRegressor(penalty=1.0, grid=100, gain=2.0).train(np.eye(2), np.array([200, 100]), 0)
    assert voter.vote(np.array([[1.0, 0.0], [0.0, 1.0], [np.nan, 0.0]])).tolist() == [150, 100, -1]
