import json
from dataclasses import replace
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.accounting import Guarantee
from quorate.accounting.guarantee import rounded_up
from quorate.errors import InvalidParameter

PLAIN = Guarantee(
    epsilon=1.0,
    delta=1e-5,
    unit="patient",
    neighbours="add, remove or replace one patient",
    mechanism="977 votes with discrete Gaussian noise, sigma 116",
    accounting="discrete Gaussian, exact",
)
CAVEATS = replace(PLAIN, caveats=("by position: a row that is deleted must be blanked", "nothing durable was recorded"))


@pytest.mark.parametrize("guarantee", [PLAIN, CAVEATS])
def test_it_reads_back_as_itself(guarantee):
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert json.loads(guarantee.to_json())["epsilon"] == 1.0


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", PLAIN.to_json().replace("unit", "units"), PLAIN.to_json().replace("[]", '"no"')]
)
def test_what_is_not_exactly_a_guarantee_is_refused(text):
    with pytest.raises(InvalidParameter, match="guarantee JSON"):
        Guarantee.from_json(text)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": -1},
        {"delta": 2},
        {"unit": ""},
        {"unit": 3},
        {"mechanism": "two\nlines"},
        {"caveats": "one"},
        {"caveats": (1,)},
    ],
)
def test_a_missing_text_or_a_wrong_number_is_refused(change):
    with pytest.raises(InvalidParameter):
        replace(PLAIN, **change)


def test_every_sentence_is_one_line_and_says_whom_it_is_about():
    for sentence in (str(CAVEATS), CAVEATS.for_data_subject(), CAVEATS.for_reviewer(), CAVEATS.for_engineer()):
        assert "\n" not in sentence
        assert "patient" in sentence
    assert CAVEATS.for_data_subject().startswith("Whether or not any one patient is in the data, what was published is")
    assert "732 times" in CAVEATS.for_data_subject()
    assert all(caveat in CAVEATS.for_reviewer() for caveat in CAVEATS.caveats)
    assert "epsilon=1.0 delta=1e-05" in CAVEATS.for_engineer()
    assert "2 caveats" in str(CAVEATS)


@pytest.mark.parametrize(
    ("epsilon", "delta", "right"), [(0.0, 0.0, 500), (1.0, 0.0, 732), (0.0, 1.0, 1000), (800.0, 0.0, 1000)]
)
def test_the_odds_at_the_corners(epsilon, delta, right):
    assert replace(PLAIN, epsilon=epsilon, delta=delta).right_guesses == right


@given(epsilon=st.floats(0.0, 6.0), delta=st.floats(0.0, 0.2))
def test_the_odds_are_those_of_the_best_test_against_the_worst_mechanism(epsilon, delta):
    yes = (1 - delta) * exp(epsilon) / (1 + exp(epsilon))
    p, q = np.array([delta, yes, 1 - delta - yes, 0.0]), np.array([0.0, 1 - delta - yes, yes, delta])
    best = np.maximum(p, q).sum() / 2
    guarantee = replace(PLAIN, epsilon=epsilon, delta=delta)
    assert (1 + guarantee.advantage) / 2 == pytest.approx(best, abs=1e-12)
    assert guarantee.right_guesses >= 1000 * best - 1e-6


@given(st.floats(1e-12, 1e6))
def test_a_printed_epsilon_is_never_below_the_charged_one(number):
    assert float(rounded_up(number)) >= number
    assert float(rounded_up(number)) <= number * 1.0011


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (0.05, 0.0, "is almost as likely to"),
        (1.0, 1e-5, "is nearly as likely to"),
        (2.0, 1e-6, "is at most 7.4 times less likely to"),
        (2.303, 0.0, "is at most 11 times less likely to"),
        (64.0, 0.0, "is at most 6.3e27 times less likely to"),
        (800.0, 0.0, "is any number of times less likely to"),
        (0.1, 1.0, "is any number of times less likely to"),
    ],
)
def test_a_weak_guarantee_names_its_factor_rounded_up(epsilon, delta, said):
    assert said in replace(PLAIN, epsilon=epsilon, delta=delta).for_data_subject()
