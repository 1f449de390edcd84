"""What a run looks at before its first round: sums that are not exact, and vectors that are too long, stop it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.coordinates import PublicCoordinates
from quorate.direct import contribution_check, contributions
from quorate.direct.contribution_check import check_contributions
from quorate.direct.plan import plan_direct
from quorate.errors import PreconditionFailed

POOL = np.random.default_rng(1).normal(size=(90, 6))
PLAN = plan_direct(feature_map_for("both", POOL), POOL, n_classes=2, n_units=1_000, epsilon=1.0, delta=1e-5)


def test_correct_contributions_pass() -> None:
    check_contributions(PLAN, POOL)


def test_coordinates_that_depend_on_the_rows_beside_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = PublicCoordinates.__call__
    monkeypatch.setattr(PublicCoordinates, "__call__", lambda self, rows: exact(self, rows) + (len(rows) > 1))
    with pytest.raises(PreconditionFailed, match="coordinates of a row"):
        check_contributions(PLAN, POOL)


def test_a_sum_of_rounded_floats_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin adds gradients as floats, and puts only their sum on the grid."""

    def rounded(z, lengths, codes, weights, grid):
        slope = contributions.slopes(z, codes, weights, grid)
        factors = contributions.record_factors(slope, lengths, grid)
        return np.rint(z.T @ (factors + 0.3)).astype(np.int64)

    monkeypatch.setattr(contribution_check, "of_records", rounded)
    with pytest.raises(PreconditionFailed, match="records beside it"):
        check_contributions(PLAN, POOL)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_row_that_is_not_finite_and_spoils_the_sum_is_caught(kind, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = kind(np.abs(POOL))
    plan = plan_direct(feature_map_for("auto", pool), pool, n_classes=2, n_units=1_000, epsilon=1.0, delta=1e-5)
    check_contributions(plan, pool)
    monkeypatch.setattr(contributions, "without_wild_rows", lambda z, lengths: (z, lengths))
    with pytest.raises(PreconditionFailed, match="records beside it"):
        check_contributions(plan, pool)


@pytest.mark.parametrize("axis", ["no clip", "a norm by the wrong axis"])
def test_a_contribution_that_is_too_long_is_caught(axis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(z, lengths, codes, weights, grid):
        scaled = contributions.slopes(z, codes, weights, grid) * (2.0 ** (grid.k - grid.bits) / grid.clip)
        if axis != "no clip":  # each coordinate is cut off by itself
            scaled = (
                scaled
                * np.minimum(1.0, 2.0**grid.k / np.maximum(np.abs(z).max(axis=1) * np.abs(scaled[:, 0]), 1))[:, None]
            )
        return (z.T @ np.trunc(scaled)).astype(np.int64)

    monkeypatch.setattr(contribution_check, "of_records", too_long)
    with pytest.raises(PreconditionFailed, match="longer than the clip"):
        check_contributions(PLAN, POOL)
