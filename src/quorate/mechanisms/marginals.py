r"""Noisy one-way marginals: counts of the values of each column, and trees of counts of its numbers, level by level.

A number's range is cut into quarters, and its parts are halved again and again. Each level counts the units in every
part; then the parts that noise does not explain are halved, as long as the levels that are left can tell their halves
apart. A part that is not halved is counted again by the next level, and the noise averages out. So ranges that hold
nobody are not cut further, bounds may be generous, and no level is spent on nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from quorate.accounting import Composed, DiscreteGaussian, Repeated
from quorate.accounting.calibration import rounded_up_sigma
from quorate.accounting.neighbouring import Relation
from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter
from quorate.mechanisms.answers import VOTE_L2_SENSITIVITY
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

MOST_PARTS: Final = 512  #: of a column; of more, the largest are halved
THRESHOLD: Final = 3  #: standard deviations of noise that a count must have to be believed
MOST_DEPTH: Final = 40
MISSING: Final = 0  #: the node of what is missing; the root is 1, and the halves of node i are 2 i and 2 i + 1

#: How far one unit moves the counts of a column and level: it is in one cell, and its replacement in another.
SENSITIVITY: Final = {"add-or-remove": 1.0, "replace": VOTE_L2_SENSITIVITY}


@stored_as("quorate.mechanisms.marginals.Partition")
@dataclass(frozen=True, slots=True)
class Partition:
    """How a column is cut into cells, of which a unit is in one at most.

    `cells`: at least 1: listed values and a missing one; or the leaves of a tree, 2 to the power of `depth`, and a
    missing one. `depth`: levels of the tree below its root; 0 for a list, whose cells are all counted at once.

    Raises InvalidParameter if a field is out of range.

    Examples
    --------
    >>> Partition.tree(14)
    Partition(cells=16385, depth=14)
    """

    cells: int
    depth: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", count("depth", self.depth))
        object.__setattr__(self, "cells", count("cells", self.cells, at_least=1))
        if self.depth > MOST_DEPTH or (self.depth and self.cells != 2**self.depth + 1):
            raise InvalidParameter(
                f"cells must be 2^depth + 1 in a tree of at most {MOST_DEPTH} levels, got {self.cells} at depth "
                f"{self.depth}; write Partition.tree(depth)"
            )

    @classmethod
    def tree(cls, depth: int) -> Partition:
        """Return a tree of so many levels below its root, and a cell for what is missing."""
        return cls(2 ** count("depth", depth, at_least=1) + 1, depth)

    def cells_of(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the first cell of each node, and the cell behind its last: ``(n_nodes,)`` each. The nodes of a list
        are its cells.
        """
        if not self.depth:
            return nodes, nodes + 1
        shift = self.depth + 1 - np.frexp(np.maximum(nodes, 1))[1]  # by how many levels a node is above the cells
        first = np.where(nodes == MISSING, 2**self.depth, (nodes << shift) - 2**self.depth)
        return first, first + np.where(nodes == MISSING, 1, 1 << shift)


@dataclass(frozen=True, slots=True, eq=False)
class MarginalLevel:
    """What one level counts.

    `number`: of the level, from 1. `nodes`: for each column the nodes that are counted, of which none is part of
    another; none where there is nothing more to count.
    """

    number: int
    nodes: tuple[IntArray, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to count."""
        return not any(len(nodes) for nodes in self.nodes)


#: Levels that were released, each with its noisy counts, column by column.
Levels: TypeAlias = Sequence[tuple[MarginalLevel, Sequence[IntArray]]]


@stored_as("quorate.mechanisms.marginals.NoisyMarginals")
@dataclass(frozen=True, slots=True)
class NoisyMarginals:
    r"""Release one-way marginals of d columns, level after level, with discrete Gaussian noise.

    Level 1 counts all cells of each list, and of each tree the quarters of its range and what is missing; the root has
    no count. Every level after it counts what is missing and all parts of the range, which are disjoint. A part is cut
    into its halves where its count, as all levels before tell it (:func:`estimated_counts`), is at least three of its
    standard deviations, and at least :math:`6 \sigma/\sqrt r` where r levels are left: then each half can have three
    of its own in the end. A column has 512 parts at most.

    `partitions`: one a column, at least one. `mu`: :math:`\mu_m > 0`: all levels together are at most one
    :math:`\mu_m`-GDP release, to within the difference between discrete and continuous noise, which the event's price
    knows. `neighbours` ("add-or-remove", "replace"): for which change of one unit the noise is: :math:`\Delta = 1` for
    one added or removed, :math:`\sqrt2` for one replaced.

    Raises InvalidParameter if a field is out of range; on release, if the counts are not those of the level's nodes.

    Notes
    -----
    Privacy: a unit is in at most one cell of each column. *Given the noisy counts of the levels before*, the nodes of a
    level are fixed, and those of one column are disjoint: adding or removing a unit moves one of its counts by 1 at
    most; replacing it moves two by 1, in different coordinates, or none. That is what
    ``DiscreteGaussian(sigma, 1)`` and ``DiscreteGaussian(sigma, 2 ** 0.5)`` name: one and two unit shifts. A list is
    one such release and a tree of depth D is D of them, each free to depend on those before it, so that their
    composition holds adaptively (the pair of shifted discrete Gaussians dominates every step: Zhu, Dong and Wang 2022,
    Theorem 10). With

    .. math:: \sigma_c = \sqrt d\,\Delta/\mu_m, \qquad \sigma_D = \sqrt{d D}\,\Delta/\mu_m

    each column has :math:`\mu^2 = \mu_m^2/d`, whatever its kind: :math:`D\,\Delta^2/\sigma_D^2 = \Delta^2/\sigma_c^2`.
    Which parts are halved follows from noisy counts alone.

    References
    ----------
    CKS20 (Canonne, Kamath and Steinke, arXiv:2004.00010), Proposition 5; Zhu, Dong and Wang (2022), arXiv:2106.08567.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> marginals = NoisyMarginals((Partition(3), Partition.tree(14)), mu=0.1, neighbours="add-or-remove")
    >>> marginals.event.events[1].times, round(marginals.sigma(marginals.partitions[1]), 2)
    (14, 52.92)
    >>> level = marginals.level(1)
    >>> [nodes.tolist() for nodes in level.nodes]
    [[0, 1, 2], [0, 4, 5, 6, 7]]
    >>> exact = [np.array([700, 300, 0]), np.array([0, 990, 10, 0, 0])]
    >>> noisy = marginals.release_level(level, exact, SeededNoise(0))
    >>> marginals.level(2, [(level, noisy)]).nodes[1].tolist()  # of the other quarters too little is seen
    [0, 5, 6, 7, 8, 9]
    """

    partitions: tuple[Partition, ...]
    mu: float
    neighbours: Relation

    def __post_init__(self) -> None:
        partitions = tuple(self.partitions)
        if not partitions or not all(isinstance(partition, Partition) for partition in partitions):
            raise InvalidParameter("partitions must hold one Partition a column, at least one; got something else")
        object.__setattr__(self, "partitions", partitions)
        object.__setattr__(self, "mu", real("mu", self.mu, above=0))
        one_of("neighbours", self.neighbours, tuple(SENSITIVITY))
        for partition in partitions:
            checked_scale("sqrt(columns * depth) / mu", self.sigma(partition))

    def sigma(self, partition: Partition) -> float:
        """Return the σ of the noise on each count of a column, rounded up."""
        releases = len(self.partitions) * max(partition.depth, 1)
        return rounded_up_sigma(math.sqrt(releases) * SENSITIVITY[self.neighbours] / self.mu)

    @property
    def n_levels(self) -> int:
        """How many levels there are at most."""
        return max(1, *(partition.depth for partition in self.partitions))

    @property
    def event(self) -> Composed:
        """Price of all levels together, for the change that the noise is for."""
        return self.event_for(self.neighbours)

    def event_for(self, neighbours: Relation) -> Composed:
        """Return what all levels release, for a change of one unit that may be another than that of the noise."""
        columns = Counter(partition.depth for partition in self.partitions)
        one_of_depth = {partition.depth: partition for partition in self.partitions}
        return Composed(
            tuple(
                Repeated(
                    DiscreteGaussian(self.sigma(one_of_depth[depth]), SENSITIVITY[neighbours]), max(depth, 1) * times
                )
                for depth, times in sorted(columns.items())
            )
        )

    def release_level(
        self, level: MarginalLevel, counts: Sequence[IntArray], noise: NoiseSource
    ) -> tuple[IntArray, ...]:
        """Return the counts of a level's nodes with noise on each, column by column.

        `counts`: how many units are in each node, exactly.
        """
        if [np.shape(column) for column in counts] != [nodes.shape for nodes in level.nodes]:
            raise InvalidParameter("counts must hold one number for each node of the level, column by column")
        return tuple(
            column + discrete_gaussian(self.sigma(partition), column.shape, noise)
            for partition, column in zip(self.partitions, counts, strict=True)
        )

    def level(self, number: int, before: Levels = ()) -> MarginalLevel:
        """Return what a level counts, as it follows from the noisy counts of those before it alone. One that was lost
        is not among `before`.
        """
        return MarginalLevel(number, tuple(self._nodes(place, number, before) for place in range(len(self.partitions))))

    def _nodes(self, place: int, number: int, before: Levels) -> IntArray:
        """Return what a level counts of one column."""
        partition = self.partitions[place]
        if number > max(partition.depth, 1):
            return np.zeros(0, dtype=np.int64)
        if not partition.depth:
            return np.arange(partition.cells)
        if not before:
            return np.array([MISSING, 4, 5, 6, 7] if partition.depth > 1 else [MISSING, 2, 3])
        return self._halved(place, partition.depth - number + 1, before)

    def _halved(self, place: int, n_left: int, before: Levels) -> IntArray:
        """Return the parts of a tree that a level counts, where so many levels are left, this one among them."""
        partition = self.partitions[place]
        nodes, counts, errors = estimated_counts(place, before)
        least = self.sigma(partition) * THRESHOLD * np.maximum(errors, 2 / math.sqrt(n_left))
        halved = np.flatnonzero((counts >= least) & (nodes != MISSING) & (nodes < 2**partition.depth))
        halved = halved[np.argsort(-counts[halved], kind="stable")][: max(MOST_PARTS - len(nodes), 0)]
        return np.sort(np.concatenate([np.delete(nodes, halved), 2 * nodes[halved], 2 * nodes[halved] + 1]))


def estimated_counts(place: int, levels: Levels) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the smallest parts of a column that were counted, sorted, how many units are in each, and the standard
    deviation of that, in σ: ``(n_parts,)`` each. It is the least-squares estimate by all counts: of a part, of parts
    that it was cut into, and of those that it was cut from. Only single numbers are added and multiplied, in one order,
    so that stored counts give the same parts on every machine.
    """
    every = np.concatenate([level.nodes[place] for level, _ in levels])
    nodes, of = np.unique(every, return_inverse=True)
    times = np.bincount(of)
    counts = np.bincount(of, np.concatenate([noisy[place] for _, noisy in levels])) / times
    variances = 1.0 / times
    at = {node: number for number, node in enumerate(nodes.tolist())}
    cut = [(number, [at[2 * node], at[2 * node + 1]]) for node, number in at.items() if node and 2 * node in at]
    for whole, halves in reversed(cut):  # by a part and what is below it: halves have larger numbers than their whole
        of_halves = variances[halves].sum()
        weight = of_halves / (of_halves + variances[whole])
        counts[whole] += (1 - weight) * (counts[halves].sum() - counts[whole])
        variances[whole] *= weight
    for whole, halves in cut:  # and by what is around it
        shares = variances[halves] / variances[halves].sum()
        counts[halves] += shares * (counts[whole] - counts[halves].sum())
        variances[halves] += shares * (shares * variances[whole] - variances[halves])
    parts = np.delete(np.arange(len(nodes)), [whole for whole, _ in cut])
    return nodes[parts], counts[parts], np.sqrt(variances[parts])
