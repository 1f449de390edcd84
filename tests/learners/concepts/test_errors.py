"""Empirical errors: exact integers by structure, their exact minimum over the whole class, and LWY25's scores."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learners.concepts.tiny_worlds import (
    check_erm,
    check_mistakes,
    check_scores,
    drawn_in_worlds,
    errors_of_all,
    places_in,
    rectangle_world,
    worlds,
)

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
    relabelling_scores_by_erm,
)
from quorate.learners.concepts.boxes import BoxConcepts, refuse_table, weights_inside
from quorate.learners.concepts.protocol import unit_scores

bit = st.integers(0, 1)
weight = st.integers(0, 5) | st.integers(2**50, 2**54)


def labelled(data, world, max_size=9):
    places = data.draw(places_in(world, min_size=1, max_size=max_size))
    n = len(places)
    labels = data.draw(st.lists(bit, min_size=n, max_size=n))
    return places, labels, data.draw(st.lists(weight, min_size=n, max_size=n))


@drawn_in_worlds
def test_mistakes_are_counted_as_one_by_one(world, data):
    check_mistakes(world, data.draw(places_in(world, min_size=1, max_size=5)), *labelled(data, world))


@drawn_in_worlds
def test_no_concept_of_the_class_errs_less_than_the_minimiser(world, data):
    check_erm(world, *labelled(data, world))


@drawn_in_worlds
def test_among_the_dichotomies_the_minimiser_is_the_first_best(world, data):
    places, labels, weights = labelled(data, world)
    weights = [w + 1 for w in weights]  # a point that weighs nothing may be left out of a box
    points, y, w = world.points[places], np.array(labels), np.array(weights)
    concepts = world.concept_class.dichotomies(points)
    mistakes = concepts.mistakes(points, y, w)
    assert mistakes.min() == min(errors_of_all(world, places, labels, weights))
    assert world.concept_class.erm(points, y, w) == concepts[int(np.argmin(mistakes))]


@worlds
def test_no_points_no_mistakes(world):
    nothing, none = world.points[:0], np.zeros(0, dtype=np.uint8)
    concepts = world.concept_class.dichotomies(world.points[:2])
    assert concepts.mistakes(nothing, none).tolist() == [0] * len(concepts)
    assert world.concept_class.erm(nothing, none).labels(world.points).shape == (len(world.points),)


@worlds
def test_what_is_no_label_or_no_weight_is_refused(world):
    points, concepts = world.points[[0, 1]], world.concept_class.dichotomies(world.points[[0, 1]])
    weighed, scores = (concepts.mistakes, world.concept_class.erm), world.concept_class.relabelling_scores
    for labels in ([0, -1], [0, 2], [0.5, 1.0], [float("nan"), 1.0], ["0", "1"], [1], [[0], [1]]):
        for of_labels in (*weighed, lambda points, labels: scores(points, points, labels)):
            with pytest.raises(DataRefused, match="labels must be"):
                of_labels(points, np.array(labels))
    for weights in ([1, -1], [1.0, 1.0], [True, True], [1], [2**58, 2**59]):
        for of_weights in weighed:
            with pytest.raises(InvalidParameter, match="weights must be"):
                of_weights(points, np.array([0, 1]), np.array(weights))


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


@drawn_in_worlds
def test_scores_are_the_minimum_over_every_concept_of_the_class(world, data):
    in_T = data.draw(places_in(world, min_size=1, max_size=6))
    in_W = data.draw(places_in(world, min_size=1, max_size=8))
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(in_W), max_size=len(in_W)))
    check_scores(world, in_T, in_W, labels)


@worlds
def test_without_rows_there_are_no_errors(world):
    none = world.points[:0]
    for T, W in ((world.points[:2], none), (none, world.points[:2])):
        concepts, scores = world.concept_class.relabelling_scores(T, W, np.zeros(len(W), dtype=np.uint8))
        assert scores.tolist() == [0] * len(concepts)


LARGER = [
    (PointFunctions(5), 12, 40),
    (Thresholds(6), 30, 50),
    (Intervals(6), 14, 50),
    (Rectangles(4, 2), 7, 30),
    (Rectangles((7, 2), 2), 7, 30),
    (Rectangles((3, 2, 3), 3), 4, 12),
    (Stumps(3), 9, 30),
]


@pytest.mark.parametrize(("concepts", "n_T", "n_W"), LARGER, ids=str)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1))
def test_scores_by_structure_are_those_of_one_minimisation_a_dichotomy(concepts, n_T, n_W, seed):
    rng = np.random.default_rng(seed)
    bits = getattr(concepts, "column_bits", (getattr(concepts, "bits", 4),) * concepts.n_features)
    T, W = (concepts.check(np.column_stack([rng.integers(0, 2**b, n) for b in bits])) for n in (n_T, n_W))
    labels = ((W[:, 0] > np.median(W[:, 0])) ^ (rng.random(n_W) < rng.choice([0.1, 0.5]))).astype(np.uint8)
    fast, scores = concepts.relabelling_scores(T, W, labels)
    slow, expected = relabelling_scores_by_erm(concepts, T, W, labels)
    assert list(fast) == list(slow)
    assert scores.tolist() == expected.tolist()


def test_scores_move_by_at_most_the_weight_of_a_row_of_t_when_a_row_of_w_is_replaced():
    rng = np.random.default_rng(11)
    for concepts in (Thresholds(5), Intervals(5), Rectangles(3, 2), Stumps(2), PointFunctions(4)):
        T, W = (concepts.check(rng.integers(0, 8, (n, concepts.n_features))) for n in (6, 15))
        labels = rng.integers(0, 2, 15)
        _, before = concepts.relabelling_scores(T, W, labels)
        for i in range(15):
            W_2, labels_2 = W.copy(), labels.copy()
            W_2[i], labels_2[i] = T[i % 6], 1 - labels[i]
            _, after = concepts.relabelling_scores(T, W_2, labels_2)
            assert np.abs(after - before).max() <= 6  # Δ of q is 1/|W|: |T| in units of 1/(|T||W|)


def test_tens_of_thousands_of_rows_on_a_small_grid_are_scored_by_every_rectangle():
    rng = np.random.default_rng(8)
    world = rectangle_world(2, 3)
    places = [int(place) for place in rng.integers(0, 32, 20_000)]  # more rows than 16 bits hold
    labels = ((rng.random(20_000) < 0.3) ^ (np.array(places) % 8 > 3)).astype(np.uint8)
    T, W = world.points[[3, 12, 12, 21, 30]], world.points[places]
    concepts, scores = world.concept_class.relabelling_scores(T, W, labels)
    errors = (world.table[:, places] != labels).sum(axis=1)
    rows = world.table[:, [3, 12, 12, 21, 30]]
    slow = [(len(W) * (rows != h).sum(axis=1) + len(T) * errors).min() for h in concepts.labels(T)]
    assert scores.tolist() == slow


def test_columns_of_thousands_of_values_are_blocked_alike(monkeypatch):
    rng = np.random.default_rng(2)
    concepts = Rectangles(10, 2)
    T, W, labels = rng.integers(0, 1024, (9, 2)), rng.integers(0, 1024, (60, 2)), rng.integers(0, 2, 60)
    _, scores = concepts.relabelling_scores(T, W, labels)
    monkeypatch.setattr("quorate.learners.concepts.boxes._SCORES_AT_ONCE", 1)
    assert concepts.relabelling_scores(T, W, labels)[1].tolist() == scores.tolist()


@pytest.mark.parametrize(
    ("concepts", "n_T", "n_W", "told"),
    [
        (Thresholds(40), 2**22, 1, "dichotomies"),
        (PointFunctions(40), 2**22, 1, "dichotomies"),
        (Intervals(40), 2896, 1, "dichotomies"),
        (Stumps(100), 30_000, 1, "dichotomies"),
        (Stumps(20), 4000, 1, "steps"),
        (Rectangles(40, 2), 90, 1, "table"),
        (Rectangles(40, 2), 60, 3000, "steps"),
        (Rectangles(40, 3), 19, 1, "table"),
        (SymmetricDifference(Thresholds(40)), 2, 2900, "dichotomies"),
        (SymmetricDifference(Thresholds(40)), 400, 400, "steps"),
    ],
    ids=str,
)
def test_a_relabelling_is_refused_by_the_numbers_of_its_rows_alone(concepts, n_T, n_W, told):
    with pytest.raises(InvalidParameter, match=told):
        concepts.refuse_relabelling(n_T, n_W)
    rows = np.zeros((n_T + n_W, concepts.n_features))
    with pytest.raises(InvalidParameter, match=told):
        concepts.relabelling_scores(rows[:n_T], rows[n_T:], np.zeros(n_W))
    concepts.refuse_relabelling(17, 10)


def test_scores_that_could_leave_int64_are_refused():
    with pytest.raises(InvalidParameter, match="2\\^59"):
        unit_scores(2**30, 2**30)
    with pytest.raises(InvalidParameter, match="table"):
        refuse_table([80, 80], "Rectangles")


def test_the_refused_pairs_are_as_many_as_are_looked_at():
    differences = SymmetricDifference(Thresholds(40))
    assert differences.growth(2**40) == 1 + comb(2**40 + 1, 2)  # no table of so many rows is made
    points = differences.check(range(9))
    assert len(differences.dichotomies(points, limit=differences.growth(9))) <= differences.growth(9)
    with pytest.raises(InvalidParameter, match="dichotomies"):
        differences.dichotomies(points, limit=differences.growth(9) - 1)
