"""The box of the largest weight: what minimises the empirical error over intervals and rectangles."""

from __future__ import annotations

from math import prod

import numpy as np

from quorate.learners.concepts.boxes import cumulative, ranks
from quorate.learners.concepts.protocol import Points
from quorate.types import IntArray

_Corners = tuple[tuple[int, ...], tuple[int, ...]]


def search_cells(sizes: list[int]) -> int:
    """Return how many cells a search looks at among boxes whose corners take ``sizes[j]`` values in column j.

    Examples
    --------
    >>> search_cells([1000, 1000]), search_cells([1000])
    (500000000, 1000)
    """
    return prod(size * size // 2 for size in sizes[:-1]) * sizes[-1]


def heaviest_box(points: Points, signed: IntArray) -> tuple[int, _Corners | None]:
    """Return the largest weight inside a box, and that box; None where no box weighs more than the empty one.

    Ties go to the highest low end in the first column, then its lowest high end, then the highest low end in the
    second column, and so on: among boxes that hold the same points that is the tight one.

    Examples
    --------
    >>> heaviest_box(np.array([[1], [4], [6], [9]]), np.array([3, -1, 2, -5]))
    (4, ((1,), (6,)))
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
