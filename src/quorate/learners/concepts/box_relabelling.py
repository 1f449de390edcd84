r"""Scores of LWY25 Algorithm 1 for intervals and rectangles, all dichotomies together.

Boxes are told apart by which values of T lie between their faces in every column: by an *index box*
``[l_1, r_1] × [l_2, r_2] × …``. With n(g) rows of T in the index box g and b(g) the least number of mistakes on W of a
box with that index box,

.. math:: |T||W|\, q(h) = \min_g \{ |W|\, |h \triangle g| + |T|\, b(g) \} .

Boxes are closed under intersection, and :math:`|h \triangle g| = \min \{ n(h) + n(g) - 2 n(k) : k \subseteq h, g \}`,
reached at their intersection. So the minimum over g is one over all k inside h of one over all g around k, and both
are running minima along the axes of the table of index boxes: linear in its size, not quadratic.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from quorate.errors import InvalidParameter
from quorate.learners.concepts.box_search import heaviest_box
from quorate.learners.concepts.boxes import BoxConcepts, cumulative, ranks
from quorate.learners.concepts.protocol import Points
from quorate.learners.concepts.weighing import gaps, over_gaps
from quorate.types import IntArray

#: Entries of a table of index boxes, at most: 256 MiB each, of which a few are held.
TABLE_LIMIT = 1 << 25
_BLOCK_CELLS = 1 << 20

_Gaps = tuple[IntArray, IntArray]  # for each gap between values of T: the least and most values of W below a cut in it


def refuse_table(sizes: list[int], told: object) -> None:
    """Refuse a table of index boxes over ``sizes[j]`` values in column j.

    Raises InvalidParameter with the number of entries in the message.
    """
    entries = prod(size * size for size in sizes)
    if entries > TABLE_LIMIT:
        raise InvalidParameter(
            f"T: scores of {told!r} on so many points need a table of up to {entries} entries, more than "
            f"{TABLE_LIMIT}; relabel fewer rows, or use fewer columns"
        )


def box_scores(boxes: BoxConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
    """Return the score of each dichotomy on T, ``(n_boxes,)``.

    `boxes`: the tight boxes on T, the empty one first. `T`, `W`: the relabelled rows, at least one, and the labelled
    rows. `ones`: number of rows of W labelled 1. `signed`: 1 for a row of W labelled 1, −1 for one labelled 0.
    """
    values, places = ranks(T)
    sizes = tuple(len(each) for each in values)
    n_T, n_W = len(T), len(W)
    rows = _rows_inside(places, sizes)  # n(g)
    distinct, W_places = ranks(W)
    between = [gaps(border, value) for border, value in zip(values, distinct, strict=True)]
    around = n_W * rows
    around -= n_T * _heaviest(W_places, signed, [len(each) for each in distinct], between)
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
    found = np.full((n_values, n_values, *inner), -len(signed), dtype=np.int64)
    for low, left in zip(lows, low_gap, strict=True):
        for high, right in zip(highs, high_gap, strict=True):
            if left <= right:
                inside = (places[:, 0] >= low) & (places[:, 0] < high)
                rest = _heaviest(places[inside, 1:], signed[inside], sizes[1:], between[1:])
                np.maximum(found[left, right], rest, out=found[left, right])
    return found


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
    found = np.full((n_values, n_values, n_inner, n_inner), -len(signed), dtype=table.dtype)
    step = max(1, _BLOCK_CELLS // (n_inner * n_inner))
    for low, left in zip(lows, low_gap, strict=True):
        first = blocks[left]
        best_high = np.maximum.reduceat(at_highs_of_highs[first:] - at_highs[low], high_starts, axis=1)
        best_low = np.minimum.reduceat(at_lows_of_highs[first:] - at_lows[low], low_starts, axis=1)
        for right in range(left, n_values):
            for start in range(blocks[right], blocks[right + 1], step):
                block = slice(start - first, min(start + step, blocks[right + 1]) - first)
                weight = best_high[block, np.newaxis, :] - best_low[block, :, np.newaxis]
                np.maximum(found[left, right], weight.max(axis=0), out=found[left, right])
    return found.astype(np.int64)


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
