"""Coordinates and labels that look like those of a real run, and some that no pool would give."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from quorate.data.feature_maps import LinearMap
from quorate.data.feature_maps.coordinates import PublicCoordinates, Spectrum, public_features
from quorate.types import FloatArray, IntArray


class Rows(NamedTuple):
    coordinates: PublicCoordinates
    X: FloatArray
    codes: IntArray


@pytest.fixture(scope="session", params=[2, 5], ids=["two classes", "five classes"])
def n_classes(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="session")
def rows(n_classes: int) -> Rows:
    rng = np.random.default_rng(3)
    pool = rng.normal(size=(120, 40)) * np.geomspace(1, 1e-3, 40)
    feature_map = LinearMap.fit(pool)
    spectrum = Spectrum.of(public_features(feature_map, pool))
    coordinates = PublicCoordinates.of(feature_map, spectrum.whitening(spectrum.ridge_for(20.0)))
    X = rng.normal(size=(300, 40)) * np.geomspace(1, 1e-3, 40)
    X[::7] *= 1e6  # rows that lie far outside the pool
    X[5] = 0.0
    return Rows(coordinates, X, rng.integers(0, n_classes, 300))
