"""Concept classes on domains so small that every concept and every labelling can be written down.

A world holds all points of a domain and the labels that *every* concept gives them, written from the definition in
plain Python: nothing here is taken from the package but the class under test.
"""

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.learners.concepts import (
    FiniteClass,
    Intervals,
    PointFunctions,
    Rectangles,
    Stumps,
    SymmetricDifference,
    Thresholds,
)


@dataclass(frozen=True)
class World:
    concept_class: Any
    points: np.ndarray  # (n_domain, n_features)
    table: np.ndarray  # (n_concepts, n_domain): every concept, in any order, maybe more than once

    def __str__(self):
        return repr(self.concept_class)

    def realised(self, places):
        """Every labelling of the chosen points that some concept gives."""
        return {tuple(row) for row in self.table[:, places].tolist()}


class Lookup:
    """A classifier for whole numbers that was never fitted to anything."""

    def __init__(self, labels):
        self.labels = np.asarray(labels)

    def predict(self, X):
        return self.labels[X[:, 0].astype(int)]


def places_in(world, **bounds):
    """Draw points of the domain by their places, with repetitions."""
    return st.lists(st.integers(0, len(world.points) - 1), **bounds)


def grid(*sizes):
    return np.array(list(product(*(range(size) for size in sizes))), dtype=np.int64)


def world(concept_class, points, rules):
    """Tabulate plain functions from a tuple of coordinates to a truth value."""
    rows = [[int(rule(tuple(point))) for point in points.tolist()] for rule in rules]
    return World(concept_class, points, np.array(rows, dtype=np.uint8))


def point_world(bits):
    size = 2**bits
    return world(PointFunctions(bits), grid(size), [lambda x, v=v: x[0] == v for v in range(size)])


def threshold_world(bits):
    size = 2**bits
    return world(Thresholds(bits), grid(size), [lambda x, j=j: x[0] < j for j in range(size + 1)])


def rectangle_rules(sizes):
    ranges = [[(a, b) for a in range(size) for b in range(a, size)] for size in sizes]
    yield lambda x: False
    for box in product(*ranges):
        yield lambda x, box=box: all(a <= v <= b for v, (a, b) in zip(x, box, strict=True))


def interval_world(bits):
    return world(Intervals(bits), grid(2**bits), list(rectangle_rules([2**bits])))


def rectangle_world(*bits):
    sizes = [2**b for b in bits]
    same = bits[0] if len(set(bits)) == 1 else bits
    return world(Rectangles(same, len(bits)), grid(*sizes), list(rectangle_rules(sizes)))


def stump_world(*sizes):
    points = grid(*sizes) * 0.25 - 0.5
    rules = [
        rule
        for j in range(len(sizes))
        for t in [-1e9, *np.unique(points[:, j]).tolist()]
        for rule in (lambda x, j=j, t=t: x[j] <= t, lambda x, j=j, t=t: x[j] > t)
    ]
    return world(Stumps(len(sizes)), points, rules)


def finite_world(n_points, n_classifiers, seed):
    table = np.random.default_rng(seed).integers(0, 2, (n_classifiers, n_points)).astype(np.uint8)
    table[-1] = table[0]  # the same function twice
    return World(FiniteClass([Lookup(row) for row in table], 1), grid(n_points).astype(float), table)


def xor_world(base):
    pairs = list(combinations(range(len(base.table)), 2))
    table = np.array([base.table[0] ^ base.table[0], *(base.table[i] ^ base.table[j] for i, j in pairs)])
    return World(SymmetricDifference(base.concept_class), base.points, table)


WORLDS = [
    *map(point_world, (1, 2, 3)),
    *map(threshold_world, (1, 3)),
    *map(interval_world, (1, 2, 3)),
    *(rectangle_world(*bits) for bits in ((2, 2), (1, 3), (2, 1), (1, 1, 1), (2, 1, 1))),
    *(stump_world(*sizes) for sizes in ((5,), (3, 3), (2, 2, 2))),
    finite_world(6, 9, seed=1),
    finite_world(5, 1, seed=2),
    *map(xor_world, (threshold_world(2), point_world(2), rectangle_world(1, 1))),
]

worlds = pytest.mark.parametrize("world", WORLDS, ids=str)

#: Few tables a class: a claim is about all 21 classes, so it is tried on more than 500 tables.
few = settings(max_examples=25)


def drawn_in_worlds(test):
    """Try a test of a world on what `data` draws; half of the worlds less often."""
    return pytest.mark.heavy_cases(11)(worlds(few(given(data=st.data())(test))))


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
