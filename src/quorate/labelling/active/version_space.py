r"""Disagreement-based active learning with its version space written out (LZCW21 Alg. 4, after Hanneke 2014).

For hypothesis classes that are small on the pool. It is the reference that the practical strategies are tested
against.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count, real
from quorate.labelling.active.strategy import History, Strategy, next_questions, up_to_powers_of_two
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.labelling.active.version_space.thresholds")
def thresholds(pool: Any) -> IntArray:
    """Label the pool by every threshold on its first column: class 1 from the threshold on.

    Returns
    -------
    IntArray
        ``(n_points + 1, n_points)`` at most: one row for each way in which thresholds label these points.

    Examples
    --------
    >>> thresholds(np.array([[0.5], [0.1], [0.9]]))
    array([[1, 1, 1],
           [1, 0, 1],
           [0, 0, 1],
           [0, 0, 0]])
    """
    column = pool[:, [0]]
    values = np.asarray(column.toarray() if hasattr(column, "toarray") else column, dtype=np.float64).ravel()
    cuts = np.append(np.unique(values), np.inf)
    return (values[None, :] >= cuts[:, None]).astype(np.int64)


@stored_as("quorate.labelling.active.version_space.VersionSpace")
@dataclass(frozen=True)
class VersionSpace(Strategy):
    r"""Ask where the hypotheses that are left disagree (LZCW21 Alg. 4); two classes.

    After 1, 2, 4, … points of the stream, a hypothesis is dropped that errs by more than :math:`U(j, \gamma_j)\,j` more
    often than the best one on the answers so far, with

    .. math:: U(j, \gamma_j) = c'\,\frac{d \log\theta + \log(1/\gamma_j)}{j}
              + c' \sqrt{\mathrm{Err}(h^*)\,\frac{d\log\theta + \log(1/\gamma_j)}{j}},
              \qquad \gamma_j = \frac{\gamma}{(\log_2 2j)^2}.

    Parameters
    ----------
    n : int
        The most points that are asked: ℓ.
    labellings : callable, default thresholds
        ``labellings(pool)`` returns ``(n_hypotheses, n_points)`` classes: the hypothesis class on the pool.
    dimension : int, default 1
        d, its VC dimension.
    theta : float, default 2.0
        θ ≥ 1, the disagreement coefficient, taken as constant: 2 for thresholds.
    error : float, default 0.0
        Err(h*) of the best hypothesis against the answers, in [0, 1): how noisy they are.
    gamma : float, default 0.05
        γ, how often a good hypothesis may be dropped.
    constant : float, default 1.0
        c' > 0. A pure number that the theorem leaves open.

    Examples
    --------
    >>> pool = np.random.default_rng(0).uniform(0, 1, (1_500, 1))
    >>> strategy, past = VersionSpace(500), History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
    >>> while len(rows := strategy.next_batch(pool, past, np.random.default_rng(1))):
    ...     asked = np.concatenate([past.rows, rows])
    ...     past = History(asked, (pool[asked, 0] > 0.4).astype(int), 2)
    >>> len(past.rows) < 300
    True
    """

    labellings: Callable[[Any], IntArray] = field(default=thresholds, kw_only=True)
    dimension: int = field(default=1, kw_only=True)
    theta: float = field(default=2.0, kw_only=True)
    error: float = field(default=0.0, kw_only=True)
    gamma: float = field(default=0.05, kw_only=True)
    constant: float = field(default=1.0, kw_only=True)

    two_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "dimension", count("dimension", self.dimension, at_least=1))
        object.__setattr__(self, "theta", real("theta", self.theta, at_least=1))
        object.__setattr__(self, "error", real("error", self.error, at_least=0, below=1))
        object.__setattr__(self, "gamma", real("gamma", self.gamma, above=0, below=1))
        object.__setattr__(self, "constant", real("constant", self.constant, above=0))

    def slack(self, j: int) -> float:
        r"""Return :math:`U(j, \gamma_j)`.

        Examples
        --------
        >>> round(VersionSpace(10).slack(8), 4)
        0.8077
        """
        gamma_j = self.gamma / math.log2(2 * j) ** 2
        rate = (self.dimension * math.log(self.theta) + math.log(1 / gamma_j)) / j
        return self.constant * (rate + math.sqrt(self.error * rate))

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose the questions up to the next update that has any."""
        labels = np.asarray(self.labellings(pool))
        epochs = up_to_powers_of_two(pool.shape[0])
        return next_questions(epochs, history, lambda rows, codes: _Belief(self, labels, codes))

    def version_space(self, pool: Any, history: History) -> NDArray[np.bool_]:
        """Say which hypotheses are left, ``(n_hypotheses,)``, once every point of the stream was seen."""
        codes = np.full(pool.shape[0], -1, dtype=np.int64)
        codes[history.rows] = history.codes
        return self._left(np.asarray(self.labellings(pool)), codes)

    def _left(self, labels: IntArray, codes: IntArray) -> NDArray[np.bool_]:
        """Hypotheses left after all updates on a stream with these answers (-1: not asked, or not answered)."""
        left = np.ones(len(labels), dtype=np.bool_)
        j = 1
        while j <= len(codes):
            answered = np.flatnonzero(codes[:j] >= 0)
            wrong = np.sum(labels[:, answered] != codes[answered], axis=1)
            left &= wrong - wrong[left].min() <= self.slack(j) * j
            j *= 2
        return left


class _Belief:
    def __init__(self, strategy: VersionSpace, labels: IntArray, codes: IntArray) -> None:
        self.labels_left = labels[strategy._left(labels, codes)]

    def asks(self, rows: IntArray) -> NDArray[np.bool_]:
        split: NDArray[np.bool_] = np.ptp(self.labels_left[:, rows], axis=0) > 0
        return split

    def labels(self, rows: IntArray) -> IntArray:
        return np.full(len(rows), -1, dtype=np.int64)  # Alg. 4 learns from answers alone
