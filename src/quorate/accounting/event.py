"""What every event is: an immutable value with one canonical JSON form, which a ledger stores and chains by hash.

Sorted keys, no spaces, the shortest decimal that reads back as the same float; so equal events have equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_type_hints

from quorate.errors import InvalidParameter, UnsupportedEvent
from quorate.stored_names import stored_as

_CHECK: Final = "quorate.check"


def checked(check: Callable[..., Any], **bounds: Any) -> Mapping[str, Any]:
    """Return the metadata of a field whose value ``check(name, value, **bounds)`` gives, or refuses."""
    return MappingProxyType({_CHECK: partial(check, **bounds)})


@stored_as("quorate.accounting.event.Event")
class Event:
    """Base of all events: an immutable value, equal where its fields are equal.

    Raises
    ------
    InvalidParameter
        If a field is not of its type, not finite, or out of its range.

    Examples
    --------
    >>> from quorate.accounting import Gaussian
    >>> Gaussian(40.0, 1.0) == Gaussian(sigma=40, l2_sensitivity=1)
    True
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        for part in fields(self):  # type: ignore[arg-type]  # every event is a dataclass
            if (check := part.metadata.get(_CHECK)) is not None:
                object.__setattr__(self, part.name, check(part.name, getattr(self, part.name)))

    def to_json(self) -> str:
        """Return the canonical JSON of the event (see :func:`quorate.accounting.to_json`)."""
        return to_json(self)


#: Events by the names that their JSON has: one may be added, none may change (tests/accounting/golden holds the bytes).
KINDS: dict[str, type[Event]] = {}

#: Events of a user's own (:func:`~quorate.accounting.register_event`), by names with a dot in them.
OWN_KINDS: dict[str, type[Event]] = {}
_NAMES: dict[type[Event], str] = {}
EventClass = TypeVar("EventClass", bound=type[Event])


def published(kind: str) -> Callable[[EventClass], EventClass]:
    """Decorate an event, a frozen dataclass, with the name that its JSON has for ever."""

    def named(event: EventClass) -> EventClass:
        (OWN_KINDS if "." in kind else KINDS)[kind] = event
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
    tree: dict[str, Any] = {"kind": kind_of(event)}
    for field in fields(event):  # type: ignore[arg-type]  # every class of KINDS is a dataclass
        value = getattr(event, field.name)
        if isinstance(value, Event):
            value = _tree(value)
        elif isinstance(value, tuple):
            value = [_tree(member) for member in value]
        tree[field.name] = value
    if "." in tree["kind"]:
        tree |= plain_fields(type(event), tree["kind"], {name: tree[name] for name in tree if name != "kind"})
    return tree


def kind_of(event: Event) -> str:
    """Return the name that the JSON of an event has; UnsupportedEvent where its kind has no published JSON."""
    kind = _NAMES.get(type(event))
    if kind is None:
        raise unsupported(event, "JSON")
    return kind


def unsupported(event: object, lacks: str) -> InvalidParameter:
    """Return what is said of an event of a kind that nothing covers, and of what is no event at all."""
    name = type(event).__name__
    if isinstance(event, Event):
        return UnsupportedEvent(
            f"event of type {name} has no {lacks}", advice="use a published kind of event, or register_event"
        )
    return InvalidParameter(f"event must be an Event, got {name}; pass for example PureDP(0.5)")


def plain_fields(event: type[Event], kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a user's own event as their annotated types, or refuse them; a whole number for a float is
    that float, so that equal events have equal bytes.
    """
    plain = {}
    hints = get_type_hints(event)
    for name, value in values.items():
        wanted = hints[name]
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not wanted or (wanted is float and not isfinite(value)):
            raise InvalidParameter(
                f"event kind {kind!r}: field {name!r} must be a finite {wanted.__name__}, got {value!r}"
            )
        plain[name] = value
    return plain
