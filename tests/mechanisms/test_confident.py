"""Confident and interactive noisy max: the exact law of test and answer, and the price of both."""

from math import exp, log

import numpy as np
import pytest

from quorate.accounting import ApproxDP, Composed, delta, zcdp
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    DECLINED,
    ConfidentNoisyMax,
    DistanceToInstability,
    InteractiveNoisyMax,
    distance_to_instability,
)
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


@pytest.mark.default_cases(5)
@pytest.mark.parametrize("counts", [(9, 8, 0), (5, 5, 5), (3, 0, 1), (12, 2, 1), (9, 8), (7, 7), (3, 9)], ids=str)
def test_both_forms_have_their_exact_law(exact, counts):
    form = "binary" if len(counts) == 2 else "histogram"
    answers = ConfidentNoisyMax(**FIELDS, form=form).release_many(exact.repeat(counts), SeededNoise(1))

    assert exact.fit(answers + 1, answer_law(exact, counts, **FIELDS, form=form)) > exact.FALSE_ALARM


def noisy(counts, sigma, source):
    return counts if sigma is None else counts + discrete_gaussian(sigma, counts.shape, source)


def another(counts, source, *, line=8, sigma_threshold=3.0, sigma_answer=1.5, once=False):
    """A confident noisy max in a few lines, with its faults as arguments; `once`: the noisy maximum is tested."""
    answers = noisy(counts, sigma_answer, source)
    tested = answers.max(axis=1) if once else noisy(counts.max(axis=1), sigma_threshold, source)
    return np.where(tested >= line, answers.argmax(axis=1), DECLINED)


CHEATS = {
    "no noise in the test": {"sigma_threshold": None},
    "the exact class once it passed": {"sigma_answer": None},
    "strictly above": {"line": 9},
    "sigmas swapped": {"sigma_threshold": 1.5, "sigma_answer": 3.0},
    "the noisy maximum tested: the same noise twice": {"once": True},
}


@pytest.mark.parametrize("cheat", [{}, *CHEATS.values()], ids=["honest", *CHEATS])
def test_that_test_catches_a_mechanism_that_cheats_and_no_other(exact, cheat):
    counts = (9, 8, 0)
    answers = another(exact.repeat(counts), SeededNoise(3), **cheat)
    assert (exact.fit(answers + 1, answer_law(exact, counts, **FIELDS)) > exact.FALSE_ALARM) == (cheat == {})


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


def test_a_prediction_that_is_none_is_refused():
    mechanism, counts, nan = InteractiveNoisyMax(**INTERACTIVE), np.array([13, 4, 3]), float("nan")
    no_shares = ([0.5, 0.5], [[0.5, 0.3, 0.2]], [1, 0, 0], [1.2, 0.0, 0.0], [-0.1, 0.5, 0.6], [nan, 0.5, 0.5])
    for prediction in (*no_shares, ["a", "b", "c"]):
        with pytest.raises(InvalidParameter, match=r"^predictions must be "):
            mechanism.release(counts, SeededNoise(0), prediction=np.array(prediction))


def distance(counts):
    return int(distance_to_instability(np.array([counts], dtype=np.int64))[0])


def plurality(counts):
    return counts.index(max(counts))


@pytest.mark.parametrize(("n_classes", "n_teachers"), [(2, 9), (3, 6), (4, 4)])
def test_one_changed_teacher_moves_the_distance_by_at_most_one_and_no_plurality_at_a_distance(
    exact, n_classes, n_teachers
):
    for counts in exact.histograms(n_classes, n_teachers):
        for other in exact.neighbours(counts):
            assert abs(distance(counts) - distance(other)) <= 1
            assert distance(counts) == 0 or plurality(other) == plurality(counts)


def test_the_distance_is_hardly_smaller_than_it_could_be(exact):
    """If n teachers must change before the plurality class does, n − 1 is allowed; at most one is given away."""

    def teachers_needed(counts):
        reached, n = {counts}, 0
        while all(plurality(c) == plurality(counts) for c in reached):
            reached |= {other for c in reached for other in exact.neighbours(c)}
            n += 1
        return n

    for counts in [(7, 1), (1, 6), (8, 2), (5, 1, 0), (4, 4), (0, 3, 9), (2, 4)]:
        assert teachers_needed(counts) - 2 <= distance(counts) <= teachers_needed(counts) - 1


def test_the_distance_of_a_gap():
    gaps = {(5, 5): 0, (6, 5): 0, (7, 5): 0, (8, 5): 1, (9, 5): 1, (10, 5): 2, (0, 0): 0, (9, 0, 0): 4, (0, 0, 9): 4}
    assert {counts: distance(counts) for counts in gaps} == gaps


def stable_law(exact, counts, epsilon, threshold, distance=distance):
    z, p = exact.laplace(1 / epsilon)
    passed = p[z + distance(counts) > threshold].sum()
    law = np.zeros(len(counts) + 1)
    law[0], law[1 + plurality(counts)] = 1 - passed, passed
    return law


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("counts", [(30, 0), (20, 9), (10, 10), (2, 17, 4)], ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.001)])
def test_the_release_has_its_exact_law(exact, counts, epsilon, delta):
    answers = DistanceToInstability(epsilon=epsilon, delta=delta).release_many(exact.repeat(counts), SeededNoise(1))

    assert exact.fit(answers + 1, stable_law(exact, counts, epsilon, log(1 / delta) / epsilon)) > exact.FALSE_ALARM


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-4, 0.05, 0.4])
def test_no_neighbouring_pair_loses_more_than_epsilon_and_delta(exact, epsilon, delta):
    mechanism = DistanceToInstability(epsilon=epsilon, delta=delta)
    worst = exact.worst_delta(lambda c: stable_law(exact, c, epsilon, mechanism.threshold), 3, 7, epsilon)

    assert mechanism.event == ApproxDP(epsilon, delta)
    assert worst <= delta


def test_the_printed_gap_minus_one_would_lose_more(exact):
    """BTT18 prints dist = gap − 1, which moves by 2: the same noise then gives twice the ε."""

    def printed(counts):
        top = sorted(counts)
        return max(0, top[-1] - top[-2] - 1)

    worst = exact.worst_delta(lambda c: stable_law(exact, c, 1.0, log(1e4), distance=printed), 2, 30, 1.0)

    assert worst > 1e-4


def test_the_threshold_is_the_papers_and_just_enough():
    for epsilon, bad in [(1.0, 1e-5), (0.1, 1e-9), (7.0, 0.3), (40.0, exp(-40.0)), (1.0, exp(-12.0))]:
        mechanism = DistanceToInstability(epsilon=epsilon, delta=bad)
        least = np.floor(mechanism.threshold) + 1  # the noise that lets distance 0 pass

        assert mechanism.threshold == pytest.approx(log(1 / bad) / epsilon, rel=1e-12)
        assert exp(-epsilon * least) / (1 + exp(-epsilon)) < bad
