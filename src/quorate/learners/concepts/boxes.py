"""Axis-aligned boxes: which of them are different on given points, and the weights inside many of them at once.

Boxes are closed under intersection. So each dichotomy has one *tight* box, the smallest: every one of its faces touches
a point, or it is the empty box, written ``low = 1, high = 0`` in every column.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from quorate.learners.concepts.protocol import Labels, Points
from quorate.learners.concepts.weighing import signed_weights
from quorate.stored_names import stored_as
from quorate.types import IntArray

_TABLE_CELLS = 1 << 25  # of a table of cumulative sums
_BLOCK_CELLS = 1 << 22  # looked at together where there is no such table


@stored_as("quorate.learners.concepts.boxes.BoxConcepts")
@dataclass(frozen=True, eq=False)
class BoxConcepts:
    """Boxes in a fixed order: corners ``(n_concepts, n_features)``, both included; ``low > high`` is empty."""

    low: IntArray
    high: IntArray

    def __len__(self) -> int:
        return len(self.low)

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``."""
        inside = np.ones((len(self), len(points)), dtype=np.uint8)
        for j in range(self.low.shape[1]):
            inside &= (points[:, j] >= self.low[:, j, np.newaxis]) & (points[:, j] <= self.high[:, j, np.newaxis])
        return inside

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return the weight that each concept labels otherwise, ``(n_concepts,)``, by cumulative sums."""
        ones, signed = signed_weights(len(points), labels, weights)
        return ones - weights_inside(self, points, signed)


def weights_inside(boxes: BoxConcepts, points: Points, signed: IntArray) -> IntArray:
    """Return the weight inside each box: differences of a cumulative table at its corners, 2^dim of them.

    The table has a cell for each stretch between the boxes' faces, or between the points, whichever are fewer.
    """
    n_features = points.shape[1]
    edges = [_edges(boxes, points, j) for j in range(n_features)]
    if prod(len(edge) + 2 for edge in edges) > _TABLE_CELLS:
        return _weights_one_by_one(boxes, points, signed)
    cells = tuple(np.searchsorted(edges[j], points[:, j], side="right") for j in range(n_features))
    table = cumulative(cells, tuple(len(edge) + 1 for edge in edges), signed)
    # A box [low, high] ends where [high + 1, …) begins; the cells below an edge are those up to it.
    starts = [np.searchsorted(edges[j], boxes.low[:, j]) + 1 for j in range(n_features)]
    ends = [np.searchsorted(edges[j], boxes.high[:, j] + 1) + 1 for j in range(n_features)]
    inside = np.zeros(len(boxes), dtype=np.int64)
    for corner in product((0, 1), repeat=n_features):
        sign = (-1) ** (n_features - sum(corner))
        inside += sign * table[tuple((starts[j], ends[j])[upper] for j, upper in enumerate(corner))]
    return inside


def cumulative(cells: tuple[IntArray, ...], shape: tuple[int, ...], signed: IntArray) -> IntArray:
    """Return the table whose entry ``[p, q, …]`` is the weight in cells below p, below q, …; a shape one larger.

    Examples
    --------
    >>> cumulative((np.array([0, 2, 2]),), (3,), np.array([1, 10, 100])).tolist()
    [0, 1, 1, 111]
    """
    table = np.zeros(tuple(size + 1 for size in shape), dtype=np.int64)
    np.add.at(table, tuple(cell + 1 for cell in cells), signed)  # integers: a float histogram would round
    for j in range(len(shape)):
        np.cumsum(table, axis=j, out=table)
    return table


def ranks(points: Points) -> tuple[list[IntArray], IntArray]:
    """Return the distinct values of each column, and every point by its places among them.

    Examples
    --------
    >>> ranks(np.array([[7, 1], [3, 1]]))
    ([array([3, 7]), array([1])], array([[1, 0],
           [0, 0]]))
    """
    places = np.empty(points.shape, dtype=np.int64)
    distinct = []
    for j in range(points.shape[1]):
        values, places[:, j] = np.unique(points[:, j], return_inverse=True)
        distinct.append(values)
    return distinct, places


def tight_boxes(points: Points) -> BoxConcepts:
    """Return the tight box of every dichotomy: the empty one, then the highest low and the lowest high first.

    Two tight boxes hold different points: a box is found again from what it holds. The work is proportional to
    what is returned, up to the number of pairs of values in all columns but the last.

    Examples
    --------
    >>> boxes = tight_boxes(np.array([[0, 0], [1, 1]]))
    >>> boxes.low.tolist(), boxes.high.tolist()
    ([[1, 1], [1, 1], [0, 0], [0, 0]], [[0, 0], [1, 1], [0, 0], [1, 1]])
    """
    n_features = points.shape[1]
    low, high = [np.ones((1, n_features), np.int64)], [np.zeros((1, n_features), np.int64)]
    if len(points):
        _extend(_distinct(points), 0, [], (), (), (low, high))
    return BoxConcepts(np.concatenate(low), np.concatenate(high))


def _extend(
    points: Points,
    j: int,
    faces: list[NDArray[np.bool_]],
    low: tuple[int, ...],
    high: tuple[int, ...],
    found: tuple[list[IntArray], list[IntArray]],
) -> None:
    """Fix column j of the boxes that hold some of `points`, and a point of every face fixed before."""
    values, place = np.unique(points[:, j], return_inverse=True)
    if j == points.shape[1] - 1:
        first, last = _ranges_that_touch(len(values), [place[face] for face in faces])
        fixed = np.array([low, high], dtype=np.int64).reshape(2, 1, -1)
        for side, (corner, end) in enumerate(((found[0], first), (found[1], last))):
            corner.append(np.column_stack([np.broadcast_to(fixed[side], (len(end), j)), values[end]]))
        return
    for first_value in reversed(range(len(values))):
        for last_value in range(first_value, len(values)):
            inside = (place >= first_value) & (place <= last_value)
            touched = [face[inside] for face in [*faces, place == first_value, place == last_value]]
            if all(face.any() for face in touched):
                corners = (*low, int(values[first_value])), (*high, int(values[last_value]))
                _extend(points[inside], j + 1, touched, *corners, found)


def _ranges_that_touch(n_values: int, faces: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Return all ranges [first, last] of places in which every face has a point; the highest first place first."""
    places = np.arange(n_values)
    least = places  # the least last place, for each first place
    for face in faces:
        at = np.full(n_values, n_values)
        at[face] = face
        least = np.maximum(least, np.minimum.accumulate(at[::-1])[::-1])
    many = (n_values - least)[::-1]
    first = np.repeat(places[::-1], many)
    within = np.arange(len(first)) - np.repeat(np.cumsum(many) - many, many)
    return first, least[first] + within


def _distinct(points: Points) -> Points:
    values, places = ranks(points)
    shape = tuple(len(each) for each in values)
    if prod(shape) >= 1 << 62:
        return np.unique(points, axis=0)
    _, chosen = np.unique(np.ravel_multi_index(tuple(places.T), shape), return_index=True)
    return points[chosen]


def _edges(boxes: BoxConcepts, points: Points, j: int) -> IntArray:
    faces = np.unique(np.concatenate([boxes.low[:, j], boxes.high[:, j] + 1]))
    return faces if len(faces) <= len(points) else np.unique(points[:, j])


def _weights_one_by_one(boxes: BoxConcepts, points: Points, signed: IntArray) -> IntArray:
    """Return the weight inside each box, of many boxes and points in general position, where no table would fit."""
    inside = np.empty(len(boxes), dtype=np.int64)
    step = max(1, _BLOCK_CELLS // max(1, len(points)))
    for start in range(0, len(boxes), step):
        block = BoxConcepts(boxes.low[start : start + step], boxes.high[start : start + step])
        inside[start : start + step] = np.where(block.labels(points), signed, 0).sum(axis=1)
    return inside
