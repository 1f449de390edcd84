"""Coordinates of length one: each row by itself, and the same as the published transformer's."""

import numpy as np
import pytest

from quorate.data.feature_maps.pool_coordinates import UnitCoordinates
from quorate.voting.coordinates import PoolForVotes

RNG = np.random.default_rng(0)
TABLES = {
    "numbers": RNG.normal(size=(120, 4)),
    "indicators": np.eye(6)[RNG.integers(6, size=120)],
    "one quantity": RNG.integers(0, 256, size=(120, 20)).astype(float),
}


def fitted(pool: np.ndarray, n_classes: int = 2) -> UnitCoordinates:
    found = PoolForVotes.of(pool, None)
    assert found is not None
    return found.coordinates(n_classes=n_classes, mu_n=900.0)


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
