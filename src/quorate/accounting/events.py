"""What one release costs, as a value: the events that mechanisms declare, ledgers store and rules price.

An event says *what was done* (which noise, which sensitivity), never what it costs: that is the rules' part. Its
fields are public. A published event keeps its meaning and its JSON for ever; a new meaning gets a new kind.

Every event holds for a pair of neighbouring data sets in both directions, and for queries chosen adaptively.

An event is read back from its canonical JSON strictly: an unknown kind, an unknown, missing or repeated field, NaN or
an infinity is an error, so an event is never priced by guesswork. Writing is :mod:`~quorate.accounting.event`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn

from quorate.accounting.event import KINDS, OWN_KINDS, Event, checked, plain_fields, published, unsupported
from quorate.arguments import count, real
from quorate.errors import InvalidParameter, UnsupportedEvent
from quorate.stored_names import stored_as

LEAST_GRID_SIGMA = 2.0**10  # below, noise on a grid is not priced as continuous noise
_POSITIVE, _EPSILON = checked(real, above=0), checked(real, at_least=0)


@stored_as("quorate.accounting.events.Gaussian")
@published("gaussian")
@dataclass(frozen=True, slots=True)
class Gaussian(Event):
    r"""Continuous Gaussian noise on a vector, one release.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, > 0, in the unit of the released vector.
    l2_sensitivity : float
        Largest Euclidean change between neighbours, > 0, in the same unit.

    Examples
    --------
    >>> Gaussian(40, 1)
    Gaussian(sigma=40.0, l2_sensitivity=1.0)
    """

    sigma: float = field(metadata=_POSITIVE)
    l2_sensitivity: float = field(metadata=_POSITIVE)


@stored_as("quorate.accounting.events.DiscreteGaussian")
@published("discrete_gaussian")
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Event):
    r"""Discrete Gaussian noise :math:`P(z) \propto e^{-z^2/(2\sigma^2)}` on a vector of integers, one release.

    Parameters
    ----------
    sigma : float
        The σ of the formula, > 0, in votes (at least the standard deviation of the noise).
    l2_sensitivity : float
        Largest Euclidean change between neighbours, > 0, in votes. Where its square is (to the nearest integer)
        1, 2 or 3, the change is that many unit shifts in different coordinates: a histogram of votes has √2.

    References
    ----------
    Canonne, Kamath, Steinke (2020), arXiv:2004.00010.

    Examples
    --------
    >>> DiscreteGaussian(40, 1)
    DiscreteGaussian(sigma=40.0, l2_sensitivity=1.0)
    """

    sigma: float = field(metadata=_POSITIVE)
    l2_sensitivity: float = field(metadata=_POSITIVE)


@stored_as("quorate.accounting.events.GridGaussian")
@published("grid_gaussian")
@dataclass(frozen=True, slots=True)
class GridGaussian(Event):
    r"""Discrete Gaussian noise on a vector of integers that stand for numbers on a fine grid, one release.

    Where :class:`DiscreteGaussian` is priced as what it is, for unit shifts, this is priced as the continuous
    Gaussian noise that it is next to: see :mod:`quorate.accounting.gaussian` for the proof.

    Parameters
    ----------
    sigma : float
        The σ of the noise, in grid steps, at least 2¹⁰.
    l2_sensitivity : float
        Largest Euclidean change between neighbours, > 0, in grid steps.
    numbers : int
        Integers that one release draws noise for, ≥ 1.

    Examples
    --------
    >>> GridGaussian(2**20, 2**18, 300)
    GridGaussian(sigma=1048576.0, l2_sensitivity=262144.0, numbers=300)
    """

    sigma: float = field(metadata=checked(real, at_least=LEAST_GRID_SIGMA))
    l2_sensitivity: float = field(metadata=_POSITIVE)
    numbers: int = field(metadata=checked(count, at_least=1))


@stored_as("quorate.accounting.events.DiscreteLaplace")
@published("discrete_laplace")
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Event):
    r"""Discrete Laplace noise :math:`P(z) \propto e^{-|z|/b}` on a vector of integers, one release.

    Parameters
    ----------
    scale : float
        The scale b, > 0, in votes.
    sensitivity : float
        Largest L1 change between neighbours, > 0, in votes. At 1 the release is exactly randomized response with
        :math:`\varepsilon_0 = 1/b`; elsewhere it is bounded by the one with :math:`\varepsilon_0 = sensitivity/b`.

    Examples
    --------
    >>> DiscreteLaplace(20, 1)
    DiscreteLaplace(scale=20.0, sensitivity=1.0)
    """

    scale: float = field(metadata=_POSITIVE)
    sensitivity: float = field(metadata=_POSITIVE)


@stored_as("quorate.accounting.events.PureDP")
@published("pure_dp")
@dataclass(frozen=True, slots=True)
class PureDP(Event):
    r"""Any mechanism that is ε-differentially private.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0, in nats.

    Examples
    --------
    >>> PureDP(0.5)
    PureDP(epsilon=0.5)
    """

    epsilon: float = field(metadata=_EPSILON)


@stored_as("quorate.accounting.events.ApproxDP")
@published("approx_dp")
@dataclass(frozen=True, slots=True)
class ApproxDP(Event):
    r"""Any mechanism that is (ε, δ)-differentially private.

    Parameters
    ----------
    epsilon : float
        ε ≥ 0, in nats.
    delta : float
        δ in [0, 1].

    Examples
    --------
    >>> ApproxDP(0.5, 1e-6)
    ApproxDP(epsilon=0.5, delta=1e-06)
    """

    epsilon: float = field(metadata=_EPSILON)
    delta: float = field(metadata=checked(real, at_least=0, at_most=1))


def _members(_: str, events: Any) -> tuple[Event, ...]:
    if isinstance(events, str | bytes | Event) or not isinstance(events, Iterable):
        raise InvalidParameter(f"events must be a tuple of events, got {type(events).__name__}; pass (event, …)")
    members = tuple(events)
    for event in members:
        if not isinstance(event, Event):
            raise InvalidParameter(
                f"events must hold events alone, got {type(event).__name__}; wrap a price in PureDP or ApproxDP"
            )
    return members


def _member(_: str, event: Any) -> Event:
    if not isinstance(event, Event):
        raise unsupported(event, "price")
    return event


@stored_as("quorate.accounting.events.Composed")
@published("composed")
@dataclass(frozen=True, slots=True)
class Composed(Event):
    """Several events on the same data, each free to depend on the answers before it. The order does not matter.

    Parameters
    ----------
    events : tuple of Event
        Any number of events; none of them cost nothing.

    Examples
    --------
    >>> Composed((PureDP(0.5), Gaussian(40, 1)))
    Composed(events=(PureDP(epsilon=0.5), Gaussian(sigma=40.0, l2_sensitivity=1.0)))
    """

    events: tuple[Event, ...] = field(metadata=checked(_members))


@stored_as("quorate.accounting.events.Parallel")
@published("parallel")
@dataclass(frozen=True, slots=True)
class Parallel(Event):
    """Several events of which the data of one unit enter one at most, each free to depend on the answers of the others.

    Which one that is must follow from the unit's identity and a key that is independent of all data. Then the price of
    the whole is the largest of the prices of its members (McSherry 2009, Theorem 4), in each rule.

    Parameters
    ----------
    events : tuple of Event
        Any number of events; none of them cost nothing.

    Examples
    --------
    >>> Parallel((PureDP(0.5), PureDP(0.25)))
    Parallel(events=(PureDP(epsilon=0.5), PureDP(epsilon=0.25)))
    """

    events: tuple[Event, ...] = field(metadata=checked(_members))


@stored_as("quorate.accounting.events.Repeated")
@published("repeated")
@dataclass(frozen=True, slots=True)
class Repeated(Event):
    """One event, a number of times that was fixed without looking at private outputs.

    Parameters
    ----------
    event : Event
        What is repeated.
    times : int
        How often, ≥ 0. A cap covers every smaller number of answers.

    Examples
    --------
    >>> Repeated(PureDP(0.5), 3)
    Repeated(event=PureDP(epsilon=0.5), times=3)
    """

    event: Event = field(metadata=checked(_member))
    times: int = field(metadata=checked(count))


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
    keys = set(tree) - {"kind"}
    if keys != wanted:
        odd = sorted(keys ^ wanted)[0]
        raise InvalidParameter(
            f"event kind {kind!r} has a wrong field {odd!r}; expected exactly {', '.join(sorted(wanted))}"
        )
    values = {name: tree[name] for name in wanted}
    if "." in str(kind):
        values = plain_fields(cls, str(kind), values)
    if cls is Repeated:
        values["event"] = _event(values["event"])
    elif cls in (Composed, Parallel):
        if not isinstance(values["events"], list):
            raise InvalidParameter(f"event kind {kind!r} needs a list of events; pass the output of to_json")
        values["events"] = tuple(_event(member) for member in values["events"])
    return cls(**values)


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidParameter(f"event JSON holds {name}; expected finite numbers alone")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise InvalidParameter("event JSON repeats a field; expected each field once")
    return tree
