"""Empirical errors: exact integers by structure, and their exact minimum over the whole class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learners.concepts.concept_checks import check_erm, check_mistakes, errors_of_all
from tests.learners.concepts.tiny_worlds import few, places_in, worlds

from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.concepts import (
    Interval,
    Intervals,
    PointFunctions,
    Rectangle,
    Rectangles,
    Stumps,
    SymmetricDifference,
    Thresholds,
)
from quorate.learners.concepts.boxes import BoxConcepts, weights_inside

bit = st.integers(0, 1)
weight = st.integers(0, 5) | st.integers(2**50, 2**54)


def labelled(data, world, max_size=9):
    places = data.draw(places_in(world, min_size=1, max_size=max_size))
    n = len(places)
    labels = data.draw(st.lists(bit, min_size=n, max_size=n))
    return places, labels, data.draw(st.lists(weight, min_size=n, max_size=n))


@pytest.mark.heavy_cases(11)
@worlds
@few
@given(data=st.data())
def test_mistakes_are_counted_as_one_by_one(world, data):
    check_mistakes(world, data.draw(places_in(world, min_size=1, max_size=5)), *labelled(data, world))


@pytest.mark.heavy_cases(11)
@worlds
@few
@given(data=st.data())
def test_no_concept_of_the_class_errs_less_than_the_minimiser(world, data):
    check_erm(world, *labelled(data, world))


@pytest.mark.heavy_cases(11)
@worlds
@few
@given(data=st.data())
def test_among_the_dichotomies_the_minimiser_is_the_first_best(world, data):
    places, labels, weights = labelled(data, world)
    weights = [w + 1 for w in weights]  # a point that weighs nothing may be left out of a box
    points, y, w = world.points[places], np.array(labels), np.array(weights)
    concepts = world.concept_class.dichotomies(points)
    mistakes = concepts.mistakes(points, y, w)
    assert mistakes.min() == min(errors_of_all(world, places, labels, weights))
    assert world.concept_class.erm(points, y, w) == concepts[int(np.argmin(mistakes))]


@pytest.mark.heavy_cases(11)
@worlds
@few
@given(data=st.data())
def test_a_row_of_weight_w_counts_as_w_rows(world, data):
    places, labels, _ = labelled(data, world, max_size=6)
    weights = data.draw(st.lists(st.integers(1, 4), min_size=len(places), max_size=len(places)))
    concepts = world.concept_class.dichotomies(world.points[places])
    repeated = np.repeat(places, weights)
    heavy = concepts.mistakes(world.points[places], np.array(labels), np.array(weights))
    many = concepts.mistakes(world.points[repeated], np.repeat(labels, weights))
    assert heavy.tolist() == many.tolist()
    y, w = np.array(labels), np.array(weights)
    assert world.concept_class.erm(world.points[places], y, w) == world.concept_class.erm(
        world.points[repeated], np.repeat(y, w)
    )


@worlds
def test_no_points_no_mistakes(world):
    nothing, none = world.points[:0], np.zeros(0, dtype=np.uint8)
    concepts = world.concept_class.dichotomies(world.points[:2])
    assert concepts.mistakes(nothing, none).tolist() == [0] * len(concepts)
    assert world.concept_class.erm(nothing, none).labels(world.points).shape == (len(world.points),)


@worlds
def test_what_is_no_label_or_no_weight_is_refused(world):
    points, concepts = world.points[[0, 1]], world.concept_class.dichotomies(world.points[[0, 1]])
    for labels in ([0, -1], [0, 2], [0.5, 1.0], [float("nan"), 1.0], ["0", "1"], [1], [[0], [1]]):
        with pytest.raises(DataRefused, match="labels must be"):
            concepts.mistakes(points, np.array(labels))
        with pytest.raises(DataRefused, match="labels must be"):
            world.concept_class.erm(points, np.array(labels))
        with pytest.raises(DataRefused, match="labels must be"):
            world.concept_class.relabelling_scores(points, points, np.array(labels))
    for weights in ([1, -1], [1.0, 1.0], [True, True], [1], [2**58, 2**59]):
        with pytest.raises(InvalidParameter, match="weights must be"):
            concepts.mistakes(points, np.array([0, 1]), np.array(weights))
        with pytest.raises(InvalidParameter, match="weights must be"):
            world.concept_class.erm(points, np.array([0, 1]), np.array(weights))


def test_weights_that_no_float_holds_are_summed_exactly():
    heavy = np.array([2**58 - 1, 2**58 + 1, 1])
    for concepts in (Thresholds(4), Intervals(4), PointFunctions(4), Rectangles((4,), 1), Stumps(1)):
        points = concepts.check([1, 2, 3])
        mistakes = concepts.dichotomies(points).mistakes(points, np.array([1, 1, 0]), heavy[[0, 2, 1]])
        assert {2**58, 2**58 - 1} & set(mistakes.tolist())
        assert all(int(m) <= int(heavy.sum()) for m in mistakes)


def test_a_box_is_weighed_alike_with_and_without_a_table(monkeypatch):
    rng = np.random.default_rng(3)
    low = rng.integers(0, 900, (300, 2))
    boxes = BoxConcepts(low, low + rng.integers(0, 90, (300, 2)))
    points, signed = rng.integers(0, 1000, (500, 2)), rng.integers(-9, 9, 500)
    slow = [
        int(signed[((points >= a) & (points <= b)).all(axis=1)].sum()) for a, b in zip(low, boxes.high, strict=True)
    ]
    assert weights_inside(boxes, points, signed).tolist() == slow
    assert weights_inside(boxes, points[:20], signed[:20]).tolist() != slow
    monkeypatch.setattr("quorate.learners.concepts.boxes._TABLE_CELLS", 100)
    assert weights_inside(boxes, points, signed).tolist() == slow


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), bit, st.integers(0, 6)), min_size=1, max_size=14),
)
def test_the_best_rectangle_is_the_first_of_all_rectangles_of_the_grid(rows):
    table = np.array(rows)
    points, labels, weights = table[:, :2], table[:, 2], table[:, 3]
    best = Rectangles(4, 2).erm(points, labels, weights)
    sides = [[(a, b) for a in range(16) for b in range(a, 16) if {a, b} <= {0, *points[:, j].tolist()}] for j in (0, 1)]
    across, down = (
        np.array([(a <= points[:, j]) & (points[:, j] <= b) for a, b in sides[j]]) for j in (0, 1)
    )  # fmt: skip
    inside = across[:, None] & down[None]
    every = [Rectangle((1, 1), (0, 0))] + [Rectangle((a, c), (b, d)) for a, b in sides[0] for c, d in sides[1]]
    errors = [int(weights[labels == 1].sum()), *((inside != labels) * weights).sum(axis=2).ravel().tolist()]
    assert errors[-1] == weights[every[-1].labels(points) != labels].sum()
    fewest = min(errors)
    first = min(
        (rule for rule, error in zip(every, errors, strict=True) if error == fewest),
        key=lambda rule: (rule != every[0], -rule.low[0], rule.high[0], -rule.low[1], rule.high[1]),
    )
    assert best == first


def test_ties_go_to_the_first_in_the_order_of_the_class():
    two = np.array([[3], [9]])
    assert PointFunctions(4).erm(two, np.array([1, 1])).value == 3
    assert PointFunctions(4).erm(two, np.array([0, 0])).value == 0
    assert Thresholds(4).erm(two, np.array([0, 1])).cut == 0
    assert Intervals(4).erm(np.array([[1], [5], [9]]), np.array([1, 0, 1])) == Interval(9, 9)
    assert Intervals(4).erm(two, np.array([0, 0])) == Interval(1, 0)


def test_a_search_that_would_take_hours_is_refused_by_public_facts():
    points = np.zeros((5000, 2), dtype=np.int64)
    with pytest.raises(InvalidParameter, match="steps"):
        Rectangles(20, 2).erm(points, np.zeros(5000))
    assert Rectangles(8, 2).erm(points, np.zeros(5000)) == Rectangle((1, 1), (0, 0))


def test_differences_of_intervals_minimise_over_two_intervals():
    differences = SymmetricDifference(Intervals(4))
    points = differences.check(range(7))
    labels = np.array([0, 1, 1, 0, 0, 1, 0])
    assert differences.erm(points, labels).labels(points).tolist() == labels.tolist()
