"""Decision stumps: one column of real numbers, a threshold, a direction."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count, one_of, real
from quorate.learners.concepts.protocol import (
    EnumeratedClass,
    Labels,
    Points,
    gaps,
    over_gaps,
    prefix_sums,
    real_points,
    refuse_work,
    signed_weights,
)
from quorate.stored_names import stored_as
from quorate.theory.bns15 import sauer
from quorate.types import FloatArray, IntArray

Side = Literal["<=", ">"]

_BLOCK_CELLS = 1 << 20


@stored_as("quorate.learners.concepts.stumps.Stump")
@dataclass(frozen=True, slots=True)
class Stump:
    """Label x 1 where ``x[column] <= threshold``, or where it is above.

    Examples
    --------
    >>> Stump(1, 2.5, ">").labels(np.array([[0.0, 2.5], [0.0, 3.0]])).tolist()
    [0, 1]
    """

    column: int
    threshold: float
    side: Side

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", count("column", self.column))
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        object.__setattr__(self, "side", one_of("side", self.side, ("<=", ">")))

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, n_features)`` points, 0 or 1 each."""
        inside = (
            points[:, self.column] <= self.threshold if self.side == "<=" else points[:, self.column] > self.threshold
        )
        return np.asarray(inside, dtype=np.uint8)


@stored_as("quorate.learners.concepts.stumps.StumpConcepts")
@dataclass(frozen=True, eq=False)
class StumpConcepts:
    """Stumps in a fixed order: column, threshold and direction ``(n_concepts,)`` each."""

    columns: IntArray
    thresholds: FloatArray
    above: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, index: int) -> Stump:
        side: Side = ">" if self.above[index] else "<="
        return Stump(int(self.columns[index]), float(self.thresholds[index]), side)

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``."""
        below = points.T[self.columns] <= self.thresholds[:, np.newaxis]
        return np.asarray(below != self.above[:, np.newaxis], dtype=np.uint8)

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return the weight that each concept labels otherwise, ``(n_concepts,)``: a sort for each column."""
        ones, signed = signed_weights(len(points), labels, weights)
        inside = np.empty(len(self), dtype=np.int64)
        for j in np.unique(self.columns):
            here = self.columns == j
            distinct, sums = prefix_sums(points[:, j], signed)
            below = sums[np.searchsorted(distinct, self.thresholds[here], side="right")]
            inside[here] = np.where(self.above[here], sums[-1] - below, below)
        return ones - inside


@stored_as("quorate.learners.concepts.stumps.Stumps")
@dataclass(frozen=True)
class Stumps(EnumeratedClass):
    r"""Decision stumps on real columns: :math:`x_j \le t` or :math:`x_j > t`, for every column j and real t.

    `n_features`: number d of columns.

    On n points there are at most ``2 d (n - 1) + 2`` dichotomies. Each is represented by the first in this order: by
    the column, then by the threshold among the values of the points, the lowest first, then ``<=`` before ``>``. So
    both constants stand in column 0, at its largest value. The error is minimised in the same order.

    Leboeuf, LeBlanc and Marchand (2020), Decision trees as partitioning machines, for the VC dimension; Gey (2018),
    Vapnik–Chervonenkis dimension of axis-parallel cuts, arXiv:1203.0193.

    Examples
    --------
    >>> concepts = Stumps(n_features=2)
    >>> points = concepts.check([[0.0, 5.0], [1.0, 5.0]])
    >>> [str(concept.threshold) + concept.side for concept in concepts.dichotomies(points)]
    ['0.0<=', '0.0>', '1.0<=', '1.0>']
    >>> concepts.erm(points, np.array([0, 1]))
    Stump(column=0, threshold=0.0, side='>')
    """

    n_features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_features", count("n_features", self.n_features, at_least=1))

    @property
    def vc_dimension(self) -> int:
        r"""The largest k with :math:`\binom{k}{\lfloor k/2 \rfloor} \le 2 d` (Leboeuf et al. 2020).

        No more than that: of the subsets of half the points, each column has at most two between a stump and its
        opposite. 2 for one column, and of the order of log d.
        """
        k = 1
        while comb(k + 1, (k + 1) // 2) <= 2 * self.n_features:
            k += 1
        return k

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        return min(sauer(n_points, self.vc_dimension), 2 * self.n_features * max(0, n_points - 1) + 2)

    def check(self, X: Any) -> FloatArray:
        """Return ``(n_points, n_features)`` finite float64 points, or refuse the table."""
        return real_points(X, self.n_features, self)

    def _dichotomies(self, points: Points) -> StumpConcepts:
        """In O(d n log n + d² n)."""
        if not len(points):
            return StumpConcepts(np.zeros(1, dtype=np.int64), np.zeros(1), np.ones(1, dtype=np.bool_))
        cuts = [_Cuts(points[:, j]) for j in range(self.n_features)]
        columns, thresholds = [], []
        for j, cut in enumerate(cuts):
            new = cut.below < (len(points) + 1 if j == 0 else len(points))  # the constants belong to column 0
            for earlier in cuts[:j]:
                new &= ~cut.same_as_some(earlier)
            thresholds.append(cut.values[new])
            columns.append(np.full(len(thresholds[-1]), j))
        n_cuts = sum(map(len, columns))
        return StumpConcepts(
            np.repeat(np.concatenate(columns), 2),
            np.repeat(np.concatenate(thresholds), 2),
            np.tile(np.array([False, True]), n_cuts),
        )

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Stump:
        """Return a concept of least weighted error, in O(d n log n): the first in the order of the class."""
        _, signed = signed_weights(len(points), labels, weights)
        best, stump = -int(np.abs(signed).sum()) - 1, Stump(0, 0.0, ">")
        for j in range(self.n_features if len(points) else 0):
            distinct, sums = prefix_sums(points[:, j], signed)
            inside = np.column_stack([sums[1:], sums[-1] - sums[1:]]).ravel()
            first = int(np.argmax(inside))
            if inside[first] > best:
                best, stump = int(inside[first]), Stump(j, float(distinct[first // 2]), (">" if first % 2 else "<="))
        return stump

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        super().refuse_relabelling(n_T, n_W)
        refuse_work(self.growth(n_T) * self.n_features * n_T, self)

    def _scores(self, concepts: StumpConcepts, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        r"""The scores of all dichotomies.

        Within a gap between two values of T the best stump on W does not depend on the dichotomy: it is looked for
        once. Then each dichotomy is held against each gap, O(d \|T\|) a dichotomy.
        """
        scores = np.zeros(len(concepts), dtype=np.int64)
        columns = [_Column(T[:, j], W[:, j], ones, signed) for j in range(self.n_features)]
        step = max(1, _BLOCK_CELLS // len(T))
        for start in range(0, len(concepts), step):
            block = slice(start, start + step)
            on_T = StumpConcepts(concepts.columns[block], concepts.thresholds[block], concepts.above[block]).labels(T)
            scores[block] = np.min([column.least_scores(on_T) for column in columns], axis=0)
        return scores


class _Cuts:
    """The ways in which thresholds part the points by one column."""

    def __init__(self, values: FloatArray) -> None:
        n = len(values)
        self.order = np.argsort(values, kind="stable")
        ordered = values[self.order]
        self.below = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) + 1  # points up to each value
        self.values = ordered[self.below - 1]
        self.place = np.empty(n, dtype=np.int64)
        self.place[self.order] = np.arange(n)
        self.is_cut = np.zeros(n + 1, dtype=np.bool_)
        self.is_cut[self.below] = True

    def same_as_some(self, other: _Cuts) -> NDArray[np.bool_]:
        """Tell which cuts part the points into the same two sets as some cut of the other column.

        The p lowest points here are the p lowest there where none has a place beyond p there, and they are the p
        highest there where none has a place before the last p.
        """
        places = other.place[self.order]
        n, p = len(places), self.below
        lowest = (np.maximum.accumulate(places)[p - 1] == p - 1) & other.is_cut[p]
        highest = (np.minimum.accumulate(places)[p - 1] == n - p) & other.is_cut[n - p]
        return cast("NDArray[np.bool_]", lowest | highest)


class _Column:
    """The best stumps on W in one column, for each gap between values of T."""

    def __init__(self, T: FloatArray, W: FloatArray, ones: int, signed: IntArray) -> None:
        self.n_T, self.n_W = len(T), len(W)
        self.order = np.argsort(T, kind="stable")
        borders, self.below = prefix_sums(T, np.ones(len(T), dtype=np.int64))
        distinct, sums = prefix_sums(W, signed)
        between = gaps(borders, distinct)
        self.errors_below = ones - over_gaps(np.maximum, sums, *between)
        self.errors_above = ones - int(sums[-1]) + over_gaps(np.minimum, sums, *between)

    def least_scores(self, on_T: NDArray[np.uint8]) -> IntArray:
        """Return the least score over the stumps of this column, for dichotomies ``(n_concepts, n_T)``."""
        steps = np.zeros((len(on_T), self.n_T + 1), dtype=np.int64)
        np.cumsum(1 - 2 * on_T[:, self.order].astype(np.int64), axis=1, out=steps[:, 1:])
        differ = on_T.sum(axis=1, dtype=np.int64)[:, np.newaxis] + steps[:, self.below]  # from "<=" in each gap
        low = (self.n_W * differ + self.n_T * self.errors_below).min(axis=1)
        high = (self.n_W * (self.n_T - differ) + self.n_T * self.errors_above).min(axis=1)
        return cast("IntArray", np.minimum(low, high))
