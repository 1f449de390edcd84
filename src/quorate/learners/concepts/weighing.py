"""Weighted errors as exact integers: signed weights, prefix sums over distinct values, extremes over gaps.

With the sign + for a point labelled 1 and − for one labelled 0, a concept's mistakes are the weight of all points
labelled 1 less the signed weight of the points that it labels 1: for the least error the largest such sum is needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.concepts.protocol import (
    DICHOTOMY_LIMIT,
    ConceptClass,
    Concepts,
    Labels,
    Points,
    refuse_beyond,
    symmetric_difference_vc,
)
from quorate.types import IntArray

MAX_TOTAL = 1 << 59  # of weights, and of |T||W|: no sum or score below leaves int64


def signed_weights(n_points: int, labels: Any, weights: Any = None) -> tuple[int, IntArray]:
    """Return the weight of the points labelled 1, and each point's weight with its label's sign, ``(n_points,)``.

    Raises DataRefused if the labels are not 0 or 1, one for each point; InvalidParameter if the weights (1 each by
    default) are not whole numbers >= 0, one for each point, of at most 2^59 together.
    """
    values = np.asarray(labels)
    if values.shape != (n_points,):
        raise DataRefused("labels must be one for each point, an array (n_points,)")
    if values.dtype.kind not in "biuf" or not ((values == 0) | (values == 1)).all():
        raise DataRefused("labels must be 0 or 1; rows without a label do not belong here")
    positive = values == 1
    sign = np.where(positive, 1, -1)
    if weights is None:
        return int(positive.sum()), sign
    heavy = np.asarray(weights)
    if heavy.shape != (n_points,) or heavy.dtype.kind not in "iu":
        raise InvalidParameter(f"weights must be an array (n_points,) of integers, got {heavy.dtype}")
    if n_points and (heavy.min() < 0 or int(heavy.max()) > MAX_TOTAL or heavy.sum(dtype=np.float64) > MAX_TOTAL):
        raise InvalidParameter("weights must be whole numbers >= 0, of at most 2^59 together; use smaller ones")
    exact = heavy.astype(np.int64)
    return int(exact[positive].sum()), exact * sign


def unit_scores(n_T: int, n_W: int) -> None:
    """Refuse a relabelling whose scores, up to 2 |T||W|, could leave int64."""
    if n_T * n_W > MAX_TOTAL:
        raise InvalidParameter(
            f"|T||W| must be at most 2^59, so that scores are exact, got {n_T} times {n_W}; take smaller samples"
        )


def prefix_sums(values: NDArray[Any], signed: IntArray) -> tuple[NDArray[Any], IntArray]:
    """Return the q distinct values in order, and the weight of the p lowest of them for p = 0 … q."""
    order = np.argsort(values)
    ordered = values[order]
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) if len(values) else order
    return ordered[last], np.concatenate([[0], np.cumsum(signed[order])[last]])


def gaps(borders: NDArray[Any], values: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Return the least and the largest number of distinct `values` below a cut in each gap between distinct `borders`.

    Both sorted; ``(n_borders + 1,)`` each. A cut in gap k has exactly k borders below it; every number between occurs.
    """
    least = np.concatenate([[0], np.searchsorted(values, borders, side="right")])
    largest = np.append(np.searchsorted(values, borders, side="left"), len(values))
    return least, largest


def over_gaps(extreme: np.ufunc, sums: IntArray, least: IntArray, largest: IntArray) -> IntArray:
    """Return the extreme of ``sums[least[k] : largest[k] + 1]`` for each gap k."""
    ends = np.ravel(np.column_stack([least, largest + 1]))  # every other stretch is between two gaps: thrown away
    extremes: IntArray = extreme.reduceat(np.append(sums, sums[-1]), ends)[::2]
    return extremes


class EnumeratedClass(ABC):
    """A concept class whose ``growth(n_points)`` bounds its dichotomies: all that it refuses, it refuses by numbers."""

    @abstractmethod
    def growth(self, n_points: int) -> int:
        """Return an upper bound on the number of dichotomies on `n_points` points."""

    @abstractmethod
    def dichotomies(self, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> Any:
        """Return one concept for every dichotomy on `points`."""

    @abstractmethod
    def _scores(self, concepts: Any, T: Points, W: Points, ones: int, signed: IntArray) -> IntArray:
        """The scores of all dichotomies on T, neither side empty; `ones`, `signed`: :func:`signed_weights` of W."""

    @property
    def xor_vc_dimension(self) -> int:
        """The least bound on VC(C⊕) that the number of dichotomies gives (as in BNS15, Section 3)."""
        return symmetric_difference_vc(self.growth)

    def n_dichotomies(self, points: Points) -> int:
        """Return :meth:`growth` of the number of points."""
        return self.growth(len(points))

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        unit_scores(n_T, n_W)
        refuse_beyond(DICHOTOMY_LIMIT, self.growth(n_T), self)

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[Any, IntArray]:
        """Return the dichotomies on T and their exact scores (LWY25 Algorithm 1): ``(n_concepts,)`` int64."""
        self.refuse_relabelling(len(T), len(W))
        signed, concepts = signed_weights(len(W), labels_of_W), self.dichotomies(T)
        if not (len(T) and len(W)):  # no errors at all
            return concepts, np.zeros(len(concepts), dtype=np.int64)
        return concepts, self._scores(concepts, T, W, *signed)


def relabelling_scores_by_erm(
    concept_class: ConceptClass, T: Points, W: Points, labels_of_W: Labels
) -> tuple[Concepts, IntArray]:
    r"""Return the dichotomies h on T, and :math:`|T||W| \min_f \{dis_T(h, f) + err_W(f)\}` of each, exactly.

    One weighted error is minimised for every dichotomy, with rows of T weighing \|W\| and labelled by h, and rows of W
    weighing \|T\|. The classes of this package with more structure than that are faster; a class of your own may call
    this as its ``relabelling_scores``.

    Returns: the concepts, and ``(n_concepts,)`` int64 scores from 0 to 2 \|T\|\|W\|.

    LWY25 (Li, Wang, Ye), Algorithm 1, step 3.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> concepts = Thresholds(bits=4)
    >>> T, W = concepts.check([3, 9]), concepts.check([5, 6, 12])
    >>> relabelling_scores_by_erm(concepts, T, W, np.array([1, 1, 0]))[1].tolist()
    [3, 0, 0]
    """
    unit_scores(len(T), len(W))
    signed_weights(len(W), labels_of_W)  # refuses what is no label
    concepts = concept_class.dichotomies(T)
    points = np.concatenate([T, W])
    weights = np.repeat(np.array([len(W), len(T)], dtype=np.int64), [len(T), len(W)])
    scores = np.empty(len(concepts), dtype=np.int64)
    for i in range(len(concepts)):
        labels = np.concatenate([concepts[i].labels(T), np.asarray(labels_of_W).astype(np.uint8)])
        best = concept_class.erm(points, labels, weights)
        scores[i] = weights[best.labels(points) != labels].sum()
    return concepts, scores
