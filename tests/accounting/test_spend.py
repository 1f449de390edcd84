from fractions import Fraction
from math import ceil, inf, log, nan, sqrt
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.slow_prices import events, leaf_events

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    PureDP,
    Repeated,
    answers_allowed,
    calibrate,
    calibrate_sigma,
    calibration,
    delta,
    epsilon,
    explain,
    from_json,
    rdp,
    sampler_delta,
    to_json,
    zcdp,
)
from quorate.accounting.calibration import DRAWS_PER_ANSWER
from quorate.accounting.renyi import epsilon_of_curve, rdp_rule
from quorate.errors import InvalidParameter, UnsupportedEvent

DELTA = 1e-5
slow = settings(max_examples=15, deadline=None)


def close(a, b, rel=1e-6):
    return a == b or a == pytest.approx(b, rel=rel, abs=1e-9)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("event", "at", "rule", "figure"),
    [
        (Repeated(Gaussian(40, 1), 977), 1 / 39073, "gaussian", 3.12),
        (Repeated(DiscreteGaussian(40, 1), 977), 1 / 39073, "discrete gaussian", 3.12),
        (Repeated(DiscreteGaussian(40, 2**0.5), 977), 1 / 39073, "discrete gaussian", 4.67),
        (Repeated(Gaussian(109.872372, 1), 977), 1 / 39073, "gaussian", 1.00),
        (Repeated(PureDP(0.1), 100), 1e-6, "optimal composition", 4.77),
        (Repeated(DiscreteLaplace(10, 1), 100), 1e-6, "optimal composition", 4.77),
        (Repeated(DiscreteGaussian(40, 2), 100), 1e-5, "renyi", 2.17),
        (ApproxDP(0.5, 1e-5), 1e-5, "sum", 0.5),
        (PureDP(0.5), 0.0, "sum", 0.5),
        (Repeated(PureDP(0.5), 3), 0.0, "sum", 1.5),
        (Repeated(PureDP(0.5), 0), 0.0, "nothing", 0.0),
        (Composed(()), 0.0, "nothing", 0.0),
    ],
)
def test_the_rule_and_the_figure(event, at, rule, figure):
    value, name = explain(event, at)
    assert name == rule
    assert round(value, 2) == figure
    assert epsilon(event, at) == value >= figure - 0.005


def test_the_discrete_gaussian_costs_more_than_the_continuous_one_at_one_vote_of_noise():
    assert epsilon(DiscreteGaussian(1, 1), 1e-5) - epsilon(Gaussian(1, 1), 1e-5) > 0.05
    n = 977
    gap = epsilon(Repeated(DiscreteGaussian(40, 1), n), 1e-5) - epsilon(Repeated(Gaussian(40, 1), n), 1e-5)
    assert abs(gap) < 1e-6


@given(event=leaf_events, times=st.integers(0, 8))
@slow
def test_repeating_an_event_costs_the_same_as_composing_copies(event, times):
    copies = Composed((event,) * times)
    assert epsilon(Repeated(event, times), DELTA) == epsilon(copies, DELTA)
    assert delta(Repeated(event, times), 0.5) == delta(copies, 0.5)


@pytest.mark.heavy
@given(members=st.lists(events, max_size=4), seed=st.integers(0, 1000))
@slow
def test_the_order_of_composition_does_not_matter(members, seed):
    shuffled = [members[i] for i in np.random.default_rng(seed).permutation(len(members))]
    nested = Composed((Composed(tuple(shuffled[:1])), Composed(tuple(shuffled[1:]))))
    assert epsilon(Composed(tuple(members)), DELTA) == epsilon(nested, DELTA)


@pytest.mark.heavy
@given(event=events)
@slow
def test_an_event_and_its_json_cost_the_same(event):
    assert epsilon(from_json(to_json(event)), DELTA) == epsilon(event, DELTA)


@given(event=events, factor=st.floats(1.01, 100.0))
@slow
def test_epsilon_falls_in_delta_and_delta_falls_in_epsilon(event, factor):
    assert epsilon(event, DELTA * factor) <= epsilon(event, DELTA) * (1 + 1e-7) + 1e-12
    assert delta(event, 0.3 * factor) <= delta(event, 0.3) * (1 + 1e-5) + 1e-15


@given(event=events, more=leaf_events)
@slow
def test_one_more_release_never_costs_less(event, more):
    assert epsilon(Composed((event, more)), DELTA) >= epsilon(event, DELTA) * (1 - 1e-7) - 1e-9


@given(sigma=st.floats(2.0, 100.0), times=st.integers(1, 50), kind=st.sampled_from([Gaussian, DiscreteGaussian]))
@slow
def test_more_noise_never_costs_more(sigma, times, kind):
    assert epsilon(Repeated(kind(1.1 * sigma, 1.0), times), DELTA) < epsilon(Repeated(kind(sigma, 1.0), times), DELTA)


@pytest.mark.heavy
@given(event=events)
@slow
def test_epsilon_and_delta_are_inverse(event):
    value = epsilon(event, DELTA)
    if 0 < value < inf:
        assert delta(event, value) <= DELTA * (1 + 1e-5)
        assert delta(event, value * (1 - 1e-4)) >= DELTA * (1 - 1e-5) or explain(event, DELTA)[1] in ("sum", "renyi")


@given(event=events)
@slow
def test_no_rule_is_worse_than_the_renyi_curve(event):
    by_curve, _ = epsilon_of_curve(lambda orders: rdp_rule(event, orders), DELTA)
    assert epsilon(event, DELTA) <= by_curve * (1 + 1e-12)


@given(event=leaf_events, times=st.integers(1, 20))
@slow
def test_the_total_variation_of_many_releases_is_at_least_that_of_one(event, times):
    total_variation = delta(event, 0.0)
    assert delta(Repeated(event, times), 0.0) >= total_variation * (1 - 1e-9)


def test_delta_must_be_a_probability_below_one_and_epsilon_a_finite_number():
    for price, said, others in ((epsilon, "delta must be", (1.0, 1.5)), (delta, "epsilon must be", (inf,))):
        for bad in (nan, -0.1, "x", True, None, *others):
            with pytest.raises(InvalidParameter, match=said):
                price(PureDP(1), bad)


def test_an_unknown_event_is_an_error_and_never_free():
    class Home(Event):
        pass

    for price in (lambda e: epsilon(e, DELTA), lambda e: delta(e, 1.0), lambda e: rdp(e, [2.0]), zcdp, to_json):
        for event in (Home(), Composed((PureDP(1), Home()))):
            with pytest.raises(UnsupportedEvent, match=r"Home .*register_event"):
                price(event)
        for none in ("x", None, [PureDP(1)], PureDP):
            with pytest.raises(InvalidParameter, match=f"event must be an Event, got {type(none).__name__}"):
                price(none)


def test_gaussian_noise_has_no_epsilon_at_delta_zero():
    assert epsilon(Gaussian(40, 1), 0.0) == inf
    assert epsilon(ApproxDP(0.1, 1e-6), 1e-7) == inf
    assert epsilon(ApproxDP(0.1, 1.0), 0.5) == inf
    assert delta(ApproxDP(0.1, 1.0), 3.0) == 1.0


@pytest.mark.heavy
def test_a_mixture_is_cheaper_than_adding_up_its_parts():
    parts = [Repeated(DiscreteGaussian(150, 1), 640), Repeated(DiscreteGaussian(40, 2**0.5), 300)]
    whole = epsilon(Composed(tuple(parts)), 1e-5)
    assert whole < sum(epsilon(part, 5e-6) for part in parts) - 0.3
    assert whole >= max(epsilon(part, 1e-5) for part in parts)


def test_deep_nesting_is_priced():
    event = PureDP(1e-4)
    for _ in range(50):
        event = Composed((event, PureDP(1e-4)))
    assert close(epsilon(event, 0.0), 51e-4, 1e-12)


@pytest.mark.parametrize("event", [Gaussian(30, 1), DiscreteGaussian(30, 1), Composed((Gaussian(30, 1), PureDP(0.1)))])
def test_a_probability_below_every_float_is_not_rounded_to_none(event):
    assert 0 < delta(event, 3.0) < 1e-300


CASES = [
    (1.0, 1 / 39073, 977, 1.0),
    (1.0, 1 / 39073, 977, 2**0.5),
    (0.5, 1e-5, 163, 1.0),
    (2.0, 1e-5, 200, 2**0.5),
    (4.0, 1e-5, 10, 1.0),
    (8.0, 1e-5, 3, 2**0.5),
    (0.1, 1e-9, 5000, 2**0.5),
    (1.0, 1e-6, 100_000, 1.0),
    (20.0, 1e-5, 100, 1.0),
    (1.0, 1e-5, 100, 2.0),
    (1.0, 1e-15, 100, 1.0),
    (0.3, 1e-5, 1, 1.0),
]


def charged(sigma, delta, n_answers, l2_sensitivity):
    """What a ledger books: ε in steps of 1e-9 and δ in steps of 1e-18, rounded up, the sampler included."""
    price = epsilon(Repeated(DiscreteGaussian(sigma, l2_sensitivity), n_answers), delta)
    total = Fraction(delta) + Fraction(sampler_delta(n_answers * DRAWS_PER_ANSWER, price))
    return Fraction(ceil(Fraction(price) * 10**9), 10**9), Fraction(ceil(total * 10**18), 10**18)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("eps", "delta", "n_answers", "l2_sensitivity"), CASES)
def test_the_total_stays_within_the_budget_after_every_rounding_and_no_smaller_sigma_would_do(
    eps, delta, n_answers, l2_sensitivity
):
    result = calibrate(eps, delta, n_answers, l2_sensitivity)
    book_epsilon, book_delta = charged(result.sigma, result.delta, n_answers, l2_sensitivity)
    assert book_epsilon <= Fraction(eps)
    assert book_delta <= Fraction(delta)
    assert result.epsilon_left == pytest.approx(eps - result.epsilon, abs=1e-15)
    assert result.sigma == calibrate_sigma(eps, delta, n_answers, l2_sensitivity)
    assert epsilon(Repeated(DiscreteGaussian(result.sigma * (1 - 1e-6), l2_sensitivity), n_answers), delta) > eps


def test_the_published_figures():
    assert round(calibrate_sigma(1.0, 1 / 39073, 977, 1.0), 3) == 109.872
    assert round(calibrate_sigma(1.0, 1 / 39073, 977, 1.0, noise="continuous"), 3) == 109.872


@pytest.mark.parametrize("l2_sensitivity", [1.0, 2**0.5])
def test_the_papers_calibration_is_its_closed_form_and_asks_for_more(l2_sensitivity):
    eps, delta, n = 1.0, 1e-5, 300
    sigma = calibrate_sigma(eps, delta, n, l2_sensitivity, calibration="paper")
    spread = sqrt(2 * n * log(1 / delta)) * l2_sensitivity
    assert spread / sigma + n * l2_sensitivity**2 / (2 * sigma**2) == pytest.approx(eps, rel=1e-8)
    assert sigma > 1.2 * calibrate_sigma(eps, delta, n, l2_sensitivity)
    assert epsilon(Repeated(Gaussian(sigma, l2_sensitivity), n), delta) < eps


def test_a_sigma_that_forgets_the_root_of_two_overruns():
    sigma = calibrate_sigma(1.0, 1e-5, 100, 1.0)
    assert epsilon(Repeated(DiscreteGaussian(sigma, 2**0.5), 100), 1e-5) > 1.3


@pytest.mark.heavy
@given(
    eps=st.floats(0.05, 12.0),
    exponent=st.floats(3.0, 12.0),
    n=st.integers(1, 20_000),
    l2=st.sampled_from([1.0, 2**0.5]),
)
@settings(max_examples=40, deadline=None)
def test_answers_allowed_undoes_calibrate(eps, exponent, n, l2):
    delta = 10.0**-exponent
    result = calibrate(eps, delta, n, l2)
    assert result.epsilon <= eps
    assert answers_allowed(eps, delta, result.sigma, l2) >= n
    assert answers_allowed(eps, delta, result.sigma * (1 - 1e-5) * sqrt(n / (n + 1)), l2) <= n


@pytest.mark.parametrize("sigma", [0.6, 3.0, 40.0])
def test_answers_allowed_is_the_last_that_fits(sigma):
    n = answers_allowed(2.0, 1e-5, sigma, 2**0.5)
    assert n == 0 or epsilon(Repeated(DiscreteGaussian(sigma, 2**0.5), n), 1e-5) <= 2.0
    assert epsilon(Repeated(DiscreteGaussian(sigma, 2**0.5), n + 1), 1e-5) > 2.0 - 1e-8


def test_a_call_takes_milliseconds():
    calibrate_sigma(1.0, 1e-5, 100, 1.0)
    start = process_time()
    for n in range(100, 120):
        calibrate_sigma(1.0, 1e-5, 10 * n, 1.0)
    assert (process_time() - start) / 20 < 0.02  # 0.5 ms at the desk


def test_what_is_out_of_range_is_refused():
    good = {"epsilon": 1.0, "delta": 1e-5, "n_answers": 10, "l2_sensitivity": 1.0}
    wrong = {
        "epsilon": (0, nan, 1e-10, 1000.0), "delta": (0.0, 1e-19, 1.0), "n_answers": (0, 10.0, True),
        "l2_sensitivity": (0.0, "1"),
    }  # fmt: skip
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidParameter):
                calibrate_sigma(*(good | {name: value}).values())


def test_unknown_options_are_refused():
    with pytest.raises(InvalidParameter, match="calibration must be"):
        calibrate_sigma(1.0, 1e-5, 10, 1.0, calibration="loose")
    with pytest.raises(InvalidParameter, match="noise must be"):
        calibrate_sigma(1.0, 1e-5, 10, 1.0, noise="none")
    with pytest.raises(InvalidParameter, match="delta must be"):
        calibrate_sigma(1.0, 0.0, 10, 1.0, calibration="paper")


def test_the_sampler_is_as_good_as_is_assumed_here():
    noise = pytest.importorskip("quorate.noise")
    from quorate.accounting.calibration import SAMPLER_TOTAL_VARIATION

    assert noise.TOTAL_VARIATION <= SAMPLER_TOTAL_VARIATION


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-9, 1e-18), (1e-9, 1e-9), (1e-9, 1e-5), (1e-7, 1e-7)])
@pytest.mark.parametrize("n_answers", [1, 100])
def test_the_least_budgets_are_answered_in_seconds_and_cost_what_continuous_noise_does(epsilon, delta, n_answers):
    start = process_time()
    result = calibrate(epsilon, delta, n_answers, 1.0)
    assert process_time() - start < 5.0
    assert charged(result.sigma, result.delta, n_answers, 1.0)[0] <= Fraction(epsilon)
    assert result.sigma <= calibrate_sigma(epsilon, delta, n_answers, 1.0, noise="continuous") * (1 + 1e-6)


def test_a_price_far_above_the_curve_is_met_in_few_evaluations(monkeypatch):
    """Where another rule prices the event, as near the least budgets once, σ is not raised in steps of 1e-9."""
    priced = []

    def dear(event, delta):
        priced.append(event)
        assert len(priced) < 200
        return 400 / event.event.sigma, "another"

    monkeypatch.setattr(calibration.spend, "explain", dear)
    result = calibrate(1.0, 1e-5, 100, 1.0)
    assert 400 <= result.sigma <= 400 * (1 + 1e-8)
