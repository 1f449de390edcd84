"""The shells: scikit-learn estimators over all rooms."""

from __future__ import annotations

from quorate.estimators.private_classifier import PrivateClassifier

__all__ = ["PrivateClassifier"]
