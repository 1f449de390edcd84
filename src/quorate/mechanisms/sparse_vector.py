"""Distance to instability, alone and under a sparse vector in which stable queries are free.

How many teachers must change before the plurality class can (BTT18 Section 2.1), and the sparse vector over it (BTT18
Algorithm 2; LZCW21 Algorithm 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import floor, log
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from quorate.accounting import ApproxDP, Composed
from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter, MechanismClosed
from quorate.mechanisms.answer_law import AgreementTest, Answerable, passes
from quorate.mechanisms.answers import DECLINED, distance_to_instability, in_blocks, many_queries, one_query
from quorate.mechanisms.fields import FROM_TASK, PRICE, Schedule, least
from quorate.mechanisms.mechanism import CUTOFF, QueryMechanism, StreamMechanism, register
from quorate.mechanisms.stage_noise import PASSING_PROBABILITY, StageNoise, btt18, lzcw21, tight
from quorate.noise import NoiseSource, discrete_laplace
from quorate.noise.source import MAX_SCALE
from quorate.stored_names import stored_as
from quorate.types import IntArray, Secret

_UP = 1 + 2.0**-48  # the threshold is rounded up, further than the noise's scale is


@stored_as("quorate.mechanisms.stability.DistanceToInstability")
@register
@dataclass(frozen=True, slots=True)
class DistanceToInstability(QueryMechanism):
    r"""Release the exact plurality class where the votes are stable enough, else decline: :math:`A_{stab}`.

    Parameters
    ----------
    epsilon : float
        ε of one query; must be > 0.
    delta : float
        δ of one query; must be > 0 and < 1.

    Attributes
    ----------
    threshold : float
        Γ = log(1/δ)/ε, in votes.

    Notes
    -----
    A query passes where :math:`dist + \mathrm{Lap}_Z(1/\varepsilon) > \Gamma`. Privacy, for neighbours D and D′:
    where dist(D) ≥ 1 or dist(D′) ≥ 1 the plurality class is the same on both, and the answer is made of
    it and of a noisy integer of sensitivity 1: ε-DP. Where both are 0 the classes may differ, a label is released
    with probability :math:`P(Z > \Gamma) = e^{-\varepsilon(\lfloor \Gamma \rfloor + 1)}/(1 + e^{-\varepsilon}) <
    \delta`, and ⊥ has the same probability on both: (0, δ)-DP. The scale of the noise is rounded up, and Γ
    further.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta, 2018), Algorithm 1 and Theorem 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = DistanceToInstability(epsilon=1.0, delta=1e-5)
    >>> mechanism.release_many(np.array([[200, 50], [130, 120]]), SeededNoise(0)).tolist()
    [0, -1]
    """

    may_decline: ClassVar[bool] = True

    epsilon: float = field(metadata=PRICE)
    delta: float = field(metadata=PRICE)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "delta", real("delta", self.delta, above=0, below=1))
        if self.epsilon < 2 / MAX_SCALE:
            raise InvalidParameter(
                parameter="epsilon", got=self.epsilon, expected="at least 2^-39", advice="the noise would be too wide"
            )

    @property
    def event(self) -> ApproxDP:
        """Price of one answer."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def threshold(self) -> float:
        """Γ, in votes: a query passes where its noisy distance is above it."""
        return -log(self.delta) / self.epsilon * _UP

    @property
    def test(self) -> AgreementTest:
        """The plurality class must be further from a tie than Γ."""
        return AgreementTest(statistic="distance to instability", threshold=self.threshold)

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered: exactly, where they are far enough from a tie."""
        largest = self.test.largest(n_teachers)
        return Answerable(probability=self.passes(largest), test=self.test, largest=largest)

    def passes(self, statistic: int) -> float:
        """Return the probability that a distance passes the test."""
        return passes("laplace", 1 / self.epsilon, floor(self.threshold) + 1 - statistic)

    @classmethod
    def with_noise(cls, noise: float, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it at ε = 1 / `noise`; half of the schedule's δ is divided among the answers."""
        return cls(**values, epsilon=1 / noise, delta=schedule.delta / (2 * schedule.answers))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` vote counts: class indices, or ``DECLINED``."""
        counts, scale = many_queries(counts), float(np.nextafter(1 / self.epsilon, np.inf))
        answers = np.empty(len(counts), dtype=np.int64)
        for rows, block in in_blocks(counts):
            distance = distance_to_instability(block)
            passed = distance + discrete_laplace(scale, distance.shape, noise) > self.threshold
            answers[rows] = np.where(passed, block.argmax(axis=1), DECLINED)
        return answers


Calibration: TypeAlias = Literal["tight", "lzcw21", "btt18"]

_SCAN = 4096


@dataclass(frozen=True, slots=True)
class SparseVectorState:
    """Where a run stands. All of it is public but the noisy threshold of the open stage, which refuses to be shown.

    `stages_spent`: how many stages have ended: the queries that were declined, and the interruptions. `asked`: how many
    queries were asked. `open`: whether another query may be asked.
    """

    noisy_threshold: Secret[int]
    stages_spent: int
    asked: int
    open: bool


class SparseVectorRun(StreamMechanism):
    """A run of sparse vector stages at one ε and δ: how many queries may be declined and asked, and its calibration."""

    __slots__ = ()

    epsilon: float
    delta: float
    cutoff: int

    def _check_numbers(self) -> None:
        object.__setattr__(self, "cutoff", count("cutoff", self.cutoff, at_least=1))
        object.__setattr__(self, "n_queries", count("n_queries", self.n_queries, at_least=1))
        if self.cutoff > self.n_queries:
            most = f"at most the number of queries, which is {self.n_queries!r}"
            raise InvalidParameter(parameter="cutoff", got=self.cutoff, expected=most, advice="no more can be declined")

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it at the whole budget of the schedule, less what rounding takes."""
        return least(lambda noise: cls.with_noise(noise, values, schedule), 1.0, schedule)

    @classmethod
    def with_noise(cls, noise: float, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it at ε over `noise`, and δ, of the whole schedule."""
        kind: Callable[..., Self] = cls  # a dataclass with these fields
        return kind(**values, epsilon=schedule.epsilon / noise, delta=schedule.delta)


@stored_as("quorate.mechanisms.stable_sparse_vector.StableSparseVector")
@register
@dataclass(frozen=True, slots=True)
class StableSparseVector(SparseVectorRun):
    r"""Answer any number of stable queries exactly, and decline T unstable ones, for one price.

    Where the votes of a query are further from a tie than a noisy threshold, the exact plurality class is released,
    at no further price. Else the query is declined, and a stage is spent. After T declined queries the run is over. The
    number of classes does not matter: the "votes" may be the values of any function with a discrete range, computed on
    each shard (BTT18a, Algorithms 3 and 4).

    Parameters
    ----------
    epsilon : float
        ε of the whole run; must be > 0.
    delta : float
        δ of the whole run; must be > 0 and < 1.
    cutoff : int
        T ≥ 1: how many queries may be declined.
    n_queries : int
        m ≥ T: how many queries may be asked. The tight threshold does not depend on it.
    calibration : {"tight", "lzcw21", "btt18"}, default "tight"
        Which noise; see :mod:`quorate.mechanisms.stage_noise`.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the counts are not int64 votes or are more than `n_queries`.
    MechanismClosed
        If a query is asked after the T-th was declined, or after m queries.

    Notes
    -----
    Privacy: T stages, each ε₀-DP in its pattern of passes, and a probability δ_tail that a query on which one
    changed teacher could change the label is answered; the proof stands in
    :mod:`quorate.mechanisms.stage_noise`. Queries may be chosen adaptively. :attr:`event` is the price of the whole
    run; with the papers' calibrations it is usually below the (ε, δ) that was asked for.

    A stage that is interrupted ends, since its threshold is gone: go on with
    ``init(noise, stages_spent=spent + 1, asked=asked)``.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta, 2018), Algorithm 2; BTT18a (arXiv:1803.05101), Algorithms 3, 4; LZCW21 (Liu,
    Zhu, Chaudhuri, Wang, 2021), Algorithm 2. Optimal composition: Kairouz, Oh, Viswanath (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=100)
    >>> stream = np.array([[900, 100], [90, 910], [510, 490], [999, 1]])
    >>> mechanism.release(stream, SeededNoise(0)).tolist()
    [0, 1, -1, 0]
    >>> noise = SeededNoise(1)
    >>> state = mechanism.init(noise)
    >>> state, answer = mechanism.step(state, np.array([510, 490]), noise)
    >>> answer is None, state.stages_spent, state.open
    (True, 1, True)
    >>> state
    SparseVectorState(noisy_threshold=Secret(…), stages_spent=1, asked=1, open=True)
    """

    epsilon: float = field(metadata=PRICE)
    delta: float = field(metadata=PRICE)
    cutoff: int = field(metadata=CUTOFF)
    n_queries: int = field(metadata=FROM_TASK)
    calibration: Calibration = "tight"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "delta", real("delta", self.delta, above=0, below=1))
        one_of("calibration", self.calibration, ("tight", "lzcw21", "btt18"))
        self._check_numbers()
        _ = self.stage_noise  # refuses what cannot be calibrated

    @property
    def stage_noise(self) -> StageNoise:
        """The calibrated noise of a stage."""
        if self.calibration == "tight":
            return tight(self.epsilon, self.delta, self.cutoff)
        paper = btt18 if self.calibration == "btt18" else lzcw21
        return paper(self.epsilon, self.delta, self.cutoff, self.n_queries)

    @property
    def event(self) -> Composed:
        """Price of one whole run, however many queries it answers."""
        return self.stage_noise.event(self.cutoff)

    @property
    def sparse_vector(self) -> StableSparseVector:
        """Itself."""
        return self

    @property
    def stages(self) -> int:
        """T: each declined query ends one."""
        return self.cutoff

    @property
    def test(self) -> AgreementTest:
        """The plurality class must be further from a tie than a noisy threshold."""
        return AgreementTest(statistic="distance to instability", threshold=self.passing_dist(0.5))

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered in a fresh stage: exactly, where they are far enough from a tie."""
        largest = self.test.largest(n_teachers)
        return Answerable(probability=self.pass_probability(largest), test=self.test, largest=largest)

    def passes(self, statistic: int) -> float:
        """Return the probability that a distance passes in a fresh stage."""
        return self.pass_probability(statistic)

    @property
    def stage_epsilon(self) -> float:
        """ε₀: the pure price of one stage."""
        return self.stage_noise.epsilon

    @property
    def threshold(self) -> float:
        """The threshold w before noise, in votes."""
        return self.stage_noise.threshold

    def passing_dist(self, probability: float = PASSING_PROBABILITY) -> int:
        """Return the least distance to instability that is answered with this probability in a fresh stage.

        A distance d takes a gap between the two largest counts of at least 2d + 1.
        """
        return self.stage_noise.passing_dist(real("probability", probability, above=0, below=1))

    def pass_probability(self, distance: int) -> float:
        """Return the probability that a query of this distance is answered in a fresh stage."""
        return self.stage_noise.pass_probability(count("distance", distance))

    def init(self, noise: NoiseSource, stages_spent: int = 0, asked: int = 0) -> SparseVectorState:
        """Open a run; or, after an interruption, go on with what it had spent, the broken stage included."""
        stages_spent, asked = count("stages_spent", stages_spent), count("asked", asked)
        return SparseVectorState(
            noisy_threshold=Secret(self.stage_noise.draw_bar(noise)),
            stages_spent=stages_spent,
            asked=asked,
            open=stages_spent < self.cutoff and asked < self.n_queries,
        )

    def step(
        self, state: SparseVectorState, counts: IntArray, noise: NoiseSource
    ) -> tuple[SparseVectorState, int | None]:
        """Answer one query from its ``(n_classes,)`` vote counts: a class index, or None; and the next state."""
        row = one_query(counts)
        if not state.open:
            raise MechanismClosed("the sparse vector is closed: its cutoff or its number of queries is reached")
        noisy = self.stage_noise.draw_noisy(distance_to_instability(row), noise)
        n_asked = state.asked + 1
        if noisy[0] > state.noisy_threshold.reveal():
            return replace(state, asked=n_asked, open=n_asked < self.n_queries), int(row[0].argmax())
        return self.init(noise, state.stages_spent + 1, n_asked), None

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer a whole stream ``(n_queries, n_classes)``: class indices, or ``DECLINED``, ``(n_queries,)``.

        Rows after the T-th declined one are not asked; they are ``DECLINED`` too. The answers have the law of
        :meth:`step` called row by row; here the queries' noise is drawn first, all at once.
        """
        counts = many_queries(counts)
        if counts.shape[0] > self.n_queries:
            raise InvalidParameter(f"counts must have at most n_queries={self.n_queries} rows, got {counts.shape[0]}")
        noisy = self.stage_noise.draw_noisy(distance_to_instability(counts), noise)
        answers: IntArray = counts.argmax(axis=1)
        start = 0
        for _stage in range(self.cutoff):
            start = _first_at_most(noisy, start, self.stage_noise.draw_bar(noise))
            if start == noisy.size:
                return answers
            answers[start] = DECLINED
            start += 1
        answers[start:] = DECLINED
        return answers


def _first_at_most(noisy: IntArray, start: int, bar: int) -> int:
    """Return the first index from `start` whose noisy distance is not above the bar, or the stream's length."""
    for low in range(start, noisy.size, _SCAN):
        failed = noisy[low : low + _SCAN] <= bar
        if failed.any():
            return low + int(failed.argmax())
    return int(noisy.size)
