"""The VC dimension that a class states, against shattering by hand."""

from itertools import combinations, permutations

import numpy as np
import pytest
from tests.learners.concepts.tiny_worlds import (
    finite_world,
    interval_world,
    point_world,
    rectangle_world,
    stump_world,
    threshold_world,
    xor_world,
)

from quorate.learners.concepts import (
    Rectangles,
    Stumps,
    SymmetricDifference,
    Thresholds,
    sauer,
    symmetric_difference_vc,
)


def shattered(world):
    """The largest number of points that the class shatters, by looking at all sets of points and all concepts."""
    rows = np.unique(world.table, axis=0).astype(np.int64)
    largest = 0
    for size in range(1, len(world.points) + 1):
        powers = 1 << np.arange(size)
        if not any(
            len(np.unique(rows[:, places] @ powers)) == 2**size
            for places in combinations(range(len(world.points)), size)
        ):
            break
        largest = size
    return largest


EXACT = [
    point_world(1),
    point_world(3),
    threshold_world(1),
    threshold_world(3),
    interval_world(1),
    interval_world(3),
    rectangle_world(2, 2),
    rectangle_world(1, 1),
    rectangle_world(1, 1, 1),
    rectangle_world(2, 1),
    rectangle_world(2, 1, 1),
    rectangle_world(1, 3),
    stump_world(6),
    stump_world(4, 4),
    xor_world(point_world(1)),
    xor_world(point_world(3)),
    xor_world(threshold_world(1)),
    xor_world(threshold_world(3)),
    xor_world(interval_world(1)),
    xor_world(interval_world(3)),
]
BOUNDS = [
    finite_world(5, 9, seed=1),
    finite_world(5, 40, seed=4),
    xor_world(rectangle_world(1, 1)),
    xor_world(rectangle_world(2, 1)),
    xor_world(stump_world(6)),
    xor_world(stump_world(3, 3)),
    xor_world(finite_world(6, 9, seed=1)),
    stump_world(2, 2, 2),
]


@pytest.mark.parametrize("world", EXACT, ids=str)
def test_the_stated_dimension_is_the_largest_shattered_set(world):
    assert world.concept_class.vc_dimension == shattered(world)


@pytest.mark.parametrize("world", BOUNDS, ids=str)
def test_no_larger_set_is_shattered_than_is_stated(world):
    assert shattered(world) <= world.concept_class.vc_dimension


def test_stumps_on_three_columns_shatter_four_points():
    """Three orders of four points, chosen so that every subset is first or last in one of them."""
    orders = list(permutations(range(4)))
    found = next(
        columns
        for columns in combinations(orders, 3)
        if len({half for order in columns for k in range(5) for half in (frozenset(order[:k]), frozenset(order[k:]))})
        == 16
    )
    points = np.argsort(np.array(found), axis=1).T.astype(float)
    assert len(Stumps(3).dichotomies(points)) == 16
    assert Stumps(3).vc_dimension == 4


@pytest.mark.parametrize(
    ("n_features", "dimension"), [(1, 2), (2, 3), (3, 4), (4, 4), (5, 5), (9, 5), (10, 6), (100, 9)]
)
def test_the_dimension_of_stumps_grows_with_the_logarithm_of_the_columns(n_features, dimension):
    assert Stumps(n_features).vc_dimension == dimension


def test_rectangles_have_dimension_two_a_column_and_one_for_a_column_of_two_values():
    assert [Rectangles(8, d).vc_dimension for d in (1, 2, 3, 7)] == [2, 4, 6, 14]
    assert Rectangles((8, 1, 1, 8), 4).vc_dimension == 6


@pytest.mark.parametrize("vc_dimension", range(1, 12))
def test_differences_stay_below_ten_times_the_dimension(vc_dimension):
    bound = symmetric_difference_vc(lambda n: sauer(n, vc_dimension))
    assert 2 * vc_dimension <= bound < 10 * vc_dimension  # BNS15: at most 10 VC(C)


def test_a_class_that_knows_nothing_of_its_differences_gets_the_bound_of_its_dimension():
    class Plain:
        vc_dimension = 2

    assert SymmetricDifference(Plain()).vc_dimension == symmetric_difference_vc(lambda n: sauer(n, 2)) == 11
    assert SymmetricDifference(SymmetricDifference(Thresholds(8))).vc_dimension == 11


def test_sauers_sum_is_that_of_binomials():
    assert [sauer(n, 2) for n in range(6)] == [1, 2, 4, 7, 11, 16]
