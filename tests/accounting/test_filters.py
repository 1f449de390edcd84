from dataclasses import FrozenInstanceError
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.accounting import (
    ApproxDP,
    DiscreteGaussian,
    Filter,
    Odometer,
    PureDP,
    Repeated,
    epsilon_of_zcdp,
    rdp,
    zcdp,
)
from quorate.errors import BudgetExhausted, InvalidParameter, UnsupportedEvent

ANSWER = DiscreteGaussian(10.0, 1.0)


def charge_until_refused(budget, event):
    count = 0
    while True:
        try:
            budget = budget.charge(event)
        except BudgetExhausted as refusal:
            return budget, count, refusal
        count += 1


def test_a_filter_stops_before_its_limit():
    budget, count, refusal = charge_until_refused(Filter(limit=0.5 + 1e-9), ANSWER)
    assert count == 100
    assert budget.spent <= budget.limit
    assert refusal.unit == "ρ"
    assert refusal.spent == budget.spent
    assert refusal.requested == zcdp(ANSWER)
    assert refusal.limit == budget.limit


def test_a_renyi_filter_holds_one_order():
    budget = Filter(limit=1.0 + 1e-9, order=10.0)
    budget, count, refusal = charge_until_refused(budget, ANSWER)
    assert count == 20
    assert budget.spent == pytest.approx(20 * rdp(ANSWER, [10.0])[0], rel=1e-12)
    assert refusal.unit == "ε"


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
    from fractions import Fraction

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


def ever_passed(formula, *, delta, runs=200_000, steps=60):
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
def test_the_loss_seldom_ever_passes_the_odometer():
    from scipy.stats import binom

    delta, rate = 0.01, 2.0
    count, runs = ever_passed(lambda total: total + rate * total + log(1 / delta) / rate, delta=delta)
    assert binom.sf(count - 1, runs, delta) > 1e-6


@pytest.mark.heavy
def test_that_test_catches_a_meter_that_leaves_out_the_price_of_looking():
    from scipy.stats import binom

    delta, rate = 0.01, 2.0
    count, runs = ever_passed(lambda total: total + log(1 / delta) / (4 * rate), delta=delta)
    assert binom.sf(count - 1, runs, delta) < 1e-6
