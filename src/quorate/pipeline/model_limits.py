"""Which rows a kind of model can hold: whether it takes missing values, and how large a number may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.ensemble.unfitted import parts


def largest_number(model: Any) -> float:
    """Return the largest number that a kind of model holds, by its declared parts: trees cast to 32-bit floats.

    It is a rule of the kind, and so public: no model has to be asked.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> largest_number(RandomForestClassifier()), largest_number(LogisticRegression())
    (3.4028234663852886e+38, inf)
    """
    for part in (*parts(model), *parts(getattr(model, "estimator", None))):  # a teacher says what it trains
        of_sklearn = {base.__name__ for base in type(part).__mro__ if base.__module__.startswith("sklearn.")}
        of_trees = of_sklearn & _BY_TREES and getattr(part, "estimator", None) is None
        if of_sklearn & _TREES or of_trees or type(part).__module__.startswith("xgboost."):
            return float(np.finfo(np.float32).max)
    return np.inf


_TREES = {"BaseDecisionTree", "BaseForest", "BaseGradientBoosting"}
_BY_TREES = {"BaseBagging", "BaseWeightBoosting"}  # where nothing else is given


def takes_missing(model: Any) -> bool:
    """Tell whether a model says that it takes missing values; one without scikit-learn's tags does not say so.

    A Pipeline has no tag of its own. It takes them where its steps do, down to the last one or to one that imputes.
    """
    from sklearn.pipeline import Pipeline
    from sklearn.utils import get_tags

    if isinstance(model, Pipeline):
        for _, step in model.steps:
            if step is None or step == "passthrough":
                continue
            if not takes_missing(step):
                return False
            if type(step).__module__.startswith("sklearn.impute"):
                return True
        return True
    if not hasattr(model, "__sklearn_tags__"):
        return bool(getattr(model, "takes_missing", False))
    try:
        return bool(get_tags(model).input_tags.allow_nan)
    except AttributeError:  # a part of it is of a plain class
        return False
