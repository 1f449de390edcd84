"""A random subset of the public points: the control of every other strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from quorate.labelling.active.strategy import History, Strategy
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.labelling.active.random_subset.Random")
@dataclass(frozen=True)
class Random(Strategy):
    """Ask n points at random: the first n of the stream, whatever is answered.

    Parameters
    ----------
    n : int
        How many points are asked.

    Notes
    -----
    The same points, at the same noise, as with ``queries=n``.

    Examples
    --------
    >>> past = History(np.array([0]), np.array([1]), 2)
    >>> Random(3).next_batch(np.zeros((5, 1)), past, np.random.default_rng(0))
    array([1, 2])
    """

    learns: ClassVar[bool] = False

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose the next points of the stream."""
        return history.not_asked(pool.shape[0])[: self.n - len(history.rows)]
