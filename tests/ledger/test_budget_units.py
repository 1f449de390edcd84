from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.ledger.budget import BudgetUnits, check_fits, float_down, float_up, units_down, units_up

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


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_charges_never_add_up_to_less_than_the_truth(thousandths):
    prices = [value / 7e5 for value in thousandths]
    charged = sum((BudgetUnits(epsilon_e9=units_up(price, 9)) for price in prices), BudgetUnits())
    assert charged.epsilon_e9 >= math.fsum(prices) * 1e9 * (1 - 1e-15)


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
