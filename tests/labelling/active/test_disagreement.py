"""The practical strategies against the version space written out, and each against a slow version of its rule."""

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from tests.labelling.conftest import ask_all

from quorate.labelling.active import Disagreement, History, OracularCAL, Random, VersionSpace, thresholds
from quorate.labelling.active.disagreement import ASKS_EVERYTHING


class ThresholdErm(ClassifierMixin, BaseEstimator):
    """The threshold with the least weighted error, class 1 from it on: an exact learner."""

    def fit(self, X, y, sample_weight=None):
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        order = np.argsort(X[:, 0], kind="stable")
        values, ones, zeros = X[order, 0], weights[order] * (y[order] == 1), weights[order] * (y[order] == 0)
        below = np.append(0.0, np.cumsum(ones)) + np.append(np.cumsum(zeros[::-1])[::-1], 0.0)  # cut before each value
        first = np.append(True, np.diff(values) > 0)
        cuts, errors = np.append(values[first], np.inf), below[np.append(np.flatnonzero(first), len(values))]
        self.cut_ = cuts[int(np.argmin(np.round(errors, 9)))]
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (X[:, 0] >= self.cut_).astype(int)


def play(strategy, pool, answer):
    return ask_all(strategy, pool, answer)[0]


def noisy(pool, cut, error, seed):
    """Labels of a threshold, each turned over with probability `error`."""
    turned = np.random.default_rng(seed).random(len(pool)) < error
    truth = (pool[:, 0] >= cut) != turned
    return lambda row: int(truth[row])


def line(m, seed):
    return np.random.default_rng(seed).uniform(-1, 1, (m, 1))


def algorithm_4(pool, answer, *, cap, gamma, theta, error, constant):
    """LZCW21 Alg. 4 for thresholds, point by point as printed; returns Q and the thresholds left."""
    cuts = [*np.unique(pool[:, 0]).tolist(), math.inf]
    left, asked = set(cuts), []
    for j, (x,) in enumerate(pool.tolist(), 1):
        if len({x >= cut for cut in left}) == 2:  # x is in DIS(V)
            asked.append((j - 1, x, answer(j - 1)))
        if math.log2(j).is_integer():
            wrong = {cut: sum((x_ >= cut) != y for _, x_, y in asked) for cut in left}
            gamma_j = gamma / math.log2(2 * j) ** 2
            a = math.log(theta) + math.log(1 / gamma_j)
            u = constant * a / j + constant * math.sqrt(error * a / j)
            fewest = min(wrong.values())
            left = {cut for cut in left if wrong[cut] - fewest <= u * j}
        if len(asked) >= cap:
            break
    return [row for row, _, _ in asked], left, cuts


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("error", [0.0, 0.1])
def test_version_space_is_algorithm_4_as_printed(seed, error):
    pool = line(700, seed)
    fields = {"gamma": 0.1, "theta": 2.0, "error": error, "constant": 0.5}
    answer = noisy(pool, 0.3, error, seed)
    rows, left, cuts = algorithm_4(pool, answer, cap=700, **fields)
    strategy = VersionSpace(700, **fields)
    past = play(strategy, pool, answer)
    assert past.rows.tolist() == rows
    assert (strategy.version_space(pool, past) == [cut in left for cut in cuts]).all()


@pytest.mark.heavy
def test_version_space_keeps_the_best_threshold_far_more_often_than_gamma():
    """Coverage: of 120 noisy streams at γ = 0.1, at most 30 may lose h* (binomial tail below 1e-6)."""
    lost = 0
    for seed in range(120):
        pool = line(256, seed)
        strategy = VersionSpace(256, error=0.1, gamma=0.1)
        left = strategy.version_space(pool, play(strategy, pool, noisy(pool, 0.2, 0.1, seed)))
        best = thresholds(pool)[:, np.argsort(pool[:, 0])]
        truth = (np.sort(pool[:, 0]) >= 0.2).astype(int)
        lost += not left[(best == truth).all(axis=1)].any()
    assert lost <= 30


def rule_by_brute_force(pool, rows, codes, candidates, c0):
    """Ask iff the best threshold that says the other thing is hardly worse on S: LZCW21's rule by enumeration."""
    cuts = [*np.unique(pool[rows, 0]).tolist(), math.inf]
    values, t = pool[rows, 0], len(rows)
    err = {cut: float(np.mean((values >= cut) != codes)) for cut in cuts}
    best = min(cuts, key=lambda cut: (err[cut], cut))
    slack = math.sqrt(c0 * err[best] * math.log(t) / t) + c0 * math.log(t) / t
    asked = []
    for row in candidates:
        x = pool[row, 0]
        # Thresholds on the seen points and the candidate itself.
        more = sorted({*cuts, x})
        errs = [float(np.mean((values >= cut) != codes)) for cut in more if (x >= cut) != (x >= best)]
        asked.append(min(errs) - err[best] <= slack if errs else False)
    return asked


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("error", [0.0, 0.15])
def test_the_reduction_asks_what_enumerating_all_thresholds_would(seed, error):
    pool = line(160, seed)
    answer = noisy(pool, 0.1, error, seed)
    seen = np.arange(60)
    past = History(seen, np.array([answer(int(row)) for row in seen]), 2)
    rows = np.arange(60, 160)
    found = Disagreement(160, learner=ThresholdErm(), c0=0.2).examine(pool, past, rows, np.random.default_rng(0))
    assert found.asks.tolist() == rule_by_brute_force(pool, seen, past.codes, rows, 0.2)
    assert 0 < found.asks.sum() < len(rows)


@pytest.mark.heavy
def test_disagreement_learns_a_threshold_from_as_few_labels_as_the_version_space():
    """Same streams, no noise: both stop early, both end at the right threshold, and passive learning asks more."""
    asked = {"version space": [], "reduction": []}
    for seed in range(4):
        pool = line(1_000, seed)
        answer = noisy(pool, 0.25, 0.0, seed)
        for name, strategy in {
            "version space": VersionSpace(1_000, constant=0.5),
            "reduction": Disagreement(1_000, learner=ThresholdErm(), c0=0.5),
        }.items():
            past = play(strategy, pool, answer)
            asked[name].append(len(past.rows))
            model = ThresholdErm().fit(pool[past.rows], past.codes)
            wrong = np.mean(model.predict(pool) != (pool[:, 0] >= 0.25))
            assert wrong <= 0.02, (name, seed)
    assert max(asked["version space"]) < 300
    assert max(asked["reduction"]) < 150
    assert len(play(Random(1_000), line(1_000, 0), noisy(line(1_000, 0), 0.25, 0.0, 0)).rows) == 1_000


@pytest.mark.heavy
def test_disagreement_stops_early_on_an_easy_task_with_a_linear_learner():
    pool = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    past = play(Disagreement(200), pool, lambda row: int(pool[row] @ [1.0, 0.5] > 0))
    assert len(past.rows) < 100
    model = LogisticRegression(C=1e3).fit(pool[past.rows], past.codes)
    assert model.score(pool, (pool @ [1.0, 0.5] > 0).astype(int)) > 0.97


class Stiff(LogisticRegression):
    """A learner that no single point can move, whatever it weighs: as a strong penalty makes of many."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, None if sample_weight is None else np.minimum(sample_weight, 1.0))


@pytest.mark.heavy
def test_a_learner_that_cannot_be_forced_is_found_out():
    """The trap: the learner says the same whatever it is told, so the excess is infinite and nothing is asked."""
    pool = np.random.default_rng(1).uniform(-1, 1, (120, 2))
    codes = (pool[:40, 0] > 0.6).astype(int)
    past, rows = History(np.arange(40), codes, 2), np.arange(40, 120)
    stiff = Disagreement(80, learner=Stiff(C=0.01)).examine(pool, past, rows, np.random.default_rng(0))
    free = Disagreement(80).examine(pool, past, rows, np.random.default_rng(0))
    assert not stiff.asks[~stiff.forced].any()
    assert np.isinf(stiff.excess[~stiff.forced]).all()
    assert stiff.forced.mean() < 0.2 < free.forced.mean() == 1.0


@pytest.mark.heavy
def test_with_more_columns_than_labels_everything_is_asked_in_stream_order_and_the_owner_is_told():
    pool = np.random.default_rng(2).normal(size=(60, 200))
    strategy = Disagreement(40)
    past = play(strategy, pool, lambda row: int(pool[row, 0] > 0))
    assert past.rows.tolist() == list(range(40))
    for width, applies in ((200, True), (40, True), (39, False)):
        (said,) = (each for each in strategy.cautions(width=width) if each.code == ASKS_EVERYTHING)
        assert said.applies == applies == ("order of the stream" in said.words)


def one_pass(pool, answer, *, cap, c0, eta0, first):
    """Oracular CAL point by point, with lists: no replay, no arrays, no sharing with the strategy."""
    scale = [max(abs(x) for x in column) or 1.0 for column in zip(*pool.tolist(), strict=True)]
    stream = [[x / s for x, s in zip(row, scale, strict=True)] for row in pool.tolist()]
    training, asked = [], []

    def train():
        w = [0.0] * len(scale)
        for i, (x, y) in enumerate(training, 1):
            norm = sum(v * v for v in x)
            p = sum(a * b for a, b in zip(w, x, strict=True))
            step = (p - y) / norm * (1 - math.exp(-math.sqrt(eta0 / (eta0 + i)) * norm))
            w = [a - step * b for a, b in zip(w, x, strict=True)]
        return w, sum((sum(a * b for a, b in zip(w, x, strict=True)) > 0) != (y > 0) for x, y in training)

    epoch_end, size = 0, first
    w, mistakes = train()
    for t, x in enumerate(stream, 1):
        if t > epoch_end:
            w, mistakes = train()
            epoch_end, size = (first, 2 * first) if t == 1 else (epoch_end + size, 2 * size)
        p, norm, eta = (
            sum(a * b for a, b in zip(w, x, strict=True)),
            sum(v * v for v in x),
            math.sqrt(eta0 / (eta0 + t)),
        )
        if abs(2 * p / (eta * norm)) / t <= math.sqrt(c0 * mistakes) / t + c0 * math.log(t) / t:
            if len(asked) == cap:
                break
            asked.append(t - 1)
            training.append((x, 2 * answer(t - 1) - 1))
        else:
            training.append((x, 1 if p > 0 else -1))
    return asked


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fields", [{"c0": 0.1, "eta0": 1.0, "first": 10}, {"c0": 1.0, "eta0": 0.2, "first": 3}])
def test_oracular_cal_is_its_rule_point_by_point(seed, fields):
    pool = np.random.default_rng(seed).uniform(-3, 2, (300, 4))
    turned = np.random.default_rng(seed + 1).random(300) < 0.1
    answer = lambda row: int((pool[row] @ [1.0, -1.0, 0.5, 0.0] > 0) != turned[row])  # noqa: E731
    for cap in (300, 25):
        past = play(OracularCAL(cap, **fields), pool, answer)
        assert past.rows.tolist() == one_pass(pool, answer, cap=cap, **fields)


@pytest.mark.heavy
def test_oracular_cal_agrees_with_the_version_space_on_thresholds():
    """A threshold at 0 on the line is a linear model without intercept: both find it, and both stop early."""
    for seed in range(6):
        pool = line(1_000, seed)
        answer = noisy(pool, 0.0, 0.0, seed)
        by_cal = play(OracularCAL(1_000), pool, answer)
        by_space = play(VersionSpace(1_000), pool, answer)
        assert len(by_cal.rows) < 100
        assert len(by_space.rows) < 350
        w = OracularCAL(1_000).weights(pool, by_cal)
        assert (((pool @ w) > 0) == (pool[:, 0] >= 0)).all()
        # Near the threshold, where the version space is still divided, is where Oracular CAL asks once it has begun.
        late = by_cal.rows[by_cal.rows >= 30]
        if len(late):
            assert np.abs(pool[late, 0]).mean() < 0.25


def test_oracular_cal_brings_columns_into_minus_one_to_one():
    pool = np.random.default_rng(0).uniform(-1, 1, (100, 3))
    answer = lambda row: int(pool[row, 0] > 0)  # noqa: E731
    scaled = pool * [1.0, 1e3, 1e-3]
    assert play(OracularCAL(60), pool, answer).rows.tolist() == play(OracularCAL(60), scaled, answer).rows.tolist()


def test_a_point_without_features_is_never_asked_by_a_model_without_intercept():
    pool = np.vstack([np.zeros((1, 2)), np.random.default_rng(0).uniform(-1, 1, (20, 2))])
    assert 0 not in play(OracularCAL(21, c0=100.0), pool, lambda row: 1).rows
