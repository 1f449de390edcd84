r"""BLR: the exponential mechanism over all multisets of a size; the reference, for tiny domains."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, log, sqrt
from typing import Any

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.base.exponential import chosen
from quorate.learners.concepts.domain import MAX_DOMAIN
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.sanitizers.protocol import (
    PublicDomain,
    Sanitizer,
    XorQueries,
    checked_rows,
    least_rows,
    public_domain,
)
from quorate.mechanisms import Exponential
from quorate.noise import NoiseSource
from quorate.noise.source import MAX_SCALE
from quorate.stored_names import stored_as
from quorate.theory.bns15 import bns15_theorem_b_6
from quorate.types import IntArray

#: Multisets that are weighed at most.
MAX_MULTISETS = 2**20

_BLOCK = 2**14  # multisets weighed at once
_XOR_FACTOR = 10  # VC(C⊕) <= 10 VC(C): BNS15, Observation 3.2


def theorem_size(vc_dimension: int, alpha: float) -> int:
    r"""Return a number of synthetic points at which some multiset errs by at most α on :math:`C^\oplus`, whatever D is.

    BNS15, Theorem B.6, on the uniform distribution over D, for some β < 1: :math:`m > (50\,VC(C^\oplus)/\alpha^2)
    \ln(1/\alpha)`, with :math:`VC(C^\oplus) \le 10\,VC(C)` by Observation 3.2: the :math:`O((VC/\alpha^2)
    \log(1/\alpha))` of Theorem A.3 with its constants. :meth:`BLR.for_error` asks for far fewer.

    Examples
    --------
    >>> theorem_size(1, 0.2)
    20118
    """
    vc_dimension, alpha = count("vc_dimension", vc_dimension), real("alpha", alpha, above=0, below=1)
    return int(bns15_theorem_b_6(_XOR_FACTOR * vc_dimension, alpha, 1.0)) + 1


@stored_as("quorate.learners.sanitizers.blr.BLR")
@dataclass(frozen=True, slots=True)
class BLR(Sanitizer):
    r"""Choose one of all multisets of a size, the better ones more often (Blum, Ligett and Roth).

    Raises InvalidParameter if the class has no small grid and there is no `domain`; if there are more than `limit`
    multisets (the message holds their number); if an argument is out of range. DataRefused if there are no points, or
    some lie outside the domain.

    `size`: m, the number of synthetic points, at least 1. :meth:`for_error` and :func:`theorem_size` choose it.
    `limit`: largest number of multisets that are weighed. `domain`: all the points that a row can be; public. None
    takes the grid of the class.

    Privacy: ε-DP for one replaced record, n public. The score of a multiset M is the whole number
    :math:`-\max_{c \in C^\oplus} |m\,c(D) - n\,c(M)|`, with c(·) the number of points that c labels 1. One replaced
    record moves c(D) by at most 1, so every score by at most m: the sensitivity.

    Error: some multiset errs by at most :meth:`net_error`, and the choice is no further from the best than
    :math:`(2/(\varepsilon n)) \ln(N/\beta)`, N multisets, but with probability β (BNS15, Proposition A.1).

    Blum, Ligett and Roth (2013), J. ACM 60(2); BNS15, Theorem A.3.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.noise import SeededNoise
    >>> rows = np.array([[0], [0], [0], [3]] * 100)
    >>> BLR(size=4).sanitize(rows, Thresholds(2), 1.0, SeededNoise(0)).ravel().tolist()
    [0, 0, 0, 3]
    >>> BLR(size=30).sanitize(rows, Thresholds(8), 1.0, SeededNoise(0))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: size must leave at most 1048576 multisets, got 30 of 256 points: 3.43e+40; take fewer points, a coarser grid, MWEM or Tree
    """  # noqa: E501  a doctest's message is one line

    size: int
    limit: int = MAX_MULTISETS
    domain: PublicDomain | None = None

    def __post_init__(self) -> None:
        if self.domain is not None:
            object.__setattr__(self, "domain", public_domain(self.domain))
        object.__setattr__(self, "size", count("size", self.size, at_least=1))
        object.__setattr__(self, "limit", count("limit", self.limit, at_least=1))

    @classmethod
    def for_error(
        cls, concept_class: ConceptClass, alpha: float, *, limit: int = MAX_MULTISETS, domain: Any = None
    ) -> BLR:
        """Return the sanitizer with the fewest synthetic points whose :meth:`net_error` is at most ``alpha / 2``."""
        half = real("alpha", alpha, above=0, below=1) / 2
        domain = None if domain is None else public_domain(domain)
        queries = XorQueries.of(concept_class, domain)
        size = min(ceil(len(queries.domain) / (4 * half)), ceil(_log_queries(queries) / (2 * half**2)))
        return cls(size=max(size, 1), limit=limit, domain=domain)

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return ``(size, n_features)`` synthetic points, in lexicographic order."""
        choice = Exponential(epsilon, sensitivity=self.size)
        queries = self._queries(concept_class)
        points = checked_rows(points, concept_class)
        histogram = queries.histogram(points)
        if len(points) * self.size > MAX_SCALE:
            raise InvalidParameter(f"size must be at most 2^40 / n, got {self.size}; take fewer synthetic points")
        copies = multisets(len(queries.domain), self.size)
        scores = multiset_scores(queries, histogram, copies)
        return queries.repeat(copies[chosen(choice, scores, noise)], points)

    def net_error(self, concept_class: ConceptClass) -> float:
        r"""Return a bound on the error of the best multiset of `size` points, whatever the data are.

        *Rounding* the largest remainders up, :math:`|X|/(4m)`, or *sampling*, if less: by Hoeffding's inequality, m
        draws from D err by more than :math:`t = \sqrt{\ln(2Q + 1)/(2m)}` on one of Q queries with probability below 1.
        """
        return self._net_error(self._queries(concept_class))

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        r"""Return α: on any `n` rows, no :math:`c \in C^\oplus` is off by more but with probability `beta`."""
        queries = self._queries(concept_class)
        return self._error(count("n", n, at_least=1), queries, *_checked(beta, epsilon))

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return the rows at which :meth:`error_bound` is at most `alpha`, which has to be above :meth:`net_error`."""
        alpha, (beta, epsilon) = real("alpha", alpha, above=0, below=1), _checked(beta, epsilon)
        queries = self._queries(concept_class)
        return least_rows(
            lambda n: self._error(n, queries, beta, epsilon),
            alpha,
            floor=self._net_error(queries),
            remedy="raise size",
        )

    def _queries(self, concept_class: ConceptClass) -> XorQueries:
        """Tabulate the class, if the multisets can be weighed."""
        domain = concept_class.domain_size if self.domain is None else len(self.domain)
        if (
            domain is not None
            and domain <= MAX_DOMAIN
            and (number := comb(domain + self.size - 1, self.size)) > self.limit
        ):
            raise InvalidParameter(
                f"size must leave at most {self.limit} multisets, got {self.size} of {domain} points: {_short(number)}",
                parameter="size",
                got=self.size,
                advice="take fewer points, a coarser grid, MWEM or Tree",
                instead="MWEM",
            )
        return XorQueries.of(concept_class, self.domain)

    def _net_error(self, queries: XorQueries) -> float:
        if not len(queries.table):
            return 0.0
        return min(len(queries.domain) / (4 * self.size), sqrt(_log_queries(queries) / (2 * self.size)), 1.0)

    def _error(self, n: int, queries: XorQueries, beta: float, epsilon: float) -> float:
        number = comb(len(queries.domain) + self.size - 1, self.size)
        return min(1.0, self._net_error(queries) + 2 / (epsilon * n) * (log(number) - log(beta)))


def multisets(n_domain: int, size: int) -> IntArray:
    """Return all multisets as copies of each domain point, ``(n_multisets, n_domain)``, in a fixed order."""
    bars = np.array(list(combinations(range(size + n_domain - 1), n_domain - 1)), dtype=np.int64)
    bars = bars.reshape(comb(size + n_domain - 1, size), n_domain - 1)
    copies: IntArray = np.diff(bars, axis=1, prepend=-1, append=size + n_domain - 1) - 1
    return copies


def multiset_scores(queries: XorQueries, histogram: IntArray, copies: IntArray) -> IntArray:
    r"""Return :math:`-\max_c |m\,c(D) - n\,c(M)|` of each multiset M, exactly; ``(n_multisets,)`` int64."""
    n, size = int(histogram.sum()), int(copies[0].sum())
    target = size * queries.counts(histogram)
    scores = np.zeros(len(copies), dtype=np.int64)
    if target.size:
        members = queries.table.T.astype(np.int64)
        for start in range(0, len(copies), _BLOCK):
            differences = target - n * (copies[start : start + _BLOCK] @ members)
            scores[start : start + _BLOCK] = -np.abs(differences).max(axis=1)
    return scores


def _log_queries(queries: XorQueries) -> float:
    return log(2 * len(queries.table) + 1)


def _checked(beta: float, epsilon: float) -> tuple[float, float]:
    return real("beta", beta, above=0, below=1), real("epsilon", epsilon, above=0)


def _short(number: int) -> str:
    return str(number) if number < 10**9 else f"{number:.2e}" if number < 10**300 else "more than 1e300"
