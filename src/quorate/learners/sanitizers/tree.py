r"""Tree: synthetic points on a line from a noisy tree of prefix counts; a grid of 2^32 points in moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from quorate.arguments import count, real
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.sanitizers.noisy_tree import TreePlan, noisy_prefix_counts, quantile_points
from quorate.learners.sanitizers.protocol import GridSanitizer, bits_and_intervals, checked_rows
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import FloatArray


@stored_as("quorate.learners.sanitizers.tree.Tree")
@dataclass(frozen=True, slots=True)
class Tree(GridSanitizer):
    r"""Sanitize points on a line: thresholds, intervals and points of a grid of :math:`2^{bits}`.

    A tree over the grid, most of it never opened, gets discrete Laplace noise on the counts of all children of each
    open node; the estimates of all prefix counts are made consistent, and the synthetic points are their quantiles.

    `n_synthetic`: m, synthetic points, at least 1. An interval is off by at most 1/m on their account, and there are no
    more dichotomies on them than on m points. None makes as many as there are rows.

    Only a class on a line is taken (Thresholds, Intervals, PointFunctions), and at least one point. Privacy: ε-DP for
    one replaced record, n public (:mod:`quorate.learners.sanitizers.noisy_tree`). Error: with x from
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
