"""Leading directions of a wide pool: a function of public rows, and each image a function of its row, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from quorate.data.feature_maps import PoolDirections
from quorate.data.feature_maps.directions import DIRECTIONS, is_wide


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
    with threadpool_limits(1):
        together = directions.transform(rows)
    with threadpool_limits(2):
        assert all((directions.transform(rows[i : i + 1])[0] == together[i]).all() for i in range(120))
        assert (directions.transform(rows[::-1])[::-1] == together).all()
        assert (directions.transform(rows[7:90]) == together[7:90]).all()


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


def test_a_pool_without_spread_gives_no_number_that_is_not_finite():
    seen = PoolDirections.of(np.zeros((100, 300))).transform(np.ones((3, 300)))
    assert np.isfinite(seen).all()


def test_what_is_wide():
    assert [is_wide(257, 65), is_wide(256, 5_000), is_wide(5_000, 64)] == [True, False, False]
