"""A voter that fails on several rows is asked about fewer: one row on which it fails must not take its vote on another.

Rows of several people wait together, and whoever sent one of them must not spoil the answers to all. A vote on a row is
then what the voter says of that row; where it fails on a row by itself, it abstains there. It stays one voter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quorate.data.rows import n_rows


def by_halves(answer: Callable[[Any], Any], X: Any, nothing: Callable[[int], Any]) -> Any:
    """Return ``answer(X)``; where that fails, what it says of each half, down to single rows.

    `answer`: from rows to one item a row; raises where it fails on any of them. `X`: about what. `nothing`: from a
    number of rows to what stands for no answer. Raises MemoryError perhaps a neighbour took it: whoever runs the
    teachers tries again with nothing beside this one.
    """
    n = n_rows(X)
    try:
        return answer(X)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a teacher's failure is an abstention, told to nobody
        if n <= 1:
            return nothing(n)
    return np.concatenate([by_halves(answer, X[part], nothing) for part in (slice(0, n // 2), slice(n // 2, n))])
