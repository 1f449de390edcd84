"""Confident and interactive noisy max: the exact law of test and answer, and the price of both."""

import numpy as np
import pytest

from quorate.accounting import Composed, delta, zcdp
from quorate.errors import InvalidParameter
from quorate.mechanisms import DECLINED, ConfidentNoisyMax, InteractiveNoisyMax
from quorate.noise import SeededNoise, discrete_gaussian

N = 100_000
FIELDS = {"threshold": 8.0, "sigma_threshold": 3.0, "sigma_answer": 1.5}


def answer_law(exact, counts, *, threshold, sigma_threshold, sigma_answer, form="histogram", base=None):
    """P(⊥), P(0), …, P(C−1)."""
    z, p = exact.gaussian(sigma_threshold)
    top = max(n - b for n, b in zip(counts, base or [0] * len(counts), strict=True))
    passed = p[z + top >= threshold].sum()
    wins = exact.wins if form == "histogram" else exact.half_lead_wins
    return np.append(1 - passed, passed * wins(counts, *exact.gaussian(sigma_answer)))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("counts", [(9, 8, 0), (5, 5, 5), (3, 0, 1), (12, 2, 1)], ids=str)
def test_the_histogram_form_has_its_exact_law(exact, counts):
    answers = ConfidentNoisyMax(**FIELDS).release_many(exact.repeat(counts), SeededNoise(1))

    assert exact.fit(answers + 1, answer_law(exact, counts, **FIELDS)) > exact.FALSE_ALARM


@pytest.mark.parametrize("counts", [(9, 8), (7, 7), (3, 9)], ids=str)
def test_the_binary_form_has_its_exact_law(exact, counts):
    answers = ConfidentNoisyMax(**FIELDS, form="binary").release_many(exact.repeat(counts), SeededNoise(2))

    assert exact.fit(answers + 1, answer_law(exact, counts, **FIELDS, form="binary")) > exact.FALSE_ALARM


def no_noise_in_the_test(counts, source):
    answers = (counts + discrete_gaussian(1.5, counts.shape, source)).argmax(axis=1)
    return np.where(counts.max(axis=1) >= 8, answers, DECLINED)


def the_exact_class_once_it_passed(counts, source):
    passed = counts.max(axis=1) + discrete_gaussian(3.0, len(counts), source) >= 8
    return np.where(passed, counts.argmax(axis=1), DECLINED)


def strictly_above(counts, source):
    passed = counts.max(axis=1) + discrete_gaussian(3.0, len(counts), source) > 8
    return np.where(passed, (counts + discrete_gaussian(1.5, counts.shape, source)).argmax(axis=1), DECLINED)


def sigmas_swapped(counts, source):
    passed = counts.max(axis=1) + discrete_gaussian(1.5, len(counts), source) >= 8
    return np.where(passed, (counts + discrete_gaussian(3.0, counts.shape, source)).argmax(axis=1), DECLINED)


def noisy_maximum_tested(counts, source):
    """Test the maximum of the noisy counts: the same noise twice."""
    noisy = counts + discrete_gaussian(1.5, counts.shape, source)
    return np.where(noisy.max(axis=1) >= 8, noisy.argmax(axis=1), DECLINED)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "cheat",
    [no_noise_in_the_test, the_exact_class_once_it_passed, strictly_above, sigmas_swapped, noisy_maximum_tested],
)
def test_that_test_catches_a_mechanism_that_cheats(exact, cheat):
    counts = (9, 8, 0)

    law = answer_law(exact, counts, **FIELDS)
    assert exact.fit(cheat(exact.repeat(counts), SeededNoise(3)) + 1, law) < exact.FALSE_ALARM


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("n_classes", "n_teachers", "form"), [(2, 6, "histogram"), (2, 6, "binary"), (3, 4, "histogram")]
)
@pytest.mark.parametrize("eps", [0.0, 0.5, 1.5])
def test_no_neighbouring_pair_loses_more_than_the_price(exact, n_classes, n_teachers, form, eps):
    fields = {"threshold": 2.0, "sigma_threshold": 1.0, "sigma_answer": 0.8, "form": form}
    worst = exact.worst_delta(lambda c: answer_law(exact, c, **fields), n_classes, n_teachers, eps)

    assert worst <= delta(ConfidentNoisyMax(**fields).event, eps) + 1e-12


def test_an_answer_costs_the_test_and_the_noisy_max_and_a_declined_query_the_test_alone():
    mechanism = ConfidentNoisyMax(threshold=150, sigma_threshold=100.0, sigma_answer=40.0)

    assert isinstance(mechanism.event, Composed)
    assert zcdp(mechanism.declined_event) == pytest.approx(1 / (2 * 100**2))
    assert zcdp(mechanism.event) == pytest.approx(1 / (2 * 100**2) + 1 / 40**2)


INTERACTIVE = {**FIELDS, "n_teachers": 20, "confidence": 0.7}


def test_without_a_student_it_is_the_confident_noisy_max():
    counts = np.random.default_rng(0).multinomial(20, [0.5, 0.3, 0.2], 2000)

    np.testing.assert_array_equal(
        InteractiveNoisyMax(**INTERACTIVE).release_many(counts, SeededNoise(4)),
        ConfidentNoisyMax(**FIELDS).release_many(counts, SeededNoise(4)),
    )


@pytest.mark.parametrize("prediction", [(0.1, 0.8, 0.1), (0.4, 0.35, 0.25), (0.75, 0.25, 0.0)], ids=str)
def test_the_students_prediction_is_taken_off_the_votes(exact, prediction):
    """Not passing confirms a sure student's class and declines an unsure one's."""
    counts = (13, 4, 3)
    base = [round(20 * p) for p in prediction]
    law = answer_law(exact, counts, **FIELDS, base=base)
    if max(prediction) > 0.7:
        law[1 + int(np.argmax(prediction))] += law[0]
        law[0] = 0
    answers = InteractiveNoisyMax(**INTERACTIVE).release_many(
        exact.repeat(counts), SeededNoise(5), predictions=np.tile(prediction, (N, 1))
    )

    assert exact.fit(answers + 1, law) > exact.FALSE_ALARM


def test_one_query_with_a_prediction_is_a_batch_of_one():
    mechanism, counts, prediction = InteractiveNoisyMax(**INTERACTIVE), np.array([13, 4, 3]), np.array([0.5, 0.3, 0.2])
    for seed in range(20):
        alone = mechanism.release(counts, SeededNoise(seed), prediction=prediction)
        batch = mechanism.release_many(counts[None], SeededNoise(seed), predictions=prediction[None])

        assert (DECLINED if alone is None else alone) == batch[0]


def test_an_agreeing_teacher_ensemble_is_hardly_ever_paid_for():
    mechanism = InteractiveNoisyMax(
        threshold=100, sigma_threshold=10.0, sigma_answer=5.0, n_teachers=250, confidence=0.9
    )
    counts = np.tile(np.array([240, 5, 5]), (500, 1))
    sure = np.tile([0.96, 0.02, 0.02], (500, 1))
    wrong = np.tile([0.02, 0.96, 0.02], (500, 1))

    assert set(mechanism.release_many(counts, SeededNoise(6), sure).tolist()) == {0}
    assert set(mechanism.release_many(counts, SeededNoise(6), wrong).tolist()) == {0}  # corrected
    unsure = np.tile([0.85, 0.1, 0.05], (500, 1))
    assert set(mechanism.release_many(counts, SeededNoise(6), unsure).tolist()) == {DECLINED}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "prediction",
    [
        [0.5, 0.5],
        [[0.5, 0.3, 0.2]],
        [1, 0, 0],
        [1.2, 0.0, 0.0],
        [-0.1, 0.5, 0.6],
        [float("nan"), 0.5, 0.5],
        ["a", "b", "c"],
    ],
)
def test_a_prediction_that_is_none_is_refused(prediction):
    with pytest.raises(InvalidParameter, match=r"^predictions must be "):
        InteractiveNoisyMax(**INTERACTIVE).release(
            np.array([13, 4, 3]), SeededNoise(0), prediction=np.array(prediction)
        )
