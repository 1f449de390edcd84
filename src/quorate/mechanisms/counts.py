r"""Vote counts at the door of a mechanism, and what one changed teacher can do to them.

A teacher votes for one class or abstains, and neighbouring data sets change one teacher. So two counts move by
one each, or one count does.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Final

import numpy as np

from quorate.errors import InvalidParameter
from quorate.noise.source import MAX_SCALE
from quorate.types import IntArray

#: One teacher moves one vote, −1 here and +1 there: the counts move by √2 in Euclidean norm.
VOTE_L2_SENSITIVITY: Final = sqrt(2)

_CELLS_AT_ONCE = 2**20


def one_query(counts: IntArray, *, n_classes: int | None = None) -> IntArray:
    """Return one query's counts ``(n_classes,)`` as the one row of ``(1, n_classes)``, checked.

    Raises InvalidParameter as :func:`many_queries` does.
    """
    if not isinstance(counts, np.ndarray) or counts.ndim != 1:
        raise InvalidParameter("counts must be one query's votes, an int64 array (n_classes,); pass one row")
    return many_queries(counts[np.newaxis], n_classes=n_classes)


def many_queries(counts: IntArray, *, n_classes: int | None = None) -> IntArray:
    """Return the counts ``(n_queries, n_classes)``, checked.

    Raises InvalidParameter if they are not a two-dimensional int64 array of at least two classes (of `n_classes`, where
    given), or a count is no possible number of votes. The message tells no count.

    Examples
    --------
    >>> many_queries(np.array([[3.0, 4.0]]))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: counts must be int64, got float64; count votes as integers
    """
    if not isinstance(counts, np.ndarray) or counts.ndim != 2:
        raise InvalidParameter("counts must be an int64 array (n_queries, n_classes); pass one row of votes per query")
    if counts.dtype != np.int64:
        raise InvalidParameter(f"counts must be int64, got {counts.dtype}; count votes as integers")
    if counts.shape[1] < 2 or (n_classes is not None and counts.shape[1] != n_classes):
        wanted = "at least 2 classes" if n_classes is None else f"{n_classes} classes"
        raise InvalidParameter(f"counts must have {wanted}, got {counts.shape[1]}; pass one column per class")
    if counts.size and (counts.min() < 0 or counts.max() > MAX_SCALE):
        raise InvalidParameter("counts must be numbers of votes, from 0 to 2^40; pass the votes' histogram")
    return counts


def in_blocks(counts: IntArray) -> Iterator[tuple[slice, IntArray]]:
    """Yield the rows a block at a time, so that the noise never needs more than a few megabytes.

    Examples
    --------
    >>> [rows for rows, _ in in_blocks(np.zeros((3, 2), dtype=np.int64))]
    [slice(0, 3, None)]
    """
    n = counts.shape[0]
    step = max(1, _CELLS_AT_ONCE // max(1, counts.shape[1]))
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step))
        yield rows, counts[rows]


def half_lead(counts: IntArray) -> IntArray:
    r"""Return :math:`\lceil (n_1 - n_0)/2 \rceil` of each row of ``(n_queries, 2)`` counts: ``(n_queries,)``.

    Its sensitivity is 1: one changed teacher moves :math:`n_1 - n_0` by at most 2. It is positive exactly
    where class 1 has more votes than class 0.
    """
    return -((counts[:, 0] - counts[:, 1]) // 2)


def distance_to_instability(counts: IntArray) -> IntArray:
    r"""Return :math:`\max(0, \lceil gap/2 \rceil - 1)` of each row of ``(n_queries, n_classes)`` counts.

    The gap is the largest count minus the second largest.

    Notes
    -----
    Its sensitivity is 1: one changed teacher moves the gap by at most 2. And it is 0 wherever one changed teacher
    could change the plurality class: that takes a gap of at most 2 (of at most 1 where a tie goes to the leader). BTT18
    prints ``gap − 1``, which moves by 2.

    Examples
    --------
    >>> distance_to_instability(np.array([[9, 1, 0], [5, 3, 2], [4, 4, 2]])).tolist()
    [3, 0, 0]
    """
    gap = np.empty(counts.shape[0], dtype=np.int64)
    for rows, block in in_blocks(counts):
        top = np.partition(block, block.shape[1] - 2, axis=1)
        gap[rows] = top[:, -1] - top[:, -2]
    distance: IntArray = np.maximum(0, -(-gap // 2) - 1)
    return distance
