"""What the tests hold every concept class against, as functions: a cheat is held against the same ones."""

from __future__ import annotations

from itertools import product

import numpy as np


def check_dichotomies(world, places):
    """Exactly the labellings that some concept realises, among all 2^n, and each of them once."""
    points = world.points[places]
    concepts = world.concept_class.dichotomies(points)
    found = [tuple(concepts[i].labels(points).tolist()) for i in range(len(concepts))]
    realised = world.realised(places)
    for labelling in product((0, 1), repeat=len(places)):
        assert found.count(labelling) == (labelling in realised)
    assert concepts.labels(points).tolist() == [list(labelling) for labelling in found]
    assert world.concept_class.n_dichotomies(points) >= len(found)


def check_set_function(world, places, reordered):
    """The same concepts in the same order, for whatever order and number of the same points."""
    assert set(places) == set(reordered)
    one = world.concept_class.dichotomies(world.points[places])
    other = world.concept_class.dichotomies(world.points[reordered])
    assert [one[i] for i in range(len(one))] == [other[i] for i in range(len(other))]


def check_mistakes(world, places, others, labels, weights):
    """The weight of what each concept labels otherwise, on points that it was not enumerated on."""
    concepts = world.concept_class.dichotomies(world.points[places])
    points = world.points[others]
    slow = [
        sum(w for x, y, w in zip(concepts[i].labels(points).tolist(), labels, weights, strict=True) if x != y)
        for i in range(len(concepts))
    ]
    fast = concepts.mistakes(points, np.array(labels, dtype=np.uint8), np.array(weights, dtype=np.int64))
    assert fast.dtype == np.int64
    assert fast.tolist() == slow


def errors_of_all(world, places, labels, weights):
    """The weighted error of every concept of the class."""
    return [
        sum(w for x, y, w in zip(row, labels, weights, strict=True) if x != y)
        for row in world.table[:, places].tolist()
    ]


def check_erm(world, places, labels, weights):
    """No concept of the whole class errs less."""
    points = world.points[places]
    best = world.concept_class.erm(points, np.array(labels, dtype=np.uint8), np.array(weights, dtype=np.int64))
    found = best.labels(points).tolist()
    error = sum(w for x, y, w in zip(found, labels, weights, strict=True) if x != y)
    assert error == min(errors_of_all(world, places, labels, weights))
    assert tuple(best.labels(world.points).tolist()) in world.realised(list(range(len(world.points))))


def check_scores(world, in_T, in_W, labels):
    """|T||W| min over all concepts of the class, for each dichotomy, in plain integers."""
    T, W = world.points[in_T], world.points[in_W]
    concepts, scores = world.concept_class.relabelling_scores(T, W, np.array(labels, dtype=np.uint8))
    assert scores.dtype == np.int64
    assert len(concepts) == len(scores) == len(world.realised(in_T))
    errors = errors_of_all(world, in_W, labels, [1] * len(in_W))
    rows = world.table[:, in_T].tolist()
    for i in range(len(concepts)):
        h = concepts[i].labels(T).tolist()
        slow = min(
            len(in_W) * sum(a != b for a, b in zip(h, row, strict=True)) + len(in_T) * error
            for row, error in zip(rows, errors, strict=True)
        )
        assert scores[i] == slow
