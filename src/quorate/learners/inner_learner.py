"""A private learner as it is run inside another one: without what is not used there."""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.base import BaseEstimator

Learner = TypeVar("Learner", bound=BaseEstimator)


def without_ledger(learner: Learner) -> Learner:
    """Return a learner that is run inside another one without what is not used there: its ledger, its seed, its rows.

    What it holds after a fit of its own is left out too, so that none of it tells two fits of the other one apart.
    """
    params = {
        name: without_ledger(value) if is_learner(value) else value
        for name, value in learner.get_params(deep=False).items()
    }
    unused = {"ledger": None, "unsafe_noise_seed": None, "rows": "any", "classes": None}
    inner: Learner = type(learner)(**{name: unused.get(name, value) for name, value in params.items()})
    return inner


def is_learner(value: Any) -> bool:
    """Whether a parameter is a private learner itself."""
    return isinstance(value, BaseEstimator) and hasattr(value, "_learn")
