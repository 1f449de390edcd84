import json
from dataclasses import replace
from itertools import combinations
from math import exp

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quorate.accounting import Guarantee
from quorate.accounting.attacker import ALMOST, NEARLY, SMALL_DELTA, factor, rounded_up
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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "text", ["", "[]", "{}", PLAIN.to_json().replace("unit", "units"), PLAIN.to_json().replace("[]", '"no"')]
)
def test_what_is_not_exactly_a_guarantee_is_refused(text):
    with pytest.raises(InvalidParameter, match="guarantee JSON"):
        Guarantee.from_json(text)


@pytest.mark.default_cases(4)
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
    assert "on average at most 732 of 1,000 times" in CAVEATS.for_data_subject()
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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (0.0, 0.0, "is exactly as likely to come out the same."),
        (
            0.0,
            1e-5,
            "almost as likely to come out the same: its probability differs by a factor of at most 1, except with",
        ),
        (0.05, 0.0, "is almost as likely to come out the same: its probability differs by a factor of at most 1.052."),
        (0.2, 1e-6, "is nearly as likely to come out the same: its probability differs by a factor of at most 1.222, "),
        (
            0.2,
            0.01,
            "is at most 1.222 times more or less likely to come out the same, except with probability 0.01 (1 in",
        ),
        (
            1.0,
            1e-5,
            "is at most 2.719 times more or less likely to come out the same, except with probability 1e-5 (1 in",
        ),
        (1.0, 3e-5, "except with probability 3e-5 (1 in 33,333)."),
        (1.0, 1e-12, "except with probability 1e-12."),
        (2.0, 1e-6, "is at most 7.39 times more or less likely to"),
        (2.303, 0.0, "is at most 10.01 times more or less likely to come out the same."),
        (64.0, 0.0, "is at most 6.236e27 times more or less likely to"),
        (800.0, 0.0, "is at most e^800 times more or less likely to"),
        (0.1, 1.0, "nothing is promised: a δ of 1 allows everything"),
    ],
)
def test_the_sentence_names_the_factor_rounded_up_and_delta(epsilon, delta, said):
    assert said in replace(PLAIN, epsilon=epsilon, delta=delta).for_data_subject()


@given(epsilon=st.floats(0, 3), delta=st.floats(0, 0.1))
def test_almost_and_nearly_are_said_of_small_factors_alone(epsilon, delta):
    said = replace(PLAIN, epsilon=epsilon, delta=delta).for_data_subject()
    small = delta <= SMALL_DELTA
    assert ("almost as likely" in said) == (small and exp(epsilon) <= ALMOST and (epsilon, delta) != (0, 0))
    assert ("nearly as likely" in said) == (small and ALMOST < exp(epsilon) <= NEARLY)
    assert "nearly as likely" not in replace(PLAIN, epsilon=1.0, delta=delta).for_data_subject()


@given(st.floats(1e-12, 700))
def test_the_factor_that_is_named_is_never_below_e_to_the_epsilon(epsilon):
    with mpmath.workdps(400):
        assert mpmath.mpf(factor(epsilon)) >= mpmath.exp(mpmath.mpf(epsilon))


@given(
    p=st.lists(st.integers(0, 50), min_size=2, max_size=6),
    q=st.lists(st.integers(0, 50), min_size=6, max_size=6),
    epsilon=st.floats(0, 2),
)
def test_except_with_probability_delta_is_what_the_definition_says(p, q, epsilon):
    """Cut off what lies above e^ε times the other law: δ is what the largest of both cuts weighs, and no less."""
    q = q[: len(p)]
    assume(sum(p) > 0 and sum(q) > 0)
    p, q = (np.array(law) / sum(law) for law in (p, q))
    ratio = exp(epsilon)
    by_sets = max(
        p[list(chosen)].sum() - ratio * q[list(chosen)].sum()
        for p, q in ((p, q), (q, p))
        for size in range(len(p) + 1)
        for chosen in combinations(range(len(p)), size)
    )
    kept_p, kept_q = np.minimum(p, ratio * q), np.minimum(q, ratio * p)
    assert max(1 - kept_p.sum(), 1 - kept_q.sum()) == pytest.approx(by_sets, abs=1e-12)
    assert np.all(kept_p <= ratio * kept_q + 1e-12)
    assert np.all(kept_q <= ratio * kept_p + 1e-12)
