"""Refuse a model that has already learned something: it would carry every row it saw into every shard.

An array of weights, a network or an object of another library has no mark that tells whether it has learned; so what
every teacher takes over is found, and whether that can be looked into.
"""

from __future__ import annotations

import datetime as dt
import dis
import enum
import fractions
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from functools import partial
from inspect import Parameter, isclass, isroutine, signature
from pathlib import Path, PurePath
from types import CodeType, EllipsisType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from quorate.arguments import one_of
from quorate.errors import InvalidParameter, named
from quorate.stored_names import stored_as

_ATOMS = (
    type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, np.ufunc, slice, range, enum.Enum,
    re.Pattern, PurePath, Decimal, fractions.Fraction, dt.date, dt.time, dt.timedelta, EllipsisType,
    np.random.Generator, np.random.RandomState, ModuleType,
)  # fmt: skip
# Objects of other libraries that are public facts: distributions of a search, a device, the type of a number.
_LIBRARIES = ("scipy.stats.",)
_PACKAGES = {"site-packages", "dist-packages"}
_OURS = Path(__file__).parents[2]
_NAMED = {("torch", "device"), ("torch", "dtype")}


def not_looked_into(*models: Any) -> str | None:
    """Name the class of something that copies of these models take over, and that cannot be looked into."""
    return next((type(part).__name__ for model in models for part in carried(model) if _is_closed(part)), None)


def carried(model: Any) -> Iterator[Any]:
    """Yield `model` and all that a copy of it takes over, but for texts, numbers and the like."""
    yield from _carried(model, {})


def held_by(function: Any) -> list[Any]:
    """Return what a function brings along beside its code, classes and modules left out; of one of an installed library
    the variables of its module are not looked at.
    """
    if isinstance(function, MethodType):
        owner = function.__self__
        of_owner = [] if isclass(owner) or hasattr(owner, "get_params") else list(attributes(owner).values())
        return [owner, *of_owner, function.__func__]
    if isinstance(function, partial):
        return [function.func, *function.args, *function.keywords.values()]
    if not isinstance(function, FunctionType):
        return []
    held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it is empty as yet
            held.append(cell.cell_contents)
    if not _is_of_a_library(function):
        held += [function.__globals__[name] for name in _globals_of(function.__code__) if name in function.__globals__]
    return [value for value in held if not (isclass(value) or isinstance(value, ModuleType))]


def _is_of_a_library(function: FunctionType) -> bool:
    place = Path(function.__code__.co_filename)
    installed = not _PACKAGES.isdisjoint(place.parts) or place.is_relative_to(_OURS)
    return installed or str(function.__module__).partition(".")[0] in sys.stdlib_module_names - {"__main__"}


def _globals_of(code: CodeType) -> list[str]:
    """Name the variables of its module that a piece of code reads, and those of the functions within it."""
    names = [step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names += _globals_of(inner)
    return list(dict.fromkeys(names))


def _carried(part: Any, visited: dict[int, Any]) -> Iterator[Any]:
    """Yield `part` and what a copy of it has from it."""
    if id(part) in visited or isinstance(part, _ATOMS):
        return
    visited[id(part)] = part  # held, so that no other object takes its place in memory meanwhile
    yield part
    for inner in _inner(part):
        yield from _carried(inner, visited)


def _inner(part: Any) -> list[Any]:
    if isclass(part) or _is_array(part):
        return []
    if isinstance(part, list | tuple | set | frozenset):
        return list(part)
    if isinstance(part, dict):
        return [*part.keys(), *part.values()]
    if isinstance(part, MethodType | partial | FunctionType):
        return held_by(part)
    if hasattr(part, "get_params"):
        return list(part.get_params(deep=False).values())
    if is_plain(part) and made_anew(part) is not None:
        return [getattr(part, name) for name in constructor_arguments(part) or ()]
    return [] if _is_public(part) else list(attributes(part).values())


def _is_closed(part: Any) -> bool:
    """Tell whether there is nothing of it that could be looked at."""
    if isclass(part) or isroutine(part) or _is_public(part):
        return False
    if _is_array(part):
        return True
    if isinstance(part, list | tuple | set | frozenset | dict | partial) or hasattr(part, "get_params"):
        return False
    slots = any("__slots__" in vars(kind) for kind in type(part).__mro__)
    return not (hasattr(part, "__dict__") or slots)


def _is_array(part: Any) -> bool:
    return not hasattr(part, "fit") and (hasattr(part, "__array__") or hasattr(part, "shape"))


def _is_public(part: Any) -> bool:
    kind = type(part)
    return (kind.__module__, kind.__name__) in _NAMED or f"{kind.__module__}.".startswith(_LIBRARIES)


def refuse_torch_module(model: Any) -> None:
    """Refuse a net of torch, or its class, that has no ``fit``: it looks like a teacher, since it has ``train``."""
    kind = model if isclass(model) else type(model)
    if any(f"{base.__module__}.".startswith("torch.nn.") for base in kind.__mro__) and not hasattr(kind, "fit"):
        raise InvalidParameter(
            f"{named('model')} must have fit and predict, got {kind.__name__}, a module of torch. Wrap its class: "
            f"NeuralNetClassifier({kind.__name__}, ...) of skorch (docs/how-to/neural-networks-as-teachers.md)",
            parameter="model",
        )


Preprocessing: TypeAlias = Literal["inside", "public"]


@stored_as("quorate.ensemble.unfitted.check_unfitted")
def check_unfitted(estimator: Any, *, preprocessing: Preprocessing = "inside") -> None:
    """Refuse an estimator that is fitted, in whole or in any step, and one that can be neither teacher nor student.

    `preprocessing`: "inside": every step is fitted inside each teacher. "public": fitted transformers are taken as they
    are; it is the caller's statement that they saw public data only. A fitted classifier is refused either way. Raises
    InvalidParameter if `estimator` or a part of it is fitted, has no ``fit`` or ``predict``, is a class instead of an
    instance, or keeps a cache of its inputs (``memory=``), which teachers would share and which writes private rows; or
    is of a plain class that cannot be made anew, so that whether it is fitted cannot be told.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> check_unfitted(LogisticRegression())
    >>> check_unfitted(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: LogisticRegression is already fitted. If it saw private rows, every teacher ...
    """
    one_of("preprocessing", preprocessing, get_args(Preprocessing))
    refuse_torch_module(estimator)
    if isclass(estimator):
        raise InvalidParameter(
            f"{named('model')} must be an instance, got the class {estimator.__name__}. Pass it with ().",
            parameter="model",
        )
    for method in ("fit", "predict"):
        if not may_have(estimator, method):
            raise InvalidParameter(
                f"{named('model')} must have fit and predict, got {type(estimator).__name__} without {method}. "
                "Pass a classifier, or a regressor for a number, or a Pipeline that ends in one.",
                parameter="model",
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
    """Tell whether an unfitted model may have a method once it is fitted: its class is asked too."""
    return any(callable(getattr(owner, method, None)) for owner in (estimator, type(estimator)))


def check_function(function: Any, *, preprocessing: Preprocessing = "inside") -> None:
    """Refuse a function that holds something fitted: in a ``partial``, the owner of a method, defaults, what it closes
    over, variables of its module that it reads, or attributes of an object that is called.
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
    """Yield whatever `estimator` is made of that can learn or be called, innermost first, itself last: in parameters,
    their lists and dicts, attributes of plain classes and called objects, and what functions hold.
    """
    yield from _parts(estimator, {})


def _parts(part: Any, visited: dict[int, Any]) -> Iterator[Any]:
    if id(part) in visited or part is None or isinstance(part, str | bytes | int | float):
        return
    visited[id(part)] = part  # held, so that no other object takes its place in memory meanwhile
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
        yield from _parts(value, visited)
    if not isinstance(part, list | tuple | set | frozenset | dict):
        yield part


def is_fitted(part: Any) -> bool:
    """Tell whether `part` has learned something, by scikit-learn's conventions; a stateless transformer has not, unlike
    for ``check_is_fitted``, so it may pass.
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


# --- plain classes: with ``fit`` and ``predict``, and knowing nothing of scikit-learn. One without ``get_params`` is
# made anew from its constructor's arguments, which it has to keep, each under its own name: a deep copy would take
# along whatever it has learned, and nothing would tell ------------------------------------------------------------

# Values that can be held against each other by ``==``.
_COMPARED = (type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


def is_plain(part: Any) -> bool:
    """Tell whether `part` is an object with ``fit`` that scikit-learn cannot copy or ask for tags."""
    if isinstance(part, type) or not hasattr(part, "fit"):
        return False
    return not (hasattr(part, "get_params") and hasattr(part, "__sklearn_tags__"))


def library_of(part: Any) -> str:
    """Name the package at the top that `part`, or its class, is defined in."""
    module = getattr(part, "__module__", None) or type(part).__module__
    return str(module).partition(".")[0]


def made_anew(model: Any, **changed: Any) -> Any | None:
    """Return a new instance with the same constructor arguments, but for those in `changed` that it takes. None where
    an argument is not kept under its own name, or the constructor refuses them.
    """
    names = constructor_arguments(model)
    if names is None or not all(hasattr(model, name) for name in names):
        return None
    arguments = {name: changed[name] if name in changed else getattr(model, name) for name in names}
    try:
        return type(model)(**deepcopy(arguments))
    except Exception:  # noqa: BLE001 - the user's own constructor, before any row is there
        return None


def why_not_made_anew(model: Any) -> str | None:
    """Say why :func:`made_anew` makes nothing of `model`; None where it makes one."""
    names = constructor_arguments(model)
    if names is None:
        return "its constructor takes more than it names (*args, **kwargs, or arguments by position alone)"
    if (hidden := next((name for name in names if not hasattr(model, name)), None)) is not None:
        return f"it keeps no attribute {hidden!r} with the argument of that name"
    return "its constructor refuses the arguments that it has kept" if made_anew(model) is None else None


def constructor_arguments(model: Any) -> tuple[str, ...] | None:
    """Name what the constructor takes; None where it takes more than it names, or positions alone."""
    initial = type(model).__init__
    if initial is object.__init__:
        return ()
    try:
        parameters = list(signature(initial).parameters.values())[1:]
    except (TypeError, ValueError):
        return None
    more = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return None if any(p.kind in more for p in parameters) else tuple(p.name for p in parameters)


def learned_attribute(model: Any) -> str | None:
    """Name an attribute that a new instance with the same arguments would not have, or have otherwise. Objects of one
    type are held to be the same: two generators made alike differ, and have learned nothing.
    """
    new = made_anew(model)
    if new is None:
        return None
    before = attributes(new)
    for name, value in attributes(model).items():
        if name not in before or not _alike(value, before[name]):
            return name
    return None


def attributes(model: Any) -> dict[str, Any]:
    """Return the attributes of an object, those in its ``__dict__`` and those in slots."""
    of = [getattr(kind, "__slots__", ()) for kind in type(model).__mro__]
    slots = [name for own in of for name in ((own,) if isinstance(own, str) else own) if isinstance(name, str)]
    in_slots = {name: getattr(model, name) for name in slots if name != "__dict__" and hasattr(model, name)}
    return {**in_slots, **getattr(model, "__dict__", {})}


def _alike(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return bool(one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes())
    if not isinstance(one, _COMPARED):
        return True
    try:
        return bool(one == other) or repr(one) == repr(other)  # NaN is no equal of itself
    except Exception:  # noqa: BLE001 - an array within a list, say: it is no constructor's plain value
        return repr(one) == repr(other)
