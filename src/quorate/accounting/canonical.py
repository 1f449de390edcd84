"""The one JSON form of an event: what a ledger stores and chains by hash.

Sorted keys, no spaces, the shortest decimal that reads back as the same float. Reading is strict: an unknown kind,
an unknown, missing or repeated field, NaN or an infinity is an error, so an event is never priced by guesswork.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, NoReturn

from quorate.accounting.events import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    GridGaussian,
    PureDP,
    Repeated,
)
from quorate.errors import InvalidParameter, UnsupportedEvent

# Published names: one may be added, none may change (tests/accounting/golden holds the bytes).
KINDS: dict[str, type[Event]] = {
    "approx_dp": ApproxDP,
    "composed": Composed,
    "discrete_gaussian": DiscreteGaussian,
    "discrete_laplace": DiscreteLaplace,
    "gaussian": Gaussian,
    "grid_gaussian": GridGaussian,
    "pure_dp": PureDP,
    "repeated": Repeated,
}
_NAMES = {cls: kind for kind, cls in KINDS.items()}


def to_json(event: Event) -> str:
    """Return the canonical JSON of `event`: equal events give equal bytes.

    Raises
    ------
    UnsupportedEvent
        If the event is of a kind that has no published JSON.

    Examples
    --------
    >>> to_json(Repeated(DiscreteGaussian(40, 1), 977))
    '{"event":{"kind":"discrete_gaussian","l2_sensitivity":1.0,"sigma":40.0},"kind":"repeated","times":977}'
    """
    try:
        return json.dumps(_tree(event), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise InvalidParameter("event is nested too deeply for JSON; compose it in one flat tuple") from None


def from_json(text: str) -> Event:
    """Return the event that `text` describes; the inverse of :func:`to_json`.

    Raises
    ------
    InvalidParameter
        If `text` is not JSON, or a field is unknown, missing, repeated or out of range.
    UnsupportedEvent
        If a kind is unknown.

    Examples
    --------
    >>> from_json('{"epsilon":0.5,"kind":"pure_dp"}')
    PureDP(epsilon=0.5)
    """
    if not isinstance(text, str):
        raise InvalidParameter(f"event JSON must be a str, got {type(text).__name__}; decode it first")
    try:
        return _event(json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique))
    except InvalidParameter:
        raise
    except ValueError:  # not JSON, or an integer of thousands of digits
        raise InvalidParameter("event JSON cannot be read; pass the output of to_json") from None
    except RecursionError:
        raise InvalidParameter("event JSON is nested too deeply; compose the events in one flat tuple") from None


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


def _event(tree: Any) -> Event:
    if not isinstance(tree, dict):
        raise InvalidParameter(f"event JSON must be an object, got {type(tree).__name__}; pass the output of to_json")
    kind = tree.get("kind")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise UnsupportedEvent(f"event kind {kind!r} is unknown; expected one of {', '.join(sorted(KINDS))}")
    wanted = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    given = set(tree) - {"kind"}
    if given != wanted:
        odd = sorted(given ^ wanted)[0]
        raise InvalidParameter(
            f"event kind {kind!r} has a wrong field {odd!r}; expected exactly {', '.join(sorted(wanted))}"
        )
    values = {name: tree[name] for name in wanted}
    if cls is Repeated:
        values["event"] = _event(values["event"])
    elif cls is Composed:
        if not isinstance(values["events"], list):
            raise InvalidParameter("event kind 'composed' needs a list of events; pass the output of to_json")
        values["events"] = tuple(_event(member) for member in values["events"])
    return cls(**values)


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidParameter(f"event JSON holds {name}; expected finite numbers alone")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise InvalidParameter("event JSON repeats a field; expected each field once")
    return tree
