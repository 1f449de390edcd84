"""A student's classes are the declared classes, in their order, also when a class never got a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import has_fit_parameter

from quorate.types import FloatArray, IntArray


def takes_weights(student: Any) -> bool:
    """Whether ``fit`` of this estimator, or of the last step of this Pipeline, takes ``sample_weight``."""
    return bool(has_fit_parameter(last_step(student)[1], "sample_weight"))


def last_step(student: Any) -> tuple[str, Any]:
    """The step that learns, and how its fit parameters are addressed: ``("", student)`` outside a Pipeline."""
    steps = getattr(student, "steps", None)
    return (f"{steps[-1][0]}__", steps[-1][1]) if steps else ("", student)


def fit_student(
    student: Any,
    X: Any,
    codes: IntArray,
    classes: Sequence[Any],
    *,
    weights: FloatArray | None = None,
    seed: int = 0,
) -> Any:
    """Fit a clone of `student` on released labels.

    Parameters
    ----------
    student : estimator
        Any scikit-learn classifier; stays as it is.
    X : (n_points, n_features)
        Public points.
    codes : IntArray
        ``(n_points,)``, the label of each, as an index into `classes`.
    classes : sequence
        The declared classes.
    weights : FloatArray, optional
        ``(n_points,)``, one weight a row.
    seed : int
        Becomes every ``random_state`` that is still None.

    Returns
    -------
    estimator
        Its ``classes_`` are those that got a label. Where only one did, a constant classifier.
    """
    labels = np.asarray(list(classes))[codes]
    if len(np.unique(codes)) < 2:
        return DummyClassifier(strategy="constant", constant=labels[0]).fit(X, labels)
    learner = clone(student)
    unset = {
        name: seed for name, value in learner.get_params().items() if name.endswith("random_state") and value is None
    }
    learner.set_params(**unset)
    weighted = {} if weights is None else {f"{last_step(student)[0]}sample_weight": weights}
    return learner.fit(X, labels, **weighted)


def class_probabilities(student: Any, X: Any, classes: Sequence[Any]) -> FloatArray:
    """Return ``(n_points, n_classes)`` probabilities in the order of the declared classes; 0 for one never seen."""
    seen = student.predict_proba(X)
    return spread(seen, student.classes_, classes)


def spread(seen: FloatArray, seen_classes: NDArray[Any], classes: Sequence[Any]) -> FloatArray:
    """Put columns for `seen_classes` where the declared classes have them.

    Examples
    --------
    >>> spread(np.array([[0.2, 0.8]]), np.array(["c", "a"]), ["a", "b", "c"]).tolist()
    [[0.8, 0.0, 0.2]]
    """
    place = {each: column for column, each in enumerate(classes)}
    everywhere = np.zeros((len(seen), len(place)))
    everywhere[:, [place[each] for each in seen_classes.tolist()]] = seen
    return everywhere
