from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_events import events, leaf_events

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    PureDP,
    Repeated,
    delta,
    epsilon,
    explain,
    from_json,
    rdp,
    to_json,
)
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

    for price in (lambda e: epsilon(e, DELTA), lambda e: delta(e, 1.0), lambda e: rdp(e, [2.0])):
        with pytest.raises(UnsupportedEvent, match="Home"):
            price(Home())
        with pytest.raises(UnsupportedEvent, match="Home"):
            price(Composed((PureDP(1), Home())))


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
