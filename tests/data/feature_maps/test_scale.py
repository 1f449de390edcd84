"""A column without spread is told by its least and largest value, however the mean of equal numbers is rounded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from quorate.audit.attacks import reconstruct
from quorate.audit.many_answers import _chosen
from quorate.data.encoding import public_encoder
from quorate.data.feature_maps import LinearMap, PoolCoordinates, PoolDirections, PoolScale, PoolStandardizer
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.first_maps import SharedPatches
from quorate.data.feature_maps.scale import deviations, has_spread
from quorate.data.schema_encoder import declared_columns
from quorate.errors import InvalidParameter
from quorate.labelling.active import CoreSet
from quorate.labelling.active.strategy import History
from quorate.planning.rehearsal.made_up import Line

VALUES = [0.1, -0.1, 3.5, 1e-300]
LARGE = [1e300, 1e308]  # whose squares are infinite; nobody has a word so often
CONTAINED = [(value, np.asarray) for value in VALUES + LARGE] + [(value, csr_array) for value in VALUES]
ROWS = 90  # with which the mean of most of these is not the number itself


def constant(value: float, width: int = 2) -> np.ndarray:
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
