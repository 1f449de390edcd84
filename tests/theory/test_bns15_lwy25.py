"""BNS15 and LWY25: sample sizes by simulation on thresholds and by exact tails, where they are false, constants."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from quorate import theory
from quorate.errors import InvalidParameter
from quorate.learners.sanitizers import theorem_size
from quorate.mechanisms import PrivatePrediction

shares = st.floats(0.001, 0.9)


def dichotomies_of_intervals(n: int) -> int:
    """Thresholds from both sides of n points on a line: at most one run of ones."""
    return len({tuple(int(a <= i < b) for i in range(n)) for a in range(n + 1) for b in range(a, n + 1)})


@pytest.mark.parametrize("n", range(1, 9))
def test_sauer_is_attained_by_intervals_and_below_its_rounder_form(n):
    assert dichotomies_of_intervals(n) == theory.sauer(n, 2)
    if n >= 2:
        assert theory.sauer(n, 2) <= theory.bns15_theorem_b_2(n, 2)


def test_the_printed_form_is_false_below_the_dimension_and_asks_for_more_points():
    assert (math.e * 1 / 10) ** 10 < 1e-5 < theory.sauer(1, 10) == 2
    with pytest.raises(InvalidParameter, match=r"^n_points must be a whole number >= 10"):
        theory.bns15_theorem_b_2(9, 10)


def error_of_the_rememberer(mass: np.ndarray, rows: int, rng: np.random.Generator) -> float:
    seen = np.zeros(mass.size, dtype=bool)
    seen[rng.choice(mass.size, rows, p=mass)] = True
    return float(mass[~seen] @ (rng.random((~seen).sum()) < 0.5))


@pytest.mark.parametrize("heavy", [0, 1, 5, 10])
def test_the_lower_bound_as_printed_is_false_for_a_large_alpha(heavy):
    """34 labels are enough for an error of 0.99 with β = 0.41, in any dimension."""
    rng = np.random.default_rng(heavy)
    mass = np.full(2_000, (1 - 0.1 * heavy) / (2_000 - heavy))
    mass[:heavy] = 0.1
    failures = sum(error_of_the_rememberer(mass, 34, rng) > 0.99 for _ in range(300))
    assert stats.binom.cdf(failures, 300, 0.41) < 1e-6, "it fails significantly less often than β"
    assert theory.bns15_theorem_b_3(2_000, 0.99) > 100 > 34


@pytest.mark.parametrize(("d", "alpha"), [(2, 0.1), (17, 0.1), (200, 0.02)])
def test_with_fewer_labels_every_learner_errs_with_a_probability_of_a_seventh(d, alpha):
    """The distribution of the proof, on which to remember is the best there is."""
    rng = np.random.default_rng(d)
    rows = math.ceil(theory.bns15_theorem_b_3_for_small_errors(d, alpha)) - 1
    mass = np.array([1 - 8 * alpha, *[8 * alpha / (d - 1)] * (d - 1)])

    def fails(rows: int) -> int:
        wrong = 0
        for _ in range(1_000):
            left = int((rng.multinomial(rows, mass)[1:] == 0).sum())
            wrong += rng.binomial(left, 0.5) * mass[1] > alpha
        return wrong

    assert stats.binom.cdf(fails(rows), 1_000, 1 / 7) > 1e-6
    assert stats.binom.cdf(fails(8 * rows + 40), 1_000, 1 / 7) < 1e-6, "with many labels it does learn"
    with pytest.raises(InvalidParameter, match=r"^alpha must be "):
        theory.bns15_theorem_b_3_for_small_errors(d, 0.2)


@given(shares, shares)
def test_consistent_thresholds_are_good_with_so_many_rows(alpha, beta):
    """All consistent ones, truth inside: an empty stretch of α on one side of it has probability (1 − α)^m."""
    m = math.ceil(theory.bns15_theorem_b_4(1, alpha, beta))
    assert 2 * (1 - alpha) ** m <= beta


def test_b_4_at_a_hand_computed_point():
    assert theory.bns15_theorem_b_4(3, 16 / math.e**4, 2 / math.e**5) == pytest.approx(math.e**4 / 2 * (12 + 5))


def widest(points: np.ndarray, share: float) -> float:
    """On how much of the line two thresholds may differ that differ on a share of the points at most."""
    line = np.sort(np.concatenate([[0.0], points, [1.0]]))
    between = math.floor(share * len(points))
    return float((line[between + 1 :] - line[: -between - 1]).max())


def test_seen_disagreements_of_thresholds_tell_of_all_with_so_many_rows():
    alpha, beta = 0.1, 0.2
    rng = np.random.default_rng(4)
    m = math.ceil(theory.bns15_theorem_b_5(1, alpha, beta))
    assert sum(widest(rng.random(m), alpha / 10) >= alpha for _ in range(30)) == 0
    few = sum(widest(rng.random(30), alpha / 10) >= alpha for _ in range(60))
    assert stats.binom.sf(few - 1, 60, beta) < 1e-6, "with thirty it is seen to fail"


@given(st.integers(1, 50), st.floats(1e-4, 0.99), st.floats(1e-9, 0.99))
def test_b_5_follows_from_relative_deviations(vc, alpha, beta):
    """4 Π(2m)² e^(−0.81αm/4) ≤ β: Vapnik's bound for the differences of two concepts."""
    m = theory.bns15_theorem_b_5(vc, alpha, beta)
    log_growth = 2 * vc * math.log(2 * math.e * m / vc)
    assert math.log(4) + log_growth - 0.81 * alpha * m / 4 <= math.log(beta)


@given(shares, shares)
def test_every_empirical_error_of_a_threshold_is_near_with_so_many_rows(alpha, beta):
    """For thresholds it is the Kolmogorov–Smirnov distance, whose tail is 2 e^(−2mα²) at most (Massart)."""
    m = math.ceil(theory.bns15_theorem_b_6(1, alpha, beta))
    if alpha * beta < 0.9:
        assert 2 * math.exp(-2 * m * alpha**2) <= beta


def test_b_6_as_printed_is_false_for_one_concept():
    assert theory.bns15_theorem_b_6(0, 0.1, 0.1) == 0, "no rows at all"
    assert min(abs(0.5 - share) for share in (0.0, 1.0)) > 0.1, "while one row shows 0 or 1 of an error of 1/2"


@given(st.integers(0, 30), st.floats(0.001, 0.09), st.floats(1e-6, 0.9))
def test_the_learners_ask_for_the_rows_of_the_theorems_as_before(vc, alpha, beta):
    """Written out once more: the sizes that stored plans were made with do not change by a single row."""
    wide = 10 * alpha
    before = math.ceil(48 / wide * (10 * vc * math.log(48 * math.e / wide) + math.log(5 / beta)))
    assert math.ceil(theory.bns15_theorem_b_5(vc, 10 * alpha, beta)) == before
    assert theorem_size(vc, alpha) == int(10 * 50 * vc / alpha**2 * math.log(1 / alpha)) + 1


def test_theorem_3_3_at_a_hand_computed_point_and_only_unlabelled_rows_grow_with_the_domain():
    alpha, beta = 1 / math.e, 1 / math.e**2
    labelled = theory.bns15_theorem_3_3_labelled_shape(3, alpha, beta, 0.5)
    assert labelled == pytest.approx(6 * math.e**3 + 4 * math.e)
    assert theory.bns15_theorem_3_3_rows_shape(8, 3, alpha, beta, 0.5) == pytest.approx(48 * math.e**3 + 4 * math.e)
    assert theory.bns15_theorem_3_3_rows_shape(1, 3, alpha, beta, 0.5) == labelled


def chance_of_a_bad_choice(labellings: np.ndarray, truth: np.ndarray, labelled: int, alpha: float) -> float:
    """Exact: the exponential mechanism at ε = 1 by correct labels on the first points."""
    mistakes = (labellings[:, :labelled] != truth[:labelled]).sum(axis=1)
    weights = np.exp(-mistakes / 2)
    return float(weights[mistakes > alpha * labelled].sum() / weights.sum())


def test_claim_4_2_as_printed_is_false_where_there_are_fewer_points_than_dimensions():
    everything = np.array(list(product((0, 1), repeat=3)))  # one labelled row, two to be relabelled
    assert theory.bns15_claim_4_2(100, 0.5, 0.1, 1) >= 2
    bad = chance_of_a_bad_choice(everything, np.zeros(3), 1, 0.5)
    assert bad == pytest.approx(1 / (1 + math.sqrt(math.e)))
    assert bad > 3 * 0.1
    assert theory.bns15_claim_4_2_counted(100, 0.5, 0.1, 1) == -1


@pytest.mark.parametrize(("alpha", "beta", "labelled"), [(0.1, 0.1, 120), (0.3, 0.05, 40), (0.2, 0.2, 60)])
def test_the_counted_claim_holds_for_thresholds_whatever_their_truth(alpha, beta, labelled):
    relabelled = min(theory.bns15_claim_4_2_counted(1, alpha, beta, labelled), 600)
    n = labelled + relabelled
    place = np.random.default_rng(labelled).permutation(n)  # where on the line each of the points is
    labellings = (place < np.arange(n + 1)[:, None]).astype(int)
    assert all(chance_of_a_bad_choice(labellings, truth, labelled, alpha) <= beta for truth in labellings[:: n // 20])


def test_that_check_catches_a_class_that_is_too_large_for_its_labels():
    everything = np.array(list(product((0, 1), repeat=10)))
    assert chance_of_a_bad_choice(everything, np.zeros(10), 5, 0.1) > 0.5


@given(st.integers(1, 40), shares, shares, st.integers(1, 500))
def test_the_counted_claim_is_the_largest_that_its_inequality_allows(vc, alpha, beta, labelled):
    found = theory.bns15_claim_4_2_counted(vc, alpha, beta, labelled)
    room = math.log(beta) + alpha * labelled / 2
    if found >= 0:
        assert math.log(theory.sauer(labelled + found, vc)) <= room
    if found < 1 << 59:
        assert math.log(theory.sauer(labelled + found + 1, vc)) > room * (1 - 1e-12)
    printed = theory.bns15_claim_4_2(vc, alpha, beta, labelled)
    if 0 <= printed < 1 << 59 and labelled + math.floor(printed) > vc:
        assert found >= math.floor(printed), "where Sauer's lemma applies the printed claim follows from the count"


@given(st.integers(1, 40), shares, shares, st.integers(0, 5_000), st.floats(0.1, 5))
def test_relabelled_points_are_counted_as_before(vc, alpha, beta, kept, epsilon_0):
    exponent = epsilon_0 * alpha * kept / (2 * vc)
    before = beta / math.e * vc * math.exp(exponent) if exponent < 700 else float("inf")
    found = theory.bns15_claim_4_2_points(vc, alpha, beta, kept, epsilon=epsilon_0)
    assert found == before
    if exponent < 700:  # |H| exp(−ε₀ α |S| / 2) ≤ β with |H| by Sauer's lemma, at the largest |S∘T|
        assert vc * math.log(math.e * found / vc) - vc * exponent <= math.log(beta) + 1e-9


@given(st.integers(1, 40), shares, shares)
def test_claim_4_9_begins_where_it_says_and_every_iteration_leads_to_the_next(vc, alpha, beta):
    first = theory.bns15_claim_4_9_labelled(vc, alpha, beta)
    assert theory.bns15_claim_4_9_iteration(vc, alpha, beta, 1) == pytest.approx(first)
    for i in (1, 2, 5):
        alpha_i, beta_i = theory.bns15_algorithm_3_accuracy(alpha, beta, i)
        assert (alpha_i, beta_i) == (alpha / (10 * 2**i), beta / (4 * 2**i)), "as stored plans have it"
        exponent = alpha_i * theory.bns15_claim_4_9_iteration(vc, alpha, beta, i) / (200 * vc)
        after = math.log(beta_i * vc / 100) + exponent  # a hundredth of S and T together
        assert after >= math.log(theory.bns15_claim_4_9_iteration(vc, alpha, beta, i + 1))
        kept = theory.bns15_claim_4_9_iteration(vc, alpha, beta, i) / 100
        assert kept >= theory.bns15_theorem_b_5(vc, 10 * alpha_i, beta_i), "as Claim 4.11 uses Theorem B.5"


def test_algorithm_3_takes_what_a_hundredth_can_relabel_and_never_more_than_30000n():
    """log(1/β_i) = 0 is not allowed, so at β_i = 1/2: ½ e^10 − 2000 by hand."""
    assert theory.bns15_algorithm_3_taken(1, 0.5, 0.5, 4_000, 10) == pytest.approx(math.exp(10) / 2 - 4_000)
    assert theory.bns15_algorithm_3_taken(1, 0.5, 0.5, 40_000, 10) == 300_000
    assert theory.bns15_algorithm_3_taken(1, 0.5, 0.5, 10**9, 10) == 300_000, "and beyond a float"
    taken = theory.bns15_algorithm_3_taken(2, 0.3, 0.2, 9_000, 10**6)
    assert taken / 100 <= theory.bns15_claim_4_2(2, 0.3, 0.2, 90), "Claim 4.2 covers what is left of it"


@given(st.integers(1, 40), shares, shares, st.floats(0.01, 1))
def test_labels_of_the_boosted_learners(vc, alpha, beta, epsilon):
    boosted = theory.bns15_theorem_4_13_shape(vc, alpha, beta)
    assert boosted * math.exp(0) == pytest.approx(vc * -math.log(alpha * beta) / alpha)
    assert theory.bns15_theorem_4_14_shape(vc, alpha, beta, epsilon) == pytest.approx(boosted / epsilon)
    assert theory.bns15_theorem_4_16_shape(vc, alpha, beta, epsilon) == pytest.approx(boosted / (alpha * epsilon))
    assert theory.bns15_theorem_5_8_shape(vc, alpha, beta) == boosted, "an active learner's labels do not know ε"
    constant = theory.bns15_claim_4_9_labelled(vc, alpha, beta) / boosted
    assert constant >= 96_000, "the constant that O(·) stands for; larger where the logarithm is small"


@given(st.floats(1e-4, 1 / 9), st.floats(1e-3, 1 / 4), st.floats(0.01, 2), st.sampled_from([0.0, 1e-12, 1e-9]))
def test_labels_of_a_transcript_private_learner_solve_the_last_line_of_its_proof(alpha, beta, epsilon, delta):
    n = max(10**6, math.ceil(100 / alpha**2 * -math.log(alpha * beta)))
    rule = theory.bns15_theorem_5_6
    m = rule(alpha, beta, epsilon, delta, n)
    by_hand = math.exp(-2 * epsilon) * (1 - 25 / 9 * beta) / (9 * alpha * n) - delta * (1 + math.exp(-epsilon))
    assert m / n == pytest.approx(max(0.0, by_hand), abs=1e-15)
    assert rule(alpha, beta, epsilon, 0.0, 1) == rule(alpha, beta, epsilon, 0.0, n)


def test_a_learner_that_asks_about_rows_at_random_meets_the_lower_bound_within_its_constant():
    """Questions that no row decides are private at every ε."""
    for alpha in (0.1, 0.01, 0.001):
        enough = math.ceil(math.log(2 / 0.05) / alpha)  # rows at random: none within α of a side of the cut, but for β
        asked = theory.bns15_theorem_5_6(alpha, 0.05, 1e-6, 0.0, 10**9)
        assert asked < enough < 40 * asked


chances = st.floats(1e-4, 0.9)


@given(st.floats(1, 1_000), chances, chances, st.floats(1, 100))
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


def failures_of(n: int, fails, trials: int = 200) -> int:
    rng = np.random.default_rng(n)
    return sum(fails(max(n, 2), rng) for _ in range(trials))


def test_the_shapes_are_right_for_thresholds_up_to_a_constant():
    """Four times the shape is enough, a tenth is not: both lemmas, α = 0.05 and β = 0.1."""
    alpha, beta = 0.05, 0.1
    near = theory.lwy25_lemma_2_5_shape(1, alpha, beta)
    all_ = theory.lwy25_lemma_2_6_shape(1, alpha, beta)
    for shape, fails in (
        (near, lambda n, rng: widest(rng.random(n), alpha) > 2 * alpha),
        (all_, lambda n, rng: deviation(rng.random(n)) > alpha),
    ):
        assert stats.binom.sf(failures_of(round(4 * shape), fails) - 1, 200, beta) > 1e-6
        assert stats.binom.sf(failures_of(round(shape / 10), fails) - 1, 200, beta) < 1e-6


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


@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(1e-3, 0.3), chances, st.floats(0.01, 1))
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


@given(st.floats(1e-6, 0.99), st.floats(0.01, 10))
def test_the_mechanism_takes_its_number_from_here(alpha, epsilon):
    mechanism = PrivatePrediction(epsilon)
    assert mechanism.n_hypotheses(alpha) == math.ceil(6 * math.log(4 / alpha) / mechanism.epsilon)
    assert mechanism.n_hypotheses(alpha) == theory.lwy25_lemma_4_1_hypotheses(alpha, mechanism.epsilon)
