"""What may be given as a teacher: a classifier, a function, or what trains and votes by itself."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isclass
from typing import Any

from quorate.data.labels import check_classes
from quorate.ensemble.classifier import ClassifierTeacher
from quorate.ensemble.function_teacher import FunctionTeacher
from quorate.ensemble.teachers import Teacher
from quorate.ensemble.unfitted import Preprocessing


def as_teacher(
    model: Any,
    *,
    preprocessing: Preprocessing = "inside",
    batched: bool = True,
    classes: Sequence[Any] | None = None,
) -> Teacher:
    """Return `model` as a teacher: one that trains and votes by itself as it is, all else behind the waist.

    Parameters
    ----------
    model : estimator, function or Teacher
        An estimator has ``fit`` and ``predict``; a :class:`~quorate.ensemble.Teacher` has ``train``, and no ``fit``; a
        function is called as :class:`~quorate.ensemble.FunctionTeacher` has it.
    preprocessing : {"inside", "public"}, default "inside"
        What holds for the fitted steps of an estimator, and for those that a function holds.
    batched : bool, default True
        As :class:`ClassifierTeacher` has it; it says nothing to the others.
    classes : sequence, optional
        The declared classes, for an estimator of which a parameter names one; :func:`with_classes` tells the others.

    Raises
    ------
    InvalidParameter
        As :class:`ClassifierTeacher` and :class:`FunctionTeacher`.

    Examples
    --------
    >>> as_teacher(lambda X, y, X_new: [0] * len(X_new))  # doctest: +ELLIPSIS
    FunctionTeacher(function=<function <lambda> at ...>, classes=None)
    """
    if isinstance(model, Teacher) and not isclass(model) and not hasattr(model, "fit"):
        return model
    if is_function(model):
        return FunctionTeacher(model, preprocessing=preprocessing)
    teacher = ClassifierTeacher(model, preprocessing=preprocessing, batched=batched)
    return teacher if classes is None else teacher.with_classes(check_classes(classes))


def with_classes(model: Any, classes: Sequence[Any] | None, *, preprocessing: Preprocessing = "inside") -> Any:
    """Tell a model the declared classes where it asks for them: a function, and a Teacher that has ``with_classes``.

    Parameters
    ----------
    model : estimator, function or Teacher
        As in :func:`as_teacher`.
    classes : sequence, optional
        The declared classes, in their order. A public fact.
    preprocessing : {"inside", "public"}, default "inside"
        What holds for the fitted steps that a function holds.

    Returns
    -------
    object
        `model` itself where it does not ask.

    Raises
    ------
    InvalidParameter
        If it was made for other classes.
    """
    if classes is None or isclass(model):
        return model
    if is_function(model):
        return FunctionTeacher(model, check_classes(classes), preprocessing=preprocessing)
    told = getattr(model, "with_classes", None) if isinstance(model, Teacher) else None
    return model if told is None else told(check_classes(classes))


def is_function(model: Any) -> bool:
    """Tell whether `model` can be called and is nothing else that learns.

    Examples
    --------
    >>> is_function(print), is_function(dict)
    (True, False)
    """
    return callable(model) and not isclass(model) and not (hasattr(model, "fit") or hasattr(model, "train"))
