"""From released weights to synthetic points, with a stated rounding error."""

from __future__ import annotations

import numpy as np

from quorate.learners.sanitizers.noisy_tree import PrefixCounts
from quorate.types import FloatArray, IntArray


def quantile_points(tree: PrefixCounts, size: int) -> IntArray:
    r"""Return `size` grid points whose prefix fractions are those of the tree, off by at most ``1 / (2 size)``.

    Half the rows of a cell are put at its first point and half at its last, so that a prefix that ends inside the cell
    is off by at most half the cell. Each prefix fraction is then rounded to a multiple of 1/size; rounding keeps the
    order, so the rounded ones are those of a multiset.
    """
    below = tree.below
    both_ends = np.column_stack([tree.borders[:-1], tree.borders[1:] - 1]).ravel()
    up_to = np.column_stack([(below[:-1] + below[1:]) / 2, below[1:]]).ravel()
    copies: IntArray = np.diff(np.rint(up_to * (size / below[-1])).astype(np.int64), prepend=0)
    points: IntArray = np.repeat(both_ends, copies)
    return points


def rounded_weights(weights: FloatArray, size: int) -> IntArray:
    r"""Return whole copies of each domain point, `size` in all, for weights that sum to 1.

    Everything is rounded down, and the R copies that are missing go to the R largest remainders :math:`f_x`. A set of
    points is off by at most the sum of those rounded up, :math:`\sum (1 - f_x) \le R (1 - R/N) \le N/4` copies of N
    points: since :math:`\sum f_x = R`, the R largest have a mean of at least R/N. So no query is off by more than ``N /
    (4 size)``.
    """
    shares = weights * (size / weights.sum())
    copies: IntArray = np.floor(shares).astype(np.int64)
    missing = size - int(copies.sum())
    up = np.argsort(copies - shares, kind="stable")[:missing]
    copies[up] += 1
    return copies
