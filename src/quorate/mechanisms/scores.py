r"""Scores of finitely many candidates, at the door of a mechanism that chooses one.

Scores are integers, so that a choice can be sampled exactly. A quality that is no integer is rounded to a grid
first: with a grid of step h pass ``rint(q/h)`` and, since rounding moves each score by up to half a step, the
sensitivity ``Δ/h + 1``; or scale the exact fractions up to integers.
"""

from __future__ import annotations

import numpy as np

from quorate.errors import InvalidParameter
from quorate.noise.source import MAX_SCALE
from quorate.types import IntArray


def many_choices(scores: IntArray) -> IntArray:
    """Return the scores ``(n_queries, n_candidates)``, checked; they may be negative.

    Examples
    --------
    >>> many_choices(np.array([[0.5, 4.0]]))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: counts must be int64 scores, got float64; round them to a grid
    """
    if not isinstance(scores, np.ndarray) or scores.ndim != 2:
        raise InvalidParameter(
            "counts must be an int64 array (n_queries, n_candidates); pass one row of scores a query"
        )
    if scores.dtype != np.int64:
        raise InvalidParameter(f"counts must be int64 scores, got {scores.dtype}; round them to a grid")
    if scores.shape[1] < 2:
        raise InvalidParameter(f"counts must have at least 2 candidates, got {scores.shape[1]}; one needs no choice")
    if scores.size and (scores.min() < -MAX_SCALE or scores.max() > MAX_SCALE):
        raise InvalidParameter("counts must be scores from -2^40 to 2^40; use a coarser grid")
    return scores
