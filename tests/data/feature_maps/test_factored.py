"""Coordinates of sparse rows that are not written out, and leading directions, are those of a whole decomposition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from quorate.data import pool_moments
from quorate.data.feature_maps import LinearMap, pool_coordinates
from quorate.data.feature_maps import coordinates as module
from quorate.data.feature_maps import exact as exact_module
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.coordinates import FactoredRows, PublicCoordinates, Spectrum, public_features
from quorate.direct.contribution_check import faults_of, made_up
from quorate.direct.contributions import Grid, lengths_of, of_records
from quorate.direct.plan import plan_direct
from quorate.direct.stored import dump_plan, load_plan

WORDS = 900


def texts(n: int, seed: int) -> sparse.csr_matrix:
    """Rows of a hundred words at most, few of them frequent; the last ten words stand in no public row."""
    rng = np.random.default_rng(seed)
    rows = rng.poisson(3.0 / (1 + np.arange(WORDS)) ** 0.6, size=(n, WORDS)).astype(float)
    rows[:, -10:] = 0
    return sparse.csr_matrix(np.log1p(rows))


@pytest.fixture(scope="module")
def coordinates() -> PublicCoordinates:
    pool = texts(120, 0)
    told = LinearMap.fit(pool).coarse()
    spectrum = Spectrum.of(public_features(told, pool))
    made = PublicCoordinates.of_words(told, spectrum.whitening(spectrum.ridge_for(40.0)), most_bits=40)
    assert made is not None
    return made


@pytest.fixture(scope="module")
def rows() -> sparse.csr_matrix:
    made = texts(45, 1).tolil()
    made[3] = 0
    made[4] = 1.0  # every word alike: each entry is rounded up or down together
    made[5, 0] = 1e300
    made[6] = made[7].toarray() * 1e-290
    made[8, WORDS - 1] = 2.0  # a word that the pool does not know
    made[9, 0], made[10, WORDS - 1], made[11, 5] = np.nan, np.inf, -np.inf
    return made.tocsr()


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(scope="module")
def exact(coordinates, rows) -> np.ndarray:
    """By whole numbers of Python's own, row by row; 0 where a row is not finite."""
    with np.errstate(all="ignore"):
        images = coordinates.feature_map.images(rows).toarray()
    matrix = coordinates.matrix.astype(np.int64).astype(object)
    return np.array(
        [image.astype(np.int64) @ matrix if np.isfinite(image).all() else 0 * matrix[0] for image in images]
    )


@pytest.mark.heavy
@pytest.mark.parametrize(("often", "strip"), [(1, 16), (40, 7), (512, 1_000)])
def test_lengths_are_those_of_the_coordinates(coordinates, rows, exact, often, strip, monkeypatch):
    monkeypatch.setattr(module, "OFTEN", often)
    monkeypatch.setattr(module, "STRIP", strip)
    monkeypatch.setattr(module, "BLOCK", 16)
    monkeypatch.setattr(exact_module, "BLOCK", 4)
    expected = [np.sqrt(float(sum(value**2 for value in row))) for row in exact]
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert coordinates.for_rounds(rows).lengths.tolist() == expected
    alone = [coordinates.for_rounds(rows[[i]]).lengths[0] for i in range(rows.shape[0])]
    assert alone == expected


@pytest.mark.heavy
@pytest.mark.parametrize("n_outputs", [1, 4])
def test_sums_are_those_of_written_coordinates_and_of_records_alone(coordinates, rows, n_outputs):
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(coordinates.n_coordinates, n_outputs))
    codes = rng.integers(0, max(n_outputs, 2), rows.shape[0])
    z = coordinates(rows)
    z[~np.isfinite(z).all(axis=1)] = 0
    for clip, k in ((3.0, 30), (1e-7, 30), (0.5, 26)):
        grid = Grid(coordinates.bits, clip, k)
        expected = of_records(z, lengths_of(z), codes, weights, grid)
        assert expected.any()
        seen = coordinates.for_rounds(rows)
        for block, threads in ((1, 1), (7, 2), (1_000, 1)):
            with threadpool_limits(threads):
                assert (of_records(seen, lengths_of(seen), codes, weights, grid, block=block) == expected).all()
        each = [coordinates.for_rounds(rows[[i]]) for i in range(rows.shape[0])]
        alone = [of_records(z, z.lengths, codes[[i]], weights, grid) for i, z in enumerate(each)]
        assert (sum(alone) == expected).all()
        assert max(sum(int(value) ** 2 for value in part.ravel()) for part in alone) <= 4**k


@pytest.mark.heavy
def test_products_are_exact_where_one_would_be_rounded(coordinates, rows, exact):
    """Both ways to cut a product in two: by the size of what is multiplied, and by rows."""
    seen = coordinates.for_rounds(rows)
    z = exact
    weights = np.rint(np.random.default_rng(3).normal(size=(z.shape[1], 2)) * 2.0**20)
    expected = z @ weights.astype(np.int64).astype(object)
    for bound in (seen.bound, 2.0**45):  # the second says that partial sums may be too long
        assert (replace(seen, bound=bound) @ weights == expected.astype(float)).all()
    factors = np.where(seen.lengths[:, None] > 0, np.random.default_rng(4).integers(-(2**18), 2**18, (len(z), 1)), 0)
    expected = z.T @ factors.astype(object)
    for largest in (2.0**18, 2.0**40):  # the second says that few rows may be summed at once
        assert (seen.summed(factors.astype(float), largest) == expected.astype(float)).all()


def test_no_row_there_could_be_is_too_long_for_single_precision(coordinates, rows):
    """Entry by entry a row may be rounded up, and columns of the matrix too."""
    told, most = coordinates.feature_map, np.sqrt(float((coordinates.matrix**2).sum(axis=0).max()))
    alike = [sparse.csr_matrix(np.arange(WORDS)[None] < n, dtype=float) for n in (1, 2, 100, 701, WORDS)]
    for row in (rows[:9], *alike):
        images = told.images(row).toarray()
        assert np.sqrt((images**2).sum(axis=1).max()) <= told.bound * 2**told.bits
    assert told.bound * 2**told.bits * most <= 2**24


def test_a_twin_on_a_finer_grid_is_caught(coordinates, rows):
    """In single precision sums beyond 2²⁴ are rounded, and a length is no longer that of the row."""
    finer = np.rint(coordinates.matrix * 2.0**9 * (1 + 1e-3))
    sound = rows[12:]
    twin = FactoredRows.of(coordinates.feature_map.images(sound), finer, finer.astype(np.float32), 0, 1.0, 2.0**60)
    exact = lengths_of(np.asarray(coordinates.feature_map.images(sound) @ finer))
    assert (twin.lengths != exact).any()


def test_a_direction_that_rounding_would_lose_is_kept_on_a_finer_grid(coordinates):
    told, whitening = coordinates.feature_map, coordinates.whitening.copy()
    assert PublicCoordinates.of_words(told, whitening.copy(), most_bits=40) is not None
    whitening[:, 0] *= 1e-6
    assert PublicCoordinates.of_words(told, whitening, most_bits=40) is None


def test_the_rounded_matrix_is_the_whitening(coordinates, rows):
    weights = np.random.default_rng(5).normal(size=(coordinates.n_coordinates, 1))
    z = coordinates(rows[12:]) * 2.0**-coordinates.bits
    images = coordinates.feature_map.images(rows[12:]) * 2.0**-coordinates.feature_map.bits
    assert np.allclose(z @ weights, images @ coordinates.features(weights), atol=1e-9)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("asked", "factored"), [({}, True), ({"clip": 1e6}, False), ({"epsilon": 1e-3}, True)])
def test_a_plan_for_words_takes_them_while_slopes_stay_fine(asked, factored):
    pool = texts(120, 0)
    how = {"n_classes": 2, "n_units": 5_000, "epsilon": 1.0, "delta": 1e-5, **asked}
    plan = plan_direct(feature_map_for("auto", pool), pool, **how)
    assert plan.coordinates.factored is factored
    assert plan.coordinates.feature_map.bits == (10 if factored else 20)
    assert 2.0 ** (plan.grid.k - plan.grid.bits) / plan.grid.clip >= 256 or not factored


# --- the leading directions of a large pool of texts are near those of a whole decomposition, and tell a whole plan ---


N, N_WORDS = 300, 500


@pytest.fixture(scope="module")
def pool() -> sparse.csr_matrix:
    rng = np.random.default_rng(0)
    topics = rng.gamma(0.1, size=(12, N_WORDS))
    return sparse.csr_matrix(rng.poisson(rng.gamma(0.5, size=(N, 12)) @ topics + 0.05).astype(float))


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """What is thousands of texts and hundreds of directions in earnest."""
    for name, value in (("LEADING", 60), ("MORE", 20), ("OFTEN", 40)):
        monkeypatch.setattr(pool_coordinates, name, value)
    monkeypatch.setattr(module, "STRIP", 32)
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
