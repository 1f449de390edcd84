"""Every bound that is printed: right against an independent formula, and covering as often as it says."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, norm

from quorate.audit import ApproxClaim, GaussianClaim, PureClaim, audit_mechanism
from quorate.audit.claims import (
    approx_epsilon_lower,
    gaussian_mu_lower,
    proportion_lower,
    proportion_upper,
    pure_epsilon_lower,
)
from quorate.noise import NoiseSource
from quorate.types import IntArray


@pytest.mark.heavy
@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 5_000), share=st.floats(0, 1), alpha=st.floats(1e-9, 0.4))
def test_proportions_are_bounded_as_scipy_bounds_them(n: int, share: float, alpha: float) -> None:
    k = round(share * n)
    exact = binomtest(k, n, alternative="two-sided").proportion_ci(confidence_level=1 - 2 * alpha, method="exact")
    assert proportion_lower(k, n, alpha) == pytest.approx(exact.low, rel=1e-6, abs=1e-12)
    assert proportion_upper(k, n, alpha) == pytest.approx(exact.high, rel=1e-6, abs=1e-12)


def test_bounds_of_no_evidence_claim_nothing() -> None:
    assert proportion_lower(0, 0, 0.05) == 0
    assert proportion_upper(0, 0, 0.05) == 1
    assert pure_epsilon_lower(0, 0, 0.05) == 0
    assert approx_epsilon_lower(0, 100, 0, 100, 1e-5, 0.05) == 0
    assert gaussian_mu_lower(0, 100, 0, 100, 0.05) == 0
    assert gaussian_mu_lower(100, 100, 100, 100, 0.05) == 0


def test_an_event_on_both_sides_alike_claims_nothing() -> None:
    assert pure_epsilon_lower(500, 1_000, 0.05) == 0
    assert approx_epsilon_lower(500, 1_000, 500, 1_000, 1e-5, 0.05) == 0
    assert gaussian_mu_lower(500, 1_000, 500, 1_000, 0.05) == 0


def test_bounds_converge_to_the_loss_of_the_event() -> None:
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
@pytest.mark.parametrize("kind", EXACT)
def test_a_95_percent_bound_exceeds_an_exact_claim_in_at_most_5_percent_of_audits(kind: str) -> None:
    channel, claim, audits, runs = EXACT[kind]
    results = [audit_mechanism(channel, NEIGHBOURS, claim, 0.95, runs, seed=seed) for seed in range(audits)]
    too_high = sum(result.violated for result in results)
    assert too_high <= 0.05 * audits + 3 * np.sqrt(audits * 0.05 * 0.95)
    # The bound is of use, too: it comes near to the claim.
    assert np.mean([result.lower_bound for result in results]) > 0.5 * claim.bound


@pytest.mark.heavy
def test_that_test_catches_a_bound_that_is_too_bold() -> None:
    channel, claim, audits, runs = EXACT["pure"]
    results = [audit_mechanism(channel, NEIGHBOURS, claim, 0.75, runs, seed=seed) for seed in range(audits)]
    assert sum(result.violated for result in results) > 0.05 * audits + 3 * np.sqrt(audits * 0.05 * 0.95)
