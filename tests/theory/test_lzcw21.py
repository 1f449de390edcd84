"""LZCW21: cut-offs and teachers by simulation of Algorithm 2, rates by the equations they solve, and what is false."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from quorate import theory
from quorate.accounting import calibrate_sigma
from quorate.errors import InvalidParameter
from quorate.mechanisms import StableSparseVector
from quorate.theory.lzcw21 import ALGORITHMS, SETTINGS

taus = st.floats(0.05, 1)


def algorithm_2(margins: np.ndarray, scale: float, threshold: float, cutoff: int, rng: np.random.Generator) -> int:
    """How many queries Algorithm 2 answers, and stops at its T-th ⊥; −1 if it declined none of any other kind."""
    distance = np.maximum(0, np.ceil(margins / 2) - 1) + rng.laplace(scale=2 * scale, size=margins.size)
    bar, declined = threshold + rng.laplace(scale=scale), 0
    for place, value in enumerate(distance):
        if value <= bar:
            declined += 1
            if declined >= cutoff:
                return place + 1
            bar = threshold + rng.laplace(scale=scale)
    return margins.size


@pytest.mark.parametrize(("epsilon", "cutoff", "m"), [(1.0, 10, 1_447), (0.3, 50, 10_000)])
def test_the_mechanism_of_that_calibration_takes_its_noise_from_here(epsilon, cutoff, m):
    noise = StableSparseVector(epsilon, 1e-5, cutoff, m, "lzcw21").stage_noise
    assert (noise.threshold_scale, noise.threshold) == theory.lzcw21_algorithm_2_noise(epsilon, 1e-5, cutoff, m)
    room = math.log(2e5)
    assert noise.threshold_scale == (math.sqrt(2 * cutoff * (epsilon + room)) + math.sqrt(2 * cutoff * room)) / epsilon


def test_algorithm_2_composes_to_its_epsilon():
    """T stages of 2/λ are 2T/λ²-zCDP, and ρ + 2 sqrt(ρ log(2/δ)) = ε."""
    scale, _ = theory.lzcw21_algorithm_2_noise(0.7, 1e-5, 12, 500)
    rho = 2 * 12 / scale**2
    assert rho + 2 * math.sqrt(rho * math.log(2e5)) == pytest.approx(0.7)


def run_of_lemma_3(teachers: float, unstable: int, epsilon: float, rng: np.random.Generator) -> bool:
    """Whether all 60 queries are answered, those of margin 0 first, T = 5."""
    scale, threshold = theory.lzcw21_algorithm_2_noise(epsilon, 0.01, 5, 60)
    margins = np.full(60, math.ceil(teachers / 3), dtype=float)
    margins[:unstable] = 0
    return algorithm_2(margins, scale, threshold, 5, rng) == 60


def test_lemma_3_needs_fewer_than_t_unstable_queries_and_a_small_epsilon():
    rng = np.random.default_rng(1)
    printed = {epsilon: theory.lzcw21_lemma_3(epsilon, 0.01, 5, 60, 0.1) for epsilon in (1.0, 2_000.0)}
    ours = {epsilon: theory.lzcw21_lemma_3_at_any_epsilon(epsilon, 0.01, 5, 60, 0.1) for epsilon in (1.0, 2_000.0)}
    for epsilon in ours:
        failed = sum(not run_of_lemma_3(ours[epsilon], 4, epsilon, rng) for _ in range(300))
        assert stats.binom.sf(failed - 1, 300, 0.1) > 1e-6
    failed = sum(not run_of_lemma_3(printed[1.0], 5, 1.0, rng) for _ in range(300))
    assert stats.binom.sf(failed - 1, 300, 0.1) < 1e-6, "T unstable queries, as printed: it breaks off at the T-th"
    failed = sum(not run_of_lemma_3(printed[2_000.0], 0, 2_000.0, rng) for _ in range(300))
    assert stats.binom.sf(failed - 1, 300, 0.1) < 1e-6, "with a large ε the printed K is too small"


@given(st.floats(0.01, 1), st.floats(1e-12, 0.1), st.integers(1, 200), st.integers(1, 10**6), st.floats(1e-6, 0.5))
def test_the_printed_k_is_enough_for_epsilon_up_to_log_2_over_delta(share, delta, cutoff, m, beta):
    epsilon = share * math.log(2 / delta)
    ours = theory.lzcw21_lemma_3_at_any_epsilon(epsilon, delta, cutoff, m, beta)
    assert ours <= theory.lzcw21_lemma_3(epsilon, delta, cutoff, m, beta) + 1


@pytest.mark.parametrize(("epsilon", "under_the_root"), [(1.0, False), (400.0, False), (400.0, True)])
def test_queries_above_the_threshold_by_phi_pass_unless_epsilon_stands_under_the_root(epsilon, under_the_root):
    """T queries at the bottom, which are declined first, and 60 that the lemma speaks of; 4,000 runs."""
    rng, cutoff, m, beta = np.random.default_rng(3), 5, 65, 0.1
    phi = theory.lzcw21_lemma_46(epsilon, 0.01, cutoff, m, beta)
    scale = (
        math.sqrt(32 * cutoff * math.log(100) / epsilon)
        if under_the_root
        else phi / (4 * math.log(2 * m * cutoff / beta))
    )
    assert under_the_root or scale == pytest.approx(math.sqrt(32 * cutoff * math.log(100)) / epsilon)
    bars = rng.laplace(scale=scale, size=(4_000, 1))
    failed = int(((phi + rng.laplace(scale=2 * scale, size=(4_000, m - cutoff))) <= bars).any(axis=1).sum())
    assert (stats.binom.sf(failed - 1, 4_000, beta) < 1e-6) == under_the_root


def test_theorem_5_as_printed_does_not_bound_teachers_that_are_wrong_altogether():
    """Wrong on everything with probability 1/4: then more than a third of 10 teachers is wrong on all m queries."""
    m, beta = 10_000, 0.05
    assert stats.binom.sf(3, 10, 0.25) > 4 * beta
    assert theory.lzcw21_theorem_5_cutoff(0.25, m, beta) < m
    assert theory.lzcw21_theorem_5_cutoff_by_concentration(0.25, m, 10, beta) == m
    rng = np.random.default_rng(2)
    few = theory.lzcw21_theorem_5_cutoff_by_concentration(0.05, m, 500, beta)
    assert few < m
    passed = sum(m * (rng.binomial(500, 0.05) > 500 / 3) >= few for _ in range(500))
    assert stats.binom.sf(passed - 1, 500, beta) > 1e-6


def test_theorem_5_at_hand_computed_points():
    """log(m/β) = 8: T = 3(25 + sqrt(500 · 8/2)); nε = 1000, d = 4, m = 64, log(1/δ) = 2."""
    assert theory.lzcw21_theorem_5_cutoff(0.05, 500, 500 / math.exp(8)) == pytest.approx(3 * (25 + math.sqrt(2_000)))
    realizable = theory.lzcw21_theorem_5_realizable_shape(2_000, 64, 4, 0.5, math.exp(-2))
    assert realizable == pytest.approx(0.25 + 2_048 / 1e6)
    assert theory.lzcw21_theorem_5_agnostic_shape(2_000, 64, 4, 0.5, 0.01) == pytest.approx(0.38 + 4 * 0.004 ** (2 / 3))
    assert theory.lzcw21_teachers_shape(9, 10, 0.5, math.exp(-4), 0.5) == pytest.approx((math.log(90) + 4) * 6 / 0.5)


DELTA, M, GAMMA, XI = 1e-10, 100, 0.05, 0.001


def runs_broken_off(teachers: float, scale: float, runs: int) -> int:
    rng = np.random.default_rng(3)
    cutoff = math.floor(theory.lzcw21_proposition_18_cutoff(0, M, GAMMA)) + 1
    threshold = 3 * scale * math.log(2 * (M + cutoff) / DELTA)
    k = math.floor(teachers) + 1
    margins = np.abs(2 * rng.binomial(k, 0.5 + XI, size=(runs, M)) - k).astype(float)
    return sum(algorithm_2(row, scale, threshold, cutoff, rng) < M for row in margins)


def test_proposition_18_as_printed_is_false_and_with_the_distance_it_holds():
    """Every expected margin is ξ, and the teachers are independent; ε = 0.16 gives this λ."""
    surprise = math.log(3 * M / GAMMA)
    scale = 2 * surprise / XI / (3 * (math.log(4 * M / DELTA) + surprise))  # at which both terms are equal
    assert theory.lzcw21_algorithm_2_noise(0.157, DELTA, 3, M)[0] == pytest.approx(scale, rel=0.02)
    printed = theory.lzcw21_proposition_18_teachers(scale, XI, DELTA, M, GAMMA)
    broken = runs_broken_off(printed, scale, 400)
    assert stats.binom.sf(broken - 1, 400, GAMMA) < 1e-12
    ours = theory.lzcw21_proposition_18_teachers_by_distance(scale, XI, DELTA, M, GAMMA)
    assert stats.binom.sf(runs_broken_off(ours, scale, 400) - 1, 400, GAMMA) > 1e-6


@given(st.floats(0, 0.5), st.integers(1, 10_000), st.floats(1e-6, 0.5))
def test_the_cutoff_of_proposition_18_covers_the_points_of_small_margin(nu, m, gamma):
    """Bernstein: more than so many of m points with probability γ/3 at most, by the exact tail."""
    assert stats.binom.sf(math.floor(theory.lzcw21_proposition_18_cutoff(nu, m, gamma)), m, nu) <= gamma / 3


@given(st.floats(0.1, 1_000), st.floats(1e-3, 0.5), st.integers(1, 10**6))
def test_the_repaired_k_is_at_most_twice_the_printed_one_and_two_over_xi(scale, xi, m):
    printed = theory.lzcw21_proposition_18_teachers(scale, xi, 1e-6, m, 0.05)
    ours = theory.lzcw21_proposition_18_teachers_by_distance(scale, xi, 1e-6, m, 0.05)
    assert printed <= ours <= (2 * printed + 2 / xi) * (1 + 1e-12)


@given(taus, st.integers(10**5, 10**8), st.integers(1, 20))
def test_theorem_10_solves_cutoff_teachers_and_disagreement_together(tau, n, d):
    """T = m (dK/n)^(τ/(2−τ)), K = √T/ε; and T/m is the second term of the bound."""
    m, epsilon = 1_000, 0.5
    cutoff = theory.lzcw21_theorem_10_cutoff_shape(n, m, d, epsilon, tau)
    assert cutoff == pytest.approx(m * (d * math.sqrt(cutoff) / epsilon / n) ** (tau / (2 - tau)))
    assert theory.lzcw21_theorem_10_shape(n, m, d, epsilon, tau) == pytest.approx(d / m + cutoff / m)


@given(taus, st.integers(10**5, 10**8), st.integers(1, 20))
def test_remark_12_balances_the_bound_and_the_minimiser_minimises_it(tau, n, d):
    def bound(log_m: float) -> float:
        m = math.exp(log_m)
        return d / m + (m * (d / (n * 0.5)) ** 2) ** (tau / (4 - 3 * tau))

    balanced = theory.lzcw21_remark_12_queries(n, d, 0.5, tau)
    assert bound(math.log(balanced)) == pytest.approx(2 * d / balanced)
    least = math.log(theory.lzcw21_remark_12_minimiser(n, d, 0.5, tau))
    found = optimize.minimize_scalar(bound, bounds=(least - 5, least + 5), method="bounded")
    assert bound(least) <= found.fun * (1 + 1e-9)
    assert bound(least) <= bound(math.log(balanced)) <= 2 * bound(least)


def test_remark_12_at_tau_1_is_as_printed_and_exact():
    assert theory.lzcw21_remark_12_queries(100_000, 4, 1.0, 1.0) == pytest.approx(100_000 / math.sqrt(4))
    assert theory.lzcw21_remark_12_minimiser(100_000, 4, 1.0, 1.0) == pytest.approx(50_000)


def dimension(sets: set[int], points: int) -> int:
    """The VC dimension of subsets of a few points, as bits."""
    return max(
        k
        for k in range(points + 1)
        for chosen in combinations(range(points), k)
        if len({each & sum(1 << i for i in chosen) for each in sets}) == 2**k
    )


def test_the_dimension_of_votes_is_not_k_times_that_of_the_voters():
    sets = {0, *(1 << i for i in range(5)), 0b11, 0b110, 0b1100, 0b11000, 0b10001, 0b111}
    votes = {a | b for a, b in product(sets, repeat=2)}  # 1 where at least one of two says 1: a tie goes to 1
    assert dimension(sets, 5) == 2
    assert dimension(votes, 5) == 5 > 2 * 2


def test_lemma_36_on_which_theorem_20_rests_lacks_a_logarithm():
    """Sets of 100 of 14,800 points: one of them is not hit by 70,000 draws, which the bound denies at γ = 0.05."""
    points, d, n, gamma = 14_800, 100, 70_000, 0.05
    rng = np.random.default_rng(5)
    missed = sum(points - np.unique(rng.integers(points, size=n)).size >= d for _ in range(20))
    assert stats.binom.sf(missed - 1, 20, gamma) < 1e-12
    assert d / points > 4 * (d + math.log(4 / gamma)) / n
    growth = sum(math.log(2 * math.e * n / d) for _ in range(d))
    assert d / points <= 4 * (growth + math.log(4 / gamma)) / n, "with the growth function it holds"


def test_a_student_of_thresholds_stays_within_the_repaired_bound():
    """One voter, d = 1: T labels are wrong where they harm most, and the student minimises its empirical error."""
    rng = np.random.default_rng(6)
    m, cutoff = 4_000, 60
    bound = theory.lzcw21_theorem_20_by_growth(cutoff, m, 1, 1, 0.05)
    for _ in range(50):
        points = np.sort(rng.random(m))
        labels = points >= 0.5
        labels[np.searchsorted(points, 0.5) + np.arange(cutoff)] = False
        wrong = np.concatenate([[0], np.cumsum(labels)]) + np.concatenate([np.cumsum(~labels[::-1])[::-1], [0]])
        student = np.concatenate([points, [1.0]])[int(np.argmin(wrong))]
        assert abs(student - 0.5) <= bound
        assert abs(student - 0.5) > cutoff / m / 2, "the labels did harm"
    assert bound < 0.1


def test_theorems_19_and_20_at_hand_computed_points():
    assert theory.lzcw21_theorem_19_shape(0.1, 20, 400, 4) == pytest.approx(0.1 + 0.1 + 0.1)
    assert theory.lzcw21_theorem_20(20, 400, 7, 3, 4 / math.e**9) == pytest.approx(0.2 + 5 * 30 / 400)
    assert theory.lzcw21_theorem_20_by_growth(20, 400, 7, 3, 4 / math.e**9) == pytest.approx(
        0.2 + 5 * (21 * (1 + math.log(800 / 3)) + 9) / 400
    )


@pytest.mark.parametrize(("n", "answers", "epsilon"), [(39_073, 293, 1.0), (6_499, 49, 0.5), (1_000, 10, 8.0)])
def test_k_is_six_times_what_the_noise_of_algorithm_1_reaches(n, answers, epsilon):
    delta = 1 / n
    sigma = calibrate_sigma(epsilon, delta, answers, 1.0, calibration="paper")
    k = theory.lzcw21_gaussian_teachers(n, answers, epsilon, delta)
    assert k == pytest.approx(6 * sigma * math.sqrt(2 * math.log(2 * n)), rel=1e-6)
    assert 2 * stats.norm.sf(k / 6 / sigma) <= 1 / n, "a lead of a third of the votes is outvoted this rarely"
    assert 2 * stats.norm.sf(k / 20 / sigma) > 1 / n


def test_labels_and_least_alpha_at_hand_computed_points():
    alpha, gamma = math.exp(-3), 6 / math.exp(4)
    assert theory.lzcw21_answers_shape(math.e, alpha, 5, gamma) == pytest.approx(math.e * 4 * (5 + 4))
    least = theory.lzcw21_theorem_22_alpha_shape(1_000, 10**9, 4, 1_000, 0.5, 8 / math.exp(3), 8.0)
    assert least == pytest.approx(8 ** (4 / 3) * (3 / 1_000) ** (1 / 3)), "dK log(n/d) = 0, log(2K/γ) = 3"
    large = theory.lzcw21_theorem_22_alpha_shape(10**9, 100, 4, 50, 1.0, 0.1)
    assert large == pytest.approx((50 * math.log((10**9 + 100) / 50) + math.log(20)) / 100)
    with pytest.raises(InvalidParameter, match=r"^n_rows must be a whole number >= 50"):
        theory.lzcw21_theorem_22_alpha_shape(40, 100, 4, 50, 1.0, 0.1)


def test_fewer_labels_where_the_disagreement_coefficient_is_small():
    asked = [theory.lzcw21_answers_shape(theta, 0.01, 3, 0.05) for theta in (1.0, 2.0, 10.0, 100.0)]
    assert asked == sorted(asked)
    with pytest.raises(InvalidParameter, match=r"^epsilon must be a number > 0 and <= 2"):
        theory.lzcw21_theorem_22_shape(1_000, 100, 2, 3.0, math.exp(-2), 1.0, 1.0)


@pytest.mark.parametrize("tau", [0.3, 0.7, 1.0])
def test_every_rate_of_table_1_is_the_best_of_its_theorem_up_to_a_constant(tau):
    n, d, epsilon = 10**9, 6, 0.5
    sizes = {"n_rows": n, "n_public": 10**12, "vc_dimension": d, "epsilon": epsilon, "tau": tau}
    room, p = n * epsilon, tau / (2 - tau)
    balanced = (d ** (1 - p) * room**p) ** (2 / (2 + p))
    remark_12 = theory.lzcw21_remark_12_queries(n, d, epsilon, tau)
    passive, sparse = theory.lzcw21_theorem_28_shape, theory.lzcw21_theorem_10_shape
    old, agnostic = theory.lzcw21_theorem_5_realizable_shape, theory.lzcw21_theorem_5_agnostic_shape
    for algorithm, setting, theorem, last, m_of_least in (
        ("gaussian", "tnc", passive, tau, balanced),
        ("svt-lzcw21", "tnc", sparse, tau, remark_12),
        ("gaussian", "realizable", passive, 1.0, d ** (1 / 3) * room ** (2 / 3)),
        ("svt-lzcw21", "realizable", sparse, 1.0, room / math.sqrt(d)),
        ("svt-btt18", "realizable", old, math.exp(-1), room ** (4 / 3) / d),
        ("svt-btt18", "agnostic", agnostic, 0.0, room ** (4 / 5) / d ** (1 / 5)),
    ):
        best = min(theorem(n, max(1, round(m_of_least * 2 ** (k / 4))), d, epsilon, last) for k in range(-24, 25))
        rate = theory.lzcw21_table_1_shape(algorithm, setting, **sizes).private
        assert rate <= best * 1.01 <= 2.1 * rate
    active = theory.lzcw21_theorem_22_shape(n, 10**12, d, epsilon, math.exp(-1), tau, 3.0)
    assert theory.lzcw21_table_1_shape("active", "tnc", theta=3.0, **sizes).excess == pytest.approx(active)


def test_table_1_at_hand_computed_points_and_its_empty_places():
    """d = 4, nε = 64, so the base is 8/64; m = 16."""
    sizes = {"n_rows": 128, "n_public": 16, "vc_dimension": 4, "epsilon": 0.5}
    said = {
        ("realizable", "gaussian"): (0.25, 0.25, 1), ("realizable", "svt-btt18"): (0.25, 0.5, 1),
        ("realizable", "svt-lzcw21"): (0.125, 0.25, 1), ("realizable", "active"): (0.25, 0.25, 1),
        ("tnc", "gaussian"): (0.125 ** (1 / 3.5 * 1.0), 0.25, 1), ("tnc", "svt-btt18"): (0.125**0.4, 0.5, 13),
        ("tnc", "svt-lzcw21"): (0.5, 0.25, 1), ("tnc", "active"): (0.25 ** (1 / 3), 0.25, 1),
        ("agnostic", "svt-btt18"): (0.125**0.4, 0.5, 13),
    }  # fmt: skip
    for setting, algorithm in product(SETTINGS, ALGORITHMS):
        if (setting, algorithm) in said:
            entry = theory.lzcw21_table_1_shape(algorithm, setting, tau=0.5, theta=4.0, **sizes)
            assert (entry.private, entry.public, entry.best_error_factor) == pytest.approx(said[setting, algorithm])
            assert entry.error(0.01) == pytest.approx(0.01 * entry.best_error_factor + entry.excess)
        else:
            with pytest.raises(InvalidParameter, match="Table 1 has no rate"):
                theory.lzcw21_table_1_shape(algorithm, setting, **sizes)


@given(taus)
def test_the_sparse_vector_is_never_slower_than_the_gaussian_mechanism_in_the_table(tau):
    sizes = {"n_rows": 10**6, "n_public": 10**9, "vc_dimension": 4, "epsilon": 0.5, "tau": tau}
    fast, slow = (theory.lzcw21_table_1_shape(name, "tnc", **sizes).private for name in ("svt-lzcw21", "gaussian"))
    assert fast <= slow


@pytest.mark.parametrize("k", range(1, 8))
def test_example_1_by_counting_all_ensembles(k):
    hypotheses = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    errors = [
        np.mean(2 * hypotheses[list(chosen)].sum(axis=0) < k) for chosen in product(range(3), repeat=k)
    ]  # a tie says 1, which is right
    assert theory.lzcw21_example_1(k) == pytest.approx(float(np.mean(errors)))


def test_example_1_goes_to_three_quarters_exponentially_while_each_voter_errs_on_half():
    assert theory.lzcw21_example_1(1) == 0.5
    for k in (11, 101, 401):
        assert 0.75 * (1 - math.exp(-k / 18)) <= theory.lzcw21_example_1(k) < 0.75
    assert theory.lzcw21_example_1(101) > 0.74 > 0.5 + 0.2, "voting fails"


@given(st.integers(1, 400), st.floats(0.01, 0.49))
def test_example_2_bounds_the_exact_tail(k, xi):
    wrong = stats.binom.sf(math.ceil(k / 2) - 1, k, 0.5 - xi)  # at least half of them
    assert wrong <= theory.lzcw21_example_2(k, xi) * (1 + 1e-9)


def test_example_2_wins_where_one_voter_errs_on_two_fifths():
    assert theory.lzcw21_example_2(250, 0.1) < 0.01 < 0.4
    assert stats.binom.sf(124, 250, 0.4) > theory.lzcw21_example_2(1_000, 0.1), "and needs that many voters"


def by_definition(table: np.ndarray, best: int, alpha: float, mass: np.ndarray) -> float:
    """The supremum over a fine grid of radii."""
    distances = (table != table[best]) @ mass
    found = 1.0
    for r in np.linspace(alpha, 1, 4_001)[1:]:
        ball = table[distances <= r + 1e-12]
        found = max(found, float(mass[(ball != ball[0]).any(axis=0)].sum() / r))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_disagreement_coefficient_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (12, 9))
    mass = rng.dirichlet(np.ones(9))
    alpha = float(rng.uniform(0.01, 0.3))
    found = theory.disagreement_coefficient(table, best=3, alpha=alpha, weights=mass)
    assert by_definition(table, 3, alpha, mass) == pytest.approx(found, rel=0.02)
    assert found >= by_definition(table, 3, alpha, mass) - 1e-9


def test_known_coefficients_of_thresholds_points_and_a_lone_hypothesis():
    """Two for a threshold inside, one at the border, 1/α for single points (Hanneke 2014, Section 7.1)."""
    n = 200
    thresholds = np.triu(np.ones((n + 1, n), dtype=int))
    assert theory.disagreement_coefficient(thresholds, best=n // 2, alpha=0.05) == pytest.approx(2)
    assert theory.disagreement_coefficient(thresholds, best=0, alpha=0.05) == pytest.approx(1)
    single = np.vstack([np.zeros(n, dtype=int), np.eye(n, dtype=int)])
    for alpha in (0.01, 0.1, 0.5):
        assert theory.disagreement_coefficient(single, best=0, alpha=alpha) == pytest.approx(1 / alpha)
    assert theory.disagreement_coefficient(thresholds[:1], best=0, alpha=0.1) == 1
    assert theory.disagreement_coefficient(single, best=0, alpha=0.0) == pytest.approx(n)


def test_what_is_no_table_of_hypotheses_is_refused():
    one, nan = [[0, 1]], float("nan")
    wrong = {
        "labellings": (([[0, 2]], 0, 0.1), ([], 0, 0.1)), "best": ((one, 1, 0.1), (one, -1, 0.1)),
        "alpha": ((one, 0, 1.0), (one, 0, nan)),
        "weights": tuple((one, 0, 0.1, weights) for weights in ([0.5], [1.5, -0.5], [0.5, nan])),
    }  # fmt: skip
    for named, calls in wrong.items():
        for arguments in calls:
            with pytest.raises(InvalidParameter, match=rf"^{named} must be "):
                theory.disagreement_coefficient(*arguments)
