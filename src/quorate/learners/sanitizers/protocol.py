"""What a sanitizer is: private points in, synthetic points out; its shares of an ε, and rows for an error.

Shares and the noise that they pay for are rounded so that their sum is never above ε.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import real
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.amplification import smallest_count
from quorate.learners.concepts.domain import PublicDomain, grid, public_dichotomies
from quorate.learners.concepts.line import Intervals, PointFunctions, Thresholds
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.noise import NoiseSource
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray


class Sanitizer(Protocol):
    r"""A private release of points on which every pair of concepts differs about as often as on the private ones.

    With :math:`C^\oplus = \{h \oplus f : h, f \in C\}` and :math:`Q_c(D)` the fraction of the points of D that c
    labels 1, a sanitizer errs by :math:`\max_{c \in C^\oplus} |Q_c(D) - Q_c(\tilde D)|` (BNS15 Definition A.2, for
    the class that GenericLearner asks about). Privacy: ε-DP, or (ε, δ)-DP, for replace-one neighbours, the number of
    rows public, up to the :data:`~quorate.noise.TOTAL_VARIATION` of each draw. It never rests on the bounds on the
    error.

    A sanitizer is a frozen value: its fields are public. Whoever calls :meth:`sanitize` has put :meth:`event` into the
    ledger before. One that has no δ, and refuses no row but those outside of its `domain`, may inherit both from here.
    """

    __slots__ = ()

    def check(self, points: Points, concept_class: ConceptClass) -> None:
        """Refuse private rows, all of them, of which :meth:`sanitize` could not take one, before anything is charged.

        A refusal that came later would be an output that nobody accounted for. Raises DataRefused; no value is told.
        """
        refuse_outside(points, concept_class, getattr(self, "domain", None))

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return synthetic points ``(n_synthetic, n_features)``, with repetitions, in the form of `points`."""

    def event(self, epsilon: float) -> PureDP | ApproxDP:
        """Price of one call of :meth:`sanitize`."""
        return PureDP(epsilon)

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        """Return α in [0, 1]: on any `n` rows the error is above α with probability at most `beta`."""

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return a number of rows at which :meth:`error_bound` is at most `alpha`.

        Raises InvalidParameter where no number of rows is enough. GenericLearner needs no more of an
        :class:`AgreeingSanitizer` than its ``agreement_bound`` and ``rows_to_agree``.
        """


def share(epsilon: float, parts: int | Fraction) -> float:
    r"""Return ε divided by `parts`, rounded so that the parts together are never above it, in exact arithmetic."""
    part = float(Fraction(epsilon) / parts)
    while Fraction(part) * parts > Fraction(epsilon):
        part = nextafter(part, 0.0)
    return part


def least_scale(sensitivity: int, epsilon: float) -> float:
    r"""Return the least float λ with :math:`\Delta/\lambda \le \varepsilon`, in exact arithmetic."""
    scale = sensitivity / epsilon
    while Fraction(scale) * Fraction(epsilon) < sensitivity:
        scale = nextafter(scale, inf)
    return checked_scale("scale of the noise, sensitivity / epsilon,", scale)


_MOST_ROWS = 2**40


def least_rows(bound: Callable[[int], float], alpha: float, *, floor: float, remedy: str) -> int:
    """Return a number of rows n up to 2^40 with ``bound(n) <= alpha``: the least, where the bound falls with n.

    `floor`: what the bound tends to with more rows. `remedy`: what the refusal says to do where alpha is not above it.
    """
    if not alpha > floor:
        raise InvalidParameter(
            f"alpha must be > {floor:.4g}, which stays with any number of rows, got {alpha!r}; {remedy}"
        )
    if bound(_MOST_ROWS) > alpha:
        raise InvalidParameter(f"alpha must be larger: {alpha!r} asks for more than 2^40 rows; {remedy}")
    return smallest_count(lambda n: bound(n) <= alpha, 1)


def checked_rows(points: Points, concept_class: ConceptClass) -> Points:
    """Return private rows in the form that the class works on; no rows at all are refused."""
    points = concept_class.check(points)
    if not len(points):
        raise DataRefused("points must hold at least 1 row; there is nothing to sanitize")
    return points


class GridSanitizer(Sanitizer, Protocol):
    """A sanitizer of a grid of any size, whose bounds cost little: rows for an error are searched for."""

    __slots__ = ()

    remedy: ClassVar[str]  # what to do where no number of rows is enough

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return the rows at which :meth:`error_bound` is at most `alpha`."""
        return self._rows_for(alpha, lambda n: self.error_bound(n, concept_class, beta, epsilon))

    def _rows_for(self, alpha: float, bound: Callable[[int], float]) -> int:
        alpha = real("alpha", alpha, above=0, below=1)
        return least_rows(bound, alpha, floor=bound(1 << 60), remedy=self.remedy)


class AgreeingSanitizer(GridSanitizer):
    """One that releases few values a column: concepts that agree on these differ on few rows, and no net is needed."""

    __slots__ = ()

    @abstractmethod
    def most_dichotomies(self, concept_class: ConceptClass) -> int:
        """Return how many concepts differ on the released points at most; public."""

    @abstractmethod
    def agreement_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        """Return α: on any `n` rows, concepts that agree on the released points differ by more but with prob. β."""

    def rows_to_agree(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return the rows at which :meth:`agreement_bound` is at most `alpha`."""
        return self._rows_for(alpha, lambda n: self.agreement_bound(n, concept_class, beta, epsilon))


#: Largest table of queries, in cells (n_queries × n_domain).
MAX_CELLS = 2**24

_OUTSIDE = "points must lie in the domain that was given; some do not"


def bits_and_intervals(concept_class: ConceptClass) -> tuple[int, int]:
    """Return the bits of a line's grid, and how many disjoint intervals a difference of two concepts is made of.

    1 for thresholds, 2 for intervals and for points; raises InvalidParameter if the class is not one on a line.
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
    """Refuse points of which some lie outside a domain that was given; the message holds no value."""
    if domain is not None and not _places(concept_class.check(np.array(domain)), points)[1].all():
        raise DataRefused(_OUTSIDE)


@stored_as("quorate.learners.sanitizers.symmetric_difference_queries.XorQueries")
@dataclass(frozen=True, slots=True, eq=False)
class XorQueries:
    r"""The distinct members of :math:`C^\oplus` on a small domain, one of each pair of complements, without ∅.

    A query and its complement err alike, since the number of rows is public, and ∅ never errs.

    `domain` ``(n_domain, n_features)``: all points of the domain, in lexicographic order. `table` ``(n_queries,
    n_domain)``: what each query labels each point; the first point is labelled 0.
    """

    domain: Points
    table: NDArray[np.uint8]

    @classmethod
    def of(cls, concept_class: ConceptClass, domain: PublicDomain | None = None) -> XorQueries:
        """Tabulate a class on its grid, or on a domain that is given; :data:`MAX_CELLS` cells at most."""
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
        """Return how many of the points are each domain point: ``(n_domain,)``; refused where some lie outside."""
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
