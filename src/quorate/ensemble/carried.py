"""What every teacher takes over from the model that it is a copy of, and whether that can be looked into.

A copy begins with its model's parameters: texts and numbers, and whatever else its owner gave. An array of weights, a
network or an object of another library has no mark that tells whether it has learned, and from which rows.
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
from decimal import Decimal
from functools import partial
from inspect import isclass, isroutine
from pathlib import Path, PurePath
from types import CodeType, EllipsisType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from quorate.ensemble.plain_classes import attributes, constructor_arguments, is_plain, made_anew

_ATOMS = (
    type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, np.ufunc, slice, range, enum.Enum,
    re.Pattern, PurePath, Decimal, fractions.Fraction, dt.date, dt.time, dt.timedelta, EllipsisType,
    np.random.Generator, np.random.RandomState, ModuleType,
)  # fmt: skip
# Objects of other libraries that are public facts: distributions of a search, a device, the type of a number.
_LIBRARIES = ("scipy.stats.",)
_PACKAGES = {"site-packages", "dist-packages"}
_OURS = Path(__file__).parents[1]
_NAMED = {("torch", "device"), ("torch", "dtype")}


def not_looked_into(*models: Any) -> str | None:
    """Name the class of something that copies of these models take over, and that cannot be looked into.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> not_looked_into(LogisticRegression(C=0.5)), not_looked_into(GaussianNB(priors=np.array([0.5, 0.5])))
    (None, 'ndarray')
    """
    return next((type(part).__name__ for model in models for part in carried(model) if _is_closed(part)), None)


def carried(model: Any) -> Iterator[Any]:
    """Yield `model` and all that a copy of it takes over, but for texts, numbers and the like.

    Examples
    --------
    >>> from sklearn.ensemble import BaggingClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> list(carried(BaggingClassifier(GaussianNB())))
    [BaggingClassifier(estimator=GaussianNB()), GaussianNB()]
    """
    yield from _carried(model, {})


def held_by(function: Any) -> list[Any]:
    """Return what a function brings along beside its code, classes and modules left out.

    `function`: of one that belongs to an installed library, the variables of its module are not looked at.

    Examples
    --------
    >>> def learns(X, y, depth=3, *, rate=0.5):
    ...     return depth * rate
    >>> held_by(partial(learns, 7))[1:], held_by(learns)
    ([7], [3, 0.5])
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
    names = [each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names += _globals_of(inner)
    return list(dict.fromkeys(names))


def _carried(part: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yield `part` and what a copy of it has from it."""
    if id(part) in seen or isinstance(part, _ATOMS):
        return
    seen[id(part)] = part  # held, so that no other object takes its place in memory meanwhile
    yield part
    for inner in _inner(part):
        yield from _carried(inner, seen)


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
