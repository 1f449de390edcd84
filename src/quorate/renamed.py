"""Names of an earlier version: found where they are now, with a warning that says where that is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any


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
