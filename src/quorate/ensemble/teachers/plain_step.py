"""A plain class as a step of a Pipeline, which asks its steps for tags and clones them.

It is apart from what asks about plain classes, since a worker that solves linear teachers loads no scikit-learn.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from quorate.ensemble.teachers.unfitted import is_plain, made_anew
from quorate.stored_names import stored_as


def _has(method: str) -> Any:
    return lambda step: hasattr(step.model, method)


@stored_as("quorate.ensemble.plain_step.PlainStep")
class PlainStep(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What scikit-learn needs of a step, around an object of a plain class, which is handed `random_state`."""

    def __init__(self, model: Any, random_state: int | None = None) -> None:
        self.model = model
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PlainStep:
        """Fit a new one."""
        self.fitted_ = seeded(self.model, self.random_state)
        self.fitted_.fit(X, y)
        return self

    @available_if(_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Return what the fitted object makes of rows."""
        return self.fitted_.transform(X)

    @available_if(_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Return what the fitted object predicts."""
        return self.fitted_.predict(X)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the fitted object's class probabilities."""
        return self.fitted_.predict_proba(X)

    @property
    def classes_(self) -> Any:
        """The labels that the fitted object has seen, where it says so."""
        return self.fitted_.classes_


def seeded(model: Any, random_state: int | None) -> Any:
    """Return a new object of a plain class, its random state set where it has one."""
    has_one = random_state is not None and hasattr(model, "random_state")
    new = made_anew(model, **({"random_state": random_state} if has_one else {}))
    if new is None:  # its constructor refuses this random state; or it has get_params, and is copied as it is
        new = made_anew(model)
        new = deepcopy(model) if new is None else new
        if has_one:
            new.random_state = random_state
    return new


def with_plain_steps(estimator: Any) -> Any:
    """Return a Pipeline, search or the like with steps in place of plain classes; itself where there is none in it."""
    if not hasattr(estimator, "get_params") or isinstance(estimator, PlainStep):
        return estimator
    plain = {name: value for name, value in estimator.get_params(deep=True).items() if is_plain(value)}
    if not plain:
        return estimator
    copied = deepcopy(estimator)
    return copied.set_params(**{name: PlainStep(value) for name, value in plain.items()})


def as_it_is(step: PlainStep) -> PlainStep:
    """Return a step of which the object in it, which has learned, is what transforms."""
    kept = PlainStep(step.model, step.random_state)
    kept.fitted_ = step.model
    return kept
