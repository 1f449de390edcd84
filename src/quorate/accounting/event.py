"""What every event is: an immutable value with one canonical JSON form, which a ledger stores and chains by hash.

Sorted keys, no spaces, the shortest decimal that reads back as the same float; so equal events have equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from quorate.errors import InvalidParameter, UnsupportedEvent


class Event:
    """Base of all events: an immutable value, equal where its fields are equal.

    Examples
    --------
    >>> from quorate.accounting import Gaussian
    >>> Gaussian(40.0, 1.0) == Gaussian(sigma=40, l2_sensitivity=1)
    True
    """

    __slots__ = ()

    def _settle(self, **fields: Any) -> None:
        """Store checked fields: a frozen dataclass lets its own ``__post_init__`` do so only this way."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def to_json(self) -> str:
        """Return the canonical JSON of the event (see :func:`quorate.accounting.to_json`)."""
        return to_json(self)


#: Events by the names that their JSON has: one may be added, none may change (tests/accounting/golden holds the bytes).
KINDS: dict[str, type[Event]] = {}
_NAMES: dict[type[Event], str] = {}
Kind = TypeVar("Kind", bound=type[Event])


def published(kind: str) -> Callable[[Kind], Kind]:
    """Decorate an event, a frozen dataclass, with the name that its JSON has for ever.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> KINDS["pure_dp"] is PureDP
    True
    """

    def named(event: Kind) -> Kind:
        KINDS[kind] = event
        _NAMES[event] = kind
        return event

    return named


def to_json(event: Event) -> str:
    """Return the canonical JSON of `event`: equal events give equal bytes.

    Raises
    ------
    UnsupportedEvent
        If the event is of a kind that has no published JSON.

    Examples
    --------
    >>> from quorate.accounting import DiscreteGaussian, Repeated
    >>> to_json(Repeated(DiscreteGaussian(40, 1), 977))
    '{"event":{"kind":"discrete_gaussian","l2_sensitivity":1.0,"sigma":40.0},"kind":"repeated","times":977}'
    """
    try:
        return json.dumps(_tree(event), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise InvalidParameter("event is nested too deeply for JSON; compose it in one flat tuple") from None


def _tree(event: Event) -> dict[str, Any]:
    kind = _NAMES.get(type(event))
    if kind is None:
        raise UnsupportedEvent(f"event of type {type(event).__name__} has no JSON; use a published kind of event")
    tree: dict[str, Any] = {"kind": kind}
    for field in fields(event):  # type: ignore[arg-type]  # every class of KINDS is a dataclass
        value = getattr(event, field.name)
        if isinstance(value, Event):
            value = _tree(value)
        elif isinstance(value, tuple):
            value = [_tree(member) for member in value]
        tree[field.name] = value
    return tree
