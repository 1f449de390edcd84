"""Classes with ``fit`` and ``predict`` that know nothing of scikit-learn: how one is copied, and where it has learned.

A class without ``get_params`` is made anew from its constructor's arguments, which it has to keep, each under its own
name: a deep copy would take along whatever it has learned, and nothing would tell.
"""

from __future__ import annotations

from copy import deepcopy
from inspect import Parameter, signature
from typing import Any

import numpy as np

# Values that can be held against each other by ``==``.
_ATOMS = (type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


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
    if not isinstance(one, _ATOMS):
        return True
    try:
        return bool(one == other) or repr(one) == repr(other)  # NaN is no equal of itself
    except Exception:  # noqa: BLE001 - an array within a list, say: it is no constructor's plain value
        return repr(one) == repr(other)
