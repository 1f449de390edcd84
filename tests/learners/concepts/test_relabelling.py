"""Scores of LWY25 Algorithm 1: the minimum over all concepts, exactly, for every dichotomy."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learners.concepts.concept_checks import check_scores
from tests.learners.concepts.tiny_worlds import few, places_in, rectangle_world, worlds

from quorate.errors import InvalidParameter
from quorate.learners.concepts import (
    Intervals,
    PointFunctions,
    Rectangles,
    Stumps,
    SymmetricDifference,
    Thresholds,
    relabelling_scores_by_erm,
)
from quorate.learners.concepts.boxes import refuse_table
from quorate.learners.concepts.protocol import unit_scores


@pytest.mark.heavy_cases(11)
@worlds
@few
@given(data=st.data())
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


@pytest.mark.parametrize(("concepts", "n_T", "n_W"), LARGER, ids=str)
def test_the_best_score_is_the_least_error_on_w_where_some_dichotomy_agrees_with_the_best_concept(concepts, n_T, n_W):
    rng = np.random.default_rng(5)
    T, W = (concepts.check(rng.integers(0, 4, (n, concepts.n_features))) for n in (n_T, n_W))
    labels = rng.integers(0, 2, n_W)
    best = concepts.erm(W, labels)
    assert concepts.relabelling_scores(T, W, labels)[1].min() == n_T * int((best.labels(W) != labels).sum())


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
