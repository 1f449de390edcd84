r"""A noisy tree over a grid, opened only where its own noisy counts are large; its public side, and what is made of it.

**Privacy.** A level is handed a list of disjoint nodes, read from the levels before it, and releases the count of
*every* child of each, empty or not, plus independent discrete Laplace noise of scale λ (:func:`noisy_children`).
Replacing one record moves at most two of these counts by 1: the level is :math:`2/\lambda`-DP whatever the list is, and
L levels compose adaptively to :math:`2L/\lambda` (Dwork, Kenthapadi, McSherry, Mironov, Naor 2006). All else reads
released counts and n.

**Consistency.** From the root, whose count n is known, downwards, children are moved by one common number so that they
sum to their parent's estimate (the second half of Hay, Rastogi, Miklau and Suciu 2010; the first would make the
estimates depend on which nodes were opened, which the proof of the bound does not allow).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, prod

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.sanitizers.protocol import least_scale
from quorate.noise import NoiseSource, discrete_laplace
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

#: Largest number of bits of a grid: one past its last point is still an int64.
MAX_BITS = 62

#: Up to so many bits every node is opened: the noise is drawn in a moment, and no cell is left closed.
OPEN_ALL_BITS = 20

_LEAST_THRESHOLD = 9.0  # scales, before the logarithm of how many nodes there may be


@stored_as("quorate.learners.sanitizers.tree_plan.TreePlan")
@dataclass(frozen=True, slots=True)
class TreePlan:
    r"""How a grid of :math:`2^{bits}` points is halved into nodes, what noise their counts get, which are opened.

    `fanouts`: children of a node, level by level from the root; each a power of two, at least 2. Their product is the
    size of the grid. `scale`: λ of the discrete Laplace noise on each count of a child, in rows. `threshold`: a child
    is opened in its turn where its estimate is above so many rows. None opens every node. Raises InvalidParameter if a
    field is out of range.

    Privacy: one replaced record moves at most two counts of a level by 1 each, so a level is :math:`2/\lambda`-DP and
    the tree :attr:`epsilon`-DP (proof in :mod:`quorate.learners.sanitizers.noisy_tree`).

    Examples
    --------
    >>> plan = TreePlan.for_budget(bits=32, n=35_000, epsilon=1.0)
    >>> plan.fanouts, plan.scale, plan.threshold
    ((16, 16, 16, 16, 16, 16, 16, 16), 16.0, 345.0)
    >>> TreePlan.for_budget(bits=8, n=35_000, epsilon=1.0)
    TreePlan(fanouts=(16, 16), scale=4.0, threshold=None)
    """

    fanouts: tuple[int, ...]
    scale: float
    threshold: float | None = None

    def __post_init__(self) -> None:
        fanouts = tuple(count("fanouts", fanout, at_least=2) for fanout in self.fanouts)
        if not fanouts or any(fanout & (fanout - 1) for fanout in fanouts) or prod(fanouts) > 2**MAX_BITS:
            raise InvalidParameter(
                f"fanouts must be powers of two, at least one, of product at most 2^{MAX_BITS}, got {self.fanouts!r}"
            )
        object.__setattr__(self, "fanouts", fanouts)
        object.__setattr__(self, "scale", checked_scale("scale", self.scale))
        if self.threshold is not None:
            object.__setattr__(self, "threshold", real("threshold", self.threshold, above=0))

    @classmethod
    def for_budget(cls, *, bits: int, n: int, epsilon: float) -> TreePlan:
        r"""Return the plan of ε-DP for `n` rows on :math:`2^{bits}` points: a function of public facts alone.

        With L levels of ε/L each, :math:`\lambda = 2L/\varepsilon`, an end of an interval picks up a variance of at
        most :math:`2\lambda^2 k/4` from a level of k children, and the root is one node for both ends: L makes
        :math:`L^2 (2 \sum_l k_l - k_1)` least, bits shared out evenly. Rows may part at any depth, so budgets are
        equal. The threshold has to stand clear of the largest noise among :math:`n \sum_l k_l/\lambda` nodes; half of
        it is error by itself, so that small grids have none (:data:`OPEN_ALL_BITS`).
        """
        bits, n = count("bits", bits, at_least=1), count("n", n, at_least=1)
        epsilon = real("epsilon", epsilon, above=0)
        if bits > MAX_BITS:
            raise InvalidParameter(f"bits must be at most {MAX_BITS}, got {bits}; use a coarser grid")
        shapes = [_even(bits, levels) for levels in range(1, bits + 1)]
        fanouts = min(shapes, key=lambda ks: len(ks) ** 2 * (2 * sum(ks) - ks[0]))
        scale = least_scale(2 * len(fanouts), epsilon)
        if bits <= OPEN_ALL_BITS:
            return cls(fanouts, scale)
        threshold = float(ceil(scale * (_LEAST_THRESHOLD + log(1 + n * sum(fanouts) / scale))))
        return cls(fanouts, scale, threshold)

    @property
    def size(self) -> int:
        """Number of points of the grid."""
        return prod(self.fanouts)

    @property
    def epsilon(self) -> Fraction:
        r"""ε of the whole tree, exactly: :math:`2L/\lambda`."""
        return 2 * len(self.fanouts) / Fraction(self.scale)


def _even(bits: int, levels: int) -> tuple[int, ...]:
    """Share `bits` out to so many levels, the larger fanouts first."""
    less, more = divmod(bits, levels)
    return (2 ** (less + 1),) * more + (2**less,) * (levels - more)


@stored_as("quorate.learners.sanitizers.noisy_tree.PrefixCounts")
@dataclass(frozen=True, slots=True, eq=False)
class PrefixCounts:
    """Estimated numbers of rows below the borders of a partition of the grid; released, so public.

    `borders` ``(n_cells + 1,)``: increasing, from 0 to the size of the grid. A cell is one grid point, or was not
    opened further. `below` ``(n_cells + 1,)``: rows below each border, non-decreasing from 0 to n.
    """

    borders: IntArray
    below: FloatArray


def noisy_children(
    values: IntArray, starts: IntArray, child: int, fanout: int, scale: float, noise: NoiseSource
) -> IntArray:
    """Release the noisy counts ``(n_nodes, fanout)`` of all children of the nodes: the one place that reads rows.

    It is 2/λ-DP with λ = `scale`, in rows. `values`: the private grid points, sorted. `starts`: of disjoint nodes, from
    earlier releases. `child`: grid points in a child.
    """
    edges = starts[:, np.newaxis] + child * np.arange(fanout + 1, dtype=np.int64)
    counts = np.diff(np.searchsorted(values, edges, side="left"), axis=1).astype(np.int64)
    return counts + discrete_laplace(scale, counts.shape, noise)


def noisy_prefix_counts(values: IntArray, plan: TreePlan, noise: NoiseSource) -> PrefixCounts:
    """Release estimated prefix counts of private grid points, ε-DP with ε = ``plan.epsilon``.

    `values` ``(n,)``: the private grid points, each from 0 to ``plan.size − 1``, in any order. `plan`: public: how the
    grid branches, the noise, and what is opened. `noise`: where the noise comes from.

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
    first = np.concatenate([part for part, _ in cells])
    order = np.argsort(first)
    rows = np.concatenate([part for _, part in cells])[order]
    borders = np.append(first[order], plan.size)
    return PrefixCounts(borders, as_monotone(np.append(0.0, np.cumsum(rows)), n))


def as_monotone(below: FloatArray, n: int) -> FloatArray:
    """Return the prefix counts made non-decreasing, inside [0, n], exact at both ends, and no further off the truth.

    Running maxima, running minima from above and their mean, which is returned, are each as near to the non-decreasing
    truth as what they are made from. No cell gets more rows than it was estimated to have.
    """
    rising = np.maximum.accumulate(below)
    falling = np.minimum.accumulate(below[::-1])[::-1]
    monotone: FloatArray = np.clip((rising + falling) / 2, 0.0, float(n))
    monotone[0], monotone[-1] = 0.0, float(n)
    return monotone


def quantile_points(tree: PrefixCounts, size: int) -> IntArray:
    """Return `size` grid points whose prefix fractions are those of the tree, off by at most ``1 / (2 size)``.

    Half the rows of a cell are put at its first point and half at its last: a prefix that ends inside is off by half a
    cell.
    """
    below = tree.below
    both_ends = np.column_stack([tree.borders[:-1], tree.borders[1:] - 1]).ravel()
    up_to = np.column_stack([(below[:-1] + below[1:]) / 2, below[1:]]).ravel()
    copies: IntArray = np.diff(np.rint(up_to * (size / below[-1])).astype(np.int64), prepend=0)
    points: IntArray = np.repeat(both_ends, copies)
    return points


def rounded_weights(weights: FloatArray, size: int) -> IntArray:
    """Return whole copies of the N domain points, `size` in all, for weights that sum to 1; no set is off by above N/4.

    All are rounded down, and R largest remainders :math:`f_x` up, whose mean is at least R/N: off by :math:`R (1 -
    R/N)`.
    """
    shares = weights * (size / weights.sum())
    copies: IntArray = np.floor(shares).astype(np.int64)
    missing = size - int(copies.sum())
    up = np.argsort(copies - shares, kind="stable")[:missing]
    copies[up] += 1
    return copies
