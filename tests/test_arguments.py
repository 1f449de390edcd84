"""What a number given by a user must be."""

import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest

from quorate.arguments import count, real
from quorate.errors import InvalidParameter, keyword, named, naming

NO_NUMBERS = [True, np.True_, "1", None, 1j, [1.0], math.nan, math.inf, -math.inf, np.float32("nan"), 10**400]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("bad", NO_NUMBERS)
@pytest.mark.parametrize("bounds", [{}, {"above": 0}, {"at_least": 0}, {"below": 1}, {"at_most": 1}])
def test_what_is_no_finite_number_is_refused_whatever_the_bounds(bad, bounds):
    with pytest.raises(InvalidParameter, match=r"^epsilon must be a .*number.*, got "):
        real("epsilon", bad, **bounds)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("good", [1, 1.0, np.float64(1), np.float32(1), np.int64(1), Fraction(1)])
def test_every_kind_of_number_is_taken_as_a_float(good):
    assert real("epsilon", good) == 1.0
    assert type(real("epsilon", good)) is float


def test_a_bound_is_inside_or_outside_as_its_name_says():
    assert real("delta", 0, at_least=0, at_most=1) == 0.0
    assert real("delta", 1, at_least=0, at_most=1) == 1.0
    for bounds in ({"above": 0, "at_most": 1}, {"above": -1, "below": 0}):
        with pytest.raises(InvalidParameter, match=r"delta must be a number > -?\d and <=? \d, got 0$"):
            real("delta", 0, **bounds)
    with pytest.raises(InvalidParameter, match="must be a number >= 0 and < 1, got 1"):
        real("delta", 1, at_least=0, below=1)
    with pytest.raises(InvalidParameter, match="must be a number >= 0, got -5e-324"):
        real("delta", -5e-324, at_least=0)


def test_minus_zero_is_zero():
    assert math.copysign(1, real("epsilon", -0.0, at_least=0)) == 1.0


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("bad", [*NO_NUMBERS[:-1], 1.0, 2.5, np.float64(3), -1, 0])
def test_a_count_is_whole_and_not_too_small(bad):
    with pytest.raises(InvalidParameter, match=r"^times must be a whole number >= 1, got "):
        count("times", bad, at_least=1)


def test_a_refusal_has_its_facts_as_fields_and_keeps_them_between_processes():
    refusal = InvalidParameter(parameter="n_teachers", got=0, expected="a whole number >= 1", advice="Raise it")
    assert str(refusal) == "n_teachers must be a whole number >= 1, got 0. Raise it"
    again = pickle.loads(pickle.dumps(refusal))  # noqa: S301 - of this test
    assert str(again) == str(refusal)
    assert vars(again) == vars(refusal)


@pytest.mark.parametrize(
    ("names", "assigned", "given"),
    [
        ({}, ("rounds=3", 'partition="unit"', "batched=True"), "rounds="),
        ({"rounds": "--rounds", "partition": "--partition", "batched": "--batched"},
         ("--rounds 3", "--partition unit", "--batched"), "--rounds"),
        ({"rounds": "[method] rounds", "partition": "[teachers] partition", "batched": "[teachers] batched"},
         ("[method] rounds = 3", '[teachers] partition = "unit"', "[teachers] batched = true"), "[method] rounds"),
    ],
)  # fmt: skip
def test_a_parameter_has_the_name_that_its_reader_types(names, assigned, given):
    with naming(names):
        assert (named("rounds", 3), named("partition", "unit"), named("batched", True)) == assigned
        assert keyword("rounds") == given
        with pytest.raises(InvalidParameter, match=f"^{re.escape(names.get('rounds', 'rounds'))} must be .*, got 0$"):
            count("rounds", 0, at_least=1)
    assert named("rounds", 3) == "rounds=3"


def test_inner_names_go_before_outer_ones_and_end_with_their_block():
    with naming({"rounds": "--rounds", "clip": "--clip"}):
        with pytest.raises(InvalidParameter, match=r"^\[method\] rounds"), naming({"rounds": "[method] rounds"}):
            count(named("rounds"), named("clip"))
        assert (named("rounds"), named("clip")) == ("--rounds", "--clip")
