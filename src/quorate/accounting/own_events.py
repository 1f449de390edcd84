"""Events of a user's own: registered under a name with a dot, with the rule that prices them.

That the rule is true of the release is the user's statement, and each guarantee that rests on one says so;
``quorate.audit.price_faults`` holds it against the law of a release. At each use it may not be zero, not a number, or
fall where a Rényi curve rises; a ρ may not lie below the curve. An event that nobody registered is refused, never free.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeAlias, TypeVar, get_type_hints

import numpy as np

from quorate.accounting.concentrated import zcdp as zcdp_rule
from quorate.accounting.event import OWN_KINDS, Event, kind_of, published, to_json
from quorate.accounting.renyi import checked_orders, rdp_rule
from quorate.errors import InvalidParameter, UnsupportedEvent
from quorate.types import FloatArray

PricedAs: TypeAlias = Callable[[Any], Event]
Curve: TypeAlias = Callable[[Any, FloatArray], object]
Own = TypeVar("Own", bound=type[Event])

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_PLAIN = (float, int, str, bool)
_UP = 1 + 2.0**-40  # of a figure that somebody else's code computed
_PROBES: Final = 1 + np.geomspace(1e-3, 1e4, 60)  # orders at which a curve and a ρ are held against each other

_PRICED_AS: dict[type[Event], PricedAs] = {}


def register_event(
    kind: str,
    *,
    priced_as: PricedAs | None = None,
    rdp: Curve | None = None,
    zcdp: Callable[[Any], float] | None = None,
) -> Callable[[Own], Own]:
    """Decorate an event of your own with the name that its JSON has for ever, and with its price.

    Parameters
    ----------
    kind : str
        Lower-case words with a dot between them, the first of them yours: ``"staircase.vote"``.
    priced_as : callable, optional
        ``priced_as(event)`` returns an event of quorate's that the release is at most as costly as.
    rdp : callable, optional
        ``rdp(event, orders)`` returns a bound on the Rényi divergence, in nats and in both directions, at each of the
        orders above 1, ``(n_orders,)``. One of the two rules is given.
    zcdp : callable, optional
        Beside ``rdp``: ``zcdp(event)`` returns the ρ for which the curve lies below :math:`aρ` at every order. Without
        it, a ledger that counts in ρ refuses the event.

    Raises
    ------
    InvalidParameter
        If the name is not of this form or is taken, there is not exactly one rule, or the class is no frozen dataclass
        of numbers, texts and truth values that inherits from :class:`Event`.

    Notes
    -----
    Privacy: the rule has to hold for every pair of neighbours, in both directions, and for queries chosen adaptively.
    That it does is your statement. Every guarantee on a ledger that was charged for such an event says so.

    A published event never changes its meaning: give a new meaning a new name, since ledgers hold the old one.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from quorate.accounting import Event, PureDP, Repeated, epsilon, from_json
    >>> @register_event("example.staircase", priced_as=lambda event: PureDP(event.epsilon))
    ... @dataclass(frozen=True)
    ... class Staircase(Event):
    ...     epsilon: float
    >>> from_json(Staircase(0.5).to_json())
    Staircase(epsilon=0.5)
    >>> round(epsilon(Repeated(Staircase(0.5), 3), 0.0), 9)
    1.5
    """
    if not isinstance(kind, str) or not _NAME.fullmatch(kind):
        raise InvalidParameter(
            parameter="kind",
            got=kind,
            expected='lower-case words with a dot between them, as in "staircase.vote"',
            advice="names without a dot are quorate's",
        )
    if (priced_as is None) == (rdp is None) or (zcdp is not None and rdp is None):
        raise InvalidParameter(
            f"event kind {kind!r} must have one price rule: priced_as=, or rdp= with zcdp= beside it where ρ is counted"
        )

    def registered(event: Own) -> Own:
        _check_class(kind, event)
        if priced_as is not None:
            _PRICED_AS[event] = priced_as
            rdp_rule.register(event, lambda event_, orders: rdp_rule(stands_for(event_), orders))
            zcdp_rule.register(event, lambda event_: zcdp_rule(stands_for(event_)))
        elif rdp is not None:
            rdp_rule.register(event, lambda event_, orders: _checked_curve(kind, rdp(event_, orders), orders))
            zcdp_rule.register(event, lambda event_: _checked_rho(kind, event_, zcdp))
        return published(kind)(event)

    return registered


def own_kinds(event: Event | str) -> tuple[str, ...]:
    """Return the kinds in an event, or in its JSON, that are a user's own, sorted; of a JSON also unregistered ones."""
    kinds: set[str] = set()
    stack = [json.loads(event if isinstance(event, str) else to_json(event))]
    while stack:
        node = stack.pop()
        kinds.add(node["kind"])
        stack += [*node.get("events", ()), *([node["event"]] if "event" in node else [])]
    return tuple(sorted(kind for kind in kinds if "." in kind))


def unknown_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds in an event's JSON that are a user's own and that nothing has registered, sorted.

    Examples
    --------
    >>> unknown_kinds('{"epsilon":0.5,"kind":"nobodys.vote"}'), unknown_kinds('{"epsilon":0.5,"kind":"pure_dp"}')
    (('nobodys.vote',), ())
    """
    return tuple(kind for kind in own_kinds(text) if kind not in OWN_KINDS)


def stands_for(event: Event) -> Event:
    """Return the event that prices this one: itself, or what its registered rule gives; refuse a rule that gives none
    of quorate's, or a free one.
    """
    rule = _PRICED_AS.get(type(event))
    if rule is None:
        return event
    kind, priced = kind_of(event), rule(event)
    if not isinstance(priced, Event):
        raise InvalidParameter(f"priced_as of event kind {kind!r} must return an event, got {type(priced).__name__}")
    if own_kinds(priced):
        raise InvalidParameter(f"priced_as of event kind {kind!r} must return an event of quorate's own kinds")
    if not float(rdp_rule(priced, checked_orders([2.0]))[0]) > 0:
        raise InvalidParameter(f"event kind {kind!r} is priced as nothing; a release that costs nothing has no event")
    return priced


def _check_class(kind: str, event: Any) -> None:
    params = getattr(event, "__dataclass_params__", None)
    if not isinstance(event, type) or not issubclass(event, Event) or params is None:
        raise InvalidParameter(f"event kind {kind!r} must be a frozen dataclass that inherits from Event")
    if not (params.frozen and params.eq):
        raise InvalidParameter(
            f"event kind {kind!r} must be frozen, and equal where its fields are: dataclass(frozen=True)"
        )
    hints = get_type_hints(event)
    for part in fields(event):  # type: ignore[arg-type]  # it has the parameters of a dataclass
        if hints[part.name] not in _PLAIN or part.name in ("kind", "event", "events"):
            raise InvalidParameter(
                f"event kind {kind!r}: field {part.name!r} must be annotated as float, int, str or bool, and not "
                "be named kind, event or events"
            )
    holder = OWN_KINDS.get(kind)
    if holder is not None and (holder.__module__, holder.__qualname__) != (event.__module__, event.__qualname__):
        raise InvalidParameter(
            f"event kind {kind!r} is taken by {holder.__module__}.{holder.__qualname__}; choose another"
        )


def _checked_curve(kind: str, curve: object, orders: FloatArray) -> FloatArray:
    """Refuse what cannot be a Rényi curve of a release: zero, not a number, or falling."""
    values = np.asarray(curve)
    if values.dtype.kind not in "iuf" or values.shape != orders.shape:
        raise InvalidParameter(f"rdp of event kind {kind!r} must return one number for each order, {orders.shape}")
    values = values.astype(np.float64)
    if np.isnan(values).any() or not (values > 0).all():
        raise InvalidParameter(f"rdp of event kind {kind!r} must be > 0 at every order; an event is never free")
    rising = values[np.argsort(orders, kind="stable")]
    if (rising[1:] < rising[:-1] * (1 - 1e-9)).any():  # a number is below infinity, and infinity below nothing
        raise InvalidParameter(
            f"rdp of event kind {kind!r} falls from one order to a larger one, and no divergence does"
        )
    return np.asarray(values * _UP)


def _checked_rho(kind: str, event: Event, rule: Callable[[Any], float] | None) -> float:
    """Refuse a ρ that is no bound on the event's own curve, at the orders that are tried."""
    if rule is None:
        raise UnsupportedEvent(
            f"event kind {kind!r} has no zCDP rule; register it with zcdp=, or open the ledger with composition='sum'"
        )
    rho = float(rule(event))
    if not rho > 0 or (rdp_rule(event, _PROBES) > _PROBES * rho * _UP**2).any():
        raise InvalidParameter(f"zcdp of event kind {kind!r} is below its own Rényi curve; it must bound rdp(a) / a")
    return rho * _UP
