r"""A noisy tree over a grid, opened only where its own noisy counts are large.

The grid has :math:`2^{bits}` points, and the tree as many leaves; nobody can add noise to each of them. Nobody has to:
only nodes that are *looked at* need noise, and which ones are looked at is decided from noisy counts alone.

**Privacy.** Level l is the mechanism :func:`noisy_children`: it is handed a list of nodes, and releases the count of
*every* child of each, empty or not, plus independent discrete Laplace noise of scale λ. The nodes of a list are
disjoint, so the children are disjoint: replacing one record lowers at most one of these counts by 1 and raises at most
one by 1. The vector moves by at most 2 in L1, whatever the list is, and the level is :math:`2/\lambda`-DP. The list is
a function of the levels released before (and of public parameters), so the L levels compose adaptively:
:math:`2L/\lambda`-DP (Dwork, Kenthapadi, McSherry, Mironov, Naor 2006; adaptive composition of pure mechanisms holds
as it stands: the density of a transcript is the product of its levels' densities, each within its own factor).
Everything else in this file reads released counts only, and n, which is public. In particular a node that was never
opened has no noisy count, because nobody asked for one; an empty child of an open node has one.

**Consistency.** The children of a node are moved by one common number so that they sum to their parent's estimate, from
the root, whose count n is known, downwards (the second half of Hay, Rastogi, Miklau and Suciu 2010; the first,
upwards, would gain a factor :math:`1 - O(1/k)` of variance at k children, and makes the estimates depend on which
nodes were opened, which would cost the plain proof of the bound). Then the prefix counts are made
non-decreasing and put into [0, n], which never moves them further from the true ones: see :func:`as_monotone`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.learners.sanitizers.tree_plan import TreePlan
from quorate.noise import NoiseSource, discrete_laplace
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray


@stored_as("quorate.learners.sanitizers.noisy_tree.PrefixCounts")
@dataclass(frozen=True, slots=True, eq=False)
class PrefixCounts:
    """Estimated numbers of rows below the borders of a partition of the grid; released, so public.

    Attributes
    ----------
    borders : IntArray, (n_cells + 1,)
        Increasing, from 0 to the size of the grid. A cell is one grid point, or was not opened further.
    below : FloatArray, (n_cells + 1,)
        Rows below each border, non-decreasing from 0 to n.
    """

    borders: IntArray
    below: FloatArray


def noisy_children(
    values: IntArray, starts: IntArray, child: int, fanout: int, scale: float, noise: NoiseSource
) -> IntArray:
    """Release the noisy counts ``(n_nodes, fanout)`` of all children of the nodes: the one place that reads rows.

    `values`: the private grid points, sorted.
    `starts`: first grid points of disjoint nodes, from earlier releases.
    `child`: grid points in a child.
    `fanout`: children of a node.
    `scale`: λ of the noise, in rows. The release is 2/λ-DP.
    `noise`: where the noise comes from.
    """
    edges = starts[:, np.newaxis] + child * np.arange(fanout + 1, dtype=np.int64)
    counts = np.diff(np.searchsorted(values, edges, side="left"), axis=1).astype(np.int64)
    return counts + discrete_laplace(scale, counts.shape, noise)


def noisy_prefix_counts(values: IntArray, plan: TreePlan, noise: NoiseSource) -> PrefixCounts:
    """Release estimated prefix counts of private grid points, ε-DP with ε = ``plan.epsilon``.

    Parameters
    ----------
    values : IntArray, (n,)
        The private grid points, each from 0 to ``plan.size − 1``, in any order.
    plan : TreePlan
        Public: how the grid branches, the noise, and what is opened.
    noise : NoiseSource
        Where the noise comes from.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> plan = TreePlan(fanouts=(4, 4), scale=4.0, threshold=60.0)
    >>> tree = noisy_prefix_counts(np.array([1] * 500 + [9] * 300), plan, SeededNoise(0))
    >>> tree.borders.tolist()
    [0, 1, 2, 3, 4, 8, 9, 10, 11, 12, 16]
    >>> tree.below.round().astype(int).tolist()
    [0, 0, 492, 497, 498, 498, 498, 795, 800, 800, 800]
    """
    n = values.size
    values = np.sort(values)
    starts, estimates, child = np.zeros(1, dtype=np.int64), np.array([float(n)]), plan.size
    cells: list[tuple[IntArray, FloatArray]] = []
    for fanout in plan.fanouts:
        child //= fanout
        noisy = noisy_children(values, starts, child, fanout, plan.scale, noise)
        # From here on only what was released: the children are moved to sum to their parent.
        shares = noisy + ((estimates - noisy.sum(axis=1)) / fanout)[:, np.newaxis]
        firsts = starts[:, np.newaxis] + child * np.arange(fanout, dtype=np.int64)
        opened = np.full(shares.shape, child > 1)
        if plan.threshold is not None:
            opened &= shares > plan.threshold
        cells.append((firsts[~opened], shares[~opened]))
        starts, estimates = firsts[opened], shares[opened]
        if not starts.size:
            break
    first = np.concatenate([each for each, _ in cells])
    order = np.argsort(first)
    rows = np.concatenate([each for _, each in cells])[order]
    borders = np.append(first[order], plan.size)
    return PrefixCounts(borders, as_monotone(np.append(0.0, np.cumsum(rows)), n))


def as_monotone(below: FloatArray, n: int) -> FloatArray:
    r"""Return the prefix counts made non-decreasing, inside [0, n], and exact at both ends.

    If :math:`|\hat F - F| \le \eta` everywhere and F is non-decreasing, then :math:`M(t) = \max_{s \le t} \hat F(s)`
    has :math:`M(t) \ge \hat F(t) \ge F(t) - \eta` and, for the s that attains it, :math:`M(t) = \hat F(s) \le F(s) +
    \eta \le F(t) + \eta`. The same goes for the minimum over :math:`s \ge t`, for the mean of both, which is returned,
    and for putting it into [0, n], where F is. A step of M is at most the step of :math:`\hat F` there, or 0: so a cell
    never gets more rows than it was estimated to have.
    """
    rising = np.maximum.accumulate(below)
    falling = np.minimum.accumulate(below[::-1])[::-1]
    monotone: FloatArray = np.clip((rising + falling) / 2, 0.0, float(n))
    monotone[0], monotone[-1] = 0.0, float(n)
    return monotone
