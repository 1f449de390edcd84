"""Thresholds on a grid: 1 below the cut, 0 from it on (THRESH of BNS15, Section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.learners.concepts.protocol import DICHOTOMY_LIMIT, Labels, Points, grid_bits, grid_points, refuse_beyond
from quorate.learners.concepts.weighing import gaps, over_gaps, prefix_sums, signed_weights, unit_scores
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.learners.concepts.thresholds.Threshold")
@dataclass(frozen=True, slots=True)
class Threshold:
    """Label x 1 where ``x < cut``.

    Examples
    --------
    >>> Threshold(3).labels(np.array([[2], [3]])).tolist()
    [1, 0]
    """

    cut: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cut", count("cut", self.cut))

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, 1)`` points, 0 or 1 each."""
        return (points[:, 0] < self.cut).astype(np.uint8)


@stored_as("quorate.learners.concepts.thresholds.ThresholdConcepts")
@dataclass(frozen=True, eq=False)
class ThresholdConcepts:
    """Thresholds in a fixed order, by their cuts ``(n_concepts,)``."""

    cuts: IntArray

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, index: int) -> Threshold:
        return Threshold(self.cuts[index])

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``."""
        return (points[:, 0] < self.cuts[:, np.newaxis]).astype(np.uint8)

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return the weight that each concept labels otherwise, ``(n_concepts,)``, by one sort and prefix sums."""
        ones, signed = signed_weights(len(points), labels, weights)
        distinct, sums = prefix_sums(points[:, 0], signed)
        mistakes: IntArray = ones - sums[np.searchsorted(distinct, self.cuts, side="left")]
        return mistakes


@stored_as("quorate.learners.concepts.thresholds.Thresholds")
@dataclass(frozen=True)
class Thresholds:
    r"""The thresholds :math:`c_j(x) = 1` iff :math:`x < j`, for :math:`0 \le j \le 2^{bits}`.

    Parameters
    ----------
    bits : int
        1 to 62; the domain is :math:`\{0, \dots, 2^{bits} - 1\}`.

    Notes
    -----
    VC dimension 1. On a set P there are ``|P| + 1`` dichotomies, each represented by its lowest cut. Fixed order of
    the class: by the cut.

    References
    ----------
    BNS15 (Beimel, Nissim, Stemmer), Section 3: THRESH_d, with d = `bits`.

    Examples
    --------
    >>> concepts = Thresholds(bits=8)
    >>> points = concepts.check([10, 200, 10])
    >>> list(concepts.dichotomies(points))
    [Threshold(cut=0), Threshold(cut=11), Threshold(cut=201)]
    >>> concepts.erm(points, np.array([1, 0, 0]), weights=np.array([5, 1, 2]))
    Threshold(cut=11)
    """

    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", grid_bits("bits", self.bits))

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    @property
    def vc_dimension(self) -> int:
        """1: of two points the lower is labelled 1 wherever the higher is."""
        return 1

    @property
    def xor_vc_dimension(self) -> int:
        """VC(C⊕) = 2: two thresholds differ on an interval."""
        return 2

    @property
    def domain_size(self) -> int:
        """Number of points of the grid."""
        return 1 << self.bits

    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""
        return min(n_points, self.domain_size) + 1

    def check(self, X: Any) -> IntArray:
        """Return ``(n_points, 1)`` int64 points of the grid, or refuse the table."""
        return grid_points(X, (self.bits,), self)

    def n_dichotomies(self, points: Points) -> int:
        """Return :meth:`growth` of the number of points."""
        return self.growth(len(points))

    def dichotomies(self, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> ThresholdConcepts:
        """Return one concept for every dichotomy on `points`, from the lowest cut to the highest."""
        refuse_beyond(limit, self.n_dichotomies(points), self)
        return ThresholdConcepts(_lowest_cuts(np.unique(points[:, 0])))

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Threshold:
        """Return a concept of least weighted error, in O(n log n); ties go to the lowest cut."""
        _, signed = signed_weights(len(points), labels, weights)
        distinct, sums = prefix_sums(points[:, 0], signed)
        return ThresholdConcepts(_lowest_cuts(distinct))[int(np.argmax(sums))]

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        unit_scores(n_T, n_W)
        refuse_beyond(DICHOTOMY_LIMIT, self.growth(n_T), self)

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[ThresholdConcepts, IntArray]:
        r"""Return the dichotomies on T and their exact scores (LWY25 Algorithm 1), in O(n log n).

        With :math:`N_k` rows of T below the cuts of gap k, and :math:`b_k` the least number of mistakes on W of a cut
        in it, the score of gap h is :math:`\min_k |W||N_h - N_k| + |T| b_k`: the smaller of two running minima.
        """
        self.refuse_relabelling(len(T), len(W))
        ones, signed = signed_weights(len(W), labels_of_W)
        concepts = self.dichotomies(T)
        borders, below = prefix_sums(T[:, 0], np.ones(len(T), dtype=np.int64))
        distinct, sums = prefix_sums(W[:, 0], signed)
        own = len(T) * (ones - over_gaps(np.maximum, sums, *gaps(borders, distinct)))
        rows = len(W) * below
        from_below = np.minimum.accumulate(own - rows) + rows
        from_above = np.minimum.accumulate((own + rows)[::-1])[::-1] - rows
        return concepts, np.minimum(from_below, from_above)


def _lowest_cuts(distinct: IntArray) -> IntArray:
    """Return the lowest cut of every dichotomy: 0, and one behind each point."""
    return np.concatenate([np.zeros(1, dtype=np.int64), distinct + 1])
