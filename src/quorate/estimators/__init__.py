"""The shells: scikit-learn estimators over all rooms.

Here belongs what scikit-learn asks of an estimator (parameters, ``fit``, ``predict``), in the words of a user of
scikit-learn. What a fit does belongs in :mod:`quorate.run`. Begin with
:mod:`~quorate.estimators.private_classifier`.
"""

from __future__ import annotations

from quorate.estimators.checked import check
from quorate.estimators.label_private_classifier import LabelPrivateClassifier
from quorate.estimators.private_classifier import PrivateClassifier
from quorate.estimators.private_logistic_regression import PrivateLogisticRegression
from quorate.estimators.private_regressor import PrivateRegressor
from quorate.estimators.sharded_rows import AnswersLeft
from quorate.estimators.subsample_aggregate import SubsampleAggregate
from quorate.run.method import CheckResult

__all__ = [
    "PrivateClassifier",
    "LabelPrivateClassifier",
    "PrivateLogisticRegression",
    "PrivateRegressor",
    "SubsampleAggregate",
    "AnswersLeft",
    "CheckResult",
    "check",
]
