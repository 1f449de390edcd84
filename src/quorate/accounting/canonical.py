"""Reading an event from its canonical JSON, strictly.

An unknown kind, an unknown, missing or repeated field, NaN or an infinity is an error, so an event is never priced by
guesswork. Writing is :mod:`~quorate.accounting.event`.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, NoReturn

from quorate.accounting.event import KINDS, OWN_KINDS, Event, plain_fields
from quorate.accounting.events import Composed, Repeated
from quorate.errors import InvalidParameter, UnsupportedEvent


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


def _event(tree: Any) -> Event:
    if not isinstance(tree, dict):
        raise InvalidParameter(f"event JSON must be an object, got {type(tree).__name__}; pass the output of to_json")
    kind = tree.get("kind")
    cls = (KINDS.get(kind) or OWN_KINDS.get(kind)) if isinstance(kind, str) else None
    if cls is None:
        if isinstance(kind, str) and "." in kind:
            raise UnsupportedEvent(
                f"event kind {kind!r} is none of quorate's, and nothing that was imported registered it; import the "
                "package that does (register_event) and read this again"
            )
        raise UnsupportedEvent(f"event kind {kind!r} is unknown; expected one of {', '.join(sorted(KINDS))}")
    wanted = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    given = set(tree) - {"kind"}
    if given != wanted:
        odd = sorted(given ^ wanted)[0]
        raise InvalidParameter(
            f"event kind {kind!r} has a wrong field {odd!r}; expected exactly {', '.join(sorted(wanted))}"
        )
    values = {name: tree[name] for name in wanted}
    if "." in str(kind):
        values = plain_fields(cls, str(kind), values)
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
