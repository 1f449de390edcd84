"""A student's classes are the declared classes, in their order, also when a class never got a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.types import FloatArray, IntArray


def takes_weights(student: Any) -> bool:
    """Whether ``fit`` of this estimator, or of the last step of this Pipeline, takes ``sample_weight``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> takes_weights(LogisticRegression()), takes_weights(KNeighborsClassifier())
    (True, False)
    """
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(last_step(student)[1], "sample_weight"))


def last_step(student: Any) -> tuple[str, Any]:
    """The step that learns, and how its fit parameters are addressed: ``("", student)`` outside a Pipeline.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> last_step(make_pipeline(StandardScaler(), LogisticRegression()))
    ('logisticregression__', LogisticRegression())
    """
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
        ``(n_points,)``, one weight a row, for a student that takes them.
    seed : int
        Becomes every ``random_state`` that is still None.

    Returns
    -------
    estimator
        Its ``classes_`` are those that got a label. Where only one did, a constant classifier; where none did, the
        constant classifier of the first class, to which ties go everywhere.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> student = fit_student(LogisticRegression(), X, np.array([2, 2, 0, 0]), ["low", "middle", "high"])
    >>> student.predict(X).tolist(), student.classes_.tolist()
    (['high', 'high', 'low', 'low'], ['high', 'low'])
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

    Parameters
    ----------
    student : estimator
        Fitted, with ``predict_proba`` and ``classes_``.
    X : (n_points, n_features)
        Points.
    classes : sequence
        The declared classes.

    Raises
    ------
    AttributeError
        If the student has no ``predict_proba``.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> student = DummyClassifier(strategy="prior").fit(np.zeros((4, 1)), ["b", "b", "b", "a"])
    >>> class_probabilities(student, np.zeros((1, 1)), ["b", "c", "a"]).tolist()
    [[0.75, 0.0, 0.25]]
    """
    return spread(student.predict_proba(X), student.classes_, classes)


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
