"""Enumeration: exactly what the class realises, once each, as a function of the set of points alone."""

from dataclasses import FrozenInstanceError
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learners.concepts.tiny_worlds import (
    WORLDS,
    check_dichotomies,
    check_set_function,
    drawn_in_worlds,
    few,
    finite_world,
    interval_world,
    places_in,
    point_world,
    rectangle_world,
    stump_world,
    threshold_world,
    worlds,
    xor_world,
)

from quorate.errors import InvalidParameter
from quorate.learners.concepts import (
    DICHOTOMY_LIMIT,
    FiniteClass,
    Interval,
    Intervals,
    PointFunctions,
    Rectangle,
    Rectangles,
    Stump,
    Stumps,
    SymmetricDifference,
    Threshold,
    Thresholds,
    sauer,
    symmetric_difference_vc,
)


@worlds
@few
@given(data=st.data())
def test_exactly_the_realisable_labellings_are_enumerated_once_each(world, data):
    check_dichotomies(world, data.draw(places_in(world, min_size=1, max_size=7)))


@drawn_in_worlds
def test_order_and_multiplicity_of_points_do_not_matter(world, data):
    places = data.draw(places_in(world, min_size=1, max_size=6))
    again = data.draw(st.permutations(places + data.draw(st.lists(st.sampled_from(places), max_size=5))))
    check_set_function(world, places, again)


@worlds
def test_a_whole_domain_is_enumerated(world):
    everything = world.concept_class.dichotomies(world.points)
    assert {tuple(row) for row in everything.labels(world.points).tolist()} == world.realised(
        list(range(len(world.points)))
    )


@worlds
def test_no_points_have_one_dichotomy(world):
    assert len(world.concept_class.dichotomies(world.points[:0])) == 1
    assert world.concept_class.n_dichotomies(world.points[:0]) == 1


@worlds
def test_the_bound_is_a_function_of_the_number_of_points_alone(world):
    same, different = world.points[[0] * 4], world.points[[0, 1, -1, -2]]
    assert world.concept_class.n_dichotomies(same) == world.concept_class.n_dichotomies(different)


@worlds
def test_concepts_are_frozen_values_with_an_order(world):
    concepts = world.concept_class.dichotomies(world.points)
    assert len(set(concepts)) == len(concepts) == len(list(concepts))
    assert concepts[len(concepts) - 1] == concepts[-1]
    with pytest.raises(IndexError):
        concepts[len(concepts)]
    name = next(iter(type(concepts[0]).__slots__))
    with pytest.raises(FrozenInstanceError):
        setattr(concepts[0], name, 7)


@pytest.mark.parametrize(
    ("concepts", "n_points", "bound"),
    [
        (Thresholds(32), 1000, 1001),
        (Thresholds(3), 1000, 9),
        (PointFunctions(32), 1000, 1001),
        (PointFunctions(3), 1000, 8),
        (Intervals(32), 1000, 500_501),
        (Rectangles(16, 2), 60, sauer(60, 4)),
        (Rectangles((2, 1), 2), 60, 31),  # 10 ranges, times 3, and the empty one
        (Stumps(5), 100, 992),
        (SymmetricDifference(Thresholds(32)), 100, sauer(100, 2)),
    ],
    ids=str,
)
def test_the_number_of_dichotomies_follows_the_structure(concepts, n_points, bound):
    points = np.zeros((n_points, concepts.n_features), dtype=np.int64)
    assert concepts.n_dichotomies(points) == bound


@pytest.mark.parametrize("bits", [3, 20])
def test_points_in_general_position_have_as_many_dichotomies_as_the_bound_says(bits):
    line = np.arange(8)[:, np.newaxis]
    for concepts in (Thresholds(bits), Intervals(bits), PointFunctions(bits), Stumps(1)):
        points = concepts.check(line)
        exact = len(concepts.dichotomies(points))
        assert exact == concepts.n_dichotomies(points) or isinstance(concepts, Stumps)
    assert len(Stumps(1).dichotomies(line.astype(float))) == 16


def test_an_enumeration_past_the_limit_is_refused_with_its_size():
    points = np.zeros((100, 1), dtype=np.int64)
    with pytest.raises(InvalidParameter, match="5051"):
        Intervals(16).dichotomies(points, limit=5050)
    assert len(Intervals(16).dichotomies(points, limit=5051)) == 2
    with pytest.raises(InvalidParameter, match="limit"):
        Intervals(16).dichotomies(points, limit=0)


@pytest.mark.parametrize(
    ("concepts", "n_points"),
    [
        (Intervals(40), 3000),
        (Rectangles(40, 2), 120),
        (Rectangles(40, 5), 60),
        (Rectangles(1, 40), 10_000),
        (Stumps(500), 100_000),
        (SymmetricDifference(Intervals(40)), 100),
    ],
    ids=str,
)
def test_what_is_too_large_is_refused_before_any_work(concepts, n_points):
    points = np.zeros((n_points, concepts.n_features))
    with pytest.raises(InvalidParameter, match=f"more than {DICHOTOMY_LIMIT}"):
        concepts.dichotomies(points)
    with pytest.raises(InvalidParameter, match="more than"):
        concepts.relabelling_scores(points, points, np.zeros(n_points, dtype=np.uint8))


def test_representatives_are_the_first_of_their_class():
    assert list(Thresholds(4).dichotomies(np.array([[3], [9]]))) == [Threshold(0), Threshold(4), Threshold(10)]
    assert list(Intervals(4).dichotomies(np.array([[3], [9]])))[1:] == [Interval(9, 9), Interval(3, 3), Interval(3, 9)]
    assert Rectangles(4, 2).dichotomies(np.array([[3, 9]]))[1] == Rectangle((3, 9), (3, 9))
    assert list(Stumps(2).dichotomies(np.array([[1.0, 7.0], [1.0, 8.0]]))) == [
        Stump(0, 1.0, "<="),
        Stump(0, 1.0, ">"),
        Stump(1, 7.0, "<="),
        Stump(1, 7.0, ">"),
    ]


def test_the_same_split_by_two_columns_or_in_reverse_is_one_dichotomy():
    rising = np.arange(6.0)
    points = np.column_stack([rising, rising**2, -rising, np.repeat(rising[:3], 2)])
    assert len(Stumps(4).dichotomies(points)) == len(Stumps(1).dichotomies(points[:, :1])) == 12


def test_a_million_thresholds_are_enumerated_and_four_million_points_of_a_small_grid_are_few():
    assert len(Thresholds(40).dichotomies(np.arange(10**6)[:, np.newaxis])) == 10**6 + 1
    assert len(Thresholds(4).dichotomies(np.arange(2**22)[:, np.newaxis] % 16)) == 17


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: Thresholds(0), "bits"),
        (lambda: Thresholds(63), "62"),
        (lambda: Thresholds(True), "bits"),
        (lambda: Intervals(2.0), "bits"),
        (lambda: PointFunctions("8"), "bits"),
        (lambda: Rectangles((2, 3), 3), "each of the 3 columns"),
        (lambda: Rectangles(2, 0), "n_features"),
        (lambda: Rectangles((2, None), 2), "bits"),
        (lambda: Stumps(0), "n_features"),
        (lambda: FiniteClass([], 1), "at least one"),
        (lambda: FiniteClass([object()], 1), "no predict"),
        (lambda: Threshold(-1), "cut"),
        (lambda: Interval(3, 2), "low"),
        (lambda: Rectangle((1, 2), (1, 1)), "low"),
        (lambda: Rectangle((1,), (1, 1)), "low"),
        (lambda: Stump(0, float("nan"), "<="), "threshold"),
        (lambda: Stump(0, 1.0, "<"), "side"),
    ],
)
def test_a_class_or_concept_out_of_range_is_refused(build, told):
    with pytest.raises(InvalidParameter, match=told):
        build()


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
    *WORLDS[:13],  # points, thresholds, intervals and rectangles
    rectangle_world(1, 1),
    stump_world(6),
    stump_world(4, 4),
    *(xor_world(of(bits)) for of in (point_world, threshold_world, interval_world) for bits in (1, 3)),
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


@pytest.mark.parametrize(
    ("world", "exact"), [*((world, True) for world in EXACT), *((world, False) for world in BOUNDS)], ids=str
)
def test_no_larger_set_is_shattered_than_is_stated_and_where_that_is_exact_one_as_large(world, exact):
    found, stated = shattered(world), world.concept_class.vc_dimension
    assert found == stated if exact else found <= stated


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
