"""BTT18, BTT18a, cut-offs: values by hand, exact tails, simulation, the equations that the proofs solve."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from quorate import theory
from quorate.errors import InvalidParameter

TRUTH = 0.5  # a threshold on [0, 1], uniform points


def threshold_teachers(rng: np.random.Generator, n_teachers: int, rows: int) -> np.ndarray:
    """Thresholds that are consistent with their rows: the largest point below the truth."""
    points = rng.random((n_teachers, rows))
    return np.where(points < TRUTH, points, 0.0).max(axis=1)


def mistaken(teachers: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Which teacher errs on which query ``(n_queries, n_teachers)``: between its threshold and the truth."""
    return (queries[:, None] >= teachers) & (queries[:, None] < TRUTH)


@given(st.floats(0.01, 10), st.floats(1e-12, 0.1), st.floats(1e-9, 0.5))
def test_so_stable_a_value_is_declined_with_half_of_beta(epsilon, delta, beta):
    threshold = math.log(1 / delta) / epsilon
    declined = stats.laplace.cdf(threshold - theory.btt18_theorem_2_5(epsilon, delta, beta), scale=1 / epsilon)
    assert declined == pytest.approx(beta / 2, rel=1e-6)


def test_algorithm_2_at_a_hand_computed_point():
    """log(2/δ) = 8 and T = 4: λ = sqrt(32 · 4 · 8)/2 = 16; 4mT/δ = e^12 makes k = 34 sqrt(2) · 16 · 12."""
    delta = 2 / math.exp(8)
    assert theory.btt18_algorithm_2_noise(2.0, delta, 4, 5)[0] == pytest.approx(16)
    assert theory.btt18_algorithm_2_noise(2.0, delta, 4, 5)[1] == pytest.approx(32 * (8 + math.log(5)))
    k = theory.btt18_algorithm_2_teachers(2.0, delta, 4, 5, 0.9)
    assert k == pytest.approx(34 * math.sqrt(2) * 16 * math.log(80 / delta))


@given(st.floats(0.01, 1), st.floats(1e-12, 0.1), st.integers(1, 100), st.integers(1, 10**6), st.floats(1e-6, 0.5))
def test_two_thirds_of_so_many_teachers_outvote_all_noise(epsilon, delta, cutoff, m, beta):
    """Also at half the printed distance, which is the one of sensitivity 1: ceil(gap/2) − 1 ≥ k/6 − 1."""
    scale, threshold = theory.btt18_algorithm_2_noise(epsilon, delta, cutoff, m)
    k = theory.btt18_algorithm_2_teachers(epsilon, delta, cutoff, m, beta)
    noise = 3 * scale * math.log((m + cutoff + 1) / (2 * beta))  # all below it together, but for β
    assert k / 6 - 1 > threshold + noise
    assert k == pytest.approx(2 * theory.lzcw21_lemma_3(epsilon, delta, cutoff, m, beta))


@pytest.mark.parametrize("seed", range(20))
def test_counting_and_markov_hold_for_every_ensemble_of_thresholds(seed):
    rng = np.random.default_rng(seed)
    k, m = 30, 400
    teachers, queries = threshold_teachers(rng, k, int(rng.integers(3, 40))), rng.random(m)
    wrong = mistaken(teachers, queries)
    mistakes = int(wrong.sum(axis=0).max())
    for xi in (0.1, 1 / 3, 0.5):
        hard = int((wrong.mean(axis=1) > xi).sum())
        assert hard <= theory.btt18_lemma_3_3_counted(m, k, mistakes, xi) <= theory.btt18_lemma_3_3(mistakes, xi)
    # more than a third errs from the 11th smallest threshold on to the truth: that is the error of the private labels
    error = TRUTH - np.sort(teachers)[k // 3]
    mean = float(np.mean(TRUTH - teachers))
    assert 0 < error <= theory.btt18_claim_4_1_by_markov(0.0, mean) <= theory.btt18_claim_4_1(0.0, mean)


def test_the_rate_of_theorem_3_2_on_thresholds_with_noise_free_votes():
    """T of the mean error, and T/m bounds the share of queries that a third of the teachers gets wrong."""
    rng = np.random.default_rng(7)
    m, beta, over = 300, 0.1, 0
    for _ in range(300):
        teachers, queries = threshold_teachers(rng, 30, 10), rng.random(m)
        rate = (mistaken(teachers, queries).mean(axis=1) > 1 / 3).mean()
        cut = theory.cutoff_for_mean_error(float(np.mean(TRUTH - teachers)), m, beta)
        over += rate > theory.btt18_theorem_3_2_rate(cut, m)
    assert stats.binom.sf(over - 1, 300, beta) > 1e-6
    assert theory.btt18_theorem_3_2_rate(2 * m, m) == 1


def test_a_count_one_smaller_is_passed_by_some_ensemble():
    """The corrected count is attained: mistakes dealt out in turn."""
    k, m, mistakes, xi = 7, 50, 4, 0.25
    each = int(xi * k) + 1
    found = theory.btt18_lemma_3_3_counted(m, k, mistakes, xi)
    wrong = np.zeros((m, k), dtype=bool)
    for place in range(found * each):
        wrong[place // each, place % k] = True
    assert wrong.sum(axis=0).max() <= mistakes
    assert (wrong.mean(axis=1) > xi).sum() == found


def test_lemma_3_3_as_printed_is_false_without_mistakes():
    assert not theory.btt18_lemma_3_3(0, 1 / 3) > 0, "no query is fewer than none"
    assert theory.btt18_lemma_3_3_counted(10, 5, 0, 1 / 3) == 0


def test_the_step_in_the_proof_of_claim_4_1_fails_at_the_least_m():
    alpha = beta = 0.01
    m = math.ceil(theory.btt18_claim_4_1_queries(alpha, beta))
    assert math.sqrt(math.log(m / beta) / (2 * m * alpha)) > 40 * alpha  # the root of the proof, at γ = 0
    assert math.sqrt(alpha * math.log(m / beta) / (2 * m)) < alpha  # the root of Theorem 3.2
    gamma = 0.3
    assert math.sqrt((gamma + alpha) * math.log(m / beta) / (2 * m)) > 2 * alpha  # and where γ is large


SIZES = {"n_rows": 100_000, "vc_dimension": 5, "epsilon": 0.5}
RATIO = 5 / 50_000  # V/(εn)


@pytest.mark.parametrize("m", [20_000, 10**6])
def test_theorem_3_4_solves_cutoff_teachers_and_accuracy_together(m):
    """T = mα, α = kV/n, k = √T/ε."""
    found = theory.btt18_theorem_3_4_shape(n_queries=m, **SIZES)
    teachers = math.sqrt(found.cutoff) / 0.5
    assert found.cutoff == pytest.approx(m * teachers * 5 / 100_000)
    assert found.rate == pytest.approx(found.cutoff / m) == found.rate_by_cutoff


@pytest.mark.parametrize(("m", "gamma"), [(20_000, 0.0), (10**6, 0.0)])
def test_theorem_3_5_solves_them_in_the_agnostic_case(m, gamma):
    """T = m(γ + α), α = sqrt(kV/n), k = √T/ε; at γ = 0 exactly."""
    found = theory.btt18_theorem_3_5_shape(n_queries=m, gamma=gamma, **SIZES)
    assert found.cutoff == pytest.approx(m * math.sqrt(math.sqrt(found.cutoff) / 0.5 * 5 / 100_000))
    assert theory.btt18_theorem_3_5_shape(n_queries=m, gamma=0.2, **SIZES).rate == pytest.approx(found.rate + 0.2)


def test_both_branches_meet_at_m_queries_and_free_queries_are_as_without_privacy():
    free = round(1 / RATIO)
    assert theory.btt18_theorem_3_4_shape(n_queries=free, **SIZES).rate == pytest.approx(RATIO)
    assert theory.btt18_theorem_3_4_shape(n_queries=free + 1, **SIZES).rate == pytest.approx(RATIO, rel=1e-3)
    free = round(math.sqrt(1 / RATIO))
    assert theory.btt18_theorem_3_5_shape(n_queries=free, gamma=0, **SIZES).rate == pytest.approx(math.sqrt(RATIO))
    assert theory.btt18_theorem_3_5_shape(n_queries=free + 1, gamma=0, **SIZES).rate == pytest.approx(
        math.sqrt(RATIO), rel=0.01
    )
    assert theory.btt18_theorem_3_5_shape(n_queries=50, gamma=0.1, **SIZES).free_queries == 10


def test_below_m_queries_the_printed_rate_is_not_what_the_cutoff_gives():
    """Errors that come with probability 1/M a query: among √β M queries one is too many, more often than β."""
    found = theory.btt18_theorem_3_4_shape(n_queries=1_000, **SIZES)
    assert found.free_queries == pytest.approx(10_000)
    assert found.rate_by_cutoff == pytest.approx(1e-3)
    assert found.rate == pytest.approx(1e-4)
    assert stats.binom.sf(0, 1_000, found.rate) > 9 * 0.01  # β = 0.01: a rate of at least 1/m = 10 · rate


@given(st.integers(1, 10**9))
def test_the_theorem_is_better_than_advanced_composition_up_to_the_square(m):
    ours = theory.btt18_theorem_3_4_shape(n_queries=m, **SIZES).rate
    theirs = theory.btt18_advanced_composition_shape(n_queries=m, **SIZES)
    assert (ours <= theirs * (1 + 1e-9)) == (m <= round(RATIO**-2))


@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_at_one_rate_it_answers_one_over_alpha_times_as_many(alpha):
    ours, theirs = alpha / RATIO**2, alpha**2 / RATIO**2
    assert theory.btt18_theorem_3_4_shape(n_queries=round(ours), **SIZES).rate == pytest.approx(alpha)
    assert theory.btt18_advanced_composition_shape(n_queries=round(theirs), **SIZES) == pytest.approx(alpha)
    assert ours / theirs == pytest.approx(theory.btt18_queries_gained_shape(alpha))


@pytest.mark.parametrize(("vc", "alpha", "epsilon"), [(5, 0.1, 0.5), (2, 0.01, 2.0)])
def test_the_private_rows_of_section_4_train_each_teacher_to_alpha(vc, alpha, epsilon):
    """n/k = V/α (V/α² in the agnostic case), k = √T/ε, T at m = V/α² public points; by hand for the remarks."""
    m = vc / alpha**2
    n = theory.btt18_theorem_4_2_shape(vc, alpha, epsilon)
    cutoff = (m * vc / (epsilon * n)) ** 2
    assert n * epsilon / math.sqrt(cutoff) == pytest.approx(vc / alpha)
    n = theory.btt18_theorem_4_3_shape(vc, alpha, epsilon)
    cutoff = m ** (4 / 3) * (vc / (epsilon * n)) ** (2 / 3)
    assert n * epsilon / math.sqrt(cutoff) == pytest.approx(vc / alpha**2)
    n = theory.btt18_remark_2_shape(vc, alpha, epsilon)
    cutoff = (vc / alpha * vc / (epsilon * n)) ** 2  # V/α public points
    assert n * epsilon / math.sqrt(cutoff) == pytest.approx(vc / alpha)
    assert theory.btt18_remark_3_shape(vc, alpha, epsilon) * epsilon == pytest.approx(vc * vc / alpha)
    assert theory.btt18_public_rows_shape(vc, alpha, alpha) == pytest.approx(m + math.log(1 / alpha) / alpha**2)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: theory.btt18_claim_4_1_queries(0.1, 0.2), "beta"),
        (lambda: theory.btt18_public_rows_shape(1, 0.1, 0.2), "beta"),
        (lambda: theory.btt18_theorem_3_4_shape(10, 10, 10, 0.5), "vc_dimension"),
        (lambda: theory.btt18a_agreeing_parts(10, 0.1, 2 / 3), "share"),
        (lambda: theory.btt18_lemma_3_3(1, 0.51), "xi"),
        (lambda: theory.btt18_cutoff(1.1, 10, 0.1), "error"),
        (lambda: theory.cutoff_for_mean_error(0.1, 0, 0.1), "n_queries"),
        (lambda: theory.cutoff_for_mean_error(0.1, 10, 1), "beta"),
        (lambda: theory.cutoff_for_mean_error(0.1, 10, 0.1, disagreeing=0.6), "disagreeing"),
    ],
)
def test_conditions_of_the_theorems_are_asked_for(call, named):
    with pytest.raises(InvalidParameter, match=f"^{named} must be "):
        call()


@pytest.mark.parametrize(("m", "beta"), [(1, 0.5), (100, 0.05), (10_000, 1e-6)])
def test_two_thirds_of_so_many_parts_agree_by_exact_tails(m, beta):
    k = math.ceil(theory.btt18a_agreeing_parts(m, beta))
    assert m * stats.binom.cdf(math.ceil(2 * k / 3) - 1, k, 0.75) <= beta / 2
    few = k // 20
    assert m * stats.binom.cdf(math.ceil(2 * few / 3) - 1, few, 0.75) > beta / 2, "a twentieth is too few"


def test_the_printed_number_of_parts_is_lemma_3_of_lzcw21_and_too_small_at_a_large_epsilon():
    arguments = (1e-5, 10, 1_000, 0.05)
    assert theory.btt18a_theorem_3_11(1.0, *arguments) == theory.lzcw21_lemma_3(1.0, *arguments)
    assert theory.btt18a_theorem_3_11_at_any_epsilon(1.0, *arguments) == theory.btt18a_theorem_3_11(1.0, *arguments)
    k = math.ceil(theory.btt18a_theorem_3_11(5_000.0, *arguments))
    assert 1_000 * stats.binom.cdf(math.ceil(2 * k / 3) - 1, k, 0.75) > 1
    assert theory.btt18a_theorem_3_11_at_any_epsilon(5_000.0, *arguments) == pytest.approx(72 * math.log(2_000 / 0.05))


@given(st.floats(0.01, 3), st.floats(1e-12, 0.1), st.integers(1, 200), st.integers(1, 10**6), st.floats(1e-6, 0.5))
def test_a_third_of_the_parts_of_theorem_3_11_is_the_distance_of_corollary_3_9(epsilon, delta, cutoff, m, beta):
    """As the proof of the theorem has it: two thirds of k agree, so the lead is a third, and that is far enough."""
    arguments = epsilon, delta, cutoff, m, beta
    assert theory.btt18a_corollary_3_9(*arguments) <= theory.btt18a_theorem_3_11(*arguments) / 3
    assert theory.btt18a_corollary_3_9(*arguments) > theory.btt18a_theorem_3_11(*arguments) / 12


def one_pass(rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Logistic loss log(1 + e^(−w·z)), |z| ≤ 1, one step a row in the given order; any number of tables at once."""
    w = np.zeros((*rows.shape[:-2], rows.shape[-1]))
    for t, step in enumerate(steps):
        z = rows[..., t, :]
        w = w + step * z / (1 + np.exp((w * z).sum(axis=-1)))[..., None]
    return w


def average_change(n: int, steps: np.ndarray, trials: int, rng: np.random.Generator) -> np.ndarray:
    """For each trial by how much a replaced random row moves the parameters of one pass."""
    rows = rng.normal(size=(trials, n, 3))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    other = rows.copy()
    fresh = rng.normal(size=(trials, 3))
    other[np.arange(trials), rng.integers(n, size=trials)] = fresh / np.linalg.norm(fresh, axis=-1, keepdims=True)
    return np.linalg.norm(one_pass(rows, steps) - one_pass(other, steps), axis=-1)


@pytest.mark.parametrize("falling", [False, True])
def test_one_pass_without_any_coin_is_on_average_stable(falling):
    n = 40
    steps = 2.0 / np.arange(1, n + 1) if falling else np.full(n, 0.5)  # at most 2/β = 8
    bound = theory.btt18a_theorem_2(theory.hrs16_convex_parameters(1.0, 0.25, steps, n))
    change = average_change(n, steps, 4_000, np.random.default_rng(1))
    assert change.mean() + 6 * change.std() / math.sqrt(4_000) <= bound
    assert change.mean() > bound / 8, "and the bound is not far off"


def test_without_shuffling_it_is_not_uniformly_stable_by_the_same_number():
    """Linear losses w·z, z = ±1: row 1 moves w by 2α₁, the rows on average by α_t; by hand."""
    n = 50
    steps = 1 / np.arange(1, n + 1)
    bound = theory.btt18a_theorem_2(theory.hrs16_convex_parameters(1.0, 0.0, steps, n))
    assert 2 * steps[0] > 10 * bound, "the first row alone"
    assert steps.mean() == pytest.approx(bound / 2), "E|z − z'| = 1 in the mean over rows, exactly"


def test_a_claim_of_less_than_that_is_caught():
    rng = np.random.default_rng(2)
    n = 20
    steps = np.full(n, 0.5)
    rows, fresh = rng.choice([-1, 1], size=(2_000, n)), rng.choice([-1, 1], size=2_000)
    place = rng.integers(n, size=2_000)
    change = steps[place] * np.abs(rows[np.arange(2_000), place] - fresh)
    claimed = 0.8 * theory.hrs16_convex_parameters(1.0, 0.0, steps, n) / 2
    assert stats.ttest_1samp(change, claimed, alternative="greater").pvalue < 1e-6


def test_the_numbers_of_the_convex_theorem_and_its_condition():
    assert theory.hrs16_convex_parameters(3.0, 4.0, [0.5, 0.25], 30) == pytest.approx(2 * 3 * 0.75 / 30)
    assert theory.hrs16_convex(3.0, 4.0, [0.5, 0.25], 30) == pytest.approx(2 * 9 * 0.75 / 30)
    assert theory.hrs16_convex(3.0, 0.0, [100.0], 30) == pytest.approx(60)
    with pytest.raises(InvalidParameter, match=r"^steps must be a number > 0 and <= 0\.5"):
        theory.hrs16_convex(3.0, 4.0, [0.6], 30)


@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0.1, 3), st.integers(1, 10_000), st.integers(2, 10_000))
def test_the_non_convex_bound_is_the_best_step_at_which_the_changed_row_may_be_met(lipschitz, smoothness, c, steps, n):
    """min over t₀ of t₀/(n−1) + 2L²/(β(n−1)) (T/t₀)^(βc), which the printed form solves."""
    power = smoothness * c

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        return (t + 2 * lipschitz**2 / smoothness * (steps / t) ** power) / (n - 1)

    found = optimize.minimize_scalar(bound, bounds=(-30, 30), method="bounded", options={"xatol": 1e-9})
    assert theory.hrs16_non_convex(lipschitz, smoothness, c, steps, n) == pytest.approx(found.fun, rel=1e-6)


rates = st.floats(0, 1)
betas = st.floats(1e-9, 0.5)


def test_the_printed_value_at_a_hand_computed_point():
    """(γ+α)m = 25, m/β = e^8: 3 (25 + sqrt(25 · 8 / 2)) = 3 (25 + 10)."""
    assert theory.btt18_cutoff(0.05, 500, 500 / math.exp(8)) == pytest.approx(105)


@pytest.mark.parametrize(("error", "m"), [(0.01, 1_000), (0.1, 1_000), (0.3, 10_000)])
def test_at_the_printed_constant_a_teacher_passes_b_far_more_often_than_the_proof_needs(error, m):
    beta = 0.05
    b = theory.btt18_cutoff(error, m, beta) / 3
    passing = stats.binom.sf(math.floor(b), m, error)

    assert passing > 50 * beta / m  # what a union over m or more teachers would need
    assert passing < (beta / m) ** 0.25


def test_at_a_small_beta_the_printed_cutoff_is_passed_more_often_than_beta():
    """On a share 3e of the queries a third of the teachers, drawn anew, is mistaken: each errs with rate e.

    How many such queries there are is binomial, and T has to bound it.
    """
    error, m, beta = 0.005, 200, 1e-9
    printed, ours = math.ceil(theory.btt18_cutoff(error, m, beta)), theory.cutoff_for_mean_error(error, m, beta)

    assert stats.binom.sf(printed - 1, m, 3 * error) > 1e3 * beta
    assert stats.binom.sf(ours - 1, m, 3 * error) <= beta


@given(error=st.floats(0, 0.3), m=st.integers(1, 5_000), beta=betas)
def test_the_worst_teachers_pass_it_with_at_most_beta(error, m, beta):
    """Mean e means that a share 1/3 (and a hair) errs together on as many queries as 3e allows; T is passed rarely."""
    cut = theory.cutoff_for_mean_error(error, m, beta)
    if cut < m:
        assert stats.binom.sf(cut - 1, m, min(3 * error, 1.0)) <= beta * (1 + 1e-9)


@pytest.mark.parametrize("error", [0.02, 0.1, 0.2])
def test_simulated_ensembles_stay_below_it(error):
    """30 teachers, some better, some worse, that err on the same hard queries: failures no more often than β."""
    rng = np.random.default_rng(5)
    m, beta, trials, k = 200, 0.1, 400, 30
    own = np.linspace(0.5, 1.5, k) * error
    cut = theory.cutoff_for_mean_error(error, m, beta)
    failures = 0
    for _ in range(trials):
        hard = rng.random(m) < 2 * error  # on hard queries teachers err with half their rate over 2e, else elsewhere
        rate = np.where(hard[:, None], 0.5 * own / (2 * error), 0.5 * own / (1 - 2 * error))
        mistaken = (rng.random((m, k)) < rate).mean(axis=1)
        failures += int((mistaken > 1 / 3).sum() >= cut)
    assert stats.binom.sf(failures - 1, trials, beta) > 1e-6


def test_that_simulation_catches_a_cut_at_the_mean_itself():
    """Without the deviation term: 3 e m of queries are passed about half of the time by the worst teachers."""
    error, m, beta = 0.1, 200, 0.1
    rng = np.random.default_rng(6)
    passed = (rng.random((400, m)) < 3 * error).sum(axis=1) >= math.ceil(3 * error * m)

    assert stats.binom.sf(passed.sum() - 1, 400, beta) < 1e-6


@given(error=rates, m=st.integers(1, 10**6), beta=betas)
def test_it_is_a_number_of_queries_that_grows_with_the_error_and_with_certainty(error, m, beta):
    cut = theory.cutoff_for_mean_error(error, m, beta)

    assert 1 <= cut <= m
    assert cut <= theory.cutoff_for_mean_error(min(1.0, error + 0.1), m, beta)
    assert cut <= theory.cutoff_for_mean_error(error, m, beta / 2)
    assert cut >= min(m, math.floor(3 * error * m))


def test_no_error_at_all_still_leaves_one_answer():
    assert theory.cutoff_for_mean_error(0, 1_000, 0.05) == pytest.approx(1, abs=10)
    assert theory.cutoff_for_mean_error(1, 1_000, 0.05) == 1_000
