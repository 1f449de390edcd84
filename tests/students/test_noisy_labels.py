"""Students that know how often a label is wrong.

How likely a label is: against enumeration of the integer noise, and against the mechanisms themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import binomtest, laplace, norm
from sklearn.linear_model import LogisticRegression
from tests.students.made_up_student_data import K, Memorises, cast, labels, release, right, student_data_of, task

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    PermuteAndFlip,
    PrivatePrediction,
    SoftLabel,
    StableSparseVector,
)
from quorate.noise import SeededNoise
from quorate.students import LabelStudent, NoiseAwareStudent
from quorate.students.noisy_labels import STRAY, label_noise
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


def test_the_classifier_is_taught_the_whole_pool_by_the_shares():
    asked = range(40)
    data, _ = task(m=60, mechanism=labels(sigma=20.0), asked=asked)
    seen_X, _, weights = NoiseAwareStudent(Memorises(max_depth=2)).fit(data).seen_
    assert len(np.unique(seen_X, axis=0)) == 60
    shares = NoiseAwareStudent().model(data, data.points)(data.points)
    np.testing.assert_allclose(np.sort(weights), np.sort(shares[shares > 1e-6]), atol=1e-9)


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


FALSE_ALARM = 1e-6
WIDE = np.arange(-400, 401)


def probabilities(mechanism, n_teachers, shares):
    """P of every class, one row a point."""
    shares = np.atleast_2d(np.asarray(shares, dtype=float))
    noise = label_noise(mechanism, n_teachers)
    columns = [np.exp(noise.log_likelihood(shares, np.full(len(shares), each))[0]) for each in range(shares.shape[1])]
    return np.column_stack(columns)


def masses(mechanism):
    """The integer noise of one count as a distribution on WIDE."""
    weights = (
        np.exp(-np.abs(WIDE) / mechanism.laplace_scale)
        if isinstance(mechanism, LaplaceNoisyMax)
        else np.exp(-(WIDE**2) / (2 * mechanism.sigma**2))
    )
    return weights / weights.sum()


def enumerated(mechanism, counts):
    """P of every class by summing over the noise of the winner, ties to the lowest index."""
    mass = masses(mechanism)
    if getattr(mechanism, "form", None) == "binary":
        half = -(-(counts[1] - counts[0]) // 2)
        wins = mass[half + WIDE > 0].sum()
        return [1 - wins, wins]
    result = []
    for c, count in enumerate(counts):
        total = 0.0
        for z, p in zip(WIDE, mass, strict=True):
            beaten = 1.0
            for other, rival in enumerate(counts):
                if other != c:
                    gap = count + z - rival
                    beaten *= mass[gap >= WIDE].sum() if other > c else mass[gap > WIDE].sum()
            total += p * beaten
        result.append(total)
    return result


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("sigma", [2.0, 7.0, 40.0])
@pytest.mark.parametrize("counts", [(50, 50), (51, 50), (40, 61), (30, 70), (100, 0)])
def test_on_a_half_lead_it_is_the_sum_over_the_integer_noise(sigma, counts):
    mechanism = GaussianNoisyMax(sigma, "binary")
    shares = np.array(counts) / sum(counts)
    found = probabilities(mechanism, sum(counts), shares)[0]
    np.testing.assert_allclose(found, enumerated(mechanism, counts), atol=0.011 / sigma**2)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("counts", [(50, 50), (40, 61), (30, 40, 30), (10, 60, 25, 5), (34, 33, 33)])
@pytest.mark.parametrize(
    "mechanism", [GaussianNoisyMax(3.0), GaussianNoisyMax(20.0), LaplaceNoisyMax(4.0), LaplaceNoisyMax(20.0)]
)
def test_on_counts_it_is_the_sum_over_the_integer_noise(mechanism, counts):
    found = probabilities(mechanism, sum(counts), np.array(counts) / sum(counts))[0]
    rivals = len(counts) - 1
    within = (
        rivals * 0.07 / mechanism.laplace_scale**2 + 3e-4
        if isinstance(mechanism, LaplaceNoisyMax)
        else rivals * 0.011 / mechanism.sigma**2
    )
    np.testing.assert_allclose(found, enumerated(mechanism, counts), atol=within)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("mechanism", "law", "within"),
    [(GaussianNoisyMax(20.0), norm(0, 20), 1e-7), (LaplaceNoisyMax(20.0), laplace(0, 20), 5e-4)],
)
def test_the_grid_is_as_good_as_an_adaptive_integral(mechanism, law, within):
    counts, c = np.array([10.0, 45.0, 35.0, 10.0]), 2

    def integrand(t):
        ties = np.where(np.arange(4) > c, 0.5, -0.5)
        return law.pdf(t) * np.prod(np.delete(law.cdf(counts[c] - counts + ties + t), c))

    expected = (
        quad(integrand, -200, 0, points=[-45.5, -24.5, -9.5], epsabs=1e-12)[0]
        + quad(integrand, 0, 200, points=[9.5], epsabs=1e-12)[0]
    )
    assert probabilities(mechanism, 100, counts / 100)[0, c] == pytest.approx(expected, rel=within)


MECHANISMS = {
    "binary": (GaussianNoisyMax(20.0, "binary"), 2),
    "counts": (GaussianNoisyMax(20.0), 3),
    "values, binary": (NoisyCounts(20.0, "binary"), 2),
    "values": (NoisyCounts(20.0), 4),
    "confident": (ConfidentNoisyMax(60.0, 30.0, 20.0), 3),
    "confident, binary": (ConfidentNoisyMax(60.0, 30.0, 20.0, "binary"), 2),
    "laplace": (LaplaceNoisyMax(15.0), 3),
    "exponential": (Exponential(0.1), 3),
}
every_mechanism = pytest.mark.parametrize(("mechanism", "n_classes"), MECHANISMS.values(), ids=MECHANISMS)


def p_values(mechanism, claimed, counts, n=20_000):
    """Whether released labels are as frequent as is claimed of the first mechanism, one p-value a class."""
    rows = np.tile(np.array(counts, dtype=np.int64), (n, 1))
    answers = mechanism.release_many(rows, SeededNoise(20260821))
    if isinstance(mechanism, NoisyCounts):
        answers = (answers > 0).astype(int) if mechanism.form == "binary" else answers.argmax(axis=1)
    answers = answers[answers >= 0]
    claim = probabilities(claimed, sum(counts), np.array(counts) / sum(counts))[0]
    hits = np.bincount(answers, minlength=len(counts))
    return [binomtest(int(hit), len(answers), min(p, 1.0)).pvalue for hit, p in zip(hits, claim, strict=True)]


COUNTS = {2: (60, 40), 3: (35, 45, 20), 4: (30, 35, 10, 25)}


@pytest.mark.default_cases(2)
@every_mechanism
def test_labels_are_released_as_often_as_the_formula_says(mechanism, n_classes):
    assert min(p_values(mechanism, mechanism, COUNTS[n_classes])) > FALSE_ALARM / n_classes


@pytest.mark.parametrize(
    ("true", "claimed", "n_classes"),
    [
        (GaussianNoisyMax(20.0, "binary"), GaussianNoisyMax(28.0, "binary"), 2),
        (GaussianNoisyMax(20.0), GaussianNoisyMax(28.0), 3),
        (LaplaceNoisyMax(15.0), LaplaceNoisyMax(21.0), 3),
        (Exponential(0.1), Exponential(0.07), 3),
    ],
)
def test_that_test_catches_noise_of_another_size(true, claimed, n_classes):
    assert min(p_values(true, claimed, COUNTS[n_classes])) < FALSE_ALARM / n_classes


@pytest.mark.default_cases(2)
@every_mechanism
@given(seed=st.integers(0, 1_000))
@settings(max_examples=10, deadline=None)
def test_probabilities_sum_to_one_and_the_slope_is_that_of_small_steps(mechanism, n_classes, seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(n_classes), size=6)
    np.testing.assert_allclose(probabilities(mechanism, 100, shares).sum(axis=1), 1, atol=2e-3)
    codes = rng.integers(n_classes, size=6)
    noise = label_noise(mechanism, 100)
    _, slopes = noise.log_likelihood(shares, codes)
    for c in range(n_classes):
        step = np.zeros(n_classes)
        step[c] = 1e-5
        up, down = (noise.log_likelihood(shares + sign * step, codes)[0] for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, c], (up - down) / 2e-5, rtol=1e-3, atol=1e-3)


@pytest.mark.default_cases(4)
@every_mechanism
def test_a_label_that_is_all_but_impossible_has_a_finite_likelihood_and_slope(mechanism, n_classes):
    shares = np.eye(n_classes)[:1]
    log_p, slopes = label_noise(mechanism, 100_000).log_likelihood(shares, np.array([1]))
    assert np.isfinite(log_p).all()
    assert np.isfinite(slopes).all()
    assert slopes[0, 1] > slopes[0, 0], "and it says which way to go"


def test_many_labels_are_read_in_blocks_with_the_same_result(monkeypatch):
    shares = np.random.default_rng(0).dirichlet(np.ones(3), size=11)
    codes = np.arange(11) % 3
    noise = label_noise(GaussianNoisyMax(20.0), 100)
    whole = noise.log_likelihood(shares, codes)
    monkeypatch.setattr("quorate.students.noisy_labels.BLOCK", 4)
    for part, expected in zip(noise.log_likelihood(shares, codes), whole, strict=True):
        np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize(
    "mechanism",
    [
        InteractiveNoisyMax(9.0, 40.0, 40.0, 8, 0.9, "binary"),
        DistanceToInstability(1.0, 1e-6),
        StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=10),
        SoftLabel(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=10, bins=8),
        PermuteAndFlip(1.0),
        PrivatePrediction(1.0),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_mechanism_without_a_formula_is_refused_by_name(mechanism):
    with pytest.raises(InvalidParameter, match=f"no formula for {type(mechanism).__name__}; choose Gauss") as told:
        label_noise(mechanism, 100)
    assert "\n" not in str(told.value)
