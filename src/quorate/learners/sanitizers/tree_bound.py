r"""How far the prefix counts of a noisy tree are from the true ones: a bound with every constant.

Let :math:`F(t)` be the number of rows below t and :math:`\hat F(t)` its estimate (:mod:`quorate.learners.sanitizers
.noisy_tree`), before it is made monotone, which costs nothing.

**1. Noise on a border.** Say t lies in child j of a node of k children, at the share u of its width, on each level.
Child i gets :math:`Z_i - \bar Z` more than its share of what its parent gets too much. By linearity the error at t is
:math:`\sum_l \sum_i w_{l,i} Z_{l,i}` with, for :math:`s = (j + u)/k`,

    w = 1 − s for i < j,   w = u − s for i = j,   w = −s for i > j;   |w| ≤ 1.

So :math:`E e^{\theta\,error} = \prod_l e^{h_l(j_l, u_l)}`, where h is a sum of :math:`\log E e^{\theta w Z}`, convex
and even in w, and w is affine in u: the largest h over u is at u = 0 or 1, that is at the border of a child, and
:math:`g_l = \max_j h_l(j, 0)` bounds level l wherever t is. A border of level l has u = 0 there, and no noise from
below.

**2. Which nodes are opened.** Fix a whole number a ≥ 1, and let A be the nodes that truly hold at least a rows: at most
n/a of them on a level, fixed before any noise is drawn, and with a node its ancestors. *Imagine* the children of all of
A with noise, the same noise for those that are really opened. Let G be the event that no child of A with fewer than a
rows has an estimate above the threshold τ. On G, by induction down the tree, every opened node is in A, so every
border of the estimate is a border of a child of A. Both bounds below are over this fixed set, so nothing is lost to the
adaptive choice.

    P(not G) ≤ Σ_l |children of A on level l| · E e^{θ e} · e^{−θ(τ − a + 1)},

e being the error of a child's estimate: :math:`Z_j - \bar Z` and the 1/k of its parent's.

**3. Borders.** On G, no border is off by more than x but with probability at most
:math:`2 \sum_l |A_l| \sum_{j=1}^{k-1} e^{g_1 + … + g_{l-1} + h_l(j, 0)} e^{-\theta x}` (Chernoff, both signs). With
a = 0 the sum is over all nodes and G is not needed; so it is where there is no threshold.

**4. Intervals.** The error of an interval is the difference of two borders' errors. Where both lie in one node, its
children inside the interval weigh 1 − δ and the others −δ, δ being the share of the interval: as in step 1 that is at
most g, and :math:`h(m, 0)` for borders m children apart. Below the level on which they part, they meet different nodes,
and so independent noise. The root they always share: with :math:`b_t` the exponent of a border in step 3,

    P(some interval is off by more than x) e^{θx} ≤ 2 Σ_m (k_1 − m) e^{h_1(m, 0)}              both on the first level
        + e^{g_1} D (D + 2 k_1),   D = Σ e^{b_t − g_1} over the borders t below it              one below it, or both
        + 2 Σ_{l>1} |A_l| Σ_m (k_l − 1 − m) e^{g_1 + … + g_{l−1} + h_l(m, 0)}                   both in one node

(k_1 counts the root's borders and its first end, which is never off; an interval up to its last end errs as its
complement does. Pairs of one node are counted apart, as the middle term might not cover them.) That is less than twice
the largest error of a border.

**5. Inside a cell** that was not opened, the estimate rises by at most τ (it has an estimate of at most τ, and making
it monotone only lowers a rise), and half of it is put at either end: whatever the rows do there, τ/2 more for each end
of an interval. Making estimates monotone keeps all errors between the least and the largest of before, so it makes no
interval worse either.

A bound is the least over a and over a grid of θ; each of them is a bound by itself. Everything is a function of public
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log
from typing import NamedTuple, TypeAlias

import numpy as np

from quorate.learners.sanitizers.noisy_tree import TreePlan
from quorate.types import FloatArray

_RATES = np.linspace(0.01, 0.995, 198)  # θλ
_FLOAT_SLACK = 1e-9  # relative; far above what rounding does to these sums


def prefix_error(plan: TreePlan, n: int, beta: float) -> float:
    r"""Return x: with probability at least 1 − β no prefix count is off by more than x rows, anywhere on the grid.

    Parameters
    ----------
    plan : TreePlan
        The public side of the tree.
    n : int
        Number of rows, at least 1.
    beta : float
        β in (0, 1).

    Examples
    --------
    >>> round(prefix_error(TreePlan.for_budget(bits=32, n=35_000, epsilon=1.0), 35_000, beta=0.1))
    811
    >>> round(prefix_error(TreePlan.for_budget(bits=4, n=1000, epsilon=1.0), 1000, beta=0.1))
    19
    """
    threshold = plan.threshold or 0.0
    return min(float(n), (_border_error(plan, n, beta, _border_moments) + threshold / 2) * (1 + _FLOAT_SLACK))


def interval_error(plan: TreePlan, n: int, beta: float) -> float:
    r"""Return x: with probability at least 1 − β no count of an interval is off by more than x rows.

    Parameters are those of :func:`prefix_error`.

    Examples
    --------
    >>> round(interval_error(TreePlan.for_budget(bits=32, n=35_000, epsilon=1.0), 35_000, beta=0.1))
    1477
    >>> round(interval_error(TreePlan.for_budget(bits=4, n=1000, epsilon=1.0), 1000, beta=0.1))
    24
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
    found, least = [], 1
    while least < threshold:
        found.append(least)
        least = max(least + 1, least * 5 // 4)
    return found


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
            children = [log(each * level.fanout) + level.child for each, level in zip(nodes, levels, strict=True)]
            lost = float(np.exp(np.min(np.logaddexp.reduce(children[:-1], axis=0) - rates * excess)))
        if lost < beta:
            best = min(best, float(np.min((moments(nodes, levels) - log(beta - lost)) / rates)))
    return best


def _border_moments(nodes: list[int], levels: tuple[_Level, ...]) -> FloatArray:
    """Step 3: log of 2 Σ_t exp(b_t), at each rate."""
    terms = [log(2 * each) + level.borders for each, level in zip(nodes, levels, strict=True)]
    return np.asarray(np.logaddexp.reduce(terms, axis=0))


def _interval_moments(nodes: list[int], levels: tuple[_Level, ...]) -> FloatArray:
    """Step 4."""
    root = levels[0]
    terms = [log(2) + root.pairs]
    for each, level in zip(nodes[1:], levels[1:], strict=True):
        terms.append(log(2 * each) + level.pairs)
    if len(levels) > 1:
        below = [log(each) + level.borders for each, level in zip(nodes[1:], levels[1:], strict=True)]
        deep = np.logaddexp.reduce(below, axis=0) - root.largest
        terms.append(root.largest + deep + np.logaddexp(deep, log(2 * root.fanout)))
    return np.asarray(np.logaddexp.reduce(terms, axis=0))


def _nodes(plan: TreePlan, n: int, least: int) -> list[int]:
    """|A| on the level above each level's children: the root, then at most n/a, and at most all."""
    found, size = [], 1
    for fanout in plan.fanouts:
        found.append(size if not least or size == 1 else max(1, min(size, n // least)))
        size *= fanout
    return found


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
    found: list[_Level] = []
    above = np.zeros_like(rates)  # g of the levels above
    weights: list[tuple[int, float]] = []  # (how many, weight) of the noise in the estimate of a node
    for fanout in fanouts:
        apart = np.array([_border_log_mgf(rates, scale, j, fanout) for j in range(1, fanout)])
        # Of borders 0, …, k − 1 there are k − m pairs m apart; of 1, …, k − 1 there are k − 1 − m.
        n_pairs = np.arange(1, fanout)[::-1] - (1 if found else 0)
        pairs = np.logaddexp.reduce(apart + np.log(np.maximum(n_pairs, 1e-300))[:, np.newaxis], axis=0)
        passed_on = [(times, weight / fanout) for times, weight in weights]
        weights = [(1, 1 - 1 / fanout), (fanout - 1, 1 / fanout), *passed_on]
        child = np.sum([times * log_mgf(rates * weight, scale) for times, weight in weights], axis=0)
        largest = apart.max(axis=0)
        found.append(_Level(fanout, largest, above + np.logaddexp.reduce(apart, axis=0), above + pairs, child))
        above = above + largest
    return tuple(found)
