"""The exact harness itself: laws against slower ones, losses against known ones, mistakes that it must see."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from tests.learners.exact import (
    exponential,
    labelled,
    mixture,
    neighbouring,
    permute_and_flip,
    true_delta,
    true_epsilon,
    uniform_draws,
    uniform_orders,
    uniform_subsets,
    unlabelled,
)
from tests.mechanisms.test_choice import permute_and_flip_law

SCORES = [-3, 0, -1, -1]


def test_permute_and_flip_is_what_every_order_gives():
    assert np.allclose([float(p) for p in permute_and_flip(SCORES, 0.7)], permute_and_flip_law(SCORES, 0.7))


def test_the_exponential_law_is_the_quotient_of_weights():
    weights = np.exp(0.7 * np.array(SCORES) / (2 * 3))
    assert np.allclose([float(p) for p in exponential(SCORES, 0.7, sensitivity=3)], weights / weights.sum())


def test_ways_to_sample_are_all_there_and_weigh_one():
    for ways, number in ((uniform_subsets(5, 2), 10), (uniform_orders(4, 2), 12), (uniform_draws(3, 2), 9)):
        found = list(ways)
        assert len(found) == len({chosen for _, chosen in found}) == number
        assert sum(weight for weight, _ in found) == 1


def test_neighbours_are_pairs_that_differ_in_one_row_of_one_part():
    pairs = list(neighbouring(labelled([0, 1], 2), unlabelled([0, 1, 2], 1)))
    # labelled: 3 unlabelled rows x 4 common records x 6 pairs; unlabelled: 10 labelled pairs of rows x 3 pairs
    assert len(pairs) == 3 * 4 * 6 + 10 * 3
    assert all(sum(a != b for a, b in zip(first, second, strict=True)) == 1 for first, second in pairs)
    ordered = {frozenset(pair) for pair in neighbouring(labelled([0, 1], 2), ordered=True)}
    assert len(ordered) == 2 * 4 * 6


def randomised_response(points, labels):
    """Release the first row's label, flipped with probability 1/4: log 3."""
    return {int(labels[0]): Fraction(3, 4), 1 - int(labels[0]): Fraction(1, 4)}


def test_the_loss_of_randomised_response_is_log_3():
    worst = true_epsilon(randomised_response, labelled([0], 1))
    assert worst.value == pytest.approx(log(3), abs=1e-15)
    assert true_delta(randomised_response, 0.5, labelled([0], 1)).value == pytest.approx(0.75 - exp(0.5) / 4)
    assert true_delta(randomised_response, log(3) + 1e-9, labelled([0], 1)).value == 0


def test_a_release_without_noise_has_no_epsilon():
    def bare(points, labels):
        return {tuple(points[:, 0].tolist()): 1}

    assert true_epsilon(bare, unlabelled([0, 1], 2)).value == float("inf")
    assert true_delta(bare, 5.0, unlabelled([0, 1], 2)).value == 1


def test_a_learner_that_looks_at_the_order_needs_ordered_data_sets():
    def of_the_last_row(points, labels):
        return randomised_response(points, labels[-1:])

    part = labelled([0], 2)
    assert true_epsilon(of_the_last_row, part).value == 0
    assert true_epsilon(of_the_last_row, part, ordered=True).value == pytest.approx(log(3))


def test_sampling_rows_lowers_the_loss_as_the_theorem_says():
    def sampled(points, labels):
        parts = ((w, randomised_response(points, labels[list(rows)])) for w, rows in uniform_subsets(len(labels), 1))
        return mixture(parts)

    worst = true_epsilon(sampled, labelled([0], 3))
    assert worst.value == pytest.approx(log(1 + (3 - 1) / 3))  # log(1 + r (e^ε - 1)) at r = 1/3: reached


def test_probabilities_that_do_not_add_up_are_refused():
    with pytest.raises(AssertionError, match="add up"):
        true_epsilon(lambda points, labels: {0: Fraction(1, 3)}, labelled([0], 1))
