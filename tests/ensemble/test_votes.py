"""Counts: those of the voters' own predictions, whatever the blocks, the jobs and the shortcuts are."""

import os
import random
import sys
import warnings

import cloudpickle
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from tests.ensemble.voters import misbehave

from quorate.data.rows import is_plain_float_matrix
from quorate.ensemble import AbstainingVoter, ClassifierTeacher, ClassifierVoter, ConstantVoter, Ensemble, count_votes
from quorate.ensemble import votes as votes_module
from quorate.ensemble.linear.voters import LinearVoters, votes_of_linear
from quorate.errors import InvalidParameter
from quorate.types import Secret

cloudpickle.register_pickle_by_value(sys.modules[__name__])

RNG = np.random.default_rng(11)
X = RNG.normal(size=(53, 4))


def ensemble(*voters, n_classes=3):
    return Ensemble(Secret(tuple(voters)), n_classes=n_classes)


def slow_counts(voters, X, n_classes=3):
    counts = np.zeros((X.shape[0], n_classes), dtype=np.int64)
    for voter in voters:
        for row, code in enumerate(voter.vote(X)):
            if code >= 0:
                counts[row, code] += 1
    return counts


def fitted(model, codes, rng, X=X):
    while True:
        y = rng.integers(0, len(codes), size=X.shape[0])
        if len(set(y)) == len(codes):
            return ClassifierVoter(model.fit(X, y), np.array(codes))


def linear_voters(rng, n=3):
    models = [
        lambda: LogisticRegression(),
        lambda: LogisticRegression(fit_intercept=False),
        lambda: SGDClassifier(random_state=0),
        lambda: Perceptron(random_state=0),
        lambda: RidgeClassifier(),
        lambda: LinearSVC(random_state=0, max_iter=10_000),
        lambda: LinearSVC(fit_intercept=False, random_state=0, max_iter=10_000),
    ]
    codes = [(0, 1), (1, 2), (0, 1, 2)]
    return [fitted(make(), which, rng) for make in models for which in codes for _ in range(n)]


LINEAR = linear_voters(RNG, n=2)
OTHERS = [fitted(GaussianNB(), (0, 1, 2), RNG), ConstantVoter(2), AbstainingVoter(), fitted(GaussianNB(), (0, 2), RNG)]


@pytest.mark.heavy
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("block", [20, 1000])
def test_counts_are_those_of_the_voters_one_by_one(n_jobs, block):
    voters = [*LINEAR, *OTHERS]
    counts = count_votes(ensemble(*voters), X, block=block, n_jobs=n_jobs)

    assert repr(counts) == "Secret(…)"
    assert counts.reveal().dtype == np.int64
    assert (counts.reveal() == slow_counts(voters, X)).all()


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_counts_over_sparse_rows_are_the_same(container):
    assert (count_votes(ensemble(*LINEAR), container(X)).reveal() == slow_counts(LINEAR, X)).all()


@pytest.mark.heavy
def test_frames_reach_the_voters_as_frames():
    voters = [OnlyFrames()]
    counts = count_votes(ensemble(*voters), pl.DataFrame(X), block=20).reveal()

    assert counts.tolist() == [[0, 1, 0]] * 53


class OnlyFrames:
    def vote(self, X):
        return np.ones(X.height, dtype=np.int64)


def linear_counts(voters, points, counts):
    return LinearVoters.of(voters, points.shape[1], counts.shape[1]).count(points, counts)


def test_linear_voters_are_stacked_once_and_a_large_stack_is_not_kept(monkeypatch):
    together = ensemble(*LINEAR)
    first = together.linear(X.shape[1])
    assert together.linear(X.shape[1]) is first
    assert together.linear(X.shape[1] + 1).reveal().groups == {}  # of another width
    monkeypatch.setattr("quorate.ensemble.ensemble._MOST_KEPT", first.reveal().n_bytes - 1)
    large = ensemble(*LINEAR)
    assert large.linear(X.shape[1]) is not large.linear(X.shape[1])


def test_the_shortcut_takes_every_linear_voter_and_no_other():
    counts = np.zeros((53, 3), dtype=np.int64)
    taken = linear_counts([*LINEAR, *OTHERS], X, counts)

    assert sorted(taken) == list(range(len(LINEAR)))
    assert sum(rows.size for rows in taken.values()) == 0
    assert (counts == slow_counts(LINEAR, X)).all()


@pytest.mark.heavy
@settings(max_examples=40, deadline=None)
@given(
    points=arrays(np.float64, (12, 4), elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, 3.0])),
    weights=arrays(np.float64, (5, 3, 4), elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e300])),
    offsets=arrays(np.float64, (5, 3), elements=st.sampled_from([0.0, -1.0, -1e-17])),
)
def test_the_shortcut_leaves_ties_and_overflows_to_the_voters_themselves(points, weights, offsets):
    voters = [forged(weight, offset) for weight, offset in zip(weights, offsets, strict=True)]
    voters += [forged(weight[:1], offset[:1]) for weight, offset in zip(weights, offsets, strict=True)]
    with np.errstate(all="ignore"):
        for voter in voters:
            assert np.array_equal(votes_of_linear(voter, points, 3), voter.vote(points))
        assert (counted_in_the_end(voters, points, 3) == slow_counts(voters, points)).all()


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_a_linear_voter_by_itself_votes_as_its_predict_does_and_no_other_is_taken(container):
    points = container(X)
    for voter in LINEAR:
        assert np.array_equal(votes_of_linear(voter, points, 3), voter.vote(points))
        assert votes_of_linear(voter, points[:, :-1], 3) is None
    assert [votes_of_linear(voter, points, 3) for voter in OTHERS] == [None] * len(OTHERS)
    assert votes_of_linear(LINEAR[0], np.full_like(X, np.nan), 3) is None


def forged(weights, offsets):
    """A logistic regression with these very weights."""
    model = LogisticRegression()
    model.coef_, model.intercept_ = weights, offsets
    model.classes_ = np.arange(max(2, len(weights)))
    model.n_features_in_ = weights.shape[1]
    return ClassifierVoter(model, np.arange(len(model.classes_)))


NOTHING = forged(np.zeros((3, 2)), np.zeros(3))
FIRST = forged(np.zeros((3, 2)), np.array([1.0, 0, 0]))  # without weights, and yet decided
UNDECIDED = forged(np.array([[1.0, 0], [1.0, 0], [0, 0]]), np.zeros(3))
ORDERED = forged(np.array([[1.0, 0], [0.5, 0], [0, 0]]), np.zeros(3))
SYMMETRIC, ZERO = forged(np.array([[1.0, 1], [1, 1], [0.5, 0.5]]), np.zeros(3)), forged(np.zeros((1, 2)), np.zeros(1))
ADDED = forged(np.array([[1.0, 1.0, 1.0]]), np.zeros(1))
CLOSE = {
    "exact ties": ([SYMMETRIC, ZERO] * 4, [[1.0, 2], [-1, -1], [0, 0]], [0, 2], [[8, 0, 0], [4, 0, 4], [8, 0, 0]]),
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in one order of addition and 0 or negative in another.
    "within rounding": ([ADDED] * 2, [[0.1, 0.2, -0.3], [0.1, 0.2, 0.3]], [0], None),
    # Of one row, no class of the first model and two of the second are near: as many as there are models.
    "none beside two near": ([NOTHING, UNDECIDED], [[1.0, 1.0]], [0], [[2, 0, 0]]),
    "two near beside none": ([UNDECIDED, NOTHING], [[1.0, 1.0]], [0], [[2, 0, 0]]),
    # Infinity times nothing is no bound: ties of one model once stood for the votes of others.
    "overflow": ([FIRST] * 4 + [ORDERED] * 2, [[1e200, 1.0]], [0], [[6, 0, 0]]),
    "overflow of few": ([FIRST] * 2 + [ORDERED], [[1e200, 1.0]], [0], [[3, 0, 0]]),
}


@pytest.mark.parametrize("name", CLOSE)
def test_ties_and_what_rounding_could_turn_are_left_to_the_voters_and_go_where_predict_sends_them(name):
    voters, rows, open_, expected = CLOSE[name]
    points = np.array(rows)
    taken = linear_counts(voters, points, np.zeros((len(rows), 3), dtype=np.int64))
    assert taken[0].tolist() == open_
    if expected is not None:
        assert counted_by(voters, points).tolist() == counted_in_the_end(voters, points, 3).tolist() == expected


class SubclassedPredict(LogisticRegression):
    def predict(self, X):
        return 1 - super().predict(X)


@pytest.mark.heavy
def test_what_predicts_in_its_own_way_is_asked_itself():
    voters = [fitted(SubclassedPredict(), (0, 1), RNG) for _ in range(3)]

    assert linear_counts(voters, X, np.zeros((53, 3), dtype=np.int64)) == {}
    assert (count_votes(ensemble(*voters), X).reveal() == slow_counts(voters, X)).all()


@pytest.mark.heavy
@pytest.mark.parametrize("spoil", [np.nan, np.inf])
def test_rows_that_predict_refuses_make_its_voters_abstain_there_alone(spoil):
    spoiled = X.copy()
    spoiled[3, 2] = spoil
    expected = count_votes(ensemble(*LINEAR), X).reveal().copy()
    expected[3] = 0

    assert (count_votes(ensemble(*LINEAR), spoiled).reveal() == expected).all()
    assert count_votes(ensemble(*LINEAR), X[:, :3]).reveal().sum() == 0


@pytest.mark.heavy
def test_rows_of_another_type_are_left_to_the_voters():
    single = X.astype(np.float32)

    assert not is_plain_float_matrix(single)
    assert (count_votes(ensemble(*LINEAR), single).reveal() == slow_counts(LINEAR, single)).all()


class Misbehaves:
    def __init__(self, way):
        self.way = way

    def vote(self, X):
        misbehave(self.way)
        ones = np.ones(len(X), dtype=np.int64)
        return RETURNED[self.way](ones) if self.way in RETURNED else ones


RETURNED = {
    "short": lambda ones: ones[1:],
    "floats": lambda ones: 1.0 * ones,
    "columns": lambda ones: ones[:, None],
    "unknown": lambda ones: 3 * ones,
    "far": lambda ones: ones + 2**40,
    "negative": lambda ones: -2 * ones,
    "nothing": lambda ones: None,
}
WAYS = [(way, {}) for way in ("raise", "vanish", "segfault", *RETURNED)]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("way", "options"), [*WAYS, ("kill the worker", {"n_jobs": 2}), ("spin", {"voter_cpu_seconds": 0.2})]
)
def test_a_voter_that_fails_abstains_alone(way, options):
    voters = [Misbehaves("behave"), Misbehaves(way), Misbehaves("behave")]

    assert count_votes(ensemble(*voters), X[:5], **options).reveal().tolist() == [[0, 2, 0]] * 5


class Draws(ClassifierMixin, BaseEstimator):
    """Predicts at random, from generators that it shares with the whole process."""

    def vote(self, X):
        return np.random.randint(0, 3, size=len(X)) if random.random() < 2 else None  # noqa: NPY002

    keeps_no_global_state = True


@pytest.mark.heavy
def test_a_voter_that_draws_votes_the_same_whoever_voted_before():
    alone = count_votes(ensemble(Draws()), X).reveal()
    with_others = count_votes(ensemble(Draws(), Draws(), Draws()), X).reveal()

    assert (with_others == 3 * alone).all()


@settings(max_examples=20, deadline=None)
@given(codes=st.lists(st.integers(-1, 4), min_size=0, max_size=12), n_rows=st.integers(0, 5), block=st.integers(1, 7))
def test_every_vote_is_counted_once(codes, n_rows, block):
    voters = [AbstainingVoter() if code < 0 else ConstantVoter(code) for code in codes]
    counts = count_votes(ensemble(*voters, n_classes=5), np.zeros((n_rows, 2)), block=block).reveal()

    assert counts.tolist() == [[codes.count(label) for label in range(5)]] * n_rows


def test_a_constant_outside_the_classes_abstains():
    assert count_votes(ensemble(ConstantVoter(3), ConstantVoter(-1)), X[:2]).reveal().tolist() == [[0, 0, 0]] * 2


@pytest.mark.heavy
def test_progress_counts_voters_and_blocks_to_the_end():
    told = []
    voters = [*LINEAR[:4], *OTHERS]
    count_votes(ensemble(*voters), X, block=20, progress=lambda *numbers: told.append(numbers))

    assert told[-1] == (24, 24)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize("option", ["block", "n_jobs"])
def test_numbers_that_are_none_are_refused(option):
    for value in (0, -1, True, 1.5, "1", float("nan")):
        with pytest.raises(InvalidParameter, match=option):
            count_votes(ensemble(ConstantVoter(0)), X, **{option: value})
    with pytest.raises(InvalidParameter, match="voter_cpu_seconds"):
        count_votes(ensemble(ConstantVoter(0)), X, voter_cpu_seconds=0.0)


@pytest.mark.heavy
@pytest.mark.parametrize("n_scores", [1, 3, 40])
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_matrix])
def test_what_a_voter_leaves_open_does_not_depend_on_who_stands_beside_it(n_scores, as_rows):
    """Weights of every length side by side: the longest ones' bound decides hardly a vote of the shortest."""
    rng = np.random.default_rng(n_scores)
    points = rng.normal(size=(90, 7))
    points[:5] = 0.0
    voters = [
        forged(scale * rng.normal(size=(n_scores, 7)), scale * rng.normal(size=n_scores))
        for scale in np.repeat([1e-170, 1.0, 1e9, 1e160], 65)  # more than a byte counts
    ]
    voters += [forged(np.full((n_scores, 7), spoilt), np.zeros(n_scores)) for spoilt in (np.inf, np.nan, 0.0)]
    voters += [forged(rng.normal(size=(n_scores, 7)), np.full(n_scores, np.nan))]
    n_classes, X = max(2, n_scores), as_rows(points)
    counts = np.zeros((90, n_classes), dtype=np.int64)
    together = linear_counts(voters, X, counts)

    expected = np.zeros_like(counts)
    for number, voter in enumerate(voters):
        alone = linear_counts([voter], X, expected)[0]
        assert together[number].tolist() == alone.tolist()
    assert (counts == expected).all()
    assert [together[number].size for number in (65, 130)] == [0, 0]
    assert [together[number].size for number in (-4 % len(voters), len(voters) - 1)] == [90, 90]
    whole = counted_in_the_end(voters[:260], X, n_classes)
    with np.errstate(all="ignore"):
        assert (whole == slow_counts(voters[:260], points, n_classes)).all()


def cells_that_cancel(points, large):
    """The same rows as a sparse matrix in which two cells of one column more are added up, to nothing."""
    n, d = points.shape
    rows = np.repeat(np.arange(n), d + 2)
    columns = np.column_stack([np.arange(n) % d, np.tile(np.arange(d), (n, 1)), np.arange(n) % d]).ravel()
    cells = np.column_stack([np.full(n, large), points, np.full(n, -large)]).ravel()
    return sparse.csr_matrix((cells, columns, np.searchsorted(rows, np.arange(n + 1))), shape=(n, d))


@pytest.mark.parametrize("large", [1e5, 1e12, 1e17])
def test_cells_of_one_column_that_cancel_count_for_the_bound(large):
    """What is left of them is their rounding, so that no vote near a tie may be told by the product."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(60, 5))
    voters = [forged(rng.normal(size=(1, 5)), rng.normal(size=1)) for _ in range(20)]
    X = cells_that_cancel(points, large)
    assert not X.has_canonical_format
    left = linear_counts(voters, X, np.zeros((60, 2), dtype=np.int64))
    assert sum(rows.size for rows in left.values()) == (60 * 20 if large == 1e17 else pytest.approx(0, abs=60))
    assert (counted_in_the_end(voters, X, 2) == slow_counts(voters, X, 2)).all()


def counted_in_the_end(voters, points, n_classes):
    """What the product counted, and the voters themselves on the rows that it left open."""
    counts = np.zeros((points.shape[0], n_classes), dtype=np.int64)
    for number, rows in linear_counts(voters, points, counts).items():
        counts[rows, voters[number].vote(points)[rows]] += 1
    return counts


@pytest.mark.parametrize("scale", [1e-170, 1e-160, 1e-155, 1e-150, 1.0])
def test_scores_that_nearly_vanish_are_those_of_predict_at_every_scale(scale):
    rng = np.random.default_rng(3)
    weights, points = rng.normal(size=(2, 1, 37)), rng.normal(size=(400, 37))
    across = points - np.outer(points @ weights[0, 0] / (weights[0, 0] @ weights[0, 0]), weights[0, 0])
    voters = [forged(each, np.zeros(1)) for each in weights]
    assert (counted_in_the_end(voters, scale * across, 2) == slow_counts(voters, scale * across, 2)).all()


def trees(n=6):
    rng = np.random.default_rng(1)
    models = [DecisionTreeClassifier(random_state=0), ExtraTreeClassifier(random_state=0)]
    return [
        ClassifierTeacher(models[number % 2]).train(rng.normal(size=(60, 3)), rng.integers(0, 3, 60), number)
        for number in range(n)
    ]


def counted_by(voters, X, **options):
    return count_votes(ensemble(*voters), X, **options).reveal()


@pytest.mark.heavy
def test_single_trees_vote_here_as_they_do_in_a_worker(monkeypatch):
    X = np.random.default_rng(2).normal(size=(500, 3))
    in_workers = counted_by(trees(), X, voter_cpu_seconds=60.0)
    state = np.random.get_state()[1].tobytes()  # noqa: NPY002
    monkeypatch.setattr(votes_module, "isolated_map", lambda *_, **__: pytest.fail("a worker was started"))
    assert (counted_by(trees(), X, block=64) == in_workers).all()
    assert np.random.get_state()[1].tobytes() == state  # noqa: NPY002


def test_what_only_looks_like_a_single_tree_votes_in_a_worker(monkeypatch):
    class OwnTree(DecisionTreeClassifier):
        pass

    asked = []
    monkeypatch.setattr(votes_module, "isolated_map", lambda work, item, numbers, **_: asked.extend(numbers) or [])
    voters = [
        ClassifierVoter(model.fit(np.arange(6.0).reshape(-1, 2), [0, 1, 2]), np.arange(3))
        for model in (OwnTree(), RandomForestClassifier(2), DecisionTreeClassifier())
    ]
    counted_by(voters, np.zeros((4, 2)))
    assert asked == [0, 1]


@pytest.mark.filterwarnings("error")
def test_a_single_tree_that_fails_or_warns_abstains_without_a_word(monkeypatch, capfd):
    X = np.zeros((5, 3))
    voters = trees(2)
    voters[0].estimator.n_features_in_ = 7  # it refuses rows of three columns
    right = voters[1].estimator.predict

    def warning(rows):
        warnings.warn("a private value", stacklevel=1)
        return right(rows)

    voters[1].estimator.predict = warning
    assert counted_by(voters, X).sum() == 5
    assert capfd.readouterr() == ("", "")


@pytest.mark.heavy
def test_a_single_tree_for_which_memory_ends_is_asked_in_a_process_of_its_own(monkeypatch):
    [voter] = trees(1)
    expected = counted_by([voter], np.zeros((5, 3)))
    here = os.getpid()
    right = voter.estimator.predict
    voter.estimator.predict = Short(here, right)
    assert (counted_by([voter], np.zeros((5, 3))) == expected).all()


class Short:
    def __init__(self, here, predict):
        self.here, self.predict = here, predict

    def __call__(self, rows):
        if os.getpid() == self.here:
            raise MemoryError
        return self.predict(rows)


def test_a_linear_teacher_that_is_alone_with_its_classes_or_on_a_boundary_starts_no_worker(monkeypatch):
    """Else the time that a count takes would tell that a rare class is in somebody's shard."""
    monkeypatch.setattr("quorate.ensemble.votes.isolated_map", None)
    X, y = np.array([[-1.0], [1.0], [3.0]]), np.array([0, 1, 2])
    two = ClassifierVoter(LogisticRegression().fit(X[:2], y[:2]), np.array([0, 1]))
    three = ClassifierVoter(LogisticRegression().fit(X, y), np.array([0, 1, 2]))
    points = np.array([[-2.0], [0.0], [9.0]])  # the second is on the boundary of the first
    assert (counted_by((two, two, three), points) == slow_counts((two, two, three), points)).all()
