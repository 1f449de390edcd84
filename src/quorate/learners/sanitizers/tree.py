r"""Synthetic points on a line from a noisy tree of prefix counts, opened only where its own noisy counts are large.

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

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log, prod
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.sanitizers.protocol import GridSanitizer, bits_and_intervals, checked_rows, least_scale
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
    the tree :attr:`epsilon`-DP (proof above).

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


@stored_as("quorate.learners.sanitizers.tree.Tree")
@dataclass(frozen=True, slots=True)
class Tree(GridSanitizer):
    r"""Sanitize points on a line: thresholds, intervals and points of a grid of :math:`2^{bits}`.

    A tree over the grid, most of it never opened, gets discrete Laplace noise on the counts of all children of each
    open node; the estimates of all prefix counts are made consistent, and the synthetic points are their quantiles.

    `n_synthetic`: m, synthetic points, at least 1. An interval is off by at most 1/m on their account, and there are no
    more dichotomies on them than on m points. None makes as many as there are rows.

    Only a class on a line is taken (Thresholds, Intervals, PointFunctions), and at least one point. Privacy: ε-DP for
    one replaced record, n public (:mod:`quorate.learners.sanitizers.tree`). Error: with x from
    :func:`interval_error`, no interval's fraction is off by more than :math:`x/n + 1/m`, x growing as
    :math:`(bits)^{3/2}/\varepsilon` up to logarithms. Two thresholds differ on one interval, two intervals or two
    points on at most two.

    BNS15, Algorithm 1, Step 2 and Definition A.2. Dwork, Naor, Pitassi and Rothblum (2010) for trees of counts; Hay,
    Rastogi, Miklau and Suciu (2010) for consistency; Qardaji, Yang and Li (2013) for fanouts of about 16.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.noise import SeededNoise
    >>> rows = np.arange(20_000)[:, np.newaxis] * 1000  # far down on the left of the grid
    >>> synthetic = Tree(n_synthetic=5).sanitize(rows, Thresholds(32), 1.0, SeededNoise(0))
    >>> synthetic.ravel().tolist()
    [1966080, 6094847, 10027008, 14024704, 17956864]
    >>> Tree().rows_needed(Thresholds(32), alpha=0.05, beta=0.1, epsilon=1.0)
    29321
    """

    n_synthetic: int | None = None

    remedy: ClassVar[str] = "raise n_synthetic"

    def __post_init__(self) -> None:
        if self.n_synthetic is not None:
            object.__setattr__(self, "n_synthetic", count("n_synthetic", self.n_synthetic, at_least=1))

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return ``(n_synthetic, 1)`` synthetic grid points, in increasing order."""
        bits, _ = bits_and_intervals(concept_class)
        points = checked_rows(points, concept_class)
        plan = TreePlan.for_budget(bits=bits, n=len(points), epsilon=epsilon)
        tree = noisy_prefix_counts(points[:, 0].astype(np.int64), plan, noise)
        return quantile_points(tree, self.n_synthetic or len(points))[:, np.newaxis].astype(points.dtype)

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        r"""Return α: on any `n` >= 1 rows, no :math:`c \in C^\oplus` is off by more but with probability `beta`."""
        bits, intervals = bits_and_intervals(concept_class)
        n, beta = count("n", n, at_least=1), real("beta", beta, above=0, below=1)
        plan = TreePlan.for_budget(bits=bits, n=n, epsilon=epsilon)
        return min(1.0, intervals * (interval_error(plan, n, beta) / n + 1 / (self.n_synthetic or n)))


_RATES = np.linspace(0.01, 0.995, 198)  # θλ
_FLOAT_SLACK = 1e-9  # relative; far above what rounding does to these sums


def prefix_error(plan: TreePlan, n: int, beta: float) -> float:
    """Return x: with probability at least 1 − β no prefix count is off by more than x rows, anywhere on the grid.

    `plan`: the public side of the tree. `n`: number of rows, at least 1. `beta`: β in (0, 1).
    """
    threshold = plan.threshold or 0.0
    return min(float(n), (_border_error(plan, n, beta, _border_moments) + threshold / 2) * (1 + _FLOAT_SLACK))


def interval_error(plan: TreePlan, n: int, beta: float) -> float:
    r"""Return x: with probability at least 1 − β no count of an interval is off by more than x rows.

    Parameters are those of :func:`prefix_error`.
    """
    threshold = plan.threshold or 0.0
    return min(float(n), (_border_error(plan, n, beta, _interval_moments) + threshold) * (1 + _FLOAT_SLACK))


def log_mgf(rate: FloatArray, scale: float) -> FloatArray:
    r"""Return :math:`\log E e^{\theta Z}` of discrete Laplace noise, for :math:`|\theta| < 1/\lambda`.

    With :math:`r = e^{-1/\lambda}` it is :math:`\log (1-r)^2 - \log (1 - r e^\theta)(1 - r e^{-\theta})`.
    """
    value: FloatArray = 2 * np.log(-np.expm1(-1 / scale))
    value = value - np.log(-np.expm1(rate - 1 / scale)) - np.log(-np.expm1(-rate - 1 / scale))
    return np.maximum(value, 0.0)


def _least_rows(threshold: float) -> list[int]:
    """The values of a that are tried: from 1 to the threshold, in steps of a quarter."""
    candidates, least = [], 1
    while least < threshold:
        candidates.append(least)
        least = max(least + 1, least * 5 // 4)
    return candidates


def _border_error(plan: TreePlan, n: int, beta: float, moments: _Union) -> float:
    """Return what no border, or no interval between borders, is off by, in rows, but for probability β."""
    rates = _RATES / plan.scale
    levels = _levels(plan.fanouts, plan.scale)
    best = float("inf")
    for least in [0, *_least_rows(plan.threshold or 0.0)]:  # a
        nodes = _nodes(plan, n, least)
        lost = 0.0
        if least and plan.threshold is not None:  # P(not G): a child of A is estimated at so many rows too many
            excess = plan.threshold - least + 1
            children = [log(n_nodes * level.fanout) + level.child for n_nodes, level in zip(nodes, levels, strict=True)]
            lost = float(np.exp(np.min(np.logaddexp.reduce(children[:-1], axis=0) - rates * excess)))
        if lost < beta:
            best = min(best, float(np.min((moments(nodes, levels) - log(beta - lost)) / rates)))
    return best


def _border_moments(nodes: list[int], levels: tuple[_Level, ...]) -> FloatArray:
    """Step 3: log of 2 Σ_t exp(b_t), at each rate."""
    terms = [log(2 * n_nodes) + level.borders for n_nodes, level in zip(nodes, levels, strict=True)]
    return np.asarray(np.logaddexp.reduce(terms, axis=0))


def _interval_moments(nodes: list[int], levels: tuple[_Level, ...]) -> FloatArray:
    """Step 4."""
    root = levels[0]
    terms = [log(2) + root.pairs]
    for n_nodes, level in zip(nodes[1:], levels[1:], strict=True):
        terms.append(log(2 * n_nodes) + level.pairs)
    if len(levels) > 1:
        below = [log(n_nodes) + level.borders for n_nodes, level in zip(nodes[1:], levels[1:], strict=True)]
        deep = np.logaddexp.reduce(below, axis=0) - root.largest
        terms.append(root.largest + deep + np.logaddexp(deep, log(2 * root.fanout)))
    return np.asarray(np.logaddexp.reduce(terms, axis=0))


def _nodes(plan: TreePlan, n: int, least: int) -> list[int]:
    """|A| on the level above each level's children: the root, then at most n/a, and at most all."""
    n_nodes, size = [], 1
    for fanout in plan.fanouts:
        n_nodes.append(size if not least or size == 1 else max(1, min(size, n // least)))
        size *= fanout
    return n_nodes


def _border_log_mgf(rates: FloatArray, scale: float, j: int, fanout: int) -> FloatArray:
    """h(j, 0): j children of weight 1 − j/k, the others of weight −j/k."""
    share = j / fanout
    value: FloatArray = j * log_mgf(rates * (1 - share), scale) + (fanout - j) * log_mgf(rates * share, scale)
    return value


class _Level(NamedTuple):
    """Of one level, at each of the rates θ: ``(n_rates,)`` each; they depend on neither n nor the threshold."""

    fanout: int
    largest: FloatArray  # g
    borders: FloatArray  # log Σ_j exp(b) over the borders in a node
    pairs: FloatArray  # the same over pairs of borders in a node, with its first end where it is the root
    child: FloatArray  # log moment of the error of a child's estimate


_Union: TypeAlias = Callable[[list[int], tuple[_Level, ...]], FloatArray]


@lru_cache(maxsize=64)
def _levels(fanouts: tuple[int, ...], scale: float) -> tuple[_Level, ...]:
    """Return the moments of all levels, the root's first."""
    rates = _RATES / scale
    levels: list[_Level] = []
    above = np.zeros_like(rates)  # g of the levels above
    weights: list[tuple[int, float]] = []  # (how many, weight) of the noise in the estimate of a node
    for fanout in fanouts:
        apart = np.array([_border_log_mgf(rates, scale, j, fanout) for j in range(1, fanout)])
        # Of borders 0, …, k − 1 there are k − m pairs m apart; of 1, …, k − 1 there are k − 1 − m.
        n_pairs = np.arange(1, fanout)[::-1] - (1 if levels else 0)
        pairs = np.logaddexp.reduce(apart + np.log(np.maximum(n_pairs, 1e-300))[:, np.newaxis], axis=0)
        passed_on = [(times, weight / fanout) for times, weight in weights]
        weights = [(1, 1 - 1 / fanout), (fanout - 1, 1 / fanout), *passed_on]
        child = np.sum([times * log_mgf(rates * weight, scale) for times, weight in weights], axis=0)
        largest = apart.max(axis=0)
        levels.append(_Level(fanout, largest, above + np.logaddexp.reduce(apart, axis=0), above + pairs, child))
        above = above + largest
    return tuple(levels)
