from math import comb, exp, isclose, tanh

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr

from quorate.accounting import PureDP, Repeated, delta
from quorate.accounting.pure import randomized_response_law, relative_entropy, renyi_of_rounds, zcdp_of_rounds


def optimal_delta(epsilon, epsilon_0, times):
    """The formula of the paper, in sixty digits."""
    with mp.workdps(60):
        p = 1 / (1 + mp.exp(-mp.mpf(epsilon_0)))
        total = mp.mpf(0)
        for i in range(times + 1):
            gain = 1 - mp.exp(mp.mpf(epsilon) - (2 * i - times) * mp.mpf(epsilon_0))
            if gain > 0:
                total += comb(times, i) * p**i * (1 - p) ** (times - i) * gain
        return total


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("epsilon_0", "times", "epsilon"),
    [(0.5, 1, 0.2), (0.1, 100, 3.0), (1.0, 7, 2.5), (0.01, 2000, 1.0), (3.0, 4, 11.0), (1e-4, 50, 1e-3)],
)
def test_rounds_cost_what_the_formula_says_and_never_less(epsilon_0, times, epsilon):
    ratio = delta(Repeated(PureDP(epsilon_0), times), epsilon) / optimal_delta(epsilon, epsilon_0, times)
    assert 1 <= ratio < 1 + 1e-9


def test_a_million_rounds_are_listed_in_part_and_still_sum_to_one():
    losses, log_weights, beyond = randomized_response_law(1e-3, 1_000_000)
    assert losses.size < 40_000
    assert beyond < 1e-40
    assert np.exp(log_weights).sum() == pytest.approx(1.0, abs=1e-7)
    assert np.exp(log_weights).sum() >= 1


@pytest.mark.parametrize("tilt", [0.0, 5.0, 500.0])
def test_the_part_that_is_listed_of_many_rounds_holds_the_tilted_weight(tilt):
    losses, log_weights, _ = randomized_response_law(2e-3, 50_000, tilt)
    epsilon, times = 2e-3, 50_000
    p = 1 / (1 + exp(-epsilon))
    total = times * np.log(p * np.exp(tilt * epsilon) + (1 - p) * np.exp(-tilt * epsilon))
    assert np.logaddexp.reduce(log_weights + tilt * losses) == pytest.approx(total, abs=1e-7)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.5, 2.0, 30.0, 900.0])
@pytest.mark.parametrize("order", [1 + 1e-6, 1.5, 2.0, 30.0, 1e4, 1e8])
def test_the_renyi_curve_agrees_with_sixty_digits(epsilon, order):
    with mp.workdps(500):
        e, a = mp.mpf(epsilon), mp.mpf(order)
        p = 1 / (1 + mp.exp(-e))
        exact = mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
        ratio = mp.mpf(float(renyi_of_rounds(epsilon, np.array([order]))[0])) / exact
    assert 1 - mp.mpf(10) ** -15 <= ratio < 1 + mp.mpf(10) ** -9


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 5.0, 40.0])
def test_rho_is_the_least_slope_above_the_curve(epsilon):
    orders = 1 + np.geomspace(1e-7, 1e7, 500)
    slopes = renyi_of_rounds(epsilon, orders) / orders
    assert np.all(slopes <= zcdp_of_rounds(epsilon) * (1 + 1e-12))
    assert slopes.max() == pytest.approx(zcdp_of_rounds(epsilon), rel=1e-5)
    assert zcdp_of_rounds(epsilon) <= epsilon**2 / 2 * (1 + 1e-12)


def test_a_smaller_rho_would_show():
    cheat = tanh(0.5) ** 2  # ε²·tanh²(ε/2) and the like: below the Kullback-Leibler divergence
    orders = 1 + np.geomspace(1e-7, 1e7, 500)
    assert np.any(renyi_of_rounds(1.0, orders) > cheat * orders)


SHARE = st.floats(0, 1, allow_subnormal=False)


@given(SHARE, SHARE)
def test_the_relative_entropy_of_two_coins_is_the_sum_over_both_sides(b: float, e: float) -> None:
    sides = rel_entr(np.array([b, 1 - b]), np.array([e, 1 - e])).sum()
    assert relative_entropy(b, e) == sides or isclose(relative_entropy(b, e), sides, rel_tol=1e-9, abs_tol=1e-12)
