"""The shells: scikit-learn estimators over all rooms."""

from __future__ import annotations

from quorate.estimators.label_private_classifier import LabelPrivateClassifier
from quorate.estimators.private_classifier import PrivateClassifier
from quorate.estimators.subsample_aggregate import AnswersLeft, SubsampleAggregate

__all__ = ["PrivateClassifier", "LabelPrivateClassifier", "SubsampleAggregate", "AnswersLeft"]
