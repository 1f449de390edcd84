"""The exponential mechanism over all thresholds of a grid, 2^32 of them or more, without listing them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from quorate.accounting import PureDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.learners.base.choice_bound import agnostic_choice_rows, choice_rows
from quorate.learners.base.exponential import AGNOSTIC_CHOICE, check_labelled
from quorate.learners.base.grid_choice import GridChoice
from quorate.learners.concepts.protocol import Points
from quorate.learners.concepts.thresholds import Threshold, Thresholds
from quorate.learners.private_learner import UNLABELLED, CodedLabels, Plan, PrivateLearner, RowsNeeded
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import IntArray

_DENSE = 8
_LARGEST_BITS = 61  # so that 2^bits + 1 cuts fit a GridChoice


@stored_as("quorate.learners.noisy_threshold.NoisyThreshold")
@dataclass(kw_only=True, eq=False, repr=False)
class NoisyThreshold(PrivateLearner):
    r"""Learn a threshold on a grid: each of the :math:`2^{bits} + 1` cuts with weight :math:`e^{-\varepsilon M/2}`.

    It is :class:`~quorate.learners.ExponentialLearner` on thresholds, at a cost of n log n whatever the grid: between
    two data points all cuts make the same M mistakes.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    Parameters
    ----------
    concepts : Thresholds
        Of at most 61 bits.
    alpha, beta : float, default 0.1
        The theorem's: error above α with probability at most β, where some threshold is the truth.

    Attributes
    ----------
    n_labels_used_ : int
        All labels that were given. Rows without one are not looked at.

    Notes
    -----
    Privacy: replacing one record moves the mistakes of every cut by at most 1; one choice with ε (see
    :class:`~quorate.learners.base.grid_choice.GridChoice`). Labels needed grow with the number of bits:
    :class:`~quorate.learners.GenericLearner` replaces that by unlabelled rows.

    References
    ----------
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
    alpha: float = 0.1
    beta: float = 0.1

    def _check_arguments(self) -> None:
        concepts = self._concept_class
        if not isinstance(concepts, Thresholds) or concepts.bits > _LARGEST_BITS:
            raise InvalidParameter(
                f"concepts must be Thresholds of at most {_LARGEST_BITS} bits, got {concepts!r}; other finite "
                "classes go to ExponentialLearner"
            )
        real("alpha", self.alpha, above=0, below=1)
        real("beta", self.beta, above=0, below=1)

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

    def agnostic_rows_needed(self) -> RowsNeeded:
        """Return how many labels are enough where no cut is the truth: an error of α beyond the best one's."""
        epsilon, _ = self._target()
        size = log(2**self.concepts.bits + 1)
        rows = agnostic_choice_rows(size, alpha=self.alpha, beta=self.beta, epsilon=epsilon)
        return RowsNeeded(labelled=rows, unlabelled=0, theorem=AGNOSTIC_CHOICE)

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        return RowsNeeded(
            labelled=choice_rows(log(2**self.concepts.bits + 1), alpha=self.alpha, beta=self.beta, epsilon=epsilon),
            unlabelled=0,
            theorem="KLNRS11 Theorem 3.4",
        )


def threshold_runs(values: IntArray, labels: CodedLabels, bits: int) -> tuple[IntArray, IntArray]:
    r"""Return minus the mistakes of the cuts 0 … 2^bits, run by run, and how many cuts each run has.

    `values`: points of the grid. `labels`: 0 or 1. `bits`: the grid has :math:`2^{bits}` points. Returns: scores and
    sizes. A cut labels the points below it 1, so run k holds the cuts above exactly k distinct points.
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
    there = np.flatnonzero(zeros + ones)
    return there + first, zeros[there], ones[there]
