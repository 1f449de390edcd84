r"""The queries of a sanitizer, :math:`C^\oplus`: as intervals of a line, or as a table of a small domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.concepts.domain import PublicDomain as PublicDomain
from quorate.learners.concepts.domain import grid, public_dichotomies
from quorate.learners.concepts.domain import public_domain as public_domain
from quorate.learners.concepts.line import Intervals, PointFunctions, Thresholds
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.stored_names import stored_as
from quorate.types import IntArray

#: Largest table of queries, in cells (n_queries × n_domain).
MAX_CELLS = 2**24

_OUTSIDE = "points must lie in the domain that was given; some do not"


def bits_and_intervals(concept_class: ConceptClass) -> tuple[int, int]:
    r"""Return the bits of the grid, and how many disjoint intervals a member of :math:`C^\oplus` is made of.

    Two thresholds differ on one interval, two intervals on at most two, two points on two points.

    Raises InvalidParameter if the class is not one on a line.
    """
    if isinstance(concept_class, Thresholds):
        return concept_class.bits, 1
    if isinstance(concept_class, (Intervals, PointFunctions)):
        return concept_class.bits, 2
    raise InvalidParameter(
        "concept_class must be a class on a line (Thresholds, Intervals, PointFunctions) for Tree, "
        f"got {type(concept_class).__name__}",
        parameter="concept_class",
        advice="use Boxes for Rectangles, MWEM or BLR on a small or listed domain",
        instead="Boxes",
    )


def refuse_outside(points: Points, concept_class: ConceptClass, domain: PublicDomain | None) -> None:
    """Refuse points of which some lie outside a domain that was given; a class's own check is all that a grid needs.

    Raises DataRefused if some do. The message holds no value.
    """
    if domain is not None and not _places(concept_class.check(np.array(domain)), points)[1].all():
        raise DataRefused(_OUTSIDE)


@stored_as("quorate.learners.sanitizers.symmetric_difference_queries.XorQueries")
@dataclass(frozen=True, slots=True, eq=False)
class XorQueries:
    r"""The distinct members of :math:`C^\oplus` on a small domain, one of each pair of complements, without ∅.

    A query and its complement err alike, since the number of rows is public, and ∅ never errs.

    Attributes
    ----------
    domain : Points, (n_domain, n_features)
        All points of the domain, in lexicographic order.
    table : NDArray of uint8, (n_queries, n_domain)
        What each query labels each point; the first point is labelled 0.
    """

    domain: Points
    table: NDArray[np.uint8]

    @classmethod
    def of(cls, concept_class: ConceptClass, domain: PublicDomain | None = None) -> XorQueries:
        """Tabulate a class on its grid, or on a domain that is given.

        Raises InvalidParameter if there is neither, or the table would have more than :data:`MAX_CELLS` cells; the
        message holds the number.
        """
        if domain is None and concept_class.domain_size is None:
            raise InvalidParameter(
                f"domain must be given: {type(concept_class).__name__} has no finite one; "
                "list all the points that a row can be"
            )
        points = grid(concept_class) if domain is None else concept_class.check(np.array(domain))
        concepts = public_dichotomies(concept_class, points)
        most = len(concepts)
        cells = most * (most - 1) // 2 * len(points)
        if cells > MAX_CELLS:
            raise InvalidParameter(
                f"concept_class must have at most 2^24 cells (pairs of concepts × points of the domain), got {cells}; "
                "use a coarser grid, or Tree on a line"
            )
        labels = concepts.labels(points)
        first, second = np.triu_indices(len(labels), k=1)
        pairs = labels[first] ^ labels[second]
        pairs ^= pairs[:, :1]  # of two complements the one without the first point
        packed = np.unique(np.packbits(pairs, axis=1), axis=0)
        table = np.unpackbits(packed, axis=1, count=len(points))
        return cls(points, table[table.any(axis=1)])

    def histogram(self, points: Points) -> IntArray:
        """Return how many of the points are each domain point: ``(n_domain,)``.

        Raises DataRefused if there are no points, or some lie outside the domain.
        """
        if not len(points):
            raise DataRefused("points must hold at least 1 row; there is nothing to sanitize")
        places, inside = _places(self.domain, points)
        if not inside.all():
            raise DataRefused(_OUTSIDE)
        histogram = np.bincount(places, minlength=len(self.domain))  # the domain is in lexicographic order
        return histogram.astype(np.int64)

    def counts(self, histogram: IntArray) -> IntArray:
        """Return how many points each query labels 1: ``(n_queries,)``, exact."""
        return self.table.astype(np.int64) @ histogram

    def repeat(self, copies: IntArray, like: NDArray[Any]) -> Points:
        """Return so many copies of each domain point, in the type of `like`."""
        return np.repeat(self.domain, copies, axis=0).astype(like.dtype)


def _places(domain: Points, points: Points) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return where in a domain in lexicographic order each point stands, and whether it is there at all."""
    inside = np.ones(len(points), dtype=bool)
    rank, of_point = np.zeros(len(domain), dtype=np.int64), np.zeros(len(points), dtype=np.int64)
    for mine, theirs in zip(domain.T, points.T, strict=True):  # ranks among the first columns, one more a turn
        column_rank, column_of_point = _ranks(mine, theirs, inside)
        rank, of_point = _ranks(rank * len(mine) + column_rank, of_point * len(mine) + column_of_point, inside)
    return of_point, inside


def _ranks(mine: NDArray[Any], theirs: NDArray[Any], inside: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return the places of both among the distinct values of the first; strike what is none of them off `inside`."""
    values, ranks = np.unique(mine, return_inverse=True)
    places = np.minimum(np.searchsorted(values, theirs), len(values) - 1)
    inside &= values[places] == theirs
    return ranks.astype(np.int64), places.astype(np.int64)
