"""Refuse a model that has already learned something: it would carry every row it saw into every shard."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from inspect import isclass, isroutine
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from quorate.arguments import one_of
from quorate.ensemble.carried import carried, held_by
from quorate.ensemble.plain_classes import attributes, is_plain, learned_attribute, why_not_made_anew
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator

Preprocessing: TypeAlias = Literal["inside", "public"]


@stored_as("quorate.ensemble.unfitted.check_unfitted")
def check_unfitted(estimator: Any, *, preprocessing: Preprocessing = "inside") -> None:
    """Refuse an estimator that is fitted, in whole or in any step, and one that can be neither teacher nor student.

    Parameters
    ----------
    estimator : object
        Anything with ``fit`` and ``predict``: a scikit-learn classifier, a Pipeline, a search, a look-alike.
    preprocessing : {"inside", "public"}, default "inside"
        "inside": every step is fitted inside each teacher. "public": fitted transformers are taken as they are;
        it is the caller's statement that they saw public data only. A fitted classifier is refused either way.

    Raises
    ------
    InvalidParameter
        If `estimator` or a part of it is fitted, has no ``fit`` or ``predict``, is a class instead of an instance,
        or keeps a cache of its inputs (``memory=``), which teachers would share and which writes private rows; or is
        of a plain class that cannot be made anew, so that whether it is fitted cannot be told.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> check_unfitted(LogisticRegression())
    >>> check_unfitted(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: LogisticRegression is already fitted. If it saw private rows, every teacher ...
    """
    one_of("preprocessing", preprocessing, get_args(Preprocessing))
    if isclass(estimator):
        raise InvalidParameter(f"a model must be an instance, got the class {estimator.__name__}. Pass it with ().")
    for method in ("fit", "predict"):
        if not may_have(estimator, method):
            raise InvalidParameter(
                f"a model must have fit and predict, got {type(estimator).__name__} without {method}. "
                "Pass a classifier, or a Pipeline that ends in one."
            )
    _refuse_not_made_anew(estimator)
    for part in parts(estimator):
        name = type(part).__name__
        if getattr(part, "memory", None) is not None and hasattr(part, "get_params"):
            raise InvalidParameter(
                f"{name}(memory=…) keeps a cache. Teachers would share it, and it writes private rows to disk. "
                "Pass memory=None."
            )
        if not is_fitted(part) or (preprocessing == "public" and _transforms_only(part)):
            continue
        if part is estimator and is_plain(part) and (learned := learned_attribute(part)) is not None:
            raise InvalidParameter(
                f"{name} is already fitted: it has {learned!r}, which a new {name} with the same arguments has not, or "
                f"has otherwise. If it saw private rows, every teacher has seen every person. Pass a new {name}(...); "
                "what it needs beside belongs in its constructor."
            )
        if part is estimator:
            raise InvalidParameter(
                f"{name} is already fitted. If it saw private rows, every teacher has seen every person. "
                "Pass it unfitted (sklearn.base.clone)."
            )
        raise InvalidParameter(
            f"this Pipeline step is already fitted: {name}. If it saw private rows, every teacher has seen every "
            'person. Pass it unfitted, or fit it on public data and say preprocessing="public".'
        )


def may_have(estimator: Any, method: str) -> bool:
    """Tell whether an unfitted model may have a method once it is fitted: its class is asked too.

    Some of scikit-learn's methods are there after the fit alone; that one stays away, a rehearsal finds.

    Examples
    --------
    >>> from sklearn.ensemble import StackingClassifier
    >>> from sklearn.linear_model import RidgeClassifier
    >>> may_have(StackingClassifier([("ridge", RidgeClassifier())]), "predict")
    True
    """
    return any(callable(getattr(owner, method, None)) for owner in (estimator, type(estimator)))


def check_function(function: Any, *, preprocessing: Preprocessing = "inside") -> None:
    """Refuse a function that holds something fitted.

    `function`: what it holds: the arguments of a ``functools.partial``, the owner of a method, its defaults, what it
    closes over, the variables of its module that it reads, and the attributes of an object that is called.
    `preprocessing`: as :func:`check_unfitted` has it. Raises InvalidParameter if something of it is fitted.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> check_function(partial(print, LogisticRegression()))
    >>> check_function(partial(print, LogisticRegression().fit([[0.0], [1.0]], [0, 1])))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: the function holds a fitted model: LogisticRegression. If it saw private rows, ...
    """
    one_of("preprocessing", preprocessing, get_args(Preprocessing))
    for part in parts(function):
        if is_fitted(part) and not (preprocessing == "public" and _transforms_only(part)):
            raise InvalidParameter(
                f"the function holds a fitted model: {type(part).__name__}. If it saw private rows, every teacher has "
                "seen every person. Fit it inside the function, on the rows that it is called with; a step that was "
                'fitted on public data is taken with preprocessing="public".'
            )


def _refuse_not_made_anew(estimator: Any) -> None:
    """Refuse plain classes that teachers would get as deep copies, with all that they have learned."""
    for part in carried(estimator):
        if is_plain(part) and not hasattr(part, "get_params") and (why := why_not_made_anew(part)) is not None:
            raise InvalidParameter(
                f"{type(part).__name__} cannot be made anew from its constructor's arguments: {why}. So whether it has "
                "learned something cannot be told. Keep each argument under its own name (self.size = size), or give a "
                "function that makes the model and fits it."
            )


def parts(estimator: Any) -> Iterator[Any]:
    """Yield whatever `estimator` is made of that can learn or be called, innermost first, itself last.

    Parameters, lists and dicts of them, attributes of plain classes and of objects that are called, and what functions
    hold are looked into.
    """
    yield from _parts(estimator, {})


def _parts(part: Any, seen: dict[int, Any]) -> Iterator[Any]:
    if id(part) in seen or part is None or isinstance(part, str | bytes | int | float):
        return
    seen[id(part)] = part  # held, so that no other object takes its place in memory meanwhile
    if isinstance(part, list | tuple | set | frozenset):
        inner = list(part)
    elif isinstance(part, dict):
        inner = list(part.values())
    elif isinstance(part, MethodType | partial | FunctionType):
        inner = held_by(part)
    elif hasattr(part, "get_params") and not isclass(part):
        inner = list(part.get_params(deep=False).values())
    elif is_plain(part) or (callable(part) and not isclass(part) and not isroutine(part)):
        inner = list(attributes(part).values())
    else:
        inner = []
    for value in inner:
        yield from _parts(value, seen)
    if not isinstance(part, list | tuple | set | frozenset | dict):
        yield part


def is_fitted(part: Any) -> bool:
    """Tell whether `part` has learned something, by scikit-learn's conventions.

    ``sklearn.utils.validation.check_is_fitted`` takes a stateless transformer for fitted, since it may be used at
    once; here it has learned nothing, so it may pass.

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> [is_fitted(step) for step in (Normalizer(), StandardScaler(), StandardScaler().fit([[0.0], [1.0]]))]
    [False, False, True]
    """
    from sklearn.exceptions import NotFittedError

    if isclass(part) or not hasattr(part, "fit"):
        return False
    if not _requires_fit(part):
        return False
    hook = getattr(part, "__sklearn_is_fitted__", None)
    # A FeatureUnion's hook raises where one of its parts is not fitted; the parts are looked at by themselves.
    with suppress(NotFittedError, AttributeError):  # AttributeError: a Pipeline's hook asks a plain class for its tags
        if hook is not None and bool(hook()):
            return True
    if isinstance(initialised := getattr(part, "initialized_", None), bool):  # skorch's word, there from the beginning
        return initialised
    if is_plain(part) and not hasattr(part, "get_params") and learned_attribute(part) is not None:
        return True
    # A Pipeline's hook asks its last step only; its own attributes are looked at as well.
    return any(name.endswith("_") and not name.startswith("__") for name in getattr(part, "__dict__", {}))


def _requires_fit(part: Any) -> bool:
    from sklearn.base import BaseEstimator
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import get_tags

    if isinstance(part, FrozenEstimator):
        return True
    try:
        return bool(get_tags(part).requires_fit) if isinstance(part, BaseEstimator) else True
    except AttributeError:  # a Pipeline asks its last step, which may be of a plain class
        return True


def _transforms_only(part: Any) -> bool:
    # A clusterer predicts and still transforms; what predicts classes is a classifier, wherever it stands.
    return hasattr(part, "transform") and not (hasattr(part, "predict") and hasattr(part, "classes_"))
