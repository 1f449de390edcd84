"""Concept classes on domains so small that every concept and every labelling can be written down.

A world holds all points of a domain and the labels that *every* concept gives them, written from the definition in
plain Python: nothing here is taken from the package but the class under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
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
    point_world(1),
    point_world(2),
    point_world(3),
    threshold_world(1),
    threshold_world(3),
    interval_world(1),
    interval_world(2),
    interval_world(3),
    rectangle_world(2, 2),
    rectangle_world(1, 3),
    rectangle_world(2, 1),
    rectangle_world(1, 1, 1),
    rectangle_world(2, 1, 1),
    stump_world(5),
    stump_world(3, 3),
    stump_world(2, 2, 2),
    finite_world(6, 9, seed=1),
    finite_world(5, 1, seed=2),
    xor_world(threshold_world(2)),
    xor_world(point_world(2)),
    xor_world(rectangle_world(1, 1)),
]

worlds = pytest.mark.parametrize("world", WORLDS, ids=str)

#: Few tables a class: a claim is about all 21 classes, so it is tried on more than 500 tables.
few = settings(max_examples=25)
