"""Feature maps: functions of public data, and each image a function of its row, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from quorate.data.feature_maps import LinearMap, RBFMap, StackedMap
from quorate.data.feature_maps.coordinates import PublicCoordinates, Spectrum, public_features
from quorate.data.feature_maps.exact import bits_for, exp, unit_rows


@pytest.fixture(scope="module")
def pool():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(150, 30)) * np.geomspace(1, 100, 30)
    table[:, :5] = table[:, :5] > 0
    return table


def maps(pool):
    linear, rbf = LinearMap.fit(pool), RBFMap.fit(pool, np.random.default_rng(1))
    return {"linear": linear, "rbf": rbf, "both": StackedMap(linear, rbf)}


@pytest.fixture(scope="module")
def hostile(pool):
    return np.vstack([pool[:50], pool[:50] * 1e200, pool[:50] * 1e-200, np.zeros((2, 30)), np.full((2, 30), 1e308)])


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", ["linear", "rbf", "both"])
def test_an_image_is_the_same_alone_and_among_others(pool, hostile, name):
    fitted = maps(pool)[name]
    spectrum = Spectrum.of(public_features(fitted, pool))
    coordinates = PublicCoordinates.of(fitted, spectrum.whitening(spectrum.ridge_for(15.0)))
    for see in (fitted.images, coordinates):
        with threadpool_limits(1):
            together = see(hostile)
        with threadpool_limits(2):
            for i in range(len(hostile)):
                assert (see(hostile[i : i + 1])[0] == together[i]).all()
            assert (see(hostile[::-1])[::-1] == together).all()


@pytest.mark.parametrize("name", ["linear", "rbf", "both"])
def test_no_row_passes_the_public_bounds(pool, hostile, name):
    fitted = maps(pool)[name]
    images = fitted.images(hostile) * 2.0**-fitted.bits
    assert (np.linalg.norm(images, axis=1) <= fitted.bound).all()
    spectrum = Spectrum.of(public_features(fitted, pool))
    coordinates = PublicCoordinates.of(fitted, spectrum.whitening(spectrum.least_ridge))
    z = coordinates(hostile)
    assert (z == np.rint(z)).all()
    assert (np.linalg.norm(z, axis=1) <= 2.0**26).all()


def test_sparse_rows_have_the_coordinates_of_their_dense_twin():
    rows = sparse.random(60, 400, density=0.05, format="csr", random_state=0)
    fitted = LinearMap.fit(rows)
    images = fitted.images(rows)
    assert sparse.issparse(images)
    alone = sparse.vstack([fitted.images(rows[i]) for i in range(60)])
    assert (images != alone).nnz == 0
    assert (images.toarray()[:, :-1] == unit_rows(rows.toarray(), fitted.bits)).all()


@pytest.mark.parametrize("name", ["linear", "rbf", "both"])
def test_the_published_transformer_is_the_map_up_to_its_grid(pool, name):
    fitted = maps(pool)[name]
    features = np.asarray(public_features(fitted, pool))
    outputs = np.random.default_rng(2).normal(size=(features.shape[1], 3))
    weights, intercepts = fitted.weights(outputs)
    published = fitted.transformer(pool).transform(pool) @ weights + intercepts
    assert np.allclose(published, features @ outputs, atol=0.02 * np.abs(features @ outputs).max())


def test_coordinates_are_whitened_features(pool):
    fitted = LinearMap.fit(pool)
    features = np.asarray(public_features(fitted, pool))
    spectrum = Spectrum.of(features)
    ridge = spectrum.ridge_for(10.0)
    coordinates = PublicCoordinates.of(fitted, spectrum.whitening(ridge))
    z = coordinates(pool) * 2.0**-coordinates.bits
    assert np.allclose(z, features @ spectrum.whitening(ridge), atol=2.0**-coordinates.bits)
    assert np.mean((z**2).sum(axis=1)) == pytest.approx(10.0, rel=1e-3)


def test_the_dual_form_finds_the_same_spectrum():
    wide = np.random.default_rng(0).normal(size=(20, 50))
    dual, primal = Spectrum.of(wide), np.linalg.eigvalsh(wide.T @ wide / 20)[::-1][:20]
    assert np.allclose(dual.values, primal)
    assert np.allclose(dual.vectors.T @ dual.vectors, np.eye(20), atol=1e-9)


class TestExactArithmetic:
    def test_exp_is_exp(self):
        x = np.concatenate([np.linspace(-45, 45, 20_001), [0.0, -0.0, 1e-300, np.inf, -np.inf]])
        assert np.allclose(exp(x), np.exp(np.clip(x, -40, 40)), rtol=2.0**-49, atol=0)
        assert 1 + np.exp(-40.0) == 1  # so that probabilities do not tell -40 from less

    def test_exp_is_the_same_alone_and_among_others(self):
        x = np.random.default_rng(0).normal(size=1_001) * 50
        together = exp(x)
        assert all(exp(x[i : i + 1])[0] == together[i] for i in range(len(x)))
        assert (exp(x[::3]) == together[::3]).all()

    def test_bits_leave_room(self):
        for bound in (1e-9, 0.3, 1.0, 7.0, 1e12):
            assert bound * 2.0 ** bits_for(bound) <= 2.0**52 < 2 * bound * 2.0 ** bits_for(bound)

    def test_a_batched_norm_is_caught(self):
        """Floats divided by a norm that NumPy sums in an order of its own: not what unit_rows does."""
        rows = np.random.default_rng(0).normal(size=(64, 37))
        exact = unit_rows(rows, 20)
        assert all((unit_rows(rows[i : i + 1], 20)[0] == exact[i]).all() for i in range(64))
        column_major = np.asfortranarray(rows)
        twin = np.sqrt((column_major**2).sum(axis=1))
        assert any(twin[i] != np.sqrt((rows[i] ** 2).sum()) for i in range(64))
