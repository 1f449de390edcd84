"""How the first rounds of a number count targets: the others measure residuals by the part that these point to."""

from __future__ import annotations

from dataclasses import replace

from quorate.direct.contributions import Grid
from quorate.run.located import narrowed_part
from quorate.types import IntArray

FEWEST_ROUNDS = 16  # of which some count
#: How first rounds count in a new fit: by the nearest shares; 1: by noisy shares as they are; 0: they do not.
RULE = 2


def narrowed(grid: Grid, noisy: IntArray, n_units: int, *, last: bool, nearest: bool) -> Grid:
    """Return the grid of the part that noisy counts of targets point to.

    `grid`: of the round that counted. `noisy`: its sum, in steps. `last`: whether the next round adds up gradients.
    `nearest`: whether the nearest shares stand in the place of noisy ones.
    """
    shares = noisy.ravel()[: grid.cells] / (2.0**grid.k * n_units)
    low, high = narrowed_part(grid.low, grid.high, shares, last=last, nearest=nearest)
    return replace(grid, low=low, high=high)
