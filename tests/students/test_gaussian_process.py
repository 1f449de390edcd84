"""The Gaussian process, against the posterior mean as it stands in the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chi2

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.errors import InvalidParameter
from quorate.students.share_models import fit_process_shares

FALSE_ALARM = 1e-6


def made_up(seed=0, *, n=40, m=60, width=3, n_classes=3, noise_sd=0.2):
    """A pool, its first `n` points asked, and noisy shares."""
    rng = np.random.default_rng(seed)
    pool = rng.normal(size=(m, width)) * rng.uniform(0.1, 30, size=width) + 5
    shares = rng.dirichlet(np.ones(n_classes), size=n)
    return pool, pool[:n], shares + rng.normal(scale=noise_sd, size=shares.shape)


def slow_kernel(pool, A, B):
    """Term by term, in the coordinates of the pool."""
    unit = pool.std(axis=0) * np.sqrt(pool.shape[1])
    return np.array([[np.exp(-np.sum(((a - b) / unit) ** 2) / 2) for b in B] for a in A])


def slow_mean(pool, X, noisy, noise_sd, new):
    """The posterior mean by a direct solve in the space of the answers."""
    n_classes = noisy.shape[1]
    v = (1 / n_classes) * (1 - 1 / n_classes)
    known = v * (1 + slow_kernel(pool, X, X)) + noise_sd**2 * np.eye(len(X))
    across = v * (1 + slow_kernel(pool, new, X))
    return 1 / n_classes + across @ np.linalg.solve(known, noisy - 1 / n_classes)


@pytest.mark.heavy
@given(
    seed=st.integers(0, 1_000), n_classes=st.integers(2, 4), width=st.integers(1, 4),
    noise_sd=st.sampled_from([0.01, 0.1, 0.7, 5.0]),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_the_mean_is_that_of_a_direct_solve_at_every_public_point(seed, n_classes, width, noise_sd):
    pool, X, noisy = made_up(seed, n_classes=n_classes, width=width, noise_sd=noise_sd)
    model = fit_process_shares(X, noisy, noise_sd=noise_sd, geometry=PoolCoordinates.of(pool).kernel(pool))
    np.testing.assert_allclose(model.mean(pool), slow_mean(pool, X, noisy, noise_sd, pool), atol=1e-4, rtol=1e-4)


def test_between_the_public_points_it_is_the_same_to_a_thousandth():
    pool, X, noisy = made_up(1, width=2)
    model = fit_process_shares(X, noisy, noise_sd=0.2, geometry=PoolCoordinates.of(pool).kernel(pool))
    new = pool.mean(axis=0) + 0.5 * (pool - pool.mean(axis=0))
    np.testing.assert_allclose(model.mean(new), slow_mean(pool, X, noisy, 0.2, new), atol=1e-3)


@pytest.mark.parametrize("wrong", [{"noise_sd": 0.4}, {"noise_sd": 0.1}])
def test_that_test_catches_noise_of_another_size(wrong):
    pool, X, noisy = made_up(2)
    model = fit_process_shares(X, noisy, **wrong, geometry=PoolCoordinates.of(pool).kernel(pool))
    assert np.abs(model.mean(pool) - slow_mean(pool, X, noisy, 0.2, pool)).max() > 0.01


def test_a_half_lead_is_one_regression_and_its_mirror_image():
    pool, X, noisy = made_up(3, n_classes=2)
    pair = np.column_stack([1 - noisy[:, 1], noisy[:, 1]])
    model = fit_process_shares(X, pair, noise_sd=0.2, geometry=PoolCoordinates.of(pool).kernel(pool))
    alone = slow_mean(pool, X, pair, 0.2, pool)[:, 1]
    np.testing.assert_allclose(model(pool)[:, 1], np.clip(alone, 0, 1), atol=1e-4)
    np.testing.assert_allclose(model.mean(pool).sum(axis=1), 1)


def test_shares_are_shares():
    pool, X, noisy = made_up(4)
    shares = fit_process_shares(X, noisy, noise_sd=0.05, geometry=PoolCoordinates.of(pool).kernel(pool))(pool * 50)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_sparse_rows_are_the_same():
    rng = np.random.default_rng(5)
    pool = (rng.random((50, 8)) < 0.4).astype(float)
    noisy = rng.normal(0.5, 0.3, size=(30, 2))
    dense = fit_process_shares(pool[:30], noisy, noise_sd=0.2, geometry=PoolCoordinates.of(pool).kernel(pool))(pool)
    there = csr_array(pool)
    sparse = fit_process_shares(there[:30], noisy, noise_sd=0.2, geometry=PoolCoordinates.of(there).kernel(there))(
        there
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def p_value_of_errors(*, told, true, repeats=100, n=30):
    """Whether errors at a point not asked are of the size that the posterior predicts; the truth is from the prior."""
    rng = np.random.default_rng(20260821)
    total = 0.0
    for _ in range(repeats):
        pool = rng.normal(size=(n + 1, 2))
        prior = 0.25 * (1 + slow_kernel(pool, pool, pool))
        truth = 0.5 + np.linalg.cholesky(prior + 1e-10 * np.eye(n + 1)) @ rng.normal(size=n + 1)
        ones = truth[:n] + rng.normal(scale=true, size=n)
        model = fit_process_shares(
            pool[:n], np.column_stack([1 - ones, ones]), noise_sd=told, geometry=PoolCoordinates.of(pool).kernel(pool)
        )
        known = prior[:n, :n] + told**2 * np.eye(n)
        variance = prior[n, n] - prior[n, :n] @ np.linalg.solve(known, prior[n, :n])
        total += (model.mean(pool[n:])[0, 1] - truth[n]) ** 2 / variance
    return 2 * min(chi2.cdf(total, repeats), chi2.sf(total, repeats))


@pytest.mark.heavy
def test_with_known_noise_the_errors_are_those_that_the_posterior_predicts():
    assert p_value_of_errors(told=0.15, true=0.15) > FALSE_ALARM


@pytest.mark.heavy
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_that_test_catches_noise_that_is_not_what_it_is_said_to_be(factor):
    assert p_value_of_errors(told=0.15, true=0.15 * factor) < FALSE_ALARM


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("noise_sd", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_the_noise_is_a_number_above_zero(noise_sd):
    pool, X, noisy = made_up()
    with pytest.raises(InvalidParameter, match="noise_sd"):
        fit_process_shares(X, noisy, noise_sd=noise_sd, geometry=PoolCoordinates.of(pool).kernel(pool))


@pytest.mark.parametrize("spoil", [lambda s: s[:-1], lambda s: s[:, 0], lambda s: s + np.nan])
def test_every_point_has_one_finite_row(spoil):
    pool, X, noisy = made_up()
    with pytest.raises(InvalidParameter, match="one finite row"):
        fit_process_shares(X, spoil(noisy), noise_sd=0.2, geometry=PoolCoordinates.of(pool).kernel(pool))
