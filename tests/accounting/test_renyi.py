from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import exp, inf, isclose, log, tanh

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr
from scipy.stats import binom
from tests.accounting.slow_prices import laplace_pair, noise_pair, response_pair, true_delta

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Filter,
    Gaussian,
    Odometer,
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
from quorate.errors import BudgetExhausted, InvalidParameter, UnsupportedEvent

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
    assert epsilon_of_zcdp(0.25, 1e-5) < epsilon_of_gaussian(1e-5, 1.0)  # half the rho would show


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("bad", [[1.0], [0.5, 2.0], [float("nan")], [float("inf")], 2.0, [[2.0]], ["2"], [True]])
def test_orders_must_be_a_row_of_numbers_above_one(bad):
    with pytest.raises(InvalidParameter, match="orders must"):
        rdp(PureDP(1), bad)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("epsilon_0", "times", "epsilon"),
    [(0.5, 1, 0.2), (0.1, 100, 3.0), (1.0, 7, 2.5), (0.01, 2000, 1.0), (3.0, 4, 11.0), (1e-4, 50, 1e-3)],
)
def test_rounds_cost_what_the_formula_says_and_never_less(epsilon_0, times, epsilon):
    ratio = delta(Repeated(PureDP(epsilon_0), times), epsilon) / true_delta([(PureDP(epsilon_0), times)], epsilon)
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
def test_the_relative_entropy_of_two_coins_is_the_sum_over_both_sides(b, e):
    sides = rel_entr(np.array([b, 1 - b]), np.array([e, 1 - e])).sum()
    assert relative_entropy(b, e) == sides or isclose(relative_entropy(b, e), sides, rel_tol=1e-9, abs_tol=1e-12)


ANSWER = DiscreteGaussian(10.0, 1.0)


def charge_until_refused(budget, event):
    count = 0
    while True:
        try:
            budget = budget.charge(event)
        except BudgetExhausted as refusal:
            return budget, count, refusal
        count += 1


@pytest.mark.parametrize(
    ("budget", "fits", "unit", "price"),
    [
        (Filter(limit=0.5 + 1e-9), 100, "ρ", zcdp(ANSWER)),
        (Filter(limit=1.0 + 1e-9, order=10.0), 20, "ε", rdp(ANSWER, [10.0])[0]),
    ],
    ids=["of rho", "of one order"],
)
def test_a_filter_stops_before_its_limit(budget, fits, unit, price):
    budget, count, refusal = charge_until_refused(budget, ANSWER)
    assert (count, refusal.unit, refusal.requested) == (fits, unit, pytest.approx(price, rel=1e-12))
    assert budget.spent == pytest.approx(fits * price, rel=1e-12)
    assert refusal.spent == budget.spent <= budget.limit == refusal.limit


def test_a_refused_charge_changes_nothing_and_a_smaller_one_may_follow():
    budget = Filter(limit=0.01).charge(ANSWER)
    with pytest.raises(BudgetExhausted):
        budget.charge(Repeated(ANSWER, 5))
    assert budget.charge(DiscreteGaussian(100.0, 1.0)).spent > budget.spent
    with pytest.raises(FrozenInstanceError):
        budget.spent = 0.0


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (10.0, 1e-9)])
def test_a_filter_for_a_budget_is_the_largest_within_it(eps, delta):
    limit = Filter.for_budget(eps, delta).limit
    assert epsilon_of_zcdp(limit, delta) <= eps
    assert epsilon_of_zcdp(limit * (1 + 1e-9), delta) > eps


@pytest.mark.heavy
@given(sigmas=st.lists(st.floats(0.5, 100.0), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_sum_in_a_filter_is_never_below_the_sum_of_its_parts(sigmas):
    budget = Filter(limit=1e6)
    for sigma in sigmas:
        budget = budget.charge(DiscreteGaussian(sigma, 1.0))
    exact = sum(Fraction(1) / (2 * Fraction(sigma) ** 2) for sigma in sigmas)
    assert Fraction(budget.spent) >= exact


def test_an_event_without_a_rho_is_refused_by_both():
    with pytest.raises(UnsupportedEvent):
        Filter(limit=1.0).charge(ApproxDP(0.1, 1e-6))
    with pytest.raises(UnsupportedEvent):
        Odometer(rate=1.0, delta=1e-6).charge(ApproxDP(0.1, 1e-6))
    with pytest.raises(BudgetExhausted):
        Filter(limit=1.0, order=2.0).charge(ApproxDP(0.1, 1e-6))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "1"])
def test_limits_and_rates_must_be_above_zero(bad):
    for build in (
        lambda: Filter(limit=bad),
        lambda: Odometer(rate=bad, delta=0.1),
        lambda: Filter.for_budget(bad, 0.1),
    ):
        with pytest.raises(InvalidParameter):
            build()
    with pytest.raises(InvalidParameter):
        Filter(limit=1.0, order=1.0)
    with pytest.raises(InvalidParameter):
        Odometer(rate=1.0, delta=0.0)
    with pytest.raises(InvalidParameter):
        Filter.for_budget(1.0, 0.0)


def test_the_odometer_reads_its_formula_and_starts_above_zero():
    meter = Odometer(rate=4.0, delta=1e-5)
    assert meter.loss == pytest.approx(log(1e5) / 4)
    meter = meter.charge(Repeated(ANSWER, 20)).charge(PureDP(0.1))
    total = 0.1 + zcdp(PureDP(0.1))
    assert meter.loss == pytest.approx(total + 4 * total + log(1e5) / 4)


def test_the_tuned_odometer_reads_least_at_the_expected_total():
    rho = 0.3
    tuned = Odometer.tuned_to(rho=rho, delta=1e-5)
    reading = Odometer(rate=tuned.rate, delta=1e-5, spent=rho).loss
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert Odometer(rate=factor * tuned.rate, delta=1e-5, spent=rho).loss > reading


def ever_passed(formula, *, runs=200_000, steps=60):
    """How often the loss of adaptively chosen Gaussian answers ever passes a meter, over many runs."""
    rng = np.random.default_rng(7)
    loss, total, passed = np.zeros(runs), np.zeros(runs), np.zeros(runs, dtype=bool)
    for _ in range(steps):
        # an adversary that spends fast while it is far from the meter, and slows down near it
        mu = np.where(loss > 0.5, 0.05, 0.4)
        loss += mu * mu / 2 + mu * rng.standard_normal(runs)
        total += mu * mu / 2
        passed |= loss > formula(total)
    return passed.sum(), runs


@pytest.mark.heavy
def test_the_loss_seldom_ever_passes_the_odometer_and_often_one_that_leaves_out_the_price_of_looking():
    delta, rate = 0.01, 2.0
    for formula, holds in (
        (lambda total: total + rate * total + log(1 / delta) / rate, True),
        (lambda total: total + log(1 / delta) / (4 * rate), False),
    ):
        count, runs = ever_passed(formula)
        assert (binom.sf(count - 1, runs, delta) > 1e-6) == holds
