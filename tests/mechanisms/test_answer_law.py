"""The law that a mechanism states of its answers is the law of the answers that it gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from quorate.accounting import Composed, Repeated
from quorate.accounting import epsilon as price
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    DECLINED,
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    Mechanism,
    NoisyCounts,
    PermuteAndFlip,
    PrivatePrediction,
    StableSparseVector,
    StreamMechanism,
    for_runs,
    noise_fields,
    required_fields,
)
from quorate.mechanisms.answer_law import AnswerNoise, chosen_classes, noise_law, passes
from quorate.mechanisms.schedule import mechanism_for, open_fields, scale_of
from quorate.noise import SeededNoise

FALSE_ALARM = 1e-6  # of one comparison
TIMES = 4_000
VOTES = {2: [[70, 30], [44, 56], [50, 50], [100, 0]], 4: [[40, 30, 20, 10], [25, 25, 25, 25], [5, 5, 10, 80]]}
MECHANISMS: list[tuple[Mechanism, int]] = [
    (GaussianNoisyMax(sigma=30.0, form="binary"), 2),
    (GaussianNoisyMax(sigma=8.0), 4),
    (NoisyCounts(sigma=30.0, form="binary"), 2),
    (NoisyCounts(sigma=8.0), 4),
    (LaplaceNoisyMax(laplace_scale=9.0), 4),
    (ConfidentNoisyMax(threshold=45.5, sigma_threshold=20.0, sigma_answer=8.0), 4),
    (DistanceToInstability(epsilon=0.3, delta=1e-3), 2),
    (Exponential(epsilon=0.2), 4),
    (PermuteAndFlip(epsilon=0.2), 4),
    (StableSparseVector(epsilon=3.0, delta=1e-2, cutoff=1, n_queries=1), 2),
]


def answers(mechanism: Mechanism, row: np.ndarray) -> np.ndarray:
    noise = SeededNoise(7)
    if isinstance(mechanism, StreamMechanism):  # the law is that of a fresh stage
        given = [mechanism.release(row[None], noise)[0] for _ in range(TIMES)]
        return np.array(given)
    released = mechanism.release_many(np.repeat(row[None], TIMES, axis=0), noise)  # type: ignore[attr-defined]
    return mechanism.answers.codes(released) if mechanism.releases_values else released


def least_p_value(mechanism: Mechanism, stated: Mechanism, n_classes: int) -> float:
    votes = np.array(VOTES[n_classes], dtype=np.int64)
    law = stated.answer_law(votes)
    assert law is not None
    np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-9)
    found = 1.0
    for row, probabilities in zip(votes, law, strict=True):
        given = answers(mechanism, row)
        for code, p in zip([*range(n_classes), DECLINED], probabilities.tolist(), strict=True):
            found = min(found, binomtest(int((given == code).sum()), TIMES, min(max(p, 0.0), 1.0)).pvalue)
    return found


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(("mechanism", "n_classes"), MECHANISMS, ids=lambda each: type(each).__name__)
def test_answers_follow_the_law_that_is_stated(mechanism, n_classes):
    assert least_p_value(mechanism, mechanism, n_classes) > FALSE_ALARM


def test_that_test_catches_a_law_of_other_noise():
    assert least_p_value(GaussianNoisyMax(sigma=8.0), GaussianNoisyMax(sigma=10.0), 4) < FALSE_ALARM


def test_a_mechanism_that_asks_a_student_states_no_law():
    asks = InteractiveNoisyMax(
        threshold=50.0, sigma_threshold=9.0, sigma_answer=5.0, n_teachers=100, confidence=0.9, form="binary"
    )
    assert asks.answer_law(np.array([[60, 40]])) is None


@pytest.mark.parametrize(
    ("noise", "mechanism", "others", "within"),
    [("gaussian", GaussianNoisyMax(sigma=200.0), 1, 1e-12), ("laplace", LaplaceNoisyMax(laplace_scale=500.0), 2, 5e-5)],
)
def test_every_kth_integer_is_as_good_as_all_of_them(noise, mechanism, others, within):
    """By hand: classes on counts differ by a lead plus the difference of two noises, ties to the first."""
    law, lead = noise_law(noise, 200.0 if noise == "gaussian" else 500.0), 90
    z = np.arange(-law.reach, law.reach + 1)
    by_hand = float(law.mass @ law.at_most(lead + z) ** others)  # n_0 + z ≥ n_1 + z'
    stated = mechanism.answer_law(np.array([[100 + lead, *[100] * others]]), 0)
    assert stated is not None
    assert stated[0, 0] == pytest.approx(by_hand, abs=within)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("mechanism", "n_classes"), MECHANISMS, ids=lambda each: type(each).__name__)
def test_one_class_alone_has_its_own_part_of_the_law(mechanism, n_classes):
    votes = np.array(VOTES[n_classes], dtype=np.int64)
    whole, part = mechanism.answer_law(votes), mechanism.answer_law(votes, 1)
    assert whole is not None
    assert part is not None
    np.testing.assert_array_equal(part, whole[:, [1, n_classes]])


def test_very_wide_noise_is_continuous():
    stated = GaussianNoisyMax(sigma=1e6, form="binary").answer_law(np.array([[0, 1_000_000]]))
    assert stated is not None
    assert stated[0, 1] == pytest.approx(norm.cdf(0.5), abs=1e-6)
    counts = GaussianNoisyMax(sigma=1e6).answer_law(np.array([[0, 1_000_000, 0]]))
    assert counts is not None
    assert counts[0, 1] == pytest.approx(0.633702, abs=1e-4)  # E Φ(1 + Z)², by quadrature


def test_a_few_probabilities_are_what_they_were():
    noise = AnswerNoise(distribution="gaussian", scale=20.0)
    assert chosen_classes(noise, np.array([[60, 40], [50, 50]])).round(3).tolist() == [[0.766, 0.234], [0.507, 0.493]]
    assert (round(passes("laplace", 2.0, 1), 4), round(passes("laplace", 2.0, 0), 4)) == (0.3775, 0.6225)


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


def test_what_a_mechanism_says_of_its_scale_and_of_what_no_budget_fills_in():
    assert (scale_of(LaplaceNoisyMax(laplace_scale=20.0)), scale_of(PrivatePrediction(epsilon=0.1))) == (20.0, None)
    stream = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=20, n_queries=100)
    assert open_fields(stream) == {"cutoff": 20, "calibration": "tight"}
