"""The odds in the report are those of the best possible test, found here by trying every test there is.

The curve of an optimal attacker: against the Gaussian's closed form, and never above what the guarantee leaves.
"""

from __future__ import annotations

from itertools import product
from math import ceil, exp

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from quorate.accounting import (
    DiscreteGaussian,
    Gaussian,
    Guarantee,
    PureDP,
    Repeated,
    delta,
    miss_rate,
    trade_off,
    trade_off_of,
    worlds_told_apart,
)
from quorate.accounting.attacker import FALSE_ALARMS, delta_cautions, epsilon_caution, worlds_told_apart_by
from quorate.errors import InvalidParameter

EPSILONS = st.floats(0, 12)
DELTAS = st.floats(0, 1)


def randomised_response(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """Output probabilities of (ε, δ) randomised response in the two worlds: it is the worst that (ε, δ) allows."""
    truth = (1 - delta) * exp(epsilon) / (1 + exp(epsilon))
    lie = (1 - delta) / (1 + exp(epsilon))
    return [delta, truth, lie, 0.0], [0.0, lie, truth, delta]


def best_success(world: list[float], other: list[float]) -> float:
    """The highest probability, over all tests, of naming the world that a fair coin chose."""
    rules = product((0, 1), repeat=len(world))
    return max(sum((q if says else p) / 2 for says, p, q in zip(rule, world, other, strict=True)) for rule in rules)


def lowest_miss(world: list[float], other: list[float], false_alarm: float) -> float:
    """The lowest miss rate at this false-alarm rate: on the lower hull of what the tests without a coin reach."""
    points = []
    for rule in product((0, 1), repeat=len(world)):
        alarms = sum(p for says, p in zip(rule, world, strict=True) if says)
        misses = sum(q for says, q in zip(rule, other, strict=True) if not says)
        points.append((alarms, misses))
    best = min((b for a, b in points if a <= false_alarm), default=1.0)
    for (a, b), (c, d) in product(points, repeat=2):
        if a < false_alarm < c:
            best = min(best, b + (d - b) * (false_alarm - a) / (c - a))
    return best


@given(epsilon=EPSILONS, delta=DELTAS)
def test_the_odds_are_reached_by_randomised_response_and_the_best_of_all_tests(epsilon, delta):
    brute = 1000 * best_success(*randomised_response(epsilon, delta))

    assert worlds_told_apart(epsilon, delta) in {ceil(brute - 1e-9), ceil(brute), ceil(brute + 1e-9)}


@pytest.mark.parametrize("sigma", [0.5, 2.0, 9.0])
def test_by_the_exact_price_the_odds_are_those_of_the_law_that_is_drawn_from(sigma):
    """The best test names the likelier world at each integer: summed here, for noise that is moved by one."""
    at = range(-200, 202)
    law = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(-202, 203)}
    mass = sum(law.values())
    right = float(1000 * sum(max(law[k], law[k - 1]) for k in at) / (2 * mass))
    told = worlds_told_apart_by(delta(DiscreteGaussian(sigma, 1.0), 0.0))

    assert right <= told <= right + 1.1
    assert worlds_told_apart_by(delta(DiscreteGaussian(2 * sigma, 1.0), 0.0)) < right  # a price of half the noise


def test_a_mechanism_that_gives_away_more_than_it_claims_passes_the_odds():
    cheating = 1000 * best_success(*randomised_response(1.2, 0.0))

    assert cheating > worlds_told_apart(1.0, 0.0) + 30


@given(
    epsilon=st.floats(0, 4), weights=st.lists(st.tuples(st.floats(0.01, 1), st.floats(-1, 1)), min_size=2, max_size=5)
)
def test_no_mechanism_within_epsilon_is_told_apart_more_often(epsilon, weights):
    world = [w for w, _ in weights]
    other = [w * exp(tilt * epsilon / 2) for w, tilt in weights]  # after normalising, ratios lie within e^±ε
    world, other = ([w / sum(side) for w in side] for side in (world, other))

    assert 1000 * best_success(world, other) <= worlds_told_apart(epsilon, 0.0) + 1e-9


@given(epsilon=st.floats(0, 8), delta=st.floats(0, 0.9), false_alarm=st.floats(0, 1))
def test_the_miss_rate_is_the_lowest_that_any_test_of_randomised_response_has(epsilon, delta, false_alarm):
    brute = lowest_miss(*randomised_response(epsilon, delta), false_alarm)

    assert miss_rate(epsilon, delta, false_alarm) == pytest.approx(brute, abs=1e-9)


@given(epsilon=EPSILONS, delta=DELTAS)
def test_the_odds_are_those_of_the_trade_off_curve(epsilon, delta):
    meet = (1 - delta) / (1 + exp(epsilon))
    on_curve = min(a + miss_rate(epsilon, delta, a) for a in [meet, *(i / 500 for i in range(501))])

    assert worlds_told_apart(epsilon, delta) == pytest.approx(1000 * (1 - on_curve / 2), abs=1 + 1e-9)


def test_no_privacy_loss_is_a_coin_and_all_of_it_is_certainty():
    assert worlds_told_apart(0.0, 0.0) == 500
    assert worlds_told_apart(0.0, 1.0) == 1000
    assert worlds_told_apart(5000.0, 0.0) == 1000


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 3.7, 8.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5, 0.01, 1.0])
def test_the_guarantee_says_the_same_odds(epsilon, delta):
    said = Guarantee(epsilon=epsilon, delta=delta, unit="u", neighbours="n", mechanism="m", accounting="a")

    right = worlds_told_apart(epsilon, delta)
    assert said.right_guesses == right
    assert (1 + said.advantage) / 2 == pytest.approx(best_success(*randomised_response(epsilon, delta)), abs=1e-12)
    if (delta, epsilon) != (0.0, 0.0) and delta < 1:
        assert f" on average at most {right:,} of 1,000 times" in said.for_data_subject()


@given(epsilon=EPSILONS, delta=st.integers(0, 10**6).map(lambda n: n / 10**6), pairs=st.integers(1, 10**9))
def test_the_odds_are_never_below_the_exact_number_and_less_than_one_pair_above(epsilon, delta, pairs):
    with mpmath.workdps(60):
        exact = pairs * (1 - (1 - mpmath.mpf(repr(delta))) / (1 + mpmath.exp(mpmath.mpf(epsilon))))
        assert exact <= worlds_told_apart(epsilon, delta, pairs) < exact + 1 + mpmath.mpf("1e-6")


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1.0, 0.0), (float("nan"), 0.0), (1.0, -1e-9), (1.0, 1.1), (float("inf"), 0)]
)
def test_what_is_no_guarantee_has_no_odds(epsilon, delta):
    with pytest.raises(InvalidParameter):
        worlds_told_apart(epsilon, delta)


@pytest.mark.parametrize("mu", [0.1, 0.3, 1.0, 2.0])
def test_that_of_a_gaussian_is_the_closed_form_from_below(mu):
    truth = norm.cdf(norm.ppf(1 - np.asarray(FALSE_ALARMS)) - mu)
    drawn = np.asarray(trade_off(Gaussian(1 / mu, 1.0)).misses)
    assert np.all(drawn <= truth + 1e-9)
    assert np.max(truth - drawn) < 0.02  # as close as the grid of ε draws it


def test_a_curve_that_promises_more_than_the_truth_is_caught():
    truth = norm.cdf(norm.ppf(1 - np.asarray(FALSE_ALARMS)) - 1.0)
    assert not np.all(np.asarray(trade_off(Gaussian(1.1, 1.0)).misses) <= truth + 1e-9)


def test_many_answers_are_one_gaussian():
    one, many = Gaussian(2.0, 1.0), Repeated(DiscreteGaussian(40.0, 1.0), 400)  # 40/√400 = 2
    np.testing.assert_allclose(trade_off(one).misses, trade_off(many).misses, atol=1e-3)


def test_randomized_response_is_two_lines():
    drawn = trade_off(PureDP(1.0), (0.0, 0.1, 1 / (1 + exp(1)), 0.9))
    np.testing.assert_allclose(drawn.misses, [1.0, 1 - 0.1 * exp(1), 1 / (1 + exp(1)), exp(-1) * 0.1], atol=1e-9)


def test_one_guarantee_is_its_own_rate_of_misses_and_more_points_never_leave_the_attacker_more():
    alone = trade_off_of([(1.0, 1e-5)], FALSE_ALARMS)
    assert alone.misses == tuple(miss_rate(1.0, 1e-5, alpha) for alpha in FALSE_ALARMS)
    more = trade_off_of([(1.0, 1e-5), (0.1, 0.05)], FALSE_ALARMS)
    assert all(a <= b for a, b in zip(alone.misses, more.misses, strict=True))
    assert more.advantage <= alone.advantage


def test_no_prices_are_refused():
    with pytest.raises(InvalidParameter, match="at least one"):
        trade_off_of([])


def test_a_budget_that_promises_little_or_gives_a_unit_away_is_told():
    assert not epsilon_caution(10.0, 1e-5, "record").applies
    assert epsilon_caution(10.1, 1e-5, "record").code == "epsilon-promises-little"
    for n, delta_, codes in (
        (1_000, 0.01, ["delta-gives-away-a-unit"]), (None, 0.01, ["delta-was-not-compared"]), (1_000, 1e-5, []),
    ):  # fmt: skip
        assert [caution.code for caution in delta_cautions(n, delta_, "record") if caution.applies] == codes
