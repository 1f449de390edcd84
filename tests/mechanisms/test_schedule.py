"""Whatever mechanism is named, the budget fills in its noise, is kept, and is used."""

from __future__ import annotations

import math

import pytest

from quorate.accounting import Composed, Repeated
from quorate.accounting import epsilon as price
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    LaplaceNoisyMax,
    PrivatePrediction,
    StableSparseVector,
    StreamMechanism,
    for_runs,
    noise_fields,
    required_fields,
)
from quorate.mechanisms.schedule import mechanism_for, open_fields, scale_of

GIVEN = {"threshold": 150.0, "confidence": 0.9, "cutoff": 5, "bins": 10}


def made(name, *, n_classes=3, answers=100, epsilon=1.0, delta=1e-5, **given):
    fields_ = {field: GIVEN[field] for field in required_fields(for_runs()[name])} | given
    return mechanism_for(
        for_runs()[name], fields_, n_classes=n_classes, n_teachers=250, answers=answers, epsilon=epsilon, delta=delta
    )


@pytest.mark.heavy
@pytest.mark.parametrize("name", for_runs())
@pytest.mark.parametrize(("n_classes", "answers", "epsilon"), [(2, 1, 0.5), (2, 300, 2.0), (5, 100, 1.0)])
def test_the_whole_schedule_costs_what_the_budget_has_and_hardly_less(name, n_classes, answers, epsilon):
    answers = max(answers, GIVEN["cutoff"]) if name in {"StableSparseVector", "SoftLabel"} else answers
    mechanism = made(name, n_classes=n_classes, answers=answers, epsilon=epsilon)
    cost = price(mechanism.schedule(answers), 1e-5)
    assert cost <= epsilon
    assert cost >= 0.99 * epsilon


@pytest.mark.heavy
@pytest.mark.parametrize("name", for_runs())
def test_less_budget_never_buys_less_noise(name):
    def noise(epsilon):
        mechanism = made(name, epsilon=epsilon)
        first = noise_fields(for_runs()[name])[0]
        value = getattr(mechanism, first)
        return 1 / value if first == "epsilon" else value

    assert noise(0.5) > noise(1.0) > noise(2.0)


@pytest.mark.heavy
@pytest.mark.parametrize("name", for_runs())
def test_a_stream_has_one_price_and_any_other_mechanism_one_for_each_answer(name):
    mechanism = made(name)
    event = mechanism.schedule(100)
    if isinstance(mechanism, StreamMechanism):
        assert event == mechanism.event
        assert isinstance(event, Composed)
        assert mechanism.n_queries == 100
    else:
        assert event == Repeated(mechanism.event, 100)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["GaussianNoisyMax", "NoisyCounts", "ConfidentNoisyMax"])
def test_two_classes_are_counted_as_one_number(name, n_classes):
    assert made(name, n_classes=n_classes).form == ("binary" if n_classes == 2 else "histogram")


def test_the_users_own_noise_is_taken_as_it_is():
    assert made("NoisyCounts", sigma=3.0).sigma == 3.0
    mechanism = made("ConfidentNoisyMax", sigma_threshold=20.0, sigma_answer=5.0)
    assert (mechanism.sigma_threshold, mechanism.sigma_answer, mechanism.threshold) == (20.0, 5.0, 150.0)


@pytest.mark.heavy
def test_two_noises_keep_the_proportion_of_the_papers():
    mechanism = made("ConfidentNoisyMax")
    assert mechanism.sigma_threshold / mechanism.sigma_answer == pytest.approx(150 / 40)


def test_a_part_of_the_noise_is_refused():
    with pytest.raises(InvalidParameter, match="sigma_threshold and sigma_answer"):
        made("ConfidentNoisyMax", sigma_answer=5.0)


@pytest.mark.parametrize("name", [name for name, kind in for_runs().items() if required_fields(kind)])
def test_a_field_that_must_be_given_is_named_with_an_example(name):
    with pytest.raises(InvalidParameter, match=r"needs .*\. Example: .* = "):
        mechanism_for(for_runs()[name], {}, n_classes=2, n_teachers=250, answers=100, epsilon=1.0, delta=1e-5)


def test_a_field_that_is_not_the_users_is_refused_with_the_nearest():
    with pytest.raises(InvalidParameter, match='did you mean "sigma"'):
        made("NoisyCounts", sgma=3.0)
    with pytest.raises(InvalidParameter, match="no field 'form'"):
        made("NoisyCounts", form="histogram")


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("value", [0, -1.0, math.nan, True, "3"])
def test_noise_is_a_number_above_zero(value):
    with pytest.raises(InvalidParameter, match="sigma"):
        made("NoisyCounts", sigma=value)


def test_what_a_mechanism_says_of_its_scale_and_of_what_no_budget_fills_in() -> None:
    assert (scale_of(LaplaceNoisyMax(laplace_scale=20.0)), scale_of(PrivatePrediction(epsilon=0.1))) == (20.0, None)
    stream = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=20, n_queries=100)
    assert open_fields(stream) == {"cutoff": 20, "calibration": "tight"}
