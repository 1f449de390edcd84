"""All mechanisms by their names: a file of this room registers its own, and nothing else lists them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from quorate.errors import InvalidParameter
from quorate.mechanisms.mechanism import Mechanism

_BY_NAME: dict[str, type[Mechanism]] = {}
_UNLISTED: set[type[Mechanism]] = set()

#: Every registered mechanism under the name of its class, in the order of registration.
REGISTERED: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(_BY_NAME)

Declared = TypeVar("Declared", bound=type[Mechanism])


def register(mechanism: Declared) -> Declared:
    """Register a mechanism of this package; ``quorate.toml`` names it, and the contract tests run on it.

    A mechanism of a user's own is not registered: it is named by its module (``"package.module:Class"``), so that every
    guarantee can say whose it is.

    Raises InvalidParameter if it is not of this package.
    """
    if mechanism.__module__.partition(".")[0] != "quorate":
        raise InvalidParameter(
            f"{mechanism.__name__} is no mechanism of quorate's own; give it to mechanism=, or name it in quorate.toml "
            'as "package.module:Class"'
        )
    _BY_NAME[mechanism.__name__] = mechanism
    return mechanism


def unlisted(mechanism: Declared) -> Declared:
    """Say that a mechanism of this package is no user's own, though no settings name it: another room makes it."""
    _UNLISTED.add(mechanism)
    return mechanism


def is_of_quorate(kind: type[Mechanism]) -> bool:
    """Whether a class is a mechanism of this package itself, and none that inherits from one."""
    return REGISTERED.get(kind.__name__) is kind or kind in _UNLISTED


def for_runs() -> dict[str, type[Mechanism]]:
    """Return the mechanisms that can answer the queries of a run, by name: those that take votes or scores.

    Examples
    --------
    >>> "NoisySum" in REGISTERED, "NoisySum" in for_runs()
    (True, False)
    """
    return {name: each for name, each in _BY_NAME.items() if each.takes != "sums"}
