"""Students that know how often a label is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from tests.students.made_up_student_data import K, Memorises, cast, labels, release, right, student_data_of, task

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.errors import InvalidParameter
from quorate.mechanisms import ConfidentNoisyMax, LaplaceNoisyMax, StableSparseVector
from quorate.students import LabelStudent, NoiseAwareStudent
from quorate.students.noisy_labels import STRAY, label_noise, loss_of
from quorate.students.shares import PRIOR_VARIANCE


def slow_loss(theta, z, codes, sigma, n_teachers):
    """Minus the log posterior of half-lead labels, term by term; `theta` is one row (intercept, weights) a class."""
    total = float(sum(value**2 for value in theta.ravel())) / (2 * PRIOR_VARIANCE)
    for point, code in zip(z, codes, strict=True):
        odds = [np.exp(each[0] + each[1:] @ point) for each in theta]
        one = norm.cdf((n_teachers * odds[1] / sum(odds) - n_teachers // 2 - 0.5) / sigma)
        total -= np.log((1 - STRAY) * (one if code else 1 - one) + STRAY / 2)
    return total


@pytest.mark.heavy
@pytest.mark.parametrize(("sigma", "n_teachers"), [(10.0, 100), (60.0, 101)])
def test_the_fit_is_that_of_a_slow_optimiser_that_knows_no_gradient(sigma, n_teachers):
    X = np.random.default_rng(0).normal(size=(25, 2))
    votes, _ = cast(X, 0, n_teachers=n_teachers)
    data = student_data_of(X, release(votes, labels(sigma=sigma)), n_teachers=n_teachers)
    model = NoiseAwareStudent().model(data, X)
    z = PoolCoordinates.of(X).measured(X)
    codes = data.released.codes
    found = minimize(
        lambda flat: slow_loss(flat.reshape(2, 3), z, codes, sigma, n_teachers), np.zeros(6), method="BFGS", tol=1e-6
    )
    theta = np.column_stack([model.intercepts, model.weights])
    np.testing.assert_allclose(theta.ravel(), found.x, atol=2e-2)
    assert slow_loss(theta, z, codes, sigma, n_teachers) <= found.fun + 1e-4


@pytest.mark.heavy
@given(seed=st.integers(0, 1_000), n_classes=st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_the_slope_of_the_loss_is_that_of_small_steps(seed, n_classes):
    rng = np.random.default_rng(seed)
    shares, codes = rng.dirichlet(np.ones(n_classes), size=5), rng.integers(n_classes, size=5)
    for mechanism in (labels(n_classes, sigma=30.0), LaplaceNoisyMax(20.0)):
        loss = loss_of(label_noise(mechanism, K), codes, n_classes=n_classes)
        _, slopes = loss(shares)
        for place in np.ndindex(*shares.shape):
            step = np.zeros_like(shares)
            step[place] = 1e-6
            slope = (loss(shares + step)[0] - loss(shares - step)[0]) / 2e-6
            assert slopes[place] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_the_classifier_is_taught_the_whole_pool_by_the_shares():
    asked = range(40)
    data, _ = task(m=60, mechanism=labels(sigma=20.0), asked=asked)
    seen_X, _, weights = NoiseAwareStudent(Memorises(max_depth=2)).fit(data).seen_
    assert len(np.unique(seen_X, axis=0)) == 60
    shares = NoiseAwareStudent().model(data, data.points)(data.points)
    np.testing.assert_allclose(np.sort(weights), np.sort(shares[shares > 1e-6]), atol=1e-9)


@pytest.mark.parametrize("shares", ["linear", "kernel"])
def test_the_students_own_probabilities_are_the_shares_of_the_model(shares):
    data, _ = task(m=100, n_classes=3, mechanism=labels(3, sigma=20.0))
    way = NoiseAwareStudent(shares=shares)
    expected = way.model(data, data.points)(data.points)
    np.testing.assert_allclose(way.fit(data).predict_proba(data.pool), expected, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_random_class_for_a_declined_query_is_known_to_say_nothing(n_classes):
    data, _ = task(m=100, n_classes=n_classes, mechanism=labels(n_classes), declined=())
    gone = replace(data.released, declined=np.arange(100) >= 60)
    data = replace(data, released=gone)
    dropped, drawn = (
        NoiseAwareStudent().fit(replace(data, declined=each)).predict_proba(data.pool) for each in ("drop", "random")
    )
    np.testing.assert_array_equal(dropped, drawn)


def errors(way, *, sigma, n_classes=2, mechanism=None, seeds=12, m=400, width=10):
    """Mean squared error of the student's probabilities as vote shares, over tasks with seeds of their own."""
    found = []
    for seed in range(seeds):
        X = np.random.default_rng(seed).normal(size=(m, width))
        votes, _ = cast(X, seed, n_classes=n_classes)
        released = release(votes, mechanism or labels(n_classes, sigma=sigma), seed)
        data = student_data_of(X, released, classes=range(n_classes))
        found.append(np.mean((way.fit(data).predict_proba(X) - votes / K) ** 2))
    return float(np.mean(found))


@pytest.mark.heavy
@pytest.mark.parametrize("n_classes", [2, 3])
def test_to_know_the_noise_is_to_know_the_shares_better(n_classes):
    """Labels at this noise are wrong so often that one who takes them for true thinks the teachers disagree."""
    for mechanism in (labels(n_classes, sigma=60.0), LaplaceNoisyMax(60.0)):
        aware = errors(NoiseAwareStudent(), sigma=60.0, n_classes=n_classes, mechanism=mechanism)
        assert aware < 0.8 * errors(LabelStudent(), sigma=60.0, n_classes=n_classes, mechanism=mechanism)


@pytest.mark.heavy
@pytest.mark.parametrize("n_classes", [2, 4])
def test_to_know_the_noise_is_to_err_less_often(n_classes):
    """The same labels and the same classifier, twelve tasks with seeds of their own: this cannot fail by chance."""
    tasks = [task(seed, m=300, width=8, n_classes=n_classes, mechanism=labels(n_classes, 60.0)) for seed in range(12)]
    same = LogisticRegression(max_iter=1_000)
    wrong = {
        way: 1 - np.mean([right(way, *each) for each in tasks]) for way in (NoiseAwareStudent(same), LabelStudent(same))
    }
    assert wrong[NoiseAwareStudent(same)] < 0.95 * wrong[LabelStudent(same)]


def test_labels_of_the_confident_mechanism_are_learned_from_as_well():
    data, truth = task(m=300, mechanism=ConfidentNoisyMax(60.0, 20.0, 20.0, "binary"))
    answers = data.released.answers
    released = replace(data.released, declined=answers < 0, answers=np.where(answers < 0, 0, answers))
    assert right(NoiseAwareStudent(), replace(data, released=released), truth) > 0.85


def test_labels_without_known_noise_are_refused_before_anything_is_learned():
    mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=10)
    data, _ = task(m=20, mechanism=labels())
    data = replace(data, released=replace(data.released, mechanism=mechanism))
    for refuse in (lambda: NoiseAwareStudent().check(mechanism), lambda: NoiseAwareStudent().fit(data)):
        with pytest.raises(InvalidParameter, match="NoiseAwareStudent has to know how often noise changes a label"):
            refuse()


@pytest.mark.parametrize("shares", ["auto", "gaussian-process", None])
def test_the_models_are_known_by_name(shares):
    with pytest.raises(InvalidParameter, match='shares must be one of "linear", "kernel"'):
        NoiseAwareStudent(shares=shares)
