"""A model that is linear in features of public rows, of scikit-learn's own parts: what a run publishes of a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.ambient import of_arrays
from quorate.data.feature_maps.coordinates import FeatureMap
from quorate.data.labels import TargetRange
from quorate.run.schema import Schema
from quorate.types import FloatArray


def behind_features(linear: Any, feature_map: FeatureMap, schema: Schema, *, n_columns: int) -> Any:
    """Return a Pipeline: the encoder (where there is one), the feature map, and a linear model of `n_columns`."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline

    linear.n_features_in_ = n_columns
    numbers = schema.numbers(schema.pool)
    steps: list[tuple[str, Any]] = [("features", FrozenEstimator(feature_map.transformer(numbers))), ("linear", linear)]
    if schema.published_encoder is not None:
        steps.insert(0, ("encoder", FrozenEstimator(schema.published_encoder)))
    return Pipeline([*of_arrays(steps[:-1]), steps[-1]])


def number_model(coefficients: FloatArray, intercept: float, target_range: TargetRange) -> Any:
    """Return what predicts the middle of the range at a score of 0, and a quarter of its width more at a score of 1."""
    from sklearn.linear_model import LinearRegression

    linear = LinearRegression()
    linear.coef_ = np.ascontiguousarray(coefficients * (target_range.width / 4))
    linear.intercept_ = np.float64(target_range.low + target_range.width * (0.5 + intercept / 4))
    return linear
