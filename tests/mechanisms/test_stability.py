"""Distance to instability against brute force, and the release that rests on it."""

from math import exp, log

import numpy as np
import pytest

from quorate.accounting import ApproxDP
from quorate.mechanisms import DECLINED, DistanceToInstability, distance_to_instability
from quorate.noise import SeededNoise

SIZES = [(2, 9), (3, 6), (4, 4)]


def distance(counts):
    return int(distance_to_instability(np.array([counts], dtype=np.int64))[0])


def plurality(counts):
    return counts.index(max(counts))


@pytest.mark.parametrize(("n_classes", "n_teachers"), SIZES)
def test_one_changed_teacher_moves_the_distance_by_at_most_one(exact, n_classes, n_teachers):
    for counts in exact.histograms(n_classes, n_teachers):
        assert all(abs(distance(counts) - distance(other)) <= 1 for other in exact.neighbours(counts))


@pytest.mark.parametrize(("n_classes", "n_teachers"), SIZES)
def test_the_plurality_class_cannot_change_where_the_distance_is_not_zero(exact, n_classes, n_teachers):
    for counts in exact.histograms(n_classes, n_teachers):
        if distance(counts) >= 1:
            assert all(plurality(other) == plurality(counts) for other in exact.neighbours(counts))


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


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((5, 5), 0),
        ((6, 5), 0),
        ((7, 5), 0),
        ((8, 5), 1),
        ((9, 5), 1),
        ((10, 5), 2),
        ((0, 0), 0),
        ((9, 0, 0), 4),
        ((0, 0, 9), 4),
    ],
)
def test_the_distance_of_a_gap(counts, expected):
    assert distance(counts) == expected


def answer_law(exact, counts, epsilon, threshold, distance=distance):
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

    assert exact.fit(answers + 1, answer_law(exact, counts, epsilon, log(1 / delta) / epsilon)) > exact.FALSE_ALARM


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-4, 0.05, 0.4])
def test_no_neighbouring_pair_loses_more_than_epsilon_and_delta(exact, epsilon, delta):
    mechanism = DistanceToInstability(epsilon=epsilon, delta=delta)
    worst = exact.worst_delta(lambda c: answer_law(exact, c, epsilon, mechanism.threshold), 3, 7, epsilon)

    assert mechanism.event == ApproxDP(epsilon, delta)
    assert worst <= delta


def test_the_printed_gap_minus_one_would_lose_more(exact):
    """BTT18 prints dist = gap − 1, which moves by 2: the same noise then gives twice the ε."""

    def printed(counts):
        top = sorted(counts)
        return max(0, top[-1] - top[-2] - 1)

    worst = exact.worst_delta(lambda c: answer_law(exact, c, 1.0, log(1e4), distance=printed), 2, 30, 1.0)

    assert worst > 1e-4


def test_the_threshold_is_the_papers_and_just_enough():
    for epsilon, delta in [(1.0, 1e-5), (0.1, 1e-9), (7.0, 0.3), (40.0, exp(-40.0)), (1.0, exp(-12.0))]:
        mechanism = DistanceToInstability(epsilon=epsilon, delta=delta)
        least = np.floor(mechanism.threshold) + 1  # the noise that lets distance 0 pass

        assert mechanism.threshold == pytest.approx(log(1 / delta) / epsilon, rel=1e-12)
        assert exp(-epsilon * least) / (1 + exp(-epsilon)) < delta


def test_an_unstable_query_is_declined_and_a_stable_one_answered_exactly():
    mechanism = DistanceToInstability(epsilon=1.0, delta=1e-6)
    counts = np.array([[500, 0, 0], [0, 0, 500], [250, 250, 0]], dtype=np.int64)

    assert mechanism.release_many(counts, SeededNoise(0)).tolist() == [0, 2, DECLINED]
