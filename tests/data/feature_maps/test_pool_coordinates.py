"""Where public points lie: read off the pool alone, the same sparse and dense, alone and shared."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline
from tests.data.feature_maps.test_feature_maps import IMAGES
from tests.data.feature_maps.test_fitted_transformer import alone_differs

import quorate
from quorate.data.feature_maps import (
    PatchFeatures,
    PoolDirections,
    SharedPatches,
    first_maps,
    patch_map,
    pool_coordinates,
)
from quorate.data.feature_maps.pool_coordinates import DIRECTIONS, PoolCoordinates, PoolStandardizer, by_blocks, is_wide
from quorate.direct.budgets import PlannedBudgets
from quorate.voting.coordinates import PoolForVotes


def texts(m=200, width=1_500, topics=3, seed=0):
    """Sparse counts of words around a few topics; most of the columns are noise."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(topics, size=m)
    rates = np.full((topics, width), 0.01)
    for each in range(topics):
        rates[each, 20 * each : 20 * each + 20] = 0.6
    return csr_array(rng.poisson(rates[topic]).astype(np.float64)), topic


def test_up_to_a_thousand_columns_points_are_measured_by_column():
    pool = np.random.default_rng(0).normal(size=(50, 1_000)) * 7 + 3
    geometry = PoolCoordinates.of(pool)
    assert geometry.maps == ()
    z = geometry.measured(pool)
    assert np.mean(np.sum(z**2, axis=1)) == pytest.approx(1)
    np.testing.assert_allclose(z, (pool - pool.mean(axis=0)) / pool.std(axis=0) / np.sqrt(1_000), atol=1e-9)


def test_beyond_leading_directions_stand_in_for_columns():
    pool, topic = texts()
    geometry = PoolCoordinates.of(pool)
    z = geometry.measured(pool)
    assert z.shape == (200, DIRECTIONS)
    assert np.mean(np.sum(z**2, axis=1)) == pytest.approx(1)
    _, _, directions = np.linalg.svd(pool.toarray(), full_matrices=False)
    exact = pool.toarray() @ directions[:3].T
    np.testing.assert_allclose(np.abs(geometry.project(pool)[:, :3]), np.abs(exact), rtol=0.02, atol=0.05)
    apart = euclidean_distances(z)
    same = topic[:, None] == topic
    assert apart[same].mean() < 0.9 * apart[~same].mean()


def test_directions_keep_their_lengths_so_that_noise_is_not_blown_up():
    pool, _ = texts()
    spread = PoolCoordinates.of(pool).measured(pool).std(axis=0)
    assert spread[:3].max() > 3 * spread[-1]


def test_sparse_and_dense_pools_have_one_geometry():
    pool, _ = texts()
    for rows in (pool, csr_array((pool[:, :40] > 0).astype(np.float64))):
        dense, sparse = PoolCoordinates.of(rows.toarray()), PoolCoordinates.of(rows)
        np.testing.assert_allclose(
            euclidean_distances(dense.measured(rows.toarray())), euclidean_distances(sparse.measured(rows)), atol=1e-6
        )


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float32])
def test_small_types_do_not_overflow(dtype):
    pool, _ = texts()
    pool = csr_array((pool > 0).astype(np.float64))
    expected = PoolCoordinates.of(pool).measured(pool)
    np.testing.assert_allclose(PoolCoordinates.of(pool.astype(dtype)).measured(pool.astype(dtype)), expected, atol=1e-4)


@pytest.mark.parametrize("m", [1, 2, DIRECTIONS])
def test_a_pool_of_fewer_rows_than_directions_is_taken_as_it_is(m):
    pool = np.random.default_rng(0).normal(size=(m, 1_200))
    assert PoolCoordinates.of(pool).maps == ()
    assert PoolCoordinates.of(pool).kernel(pool).measured(pool).shape == (m, m)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("width", [3, 1_200])
def test_kernel_features_multiply_to_the_kernel(width):
    pool = np.random.default_rng(0).normal(size=(90, width))
    geometry = PoolCoordinates.of(pool)
    features = geometry.kernel(pool).project(pool)
    z = geometry.measured(pool)
    kernel = [[np.exp(-np.sum((one - other) ** 2) / 2) for other in z] for one in z]
    np.testing.assert_allclose(features @ features.T, kernel, atol=1e-6)


@pytest.mark.heavy
def test_five_hundred_landmarks_are_enough_for_a_large_pool():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(2_000, 2))
    geometry = PoolCoordinates.of(pool)
    features = geometry.kernel(pool).project(pool)
    assert features.shape == (2_000, 500)
    few = rng.integers(2_000, size=100)
    kernel = np.exp(-euclidean_distances(geometry.measured(pool[few]), squared=True) / 2)
    np.testing.assert_allclose(features[few] @ features[few].T, kernel, atol=1e-3)


def test_the_same_pool_has_the_same_geometry_every_time():
    pool, _ = texts()
    first, second = (PoolCoordinates.of(pool).kernel(pool).measured(pool) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("container", [np.asarray, csr_array, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("width", [5, 1_100])
@pytest.mark.parametrize("kernel", [False, True])
def test_the_steps_of_a_pipeline_do_the_same(container, width, kernel):
    rows = np.random.default_rng(0).normal(size=(80, width))
    numbers = csr_array(rows) if container is csr_array else rows
    geometry = PoolCoordinates.of(numbers)
    geometry = geometry.kernel(numbers) if kernel else geometry
    pool = container(rows)
    if container is pd.DataFrame:
        pool.columns = [f"c{column}" for column in range(width)]
    made, expected = Pipeline(geometry.steps(pool)).transform(pool), geometry.project(numbers)
    np.testing.assert_allclose(np.asarray(made - expected if container is not csr_array else 0.0), 0, atol=1e-8)
    if container is csr_array:
        np.testing.assert_allclose(np.abs(made - expected).max(), 0, atol=1e-8)


def test_the_scaler_is_the_standard():
    rows = np.random.default_rng(0).normal(size=(80, 4)) * 9 + 2
    standard = PoolStandardizer.of(rows)
    expected = standard.scores(rows, np.eye(4), np.zeros(4))
    np.testing.assert_allclose(standard.scaler(rows).transform(rows), expected, atol=1e-12)


def test_many_points_are_estimated_in_blocks(monkeypatch):
    monkeypatch.setattr(pool_coordinates, "BLOCK", 4)
    sizes = []

    def estimate(rows):
        sizes.append(len(rows))
        return 2 * rows

    X = np.arange(20.0).reshape(10, 2)
    np.testing.assert_array_equal(by_blocks(estimate, X), 2 * X)
    assert sizes == [4, 4, 2]


RNG = np.random.default_rng(0)
TABLES = {
    "numbers": RNG.normal(size=(120, 4)),
    "indicators": np.eye(6)[RNG.integers(6, size=120)],
    "one quantity": RNG.integers(0, 256, size=(120, 20)).astype(float),
}


def fitted(pool, n_classes=2):
    return PoolForVotes.of(pool, None).coordinates(n_classes=n_classes, mu_n=900.0)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("table", TABLES)
def test_a_row_is_a_function_of_itself_to_the_bit_and_has_length_one(table, n_classes):
    pool = TABLES[table]
    coordinates = fitted(pool, n_classes)
    seen = coordinates.transform(pool)
    np.testing.assert_allclose(np.linalg.norm(seen, axis=1), 1.0)
    hostile = pool.copy()
    hostile[3] = 1e300
    assert (np.delete(coordinates.transform(hostile), 3, axis=0) == np.delete(seen, 3, axis=0)).all()
    assert (np.vstack([coordinates.transform(pool[at : at + 1]) for at in range(20)]) == seen[:20]).all()


@pytest.mark.parametrize("table", TABLES)
def test_the_published_transformer_says_the_same(table):
    pool = TABLES[table]
    coordinates = fitted(pool)
    np.testing.assert_allclose(
        coordinates.transformer(pool[:2]).transform(pool), coordinates.transform(pool), atol=1e-3
    )


def test_effects_are_mean_squares_over_the_pool_and_add_up_to_what_was_wanted():
    pool = TABLES["numbers"]
    coordinates = fitted(pool)
    z = coordinates.coordinates(pool) * 2.0**-coordinates.coordinates.bits
    np.testing.assert_allclose((z**2).mean(axis=0), coordinates.effects, rtol=0.05, atol=5e-3)
    wanted = 0.75 * np.sqrt(900.0)
    assert 0.8 * wanted < coordinates.effects.sum() < 1.8 * wanted


@pytest.mark.parametrize("pool", [np.ones((100, 3)), RNG.normal(size=(10, 3))], ids=["all equal", "few"])
def test_a_pool_that_says_nothing_has_none(pool):
    assert PoolForVotes.of(pool, None) is None


ROWS = np.random.default_rng(1).random((90, 100))


@pytest.fixture
def computed(monkeypatch):
    """How many images each computed block had."""
    sizes = []
    of_block = PatchFeatures.of_block

    def counted(self, rows):
        sizes.append(len(rows))
        return of_block(self, rows)

    monkeypatch.setattr(PatchFeatures, "of_block", counted)
    return sizes


@pytest.mark.heavy
def test_maps_that_share_patches_are_the_maps_of_a_run():
    shared = SharedPatches()
    ours, alone = (PoolDirections.of_images(IMAGES, patches=each) for each in (shared, None))
    for rows in (IMAGES, ROWS, ROWS[::-1], ROWS[:1]):
        assert (ours.transform(rows) == alone.transform(rows)).all()
    mapped, plain = (patch_map(IMAGES, patches=each) for each in (shared, None))
    assert (mapped.images(ROWS) == plain.images(ROWS)).all()
    assert mapped.first is ours.coordinates.feature_map.first
    task = {"n_classes": 3, "n_units": 2_000, "epsilon": 1.0, "delta": 1e-5, "neighbours": "replace"}
    budgets = [PlannedBudgets(IMAGES, "patches", each) for each in (shared, None)]
    assert budgets[0].outline(**task).settings == budgets[1].outline(**task).settings
    assert (budgets[0].along(ROWS) == budgets[1].along(ROWS)).all()


@pytest.mark.heavy
def test_a_plan_computes_the_patches_of_each_public_image_once(computed):
    quorate.plan(
        IMAGES.reshape(-1, 10, 10), epsilon=1.0, delta=1e-5, n_records=2_000, n_classes=2,
        evaluation=(ROWS, np.arange(90) % 2), n_teachers=[20], mechanisms=["NoisyCounts"],
    )  # fmt: skip
    assert sum(computed) == len(IMAGES) + len(ROWS)


@pytest.mark.heavy
def test_no_more_is_remembered_than_fits(monkeypatch, computed):
    known = SharedPatches().of(IMAGES)
    n_numbers = known.numbers(ROWS[:1]).size
    monkeypatch.setattr(first_maps, "MOST_NUMBERS", 128 * n_numbers)  # two blocks of five
    computed.clear()
    first, again = known.numbers(IMAGES), known.numbers(IMAGES)
    assert (first == again).all()
    assert len(IMAGES) < sum(computed) < 2 * len(IMAGES)


def pixels(rng, n):
    """Images that lie near four directions."""
    return np.abs(rng.normal(size=(n, 4)) @ rng.normal(size=(4, 300))) + 0.1 * rng.random((n, 300))


def words(rng, n):
    return sparse.random(n, 900, density=0.03, format="csr", random_state=rng)


@pytest.mark.heavy
@pytest.mark.parametrize("make", [pixels, words])
def test_a_row_is_the_same_alone_in_any_company_order_and_number_of_threads(make):
    rng = np.random.default_rng(0)
    directions, rows = PoolDirections.of(make(rng, 200)), make(rng, 120)
    assert not alone_differs(directions.transform, rows)


def test_a_product_of_floats_would_not_do():
    rng = np.random.default_rng(0)
    rows, vectors = pixels(rng, 120), rng.normal(size=(300, DIRECTIONS))
    together = rows @ vectors
    assert any((rows[i : i + 1] @ vectors != together[i]).any() for i in range(120))


def test_hostile_rows_move_no_other_row():
    rng = np.random.default_rng(1)
    directions, rows = PoolDirections.of(pixels(rng, 200)), pixels(rng, 5)
    hostile = np.vstack([rows, 1e300 * rows, np.zeros((1, 300)), np.full((1, 300), 1e-300)])
    seen = directions.transform(hostile)
    assert np.isfinite(seen).all()
    assert (seen[:5] == directions.transform(rows)).all()


def test_directions_keep_what_rows_differ_in():
    rng = np.random.default_rng(2)
    basis = rng.normal(size=(4, 300))
    pool, rows = (rng.normal(size=(n, 4)) @ basis for n in (300, 50))
    seen = PoolDirections.of(pool).transform(rows)
    _, singular, _ = np.linalg.svd(seen - seen.mean(axis=0))
    assert np.sum(singular[:4] ** 2) > 0.95 * np.sum(singular**2)


def test_what_is_wide():
    assert [is_wide(257, 65), is_wide(256, 5_000), is_wide(5_000, 64)] == [True, False, False]
