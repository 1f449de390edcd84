"""From released weights to a scikit-learn model that needs nothing of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.ambient import of_arrays
from quorate.data import take
from quorate.data.table_reader import TableReader
from quorate.direct.plan import DirectPlan
from quorate.run.schema import Schema
from quorate.types import FloatArray

_TRIED = 3  # public rows


def published_model(plan: DirectPlan, schema: Schema, weights: FloatArray, classes: tuple[Any, ...]) -> Any:
    """Return a Pipeline of scikit-learn's own parts: encoder (where there is one), feature map, linear classifier.

    It takes features as they are and not as integers on a grid: its scores differ from those of the rounds by rounding.
    """
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    feature_map = plan.coordinates.feature_map
    coefficients, intercepts = feature_map.weights(plan.coordinates.features(weights))
    linear = LogisticRegression()
    linear.classes_ = np.asarray(list(classes))
    linear.coef_ = np.ascontiguousarray(coefficients.T)
    linear.intercept_ = np.ascontiguousarray(intercepts)
    linear.n_features_in_ = linear.coef_.shape[1]
    linear.n_iter_ = np.array([plan.settings.rounds], dtype=np.int32)
    numbers = schema.numbers(schema.pool)
    steps: list[tuple[str, Any]] = [("features", FrozenEstimator(feature_map.transformer(numbers))), ("linear", linear)]
    if schema.published_encoder is not None:
        steps.insert(0, ("encoder", FrozenEstimator(schema.published_encoder)))
    return Pipeline([*of_arrays(steps[:-1]), steps[-1]])


def try_model(plan: DirectPlan, schema: Schema, classes: tuple[Any, ...]) -> None:
    """Ask the published model, with weights of 0, about a few public rows: what would fail after the charge fails here.

    `plan`, `schema`, `classes`: as for :func:`published_model`.
    """
    rows = take(schema.pool, np.arange(min(_TRIED, schema.pool.shape[0])))
    model = published_model(plan, schema, np.zeros(plan.start.shape), classes)
    model.predict_proba(TableReader.of(schema.pool, schema.kinds)(rows))
