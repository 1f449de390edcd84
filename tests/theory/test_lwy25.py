"""LWY25: the inequalities by property, the shapes by simulation on thresholds, and r by exact binomial tails."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from quorate import theory
from quorate.errors import InvalidParameter
from quorate.mechanisms import PrivatePrediction

few = settings(max_examples=25)

shares = st.floats(1e-4, 0.9)


@few
@given(st.floats(1, 1_000), shares, shares, st.floats(1, 100))
def test_lemma_3_3_holds_from_its_n_on(d, alpha, beta, further):
    n = theory.lwy25_lemma_3_3(d, alpha, beta) * further
    assert n * alpha * (1 + 1e-12) >= d * math.log(math.e * n / d) + math.log(1 / beta)


def test_that_property_fails_for_a_third_of_it():
    n = theory.lwy25_lemma_3_3(5, 0.01, 0.1) / 3
    assert n * 0.01 < 5 * math.log(math.e * n / 5) + math.log(10)


def deviation(points: np.ndarray) -> float:
    """Largest difference of the empirical and the true share below a threshold, on [0, 1]."""
    ranks, ordered = np.arange(len(points) + 1) / len(points), np.sort(points)
    return float(max((ranks[1:] - ordered).max(), (ordered - ranks[:-1]).max()))


def misses(n: int, alpha: float, rng: np.random.Generator) -> bool:
    """Whether thresholds that differ on at most alpha of the points differ on more than 2 alpha of the line."""
    line = np.sort(np.concatenate([[0.0], rng.random(n), [1.0]]))
    inside = math.floor(alpha * n)
    return bool((line[inside + 1 :] - line[: -inside - 1]).max() > 2 * alpha)


def failures(n: int, fails, trials: int = 200) -> int:
    rng = np.random.default_rng(n)
    return sum(fails(max(n, 2), rng) for _ in range(trials))


def test_the_shapes_are_right_for_thresholds_up_to_a_constant():
    """Four times the shape is enough, a tenth is not: both lemmas, α = 0.05 and β = 0.1."""
    alpha, beta = 0.05, 0.1
    near = theory.lwy25_lemma_2_5_shape(1, alpha, beta)
    all_ = theory.lwy25_lemma_2_6_shape(1, alpha, beta)
    for shape, fails in (
        (near, lambda n, rng: misses(n, alpha, rng)),
        (all_, lambda n, rng: deviation(rng.random(n)) > alpha),
    ):
        assert stats.binom.sf(failures(round(4 * shape), fails) - 1, 200, beta) > 1e-6
        assert stats.binom.sf(failures(round(shape / 10), fails) - 1, 200, beta) < 1e-6


def test_the_shapes_at_hand_computed_points():
    alpha, beta = math.exp(-2), math.exp(-3)
    assert theory.lwy25_lemma_2_5_shape(4, alpha, beta) == pytest.approx(11 * math.e**2)
    assert theory.lwy25_lemma_2_6_shape(4, alpha, beta) == pytest.approx(7 * math.e**4)
    assert theory.lwy25_claim_3_2_relabelled_shape(4, alpha, beta) == pytest.approx(11 * math.e**2)
    assert theory.lwy25_claim_3_2_others_shape(4, alpha, beta, 0.5, 30) == pytest.approx(7 * math.e**4)
    assert theory.lwy25_claim_3_2_others_shape(4, alpha, beta, 0.01, 30) == 500
    assert theory.lwy25_theorem_3_6_shape(10, 4, alpha, beta, 0.5) == pytest.approx(10 + 22 * math.e**2 + 7 * math.e**4)
    votes = (4 * 4 + 2 * (math.log(2) + 3)) / 0.5 * math.e**2
    assert theory.lwy25_theorem_4_2_shape(4, alpha, beta, 0.5) == pytest.approx(votes + 7 * math.e**4)


@few
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(1e-3, 0.3), shares, st.floats(0.01, 1))
def test_what_privacy_adds_does_not_grow_as_one_over_epsilon_with_the_square_of_alpha(n_base, vc, alpha, beta, epsilon):
    """Theorem 3.6: of the terms only the one in 1/α has an ε."""
    here, there = (theory.lwy25_theorem_3_6_shape(n_base, vc, alpha, beta, each) for each in (epsilon, 2 * epsilon))
    assert here - there == pytest.approx(theory.lwy25_lemma_2_5_shape(vc, alpha, beta) / (2 * epsilon), rel=1e-6)
    assert here >= n_base + theory.lwy25_lemma_2_6_shape(vc, alpha, beta)


def test_where_a_logarithm_would_be_negative_the_shape_is_refused():
    with pytest.raises(InvalidParameter, match=r"^alpha must be a number > 0 and <= 0\.367879"):
        theory.lwy25_theorem_4_2_shape(1, 0.4, 0.1, 1.0)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("alpha", [0.3, 0.05])
def test_so_many_hypotheses_vote_right_by_the_exponential_mechanism(alpha, epsilon):
    r = theory.lwy25_lemma_4_1_hypotheses(alpha, epsilon)

    def error(r: int) -> float:
        wrong = np.arange(r + 1)
        chosen = 1 / (1 + np.exp(epsilon * (r - 2 * wrong) / 2))
        return float(stats.binom.pmf(wrong, r, alpha / 4) @ chosen)

    assert error(r) <= alpha
    few = max(1, r // 8)
    assert error(few) > alpha / 4 >= error(r), "an eighth is seen to be less"


@few
@given(st.floats(1e-6, 0.99), st.floats(0.01, 10))
def test_the_mechanism_takes_its_number_from_here(alpha, epsilon):
    mechanism = PrivatePrediction(epsilon)
    assert mechanism.n_hypotheses(alpha) == math.ceil(6 * math.log(4 / alpha) / mechanism.epsilon)
    assert mechanism.n_hypotheses(alpha) == theory.lwy25_lemma_4_1_hypotheses(alpha, mechanism.epsilon)
