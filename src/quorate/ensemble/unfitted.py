"""Refuse a model that has already learned something: it would carry every row it saw into every shard."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from inspect import isclass
from types import MethodType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from quorate.arguments import one_of
from quorate.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterator

Preprocessing: TypeAlias = Literal["inside", "public"]


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
        or keeps a cache of its inputs (``memory=``), which teachers would share and which writes private rows.

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
        if not callable(getattr(estimator, method, None)):
            raise InvalidParameter(
                f"a model must have fit and predict, got {type(estimator).__name__} without {method}. "
                "Pass a classifier, or a Pipeline that ends in one."
            )
    for part in parts(estimator):
        name = type(part).__name__
        if getattr(part, "memory", None) is not None and hasattr(part, "get_params"):
            raise InvalidParameter(
                f"{name}(memory=…) keeps a cache. Teachers would share it, and it writes private rows to disk. "
                "Pass memory=None."
            )
        if not is_fitted(part) or (preprocessing == "public" and _transforms_only(part)):
            continue
        if part is estimator:
            raise InvalidParameter(
                f"{name} is already fitted. If it saw private rows, every teacher has seen every person. "
                "Pass it unfitted (sklearn.base.clone)."
            )
        raise InvalidParameter(
            f"this Pipeline step is already fitted: {name}. If it saw private rows, every teacher has seen every "
            'person. Pass it unfitted, or fit it on public data and say preprocessing="public".'
        )


def parts(estimator: Any) -> Iterator[Any]:
    """Yield whatever `estimator` is made of that can learn or be called, innermost first, itself last.

    Parameters, lists and dicts of them, the owner of a bound method and the arguments of a ``functools.partial``
    are looked into; what a closure holds cannot be seen.
    """
    yield from _parts(estimator, set())


def _parts(part: Any, seen: set[int]) -> Iterator[Any]:
    if id(part) in seen or part is None or isinstance(part, str | bytes | int | float):
        return
    seen.add(id(part))
    if isinstance(part, list | tuple | set | frozenset):
        inner = list(part)
    elif isinstance(part, dict):
        inner = list(part.values())
    elif isinstance(part, MethodType):
        inner = [part.__self__]
    elif isinstance(part, partial):
        inner = [part.func, *part.args, *part.keywords.values()]
    elif hasattr(part, "get_params") and not isclass(part):
        inner = list(part.get_params(deep=False).values())
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
    with suppress(NotFittedError):
        if hook is not None and bool(hook()):
            return True
    # A Pipeline's hook asks its last step only; its own attributes are looked at as well.
    return any(name.endswith("_") and not name.startswith("__") for name in getattr(part, "__dict__", {}))


def _requires_fit(part: Any) -> bool:
    from sklearn.base import BaseEstimator
    from sklearn.frozen import FrozenEstimator
    from sklearn.utils import get_tags

    if isinstance(part, FrozenEstimator):
        return True
    return bool(get_tags(part).requires_fit) if isinstance(part, BaseEstimator) else True


def _transforms_only(part: Any) -> bool:
    # A clusterer predicts and still transforms; what predicts classes is a classifier, wherever it stands.
    return hasattr(part, "transform") and not (hasattr(part, "predict") and hasattr(part, "classes_"))
