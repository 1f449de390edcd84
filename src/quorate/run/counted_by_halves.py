"""Marginals of runs that were begun when a level counted the halves of large parts alone, and each part once: which
parts their levels count, and what rows are drawn from. No new run is made so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from quorate.mechanisms import MarginalLevel, NoisyMarginals, Partition
from quorate.mechanisms.marginals import MISSING, THRESHOLD, Levels
from quorate.types import FloatArray, IntArray

_MOST_OPENED: Final = 512  # nodes of a column and level that are looked into, the largest
_N_FIRST: Final = 3  # numbers of a tree's first level: both halves and what is missing


def counted_by_halves(marginals: NoisyMarginals, answers: Sequence[Sequence[Sequence[int]]]) -> bool:
    """Tell whether stored levels, if there are any, are of such a run: today trees of more than one level begin with
    quarters.
    """
    return any(
        partition.depth > 1 and len(column) == _N_FIRST
        for partition, column in zip(marginals.partitions, answers[0] if answers else (), strict=False)
    )


def level_by_halves(marginals: NoisyMarginals, number: int, before: Levels) -> MarginalLevel:
    """Return what a level counts: the halves of parts whose count, one level above, is three times the noise. Counts of
    a level that was lost are zeros, and end the trees.
    """
    columns = (
        _nodes(partition, place, marginals.sigma(partition), before)
        for place, partition in enumerate(marginals.partitions)
    )
    return MarginalLevel(number, tuple(columns))


def _nodes(partition: Partition, place: int, sigma: float, before: Levels) -> IntArray:
    if not before:
        return np.array([2, 3, MISSING]) if partition.depth else np.arange(partition.cells)
    nodes, noisy = before[-1][0].nodes[place], before[-1][1][place]
    if len(before) >= partition.depth:
        return nodes[:0]
    large = (noisy >= THRESHOLD * sigma) & (nodes != MISSING)
    nodes, noisy = nodes[large], noisy[large]
    largest = np.sort(np.argsort(-noisy, kind="stable")[:_MOST_OPENED])
    return np.asarray(2 * nodes[largest][:, None] + np.arange(2)).ravel()


def parts_by_halves(place: int, sigma: float, levels: Levels) -> tuple[IntArray, FloatArray]:
    """Return the parts of a number's range that are drawn from, and how often: by going down from the root, in
    proportion to what is believed to be in both halves.
    """
    nodes, shares = np.ones(1, dtype=np.int64), np.ones(1)
    ended: list[tuple[IntArray, FloatArray]] = []
    for children, believed in _families(place, sigma, levels):
        totals = believed.sum(axis=1)
        parents = children[:, 0] >> 1
        opened = np.isin(nodes, parents[totals > 0])
        ended.append((nodes[~opened], shares[~opened]))
        below = np.searchsorted(parents, nodes[opened])
        shares = (shares[opened, None] * believed[below] / totals[below, None]).ravel()
        nodes = children[below].ravel()
        ended.append((nodes[nodes == MISSING], shares[nodes == MISSING]))
        kept = (shares > 0) & (nodes != MISSING)
        nodes, shares = nodes[kept], shares[kept]
    ended.append((nodes, shares))
    return np.concatenate([parts for parts, _ in ended]), np.concatenate([often for _, often in ended])


def _families(place: int, sigma: float, levels: Levels) -> list[tuple[IntArray, FloatArray]]:
    """Return the halves of each part that was looked into, level by level, and what is believed to be in each. A half
    is believed from three standard deviations of the noise, and from half of that beside a sibling that is and that is
    not narrowed down: then a small count is the tail of what is there.
    """
    families: list[tuple[IntArray, FloatArray]] = []
    known, counts, variance = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)  # of the level above
    for level, noisy in levels:
        if not len(level.nodes[place]):
            break
        size = 3 if level.number == 1 else 2
        children, estimates = level.nodes[place].reshape(-1, size), noisy[place].reshape(-1, size).astype(np.float64)
        variances = np.ones(len(children))
        if len(known):  # the best estimate of two numbers by three: the halves and their whole
            above = np.searchsorted(known, children[:, 0] >> 1)
            gain = 1 / (variance[above] + size)
            estimates += (gain * (counts[above] - estimates.sum(axis=1)))[:, None]
            variances -= gain
        families.append((children, estimates))
        known, counts, variance = children[:, :2].ravel(), estimates[:, :2].ravel(), np.repeat(variances, 2)
    narrowed = [
        (children[:, 0] >> 1)[(estimates[:, :2] < THRESHOLD / 2 * sigma).any(axis=1)]
        for children, estimates in families[1:]
    ]
    believed = []
    for (children, estimates), ones in zip(families, [*narrowed, np.zeros(0, dtype=np.int64)], strict=True):
        siblings, least = children[:, 1::-1], np.full(estimates.shape, float(THRESHOLD))
        beside = (estimates[:, 1::-1] >= THRESHOLD * sigma) & ~np.isin(siblings, ones)
        least[:, :2][beside] = THRESHOLD / 2
        believed.append((children, np.where(estimates >= least * sigma, estimates, 0.0)))
    return believed
