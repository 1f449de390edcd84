"""Any scikit-learn classifier as a learner of released labels: what reductions to it need, and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.ambient import unwarned
from quorate.data import take
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray


@stored_as("quorate.labelling.active.erm.Erm")
@dataclass(frozen=True, slots=True, eq=False)
class Erm:
    """A learner and the seed of whatever in it is random.

    Parameters
    ----------
    learner : estimator
        Unfitted; a clone is fitted each time.
    seed : int
        Becomes every ``random_state`` that is still None.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1])
    >>> Erm(DecisionTreeClassifier(), 0).fit(X, y).predict(X)
    array([0, 0, 1])
    """

    learner: Any
    seed: int

    def fit(self, X: Any, codes: IntArray, weights: FloatArray | None = None) -> Any:
        """Fit on at least two classes; where the learner takes no weights, a row stands as often as it weighs."""
        from sklearn.base import clone
        from sklearn.utils.validation import has_fit_parameter

        learner = clone(self.learner)
        unset = {
            name: self.seed
            for name, value in learner.get_params().items()
            if name.endswith("random_state") and value is None
        }
        learner.set_params(**unset)
        prefix, step = "", learner
        while steps := getattr(step, "steps", None):
            name, step = steps[-1]
            prefix += f"{name}__"
        told = {}
        if weights is not None:
            if has_fit_parameter(step, "sample_weight"):
                told[f"{prefix}sample_weight"] = weights
            else:
                often = np.repeat(np.arange(len(codes)), np.ceil(weights).astype(np.int64))
                X, codes = take(X, often), codes[often]
        with unwarned():  # that it has not converged is no news to anybody, a thousand times a run
            return learner.fit(X, codes, **told)

    def predict(self, model: Any, X: Any) -> IntArray:
        """Classes ``(n_points,)`` by a fitted model."""
        with unwarned():
            return np.asarray(model.predict(X), dtype=np.int64)


def seed_of(rng: np.random.Generator) -> int:
    """Draw a seed for a learner."""
    return int(rng.integers(2**31))
