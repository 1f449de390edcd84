"""Cover the public pool: every point has an asked one near by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.data.canonical import row_digests
from quorate.labelling.active.strategy import History, Strategy
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.labelling.active.core_set.CoreSet")
@dataclass(frozen=True)
class CoreSet(Strategy):
    """Ask the point that is farthest from all asked ones, again and again: greedy k-centre.

    Parameters
    ----------
    n : int
        The most points that are asked; fewer only where all others coincide with them.

    Notes
    -----
    Only public points have a say, so all questions are known at once. The farthest point is at most twice as far away
    as with the best n points (Gonzalez 1985).

    References
    ----------
    O. Sener, S. Savarese, "Active learning for convolutional neural networks: a core-set approach" (2018).

    Examples
    --------
    >>> pool = np.array([[0.0], [0.1], [9.0], [4.0]])
    >>> past = History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
    >>> CoreSet(3).next_batch(pool, past, np.random.default_rng(0))
    array([0, 2, 3])
    """

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose all points at once, the first of the stream first."""
        from sklearn.metrics import pairwise_distances

        if len(history.rows):
            return np.empty(0, dtype=np.int64)
        chosen, same = [0], np.unique(row_digests(pool), return_inverse=True)[1]
        nearest = pairwise_distances(pool, pool[:1]).ravel()
        nearest[same == same[0]] = 0.0
        while len(chosen) < self.n:
            farthest = int(np.argmax(nearest))
            if not nearest[farthest] > 0:
                break
            chosen.append(farthest)
            nearest = np.minimum(nearest, pairwise_distances(pool, pool[farthest : farthest + 1]).ravel())
            nearest[same == same[farthest]] = 0.0  # exactly: rounding must not have a point asked twice
        return np.array(chosen, dtype=np.int64)
