r"""Where targets lie in a declared range: the first rounds count them, and the others measure residuals by that part.

A range may be declared many times wider than the targets need. So a first round releases how many units' targets lie
in each of q equal cells of the range, as one more noisy sum at the price of a round (:func:`~.contributions.counted`).
Shares of the n₀ units are at least 0 and sum to 1, which noisy ones do not; those nearest to the noisy ones stand in
their place. Among noisy counts the shortest run of cells that seems to hold a share is one that noise made large, and
holds less. The part that the next round looks at is that shortest run, with a cell more on both sides; after the last
counting round, without. All of it is post-processing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from quorate.direct.contributions import Grid
from quorate.students.shares import onto_simplex
from quorate.types import FloatArray, IntArray

COUNTING = 2  #: rounds that count targets, the first ones
FEWEST_ROUNDS = 16  # of which some count
MOST_CELLS, FEWEST_CELLS = 64, 4
OF_NOISE = 6.0  # standard deviations of a count, times the root of the number of cells: all units are more
SHARE = 0.9  # of the units that a part holds
LEAST_WIDTH = 64  # steps of a part
#: How first rounds count in a new fit: by the nearest shares; 1: by noisy shares as they are; 0: they do not.
RULE = 2


def cells_for(n_numbers: int, n_units: int, noise: float) -> int:
    """Return into how many cells a range is cut, 0 where noise hides them.

    `n_numbers`: that a round releases. `noise`: of each, in units.

    Examples
    --------
    >>> cells_for(300, 5_000, 23.0), cells_for(300, 400, 23.0), cells_for(300, 400, 46.0)
    (64, 8, 0)
    """
    cells = min(n_numbers, MOST_CELLS, int((n_units / (OF_NOISE * noise)) ** 2))
    return cells if cells >= FEWEST_CELLS else 0


def narrowed(grid: Grid, noisy: IntArray, n_units: int, *, last: bool, nearest: bool) -> Grid:
    """Return the grid of the part that noisy counts of targets point to.

    `grid`: of the round that counted. `noisy`: its sum, in steps. `last`: whether the next round adds up gradients.
    `nearest`: whether the nearest shares stand in the place of noisy ones.
    """
    shares = noisy.ravel()[: grid.cells] / (2.0**grid.k * n_units)
    first, end = _shortest(onto_simplex(shares[None])[0] if nearest else shares, SHARE)
    if not last:
        first, end = max(first - 1, 0), min(end + 1, grid.cells)
    width = grid.high - grid.low
    low, high = grid.low + first * width // grid.cells, grid.low - (-end * width // grid.cells)
    if high - low < LEAST_WIDTH:
        low = min(max((low + high - LEAST_WIDTH) // 2, grid.low), max(grid.high - LEAST_WIDTH, 0))
        high = low + LEAST_WIDTH
    return replace(grid, low=low, high=high)


def _shortest(shares: FloatArray, share: float) -> tuple[int, int]:
    """Return the first and one past the last cell of the shortest run that holds a share; all where none does."""
    sums = np.concatenate([[0.0], np.cumsum(shares)])
    for length in range(1, len(shares)):
        held = sums[length:] - sums[:-length]
        if held.max() >= share:
            first = int(np.argmax(held))
            return first, first + length
    return 0, len(shares)
