"""Budgets, prices and totals in whole units, each rounded the private way; and what charges promise together."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.accounting import ApproxDP, DiscreteGaussian, PureDP, Repeated, epsilon, zcdp
from quorate.errors import BudgetExhausted, InvalidParameter, PreconditionFailed, UnsupportedEvent
from quorate.ledger.budget import (
    Budget,
    BudgetUnits,
    Totals,
    check_fits,
    comes_to,
    float_down,
    float_up,
    largest_rho,
    left_totals,
    spent_totals,
    units_down,
    units_up,
)
from quorate.ledger.pricing import price
from quorate.ledger.scope import DIFFERENT_NEIGHBOURS, GuaranteeScope, combined_scope


def slow_delta_of_zcdp(rho, eps):
    """Corollary 13 of Canonne, Kamath and Steinke, on grids of orders that close in, with 40 digits."""
    with mpmath.workdps(40):
        rho, eps = mpmath.mpf(rho), mpmath.mpf(eps)

        def bound(log_excess):
            excess = mpmath.mpf(10) ** log_excess
            order = 1 + excess
            return mpmath.exp(excess * (order * rho - eps)) / excess * (1 - 1 / order) ** order

        centre, step = mpmath.mpf(2), mpmath.mpf(1) / 4
        for _ in range(6):
            centre = min((centre + k * step for k in range(-20, 21)), key=bound)
            step /= 10
        return bound(centre)


@pytest.mark.heavy
@settings(max_examples=15, deadline=None)
@given(st.floats(0.01, 20), st.floats(1e-12, 1e-2))
def test_the_largest_rho_is_affordable_and_the_next_is_not(eps, delta):
    rho = largest_rho(eps, delta)
    assert slow_delta_of_zcdp(rho / 1e9, eps) <= delta * (1 + 1e-9)
    assert slow_delta_of_zcdp((rho + 2) / 1e9, eps) > (delta - 1.1e-18) * (1 - 1e-9)


def test_a_zcdp_budget_comes_to_less_where_epsilon_or_delta_are_smaller():
    rhos = [Budget(eps, 1e-6, "zcdp").limit.rho_e9 for eps in (0.1, 0.5, 1, 4)]
    assert rhos == sorted(rhos)
    assert Budget(1, 1e-7, "zcdp").limit.rho_e9 < Budget(1, 1e-6, "zcdp").limit.rho_e9


WRONG = [{"epsilon": bad} for bad in (0, -1, math.nan, math.inf, True, "1", None, 1e-10)]
WRONG += [{"delta": bad} for bad in (1, -1e-9, math.nan, True, "0", None)]
WRONG += [{"composition": "best of both"}, {"delta": 0.0, "composition": "zcdp"}]


@pytest.mark.default_cases(8)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_budget_has_a_positive_epsilon_a_delta_below_one_and_a_known_composition(wrong):
    with pytest.raises(InvalidParameter):
        Budget(**{"epsilon": 1.0, "delta": 1e-5, **wrong})
    assert Budget(np.float64(1), np.float32(0)).composition == "sum"


def test_a_price_is_the_accountants_rounded_up():
    event = Repeated(DiscreteGaussian(40, 2**0.5), 100)
    charged = price(event, composition="sum", delta=1e-6)
    assert charged == BudgetUnits(epsilon_e9=units_up(epsilon(event, 1e-6), 9), delta_e18=10**12)
    assert epsilon(event, 1e-6) * 1e9 <= charged.epsilon_e9 < epsilon(event, 1e-6) * 1e9 + 1
    charged = price(event, composition="zcdp", delta=None)
    assert charged == BudgetUnits(rho_e9=units_up(zcdp(event), 9))
    # More may be charged.
    assert price(PureDP(0.5), composition="sum", delta=0, epsilon=0.75) == BudgetUnits(epsilon_e9=750_000_000)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("event", "arguments", "error"),
    [
        *((PureDP(0.5), {"composition": "sum", "delta": bad}, InvalidParameter) for bad in (None, 1.0, -0.1, True)),
        (PureDP(0.5), {"composition": "sum", "delta": 0, "epsilon": 0.4}, InvalidParameter),
        (DiscreteGaussian(5, 1), {"composition": "sum", "delta": 0}, InvalidParameter),
        (ApproxDP(0.5, 1e-6), {"composition": "sum", "delta": 1e-7}, InvalidParameter),
        (ApproxDP(0.5, 1e-6), {"composition": "zcdp", "delta": None}, UnsupportedEvent),
        ("0.5", {"composition": "sum", "delta": 0}, InvalidParameter),
    ],
)
def test_what_has_no_price_is_refused(event, arguments, error):
    with pytest.raises(error):
        price(event, **arguments)


def test_totals_round_outward_and_exhaust_the_budget_to_the_last_unit():
    budget = Budget(math.log(3), 1e-5)
    left = left_totals(BudgetUnits(), budget.limit, budget)
    assert left.epsilon <= budget.epsilon
    charged = price(PureDP(left.epsilon), composition="sum", delta=0) + BudgetUnits(delta_e18=units_up(left.delta, 18))
    assert charged == budget.limit
    assert left_totals(charged, budget.limit, budget) == Totals(epsilon=0.0, delta=0.0, rho=None)


def test_totals_under_zcdp_say_what_the_spent_rho_is_worth():
    budget = Budget(1.0, 1e-5, "zcdp")
    assert spent_totals(BudgetUnits(), budget) == Totals(epsilon=0.0, delta=0.0, rho=0.0)
    spent = spent_totals(budget.limit, budget)
    assert 1 - 1e-6 < spent.epsilon <= 1.0 + 1e-9
    assert spent.delta == 1e-5
    assert left_totals(budget.limit, budget.limit, budget).rho == 0.0


def test_a_recorded_limit_may_be_lower_in_rho_but_not_higher():
    budget = Budget(1.0, 1e-5, "zcdp")
    rho = budget.limit.rho_e9
    assert comes_to(budget, BudgetUnits(rho_e9=rho - 1000))
    assert comes_to(budget, BudgetUnits(rho_e9=rho + 1))
    assert not comes_to(budget, BudgetUnits(rho_e9=rho + 2))
    assert not comes_to(Budget(1.0, 1e-5), BudgetUnits(epsilon_e9=10**9 + 1, delta_e18=10**13))
    assert not comes_to(Budget(1.0, 1e-5), BudgetUnits(epsilon_e9=10**9, delta_e18=10**13, rho_e9=1))


values = st.floats(min_value=0, max_value=1e6, allow_nan=False)
digits = st.sampled_from([9, 18])


def slow_units(value, digits, rounding):
    """The same, by decimal arithmetic with plenty of digits."""
    return int(Decimal(repr(value)).scaleb(digits).to_integral_value(rounding))


@given(values, digits)
def test_units_are_the_decimal_rounded_outward(value, digits):
    assert units_up(value, digits) == slow_units(value, digits, ROUND_CEILING)
    assert units_down(value, digits) == slow_units(value, digits, ROUND_FLOOR)


@given(st.integers(0, 10**20), digits)
def test_floats_of_units_never_err_to_the_wrong_side(units, digits):
    assert units_up(float_down(units, digits), digits) <= units <= units_down(float_up(units, digits), digits)
    assert math.isclose(float_up(units, digits), float_down(units, digits), rel_tol=1e-15)


@given(st.integers(0, 10**15), digits)
def test_up_to_fifteen_digits_floats_and_units_go_both_ways(units, digits):
    assert units_up(float_down(units, digits), digits) == units == units_down(float_up(units, digits), digits)


def test_ten_charges_of_a_tenth_fill_one():
    tenth = BudgetUnits(epsilon_e9=units_up(0.1, 9))
    limit = BudgetUnits(epsilon_e9=units_down(1.0, 9))
    spent = BudgetUnits()
    for _ in range(10):
        check_fits(tenth, spent=spent, limit=limit)
        spent += tenth
    with pytest.raises(BudgetExhausted):
        check_fits(BudgetUnits(epsilon_e9=1), spent=spent, limit=limit)


@pytest.mark.parametrize(
    ("amounts", "unit"),
    [(BudgetUnits(epsilon_e9=6), "ε"), (BudgetUnits(delta_e18=6), "δ"), (BudgetUnits(rho_e9=6), "ρ")],
)
def test_each_amount_has_its_own_limit_and_the_error_names_it(amounts, unit):
    five = BudgetUnits(epsilon_e9=5, delta_e18=5, rho_e9=5)
    with pytest.raises(BudgetExhausted) as caught:
        check_fits(amounts, spent=five, limit=BudgetUnits(epsilon_e9=10, delta_e18=10, rho_e9=10))
    assert caught.value.unit == unit
    assert caught.value.requested > caught.value.limit - caught.value.spent


def test_all_amounts_that_pass_are_named_at_once():
    five = BudgetUnits(epsilon_e9=5, delta_e18=5)
    with pytest.raises(BudgetExhausted) as caught:
        check_fits(five, spent=five, limit=BudgetUnits(epsilon_e9=9, delta_e18=9))
    assert [each.unit for each in caught.value.all] == ["ε", "δ"]
    message = str(caught.value)
    assert message.startswith("charging ε=5e-09 on top of ε=5e-09 would pass the limit ε=9e-09, and δ=5e-18 on top of")
    assert message.count("raise the budget with a reason") == 1


@pytest.mark.parametrize("bad", [-1, 1.0, True, "1"])
def test_amounts_are_whole(bad):
    with pytest.raises(InvalidParameter):
        BudgetUnits(epsilon_e9=bad)


RELATIONS = {
    "add, remove or replace one person": {"add", "remove", "replace"},
    "add, remove or replace one person, as the owner states": {"add", "remove", "replace"},
    "replace one person": {"replace"},
}
scopes = st.builds(
    GuaranteeScope,
    unit=st.just("person"),
    neighbours=st.sampled_from(sorted(RELATIONS)),
    caveats=st.lists(st.sampled_from(["n is public", "seeded", "stated"]), unique=True).map(tuple),
)


@given(every=st.lists(scopes, min_size=1, max_size=6))
def test_the_whole_holds_for_the_changes_of_all_with_the_caveats_of_any(every):
    together = combined_scope(every)
    covered = set.intersection(*(RELATIONS[each.neighbours] for each in every))
    assert RELATIONS[together.neighbours.removesuffix(", as the owner states")] == covered
    assert together.neighbours.endswith("states") == any(each.neighbours.endswith("states") for each in every)
    assert {caveat for each in every for caveat in each.caveats} == set(together.caveats) - {DIFFERENT_NEIGHBOURS}
    mixed = len({frozenset(RELATIONS[each.neighbours]) for each in every}) > 1
    assert (DIFFERENT_NEIGHBOURS in together.caveats) == mixed
    assert len(set(together.caveats)) == len(together.caveats)


@given(every=st.lists(scopes, min_size=1, max_size=6))
def test_one_after_the_other_is_all_at_once(every):
    running = every[0]
    for each in every[1:]:
        running = combined_scope([running, each])
    whole = combined_scope(every)
    assert (running.neighbours, set(running.caveats)) == (whole.neighbours, set(whole.caveats))


@given(every=st.lists(scopes, min_size=1, max_size=3), place=st.integers(0, 3))
def test_two_units_have_no_guarantee_in_common(every, place):
    every.insert(min(place, len(every)), GuaranteeScope(unit="record", neighbours="replace one record"))
    with pytest.raises(PreconditionFailed, match="cannot be for two units"):
        combined_scope(every)


def test_changes_of_another_kind_are_not_taken_for_either():
    added = GuaranteeScope(unit="person", neighbours="add, remove or replace one person")
    either = GuaranteeScope(unit="person", neighbours="add or remove one person")
    assert combined_scope([added, either]).neighbours == either.neighbours  # which the first implies
    for phrase in ("change the label of one person", "replace one persona", "add or remove one persona"):
        with pytest.raises(PreconditionFailed, match="another kind of change"):
            combined_scope([added, GuaranteeScope(unit="person", neighbours=phrase)])
        alone = GuaranteeScope(unit="person", neighbours=phrase)
        assert combined_scope([alone, alone]) == alone
    with pytest.raises(InvalidParameter):
        combined_scope([])


WRONG_SCOPES = {
    "unit": ("", "  ", 3),
    "neighbours": ("two\nlines", "x" * 1001),
    "caveats": ("one", ("",), (None,), ["one"]),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name in WRONG_SCOPES for wrong in WRONG_SCOPES[name]])
def test_a_scope_is_made_of_lines_of_text(name, wrong):
    with pytest.raises(InvalidParameter):
        GuaranteeScope(**{"unit": "person", "neighbours": "replace one person", name: wrong})
