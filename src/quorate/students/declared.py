"""A student's classes are the declared classes, in their order, also when a class never got a label."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.types import FloatArray, IntArray

# Modules whose steps look at labels only where their tags say so; those of feature selection do without saying so.
_SAY_SO = (
    "sklearn.cluster.", "sklearn.decomposition.", "sklearn.feature_extraction.", "sklearn.impute.",
    "sklearn.kernel_approximation", "sklearn.preprocessing.", "sklearn.random_projection", "quorate.",
)  # fmt: skip


def takes_weights(student: Any) -> bool:
    """Whether weights of rows reach every part of this classifier that learns from labels.

    A Pipeline hands them to its last step alone. So they do where the last step takes ``sample_weight``, no step before
    it looks at labels, and what the last step is made of takes them too. A step is held to look at labels unless it is
    one of scikit-learn's that does not.
    """
    from sklearn.utils.validation import has_fit_parameter

    if (steps := getattr(student, "steps", None)) is not None:
        return all(_ignores_labels(step) for _, step in steps[:-1]) and takes_weights(steps[-1][1])
    return bool(has_fit_parameter(student, "sample_weight")) and all(
        takes_weights(part) for part in _parts(student) if hasattr(type(part), "predict")
    )


def _parts(model: Any) -> list[Any]:
    """The models that a model was given, such as the one that is calibrated; lists of them have no weights to give."""
    if not hasattr(model, "get_params"):
        return []
    return [value for value in model.get_params(deep=False).values() if hasattr(value, "fit") and not isclass(value)]


def _ignores_labels(step: Any) -> bool:
    """Whether a step is known to learn nothing from labels; one that nobody here knows may."""
    from sklearn.base import BaseEstimator
    from sklearn.compose import ColumnTransformer
    from sklearn.feature_selection import VarianceThreshold
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import FeatureUnion, Pipeline
    from sklearn.utils import get_tags

    if step is None or isinstance(step, str | FrozenEstimator):  # "passthrough" and "drop"
        return True
    for kind, name in ((Pipeline, "steps"), (FeatureUnion, "transformer_list"), (ColumnTransformer, "transformers")):
        if type(step) is kind:
            return all(_ignores_labels(part) for _, part, *_ in getattr(step, name))
    if type(step) is VarianceThreshold:
        return True
    if not isinstance(step, BaseEstimator) or not type(step).__module__.startswith(_SAY_SO):
        return False
    return not get_tags(step).target_tags.required and not _parts(step)


def last_step(student: Any) -> tuple[str, Any]:
    """The step that learns, and how its fit parameters are addressed: ``("", student)`` outside a Pipeline."""
    prefix, step = "", student
    while steps := getattr(step, "steps", None):
        name, step = steps[-1]
        prefix += f"{name}__"
    return prefix, step


def fit_student(
    student: Any,
    X: Any,
    codes: IntArray,
    classes: Sequence[Any],
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
) -> Any:
    """Fit a clone of `student` on released labels of public points.

    `codes`: ``(n_points,)``, the label of each, as an index into `classes`, the declared ones. `weights`:
    ``(n_points,)``, for a student that takes them. `seed`: becomes every ``random_state`` that is still None. The
    ``classes_`` of what is returned are those that got a label. Where only one did, it is a constant classifier; where
    none did, that of the first class, to which ties go everywhere.
    """
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier

    names = np.asarray(list(classes))
    labels = names[codes]
    if len(np.unique(codes)) < 2:
        # An empty table cannot be fitted on, so the constant is all that this classifier is told.
        constant = labels[:1] if len(labels) else names[:1]
        return DummyClassifier(strategy="constant", constant=constant[0]).fit(None, constant)
    learner = clone(student)
    unset = {
        name: seed for name, value in learner.get_params().items() if name.endswith("random_state") and value is None
    }
    learner.set_params(**unset)
    weighted = {} if weights is None else {f"{last_step(student)[0]}sample_weight": weights}
    return learner.fit(X, labels, **weighted)


def class_probabilities(student: Any, X: Any, classes: Sequence[Any]) -> FloatArray:
    """Return ``(n_points, n_classes)`` probabilities in the order of the declared classes; 0 for one never seen.

    Raises AttributeError if the student, which is fitted, has no ``predict_proba``.
    """
    return spread(student.predict_proba(X), student.classes_, classes)


def spread(seen: FloatArray, seen_classes: NDArray[Any], classes: Sequence[Any]) -> FloatArray:
    """Put columns for `seen_classes` where the declared classes have them."""
    place = {label: column for column, label in enumerate(classes)}
    everywhere = np.zeros((len(seen), len(place)))
    everywhere[:, [place[label] for label in seen_classes.tolist()]] = seen
    return everywhere
