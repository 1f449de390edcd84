"""What every strategy keeps: its cap, its pool, its past; and that it is a function of public and released things."""

import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.labelling.conftest import ask_all

from quorate.errors import InvalidParameter
from quorate.labelling.active import (
    NAMES,
    CoreSet,
    Disagreement,
    History,
    KMeans,
    Margin,
    OracularCAL,
    Random,
    Strategy,
    VersionSpace,
    named,
)
from quorate.labelling.active.strategy import GAIN_IS_UNCERTAIN

N_POINTS = 90
CAP = 30
EVERY = [
    Random(CAP),
    Margin(CAP, batch=7),
    Margin(CAP, learner=DecisionTreeClassifier(max_depth=3)),
    KMeans(CAP),
    CoreSet(CAP),
    OracularCAL(CAP),
    OracularCAL(CAP, c0=5.0, eta0=0.3, first=1),
    Disagreement(CAP, learner=DecisionTreeClassifier(max_depth=2), first=20),
    Disagreement(CAP, c0=3.0),
    VersionSpace(CAP),
]


def ids(strategy: Any) -> str:
    """The same in every process: a function is told without its address."""
    return re.sub(r" at 0x\w+", "", repr(strategy))


NOTHING = np.empty(0, dtype=np.int64)


def points(seed: int = 0, n: int = N_POINTS, d: int = 3) -> np.ndarray:
    """Points of a cube: a strategy's pool."""
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def coins(seed):
    """Answers that follow nothing; one in five is declined or lost."""

    def answer(row):
        return int(np.random.default_rng([seed, row]).choice([0, 1, 0, 1, -1]))

    return answer


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("strategy", EVERY, ids=ids)
@pytest.mark.parametrize("seed", range(4))
def test_no_strategy_passes_its_cap_or_leaves_its_pool_or_asks_a_row_twice(strategy, seed):
    past, batches = ask_all(strategy, points(seed), coins(seed))
    assert 0 < len(past.rows) <= CAP
    assert len(set(past.rows.tolist())) == len(past.rows) == sum(map(len, batches))
    assert past.rows.min() >= 0
    assert past.rows.max() < N_POINTS


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("strategy", EVERY, ids=ids)
def test_a_strategy_is_a_function_of_pool_history_and_random_numbers(strategy):
    pool = points()
    once, again = (ask_all(strategy, pool, coins(1))[1] for _ in range(2))
    assert once == again
    untouched = points()
    assert (pool == untouched).all()


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("strategy", [each for each in EVERY if not isinstance(each, KMeans)], ids=ids)
def test_sparse_and_dense_pools_are_asked_alike(strategy):
    pool = np.round(points() * (np.random.default_rng(3).random((N_POINTS, 3)) < 0.6), 2)
    pool = pool[np.unique(pool, axis=0, return_index=True)[1]]
    assert ask_all(strategy, pool, coins(2))[1] == ask_all(strategy, csr_matrix(pool), coins(2))[1]


def test_clusters_of_a_sparse_pool_have_centres_and_members():
    pool = csr_matrix(np.repeat(np.eye(5), 4, axis=0) + np.diag(np.linspace(0, 0.1, 20))[:, :5])
    asked, _ = ask_all(KMeans(5), pool, coins(0))
    whose = KMeans(5).spread(pool, asked.rows, np.random.default_rng([7, 0]))
    assert len(asked.rows) == 5
    assert all(len(set(whose[4 * block : 4 * block + 4].tolist())) == 1 for block in range(5))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("strategy", [each for each in EVERY if not each.two_classes], ids=ids)
def test_strategies_that_are_not_made_for_two_classes_take_three(strategy):
    past, _ = ask_all(strategy, points(), lambda row: row % 3, n_classes=3)
    assert 0 < len(past.rows) <= CAP
    strategy.check(n_points=N_POINTS, n_classes=3)


@pytest.mark.parametrize("strategy", [OracularCAL(CAP), VersionSpace(CAP)], ids=ids)
def test_strategies_that_are_made_for_two_classes_refuse_three(strategy):
    with pytest.raises(InvalidParameter, match="two classes"):
        strategy.check(n_points=N_POINTS, n_classes=3)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("strategy", EVERY, ids=ids)
def test_a_cap_above_the_pool_is_refused(strategy):
    strategy.check(n_points=CAP, n_classes=2)
    with pytest.raises(InvalidParameter, match="29 distinct points"):
        strategy.check(n_points=CAP - 1, n_classes=2)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("kind", [*map(named, NAMES), VersionSpace])
@pytest.mark.parametrize("n", [0, -3, 2.0, True, None, "9", float("nan")])
def test_a_cap_is_a_whole_number_of_at_least_one(kind, n):
    with pytest.raises(InvalidParameter, match="n must be a whole number"):
        kind(n)


FIELDS = {
    Disagreement: ("c0", "first"),
    OracularCAL: ("c0", "eta0", "first"),
    VersionSpace: ("constant", "gamma", "theta", "dimension"),
    Margin: ("batch",),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in FIELDS.items() for field in fields])
@pytest.mark.parametrize("value", [0, -1, float("nan"), True, "1"])
def test_a_field_out_of_range_is_refused(kind, field, value):
    with pytest.raises(InvalidParameter, match=field):
        kind(5, **{field: value})


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("strategy", EVERY, ids=ids)
def test_a_pool_of_one_point_is_asked_and_then_nothing(strategy):
    pool = np.array([[0.5, 0.1, 0.2]])
    assert ask_all(type(strategy)(1), pool, lambda row: 1)[1] == [[0]]
    over = History(np.array([0]), np.array([1]), 2)
    assert not len(type(strategy)(2).next_batch(pool, over, np.random.default_rng(0)))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("code", [-1, 1], ids=["declined", "one class"])
@pytest.mark.parametrize("strategy", EVERY, ids=ids)
def test_a_service_that_declines_everything_or_says_one_class_is_no_failure(strategy, code):
    past, _ = ask_all(strategy, points(), lambda row: code)
    assert (past.codes == code).all()
    assert len(past.rows) <= CAP


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(0, 10**6))
def test_random_asks_the_first_points_of_the_stream(n, seed):
    past, _ = ask_all(Random(n), points(seed % 7, n=40), coins(seed))
    assert past.rows.tolist() == list(range(n))


def test_margin_asks_where_the_answers_leave_a_model_least_sure():
    pool = points(5)
    history = History(np.arange(20), (pool[:20, 0] > 0).astype(int), 2)
    asked = Margin(CAP, batch=5).next_batch(pool, history, np.random.default_rng(0))
    model = LogisticRegression(max_iter=300).fit(pool[:20], history.codes)
    sure = abs(model.predict_proba(pool)[:, 1] - 0.5)
    assert set(asked.tolist()) == set((20 + np.argsort(sure[20:])[:5]).tolist())


def test_margin_needs_to_be_told_how_sure_a_learner_is():
    with pytest.raises(InvalidParameter, match="predict_proba"):
        Margin(5, learner=LinearSVC())


def test_core_set_is_within_twice_of_the_best_cover():
    """Gonzalez 1985: the greedy radius is at most twice that of any n points; checked against all of them."""
    pool = points(9, n=11, d=2)
    distances = np.linalg.norm(pool[:, None] - pool[None], axis=2)
    asked = CoreSet(3).next_batch(pool, History(NOTHING, NOTHING, 2), np.random.default_rng(0))
    best = min(distances[:, list(three)].min(axis=1).max() for three in combinations(range(11), 3))
    assert distances[:, asked].min(axis=1).max() <= 2 * best


def test_core_set_stops_where_all_points_are_covered():
    pool = np.repeat(np.eye(3), 5, axis=0)
    assert ask_all(CoreSet(10), pool, lambda row: 0)[1] == [[0, 5, 10]]


def test_every_point_of_a_cluster_takes_over_the_answer_of_its_centre():
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    pool = np.repeat(centres, 20, axis=0) + np.random.default_rng(0).normal(0, 0.2, (60, 2))
    asked, _ = ask_all(KMeans(3), pool, lambda row: row // 20)
    whose = KMeans(3).spread(pool, asked.rows, np.random.default_rng([7, 0]))
    assert (asked.codes[whose] == np.arange(60) // 20).all()
    for row in asked.rows:  # nearest to the mean of its cluster
        members = np.flatnonzero(whose == whose[row])
        from_mean = np.linalg.norm(pool[members] - pool[members].mean(axis=0), axis=1)
        assert members[from_mean.argmin()] == row


def test_a_cluster_whose_centre_was_not_asked_takes_over_nothing():
    pool = np.repeat(np.array([[0.0], [9.0]]), 3, axis=0) + np.linspace(0, 0.1, 6)[:, None]
    asked, _ = ask_all(KMeans(2), pool, lambda row: 0, cap=1)
    whose = KMeans(2).spread(pool, asked.rows, np.random.default_rng([7, 0]))
    assert sorted(whose.tolist()) == [-1, -1, -1, 0, 0, 0]


@pytest.mark.heavy
@pytest.mark.parametrize(
    "learner",
    [KNeighborsClassifier(3), make_pipeline(StandardScaler(), LogisticRegression()), LinearSVC()],
    ids=lambda learner: type(learner).__name__,
)
def test_disagreement_takes_any_learner_weighted_or_not(learner):
    pool = points(4)
    past, _ = ask_all(Disagreement(CAP, learner=learner), pool, lambda row: int(pool[row, 0] > 0))
    assert 0 < len(past.rows) <= CAP


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("strategy", EVERY, ids=ids)
def test_who_listens_to_answers_is_told_of_the_control(strategy):
    said = strategy.cautions(width=3)
    told = [each for each in said if each.code == GAIN_IS_UNCERTAIN and each.applies]
    assert len(told) == (type(strategy) is not Random)
    assert all("random subset of the same size" in each.words for each in told)


def test_a_strategy_of_ones_own_needs_next_batch():
    class Idle(Strategy):
        pass

    with pytest.raises(TypeError, match="next_batch"):
        Idle(3)  # type: ignore[abstract]
