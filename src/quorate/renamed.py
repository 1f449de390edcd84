"""Names of an earlier version: found where they are now, and kept where they were written down.

Here belong the names that version 0.1 had. New code uses none of them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from quorate.errors import InvalidParameter

_STORED = "__stored_name__"
Named = TypeVar("Named", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


def moved(module: str, name: str, places: Mapping[str, str]) -> Any:
    """Return an attribute that a module once had, for a module's ``__getattr__``.

    Parameters
    ----------
    module, name : str
        The module that was asked, and the attribute.
    places : mapping of str to str
        For each attribute that moved the module in which it is now, or that module and its new name there with a
        colon between them.

    Raises
    ------
    AttributeError
        If the module never had it.

    Warns
    -----
    FutureWarning
        With the new place, which is the name to use.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     moved("quorate.chance", "Noise", {"Noise": "quorate.noise:OSNoise"}).__name__, str(caught[0].message)
    ('OSNoise', 'quorate.chance.Noise is now quorate.noise.OSNoise; the old name goes with the next version')
    """
    if name not in places:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    place, _, new = places[name].partition(":")
    new = new or name
    warnings.warn(
        f"{module}.{name} is now {place}.{new}; the old name goes with the next version", FutureWarning, stacklevel=3
    )
    return getattr(import_module(place), new)


class RenamedAttribute:
    """An attribute of a class under the name it once had; it warns, and gives what now has the new name.

    Parameters
    ----------
    new : str
        The new name.

    Examples
    --------
    >>> class Charge:
    ...     scope = "person"
    ...     claim = RenamedAttribute("scope")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     Charge().claim, str(caught[0].message)
    ('person', 'Charge.claim is now Charge.scope; the old name goes with the next version')
    """

    def __init__(self, new: str) -> None:
        self._new = new
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        old, new = (f"{owner.__name__}.{name}" for name in (self._old, self._new))
        warnings.warn(f"{old} is now {new}; the old name goes with the next version", FutureWarning, stacklevel=2)
        return getattr(owner if instance is None else instance, self._new)


def renamed_arguments(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function whose keyword arguments once had other names: they are taken, with a warning.

    Parameters
    ----------
    **names : str
        For each old name the new one.

    Raises
    ------
    InvalidParameter
        The decorated function does, where it is given both names of an argument.

    Examples
    --------
    >>> @renamed_arguments(claim="scope")
    ... def reserve(scope=None):
    ...     return scope
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     reserve(claim="person"), str(caught[0].message)
    ('person', 'claim= of reserve is now scope=; the old name goes with the next version')
    """

    def renamed(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def taking_both(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                if names[old] in kwargs:
                    raise InvalidParameter(
                        f"{function.__name__} was given {names[old]}= and {old}=, which is its name of version 0.1; "
                        f"leave out {old}="
                    )
                warnings.warn(
                    f"{old}= of {function.__name__} is now {names[old]}=; the old name goes with the next version",
                    FutureWarning,
                    stacklevel=2,
                )
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return taking_both

    return renamed


def found_in(module: str, name: str, places: Sequence[str]) -> Any:
    """Return an attribute that a module once had, from the first of some modules that has it now.

    Parameters
    ----------
    module, name : str
        The module that was asked, and the attribute.
    places : sequence of str
        The modules that have its attributes now; ``"module:Old=New"`` where an attribute was renamed as well.

    Raises
    ------
    AttributeError
        If none of them has it.

    Warns
    -----
    FutureWarning
        With the new place, which is the name to use.
    """
    for entry in places:
        place, _, renaming = entry.partition(":")
        old, _, new = renaming.partition("=")
        if renaming and old == name:
            return moved(module, name, {name: f"{place}:{new}"})
        if not renaming and not name.startswith("__") and hasattr(import_module(place), name):
            return moved(module, name, {name: place})
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


class _MovedModule(ModuleType):
    """Stands where a module was: whatever is looked up in it is found where it is now."""

    def __init__(self, name: str, places: Sequence[str]) -> None:
        super().__init__(name, f"Now {', '.join(places)}.")
        self._places = places

    def __getattr__(self, name: str) -> Any:
        return found_in(self.__name__, name, self._places)


def moved_modules(places: Mapping[str, Sequence[str]]) -> None:
    """Let modules be imported by their old names: what was pickled names them.

    Parameters
    ----------
    places : mapping of str to sequence of str
        For each module that is no more, the modules that hold its attributes now.
    """
    for name, now in places.items():
        sys.modules.setdefault(name, _MovedModule(name, now))


def stored_as(name: str) -> Callable[[Named], Named]:
    """Decorate a class or function with the name that stage and charge keys have for it, wherever it moves.

    Keys are digests of text with the names of classes in it. If the text changes, a stored stage is not found again
    and a charge is made twice; so a class that moves, or that is renamed, goes on being told by its first name.

    Examples
    --------
    >>> @stored_as("quorate.learners.agnostic_price.AgnosticPrice")
    ... class Price:
    ...     pass
    >>> stored_name(Price)
    'quorate.learners.agnostic_price.AgnosticPrice'
    """

    def named(thing: Named) -> Named:
        setattr(thing, _STORED, name)
        return thing

    return named


def stored_name(thing: Any) -> str:
    """Return the name that stage and charge keys have for a class or function; a subclass has its own.

    Examples
    --------
    >>> stored_name(ValueError)
    'builtins.ValueError'
    """
    kept: str | None = getattr(thing, "__dict__", {}).get(_STORED)
    return f"{thing.__module__}.{thing.__qualname__}" if kept is None else kept
