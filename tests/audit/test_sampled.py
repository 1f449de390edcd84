"""The sampled audit: deterministic under a seed, fair to mechanisms with a state, quick, and frank in its verdict."""

import logging
import os
import time
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from quorate.accounting import DiscreteGaussian, PureDP
from quorate.audit import ApproxClaim, AuditResult, GaussianClaim, PureClaim, audit_mechanism, claim_of, tied_neighbours
from quorate.audit.attacks import ENDED, Guess, as_matrix, best_guess, categories, scores
from quorate.audit.claims import (
    approx_epsilon_lower,
    gaussian_mu_lower,
    proportion_lower,
    proportion_upper,
    pure_epsilon_lower,
)
from quorate.audit.sampled import may_travel, run_block
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    PermuteAndFlip,
    PrivatePrediction,
    SoftLabel,
    StableSparseVector,
)
from quorate.noise import NoiseSource, SeededNoise, discrete_laplace
from quorate.types import IntArray

NEAR_TIE = (np.array([100, 100, 50]), np.array([101, 99, 50]))
TWO = (np.array([100, 100]), np.array([99, 101]))
FALSE_ALARM = 1e-6
INTERACTIVE = InteractiveNoisyMax(100, 15.0, 6.0, 250, 0.9)
SOFT = SoftLabel(epsilon=4.0, delta=1e-2, cutoff=1, n_queries=3, bins=4)
SCORES = np.where(np.arange(60) < 16, 0.9, 0.3) + np.zeros((3, 1))


@dataclass(frozen=True)
class Plain:
    """One noisy number, by a Python call a run."""

    scale: float

    def release(self, counts: IntArray, noise: NoiseSource) -> int:
        return int(counts[0] + discrete_laplace(self.scale, 1, noise)[0])


class KeepsGenerator:
    """It ignores the noise handed in, and counts its calls."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(3)
        self.calls = 0
        self.process = os.getpid()

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        assert os.getpid() == self.process, "a copy was made"
        self.calls += len(counts)
        return counts[:, 0] + self._rng.integers(-5, 6, len(counts))


@dataclass(frozen=True)
class FrozenWithModuleGenerator:
    """Its fields are plain, and its generator is hidden where a copy would start it anew."""

    sigma: float

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        noise.words(1)
        return counts[:, 0] + HIDDEN.integers(-5, 6, len(counts))


HIDDEN = np.random.default_rng(4)


def once(seed: int | None, **how: Any) -> AuditResult:
    given = {"runs": 20_000, "seed": seed, **how}
    return replace(audit_mechanism(GaussianNoisyMax(sigma=5.0), NEAR_TIE, GaussianClaim(0.3), **given), seconds=0)


def test_an_audit_is_the_same_under_the_same_seed_and_another_under_another_or_none():
    assert once(1) == once(1)
    assert once(1) != once(2)
    assert len({once(None).lower_bound for _ in range(3)}) > 1


@pytest.mark.heavy
def test_workers_change_nothing():
    assert once(1, runs=140_000) == once(1, runs=140_000, n_jobs=2)


def test_a_mechanism_with_a_generator_of_its_own_is_never_copied():
    mechanism = KeepsGenerator()
    audit_mechanism(mechanism, ([5], [6]), PureClaim(1.0), runs=140_000, seed=0, n_jobs=2)
    assert mechanism.calls == 140_000


def test_only_what_depends_on_the_noise_alone_may_travel():
    pair = np.stack(NEAR_TIE)
    assert may_travel(GaussianNoisyMax(sigma=5.0), pair)
    assert may_travel(Plain(2.0), pair)
    assert not may_travel(KeepsGenerator(), pair)
    assert not may_travel(FrozenWithModuleGenerator(1.0), pair)
    assert not may_travel(FrozenWithModuleGenerator(np.array([1.0])), pair)  # type: ignore[arg-type]


@pytest.mark.heavy
def test_a_million_runs_take_at_most_two_seconds_of_cpu():
    begun = time.process_time()
    result = audit_mechanism(GaussianNoisyMax(sigma=40.0), NEAR_TIE, GaussianClaim(2**0.5 / 40), runs=10**6, seed=1)
    assert time.process_time() - begun < 2
    assert result.trials == 500_000


def test_progress_is_told_and_ends_at_the_number_of_runs():
    told: list[tuple[int, int]] = []
    audit_mechanism(
        GaussianNoisyMax(sigma=5.0), NEAR_TIE, GaussianClaim(1), runs=150_000, seed=0,
        progress=lambda done, of: told.append((done, of)),
    )  # fmt: skip
    assert told == [(65_536, 150_000), (131_072, 150_000), (150_000, 150_000)]


def test_seconds_come_from_the_clock_that_is_handed_in():
    ticks = iter([10.0, 13.5])
    result = audit_mechanism(Plain(2.0), ([5], [6]), PureClaim(1.0), runs=100, seed=0, clock=lambda: next(ticks))
    assert result.seconds == 3.5


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("mechanism", "neighbours", "claimed", "runs"),
    [
        (GaussianNoisyMax(sigma=12.0), NEAR_TIE, GaussianClaim(2**0.5 / 12), 200_000),
        (GaussianNoisyMax(sigma=12.0, form="binary"), TWO, GaussianClaim(1 / 12), 200_000),
        (NoisyCounts(sigma=12.0), NEAR_TIE, GaussianClaim(2**0.5 / 12), 200_000),
        (NoisyCounts(sigma=12.0, form="binary"), TWO, GaussianClaim(1 / 12), 200_000),
        (ConfidentNoisyMax(100, 15.0, 6.0), NEAR_TIE, claim_of(ConfidentNoisyMax(100, 15.0, 6.0).event, 1e-4), 100_000),
        (LaplaceNoisyMax(4.0), NEAR_TIE, PureClaim(0.5), 100_000),
        (
            DistanceToInstability(epsilon=1.0, delta=1e-4),
            (np.array([57, 43]), np.array([58, 42])),
            ApproxClaim(1.0, 1e-4),
            100_000,
        ),
        (
            StableSparseVector(epsilon=1.0, delta=1e-3, cutoff=2, n_queries=8),
            (np.array([[115, 85]] * 6), np.array([[116, 84]] * 6)),
            ApproxClaim(1.0, 1e-3),
            12_000,
        ),
        (Exponential(1.0), (np.array([5, 5, 1]), np.array([6, 4, 1])), PureClaim(1.0), 20_000),
        (PermuteAndFlip(1.0), (np.array([5, 5, 1]), np.array([6, 4, 1])), PureClaim(1.0), 20_000),
        (PrivatePrediction(1.0), (np.array([5, 5, 1]), np.array([6, 4, 1])), PureClaim(1.0), 20_000),
        (INTERACTIVE, NEAR_TIE, claim_of(INTERACTIVE.event, 1e-4), 100_000),
        (SOFT, (SCORES, np.where(np.arange(60) == 20, 0.9, SCORES)), claim_of(SOFT.event, 1e-2), 4_000),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_no_shipped_mechanism_is_flagged(mechanism, neighbours, claimed, runs):
    assert not audit_mechanism(mechanism, neighbours, claimed, 1 - FALSE_ALARM, runs, seed=5).violated


@pytest.mark.heavy
def test_that_test_catches_shipped_mechanisms_that_claim_half_of_what_they_cost():
    for mechanism, neighbours, mu in [
        (GaussianNoisyMax(sigma=6.0), NEAR_TIE, 2**0.5 / 12),
        (NoisyCounts(sigma=6.0, form="binary"), TWO, 1 / 12),
    ]:
        found = audit_mechanism(mechanism, neighbours, GaussianClaim(mu), 1 - FALSE_ALARM, 400_000, seed=5)
        assert found.violated, found.verdict


def test_a_verdict_says_that_no_violation_is_no_proof():
    fine = audit_mechanism(LaplaceNoisyMax(4.0), NEAR_TIE, PureClaim(0.5), runs=5_000, seed=1)
    assert not fine.violated
    assert "not a proof" in fine.verdict
    broken = audit_mechanism(LaplaceNoisyMax(0.5), NEAR_TIE, PureClaim(0.5), runs=5_000, seed=1)
    assert broken.violated
    assert broken.verdict.startswith("VIOLATED: ε ≥")


def test_streams_reach_interactive_mechanisms_whole_and_others_row_by_row():
    class Interactive:
        seen: list[tuple[int, ...]] = []  # noqa: RUF012

        def step(self) -> None: ...

        def release(self, counts: IntArray, noise: NoiseSource) -> list[int]:
            self.seen.append(counts.shape)
            return counts[:, 0].tolist()

    class ByRow:
        def release(self, counts: IntArray, noise: NoiseSource) -> int | None:
            assert counts.ndim == 1
            return int(counts[0]) if counts[0] else None

    class Many:
        def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
            assert counts.shape == (9, 2)
            return counts[:, 0]

    pair = np.array([[[1, 2], [3, 4], [5, 6]], [[0, 2], [3, 4], [5, 6]]])
    bits = np.array([0, 1, 0])
    expected = [[1, 3, 5], [0, 3, 5], [1, 3, 5]]
    assert run_block(Interactive(), pair, bits, SeededNoise(0)) == expected
    assert Interactive.seen == [(3, 2)] * 3
    assert run_block(ByRow(), pair, bits, SeededNoise(0)) == [[1, 3, 5], [None, 3, 5], [1, 3, 5]]
    assert run_block(Many(), pair, bits, SeededNoise(0)).tolist() == expected


def test_any_outcome_becomes_numbers_and_equal_outcomes_equal_ones():
    matrix = as_matrix([[1, None, "yes", (1, 2)], np.array([3, 4]), ["no", "yes"]], 8)
    assert matrix.shape == (8, 2)
    assert matrix[0].tolist() == [1.0, ENDED]
    assert matrix[1, 0] == -1
    assert matrix[3].tolist() == [1.0, 2.0]
    assert matrix[2, 0] == matrix[7, 0] != matrix[6, 0]


def test_categories_tell_rows_apart_even_where_their_product_would_overflow():
    rng = np.random.default_rng(0)
    matrix = rng.integers(-(10**6), 10**6, (300, 12)).astype(float)
    matrix[200:] = matrix[:100]
    codes, above = categories(matrix)
    assert np.array_equal(codes[200:], codes[:100])
    assert len(set(codes.tolist())) == 200
    assert codes.max() < above


def test_an_attack_looks_only_at_the_bits_it_may():
    rng, known = np.random.default_rng(0), slice(0, 100)
    matrix, bits = rng.integers(0, 5, (400, 3)).astype(float), rng.integers(0, 2, 400)
    other = np.concatenate([bits[known], 1 - bits[100:]])
    for (name, one), (_, two) in zip(scores(matrix, bits, known), scores(matrix, other, known), strict=True):
        assert np.array_equal(one, two), name


def test_a_score_is_a_fixed_function_of_an_outcome_before_it_meets_the_runs_that_are_tested():
    """Other outcomes among the runs that are tested move no weight, mean or spread."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, 4_000)
    matrix = np.stack([rng.normal(size=4_000).round(2) + bits, rng.integers(0, 9, 4_000)], axis=1)
    other = matrix.copy()
    other[3_000:] = rng.integers(50, 90, (1_000, 2))
    both = zip(scores(matrix, bits, slice(0, 1_000)), scores(other, bits, slice(0, 1_000)), strict=True)
    for (name, one), (_, two) in both:
        assert np.array_equal(one[:3_000], two[:3_000]), name


def test_a_guess_counts_what_it_says_and_abstains_in_between():
    tally = Guess(high=2.0, low=0.0).tally(np.array([3.0, 2.0, 1.0, 0.0, -1.0]), np.array([1, 0, 1, 1, 0]))
    found = [float(each) for each in (tally.said_1_of_1, tally.said_1_of_0, tally.said_0_of_1, tally.said_0_of_0)]
    assert found == [1, 1, 1, 1]
    assert (float(tally.runs_1), float(tally.runs_0)) == (3, 2)


def test_the_chosen_guess_speaks_for_one_side_where_the_claim_needs_one_event():
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2, 5_000)
    score = rng.normal(size=5_000) + bits
    for claim in (ApproxClaim(1, 1e-5), GaussianClaim(1.0)):
        guess, worth = best_guess(claim, score, bits, 0.05, 1.0)
        assert np.isinf(guess.high) != np.isinf(guess.low)
        assert worth[0] == 2
        assert worth[1] > 0


def test_a_guess_that_is_sure_stands_before_one_that_was_lucky():
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2, 4_000)
    sure, lucky = rng.normal(size=4_000) + 0.5 * bits, rng.normal(size=4_000)
    claim, alpha = GaussianClaim(1.0), 1e-6
    (_, known), (_, chance) = (best_guess(claim, score, bits, alpha, 1.0) for score in (sure, lucky))
    assert known > chance
    assert chance[0] == 0


def test_claims_come_from_events():
    assert claim_of(PureDP(0.5), 1e-5) == PureClaim(0.5)
    claim = claim_of(DiscreteGaussian(10.0, 1.0), 1e-5)
    assert isinstance(claim, ApproxClaim)
    assert 0.3 < claim.epsilon < 0.5


NO_NUMBERS = (0, -1, np.nan, np.inf, True, "1", None)
NO_BOUND: list[Any] = [(kind, (value,)) for kind in (PureClaim, GaussianClaim) for value in NO_NUMBERS]
NO_BOUND += [(ApproxClaim, pair) for pair in ((0, 0.1), (1, 0), (1, 1), (1, np.nan), (True, 0.1))]


@pytest.mark.default_cases(8)
@pytest.mark.parametrize(("claim", "bound"), NO_BOUND)
def test_claims_refuse_what_is_no_bound(claim, bound):
    with pytest.raises(InvalidParameter):
        claim(*bound)


def test_tied_neighbours_differ_by_one_vote():
    for pair in (tied_neighbours(251, 4), tied_neighbours(250, 2, 5)):
        difference = pair[1] - pair[0]
        assert np.abs(difference).sum(axis=-1).max() == 2
        assert difference.sum() == 0
    assert tied_neighbours(250, 2, 5)[0].shape == (5, 2)
    with pytest.raises(InvalidParameter):
        tied_neighbours(1, 2)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "wrong",
    [
        {"neighbours": ([1, 2], [1, 2, 3])}, {"neighbours": [1, 2]}, {"neighbours": ([], [])},
        {"neighbours": (["a"], ["b"])}, {"neighbours": ([np.nan], [1.0])}, {"confidence": 1.0}, {"confidence": True},
        {"runs": 39}, {"runs": 1e5}, {"n_jobs": 0}, {"mechanism": object()}, {"claimed": 1.0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_wrong_arguments_are_refused(wrong):
    given = {"mechanism": Plain(1.0), "neighbours": ([1], [2]), "claimed": PureClaim(1.0), "runs": 100} | wrong
    with pytest.raises(InvalidParameter):
        audit_mechanism(**given)  # type: ignore[arg-type]


def test_nothing_is_logged(caplog):
    with caplog.at_level(logging.DEBUG):
        audit_mechanism(Plain(1.0), ([1], [2]), PureClaim(1.0), runs=100, seed=0)
    assert caplog.records == []


@pytest.mark.heavy
@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 5_000), share=st.floats(0, 1), alpha=st.floats(1e-9, 0.4))
def test_proportions_are_bounded_as_scipy_bounds_them(n, share, alpha):
    k = round(share * n)
    exact = binomtest(k, n, alternative="two-sided").proportion_ci(confidence_level=1 - 2 * alpha, method="exact")
    assert proportion_lower(k, n, alpha) == pytest.approx(exact.low, rel=1e-6, abs=1e-12)
    assert proportion_upper(k, n, alpha) == pytest.approx(exact.high, rel=1e-6, abs=1e-12)


def test_bounds_of_no_evidence_or_of_an_event_on_both_sides_alike_claim_nothing():
    assert proportion_lower(0, 0, 0.05) == 0
    assert proportion_upper(0, 0, 0.05) == 1
    assert pure_epsilon_lower(0, 0, 0.05) == 0
    assert approx_epsilon_lower(0, 100, 0, 100, 1e-5, 0.05) == 0
    assert gaussian_mu_lower(0, 100, 0, 100, 0.05) == 0
    assert gaussian_mu_lower(100, 100, 100, 100, 0.05) == 0
    assert pure_epsilon_lower(500, 1_000, 0.05) == 0  # an event on both sides alike
    assert approx_epsilon_lower(500, 1_000, 500, 1_000, 1e-5, 0.05) == 0
    assert gaussian_mu_lower(500, 1_000, 500, 1_000, 0.05) == 0


def test_bounds_converge_to_the_loss_of_the_event():
    n = 10**9
    assert pure_epsilon_lower(round(n * exp(1) / (1 + exp(1))), n, 1e-6) == pytest.approx(1.0, abs=1e-3)
    assert approx_epsilon_lower(round(0.3 * n), n, round(0.1 * n), n, 0.03, 1e-6) == pytest.approx(log(2.7), abs=1e-3)
    hits = round(norm.cdf(-0.2) * n), round(norm.cdf(-0.9) * n)
    assert gaussian_mu_lower(hits[0], n, hits[1], n, 1e-6) == pytest.approx(0.7, abs=1e-3)


class Channel:
    """Says 1 with probability p1 on data set 1 and p0 on data set 0."""

    def __init__(self, p0: float, p1: float) -> None:
        self._p = np.array([p0, p1])

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        uniform = noise.words(len(counts)) * 2.0**-64
        return (uniform < self._p[counts[:, 0]]).astype(np.int64)


NEIGHBOURS = (np.array([0]), np.array([1]))
RESPONSE = exp(1) / (1 + exp(1))

#: Channels whose loss is exactly what is claimed: the bound may exceed it in 5 % of the audits.
EXACT = {
    "pure": (Channel(1 - RESPONSE, RESPONSE), PureClaim(1.0), 2_000, 1_000),
    "approx": (Channel(0.2, 0.2 * exp(0.5) + 0.01), ApproxClaim(0.5, 0.01), 500, 8_000),
    "gaussian": (Channel(norm.cdf(-0.4), norm.cdf(0.4)), GaussianClaim(0.8), 700, 1_000),
}


@pytest.mark.heavy
@pytest.mark.parametrize(("kind", "confidence"), [*((kind, 0.95) for kind in EXACT), ("pure", 0.75)])
def test_a_95_percent_bound_exceeds_an_exact_claim_in_at_most_5_percent_of_audits_and_a_bolder_one_in_more(
    kind, confidence
):
    channel, claim, audits, runs = EXACT[kind]
    results = [audit_mechanism(channel, NEIGHBOURS, claim, confidence, runs, seed=seed) for seed in range(audits)]
    too_high = sum(result.violated for result in results)
    assert (too_high <= 0.05 * audits + 3 * np.sqrt(audits * 0.05 * 0.95)) == (confidence == 0.95)
    # The bound is of use, too: it comes near to the claim.
    assert np.mean([result.lower_bound for result in results]) > 0.5 * claim.bound
