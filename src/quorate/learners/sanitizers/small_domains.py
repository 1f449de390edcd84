r"""Two sanitizers of small domains: MWEM, and BLR, the reference, which weighs all multisets of a size."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, comb, exp, log, sqrt
from typing import Any, ClassVar, Protocol

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.base.exponential import chosen
from quorate.learners.concepts.domain import MAX_DOMAIN, PublicDomain, public_domain
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.sanitizers.protocol import Sanitizer, XorQueries, checked_rows, least_rows, least_scale, share
from quorate.learners.sanitizers.tree import rounded_weights
from quorate.mechanisms import Exponential
from quorate.noise import NoiseSource, discrete_laplace
from quorate.noise.source import MAX_SCALE
from quorate.stored_names import stored_as
from quorate.theory.bns15 import bns15_theorem_b_6
from quorate.types import FloatArray, IntArray

_COPIES = 250  # synthetic points for each domain point: a rounding error of at most 1/1000
_CHOICE = Fraction(3, 4)  # of a round's ε
_MOST_ROUNDS = 1000
_NOMINAL_BETA = 0.1  # the number of rounds is chosen for it; a bound holds for every β


class TabulatedSanitizer(Sanitizer, Protocol):
    """A sanitizer of a small domain, where all queries are tabulated; `remedy`: where no number of rows is enough."""

    __slots__ = ()

    domain: PublicDomain | None
    remedy: ClassVar[str]

    def _error(self, n: int, queries: XorQueries, beta: float, epsilon: float) -> float:
        """What :meth:`error_bound` says."""

    def _floor(self, queries: XorQueries) -> float:
        """What it tends to with more rows."""

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        r"""Return α: on any `n` rows, no :math:`c \in C^\oplus` is off by more but with probability `beta`."""
        queries = self._queries(concept_class)
        n, beta = count("n", n, at_least=1), real("beta", beta, above=0, below=1)
        return self._error(n, queries, beta, real("epsilon", epsilon, above=0))

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return the rows at which :meth:`error_bound` is at most `alpha`, above what no number of rows takes away."""
        alpha, beta = real("alpha", alpha, above=0, below=1), real("beta", beta, above=0, below=1)
        epsilon = real("epsilon", epsilon, above=0)
        queries = self._queries(concept_class)
        return least_rows(
            lambda n: self._error(n, queries, beta, epsilon), alpha, floor=self._floor(queries), remedy=self.remedy
        )

    def _queries(self, concept_class: ConceptClass) -> XorQueries:
        return XorQueries.of(concept_class, self.domain)


@stored_as("quorate.learners.sanitizers.mwem.Measurement")
@dataclass(frozen=True, slots=True)
class Measurement:
    """What one round releases: a query, by its place in the table, and how many rows it was measured to hold."""

    query: int
    rows: int


@stored_as("quorate.learners.sanitizers.mwem.MWEM")
@dataclass(frozen=True, slots=True)
class MWEM(TabulatedSanitizer):
    r"""Sanitize points of a finite domain by multiplicative weights and the exponential mechanism.

    In each round a query of :math:`C^\oplus` is chosen on which the current distribution is far from the data, its
    count is measured with noise, and the weights of its points are moved towards the measurement. The release is the
    mean distribution of all rounds, rounded to a multiset.

    Raises InvalidParameter if the class has no small grid (the message holds its size) and there is no `domain`, or an
    argument is out of range. DataRefused if there are no points, or some lie outside the domain.

    `rounds`: T, at least 1. None takes the number, up to 1000, at which :meth:`error_bound` is least for β = 0.1.
    `n_synthetic`: m, synthetic points, at least 1. None takes 250 for each point of the domain X. Rounding costs at
    most :math:`|X|/(4m)`. `domain`: all the points that a row can be; public. None takes the grid of the class.

    Privacy: ε-DP for one replaced record, n public. Each round is ε/T-DP, adaptively. *Choice*, for 3/4 of it: the
    score of c is the whole number :math:`|c(D) - r_c|`, where c(D) counts rows and :math:`r_c`, the distribution's own
    count rounded to a whole number, is read from earlier releases: one replaced record moves a score by at most 1.
    *Measurement*, for the rest: c(D), of sensitivity 1, with discrete Laplace noise of scale 4T/ε.

    Error: :math:`\alpha = \sqrt{\ln|X|/(2T) + \nu^2} + s + |X|/(4m)`, with s, what the choice may
    miss, and ν, the noise of a measurement, for a probability β/2 each; derived in ``docs/theory/learner-proofs.md``.

    Hardt, Ligett and McSherry (2012), NIPS, Figure 1 and Theorem 2.2: there η is r/2, both steps
    get one half, and the constants are larger.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.noise import SeededNoise
    >>> rows = np.array([[1]] * 9000 + [[6]] * 1000)
    >>> synthetic = MWEM().sanitize(rows, Thresholds(3), 1.0, SeededNoise(0))
    >>> synthetic.shape, round(float((synthetic <= 3).mean()), 1)
    ((2000, 1), 0.9)
    """

    rounds: int | None = None
    n_synthetic: int | None = None
    domain: PublicDomain | None = None

    remedy: ClassVar[str] = "raise rounds and n_synthetic"

    def __post_init__(self) -> None:
        for name in ("rounds", "n_synthetic"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, count(name, value, at_least=1))
        if self.domain is not None:
            object.__setattr__(self, "domain", public_domain(self.domain))

    def sanitize(self, points: Points, concept_class: ConceptClass, epsilon: float, noise: NoiseSource) -> Points:
        """Return ``(n_synthetic, n_features)`` synthetic points, in lexicographic order."""
        epsilon = real("epsilon", epsilon, above=0)
        queries = self._queries(concept_class)
        points = checked_rows(points, concept_class)
        n = len(points)
        counts = queries.counts(queries.histogram(points))
        rounds = self.rounds or self._best_rounds(n, queries, epsilon)
        weights, _ = multiplicative_weights(queries, counts, n, rounds, epsilon, noise)
        copies = rounded_weights(weights, self._size(queries))
        return queries.repeat(copies, points)

    def _size(self, queries: XorQueries) -> int:
        return self.n_synthetic or _COPIES * len(queries.domain)

    def _best_rounds(self, n: int, queries: XorQueries, epsilon: float) -> int:
        candidates = range(1, _MOST_ROUNDS + 1 if len(queries.table) else 2)
        return min(candidates, key=lambda rounds: _mean_error(n, queries, _NOMINAL_BETA, epsilon, rounds))

    def _error(self, n: int, queries: XorQueries, beta: float, epsilon: float) -> float:
        if not len(queries.table):
            return 0.0
        rounds = self.rounds or self._best_rounds(n, queries, epsilon)
        rounding = len(queries.domain) / (4 * self._size(queries))
        return min(1.0, _mean_error(n, queries, beta, epsilon, rounds) + rounding)

    def _floor(self, queries: XorQueries) -> float:
        n_domain, rounds = len(queries.domain), self.rounds or _MOST_ROUNDS
        return sqrt(log(n_domain) / (2 * rounds)) + n_domain / (4 * self._size(queries)) if len(queries.table) else 0.0


def multiplicative_weights(
    queries: XorQueries, counts: IntArray, n: int, rounds: int, epsilon: float, noise: NoiseSource
) -> tuple[FloatArray, tuple[Measurement, ...]]:
    """Release the mean distribution ``(n_domain,)`` of all rounds, and the measurements that it was made from, ε-DP.

    `counts`: private: the rows of each query, which one replaced record moves by at most 1. The rest is public.
    """
    choice = Exponential(share(epsilon, rounds / _CHOICE))
    scale = least_scale(1, share(epsilon, rounds / (1 - _CHOICE)))
    log_weights = np.zeros(len(queries.domain))
    total = np.zeros(len(queries.domain))
    released = []
    for _ in range(rounds):
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        total += weights
        if not len(queries.table):  # one concept alone: nothing is asked, nothing is released
            continue
        expected = n * (queries.table @ weights)
        scores = np.abs(counts - np.rint(expected).astype(np.int64))
        query = chosen(choice, scores, noise)
        measured = int(counts[query] + discrete_laplace(scale, 1, noise)[0])
        released.append(Measurement(query, measured))
        log_weights += queries.table[query] * (4 * (measured - expected[query]) / n)
    return total / rounds, tuple(released)


def _mean_error(n: int, queries: XorQueries, beta: float, epsilon: float, rounds: int) -> float:
    """Return the bound without rounding to a multiset."""
    scale = rounds / float(epsilon * (1 - _CHOICE))
    missed = (2 * rounds / float(epsilon * _CHOICE) * log(2 * rounds * max(len(queries.table), 1) / beta) + 1) / n
    noise = scale * log(4 * rounds / ((1 + exp(-1 / scale)) * beta)) / n
    return sqrt(log(len(queries.domain)) / (2 * rounds) + noise**2) + missed


#: Multisets that are weighed at most.
MAX_MULTISETS = 2**20

_BLOCK = 2**14  # multisets weighed at once
_XOR_FACTOR = 10  # VC(C⊕) <= 10 VC(C): BNS15, Observation 3.2


def theorem_size(vc_dimension: int, alpha: float) -> int:
    r"""Return a number of synthetic points at which some multiset errs by at most α on :math:`C^\oplus`, whatever D is.

    BNS15, Theorem B.6, on the uniform distribution over D, for some β < 1: :math:`m > (50\,VC(C^\oplus)/\alpha^2)
    \ln(1/\alpha)`, with :math:`VC(C^\oplus) \le 10\,VC(C)` by Observation 3.2: the :math:`O((VC/\alpha^2)
    \log(1/\alpha))` of Theorem A.3 with its constants. :meth:`BLR.for_error` asks for far fewer.
    """
    vc_dimension, alpha = count("vc_dimension", vc_dimension), real("alpha", alpha, above=0, below=1)
    return int(bns15_theorem_b_6(_XOR_FACTOR * vc_dimension, alpha, 1.0)) + 1


@stored_as("quorate.learners.sanitizers.blr.BLR")
@dataclass(frozen=True, slots=True)
class BLR(TabulatedSanitizer):
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

    remedy: ClassVar[str] = "raise size"

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
        return self._floor(self._queries(concept_class))

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

    def _floor(self, queries: XorQueries) -> float:
        if not len(queries.table):
            return 0.0
        return min(len(queries.domain) / (4 * self.size), sqrt(_log_queries(queries) / (2 * self.size)), 1.0)

    def _error(self, n: int, queries: XorQueries, beta: float, epsilon: float) -> float:
        number = comb(len(queries.domain) + self.size - 1, self.size)
        return min(1.0, self._floor(queries) + 2 / (epsilon * n) * (log(number) - log(beta)))


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


def _short(number: int) -> str:
    return str(number) if number < 10**9 else f"{number:.2e}" if number < 10**300 else "more than 1e300"
