r"""MWEM: multiplicative weights on a finite domain, corrected where the data differ most."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log, sqrt

import numpy as np

from quorate.arguments import count, real
from quorate.learners.base.exponential import chosen
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.learners.sanitizers.noisy_tree import rounded_weights
from quorate.learners.sanitizers.protocol import (
    PublicDomain,
    Sanitizer,
    XorQueries,
    checked_rows,
    least_rows,
    least_scale,
    public_domain,
    share,
)
from quorate.mechanisms import Exponential
from quorate.noise import NoiseSource, discrete_laplace
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

_COPIES = 250  # synthetic points for each domain point: a rounding error of at most 1/1000
_CHOICE = Fraction(3, 4)  # of a round's ε
_MOST_ROUNDS = 1000
_NOMINAL_BETA = 0.1  # the number of rounds is chosen for it; a bound holds for every β


@stored_as("quorate.learners.sanitizers.mwem.Measurement")
@dataclass(frozen=True, slots=True)
class Measurement:
    """What one round releases: a query, by its place in the table, and how many rows it was measured to hold."""

    query: int
    rows: int


@stored_as("quorate.learners.sanitizers.mwem.MWEM")
@dataclass(frozen=True, slots=True)
class MWEM(Sanitizer):
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
        queries = XorQueries.of(concept_class, self.domain)
        points = checked_rows(points, concept_class)
        n = len(points)
        counts = queries.counts(queries.histogram(points))
        rounds = self.rounds or self._best_rounds(n, queries, epsilon)
        weights, _ = multiplicative_weights(queries, counts, n, rounds, epsilon, noise)
        copies = rounded_weights(weights, self._size(queries))
        return queries.repeat(copies, points)

    def error_bound(self, n: int, concept_class: ConceptClass, beta: float, epsilon: float) -> float:
        r"""Return α: on any `n` rows, no :math:`c \in C^\oplus` is off by more but with probability `beta`."""
        queries = XorQueries.of(concept_class, self.domain)
        n, beta = count("n", n, at_least=1), real("beta", beta, above=0, below=1)
        return self._error(n, queries, beta, real("epsilon", epsilon, above=0))

    def rows_needed(self, concept_class: ConceptClass, alpha: float, beta: float, epsilon: float) -> int:
        """Return the rows at which :meth:`error_bound` is at most `alpha`, above what rounding and the rounds leave."""
        alpha, beta = real("alpha", alpha, above=0, below=1), real("beta", beta, above=0, below=1)
        epsilon = real("epsilon", epsilon, above=0)
        queries = XorQueries.of(concept_class, self.domain)
        n_domain, rounds = len(queries.domain), self.rounds or _MOST_ROUNDS
        floor = sqrt(log(n_domain) / (2 * rounds)) + n_domain / (4 * self._size(queries)) if len(queries.table) else 0.0
        return least_rows(
            lambda n: self._error(n, queries, beta, epsilon), alpha, floor=floor, remedy="raise rounds and n_synthetic"
        )

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
