"""How large a number may be for a kind of model: a public rule, by which a row is refused before anything is drawn."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quorate.ensemble.unfitted import parts

_TREES: Final = {"BaseDecisionTree", "BaseForest", "BaseGradientBoosting"}
_BY_TREES: Final = {"BaseBagging", "BaseWeightBoosting"}  # where nothing else is given


def largest_number(model: Any) -> float:
    """Return the largest number that a kind of model holds, by its declared parts: trees cast to 32-bit floats.

    It is a rule of the kind, and so public: no model has to be asked.
    """
    for part in (*parts(model), *parts(getattr(model, "estimator", None))):  # a teacher says what it trains
        of_sklearn = {base.__name__ for base in type(part).__mro__ if base.__module__.startswith("sklearn.")}
        of_trees = of_sklearn & _BY_TREES and getattr(part, "estimator", None) is None
        if of_sklearn & _TREES or of_trees or type(part).__module__.startswith("xgboost."):
            return float(np.finfo(np.float32).max)
    return np.inf
