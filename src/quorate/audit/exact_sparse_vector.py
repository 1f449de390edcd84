r"""The exact audit of sparse vector in all its forms: sum over the threshold noise, no sampling.

For answers :math:`a_1, …, a_n` to values :math:`v_1, …, v_n` of sensitivity 1, one stage with threshold :math:`w` has

.. math:: P(a) = \sum_r P(\rho = r) \prod_i P(a_i \mid v_i + \nu_i > w + r \text{ or not}),

a finite sum on the lattice. The log-ratio of two neighbouring streams gives a lower bound on ε for any answer, and a
correct proof an upper one. Stages are independent, so the probability of every pattern of answers to a short stream is
a product of such sums (:class:`ExpectedAnswers`). They share no code with the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import floor
from typing import Literal, TypeAlias

import numpy as np

from quorate.arguments import count, one_of
from quorate.audit.exact import DiscreteLaplaceLaw, GeometricLaw, Law, Negated
from quorate.errors import InvalidParameter
from quorate.mechanisms import DECLINED, StableSparseVector
from quorate.types import FloatArray, IntArray

#: True (above), False (not above), or the noisy value that a numeric form releases when it is above.
SparseAnswer: TypeAlias = bool | int


@dataclass(frozen=True, kw_only=True)
class SparseVectorForm:
    r"""One form of sparse vector: a value passes iff :math:`v + \nu > w + \rho`.

    `threshold_noise`, `query_noise`: of ρ and ν; :class:`~quorate.audit.Negated` where the noise is subtracted.
    `costly`: the answer that counts towards the cut-off; the other is free. The classical form pays for "above", the
    stable-query form for "below".
    `threshold`: w.
    `cutoff`: how many costly answers end the stream; None for a form without one.
    `resets`: whether a new ρ is drawn after each costly answer.

    Examples
    --------
    The textbook form with Lap(λ) and Lap(2λ) and a cut-off of 1 is exactly 2/λ-DP; with Lap(λ) on the queries it is
    1.5 times that:

    >>> from quorate.audit import DiscreteLaplaceLaw
    >>> lap = DiscreteLaplaceLaw
    >>> right = SparseVectorForm(threshold_noise=lap(1.0), query_noise=lap(2.0), costly="above")
    >>> wrong = SparseVectorForm(threshold_noise=lap(1.0), query_noise=lap(1.0), costly="above")
    >>> round(right.worst_loss().loss, 6), round(wrong.worst_loss().loss, 6)
    (2.0, 3.0)
    """

    threshold_noise: Law
    query_noise: Law
    costly: Literal["above", "below"]
    threshold: int = 0
    cutoff: int | None = 1
    resets: bool = False

    def __post_init__(self) -> None:
        one_of("costly", self.costly, ("above", "below"))
        if self.cutoff is not None:
            count("cutoff", self.cutoff, at_least=1)

    def log_probability(self, values: Sequence[int], answers: Sequence[SparseAnswer]) -> float:
        """Return the log-probability of giving exactly `answers` to the first queries of a stream.

        Raises InvalidParameter if the two have different lengths, or answers go on after the cut-off.
        """
        if len(values) != len(answers):
            raise InvalidParameter(f"answers must be {len(values)}, one for each value, got {len(answers)}")
        paid = [self._is_costly(answer) for answer in answers]
        if self.cutoff is not None and sum(paid[:-1]) >= self.cutoff:
            raise InvalidParameter(f"answers must end with the costly answer number {self.cutoff}")
        borders = [0, *(place + 1 for place, is_paid in enumerate(paid) if is_paid and self.resets), len(values)]
        return sum(
            self._stage(values[start:stop], answers[start:stop]) for start, stop in pairwise(borders) if stop > start
        )

    def loss(self, values: Sequence[int], neighbouring: Sequence[int], answers: Sequence[SparseAnswer]) -> float:
        """Return the privacy loss ``log P(answers | values) − log P(answers | neighbouring)``, in nats.

        Raises InvalidParameter if a value moves by more than 1 between the streams.
        """
        if len(values) != len(neighbouring) or any(abs(a - b) > 1 for a, b in zip(values, neighbouring, strict=True)):
            raise InvalidParameter("neighbouring must be a stream of the same length, no value more than 1 away")
        return self.log_probability(values, answers) - self.log_probability(neighbouring, answers)

    def worst_loss(self, *, free: Sequence[int] = (0, 1, 4, 8), far: float = 60.0) -> WorstLoss:
        """Return the largest loss over a family of streams that attains the bound of every known form.

        Some free answers to one value, then as many costly ones as the cut-off allows (4 without one) to another, up to
        `far` noise widths on either side of the threshold; the neighbour moves the two kinds one vote in any direction.
        """
        return max((self._tried(*pair) for pair in self._family(free, far)), key=lambda worst: worst.loss)

    def stage_loss(self) -> float:
        """Return the loss of one stage on a few of the streams of :meth:`worst_loss`: quick where the noise is wide.

        It is at most the loss of the stage, and for Laplace or geometric tails within a thousandth of it.
        """
        stage = replace(self, cutoff=1, resets=False)
        is_free = self.costly == "below"
        width = max(self.threshold_noise.width, self.query_noise.width)
        sign = 1 if is_free else -1  # free answers are the likelier, the higher (or lower) the value
        answers: list[SparseAnswer] = [*[is_free] * 4, not is_free]
        worst = -np.inf
        for step, far in product((0, 5, 20), (5, 20)):
            at, other = (self.threshold + sign * round(place * width) for place in (-step, far))
            for move in (-sign, sign):
                values, moved = [at] * 4 + [other], [at + move] * 4 + [other - move]
                worst = max(worst, stage._tried(values, moved, answers).loss)
        return float(worst)

    def _is_costly(self, answer: SparseAnswer) -> bool:
        above = answer if isinstance(answer, bool) else True
        return above == (self.costly == "above")

    def _stage(self, values: Sequence[int], answers: Sequence[SparseAnswer]) -> float:
        rho = self.threshold_noise.support()
        line = self.threshold + rho
        log_p = self.threshold_noise.log_pmf(rho).copy()
        for value, answer in zip(values, answers, strict=True):
            if not isinstance(answer, bool):
                log_p += np.where(answer > line, self.query_noise.log_pmf(answer - value), -np.inf)
            elif answer:
                log_p += self.query_noise.log_above(line - value)
            else:
                log_p += self.query_noise.log_at_most(line - value)
        with np.errstate(under="ignore"):
            return float(np.logaddexp.reduce(log_p))

    def _family(self, free: Sequence[int], far: float) -> Iterator[tuple[list[int], list[int], list[SparseAnswer]]]:
        width = max(self.threshold_noise.width, self.query_noise.width)
        offsets = [self.threshold + round(step * width) for step in (-far, -5, 0, 5, far)]
        is_free = self.costly == "below"
        paid = 1 if self.resets else self.cutoff or 4
        for n_free, at, other, (move, other_move) in product(free, offsets, offsets, product((-1, 0, 1), repeat=2)):
            values = [at] * n_free + [other] * paid
            moved = [at + move] * n_free + [other + other_move] * paid
            answers: list[SparseAnswer] = [*[is_free] * n_free, *[not is_free] * paid]
            yield values, moved, answers

    def _tried(self, values: list[int], neighbouring: list[int], answers: list[SparseAnswer]) -> WorstLoss:
        here, beside = (self.log_probability(stream, answers) for stream in (values, neighbouring))
        loss = here - beside if here > _IMPOSSIBLE else -np.inf
        # With resets the stages are independent: a stream that repeats the worst one repeats its loss.
        stages = (self.cutoff or 4) if self.resets else 1
        return WorstLoss(stages * loss, tuple(values * stages), tuple(neighbouring * stages), tuple(answers * stages))


_IMPOSSIBLE = -600.0  # log-probabilities below this are too near to the cut tail of the sum to be trusted


@dataclass(frozen=True, slots=True)
class WorstLoss:
    """The largest privacy loss found, in nats, and the two streams and the answers that have it."""

    loss: float
    values: tuple[int, ...]
    neighbouring: tuple[int, ...]
    answers: tuple[SparseAnswer, ...]


def failure_probability(form: SparseVectorForm, value: int = 0) -> float:
    r"""Return the probability that a query with this value passes in a fresh stage: :math:`P(v + \nu > w + \rho)`.

    With value 0 it is what one stage of a stable sparse vector adds to δ_tail.
    """
    return float(np.exp(form.log_probability([value], [True])))


_QUERIES = 9  # 2^9 patterns at most
_AFTER_THE_END = 4
_WIDEST = 20_000.0  # votes; the sum over the threshold noise has some forty terms a vote
_LEFT_OUT = -80.0  # threshold noise of a smaller log-probability is left out of the sum

#: The probabilities with which the queries of the stream pass in a fresh stage, in their order.
_PASSING = (0.85, 0.5, 0.5, 0.85, 0.15, 0.5, 0.85, 0.5, 0.15)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedAnswers:
    """The answers that a stream may get, each with its probability.

    `name`: what the stream looks at.
    `stream` ``(n_queries, n_classes)``: Made-up votes, the same in every run.
    `patterns` ``(n_patterns, n_queries)``: answers: a class index, or ``DECLINED``.
    `probabilities` ``(n_patterns,)``: of each pattern; an upper bound where it is not exact.
    `rest`: at most the probability of all other answers together.
    """

    name: str
    stream: IntArray = field(repr=False)
    patterns: IntArray = field(repr=False)
    probabilities: FloatArray = field(repr=False)
    rest: float


def form_of_stages(mechanism: StableSparseVector) -> SparseVectorForm:
    """Return the form of sparse vector that a mechanism's stages are priced as."""
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

    `mechanism`: its fields and its calibrated noise are read; it answers nothing here.
    """
    distances = [mechanism.passing_dist(_PASSING[i]) for i in range(min(_QUERIES, mechanism.n_queries))]
    patterns, probabilities = pattern_distribution(form_of_stages(mechanism), distances)
    answers = np.where(patterns, 0, DECLINED)
    return ExpectedAnswers("answers about the threshold", _leading(distances), answers, probabilities, rest=0.0)


def answers_after_cutoff(mechanism: StableSparseVector, stages_spent: int = 0) -> ExpectedAnswers | None:
    """Return a stream that reaches the cut-off and goes on: after that nothing may be answered.

    Queries that are declined, one for each stage that is left, are followed by some that all teachers agree on.

    `mechanism`: its fields and its calibrated noise are read; it answers nothing here. `stages_spent`: how many stages
    were spent before the stream.
    Returns: None where no query can follow the cut-off, since :math:`m = T`.
    """
    after = min(_AFTER_THE_END, mechanism.n_queries - mechanism.cutoff)
    if not after:
        return None
    stream = _leading([0] * (mechanism.cutoff - stages_spent) + [mechanism.passing_dist(1 - 1e-9)] * after)
    nothing = np.full((1, len(stream)), DECLINED, dtype=np.int64)
    tail = mechanism.stage_noise.tail(mechanism.cutoff)
    return ExpectedAnswers("answers after the cut-off", stream, nothing, np.ones(1), rest=tail)


def pattern_distribution(form: SparseVectorForm, values: list[int]) -> tuple[IntArray, FloatArray]:
    """Return every pattern of answers to a stream, 1 for above and 0 for not or after the end, and its probability.

    The form has to pay for "below", and to draw a new threshold after a costly answer.
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
    rho, start_mass = rho[log_p > _LEFT_OUT], np.exp(log_p[log_p > _LEFT_OUT])
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
