"""A unit that moves several votes: what it can change, what that costs, and a mechanism that prices one vote alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm

from quorate.accounting import Gaussian, GridGaussian, Repeated, delta, epsilon
from quorate.audit import ApproxClaim, audit_mechanism
from quorate.errors import InvalidParameter
from quorate.mechanisms import REGISTERED, GaussianNoisyMax, Schedule, SeveralVotesNoisyMax, for_runs, is_own
from quorate.mechanisms.votes import half_lead
from quorate.noise import OSNoise, SeededNoise


def gaussian_delta(eps: float, mu: float) -> float:
    """Balle and Wang (2018), Theorem 8: δ of one shift by μ standard deviations, and so of any with that length."""
    return float(norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("s", [1, 2, 3, 7])
def test_the_price_is_that_of_s_votes_moved_the_same_way(s: int, n_classes: int) -> None:
    mechanism = SeveralVotesNoisyMax(sigma=30.0 * s, votes_per_unit=s, n_classes=n_classes)
    length = s * (1.0 if n_classes == 2 else math.sqrt(2))
    n = 200
    eps = epsilon(mechanism.schedule(n), 1e-5)
    independent = gaussian_delta(eps, math.sqrt(n) * length / mechanism.sigma)
    assert independent <= 1e-5  # the price covers it
    assert independent >= 1e-5 * (1 - 1e-3)  # and no more


def test_s_moved_votes_cost_s_times_the_noise() -> None:
    schedule = Schedule(answers=300, epsilon=1.0, delta=1e-5)
    sigmas = [SeveralVotesNoisyMax.calibrated({"votes_per_unit": s, "n_classes": 3}, schedule).sigma for s in (1, 2, 3)]
    assert sigmas[1] == pytest.approx(2 * sigmas[0], rel=1e-5)
    assert sigmas[2] == pytest.approx(3 * sigmas[0], rel=1e-5)
    alone = GaussianNoisyMax.calibrated({"form": "histogram"}, schedule).sigma
    assert sigmas[0] == pytest.approx(alone, rel=1e-4)


@pytest.mark.heavy
def test_no_change_of_s_votes_moves_more_than_is_priced() -> None:
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


def test_the_noise_is_that_of_the_event() -> None:
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
def test_an_audit_catches_the_price_of_one_vote(kind: type[SeveralVotesNoisyMax], caught: bool) -> None:
    mechanism = kind(sigma=4.0, votes_per_unit=4, n_classes=2)
    eps = epsilon(Repeated(mechanism.event, 1), 1e-3)
    found = audit_mechanism(mechanism, TWO_SITES, ApproxClaim(eps, 1e-3), confidence=1 - 1e-6, runs=60_000, seed=11)
    assert found.violated is caught


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_a_patient_replaced_by_one_of_another_site_moves_two_votes(n_classes: int) -> None:
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


def test_it_is_quorates_own_and_no_settings_name_it() -> None:
    assert not is_own(SeveralVotesNoisyMax)
    assert is_own(OneVoteAlone)
    assert "SeveralVotesNoisyMax" not in REGISTERED
    assert "SeveralVotesNoisyMax" not in for_runs()


def test_large_counts_are_cut_off_and_wrong_fields_refused() -> None:
    mechanism = SeveralVotesNoisyMax(sigma=5.0, votes_per_unit=2, n_classes=3)
    assert mechanism.release(np.array([2**40, 0, 5]), OSNoise()) == 0
    for wrong in ({"sigma": 1e-9}, {"votes_per_unit": 0}, {"n_classes": 1}, {"sigma": float("nan")}):
        with pytest.raises(InvalidParameter):
            SeveralVotesNoisyMax(**{"sigma": 5.0, "votes_per_unit": 2, "n_classes": 3, **wrong})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        mechanism.release(np.array([1, 2]), OSNoise())


def test_the_continuous_price_is_the_limit() -> None:
    mechanism = SeveralVotesNoisyMax(sigma=50.0, votes_per_unit=2, n_classes=5)
    assert delta(mechanism.event, 0.1) == pytest.approx(delta(Gaussian(50.0, 2 * math.sqrt(2)), 0.1), rel=1e-4)
