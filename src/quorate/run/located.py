"""Where targets lie in a declared range: what noisy counts of them in equal cells of it point to.

A range may be declared many times wider than the targets need. So both methods first release, twice, how many units'
targets lie in each of q equal cells of a part of the range, at first of all of it. Shares of the units are at least 0
and sum to 1, which noisy ones do not; those nearest to the noisy ones stand in their place. Among noisy counts the
shortest run of cells that seems to hold a share is one that noise made large, and holds less. The part that the second
count looks at is that shortest run, with a cell more on both sides; the part that is learned in is without. All of it
is post-processing.
"""

from __future__ import annotations

import numpy as np

from quorate.students.shares import onto_simplex
from quorate.types import FloatArray

COUNTING = 2  #: counts of targets, before anything else is released
MOST_CELLS, FEWEST_CELLS = 64, 4
OF_NOISE = 6.0  # standard deviations of a count, times the root of the number of cells: all units are more
SHARE = 0.9  # of the units that a part holds
LEAST_WIDTH = 64  # steps of a part, as long as the range has more


def cells_for(n_numbers: int, n_units: int, noise: float) -> int:
    """Return into how many cells a range is cut, 0 where noise, in units, hides them; `n_numbers`: that a count may
    release.

    Examples
    --------
    >>> cells_for(300, 5_000, 23.0), cells_for(300, 400, 23.0), cells_for(300, 400, 46.0)
    (64, 8, 0)
    """
    cells = min(n_numbers, MOST_CELLS, int((n_units / (OF_NOISE * noise)) ** 2))
    return cells if cells >= FEWEST_CELLS else 0


def narrowed_part(low: int, high: int, shares: FloatArray, *, last: bool, nearest: bool = True) -> tuple[int, int]:
    """Return the part of a range, in steps, that noisy shares ``(n_cells,)`` of a part point to; `last`: whether
    nothing is counted after it. `nearest`: whether the nearest shares stand in the place of noisy ones.

    Examples
    --------
    >>> narrowed_part(0, 65_536, np.array([0.1, 0.85, 0.1, -0.05]), last=True)
    (0, 32768)
    """
    cells = len(shares)
    first, end = _shortest(onto_simplex(shares[None])[0] if nearest else shares, SHARE)
    if not last:
        first, end = max(first - 1, 0), min(end + 1, cells)
    width = high - low
    new_low, new_high = low + first * width // cells, low - (-end * width // cells)
    if new_high - new_low < LEAST_WIDTH:
        new_low = min(max((new_low + new_high - LEAST_WIDTH) // 2, low), max(high - LEAST_WIDTH, 0))
        new_high = new_low + LEAST_WIDTH
    return new_low, new_high


def _shortest(shares: FloatArray, share: float) -> tuple[int, int]:
    """Return the first and one past the last cell of the shortest run that holds a share; all where none does."""
    sums = np.concatenate([[0.0], np.cumsum(shares)])
    for length in range(1, len(shares)):
        held = sums[length:] - sums[:-length]
        if held.max() >= share:
            first = int(np.argmax(held))
            return first, first + length
    return 0, len(shares)
