"""Choices over a whole grid: the law against one that lists every candidate, exact privacy, huge grids."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learners.exact import exponential, labelled, law_of, p_value, true_epsilon

from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import GridChoice, NoisyThreshold
from quorate.learners.base import grid_choice
from quorate.learners.base.grid_choice import threshold_runs
from quorate.learners.concepts import Intervals, Threshold, Thresholds
from quorate.noise import OSNoise, SeededNoise
from quorate.noise.table import exp_negative

FALSE_ALARM = 1e-6
BITS = 2
EPSILON = 1.0


# --- the mechanism over runs -----------------------------------------------------------------------------------------


def test_a_choice_over_runs_has_the_law_of_a_choice_over_all_candidates():
    scores, sizes = np.array([-3, 0, -1, -9, -1]), np.array([4, 1, 0, 2, 3])
    law = law_of(range(10), exponential(np.repeat(scores, sizes).tolist(), 1.3))
    drawn = [GridChoice(1.3).release(scores, sizes, noise) for noise in [SeededNoise(5)] for _ in range(4000)]
    assert p_value(law, drawn) > FALSE_ALARM
    twice = law_of(range(10), exponential(np.repeat(scores, sizes).tolist(), 2.6))
    assert p_value(twice, drawn) < FALSE_ALARM


def test_a_run_without_candidates_is_never_chosen_however_good():
    scores, sizes = np.array([0, 1000, -5]), np.array([1, 0, 1])
    assert {GridChoice(1.0).release(scores, sizes, OSNoise()) for _ in range(50)} <= {0, 1}


def test_sizes_weigh_as_much_as_candidates_would():
    scores, sizes = np.array([0, -100]), np.array([1, 2**61])  # 2^61 e^-20 is about 4.7e9
    assert all(GridChoice(0.4).release(scores, sizes, OSNoise()) > 0 for _ in range(20))
    assert all(GridChoice(4.0).release(scores, sizes, OSNoise()) == 0 for _ in range(20))


@pytest.mark.parametrize(
    ("scores", "sizes"),
    [([0], [0]), ([0, 1], [1]), ([0], [-1]), ([0.5], [1]), ([0, 0], [2**62, 1]), ([], [])],
)
def test_runs_that_are_none_are_refused(scores, sizes):
    with pytest.raises(InvalidParameter):
        GridChoice(1.0).release(np.array(scores), np.array(sizes), OSNoise())


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0, 1), (float("nan"), 1), (1, 0), (True, 1), (1, "1")])
def test_a_choice_without_a_price_is_refused(epsilon, sensitivity):
    with pytest.raises(InvalidParameter):
        GridChoice(epsilon, sensitivity)


# --- runs of thresholds ----------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 1)), max_size=12))
def test_runs_are_the_mistakes_of_every_cut(rows):
    values = np.array([value for value, _ in rows], dtype=np.int64)
    labels = np.array([label for _, label in rows], dtype=np.int8)
    scores, sizes = threshold_runs(values, labels, 3)
    slow = [-sum(int(value < cut) != label for value, label in rows) for cut in range(9)]
    assert np.repeat(scores, sizes).tolist() == slow


def law_of_threshold(points, labels, *, epsilon=EPSILON, mechanism=exponential):
    """Every cut, its mistakes counted row by row."""
    scores = [-sum((x < cut) != (y == 1) for x, y in zip(points[:, 0], labels, strict=True)) for cut in range(5)]
    return law_of([Threshold(cut) for cut in range(5)], mechanism(scores, epsilon))


def test_the_learner_has_the_law_that_is_audited():
    learner = NoisyThreshold(concepts=Thresholds(bits=BITS), epsilon=EPSILON)
    points, labels = np.array([[0], [1], [1], [3], [2]]), np.array([1, 1, 0, 0, -1], dtype=np.int8)
    plan = learner._plan(4, 1, EPSILON, 0.0)
    noise = SeededNoise(11)
    drawn = [learner._learn(points, labels, noise.at("fit", i), plan) for i in range(4000)]
    assert p_value(law_of_threshold(points[:4], labels[:4]), drawn) > FALSE_ALARM
    assert p_value(law_of_threshold(points, np.where(labels == -1, 0, labels), epsilon=2.0), drawn) < FALSE_ALARM


def test_its_true_epsilon_is_at_most_the_claim_and_most_of_it():
    worst = true_epsilon(law_of_threshold, labelled(range(2**BITS), 4))
    assert 0.9 * EPSILON < worst.value <= EPSILON


def test_mistaken_learners_are_caught():
    part = labelled(range(2**BITS), 3)
    no_half = true_epsilon(lambda X, y: law_of_threshold(X, y, epsilon=2 * EPSILON), part)
    no_noise = true_epsilon(lambda X, y: law_of_threshold(X, y, epsilon=5000.0), part)
    assert no_half.value > EPSILON
    assert no_noise.value > 100

    def best(points, labels):
        law = law_of_threshold(points, labels)
        return {max(law, key=lambda concept: (law[concept], -concept.cut)): 1}

    assert true_epsilon(best, part).value == float("inf")


# --- the learner -----------------------------------------------------------------------------------------------------


@pytest.mark.several_fits
def test_it_learns_on_a_grid_of_2_to_the_32_with_the_rows_of_its_theorem():
    learner = NoisyThreshold(concepts=Thresholds(bits=32), epsilon=1.0, alpha=0.05, rows="theorem")
    rng = np.random.default_rng(1)
    n = learner.rows_needed().labelled
    wrong = 0
    for cut in rng.integers(0, 2**32, 20):
        X = rng.integers(0, 2**32, (n, 1))
        fitted = learner.fit(X, X[:, 0] < cut)
        wrong += abs(fitted.concept_.cut - int(cut)) / 2**32 > 0.05
    assert n == 1233
    assert wrong <= 9  # a chance of 0.1 each gives 10 or more with probability 7e-6; it is far lower
    assert learner.guarantee_.epsilon == 1.0


def test_a_grid_of_2_to_the_60_is_not_listed():
    X = np.random.default_rng(2).integers(0, 2**60, (20_000, 1))
    fitted = NoisyThreshold(concepts=Thresholds(bits=60), epsilon=1.0).fit(X, X[:, 0] < 2**59)
    assert abs(fitted.concept_.cut - 2**59) < 2**60 / 100


def test_rows_without_a_label_are_not_looked_at():
    X = np.random.default_rng(3).integers(0, 256, (300, 1))
    y = np.where(np.arange(300) < 100, (X[:, 0] < 90).astype(int), -1)
    moved = X.copy()
    moved[100:] = 7
    cuts = [
        NoisyThreshold(concepts=Thresholds(bits=8), epsilon=1.0, unsafe_noise_seed=4).fit(each, y)
        for each in (X, moved)
    ]
    assert cuts[0].concept_ == cuts[1].concept_
    assert cuts[0].n_labels_used_ == 100


def test_a_table_without_labels_and_other_classes_are_refused():
    with pytest.raises(DataRefused, match="no label"):
        NoisyThreshold(concepts=Thresholds(bits=4), epsilon=1.0).fit([[1], [2]], [-1, -1])
    with pytest.raises(InvalidParameter, match="Thresholds"):
        NoisyThreshold(concepts=Intervals(bits=4), epsilon=1.0).fit([[1]], [1])
    with pytest.raises(InvalidParameter, match="61"):
        NoisyThreshold(concepts=Thresholds(bits=62), epsilon=1.0).rows_needed()


def test_the_largest_grid_works():
    learner = NoisyThreshold(concepts=Thresholds(bits=61), epsilon=8.0)
    X = (np.arange(400) * (2**61 // 400)).reshape(-1, 1)
    assert abs(learner.fit(X, X[:, 0] < 2**60).concept_.cut / 2**61 - 0.5) < 0.2


@pytest.mark.parametrize(("n", "largest"), [(0, 5), (1, 5), (50, 2**30), (300, 300), (5_000, 256)])
def test_values_are_counted_alike_by_a_table_and_by_a_sort(n, largest):
    random = np.random.default_rng(n)
    values, labels = random.integers(0, largest, n), random.integers(0, 2, n).astype(np.int8)
    distinct, place = np.unique(values, return_inverse=True)
    ones = np.bincount(place, weights=labels, minlength=len(distinct)).astype(np.int64)
    zeros = np.bincount(place, minlength=len(distinct)) - ones
    for found, expected in zip(grid_choice._counts(values, labels), (distinct, zeros, ones), strict=True):
        assert found.tolist() == expected.tolist()
        assert found.dtype == np.int64


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(0.1) / 2, Fraction(37, 10), Fraction(1, 10**6)])
def test_weights_from_a_table_are_the_weights_themselves(rate):
    gaps = sorted({*range(80), *np.random.default_rng(0).integers(0, 9_000, 100).tolist()})
    assert grid_choice._weights(rate, gaps) == [exp_negative(rate * gap) for gap in gaps]
