"""Noisy maxima: exact output laws summed term by term, the draws against them, and the price against both.

A unit that moves several votes: what it can change, what that costs, and a mechanism that prices one vote alone.
"""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from tests.gaussian import gaussian_delta

from quorate.accounting import Gaussian, GridGaussian, Repeated, delta, epsilon
from quorate.audit import ApproxClaim, audit_mechanism
from quorate.audit.cheats.noisy_max import HalfTheNoise, ReusedSeed, SharedNoise, SigmaAsVariance
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    REGISTERED,
    GaussianNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    Schedule,
    SeveralVotesNoisyMax,
    for_runs,
    is_own,
)
from quorate.mechanisms.answers import half_lead
from quorate.noise import OSNoise, SeededNoise, discrete_gaussian

N = 100_000
HISTOGRAMS = [(4, 3, 0), (5, 5, 5), (10, 0), (0, 0, 1, 0), (9, 12, 8, 11)]
OF_TWO = [(4, 3), (3, 4), (5, 5), (0, 0), (0, 7), (6, 0)]
KINDS = {"histogram": HISTOGRAMS, "binary": OF_TWO, "laplace": HISTOGRAMS}


def noisy_max(kind, scale):
    return LaplaceNoisyMax(scale) if kind == "laplace" else GaussianNoisyMax(scale, form=kind)


def law_of(exact, kind, counts, scale):
    noise = exact.laplace(scale) if kind == "laplace" else exact.gaussian(scale)
    return (exact.half_lead_wins if kind == "binary" else exact.wins)(counts, *noise)


@pytest.mark.default_cases(10)
@pytest.mark.parametrize(("kind", "counts"), [(kind, each) for kind in KINDS for each in KINDS[kind]], ids=str)
@pytest.mark.parametrize("scale", [0.5, 3.0, 20.0])
def test_every_form_has_its_exact_law(exact, kind, counts, scale):
    answers = noisy_max(kind, scale).release_many(exact.repeat(counts), SeededNoise(1))

    assert exact.fit(answers, law_of(exact, kind, counts, scale)) > exact.FALSE_ALARM


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_teachers", [1, 2, 7, 10])
def test_the_binary_form_asks_for_more_than_half_of_the_votes(exact, n_teachers):
    """With every teacher voting it is 1{n_1 + Z > K/2}, word for word."""
    for ones in range(n_teachers + 1):
        counts = exact.repeat((n_teachers - ones, ones), 300)
        answers = GaussianNoisyMax(sigma=2.0, form="binary").release_many(counts, SeededNoise(3))
        noisy = ones + discrete_gaussian(2.0, 300, SeededNoise(3))

        np.testing.assert_array_equal(answers, noisy > n_teachers / 2)


def test_noisy_counts_are_what_the_noisy_max_is_the_maximum_of():
    counts = np.random.default_rng(0).multinomial(30, [0.4, 0.4, 0.2], 500)
    values = NoisyCounts(sigma=4.0).release_many(counts, SeededNoise(4))
    answers = GaussianNoisyMax(sigma=4.0).release_many(counts, SeededNoise(4))
    np.testing.assert_array_equal(values.argmax(axis=1), answers)

    leads = NoisyCounts(sigma=4.0, form="binary").release_many(counts[:, :2], SeededNoise(5))
    answers = GaussianNoisyMax(sigma=4.0, form="binary").release_many(counts[:, :2], SeededNoise(5))
    np.testing.assert_array_equal(leads > 0, answers)


@pytest.mark.parametrize("form", ["histogram", "binary"])
def test_noisy_counts_add_independent_noise_to_every_value(exact, form):
    counts = exact.repeat((7, 3))
    noise = NoisyCounts(sigma=2.0, form=form).release_many(counts, SeededNoise(6)) - (
        counts if form == "histogram" else -2
    )
    z, p = exact.gaussian(2.0)
    columns = noise.reshape(N, -1).T

    for column in columns:
        assert exact.fit(column - z[0], p) > exact.FALSE_ALARM
    if form == "histogram":
        assert abs(np.corrcoef(columns)[0, 1]) < 5 / np.sqrt(N)


def noise_for_the_winner_alone(counts, sigma, source):
    noisy = counts.copy()
    noisy[np.arange(len(counts)), counts.argmax(axis=1)] += discrete_gaussian(sigma, len(counts), source)
    return noisy.argmax(axis=1)


def ties_to_the_highest(counts, sigma, source):
    noisy = counts + discrete_gaussian(sigma, counts.shape, source)
    return counts.shape[1] - 1 - noisy[:, ::-1].argmax(axis=1)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "cheat",
    [
        *(
            lambda counts, sigma, source, twin=twin: twin(sigma).release_many(counts, source)
            for twin in (SharedNoise, SigmaAsVariance, HalfTheNoise, ReusedSeed)
        ),
        noise_for_the_winner_alone,
        ties_to_the_highest,
    ],
)
def test_that_test_catches_a_mechanism_that_cheats(exact, cheat):
    counts, sigma = (9, 12, 8, 11), 3.0
    answers = cheat(exact.repeat(counts), sigma, SeededNoise(7))

    assert exact.fit(answers, law_of(exact, "histogram", counts, sigma)) < exact.FALSE_ALARM


def test_the_binary_test_catches_a_half_lead_rounded_down_or_not_halved(exact):
    z, p = exact.gaussian(3.0)
    for counts, twin in [((3, 6), (6 - 3) // 2), ((3, 6), 6 - 3)]:
        answers = (twin + discrete_gaussian(3.0, N, SeededNoise(8)) > 0).astype(int)

        assert exact.fit(answers, exact.half_lead_wins(counts, z, p)) < exact.FALSE_ALARM


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("kind", "n_classes", "n_teachers"),
    [("histogram", 2, 6), ("binary", 2, 6), ("laplace", 2, 6), ("histogram", 3, 4), ("laplace", 3, 4)],
)
@pytest.mark.parametrize("scale", [0.6, 1.0, 2.0])
@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.0])
def test_no_neighbouring_pair_loses_more_than_the_price(exact, kind, n_classes, n_teachers, scale, eps):
    worst = exact.worst_delta(lambda counts: law_of(exact, kind, counts, scale), n_classes, n_teachers, eps)
    event = noisy_max(kind, scale).event

    assert worst <= delta(event, eps) + 1e-12
    assert kind != "laplace" or epsilon(event, 0.0) == pytest.approx(2 / scale, rel=1e-9)


def test_a_claim_of_twice_the_noise_is_refuted_by_some_pair(exact):
    worst = exact.worst_delta(lambda c: exact.half_lead_wins(c, *exact.gaussian(1.0)), 2, 6, 0.3)

    assert worst > delta(GaussianNoisyMax(sigma=2.0, form="binary").event, 0.3)


@pytest.mark.parametrize("scale", [2.7, 3.3, 3.0 * np.sqrt(2)])
def test_that_test_catches_another_scale_and_none_in_real_noise(exact, scale):
    counts = (9, 12, 8, 11)
    answers = LaplaceNoisyMax(laplace_scale=scale).release_many(exact.repeat(counts), SeededNoise(9))
    real = GaussianNoisyMax(sigma=scale).release_many(exact.repeat(counts), OSNoise())

    assert exact.fit(answers, law_of(exact, "laplace", counts, 3.0)) < exact.FALSE_ALARM
    assert exact.fit(real, law_of(exact, "histogram", counts, scale)) > exact.FALSE_ALARM


@pytest.mark.parametrize("eps", [0.0, 0.5, 1.0])
def test_noisy_counts_spend_their_whole_price(exact, eps):
    """The half-lead is where the price is exact: the loss of a shift by one equals the accountant's delta."""
    sigma = 1.5
    _z, p = exact.gaussian(sigma)
    shifted = np.roll(p, 1)
    shifted[0] = 0
    loss = np.maximum(shifted - np.exp(eps) * p, 0).sum()

    assert_allclose(delta(NoisyCounts(sigma=sigma, form="binary").event, eps), loss, rtol=1e-6)


def test_a_price_without_the_root_of_two_would_be_caught(exact):
    """Sensitivity 1 instead of √2: some pair of histograms loses more than that event's curve allows."""
    sigma, eps = 1.0, 1.0
    _z, p = exact.gaussian(sigma)
    # The vector of counts moves by (+1, −1); its loss is that of the difference of the two coordinates.
    joint = np.outer(p, p)
    moved = np.roll(np.roll(joint, 1, axis=0), -1, axis=1)
    loss = np.maximum(moved - np.exp(eps) * joint, 0).sum()

    assert loss <= delta(NoisyCounts(sigma=sigma).event, eps) * (1 + 1e-9)
    assert loss > delta(NoisyCounts(sigma=sigma, form="binary").event, eps)


@pytest.mark.heavy
def test_a_million_rows_need_no_more_memory_than_a_block_at_a_time():
    counts = np.broadcast_to(np.array([3, 1, 0], dtype=np.int64), (1_000_000, 3))
    tracemalloc.start()
    answers = GaussianNoisyMax(sigma=1.0).release_many(counts, OSNoise())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < answers.nbytes + 64e6


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("s", [1, 2, 3, 7])
def test_the_price_is_that_of_s_votes_moved_the_same_way(s, n_classes):
    mechanism = SeveralVotesNoisyMax(sigma=30.0 * s, votes_per_unit=s, n_classes=n_classes)
    length = s * (1.0 if n_classes == 2 else math.sqrt(2))
    n = 200
    eps = epsilon(mechanism.schedule(n), 1e-5)
    independent = gaussian_delta(eps, math.sqrt(n) * length / mechanism.sigma)
    assert independent <= 1e-5  # the price covers it
    assert independent >= 1e-5 * (1 - 1e-3)  # and no more


def test_s_moved_votes_cost_s_times_the_noise():
    schedule = Schedule(answers=300, epsilon=1.0, delta=1e-5)
    sigmas = [SeveralVotesNoisyMax.calibrated({"votes_per_unit": s, "n_classes": 3}, schedule).sigma for s in (1, 2, 3)]
    assert sigmas[1] == pytest.approx(2 * sigmas[0], rel=1e-5)
    assert sigmas[2] == pytest.approx(3 * sigmas[0], rel=1e-5)
    alone = GaussianNoisyMax.calibrated({"form": "histogram"}, schedule).sigma
    assert sigmas[0] == pytest.approx(alone, rel=1e-4)


@pytest.mark.heavy
def test_no_change_of_s_votes_moves_more_than_is_priced():
    """Every way in which up to s teachers can change, on small counts: another class each, or an abstention."""
    rng = np.random.default_rng(5)
    for _ in range(3000):
        s, C = int(rng.integers(1, 5)), int(rng.integers(2, 5))
        before = rng.integers(-1, C, 12)
        after = before.copy()
        after[rng.choice(12, int(rng.integers(0, s + 1)), replace=False)] = rng.integers(-1, C)
        counts = [np.bincount(votes[votes >= 0], minlength=C) for votes in (before, after)]
        mechanism = SeveralVotesNoisyMax(sigma=4.0, votes_per_unit=s, n_classes=C)
        exact = [half_lead(each[np.newaxis]).ravel() if C == 2 else each for each in counts]
        moved = np.linalg.norm((exact[1] - exact[0]) * mechanism.grid)
        assert moved <= mechanism.event.l2_sensitivity


def test_the_noise_is_that_of_the_event():
    mechanism = SeveralVotesNoisyMax(sigma=6.0, votes_per_unit=2, n_classes=2)
    assert 2**28 <= mechanism.sigma * mechanism.grid < 2**30
    counts = np.tile(np.array([[10, 20]]), (40_000, 1))  # a half-lead of 5
    ones = int(mechanism.release_many(counts, SeededNoise(3)).sum())
    expected = norm.cdf(5 / 6.0)
    assert abs(ones - 40_000 * expected) < 5.5 * math.sqrt(40_000 * expected * (1 - expected))


@dataclass(frozen=True)
class OneVoteAlone(SeveralVotesNoisyMax):
    """A cheat: its noise is priced as if a unit moved one vote, and two sites have it."""

    @property
    def event(self) -> GridGaussian:
        own = super().event
        return GridGaussian(own.sigma, own.l2_sensitivity / self.votes_per_unit, own.numbers)


TWO_SITES = (np.array([50, 50]), np.array([46, 54]))  # four teachers changed their vote


@pytest.mark.parametrize(("kind", "caught"), [(SeveralVotesNoisyMax, False), (OneVoteAlone, True)])
def test_an_audit_catches_the_price_of_one_vote(kind, caught):
    mechanism = kind(sigma=4.0, votes_per_unit=4, n_classes=2)
    eps = epsilon(Repeated(mechanism.event, 1), 1e-3)
    found = audit_mechanism(mechanism, TWO_SITES, ApproxClaim(eps, 1e-3), confidence=1 - 1e-6, runs=60_000, seed=11)
    assert found.violated is caught


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_a_patient_replaced_by_one_of_another_site_moves_two_votes(n_classes):
    """One teacher of each site turns from class 0 to class 1; the price of one site's vote does not cover it."""
    before = np.full((1, n_classes), 30, dtype=np.int64)
    after = before.copy()
    after[0, :2] += (-2, 2)
    exact = [half_lead(each).ravel() if n_classes == 2 else each.ravel() for each in (before, after)]
    for priced, covered in ((2, True), (1, False)):
        mechanism = SeveralVotesNoisyMax(sigma=20.0, votes_per_unit=priced, n_classes=n_classes)
        eps = epsilon(mechanism.schedule(50), 1e-5)
        mu = math.sqrt(50) * float(np.linalg.norm(exact[1] - exact[0])) / mechanism.sigma
        assert (gaussian_delta(eps, mu) <= 1e-5) is covered


def test_it_is_quorates_own_and_no_settings_name_it():
    assert not is_own(SeveralVotesNoisyMax)
    assert is_own(OneVoteAlone)
    assert "SeveralVotesNoisyMax" not in REGISTERED
    assert "SeveralVotesNoisyMax" not in for_runs()


def test_large_counts_are_cut_off_and_wrong_fields_refused():
    mechanism = SeveralVotesNoisyMax(sigma=5.0, votes_per_unit=2, n_classes=3)
    assert mechanism.release(np.array([2**40, 0, 5]), OSNoise()) == 0
    for wrong in ({"sigma": 1e-9}, {"votes_per_unit": 0}, {"n_classes": 1}, {"sigma": float("nan")}):
        with pytest.raises(InvalidParameter):
            SeveralVotesNoisyMax(**{"sigma": 5.0, "votes_per_unit": 2, "n_classes": 3, **wrong})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        mechanism.release(np.array([1, 2]), OSNoise())


def test_the_continuous_price_is_the_limit():
    mechanism = SeveralVotesNoisyMax(sigma=50.0, votes_per_unit=2, n_classes=5)
    assert delta(mechanism.event, 0.1) == pytest.approx(delta(Gaussian(50.0, 2 * math.sqrt(2)), 0.1), rel=1e-4)
