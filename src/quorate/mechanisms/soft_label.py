"""Soft labels: where most teachers' scores fall into one bin, its mid-point (BTT18a Algorithms 6 to 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from quorate.accounting import Composed
from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.mechanisms.answer_law import AgreementTest, Answerable
from quorate.mechanisms.answers import DECLINED, BinnedScores
from quorate.mechanisms.fields import FROM_TASK, PRICE, example
from quorate.mechanisms.mechanism import CUTOFF, Takes, register
from quorate.mechanisms.sparse_vector import Calibration, SparseVectorRun, SparseVectorState, StableSparseVector
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray


@stored_as("quorate.mechanisms.soft_label.SoftLabel")
@register
@dataclass(frozen=True, slots=True)
class SoftLabel(SparseVectorRun):
    r"""Release a score in [0, 1] that most teachers give, to within half a bin.

    The interval is cut into B bins, and a second time into the same bins shifted by half a bin, without the two
    half-bins at the ends. A query's scores are counted in the first partition, and the fullest bin is released if the
    counts are stable. If not, a stage is spent and the second partition is tried: scores that lie on both sides of a
    border of the first lie within a bin of the second. If that is not stable either, another stage is spent and the
    query is declined. Scores near 0 or 1 are never near such a border.

    Parameters
    ----------
    epsilon : float
        ε of the whole run; must be > 0.
    delta : float
        δ of the whole run; must be > 0 and < 1.
    cutoff : int
        T ≥ 1: the run holds 2T stages, so it ends after T queries that were declined, or 2T that took the second
        partition.
    n_queries : int
        m ≥ T: how many queries may be asked.
    bins : int
        B ≥ 2: each bin is 1/B wide.
    calibration : {"tight", "lzcw21", "btt18"}, default "tight"
        As for :class:`StableSparseVector`, with T → 2T and m → 2m.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the scores are not a float64 array.
    MechanismClosed
        If a query is asked after the last stage was spent, or after 2m tests.

    Notes
    -----
    Privacy: a run is a :class:`StableSparseVector` on at most 2m adaptively chosen queries, whose "votes" are the
    counts of a partition: one changed teacher moves one score, from one bin (or none) to another (or none). A
    width of its own for each query is a public choice, and is allowed.

    A score that is NaN is an abstention, and one outside [0, 1] is taken for the nearer end: a refusal would be an
    output that one teacher decides.

    An answer is an integer c from 1 to 2B − 1 that stands for the score c/(2B): odd where the first partition
    answered, even where the second did.

    References
    ----------
    BTT18a (Bassily, Thakkar, Thakurta, arXiv:1803.05101), Algorithms 6 to 8 and Theorem 5.4; the shift is that of
    Dwork and Lei (2009).

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = SoftLabel(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=100, bins=10)
    >>> rng = np.random.default_rng(0)
    >>> scores = np.clip(rng.normal([[0.97], [0.50], [0.10]], [[0.01], [0.5], [0.01]], (3, 1000)), 0, 1)
    >>> answers = mechanism.release(scores, SeededNoise(0))
    >>> answers.tolist()
    [19, -1, 2]
    >>> mechanism.values(answers)
    array([0.95,  nan, 0.1 ])
    """

    takes: ClassVar[Takes] = "scores"
    releases_values: ClassVar[bool] = True
    stages_a_query: ClassVar[int] = 2  # one for each partition

    epsilon: float = field(metadata=PRICE)
    delta: float = field(metadata=PRICE)
    cutoff: int = field(metadata=CUTOFF)
    n_queries: int = field(metadata=FROM_TASK)
    bins: int = field(metadata=example(10, "how finely scores are told apart"))
    calibration: Calibration = "tight"

    def __post_init__(self) -> None:
        self._check_numbers()
        object.__setattr__(self, "bins", count("bins", self.bins, at_least=2))
        tests = self.sparse_vector
        object.__setattr__(self, "epsilon", tests.epsilon)
        object.__setattr__(self, "delta", tests.delta)

    @property
    def sparse_vector(self) -> StableSparseVector:
        """The sparse vector that both partitions are tested with: 2T stages, 2m queries."""
        return StableSparseVector(self.epsilon, self.delta, 2 * self.cutoff, 2 * self.n_queries, self.calibration)

    @property
    def event(self) -> Composed:
        """Price of one whole run, however many queries it answers."""
        return self.sparse_vector.event

    @property
    def stages(self) -> int:
        """2T: a query may end one for each partition."""
        return self.sparse_vector.stages

    def stages_used(self, answers: IntArray) -> IntArray:
        """Return how many stages each answer has ended: two where a query was declined, one by the second partition.

        An odd code is of the first partition; an even one, of the second, took the stage of the first.
        """
        second = (answers > 0) & (answers % 2 == 0)
        return np.where(answers == DECLINED, 2, np.where(second, 1, 0)).astype(np.int64)

    @property
    def answers(self) -> BinnedScores:
        """Codes of scores."""
        return BinnedScores(self.bins)

    @property
    def test(self) -> AgreementTest:
        """The fullest bin must be further from a tie than a noisy threshold."""
        return self.sparse_vector.test

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered, where all their scores lie in one bin; of the first partition."""
        return self.sparse_vector.answerable(n_teachers, n_classes)

    def init(self, noise: NoiseSource, stages_spent: int = 0, asked: int = 0) -> SparseVectorState:
        """Open a run; or, after an interruption, go on with what it had spent, the broken stage included.

        `asked`, here and in the state, counts tests: up to two for each query.
        """
        return self.sparse_vector.init(noise, stages_spent, asked)

    def step(
        self, state: SparseVectorState, scores: FloatArray, noise: NoiseSource, bins: int | None = None
    ) -> tuple[SparseVectorState, int | None]:
        """Answer one query from its ``(n_teachers,)`` scores: a code c, or None; and the next state.

        The code stands for the score c/(2B). `bins` is this query's own B, where it differs.
        """
        if not isinstance(scores, np.ndarray) or scores.ndim != 1:
            raise InvalidParameter("scores must be one query's, a float64 array (n_teachers,); pass one row")
        row = _checked(scores)
        bins = self.bins if bins is None else count("bins", bins, at_least=2)
        tests = self.sparse_vector
        state, answer = tests.step(state, _counts(row * bins, bins), noise)
        if answer is not None:
            return state, 2 * answer + 1
        if not state.open:
            return state, None
        state, answer = tests.step(state, _counts(row * bins - 0.5, bins - 1), noise)
        return state, None if answer is None else 2 * answer + 2

    def release(self, counts: FloatArray, noise: NoiseSource) -> IntArray:
        """Answer a stream of scores ``(n_queries, n_teachers)``: codes, or ``DECLINED``, ``(n_queries,)``.

        Rows that come after the last stage was spent are ``DECLINED`` too.
        """
        scores = counts
        if not isinstance(scores, np.ndarray) or scores.ndim != 2:
            raise InvalidParameter("scores must be a float64 array (n_queries, n_teachers); pass one row per query")
        if scores.shape[0] > self.n_queries:
            raise InvalidParameter(f"scores must have at most n_queries={self.n_queries} rows, got {scores.shape[0]}")
        scores = _checked(scores)
        answers = np.full(scores.shape[0], DECLINED, dtype=np.int64)
        state = self.init(noise)
        for i, row in enumerate(scores):
            if not state.open:
                break
            state, answer = self.step(state, row, noise)
            answers[i] = DECLINED if answer is None else answer
        return answers

    def values(self, answers: IntArray) -> FloatArray:
        """Return the scores that released codes stand for; NaN where a query was declined."""
        return self.answers.published(answers)


def _checked(scores: FloatArray) -> FloatArray:
    if scores.dtype != np.float64:
        raise InvalidParameter(f"scores must be float64, got {scores.dtype}; pass numbers from 0 to 1")
    return np.clip(scores, 0.0, 1.0)  # NaN stays NaN


def _counts(place: FloatArray, n_bins: int) -> IntArray:
    """Count places in the bins [0, 1), …, [n−1, n]: those outside are not counted. At least two columns."""
    place = place[(place >= 0) & (place <= n_bins)]  # drops NaN too
    bin_of = np.minimum(np.floor(place).astype(np.int64), n_bins - 1)
    return np.bincount(bin_of, minlength=max(2, n_bins)).astype(np.int64)
