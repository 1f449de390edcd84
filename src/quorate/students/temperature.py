"""Probabilities that mean what they say: one number, fitted on labelled public rows, divides the scores of a model.

A model of noisy answers orders rows well, and yet may say 0.95 where it is right in 80 % of such rows, or the other way
round: shrinking and averaging change how steep its scores are. Temperature scaling divides all scores by one number
T > 0, the one under which labels of public rows are most likely. The likeliest class of each row stays the same.

References
----------
Guo, Pleiss, Sun, Weinberger (2017), arXiv:1706.04599, Section 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quorate.deferred import optimize
from quorate.errors import InvalidParameter
from quorate.students.declared import last_step, spread
from quorate.types import IntArray

#: Rows with labels: half of them fit the temperature, which with fewer would say more of these rows than of the model.
FEWEST: Final = 100

_FURTHEST = 20.0  # T is looked for within [1/20, 20]: rows that a model has all right would ask for certainty
_LEAST = 1e-300  # probability whose logarithm is taken


@dataclass(frozen=True, kw_only=True, slots=True)
class Temperature:
    """What the scores of a model are divided by.

    `value`: T > 0; above 1 the model was too sure of itself. `n_rows`: labelled public rows that it was fitted on.
    """

    value: float
    n_rows: int


def takes_temperature(model: Any) -> bool:
    """Tell whether a fitted model ends in scores that a temperature can divide: those of a logistic regression."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    return isinstance(last_step(model)[1], LogisticRegression | DummyClassifier)


def require_calibration(model: Any, n_rows: int, *, name: str) -> None:
    """Refuse what labelled rows cannot calibrate; `n_rows`: with labels. `name`: what gave them, as its user knows it.

    A model without scores to divide keeps its probabilities, and gets prediction sets by them. Raises InvalidParameter
    if it has no probabilities either, or there are fewer than 100 rows.
    """
    if not hasattr(model, "predict_proba"):
        raise InvalidParameter(
            f"{name} needs probabilities, and this model ends in {type(last_step(model)[1]).__name__}, which has no "
            "predict_proba; leave it out, or choose another student"
        )
    require_rows(n_rows, name=name)


def require_rows(n_rows: int, *, name: str) -> None:
    """Refuse fewer than 100 rows with labels; `name`: what gave them, as its user knows it.

    Raises InvalidParameter.
    """
    if n_rows < FEWEST:
        raise InvalidParameter(
            f"{name} got {n_rows} rows, and needs at least {FEWEST}: one half fits the temperature, the other "
            "prediction sets; give more rows, or leave it out"
        )


def fit_temperature(model: Any, X: Any, truth: IntArray, classes: Sequence[Any]) -> Temperature:
    """Return the temperature under which labels of public rows are most likely, within [1/20, 20].

    `model`: fitted, and such that :func:`takes_temperature`. `X`: public rows as the model takes them, drawn as those
    that it will be asked about, and none that it learned from. `truth`: ``(n_rows,)`` codes of the classes. `classes`:
    the declared classes.
    """
    _, step = last_step(model)
    if len(np.atleast_1d(step.classes_)) < 2:  # it says one class whatever it is asked
        return Temperature(value=1.0, n_rows=len(truth))
    rows, at = _before_last(model, X), np.arange(len(truth))

    def loss(logarithm: float) -> float:
        probabilities = spread(_divided(step, float(np.exp(logarithm))).predict_proba(rows), step.classes_, classes)
        return -float(np.mean(np.log(np.maximum(probabilities[at, truth], _LEAST))))

    furthest = float(np.log(_FURTHEST))
    best = optimize.minimize_scalar(loss, bounds=(-furthest, furthest), method="bounded", options={"xatol": 1e-6}).x
    return Temperature(value=float(np.exp(best)), n_rows=len(truth))


def at_temperature(model: Any, temperature: float) -> Any:
    """Return a copy of a fitted model whose scores are divided by a temperature; the model itself stays as it is."""
    if not hasattr(model, "steps"):
        return _divided(model, temperature)
    pipeline, (name, last) = copy(model), model.steps[-1]
    pipeline.steps = [*model.steps[:-1], (name, at_temperature(last, temperature))]
    return pipeline


def _divided(step: Any, temperature: float) -> Any:
    divided = copy(step)
    if hasattr(step, "coef_"):
        divided.coef_, divided.intercept_ = step.coef_ / temperature, step.intercept_ / temperature
    return divided


def _before_last(model: Any, X: Any) -> Any:
    """Return rows as the last step takes them."""
    while hasattr(model, "steps"):
        X, model = (model[:-1].transform(X) if len(model.steps) > 1 else X), model.steps[-1][1]
    return X
