r"""What a sparse vector should answer: the exact probability of every pattern of answers to a short stream.

The answers of a stage depend on one threshold noise, and stages are independent. So the probability that the queries
:math:`i, …, j - 1` pass and query :math:`j` ends the stage is one sum over the threshold noise, and the probability of
a pattern is a product of such sums. They are written from the definition (:mod:`quorate.audit.exact_sparse_vector`) and
share no code with the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor

import numpy as np

from quorate.audit.exact_sparse_vector import SparseVectorForm
from quorate.audit.lattice import DiscreteLaplaceLaw, GeometricLaw, Negated
from quorate.errors import InvalidParameter
from quorate.mechanisms import DECLINED, StableSparseVector
from quorate.types import FloatArray, IntArray

_QUERIES = 9  # 2^9 patterns at most
_AFTER_THE_END = 4
_WIDEST = 20_000.0  # votes; the sum over the threshold noise has some forty terms a vote
_IMPOSSIBLE = -80.0  # threshold noise of a smaller log-probability is left out of the sum

#: The probabilities with which the queries of the stream pass in a fresh stage, in their order.
_PASSING = (0.85, 0.5, 0.5, 0.85, 0.15, 0.5, 0.85, 0.5, 0.15)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedAnswers:
    """The answers that a stream may get, each with its probability.

    Attributes
    ----------
    name : str
        What the stream looks at.
    stream : IntArray, (n_queries, n_classes)
        Made-up votes, the same in every run.
    patterns : IntArray, (n_patterns, n_queries)
        Answers: a class index, or ``DECLINED``.
    probabilities : FloatArray, (n_patterns,)
        Of each pattern; an upper bound where it is not exact.
    rest : float
        At most the probability of all other answers together.
    """

    name: str
    stream: IntArray = field(repr=False)
    patterns: IntArray = field(repr=False)
    probabilities: FloatArray = field(repr=False)
    rest: float


def form_of_stages(mechanism: StableSparseVector) -> SparseVectorForm:
    """Return the form of sparse vector that a mechanism's stages are priced as.

    Examples
    --------
    >>> form = form_of_stages(StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=1, n_queries=9))
    >>> form.costly, form.cutoff, form.resets
    ('below', 1, True)
    """
    noise = mechanism.stage_noise
    return SparseVectorForm(
        threshold_noise=_law(noise.threshold_scale, one_sided=noise.one_sided),
        query_noise=_law(noise.query_scale, one_sided=noise.one_sided),
        costly="below",
        threshold=floor(noise.threshold),
        cutoff=mechanism.cutoff,
        resets=True,
    )


def _law(scale: float, *, one_sided: bool) -> Negated | DiscreteLaplaceLaw:
    return Negated(GeometricLaw(scale)) if one_sided else DiscreteLaplaceLaw(scale)


def can_be_summed(mechanism: StableSparseVector) -> bool:
    """Whether the threshold noise is narrow enough for an exact sum in reasonable time."""
    return mechanism.stage_noise.threshold_scale <= _WIDEST and mechanism.stage_noise.query_scale <= _WIDEST


def answers_at_threshold(mechanism: StableSparseVector) -> ExpectedAnswers:
    """Return a short stream of leads about the threshold, with the exact distribution of its answers.

    What the answers tell are the noise of the threshold, the noise of the queries, and that both are drawn when they
    should be.

    Parameters
    ----------
    mechanism : StableSparseVector
        Its fields and its calibrated noise are read; it answers nothing here.

    Examples
    --------
    >>> expected = answers_at_threshold(StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=1, n_queries=9))
    >>> len(expected.patterns), round(float(expected.probabilities.sum()), 9), expected.rest
    (10, 1.0, 0.0)
    """
    distances = [mechanism.passing_dist(_PASSING[i]) for i in range(min(_QUERIES, mechanism.n_queries))]
    patterns, probabilities = pattern_distribution(form_of_stages(mechanism), distances)
    answers = np.where(patterns, 0, DECLINED)
    return ExpectedAnswers("answers about the threshold", _leading(distances), answers, probabilities, rest=0.0)


def answers_after_cutoff(mechanism: StableSparseVector, stages_spent: int = 0) -> ExpectedAnswers | None:
    """Return a stream that reaches the cut-off and goes on: after that nothing may be answered.

    Queries that are declined, one for each stage that is left, are followed by some that all teachers agree on.

    Parameters
    ----------
    mechanism : StableSparseVector
        Its fields and its calibrated noise are read; it answers nothing here.
    stages_spent : int, default 0
        How many stages were spent before the stream.

    Returns
    -------
    ExpectedAnswers or None
        None where no query can follow the cut-off, since :math:`m = T`.

    Examples
    --------
    >>> mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=3, n_queries=9)
    >>> expected = answers_after_cutoff(mechanism, stages_spent=2)
    >>> expected.stream[:, 0].tolist(), expected.patterns.tolist()
    ([1, 715, 715, 715, 715], [[-1, -1, -1, -1, -1]])
    """
    after = min(_AFTER_THE_END, mechanism.n_queries - mechanism.cutoff)
    if not after:
        return None
    stream = _leading([0] * (mechanism.cutoff - stages_spent) + [mechanism.passing_dist(1 - 1e-9)] * after)
    nothing = np.full((1, len(stream)), DECLINED, dtype=np.int64)
    tail = mechanism.stage_noise.tail(mechanism.cutoff)
    return ExpectedAnswers("answers after the cut-off", stream, nothing, np.ones(1), rest=tail)


def pattern_distribution(form: SparseVectorForm, values: list[int]) -> tuple[IntArray, FloatArray]:
    """Return every pattern of answers to a stream, 1 for above and 0 for not, and its exact probability.

    After the last costly answer of the cut-off a pattern goes on with 0.

    Raises
    ------
    InvalidParameter
        If the form does not pay for "below", or keeps its threshold after a costly answer.

    Examples
    --------
    >>> form = form_of_stages(StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=1, n_queries=9))
    >>> patterns, probabilities = pattern_distribution(form, [form.threshold, form.threshold])
    >>> patterns.tolist(), probabilities.round(3).tolist()
    ([[0, 0], [1, 0], [1, 1]], [0.801, 0.111, 0.088])
    """
    if form.costly != "below" or not form.resets:
        raise InvalidParameter('form must have costly="below" and resets=True; stages are independent then')
    ends, open_ = _stage_sums(form, values)
    n = len(values)
    cutoff = n + 1 if form.cutoff is None else form.cutoff

    def branches(start: int, spent: int) -> Iterator[tuple[tuple[int, ...], float]]:
        if start == n or spent == cutoff:
            yield (0,) * (n - start), 1.0
            return
        for stop in range(start, n):
            for tail, p in branches(stop + 1, spent + 1):
                yield (1,) * (stop - start) + (0, *tail), float(ends[start, stop]) * p
        yield (1,) * (n - start), float(open_[start])

    patterns, probabilities = zip(*branches(0, 0), strict=True)
    return np.array(patterns, dtype=np.int64), np.array(probabilities)


def _stage_sums(form: SparseVectorForm, values: list[int]) -> tuple[FloatArray, FloatArray]:
    """P(queries i to j − 1 pass and j does not), ``(n, n)``; P(queries i to n − 1 pass), ``(n,)``: in a fresh stage."""
    rho = form.threshold_noise.support()
    log_p = form.threshold_noise.log_pmf(rho)
    rho, start_mass = rho[log_p > _IMPOSSIBLE], np.exp(log_p[log_p > _IMPOSSIBLE])
    passes = [np.exp(form.query_noise.log_above(form.threshold + rho - value)) for value in values]
    n = len(values)
    ends, open_ = np.zeros((n, n)), np.zeros(n)
    for start in range(n):
        mass = start_mass
        for stop in range(start, n):
            ends[start, stop] = float(np.sum(mass * (1 - passes[stop])))
            mass = mass * passes[stop]
        open_[start] = float(np.sum(mass))
    return ends, open_


def _leading(distances: list[int]) -> IntArray:
    """Return votes for class 0 alone, of these distances to instability."""
    return np.array([[2 * distance + 1, 0] for distance in distances], dtype=np.int64)
