"""The exponential mechanism over a grid too large to list: scores that are constant on few runs of candidates.

A private threshold is such a choice, over all cuts of a grid, 2^32 of them or more.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import log
from operator import mul

import numpy as np

from quorate.accounting import PureDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.learners.amplification import random_integers
from quorate.learners.base.exponential import WholeClassLearner, check_labelled, check_theorem
from quorate.learners.concepts.line import Threshold, Thresholds
from quorate.learners.concepts.protocol import Points
from quorate.learners.private_learner import UNLABELLED, CodedLabels, Plan
from quorate.noise import NoiseSource
from quorate.noise.source import words_of
from quorate.noise.table import WEIGHT_BITS, exp_negative
from quorate.stored_names import stored_as
from quorate.types import IntArray

_UNIFORM_WORDS = 4
LARGEST_GRID = 2**62
_MANY, _LARGEST_TABLE = 64, 8192


@stored_as("quorate.learners.base.grid_choice.GridChoice")
@dataclass(frozen=True, slots=True)
class GridChoice:
    r"""Choose candidate t of 0 … N − 1 with probability proportional to :math:`e^{\varepsilon q(t)/(2\Delta)}`.

    The candidates come as consecutive runs of one score each, so that a grid of 2^32 costs no more than the number of
    runs. Where data points cut the grid, there are at most about twice as many as points.

    `epsilon`: ε of one choice; must be > 0. `sensitivity`: Δ > 0: how far one changed record moves the score of any one
    candidate. Raises InvalidParameter if a field is out of range; on release, if scores and sizes are no runs of a grid
    of at most 2^62.

    Privacy: the law is that of :class:`~quorate.mechanisms.Exponential` over all N candidates: ε-DP. Runs are a way to
    write the scores down; where they begin and end is as private as the scores, and is not released.

    Exactness: a run's weight is its size times a 320-bit integer; one 256-bit uniform integer chooses the run, and an
    exact uniform integer the candidate in it: within 2^-190 in total variation.

    McSherry and Talwar (2007); Smith (2011), Algorithm 2, for the same sampling of a quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> runs = np.array([-40, 0, -40]), np.array([2**31, 5, 2**31 - 5])
    >>> GridChoice(epsilon=2.0).release(*runs, SeededNoise(0)) - 2**31
    4
    """

    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "sensitivity", real("sensitivity", self.sensitivity, above=0))

    @property
    def event(self) -> PureDP:
        """Price of one choice."""
        return PureDP(self.epsilon)

    def release(self, scores: IntArray, sizes: IntArray, noise: NoiseSource) -> int:
        """Choose a candidate.

        `scores`, `sizes`: ``(n_runs,)``, the score of each run, larger is better, and how many candidates are in it,
        2^62 together at most. `noise`: where the words come from. Returns: from 0 to ``sizes.sum() - 1``.
        """
        _check_runs(scores, sizes)
        rate = Fraction(self.epsilon) / (2 * Fraction(self.sensitivity))
        gaps, place = np.unique(scores[sizes > 0].max() - scores, return_inverse=True)
        # A run without candidates may have a better score than all others: its weight is 0 whatever it is.
        weights = _weights(rate, [max(gap, 0) for gap in gaps.tolist()])
        runs = sizes.tolist()
        borders = list(accumulate(map(mul, (weights[i] for i in place.tolist()), runs)))
        uniform = int.from_bytes(words_of(noise, _UNIFORM_WORDS).astype(">u8").tobytes(), "big")
        run = bisect_right(borders, (borders[-1] * uniform) >> 64 * _UNIFORM_WORDS)
        first: int = sum(runs[:run])
        return first + int(random_integers(sizes[run : run + 1], noise)[0])


def _weights(rate: Fraction, gaps: list[int]) -> list[int]:
    """Return 2^320 e^(−rate gap) of each; where there are many, from a table of all that are not 0."""
    least_zero = WEIGHT_BITS * rate.denominator // rate.numerator + 1
    if len(gaps) < _MANY or least_zero > _LARGEST_TABLE:
        return [exp_negative(rate * gap) for gap in gaps]
    table = _table(rate, least_zero)
    return [table[gap] if gap < least_zero else 0 for gap in gaps]


@lru_cache(maxsize=8)
def _table(rate: Fraction, size: int) -> list[int]:
    """All weights at a rate: a function of the rate alone, which is public."""
    return [exp_negative(rate * gap) for gap in range(size)]


def _check_runs(scores: IntArray, sizes: IntArray) -> None:
    arrays = (scores, sizes)
    if not all(isinstance(array, np.ndarray) and array.dtype == np.int64 and array.ndim == 1 for array in arrays):
        raise InvalidParameter("scores and sizes must be one-dimensional int64 arrays")
    if scores.shape != sizes.shape or not (sizes >= 0).all() or not 0 < sum(sizes.tolist()) <= LARGEST_GRID:
        raise InvalidParameter("sizes must be one whole number >= 0 for every score, from 1 to 2^62 together")


_DENSE = 8
_LARGEST_BITS = 61  # so that 2^bits + 1 cuts fit a GridChoice


@stored_as("quorate.learners.noisy_threshold.NoisyThreshold")
@dataclass(kw_only=True, eq=False, repr=False)
class NoisyThreshold(WholeClassLearner):
    r"""Learn a threshold on a grid: each of the :math:`2^{bits} + 1` cuts with weight :math:`e^{-\varepsilon M/2}`.

    It is :class:`~quorate.learners.ExponentialLearner` on thresholds, at a cost of n log n whatever the grid: between
    two data points all cuts make the same M mistakes.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    `concepts`: of at most 61 bits.

    Privacy: replacing one record moves the mistakes of every cut by at most 1; one choice with ε (see
    :class:`~quorate.learners.base.grid_choice.GridChoice`). Labels needed grow with the number of bits:
    :class:`~quorate.learners.GenericLearner` replaces that by unlabelled rows.

    KLNRS11 (Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith), Theorem 3.4, for a finite class.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> X = np.random.default_rng(0).integers(0, 2**32, (2_000, 1))
    >>> learner = NoisyThreshold(concepts=Thresholds(bits=32), epsilon=1.0, alpha=0.05, unsafe_noise_seed=0)
    >>> learner.rows_needed().labelled
    1233
    >>> learner.fit(X, X[:, 0] < 2**31).score(X, X[:, 0] < 2**31) > 0.95
    True
    """

    concepts: Thresholds

    def _check_arguments(self) -> None:
        concepts = self._concept_class
        if not isinstance(concepts, Thresholds) or concepts.bits > _LARGEST_BITS:
            raise InvalidParameter(
                parameter="concepts",
                got=concepts,
                expected=f"Thresholds of at most {_LARGEST_BITS} bits",
                advice="other finite classes go to ExponentialLearner",
                instead="ExponentialLearner",
            )
        check_theorem(self)

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> Plan:
        check_labelled(self, n_labelled)
        return Plan(
            event=PureDP(epsilon),
            told=f"one of all {2**self.concepts.bits + 1:,} thresholds, chosen by the exponential mechanism by its "
            f"mistakes on {n_labelled:,} labelled records",
            n_labels=n_labelled,
        )

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Plan) -> Threshold:
        known = labels != UNLABELLED
        scores, sizes = threshold_runs(points[known, 0], labels[known], self.concepts.bits)
        return Threshold(GridChoice(plan.event.epsilon).release(scores, sizes, noise.at("choice", 0)))

    def log_size(self) -> float:
        """Return the logarithm of the number of cuts."""
        return log(2**self.concepts.bits + 1)


def threshold_runs(values: IntArray, labels: CodedLabels, bits: int) -> tuple[IntArray, IntArray]:
    """Return minus the mistakes of the cuts 0 … 2^bits, run by run, and how many cuts each run has.

    A cut labels the points below it 1, so run k holds the cuts above exactly k distinct points.
    """
    distinct, zeros, ones = _counts(values, labels)
    mistakes = ones.sum() + np.concatenate([[0], np.cumsum(zeros - ones)])
    sizes = np.diff(distinct, prepend=-1, append=2**bits)
    return -mistakes.astype(np.int64), sizes.astype(np.int64)


def _counts(values: IntArray, labels: CodedLabels) -> tuple[IntArray, IntArray, IntArray]:
    """Return the distinct values, increasing, and how often each is labelled 0 and 1."""
    first, span = (int(values.min()), int(values.max()) - int(values.min()) + 1) if values.size else (0, 0)
    if span <= _DENSE * values.size:  # a table of all values between costs less than a sort
        place, distinct = values - first, None
    else:
        distinct, place = np.unique(values, return_inverse=True)
        span = distinct.size
    ones = np.bincount(place[labels == 1], minlength=span).astype(np.int64)
    zeros = np.bincount(place, minlength=span) - ones
    if distinct is not None:
        return distinct, zeros, ones
    occupied = np.flatnonzero(zeros + ones)
    return occupied + first, zeros[occupied], ones[occupied]
