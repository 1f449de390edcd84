r"""Axis-aligned boxes: which are different on given points, and the weights inside many of them at once.

Each dichotomy has one *tight* box, the smallest: every one of its faces touches a point, or it is the empty box,
written ``low = 1, high = 0`` in every column.

**Scores of LWY25 Algorithm 1.** Boxes are told apart by which values of T lie between their faces: by an *index box* g.
With n(g) rows of T in it and b(g) the least number of mistakes on W of a box with that index box, the score is
:math:`|T||W|\, q(h) = \min_g \{ |W|\, |h \triangle g| + |T|\, b(g) \}`. Since
:math:`|h \triangle g| = \min \{ n(h) + n(g) - 2 n(k) : k \subseteq h, g \}`, it is a minimum over all k inside h of one
over all g around k, both running minima along the axes of the table of index boxes: linear in its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from quorate.errors import InvalidParameter
from quorate.learners.concepts.protocol import Labels, Points, gaps, over_gaps, signed_weights
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
    """Return the table whose entry ``[p, q, …]`` is the weight in cells below p, below q, …; a shape one larger."""
    table = np.zeros(tuple(size + 1 for size in shape), dtype=np.int64)
    np.add.at(table, tuple(cell + 1 for cell in cells), signed)  # integers: a float histogram would round
    for j in range(len(shape)):
        np.cumsum(table, axis=j, out=table)
    return table


def ranks(points: Points) -> tuple[list[IntArray], IntArray]:
    """Return the distinct values of each column, and every point by its places among them."""
    places = np.empty(points.shape, dtype=np.int64)
    distinct = []
    for j in range(points.shape[1]):
        values, places[:, j] = np.unique(points[:, j], return_inverse=True)
        distinct.append(values)
    return distinct, places


def tight_boxes(points: Points) -> BoxConcepts:
    """Return the tight box of every dichotomy: the empty one, then the highest low and the lowest high first.

    Two tight boxes hold different points. The work is proportional to what is returned, up to the pairs of values in
    all columns but the last.
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
    corners_of: tuple[list[IntArray], list[IntArray]],
) -> None:
    """Fix column j of the boxes that hold some of `points`, and a point of every face fixed before."""
    values, place = np.unique(points[:, j], return_inverse=True)
    if j == points.shape[1] - 1:
        first, last = _ranges_that_touch(len(values), [place[face] for face in faces])
        fixed = np.array([low, high], dtype=np.int64).reshape(2, 1, -1)
        for side, (corner, end) in enumerate(((corners_of[0], first), (corners_of[1], last))):
            corner.append(np.column_stack([np.broadcast_to(fixed[side], (len(end), j)), values[end]]))
        return
    for first_value in reversed(range(len(values))):
        for last_value in range(first_value, len(values)):
            inside = (place >= first_value) & (place <= last_value)
            touched = [face[inside] for face in [*faces, place == first_value, place == last_value]]
            if all(face.any() for face in touched):
                corners = (*low, int(values[first_value])), (*high, int(values[last_value]))
                _extend(points[inside], j + 1, touched, *corners, corners_of)


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
    shape = tuple(len(column) for column in values)
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


_Corners = tuple[tuple[int, ...], tuple[int, ...]]
_Gaps = tuple[IntArray, IntArray]  # for each gap between values of T: the least and most values of W below a cut in it


def search_cells(sizes: list[int]) -> int:
    """Return how many cells a search looks at among boxes whose corners take ``sizes[j]`` values in column j."""
    return prod(size * size // 2 for size in sizes[:-1]) * sizes[-1]


def heaviest_box(points: Points, signed: IntArray) -> tuple[int, _Corners | None]:
    """Return the largest weight inside a box, and that box; None where no box weighs more than the empty one.

    Ties go to the highest low end, then the lowest high end, column by column: to the tight one of those alike.
    """
    heavy = signed != 0
    distinct, places = ranks(points[heavy])
    weight, corners = _search(places, signed[heavy], [len(values) for values in distinct])
    if corners is None:
        return 0, None
    low, high = (tuple(int(values[at]) for values, at in zip(distinct, end, strict=True)) for end in corners)
    return weight, (low, high)


def _search(places: IntArray, signed: IntArray, sizes: list[int]) -> tuple[int, _Corners | None]:
    if not (signed > 0).any():
        return 0, None
    if len(sizes) == 1:
        sums = cumulative((places[:, 0],), (sizes[0],), signed)
        return _heaviest_range(sums)
    if len(sizes) == 2:
        return _heaviest_rectangle(places, signed, sizes)
    best: tuple[int, _Corners | None] = (0, None)
    ends = np.unique(places[signed > 0, 0])  # a face without a point labelled 1 is better moved inwards
    for low in ends[::-1]:
        for high in ends[ends >= low]:
            inside = (places[:, 0] >= low) & (places[:, 0] <= high)
            weight, rest = _search(places[inside, 1:], signed[inside], sizes[1:])
            if rest is not None and weight > best[0]:
                best = weight, ((int(low), *rest[0]), (int(high), *rest[1]))
    return best


def _heaviest_range(sums: IntArray) -> tuple[int, _Corners | None]:
    """Return the range of largest weight from prefix sums: the best end for each start."""
    best_end = np.maximum.accumulate(sums[:0:-1])[::-1]
    gain = best_end - sums[:-1]
    weight = int(gain.max())
    if weight <= 0:
        return 0, None
    low = len(gain) - 1 - int(np.argmax(gain[::-1]))
    high = low + int(np.argmax(sums[low + 1 :] == sums[low] + weight))
    return weight, ((low,), (high,))


def _heaviest_rectangle(places: IntArray, signed: IntArray, sizes: list[int]) -> tuple[int, _Corners | None]:
    """Search two columns: for each range of the first, the best range of the second (all ends at once)."""
    table = cumulative((places[:, 1], places[:, 0]), (sizes[1], sizes[0]), signed)
    if np.abs(signed).sum() < 1 << 30:  # all sums, and differences of two, fit the half
        table = table.astype(np.int32)
    ends = np.unique(places[signed > 0, 0])
    at_ends = np.ascontiguousarray(table[:, ends + 1])
    best, corner = 0, None
    for i in range(len(ends) - 1, -1, -1):
        sums = at_ends[:, i:] - table[:, ends[i], np.newaxis]  # (n_values + 1, n_ends): prefix sums, one per high end
        gain = (np.maximum.accumulate(sums[:0:-1])[::-1] - sums[:-1]).max(axis=0)
        high = int(np.argmax(gain))
        if gain[high] > best:
            best, corner = int(gain[high]), (i, i + high)
    if corner is None:
        return 0, None
    low, high = int(ends[corner[0]]), int(ends[corner[1]])
    _, rest = _heaviest_range((table[:, high + 1] - table[:, low]).astype(np.int64))
    if rest is None:  # pragma: no cover - the range was just found
        return 0, None
    return best, ((low, *rest[0]), (high, *rest[1]))


TABLE_LIMIT = 1 << 25  #: entries of a table of index boxes, at most: 256 MiB each, of which a few are held
_SCORES_AT_ONCE = 1 << 20


def refuse_table(sizes: list[int], concepts: object) -> None:
    """Refuse a table of index boxes over ``sizes[j]`` values in column j; the message holds the number of entries."""
    entries = prod(size * size for size in sizes)
    if entries > TABLE_LIMIT:
        raise InvalidParameter(
            f"T: scores of {concepts!r} on so many points need a table of up to {entries} entries, more than "
            f"{TABLE_LIMIT}; relabel fewer rows, or use fewer columns"
        )


def box_scores(boxes: BoxConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
    """Return the score of each dichotomy on T, ``(n_boxes,)``; `boxes`: the tight ones on T, the empty one first.

    `ones`: number of rows of W labelled 1. `signed`: 1 for a row of W labelled 1, −1 for one labelled 0.
    """
    values, places = ranks(T)
    sizes = tuple(len(column) for column in values)
    n_T, n_W = len(T), len(W)
    rows = _rows_inside(places, sizes)  # n(g)
    distinct, W_places = ranks(W)
    between = [gaps(border, value) for border, value in zip(values, distinct, strict=True)]
    around = n_W * rows
    around -= n_T * _heaviest(W_places, signed, [len(column) for column in distinct], between)
    around += n_T * ones
    upside_down = _upside_down(sizes)
    nothing = 4 * n_T * n_W + 1  # more than any score: no box at all
    around[upside_down] = nothing
    # k = the empty box: what a box that shares no row with h costs; also boxes that pass between the values of T.
    apart = min(int(around.min()), n_T * (ones - _heaviest_between(W, signed, W_places, between)))
    _running_minima(around, outwards=True)
    around -= 2 * n_W * rows
    around[upside_down] = nothing
    _running_minima(around, outwards=False)
    around += n_W * rows
    scores = np.full(len(boxes), apart, dtype=np.int64)
    corners = [np.searchsorted(values[j], side[1:, j]) for j in range(len(sizes)) for side in (boxes.low, boxes.high)]
    of_rows = n_W * rows[tuple(corners)] + apart
    scores[1:] = np.minimum(around[tuple(corners)], of_rows)
    return scores


def _rows_inside(places: IntArray, sizes: tuple[int, ...]) -> IntArray:
    """Count the rows of T in every index box; axes (l_1, r_1, l_2, r_2, …)."""
    counts = cumulative(tuple(places.T), sizes, np.ones(len(places), dtype=np.int64))
    for j, size in enumerate(sizes):
        upper = np.take(counts, np.arange(1, size + 1), axis=2 * j)
        lower = np.take(counts, np.arange(size), axis=2 * j)
        counts = np.expand_dims(upper, 2 * j) - np.expand_dims(lower, 2 * j + 1)
    return counts


def _upside_down(sizes: tuple[int, ...]) -> NDArray[np.bool_]:
    """Tell the entries with l > r in some column, which are no boxes."""
    wrong = np.zeros([size for size in sizes for _ in "lr"], dtype=np.bool_)
    for j, size in enumerate(sizes):
        shape = [1] * wrong.ndim
        shape[2 * j : 2 * j + 2] = size, size
        wrong |= np.tri(size, k=-1, dtype=np.bool_).reshape(shape)
    return wrong


def _running_minima(table: IntArray, *, outwards: bool) -> None:
    """Replace each entry by the least one among the boxes around it (outwards) or inside it, in place."""
    for axis in range(table.ndim):
        towards_more = (axis % 2 == 0) == outwards  # around: lows up to l, highs from r on
        view = table if towards_more else np.flip(table, axis)
        np.minimum.accumulate(view, axis=axis, out=view)


def _heaviest(places: IntArray, signed: IntArray, sizes: list[int], between: list[_Gaps]) -> IntArray:
    """Return the largest weight of W in a box with each index box; axes as above."""
    if len(sizes) == 1:
        sums = cumulative((places[:, 0],), (sizes[0],), signed)
        least, largest = between[0]
        below_low = over_gaps(np.minimum, sums, least[:-1], largest[:-1])
        below_high = over_gaps(np.maximum, sums, least[1:], largest[1:])
        return below_high - below_low[:, np.newaxis]
    lows, low_gap, highs, high_gap = _useful_cuts(places[signed > 0, 0], between[0])
    if len(sizes) == 2:
        return _heaviest_rectangles(places, signed, sizes, between, (lows, low_gap, highs, high_gap))
    inner = [len(least) - 1 for least, _ in between[1:] for _ in "lr"]
    n_values = len(between[0][0]) - 1
    heaviest = np.full((n_values, n_values, *inner), -len(signed), dtype=np.int64)
    for low, left in zip(lows, low_gap, strict=True):
        for high, right in zip(highs, high_gap, strict=True):
            if left <= right:
                inside = (places[:, 0] >= low) & (places[:, 0] < high)
                rest = _heaviest(places[inside, 1:], signed[inside], sizes[1:], between[1:])
                np.maximum(heaviest[left, right], rest, out=heaviest[left, right])
    return heaviest


def _useful_cuts(positive: IntArray, between: _Gaps) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the cuts of a column that a heaviest box needs, with their gaps: low ends, then high ends.

    A cut p has p values of W below it. A face may move inwards, within its gap, up to a value labelled 1 or to the end.
    """
    least, largest = between
    with_positive = np.unique(positive)
    lows, low_gap, highs, high_gap = [], [], [], []
    for k in range(len(least) - 1):
        inside = with_positive[(with_positive >= least[k]) & (with_positive < largest[k])]
        lows.append(np.append(inside, largest[k]))
        low_gap.append(np.full(len(inside) + 1, k))
        inside = with_positive[(with_positive >= least[k + 1]) & (with_positive < largest[k + 1])]
        highs.append(np.append(least[k + 1], inside + 1))
        high_gap.append(np.full(len(inside) + 1, k))
    return np.concatenate(lows), np.concatenate(low_gap), np.concatenate(highs), np.concatenate(high_gap)


def _heaviest_rectangles(
    places: IntArray,
    signed: IntArray,
    sizes: list[int],
    between: list[_Gaps],
    cuts: tuple[IntArray, IntArray, IntArray, IntArray],
) -> IntArray:
    """Two columns: for a range of the first, the weight of [low, high] in the second is a difference of prefix sums.

    So for each pair of its gaps the best low and the best high are found apart from each other.
    """
    table = cumulative(tuple(places.T), tuple(sizes), signed)
    if len(signed) < 1 << 14:  # all sums, and differences of two, fit; four times as many a second
        table = table.astype(np.int16)
    lows, low_gap, highs, high_gap = cuts
    inner_lows, inner_low_gap, inner_highs, inner_high_gap = _useful_cuts(places[signed > 0, 1], between[1])
    low_starts, high_starts = _starts(inner_low_gap), _starts(inner_high_gap)
    at_lows, at_highs = table[:, inner_lows], table[:, inner_highs]
    at_lows_of_highs, at_highs_of_highs = at_lows[highs], at_highs[highs]
    blocks = np.append(_starts(high_gap), len(highs))
    n_values, n_inner = len(blocks) - 1, len(high_starts)
    heaviest = np.full((n_values, n_values, n_inner, n_inner), -len(signed), dtype=table.dtype)
    step = max(1, _SCORES_AT_ONCE // (n_inner * n_inner))
    for low, left in zip(lows, low_gap, strict=True):
        first = blocks[left]
        best_high = np.maximum.reduceat(at_highs_of_highs[first:] - at_highs[low], high_starts, axis=1)
        best_low = np.minimum.reduceat(at_lows_of_highs[first:] - at_lows[low], low_starts, axis=1)
        for right in range(left, n_values):
            for start in range(blocks[right], blocks[right + 1], step):
                block = slice(start - first, min(start + step, blocks[right + 1]) - first)
                weight = best_high[block, np.newaxis, :] - best_low[block, :, np.newaxis]
                np.maximum(heaviest[left, right], weight.max(axis=0), out=heaviest[left, right])
    return heaviest.astype(np.int64)


def _starts(groups: IntArray) -> IntArray:
    return np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))


def _heaviest_between(W: Points, signed: IntArray, places: IntArray, between: list[_Gaps]) -> int:
    """Return the largest weight of a box that passes between two neighbouring values of T in some column."""
    best = 0
    for j, (least, largest) in enumerate(between):
        for start, end in zip(least.tolist(), largest.tolist(), strict=True):
            inside = (places[:, j] >= start) & (places[:, j] < end)
            if (signed[inside] > 0).any():
                best = max(best, heaviest_box(W[inside], signed[inside])[0])
    return best
