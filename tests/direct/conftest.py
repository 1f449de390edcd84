"""Coordinates and labels that look like those of a real run, and some that no pool would give; audits of rounds that
count.
"""

from typing import NamedTuple

import numpy as np
import pytest
from tests.labelling.conftest import Killed

from quorate.audit import audit_rounds
from quorate.audit import rounds as audited
from quorate.data.feature_maps import LinearMap
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.coordinates import PublicCoordinates, Spectrum, public_features
from quorate.direct import contributions, descend
from quorate.direct.contribution_check import check_contributions
from quorate.direct.plan import plan_direct
from quorate.errors import PreconditionFailed
from quorate.types import FloatArray, IntArray


def dies(*_, **_how):
    """In the place of an act, the process ends."""
    raise Killed


class Rows(NamedTuple):
    coordinates: PublicCoordinates
    X: FloatArray
    codes: IntArray


@pytest.fixture(scope="session", params=[2, 5], ids=["two classes", "five classes"])
def n_classes(request):
    return int(request.param)


@pytest.fixture(scope="session")
def rows(n_classes):
    rng = np.random.default_rng(3)
    pool = rng.normal(size=(120, 40)) * np.geomspace(1, 1e-3, 40)
    feature_map = LinearMap.fit(pool)
    spectrum = Spectrum.of(public_features(feature_map, pool))
    coordinates = PublicCoordinates.of(feature_map, spectrum.whitening(spectrum.ridge_for(20.0)))
    X = rng.normal(size=(300, 40)) * np.geomspace(1, 1e-3, 40)
    X[::7] *= 1e6  # rows that lie far outside the pool
    X[5] = 0.0
    return Rows(coordinates, X, rng.integers(0, n_classes, 300))


class RoundsThatCount:
    """An audit of a plan some of whose rounds count: of 80 public rows, and settings of its own."""

    def planned(self):
        how = {"n_units": 2_000, "epsilon": 8.0, "delta": 1e-5, **self.asked}
        return plan_direct(feature_map_for("linear", self.rows), self.rows, **how)

    def violated(self):
        plan, how = self.planned(), {"delta": 1e-5, "confidence": 1 - 1e-6, "runs": 4_000, "seed": 3}
        assert plan.settings.cells
        return audit_rounds(plan, plan.event, self.rows, **how).violated

    @pytest.fixture(autouse=True)
    def few_runs(self, monkeypatch):
        monkeypatch.setattr(audited, "_LEAST_NUMBERS", 400)
        monkeypatch.setattr(audited, "_MOST_RUNS", 20)

    @pytest.mark.heavy
    def test_passes_rounds_as_they_are(self):
        assert not self.violated()

    def test_catches_a_unit_that_is_counted_more_than_once(self, monkeypatch):
        honest = audited.of_records

        def thrice(z, lengths, codes, weights, grid):
            return honest(z, lengths, codes, weights, grid) * (3 if grid.cells else 1)

        monkeypatch.setattr(audited, "of_records", thrice)
        assert self.violated()

    @pytest.mark.heavy
    def test_catches_counts_without_noise(self, monkeypatch):
        honest = descend.noisy_sum

        def as_they_are(exact, sigma, noise):
            counted = (exact >= 0).all() and (exact % 2**20 == 0).all()
            return exact if counted and exact.any() else honest(exact, sigma, noise)

        monkeypatch.setattr(descend, "noisy_sum", as_they_are)
        assert self.violated()

    def test_a_person_who_counts_once_a_row_is_seen_before_the_charge(self, monkeypatch):
        honest = contributions.counted
        check_contributions(self.planned(), self.rows)
        monkeypatch.setattr(
            contributions, "counted", lambda cells, starts, shape, grid: honest(cells, None, shape, grid)
        )
        with pytest.raises(PreconditionFailed, match="longer than the clip"):
            check_contributions(self.planned(), self.rows)
