"""The Gaussian curve in many digits; noise on a fine grid: its distance to continuous noise, and its price."""

from __future__ import annotations

from math import exp, log

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr
from tests.accounting.slow_prices import gaussian_delta

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    Gaussian,
    GridGaussian,
    PureDP,
    Repeated,
    delta,
    epsilon,
    explain,
    gaussian,
    rdp,
    zcdp,
)
from quorate.accounting.gaussian import DISTANCE, distance_of, epsilon_of_gaussian, log_delta, mu_of_gaussian


def exact_delta(epsilon, mu):
    with mp.workdps(60):
        return gaussian_delta(mp.mpf(epsilon), mp.mpf(mu))


GRID = [(e, m) for m in (0.001, 0.03, 0.28, 1.0, 4.0, 30.0) for e in (-3.0, -0.01, 0.0, 1e-3, 0.3, 1.0, 5.0, 60.0)]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("epsilon", "mu"), GRID)
def test_the_curve_agrees_with_sixty_digits_and_is_never_below(epsilon, mu):
    exact = exact_delta(epsilon, mu)
    if exact < mp.mpf(10) ** -280:
        assert float(log_delta(epsilon, mu)) >= float(mp.log(exact)) - 1e-6
        return
    ratio = mp.exp(mp.mpf(float(log_delta(epsilon, mu)))) / exact
    assert ratio >= 1 or (epsilon < 0 and ratio >= 1 - mp.mpf(10) ** -15)
    assert ratio - 1 < 1e-9


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("mu", [0.01, 0.28, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.3])
def test_epsilon_is_the_least_that_holds(mu, delta):
    epsilon = epsilon_of_gaussian(delta, mu)
    if epsilon == 0:
        assert exact_delta(0, mu) <= delta
        return
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon * (1 - 1e-9), mu) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1 / 39073), (0.1, 1e-9), (8.0, 1e-5), (1e-3, 1e-9)])
def test_mu_is_the_largest_that_holds(epsilon, delta):
    mu = mu_of_gaussian(epsilon, delta)
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon, mu * (1 + 1e-9)) > delta


def test_an_array_gives_what_its_members_give():
    epsilons = np.array([-30.0, -1.0, 0.0, 2.0, 50.0])
    one_by_one = [float(log_delta(e, 0.7)) for e in epsilons]
    assert np.array_equal(log_delta(epsilons, 0.7), one_by_one)


def test_no_delta_and_no_noise_are_told_apart():
    assert epsilon_of_gaussian(0.0, 1.0) == float("inf")
    assert epsilon_of_gaussian(1e-5, 0.0) == 0.0


def total_variation(sigma: float) -> float:
    """Between the discrete Gaussian and continuous noise that is rounded, summed over all integers that matter."""
    x = np.arange(-int(10 * sigma), int(10 * sigma) + 1, dtype=np.float64)
    discrete = np.exp(-x * x / (2 * sigma * sigma))
    # both tails by the same function, so that no digits cancel
    rounded = ndtr((0.5 - np.abs(x)) / sigma) - ndtr((-0.5 - np.abs(x)) / sigma)
    return float(np.abs(discrete / discrete.sum() - rounded).sum() / 2)


@pytest.mark.parametrize("sigma", [2.0**10, 1_500.5, 2.0**12])
def test_the_distance_of_one_number_is_below_the_bound_and_near_it(sigma):
    assert 0.998 * DISTANCE < total_variation(sigma) * sigma**2 < DISTANCE


def test_a_bound_one_percent_smaller_is_caught():
    assert not total_variation(2.0**10) * 2.0**20 < 0.99 * DISTANCE


def exact_grid_delta(sigma: float, shift: int, level: float) -> float:
    """Of one number with discrete noise, by summing what the law passes e^ε times the shifted law by."""
    x = np.arange(-int(12 * sigma), int(12 * sigma) + shift, dtype=np.float64)
    log_p, log_q = -(x**2) / (2 * sigma**2), -((x - shift) ** 2) / (2 * sigma**2)
    total = np.exp(log_p).sum()
    return float(np.maximum(np.exp(log_p) - np.exp(level + log_q), 0).sum() / total)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("level", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("shift", [100, 512, 2_000])
def test_the_price_is_never_below_the_truth_of_one_number(level, shift):
    event = GridGaussian(2.0**10, shift, 1)
    assert delta(event, level) >= exact_grid_delta(2.0**10, shift, level)
    assert delta(event, level) <= exact_grid_delta(2.0**10, shift, level) + 3 * (1 + exp(level)) * DISTANCE / 2.0**20


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("level", [0.1, 0.5, 1.0, 2.0, 10.0])
@pytest.mark.parametrize("numbers", [10, 10_000, 1_000_000])
def test_in_the_range_of_runs_it_is_the_gaussian_price_within_a_millionth(level, numbers):
    at = 1e-10 if level <= 2 else 1e-5
    rounds, shift = 8, 2.0**31  # twice the length of a contribution: one unit is replaced
    sigma = shift * np.sqrt(rounds) / (0.2 * level)
    ideal = epsilon(Repeated(Gaussian(sigma, shift), rounds), at)
    grid = epsilon(Repeated(GridGaussian(sigma, shift, max(numbers // rounds, 1)), rounds), at)
    assert ideal <= grid <= ideal * (1 + 1e-6)


def test_epsilon_and_delta_are_inverse_from_the_safe_side():
    event = Repeated(GridGaussian(2.0**11 * 5, 2.0**11, 100), 16)
    for at in (1e-3, 1e-4):
        level = epsilon(event, at)
        assert delta(event, level) <= at * (1 + 1e-12)
        assert delta(event, level * (1 - 1e-6)) > at * (1 - 1e-4)


def test_where_the_distance_eats_the_delta_the_renyi_price_remains():
    event = GridGaussian(2.0**10, 2.0**9, 1_000_000)
    level, rule = explain(event, 1e-9)
    assert rule == "renyi"
    assert level == pytest.approx(epsilon(DiscreteGaussian(2.0**10, 2.0**9), 1e-9))


def test_renyi_and_concentrated_prices_are_those_of_discrete_noise():
    event = GridGaussian(2.0**12, 2.0**11, 7)
    assert rdp(event, [2.0, 10.0]).tolist() == [2.0 * 0.125, 10.0 * 0.125]
    assert zcdp(event) == pytest.approx(0.125)


def test_grid_noise_composes_with_other_events():
    grid = Repeated(GridGaussian(2.0**31, 2.0**29, 1_000), 9)
    ideal = Repeated(Gaussian(4.0, 1.0), 9)
    for other in (PureDP(0.3), ApproxDP(0.2, 1e-7), Gaussian(3.0, 1.0), Repeated(DiscreteGaussian(40, 1), 20)):
        with_grid = epsilon(Composed((grid, other)), 1e-5)
        with_ideal = epsilon(Composed((ideal, other)), 1e-5)
        assert with_ideal <= with_grid * (1 + 1e-12)
        assert with_grid <= with_ideal * (1 + 1e-6)


def test_the_distance_is_charged_once_for_every_round():
    event, ideal = GridGaussian(2.0**20, 2.0**18, 50), Gaussian(4.0, 1.0)
    lost = delta(Repeated(event, 10), 4.0) - delta(Repeated(ideal, 10), 4.0)
    assert lost == pytest.approx(10 * (1 + exp(4.0)) * distance_of(event), rel=1e-3)


def test_a_price_that_forgets_the_distance_is_caught(monkeypatch):
    event = Repeated(GridGaussian(2.0**10, 1.0, 1_000), 10)
    honest = delta(event, 0.5)
    monkeypatch.setattr(gaussian, "DISTANCE", 0.0)
    assert not delta(event, 0.5) > 0.9 * honest


def test_nothing_is_left_of_delta_where_it_is_zero():
    assert epsilon(GridGaussian(2.0**20, 2.0**18, 3), 0.0) == float("inf")
    assert log(delta(GridGaussian(2.0**20, 2.0**18, 3), 0.0)) < 0
