"""Uncertainty sampling: ask where a model of the released labels is least sure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.arguments import count
from quorate.data import take
from quorate.ensemble.unfitted import may_have
from quorate.errors import InvalidParameter
from quorate.labelling.active.erm import Erm, seed_of
from quorate.labelling.active.strategy import History, Strategy
from quorate.stored_names import stored_as
from quorate.types import IntArray

BATCHES = 10


@stored_as("quorate.labelling.active.margin.Margin")
@dataclass(frozen=True)
class Margin(Strategy):
    """Ask, in batches, the points whose two likeliest classes are nearest to each other.

    Parameters
    ----------
    n : int
        How many points are asked. The first batch is random.
    learner : estimator, default LogisticRegression()
        Any scikit-learn classifier with ``predict_proba``, unfitted; fitted on the released labels before each batch.
    batch : int, optional
        Points a batch; by default a tenth of n, and at least 10.

    Raises
    ------
    InvalidParameter
        If the learner has no ``predict_proba``, or a number is out of range.

    Examples
    --------
    >>> pool = np.linspace(-1, 1, 9)[:, None]
    >>> past = History(np.array([0, 8]), np.array([0, 1]), 2)
    >>> Margin(4, batch=1).next_batch(pool, past, np.random.default_rng(0))
    array([4])
    """

    learner: Any = field(default=None, kw_only=True)
    batch: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch is not None:
            object.__setattr__(self, "batch", count("batch", self.batch, at_least=1))
        if self.learner is not None and not may_have(self.learner, "predict_proba"):
            raise InvalidParameter(
                f"learner must have predict_proba, got {type(self.learner).__name__}; it says how sure it is"
            )

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose the least sure points; the next ones of the stream where no two classes were released yet."""
        size = max(10, self.n // BATCHES) if self.batch is None else self.batch
        size = min(size, self.n - len(history.rows))
        open_ = history.not_asked(pool.shape[0])
        rows, codes = history.labelled
        if len(np.unique(codes)) < 2:
            return open_[:size]
        erm = Erm(_linear() if self.learner is None else self.learner, seed_of(rng))
        sure = np.sort(np.asarray(erm.fit(take(pool, rows), codes).predict_proba(take(pool, open_))), axis=1)
        return open_[np.argsort(sure[:, -1] - sure[:, -2], kind="stable")[:size]]


def _linear() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300)
