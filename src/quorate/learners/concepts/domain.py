"""All points of a small grid, where a learner or a sanitizer has to list them; and C⊕, the differences of two concepts.

C⊕ is what GenericLearner's sanitized points must answer for (BNS15, Section 3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.errors import InvalidParameter
from quorate.learners.concepts.protocol import (
    DICHOTOMY_LIMIT,
    Concept,
    ConceptClass,
    Concepts,
    Labels,
    Points,
    refuse_beyond,
    refuse_work,
    relabelling_scores_by_erm,
    signed_weights,
    symmetric_difference_vc,
    unit_scores,
)
from quorate.stored_names import stored_as
from quorate.theory.bns15 import sauer
from quorate.types import IntArray

#: All the points that a row can be, in lexicographic order: public.
PublicDomain: TypeAlias = tuple[tuple[float, ...], ...]

#: Largest domain that is tabulated, in points.
MAX_DOMAIN = 2**12


def grid(concept_class: ConceptClass) -> Points:
    """Return all points of a grid ``(n_domain, n_features)``, :data:`MAX_DOMAIN` at most, in lexicographic order."""
    bits = getattr(concept_class, "bits", None)
    size = concept_class.domain_size
    if bits is None or size is None:
        raise InvalidParameter(
            f"concept_class must have a finite grid (a field `bits`), got {type(concept_class).__name__}; "
            "take a class on a grid"
        )
    if size > MAX_DOMAIN:
        raise InvalidParameter(
            parameter="concept_class",
            got=size,
            expected=f"a class whose domain has at most {MAX_DOMAIN} points",
            advice="use a coarser grid, list the points that a row can be (domain=), or let GenericLearner sanitize "
            "rows: Tree on a line, Boxes for Rectangles",
            instead="domain",
        )
    widths = (bits,) * concept_class.n_features if isinstance(bits, int) else tuple(bits)
    return np.indices([2**width for width in widths]).reshape(len(widths), -1).T.astype(np.int64)


def n_listed(concepts: ConceptClass, domain: Any) -> int | None:
    """Return how many points a listed domain has; None where none is given, or it is the whole grid of the class."""
    if domain is None:
        return None
    n_points = len({tuple(point) for point in np.asarray(domain).tolist()})
    return None if n_points == concepts.domain_size else n_points


def public_dichotomies(concepts: ConceptClass, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> Concepts:
    """Return one concept for every dichotomy on points that are *public*: their real number is held against the limit.

    Where points may be private, a class refuses by how many they are alone. A class with ``growth_on(points)`` says by
    it how many dichotomies there may be. Raises InvalidParameter with the number in the message.
    """
    by_values: Callable[[Points], int] | None = getattr(concepts, "growth_on", None)
    if by_values is not None:
        refuse_beyond(limit, by_values(points), concepts)
        dichotomies = concepts.dichotomies(points, limit=max(limit, concepts.n_dichotomies(points)))
    else:
        dichotomies = concepts.dichotomies(points, limit=max(limit, DICHOTOMY_LIMIT))
    refuse_beyond(limit, len(dichotomies), concepts)
    return dichotomies


def public_domain(domain: Any, *, most: int = MAX_DOMAIN) -> PublicDomain:
    """Return a list of at least one and at most `most` points, each once, as a plain value in lexicographic order."""
    table = np.asarray(domain)
    table = table[:, np.newaxis] if table.ndim == 1 else table
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iuf" or not np.isfinite(table).all():
        raise InvalidParameter(
            "domain must be a table (n_points, n_features) of finite numbers, all the points that a row can be"
        )
    distinct = np.unique(table.astype(np.float64), axis=0)
    if not len(distinct) == len(table) <= most:
        raise InvalidParameter(
            f"domain must hold each point once, at most {most}, got {len(table)} rows with {len(distinct)} points"
        )
    return tuple(tuple(row) for row in distinct.tolist())


_BLOCK_CELLS = 1 << 22


@stored_as("quorate.learners.concepts.symmetric_difference.Xor")
@dataclass(frozen=True, slots=True)
class Xor:
    """Label x 1 where two concepts differ.

    Examples
    --------
    >>> from quorate.learners.concepts import Threshold
    >>> Xor(Threshold(2), Threshold(4)).labels(np.array([[1], [2], [3], [4]])).tolist()
    [0, 1, 1, 0]
    """

    first: Concept
    second: Concept

    def labels(self, points: Points) -> Labels:
        """Label ``(n_points, n_features)`` points, 0 or 1 each."""
        return self.first.labels(points) ^ self.second.labels(points)


@stored_as("quorate.learners.concepts.symmetric_difference.XorConcepts")
@dataclass(frozen=True, eq=False)
class XorConcepts:
    """Differences in a fixed order: pairs ``(n_concepts,)`` of places among some concepts."""

    concepts: Concepts
    first: IntArray
    second: IntArray

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, index: int) -> Xor:
        return Xor(self.concepts[int(self.first[index])], self.concepts[int(self.second[index])])

    def labels(self, points: Points) -> NDArray[np.uint8]:
        """Label all points by all concepts, ``(n_concepts, n_points)``."""
        table = self.concepts.labels(points)
        differ: NDArray[np.uint8] = table[self.first] ^ table[self.second]
        return differ

    def mistakes(self, points: Points, labels: Labels, weights: IntArray | None = None) -> IntArray:
        """Return the weight that each concept labels otherwise, ``(n_concepts,)``: O(n_concepts · distinct points)."""
        ones, signed = signed_weights(len(points), labels, weights)
        distinct, place = np.unique(points, axis=0, return_inverse=True)
        weight = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(weight, place.ravel(), signed)
        table = self.concepts.labels(distinct)
        inside = np.empty(len(self), dtype=np.int64)
        step = max(1, _BLOCK_CELLS // max(1, len(distinct)))
        for start in range(0, len(self), step):
            block = slice(start, start + step)
            inside[block] = (table[self.first[block]] ^ table[self.second[block]]).astype(np.int64) @ weight
        return ones - inside


@stored_as("quorate.learners.concepts.symmetric_difference.SymmetricDifference")
@dataclass(frozen=True)
class SymmetricDifference:
    r"""The class :math:`C^{\oplus} = \{h \oplus f : h, f \in C\}` of differences.

    Sanitized points that answer for all of C⊕ keep the error of every f against every target h; GenericLearner needs
    no more of its sanitizer.

    `concepts`: C.

    The dichotomies of C⊕ on points are the differences of those of C (BNS15, Section 3), so they are enumerated
    as pairs: for small domains. Fixed order: by the first concept of the pair, then by the second.

    BNS15 (Beimel, Nissim, Stemmer), Section 3: VC(C⊕) ≤ 10 VC(C). Here: what the class knows of itself, or the least
    number that the same proof gives.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> differences = SymmetricDifference(Thresholds(bits=3))
    >>> differences.vc_dimension
    2
    >>> points = differences.check([1, 4])
    >>> differences.dichotomies(points).labels(points).tolist()
    [[0, 0], [1, 0], [1, 1], [0, 1]]
    """

    concepts: ConceptClass

    @property
    def n_features(self) -> int:
        """Number of columns of a point."""
        return self.concepts.n_features

    @property
    def vc_dimension(self) -> int:
        """The least bound on VC(C⊕) that is known."""
        known = getattr(self.concepts, "xor_vc_dimension", None)
        if known is not None:
            return int(known)
        return symmetric_difference_vc(lambda n: sauer(n, self.concepts.vc_dimension))

    @property
    def domain_size(self) -> int | None:
        """Number of points of the domain; None where it is not finite."""
        return self.concepts.domain_size

    def check(self, X: Any) -> Points:
        """Return the points in the form that the class works on, or refuse the table."""
        return self.concepts.check(X)

    def growth(self, n_points: int) -> int:
        """Return the number of pairs on `n_points` points, which no number of dichotomies is above: all are looked at.

        So whoever keeps this below a limit is not refused later.
        """
        points = np.broadcast_to(np.zeros((1, self.n_features), dtype=np.int64), (n_points, self.n_features))
        return 1 + comb(self.concepts.n_dichotomies(points), 2)

    def n_dichotomies(self, points: Points) -> int:
        """Return an upper bound on the number of dichotomies; a function of their number."""
        return min(self.growth(len(points)), sauer(len(points), self.vc_dimension))

    def refuse_relabelling(self, n_T: int, n_W: int) -> None:
        """Refuse a relabelling of too many rows, by their numbers alone; :meth:`relabelling_scores` asks it first."""
        unit_scores(n_T, n_W)
        # One minimisation for each dichotomy on T, and each looks at all pairs on both.
        on_both = self.growth(n_T + n_W)
        refuse_beyond(DICHOTOMY_LIMIT, on_both, self)
        refuse_work(self.growth(n_T) * on_both * (n_T + n_W), self)

    def dichotomies(self, points: Points, *, limit: int = DICHOTOMY_LIMIT) -> XorConcepts:
        """Return one concept for every dichotomy on `points`: the first pair that has it."""
        # All pairs are looked at, so the limit is held against their number, not against that of their differences.
        refuse_beyond(limit, self.growth(len(points)), self)
        concepts = self.concepts.dichotomies(points, limit=limit)
        table = np.packbits(concepts.labels(np.unique(points, axis=0)), axis=1)
        first, second = np.triu_indices(len(concepts), k=1)
        first, second = np.append(0, first), np.append(0, second)  # a concept and itself: the constant 0
        if not table.shape[1]:  # no points: one dichotomy
            return XorConcepts(concepts, first[:1], second[:1])
        differ = np.ascontiguousarray(table[first] ^ table[second]).view(f"V{table.shape[1]}").ravel()
        _, kept = np.unique(differ, return_index=True)
        kept.sort()
        return XorConcepts(concepts, first[kept], second[kept])

    def erm(self, points: Points, labels: Labels, weights: IntArray | None = None) -> Xor:
        """Return a concept of least weighted error, the first of :meth:`dichotomies`."""
        concepts = self.dichotomies(points)
        return concepts[int(np.argmin(concepts.mistakes(points, labels, weights)))]

    def relabelling_scores(self, T: Points, W: Points, labels_of_W: Labels) -> tuple[Concepts, IntArray]:
        """Return the dichotomies on T and their exact scores (LWY25 Algorithm 1), one minimisation each."""
        self.refuse_relabelling(len(T), len(W))
        return relabelling_scores_by_erm(self, T, W, labels_of_W)
