from math import comb, exp, inf, isclose, log, tanh

import mpmath as mp
import numpy as np
import pytest
from enumeration import laplace_pair, noise_pair, response_pair
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PureDP,
    Repeated,
    delta,
    delta_of_zcdp,
    epsilon_of_zcdp,
    rdp,
    zcdp,
)
from quorate.accounting.gaussian import epsilon_of_gaussian, log_delta
from quorate.accounting.pure import randomized_response_law, relative_entropy, renyi_of_rounds, zcdp_of_rounds
from quorate.accounting.renyi import delta_of_curve, epsilon_of_curve
from quorate.errors import InvalidParameter, UnsupportedEvent

ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 40.0])


def divergence(pair, order):
    p, q = pair
    both = (p > 0) & (q > 0)
    return float(np.log(np.sum(p[both] ** order * q[both] ** (1 - order))) / (order - 1))


@pytest.mark.parametrize(
    ("event", "pair", "exact"),
    [
        (PureDP(0.7), response_pair(0.7), True),
        (DiscreteLaplace(3.0, 1.0), laplace_pair(3.0), True),
        (DiscreteGaussian(2.0, 1.0), noise_pair(2.0), False),
        (DiscreteGaussian(0.6, 1.0), noise_pair(0.6), False),
    ],
)
def test_the_curve_covers_the_divergence_and_meets_it_where_exact(event, pair, exact):
    for order, bound in zip(ORDERS[:4], rdp(event, ORDERS[:4]), strict=True):
        truth = divergence(pair, order)
        assert bound >= truth * (1 - 1e-9)
        assert not exact or bound == pytest.approx(truth, rel=1e-9)


def test_curves_add():
    parts = (Gaussian(3, 1), DiscreteGaussian(4, 2**0.5), DiscreteLaplace(5, 1), PureDP(0.2))
    total = sum(rdp(part, ORDERS) for part in parts)
    assert np.allclose(rdp(Composed(parts), ORDERS), total, rtol=1e-14)
    assert np.allclose(rdp(Repeated(Composed(parts), 7), ORDERS), 7 * total, rtol=1e-14)
    assert np.array_equal(rdp(Composed(()), ORDERS), np.zeros(5))
    assert np.array_equal(rdp(Repeated(ApproxDP(1, 0.1), 0), ORDERS), np.zeros(5))


def test_rho_covers_the_curve_and_adds():
    parts = (Gaussian(3, 1), DiscreteGaussian(4, 2**0.5), DiscreteLaplace(5, 1), PureDP(0.2), ApproxDP(0.3, 0.0))
    assert np.all(rdp(Composed(parts), ORDERS) <= ORDERS * zcdp(Composed(parts)))
    assert zcdp(Repeated(Composed(parts), 3)) == pytest.approx(3 * sum(zcdp(part) for part in parts), rel=1e-14)
    assert zcdp(Composed(())) == zcdp(Repeated(ApproxDP(1, 0.1), 0)) == 0.0
    assert zcdp(DiscreteGaussian(10, 1)) == pytest.approx(1 / 200, rel=1e-12)


def test_an_approximate_event_has_no_rho_and_an_infinite_curve():
    with pytest.raises(UnsupportedEvent, match="no zCDP bound"):
        zcdp(Composed((PureDP(1), ApproxDP(0.1, 1e-9))))
    assert np.all(rdp(ApproxDP(0.1, 1e-9), ORDERS) == inf)
    assert np.array_equal(rdp(ApproxDP(0.1, 0), ORDERS), rdp(PureDP(0.1), ORDERS))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_best_order_is_found_continuously(rho, delta):
    def at(log_order_less_one):
        a = 1 + exp(log_order_less_one)
        return a * rho + log(1 - 1 / a) - log(delta * a) / (a - 1)

    best = min(minimize_scalar(at, bracket=(x, x + 1)).fun for x in range(-6, 12))
    assert epsilon_of_zcdp(rho, delta) == pytest.approx(max(best, 0.0), rel=1e-9, abs=1e-12)
    on_a_grid = min(at(log(a - 1)) for a in range(2, 40))
    assert epsilon_of_zcdp(rho, delta) <= max(on_a_grid, 0) * (1 + 1e-12)


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5])
def test_zcdp_converts_both_ways(rho):
    assert delta_of_zcdp(rho, epsilon_of_zcdp(rho, 1e-6)) == pytest.approx(1e-6, rel=1e-6)
    assert epsilon_of_zcdp(0.0, 1e-6) == delta_of_zcdp(0.0, 1.0) == 0.0
    assert epsilon_of_zcdp(rho, 0.0) == inf


def test_the_conversion_covers_a_mechanism_whose_price_is_known():
    for mu in (0.1, 1.0, 3.0):
        rho = mu * mu / 2
        assert epsilon_of_zcdp(rho, 1e-5) > epsilon_of_gaussian(1e-5, mu)
        assert delta_of_zcdp(rho, 2.0) > exp(log_delta(2.0, mu))
    assert epsilon_of_curve(lambda a: a * 0, 1e-5)[0] == 0.0
    assert delta_of_curve(lambda a: a * 0, 1.0)[0] < 1e-100


def test_half_the_rho_would_show():
    from quorate.accounting.gaussian import epsilon_of_gaussian

    assert epsilon_of_zcdp(0.25, 1e-5) < epsilon_of_gaussian(1e-5, 1.0)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("bad", [[1.0], [0.5, 2.0], [float("nan")], [float("inf")], 2.0, [[2.0]], ["2"], [True]])
def test_orders_must_be_a_row_of_numbers_above_one(bad):
    with pytest.raises(InvalidParameter, match="orders must"):
        rdp(PureDP(1), bad)


# --- rounds of randomized response, and the ρ of a pure mechanism -----------------------------------------------------


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
