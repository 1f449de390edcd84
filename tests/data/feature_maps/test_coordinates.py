"""Public coordinates: as fine as rows need, and 0 for a row that would be too long for exact sums."""

from dataclasses import dataclass

import numpy as np
import pytest

from quorate.data.feature_maps.coordinates import LENGTH_BITS, PublicCoordinates
from quorate.data.feature_maps.named import feature_map_for
from quorate.direct.contributions import lengths_of
from quorate.direct.plan import plan_direct

rng = np.random.default_rng(0)
TABLES = {"three columns": rng.normal(size=(700, 3)), "eight columns": rng.normal(size=(700, 8))}


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("name", TABLES)
def test_they_are_near_those_of_floats_where_many_directions_count(name):
    pool, rows = TABLES[name][:500], TABLES[name][500:]
    fitted = feature_map_for("auto", pool)
    coordinates = plan_direct(fitted, pool, n_classes=2, n_units=50_000, epsilon=1.0, delta=1e-6).coordinates
    z = coordinates(rows) * 2.0**-coordinates.bits
    floats = fitted.images(rows) * 2.0**-fitted.bits @ fitted.mixing @ coordinates.whitening
    assert np.linalg.norm(z - floats) < 0.05 * np.linalg.norm(floats)
    assert lengths_of(coordinates(rows)).max() <= 2.0 ** (LENGTH_BITS - 1)
    assert lengths_of(coordinates(rows)).min() > 0


@dataclass
class Passed:
    """Rows as their own images, of any length up to a bound."""

    bits: int = 10
    n_images: int = 3
    bound: float = 1e5
    mixing: None = None

    def images(self, rows):
        return np.rint(rows * 2.0**self.bits)


def test_a_row_that_is_too_long_is_zero_alone_and_beside_others():
    coordinates = PublicCoordinates.of(Passed(), np.eye(3))
    rows = np.array([[1.0, -2.0, 0.5], [9e3, 0.0, 1.0], [8e3, 0.0, 1.0], [5e4, 5e4, 5e4]])
    made = coordinates(rows)
    assert (made[[1, 3]] == 0).all()
    assert (made[[0, 2]] == rows[[0, 2]] * 2.0**coordinates.bits).all()
    assert (np.vstack([coordinates(rows[[i]]) for i in range(4)]) == made).all()
    assert lengths_of(made).max() <= 2.0 ** (LENGTH_BITS - 1)
