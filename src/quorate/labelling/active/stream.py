"""Reading the pool as a stream, in epochs: what a strategy believes changes between epochs alone.

Inside an epoch every point is judged by what was believed at its start, so an epoch's questions are one batch. A point
that is not asked may be given a label by the belief itself. The whole past is worked out afresh from what was asked
and answered, which makes each batch a function of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.labelling.active.strategy import History
from quorate.types import IntArray


class Belief(Protocol):
    """What is believed at the start of an epoch."""

    def asks(self, rows: IntArray) -> NDArray[np.bool_]:
        """Whether each of these points is to be asked."""

    def labels(self, rows: IntArray) -> IntArray:
        """Class that is taken for granted for each point that is not asked; -1 for none."""


Learn = Callable[[IntArray, IntArray], Belief]


def doubling(n_points: int, first: int) -> Iterator[range]:
    """Cut a stream into epochs of `first`, twice, four times, … as many points.

    Examples
    --------
    >>> [(epoch.start, epoch.stop) for epoch in doubling(100, 10)]
    [(0, 10), (10, 30), (30, 70), (70, 100)]
    """
    start, size = 0, first
    while start < n_points:
        yield range(start, min(start + size, n_points))
        start, size = start + size, 2 * size


def up_to_powers_of_two(n_points: int) -> Iterator[range]:
    """Cut a stream after 1, 2, 4, 8, … points.

    Examples
    --------
    >>> [(epoch.start, epoch.stop) for epoch in up_to_powers_of_two(10)]
    [(0, 1), (1, 2), (2, 4), (4, 8), (8, 10)]
    """
    start, stop = 0, 1
    while start < n_points:
        yield range(start, min(stop, n_points))
        start, stop = stop, 2 * stop


def next_questions(epochs: Iterator[range], history: History, learn: Learn) -> IntArray:
    """Go through the stream up to the first epoch with a question, and return that epoch's questions.

    Parameters
    ----------
    epochs : iterator of range
        Rows of the pool, epoch by epoch.
    history : History
        What was asked; an epoch in which something was asked has been asked as a whole.
    learn : callable
        ``learn(rows, codes)`` gives the belief that follows from the points seen so far, in their order; a code is the
        class released, or that taken for granted, or -1 for none.

    Returns
    -------
    IntArray
        Rows to ask; none where the stream has ended.

    Examples
    --------
    >>> class Sure:
    ...     def asks(self, rows): return rows % 3 == 2
    ...     def labels(self, rows): return np.zeros_like(rows)
    >>> past = History(np.array([2]), np.array([1]), 2)
    >>> next_questions(doubling(12, 2), past, lambda rows, codes: Sure())
    array([ 8, 11])
    """
    released = dict(zip(history.rows.tolist(), history.codes.tolist(), strict=True))
    seen, codes = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    last = max(released, default=-1)
    for epoch in epochs:
        rows = np.arange(epoch.start, epoch.stop, dtype=np.int64)
        belief = learn(seen, codes)
        if epoch.start > last:
            questions = rows[belief.asks(rows)]
            if len(questions):
                return questions
        asked = np.isin(rows, history.rows)
        told = np.empty(len(rows), dtype=np.int64)
        told[asked] = [released[row] for row in rows[asked].tolist()]
        told[~asked] = belief.labels(rows[~asked])
        seen, codes = np.concatenate([seen, rows]), np.concatenate([codes, told])
    return np.empty(0, dtype=np.int64)
