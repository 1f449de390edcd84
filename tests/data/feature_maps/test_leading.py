"""The leading directions of a large pool of texts are near those of a whole decomposition, and tell a whole plan."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from quorate.data import pool_moments
from quorate.data.feature_maps import LinearMap, coordinates, pool_coordinates
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.coordinates import Spectrum, public_features
from quorate.direct.contribution_check import faults_of, made_up
from quorate.direct.plan import plan_direct
from quorate.direct.stored import dump_plan, load_plan

N, WORDS = 300, 500


@pytest.fixture(scope="module")
def pool() -> sparse.csr_matrix:
    rng = np.random.default_rng(0)
    topics = rng.gamma(0.1, size=(12, WORDS))
    return sparse.csr_matrix(rng.poisson(rng.gamma(0.5, size=(N, 12)) @ topics + 0.05).astype(float))


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """What is thousands of texts and hundreds of directions in earnest."""
    for name, value in (("LEADING", 60), ("MORE", 20), ("OFTEN", 40)):
        monkeypatch.setattr(pool_coordinates, name, value)
    monkeypatch.setattr(coordinates, "STRIP", 32)
    monkeypatch.setattr(pool_moments, "ALL_DIRECTIONS", 200)


def near(features) -> bool:
    """Whether the leading eigenvalues are within three per cent, and the directions orthonormal."""
    exact, found = Spectrum.of(features), pool_coordinates.leading_spectrum(features)
    apart = np.abs(found.vectors.T @ found.vectors - np.eye(60)).max()
    return bool(np.allclose(found.values[:12], exact.values[:12], rtol=0.03) and apart < 1e-3)


def test_they_are_near_the_exact_ones(pool):
    assert near(public_features(LinearMap.fit(pool), pool))


def test_a_random_basis_that_has_not_seen_the_pool_is_caught(pool, monkeypatch):
    monkeypatch.setattr(pool_coordinates, "PASSES", 0)
    assert not near(public_features(LinearMap.fit(pool), pool))


def test_what_is_left_out_counts_in_the_effective_dimension(pool):
    features = public_features(LinearMap.fit(pool), pool)
    exact, found = Spectrum.of(features), pool_coordinates.leading_spectrum(features)
    assert len(found.values) + len(found.rest) == min(features.shape)
    assert np.isclose(found.values.sum() + found.rest.sum(), exact.values.sum(), rtol=1e-4)
    for ridge in (1e-4, 1e-3, 1e-1):
        assert exact.effective_dimension(ridge) * 0.99 < found.effective_dimension(ridge)
    ridge = found.ridge_for(40.0)
    assert found.effective_dimension(ridge) == pytest.approx(40.0)


def test_lengths_are_told_by_rows_that_the_directions_have_not_seen(pool):
    features = public_features(LinearMap.fit(pool), pool)
    spectrum, held = pool_moments.spectrum_of(features)
    assert held.shape[0] == N // 10
    assert len(spectrum.values) == 60
    unseen = pool_coordinates.leading_spectrum(features[pool_moments._folds(N) != 0])
    assert (unseen.vectors == spectrum.vectors).all()
    few_rows = pool_moments.spectrum_of(features[:150])
    assert few_rows[1] is None
    assert len(few_rows[0].values) > 100


def test_a_plan_in_them_adds_the_same_integers_alone_and_together_and_is_read_back(pool):
    plan = plan_direct(feature_map_for("auto", pool), pool, n_classes=2, n_units=5_000, epsilon=1.0, delta=1e-5)
    assert plan.coordinates.n_coordinates == 60
    assert plan.coordinates.factored
    assert faults_of(plan, *made_up(plan, pool)) == []
    again, _ = load_plan(dump_plan(plan, None))
    assert again.digest == plan.digest
    assert (again.coordinates(pool) == plan.coordinates(pool)).all()
    weights = np.random.default_rng(0).normal(size=(60, 1))
    assert (again.coordinates.features(weights) == plan.coordinates.features(weights)).all()
    assert np.allclose(plan.coordinates.whitening @ weights, plan.coordinates.features(weights), atol=1e-6)
