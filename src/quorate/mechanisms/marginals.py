r"""Noisy one-way marginals: counts of the values of each column, and trees of counts of its numbers, level by level.

A number's range is halved again and again. A level of such a tree counts the units in the two halves of each part whose
noisy count, one level above, was large; so ranges that hold nobody are never looked into, and bounds may be generous.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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
from quorate.types import IntArray

MOST_OPENED: Final = 512  #: nodes of a column and level that are looked into, the largest
THRESHOLD: Final = 3  #: standard deviations of noise that a count must have to be looked into
MOST_DEPTH: Final = 40

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

    def cells_of(self, nodes: IntArray, level: int) -> tuple[IntArray, IntArray]:
        """Return the first cell of each node of a level, and the cell behind its last: ``(n_nodes,)`` each.

        Node i of level l is the i-th part of 2^l. What is missing, which has its count at level 1, is the one behind
        them.
        """
        shift = self.depth - level if self.depth else 0
        return nodes << shift, (nodes + 1) << shift


@dataclass(frozen=True, slots=True, eq=False)
class MarginalLevel:
    """What one level counts.

    `number`: of the level, from 1. `nodes`: for each column the nodes that are counted, in order; none where its tree
    has ended.
    """

    number: int
    nodes: tuple[IntArray, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to count."""
        return not any(len(nodes) for nodes in self.nodes)


@stored_as("quorate.mechanisms.marginals.NoisyMarginals")
@dataclass(frozen=True, slots=True)
class NoisyMarginals:
    r"""Release one-way marginals of d columns, level after level, with discrete Gaussian noise.

    Level 1 counts all cells of each list, and of each tree the two halves and what is missing; the root has no count.
    Level l + 1 counts the two children of each node of level l whose *noisy* count is at least three times the noise,
    the 512 largest of a column at most.

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
    one such release and a tree of depth D at most D of them, each free to depend on those before it, so that their
    composition holds adaptively (the pair of shifted discrete Gaussians dominates every step: Zhu, Dong and Wang 2022,
    Theorem 10). With

    .. math:: \sigma_c = \sqrt d\,\Delta/\mu_m, \qquad \sigma_D = \sqrt{d D}\,\Delta/\mu_m

    each column has :math:`\mu^2 = \mu_m^2/d`, whatever its kind: :math:`D\,\Delta^2/\sigma_D^2 = \Delta^2/\sigma_c^2`.
    Which nodes are opened, and where a tree ends, follows from noisy counts alone.

    References
    ----------
    CKS20 (Canonne, Kamath and Steinke, arXiv:2004.00010), Proposition 5; Zhu, Dong and Wang (2022), arXiv:2106.08567.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> marginals = NoisyMarginals((Partition(3), Partition.tree(14)), mu=0.1, neighbours="add-or-remove")
    >>> marginals.event.events[1].times, round(marginals.sigma(marginals.partitions[1]), 2)
    (14, 52.92)
    >>> level = marginals.first
    >>> [nodes.tolist() for nodes in level.nodes]
    [[0, 1, 2], [0, 1, 2]]
    >>> exact = [np.array([700, 300, 0]), np.array([990, 10, 0])]
    >>> noisy = marginals.release_level(level, exact, SeededNoise(0))
    >>> marginals.after(level, noisy).nodes[1].tolist()  # of the other half too little is seen
    [0, 1]
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

    @property
    def first(self) -> MarginalLevel:
        """The first level: all cells of lists; of trees both halves and what is missing."""
        return MarginalLevel(
            1, tuple(np.arange(3 if partition.depth else partition.cells) for partition in self.partitions)
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

    def after(self, level: MarginalLevel, noisy: Sequence[IntArray]) -> MarginalLevel:
        """Return the level below, as it follows from noisy counts alone; nothing is left of trees that ended."""
        opened = (
            self._opened(partition, level.number, nodes, released)
            for partition, nodes, released in zip(self.partitions, level.nodes, noisy, strict=True)
        )
        return MarginalLevel(level.number + 1, tuple(opened))

    def _opened(self, partition: Partition, level: int, nodes: IntArray, noisy: IntArray) -> IntArray:
        """Return the children of the nodes of one column that are looked into."""
        if level >= partition.depth:
            return nodes[:0]
        large = (noisy >= THRESHOLD * self.sigma(partition)) & (nodes < 2**level)  # what is missing has no halves
        nodes, noisy = nodes[large], noisy[large]
        largest = np.sort(np.argsort(-noisy, kind="stable")[:MOST_OPENED])
        return (2 * nodes[largest][:, None] + np.arange(2)).ravel()

    def nothing(self, level: MarginalLevel) -> tuple[IntArray, ...]:
        """Return what a level counts for that was drawn and never stored: zeros, so that trees end there."""
        return tuple(np.zeros(len(nodes), dtype=np.int64) for nodes in level.nodes)
