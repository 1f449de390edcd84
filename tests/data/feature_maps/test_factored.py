"""Coordinates of sparse rows that are not written out, and leading directions, are those of a whole decomposition.

A column without spread is told by its least and largest value, however the mean of equal numbers is rounded.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from quorate.audit.attacks import reconstruct
from quorate.audit.many_answers import _chosen
from quorate.data import pool_moments
from quorate.data.encoding import public_encoder
from quorate.data.feature_maps import (
    LinearMap,
    PoolCoordinates,
    PoolDirections,
    PoolScale,
    PoolStandardizer,
    pool_coordinates,
)
from quorate.data.feature_maps import coordinates as module
from quorate.data.feature_maps import exact as exact_module
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.coordinates import FactoredRows, PublicCoordinates, Spectrum, public_features
from quorate.data.feature_maps.first_maps import SharedPatches
from quorate.data.feature_maps.scale import deviations, has_spread
from quorate.data.schema_encoder import declared_columns
from quorate.direct.contribution_check import faults_of, made_up
from quorate.direct.contributions import Grid, lengths_of, of_records
from quorate.direct.plan import plan_direct
from quorate.direct.stored import dump_plan, load_plan
from quorate.errors import InvalidParameter
from quorate.labelling.active import CoreSet
from quorate.labelling.active.strategy import History
from quorate.planning.rehearsal.made_up import Line

WORDS = 900


def texts(n, seed):
    """Rows of a hundred words at most, few of them frequent; the last ten words stand in no public row."""
    rng = np.random.default_rng(seed)
    rows = rng.poisson(3.0 / (1 + np.arange(WORDS)) ** 0.6, size=(n, WORDS)).astype(float)
    rows[:, -10:] = 0
    return sparse.csr_matrix(np.log1p(rows))


@pytest.fixture(scope="module")
def coordinates():
    pool = texts(120, 0)
    told = LinearMap.fit(pool).coarse()
    spectrum = Spectrum.of(public_features(told, pool))
    return PublicCoordinates.of_words(told, spectrum.whitening(spectrum.ridge_for(40.0)), most_bits=40)


@pytest.fixture(scope="module")
def rows():
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
def exact(coordinates, rows):
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


N, N_WORDS = 300, 500


@pytest.fixture(scope="module")
def pool():
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


def near(features):
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


VALUES = [0.1, -0.1, 3.5, 1e-300]
LARGE = [1e300, 1e308]  # whose squares are infinite; nobody has a word so often
CONTAINED = [(value, np.asarray) for value in VALUES + LARGE] + [(value, csr_array) for value in VALUES]
ROWS = 90  # with which the mean of most of these is not the number itself


def constant(value, width=2):
    """A pool of equal rows."""
    return np.full((ROWS, width), value)


def test_a_standard_deviation_does_not_tell():
    assert constant(0.1).std(axis=0).all()
    assert np.array([1e-300, 2e-300]).std() == 0


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("value", "container"), CONTAINED)
def test_spread_is_told_exactly(value, container):
    columns = np.column_stack([constant(value), np.where(np.arange(ROWS) == 7, value / 2, value)])
    assert has_spread(container(columns)).tolist() == [False, False, True]
    assert (deviations(container(columns)) > 0).tolist() == [False, False, True]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("value", "container"), CONTAINED)
@pytest.mark.parametrize(("width", "threads"), [(2, 1), (300, 2)])
def test_equal_rows_lie_at_one_point_and_in_no_unit_of_their_own(value, container, width, threads):
    with threadpool_limits(threads):
        look_at(container(constant(value, width)))


def look_at(pool):
    geometry = PoolCoordinates.of(pool)
    assert (geometry.standard.scale == 1).all()
    seen = geometry.measured(pool)
    dense = seen.toarray() if hasattr(seen, "toarray") else seen
    assert (dense == dense[0]).all()
    if not hasattr(seen, "toarray"):
        assert (dense == 0).all()
    kernel = geometry.kernel(pool)
    assert (kernel.standard.scale == 1).all()
    np.testing.assert_allclose(kernel.measured(pool), 0, atol=1e-6)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("value", VALUES + LARGE)
def test_a_constant_column_beside_others_says_nothing(value):
    rest = np.random.default_rng(0).normal(size=(ROWS, 3))
    pool = np.column_stack([rest, constant(value, 1)])
    scale, standard = PoolScale.fit(pool), PoolStandardizer.of(pool)
    assert scale.scale[3] == 1
    assert not scale.on_grid(pool)[:, 3].any()
    assert (scale.transformer().transform(pool)[:, 3] == 0).all() or abs(value) < 1e10
    np.testing.assert_array_equal(scale.scale[:3], PoolScale.fit(rest).scale)
    np.testing.assert_allclose(standard.scale[:3], PoolStandardizer.of(rest).scale)
    assert not LinearMap.fit(pool).images(pool)[:, 3].any()
    encoder = public_encoder(pool)
    np.testing.assert_allclose(encoder.transform(pool)[:, 3], 0, atol=1e-16)


def test_a_wide_pool_takes_no_direction_from_its_constant_columns():
    rest = np.random.default_rng(0).normal(size=(100, 300))
    pool = np.column_stack([rest, np.full((100, 5), 1e200)])
    for made in (PoolCoordinates.of(pool), PoolCoordinates.of(csr_array(pool))):
        assert not made.maps[0].components_[:, 300:].any()
    np.testing.assert_allclose(
        np.abs(PoolCoordinates.of(pool).measured(pool)).sum(axis=1).std(),
        np.abs(PoolCoordinates.of(rest).measured(rest)).sum(axis=1).std(),
        rtol=0.2,
    )
    assert not PoolDirections.of(np.full((100, 300), 0.1)).transform(np.full((2, 300), 0.1)).any()


@pytest.mark.parametrize("size", [1e-300, 1e-18])
def test_small_columns_are_put_in_their_unit_and_the_published_steps_do_the_same(size):
    pool = np.array([0.0, 1.0, 2.0, 5.0])[:, None] * size
    expected = PoolScale.fit(pool / size).on_grid(pool / size)
    scale = PoolScale.fit(pool)
    np.testing.assert_array_equal(scale.on_grid(pool), expected)
    np.testing.assert_allclose(scale.transformer().transform(pool), expected / 2.0**12, atol=2.0**-12)
    np.testing.assert_allclose(
        PoolCoordinates.of(pool).measured(pool), PoolCoordinates.of(pool / size).measured(pool / size)
    )


def test_a_narrow_declared_range_is_a_range():
    frame, encoder = declared_columns({"charge": [0.0, 3.2e-19]})
    assert encoder.transform(frame).ravel().tolist() == [-1, 1]


@pytest.mark.heavy
def test_equal_rows_are_refused_where_a_map_needs_rows_that_differ():
    for pool in (constant(0.1), csr_array(constant(0.1))):
        with pytest.raises(InvalidParameter, match="no spread"):
            feature_map_for("auto", pool)
    image = np.random.default_rng(0).integers(0, 256, size=(1, 28 * 28)).astype(np.float64)
    with pytest.raises(InvalidParameter, match="all equal"):
        PoolDirections.of_images(np.repeat(image, 140, axis=0), patches=SharedPatches())


def test_equal_points_are_asked_once():
    pool = np.repeat(np.random.default_rng(0).normal(size=(2, 50)) * 1e3, 300, axis=0)
    for points in (pool, csr_array(pool)):
        empty = History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
        assert len(CoreSet(10).next_batch(points, empty, np.random.default_rng(0))) == 2


def test_a_line_through_equal_points_is_level():
    students = [SimpleNamespace(accuracy=accuracy) for accuracy in (0.6, 0.7, 0.8)]
    line = Line([0.7] * 3, students, [None] * 3, 0.7 + 1e-16)
    assert line.leverage == pytest.approx(1 / 3)
    assert line.at(0.9) == line.at(0.7)


def test_an_audit_takes_no_rounding_for_an_event():
    told = np.random.default_rng(0).integers(0, 2, size=(200, 6, 2)).astype(np.float64)
    told[:, :, 1] = 0.1
    assert _chosen(told)[0] == 0
    assert reconstruct(lambda: 0.1, 10).standard_error == 0
