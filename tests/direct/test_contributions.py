"""What a unit adds to a sum is, bit for bit, a function of that unit and public facts.

A run looks before its first round: sums that are not exact, and vectors that are too long, stop it.
"""

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.coordinates import PublicCoordinates
from quorate.direct import contribution_check, contributions
from quorate.direct.contribution_check import check_contributions
from quorate.direct.contributions import (
    Grid,
    clipped,
    group_contribution,
    lengths_of,
    of_groups,
    of_records,
    record_factors,
    slopes,
)
from quorate.direct.plan import plan_direct
from quorate.errors import PreconditionFailed

K = 30


def weights_of(n, n_classes, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 1 if n_classes == 2 else n_classes))


def grid_of(rows, clip=2.0):
    return Grid(bits=rows.coordinates.bits, clip=clip, k=K)


def integers_by_record(z, codes, weights, grid):
    """Each record's own integers, (n_records, n_coordinates, n_outputs), as computed in one batch."""
    factors = record_factors(slopes(z, codes, weights, grid), lengths_of(z), grid)
    return (z[:, :, None] * factors[:, None, :]).astype(np.int64)


class TestRecords:
    def test_are_the_same_alone_in_any_subset_and_in_reverse(self, rows, n_classes):
        grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
        together = integers_by_record(rows.coordinates(rows.X), rows.codes, weights, grid)
        for chosen in (np.arange(300)[::-1], np.arange(0, 300, 3), *(np.array([i]) for i in range(0, 300, 11))):
            apart = integers_by_record(rows.coordinates(rows.X[chosen]), rows.codes[chosen], weights, grid)
            assert (apart == together[chosen]).all()

    @pytest.mark.heavy
    def test_sum_to_what_is_released_whatever_the_blocks_and_threads(self, rows, n_classes):
        grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
        z = rows.coordinates(rows.X)
        expected = integers_by_record(z, rows.codes, weights, grid).sum(axis=0)
        for block, threads in ((300, 1), (300, 2), (64, 2), (1, 1), (7, 1)):
            with threadpool_limits(threads):
                assert (of_records(z, lengths_of(z), rows.codes, weights, grid, block=block) == expected).all()

    def test_are_the_same_where_each_is_looked_at_in_integers(self, rows, n_classes, monkeypatch):
        grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
        z = rows.coordinates(rows.X)
        some = integers_by_record(z, rows.codes, weights, grid)
        monkeypatch.setattr(contributions, "_CLEARLY", 0.0)  # every record that adds anything
        assert (integers_by_record(z, rows.codes, weights, grid) == some).all()

    @pytest.mark.default_cases(1)
    def test_never_pass_the_length_that_the_price_rests_on(self, rows, n_classes):
        z = rows.coordinates(rows.X)
        for clip in (1e-3, 0.7, 3.0, 1e6):
            for scale in (0.0, 1.0, 1e3):
                weights = scale * weights_of(rows.coordinates.n_coordinates, n_classes)
                made = integers_by_record(z, rows.codes, weights, grid_of(rows, clip))
                squares = [sum(int(value) ** 2 for value in each.ravel()) for each in made]
                assert max(squares) <= 4**K

    def test_are_the_clipped_gradient_up_to_one_grid_step_of_each_slope(self, rows, n_classes):
        grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes, seed=1)
        z = rows.coordinates(rows.X) * 2.0**-grid.bits
        logits = z @ weights
        if n_classes == 2:
            slope = (rows.codes == 1)[:, None] - 1 / (1 + np.exp(-logits))
        else:
            raised = np.exp(logits - logits.max(axis=1, keepdims=True))
            slope = np.eye(n_classes)[rows.codes] - raised / raised.sum(axis=1, keepdims=True)
        gradient = z[:, :, None] * slope[:, None, :]
        length = np.sqrt((gradient**2).sum(axis=(1, 2)))
        gradient *= np.minimum(1, grid.clip / np.maximum(length, 1e-300))[:, None, None]
        made = integers_by_record(rows.coordinates(rows.X), rows.codes, weights, grid) * grid.step
        tolerance = 2.0 * grid.clip * 2.0 ** (grid.bits - K) * np.abs(z)[:, :, None] + 1e-9
        assert (np.abs(made - gradient) <= tolerance).all()


def test_a_batched_twin_is_caught(rows, n_classes):
    """Float coordinates and one float product for all rows: what most code does, and no row is then its own."""
    grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
    features = rows.X[:, :16] / np.linalg.norm(rows.X[:, :16] + 1.0, axis=1, keepdims=True)

    def twin(chosen):
        logits = features[chosen] @ weights[:16]
        step = features[chosen][:, :, None] * (1 / (1 + np.exp(-logits)))[:, None, :]
        return np.trunc(step * 2.0**52).astype(np.int64)

    together = twin(np.arange(300))
    assert any((twin(np.array([i]))[0] != together[i]).any() for i in range(300)), grid


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_record_that_is_not_finite_adds_nothing_and_changes_no_other(rows, n_classes, odd, kind):
    grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
    z = rows.coordinates(rows.X)
    without = of_records(np.delete(z, 7, 0), lengths_of(np.delete(z, 7, 0)), np.delete(rows.codes, 7), weights, grid)
    z[7, :2] = odd
    with np.errstate(all="ignore"):
        made = of_records(kind(z), lengths_of(kind(z)), rows.codes, weights, grid)
    assert (made == without).all()
    assert without.any()


class TestGroups:
    starts = np.array([0, 1, 4, 4 + 30, 100, 300])

    def test_are_the_same_alone_whatever_the_blocks_and_threads(self, rows, n_classes):
        grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
        z = rows.coordinates(rows.X)
        alone = []
        for first, last in zip(self.starts[:-1], self.starts[1:], strict=True):
            own = rows.coordinates(rows.X[first:last])
            slope = np.rint(slopes(own, rows.codes[first:last], weights, grid) * 2.0**contributions.SLOPE_BITS)
            alone.append(group_contribution(own, slope, grid))
        assert all(int((each.astype(object) ** 2).sum()) <= 4**K for each in alone)
        for block, threads in ((1, 1), (50, 2), (1_000, 1)):
            with threadpool_limits(threads):
                assert (of_groups(z, rows.codes, self.starts, weights, grid, block=block) == sum(alone)).all()

    def test_of_one_row_are_clipped_as_records_are(self, rows, n_classes):
        grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
        z = rows.coordinates(rows.X)
        by_record = of_records(z, lengths_of(z), rows.codes, weights, grid) * grid.step
        by_group = of_groups(z, rows.codes, np.arange(301), weights, grid) * grid.step
        assert np.allclose(by_record, by_group, atol=300 * 2.0**-12)

    def test_of_a_million_rows_run_through(self, rows, n_classes):
        grid, weights = grid_of(rows), weights_of(rows.coordinates.n_coordinates, n_classes)
        z = np.repeat(rows.coordinates(rows.X[:10]), 10_000, axis=0)
        codes = np.repeat(rows.codes[:10], 10_000)
        made = of_groups(z, codes, np.array([0, len(z)]), weights, grid)
        assert int((made.astype(object) ** 2).sum()) <= 4**K


class TestClipping:
    def test_of_anything_that_is_no_number_is_nothing(self):
        for odd in (np.nan, np.inf, -np.inf):
            assert not clipped(np.array([[1.0], [odd]]), K).any()

    @pytest.mark.default_cases(3)
    @pytest.mark.parametrize("size", [1e-300, 1.0, 2.0**29, 2.0**30, 1e300])
    def test_keeps_integers_within_the_length(self, size):
        for seed in range(20):
            vector = np.random.default_rng(seed).normal(size=(50, 3)) * size
            assert sum(int(value) ** 2 for value in clipped(vector, K).ravel()) <= 4**K

    def test_shrinks_what_rounding_made_too_long(self):
        """A length that float arithmetic takes for 2^k, and integers do not."""
        vector = np.full((7, 1), np.ceil(2.0**K / np.sqrt(7)))
        made = clipped(vector * (1 + 2.0**-52), K)
        assert sum(int(value) ** 2 for value in made.ravel()) <= 4**K
        assert made.any()

    def test_gives_up_on_a_row_that_no_shrinking_mends(self, monkeypatch):
        monkeypatch.setattr(contributions, "too_long", lambda factors, squares, k: np.array([True, False]))
        made = contributions._within(np.full((2, 1), 5.0), np.full((2, 1), 5.0), np.array([9, 9]), K)
        assert made.ravel().tolist() == [0.0, 5.0]

    def test_tells_every_factor_that_is_too_long(self):
        factors = np.array([[2.0**20], [2.0**20 + 1], [np.nan], [np.inf], [2.0**62]])
        long = contributions.too_long(factors, np.full(5, 2**20, dtype=np.int64), K)
        assert long.tolist() == [False, True, True, True, True]


def test_a_clip_that_does_not_clip_is_caught(rows, n_classes):
    """The length test above fails on a twin without the cut."""
    grid, weights = grid_of(rows, 0.5), weights_of(rows.coordinates.n_coordinates, n_classes)
    z = rows.coordinates(rows.X)
    scaled = slopes(z, rows.codes, weights, grid) * (2.0 ** (grid.k - grid.bits) / grid.clip)
    twin = z[:, :, None] * np.trunc(scaled)[:, None, :]
    assert max((twin.astype(object) ** 2).sum(axis=(1, 2))) > 4**K


POOL = np.random.default_rng(1).normal(size=(90, 6))
PLAN = plan_direct(feature_map_for("both", POOL), POOL, n_classes=2, n_units=1_000, epsilon=1.0, delta=1e-5)


def test_correct_contributions_pass_and_coordinates_that_depend_on_the_rows_beside_are_caught(monkeypatch):
    check_contributions(PLAN, POOL)
    exact = PublicCoordinates.__call__
    monkeypatch.setattr(PublicCoordinates, "__call__", lambda self, rows: exact(self, rows) + (len(rows) > 1))
    with pytest.raises(PreconditionFailed, match="coordinates of a row"):
        check_contributions(PLAN, POOL)


def test_a_sum_of_rounded_floats_is_caught(monkeypatch):
    """The twin adds gradients as floats, and puts only their sum on the grid."""

    def rounded(z, lengths, codes, weights, grid):
        slope = contributions.slopes(z, codes, weights, grid)
        factors = contributions.record_factors(slope, lengths, grid)
        return np.rint(z.T @ (factors + 0.3)).astype(np.int64)

    monkeypatch.setattr(contribution_check, "of_records", rounded)
    with pytest.raises(PreconditionFailed, match="records beside it"):
        check_contributions(PLAN, POOL)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_row_that_is_not_finite_and_spoils_the_sum_is_caught(kind, monkeypatch):
    pool = kind(np.abs(POOL))
    plan = plan_direct(feature_map_for("auto", pool), pool, n_classes=2, n_units=1_000, epsilon=1.0, delta=1e-5)
    check_contributions(plan, pool)
    monkeypatch.setattr(contributions, "without_wild_rows", lambda z, lengths: (z, lengths))
    with pytest.raises(PreconditionFailed, match="records beside it"):
        check_contributions(plan, pool)


@pytest.mark.parametrize("axis", ["no clip", "a norm by the wrong axis"])
def test_a_contribution_that_is_too_long_is_caught(axis, monkeypatch):
    def too_long(z, lengths, codes, weights, grid):
        scaled = contributions.slopes(z, codes, weights, grid) * (2.0 ** (grid.k - grid.bits) / grid.clip)
        if axis != "no clip":  # each coordinate is cut off by itself
            longest = np.abs(z).max(axis=1) * np.abs(scaled[:, 0])
            scaled = scaled * np.minimum(1.0, 2.0**grid.k / np.maximum(longest, 1))[:, None]
        return (z.T @ np.trunc(scaled)).astype(np.int64)

    monkeypatch.setattr(contribution_check, "of_records", too_long)
    with pytest.raises(PreconditionFailed, match="longer than the clip"):
        check_contributions(PLAN, POOL)
