"""The entries of a ledger: one frozen value for each kind of event in its life, with one canonical JSON form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType
from typing import Any, ClassVar, Final

from quorate.errors import InvalidParameter
from quorate.ledger.budget import Budget, BudgetUnits
from quorate.ledger.fields import Json, canonical, instance, matching, optional, text, whole
from quorate.ledger.scope import GuaranteeScope, OtherCharge

_CLIENT, _KEY, _COUNT = text(128), optional(text(256)), whole(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What one client asks of a block that it shares with others.

    `client`: who asks; its quota is what bounds it below the cap. `count`: how many answers, at least 1. `key`: its
    idempotency key; another body under the same key is refused. `body`: digest of the request; left out, it is the
    number of answers that tells requests under one key apart.
    """

    client: str
    count: int
    key: str | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        _CLIENT("client", self.client)
        _KEY("key", self.key)
        _KEY("body", self.body)
        object.__setattr__(self, "count", _COUNT("count", self.count))

    def body_hash(self, reservation: int) -> str:
        """What another request under the same key must agree in: a repeat may have fewer answers to pay for."""
        return _body_hash(reservation, self.count if self.body is None else self.body)

    def to_object(self) -> dict[str, Any]:
        """Return the part as a JSON object."""
        return {"body": self.body, "client": self.client, "count": self.count, "key": self.key}


@lru_cache(maxsize=4096)  # asked for by each rule that a request meets on its way
def _body_hash(reservation: int, content: int | str) -> str:
    return sha256(canonical(["part", reservation, content]).encode()).hexdigest()


def parts(name: str, value: object) -> tuple[Part, ...]:
    """Check the parts of a block; none of its requests may come twice."""
    if not isinstance(value, tuple) or not value or not all(isinstance(part, Part) for part in value):
        raise InvalidParameter(f"{name} must be a tuple of Part, with one at least, got {type(value).__name__}")
    keys = [(part.client, part.key) for part in value if part.key is not None]
    if len(keys) != len(set(keys)):
        raise InvalidParameter(f"{name} must have different keys where a client has several")
    return value


FORMAT: Final = 1
GENESIS_HASH: Final = "0" * 64

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z")
_HASH = re.compile(r"[0-9a-f]{64}")
_IDENTITY = re.compile(r"[0-9a-f]{32}")


def _by_purpose(item: str, what: str, *, at_least: int) -> Callable[[str, object], Mapping[str, int]]:
    """Make a check: a whole number for each purpose, sorted; `item`: what a number is called, `what`: what it is."""

    def check(name: str, value: object) -> Mapping[str, int]:
        if not isinstance(value, Mapping) or len(value) < at_least:
            raise InvalidParameter(f"{name} must map each purpose to {what}, got {type(value).__name__}")
        checked = {_PURPOSE("purpose", key): whole(0)(item, number) for key, number in value.items()}
        return MappingProxyType(dict(sorted(checked.items())))

    return check


_PURPOSE = text(64)
_CHECKS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "also": optional(instance(OtherCharge)),
    "amounts": instance(BudgetUnits),
    "answers": instance(Json),
    "block": whole(1),
    "body": optional(text(256)),
    "budget": instance(Budget),
    "claim": optional(instance(GuaranteeScope)),
    "client": text(128),
    "count": whole(1),
    "event": instance(Json),
    "fingerprint": text(256),
    "first": whole(0),
    "format": whole(1),
    "key": text(256),
    "ledger": matching(_IDENTITY, "32 hexadecimal digits"),
    "limit": instance(BudgetUnits),
    "paid_by": optional(_by_purpose("part", "the part that pays for it", at_least=0)),
    "parts": optional(parts),
    "purpose": _PURPOSE,
    "purposes": _by_purpose("count", "its number of answers", at_least=1),
    "quota": optional(whole(0)),
    "reason": text(1000),
    "reservation": whole(1),
    "stage": optional(whole(0)),
    "store": instance(Json),
}

# What users call it, where an entry has kept the name that version 0.1 wrote.
_CALLED: Final = {"claim": "scope", "paid_by": "charged_to"}


class Content:
    """What an entry says; the sequence number, the time and the hashes are the envelope's (:class:`Entry`)."""

    __slots__ = ()
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            check = _CHECKS[field.name]
            if field.name == "key" and isinstance(self, Drawn):
                check = optional(check)
            called = _CALLED.get(field.name, field.name)
            object.__setattr__(self, field.name, check(called, getattr(self, field.name)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened(Content):
    """The first entry: the budget, the limit it comes to, an identity at random, and the store's version."""

    kind: ClassVar[str] = "opened"
    budget: Budget
    limit: BudgetUnits
    ledger: str
    store: Json
    format: int = FORMAT


@dataclass(frozen=True, kw_only=True, slots=True)
class Started(Content):
    """A process began to write; blocks that earlier ones left unstored are lost."""

    kind: ClassVar[str] = "started"
    store: Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound(Content):
    """The ledger belongs to the data set of this keyed fingerprint."""

    kind: ClassVar[str] = "bound"
    fingerprint: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SameRelease(Content):
    """The owner says that the data of another fingerprint are the same release."""

    kind: ClassVar[str] = "same release"
    fingerprint: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetRaised(Content):
    """The owner raised the budget."""

    kind: ClassVar[str] = "budget raised"
    budget: Budget
    limit: BudgetUnits
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reserved(Content):
    """A schedule of answers was charged at the exact price of its event.

    ``claim`` is the rest of its guarantee. ``paid_by`` names the part of a composed event that pays for each purpose;
    None where the whole event pays for all of them. ``also`` is what it comes to for the other relation; None where
    that is not known, or is the same.
    """

    kind: ClassVar[str] = "reserved"
    event: Json
    amounts: BudgetUnits
    purposes: Mapping[str, int]
    client: str
    key: str
    claim: GuaranteeScope | None = None
    paid_by: Mapping[str, int] | None = None
    also: OtherCharge | None = None

    @property
    def body_hash(self) -> str:
        """What another request under the same key must agree in."""
        body: dict[str, Any] = {
            "delta": self.amounts.delta_e18,
            "event": self.event.value,
            "paid_by": None if self.paid_by is None else dict(self.paid_by),
            "purposes": dict(self.purposes),
        }
        if self.also is not None:
            body["also"] = [self.also.neighbours, self.also.event.value]
        return sha256(canonical([self.kind, body]).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn(Content):
    """``count`` answers of a reservation, from number ``first`` on, count as given: their noise may be drawn.

    ``stage`` is the number of the sparse-vector stage that was open when the block was drawn, and goes on in it; None
    where none was open, and for every other mechanism. ``parts`` are the requests of several clients that share the
    block, in the order of its answers; each has its own client and key, and the block has none. None where one client
    asked.
    """

    kind: ClassVar[str] = "drawn"
    reservation: int
    purpose: str
    first: int
    count: int
    client: str
    key: str | None = None
    body: str | None = None
    stage: int | None = None
    parts: tuple[Part, ...] | None = None

    @property
    def body_hash(self) -> str:
        """What another request under the same key must agree in."""
        body = [self.kind, self.reservation, self.purpose, self.count, self.body]
        return sha256(canonical(body).encode()).hexdigest()

    def uses(self) -> Iterator[tuple[str, str, str]]:
        """Return client, key and hash of the request, for every request of the block that has a key."""
        if self.parts is None:
            if self.key is not None:
                yield self.client, self.key, self.body_hash
            return
        for part in self.parts:
            if part.key is not None:
                yield part.client, part.key, part.body_hash(self.reservation)

    def answers_by_client(self) -> dict[str, int]:
        """Return how many of its answers each client asked for."""
        if self.parts is None:
            return {self.client: self.count}
        counts: dict[str, int] = {}
        for part in self.parts:
            counts[part.client] = counts.get(part.client, 0) + part.count
        return counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored(Content):
    """The answers of a block, which may leave once this entry is durable."""

    kind: ClassVar[str] = "stored"
    block: int
    answers: Json


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaSet(Content):
    """The most answers that a client is ever given from this ledger; None takes its quota away."""

    kind: ClassVar[str] = "quota set"
    client: str
    quota: int | None
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed(Content):
    """No further reservation is made."""

    kind: ClassVar[str] = "closed"
    reason: str


KINDS: Final[Mapping[str, type[Content]]] = {
    kind.kind: kind
    for kind in (Opened, Started, Bound, SameRelease, BudgetRaised, QuotaSet, Reserved, Drawn, Stored, Closed)
}


def _read_claim(value: Any) -> GuaranteeScope | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("caveats"), list):
        raise InvalidParameter("scope must be an object with a list of caveats")
    return GuaranteeScope(**{**value, "caveats": tuple(value["caveats"])})


def _read_also(value: Any) -> OtherCharge:
    if not isinstance(value, dict) or value.keys() != {"neighbours", "event", "amounts"}:
        raise InvalidParameter("also must be an object with neighbours, event and amounts")
    amounts = BudgetUnits(**value["amounts"])
    return OtherCharge(neighbours=value["neighbours"], event=Json.of(value["event"]), amounts=amounts)


# Fields that version 0.1 did not write: left out where they say nothing, so that every older entry keeps its hash.
_ADDED: Final = frozenset({"also", "parts", "stage"})

_DECODERS: Final[Mapping[str, Callable[[Any], object]]] = {
    "also": _read_also,
    "amounts": lambda value: BudgetUnits(**value),
    "answers": Json.of,
    "budget": lambda value: Budget(**value),
    "claim": _read_claim,
    "event": Json.of,
    "limit": lambda value: BudgetUnits(**value),
    "parts": lambda value: tuple(Part(**part) for part in value),
    "store": Json.of,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One link of the chain.

    `sequence`: position in the chain, from 1. `time`: UTC, ISO 8601 with microseconds. `session`: number of the
    ``opened`` or ``started`` entry of the process that wrote this one. `content`: what happened. `previous`: hash of
    the entry before it; zeros for the first. `hash`: SHA-256 of the canonical JSON of all the rest, in hexadecimal.
    """

    sequence: int
    time: str
    session: int
    content: Content
    previous: str
    hash: str

    def __post_init__(self) -> None:
        whole(1)("sequence", self.sequence)
        whole(1)("session", self.session)
        matching(_TIME, "a UTC time with microseconds")("time", self.time)
        matching(_HASH, "64 hexadecimal digits")("previous", self.previous)
        matching(_HASH, "64 hexadecimal digits")("hash", self.hash)

    @property
    def kind(self) -> str:
        """What kind of entry it is."""
        return self.content.kind

    def to_object(self) -> dict[str, Any]:
        """Return the entry as a flat JSON object."""
        return {**_body(self.sequence, self.time, self.session, self.content, self.previous), "hash": self.hash}

    def to_json(self) -> str:
        """Return the canonical line that is stored."""
        return canonical(self.to_object())

    @classmethod
    def from_object(cls, value: dict[str, Any]) -> Entry:
        """Read an entry; unknown, missing or malformed fields raise ``InvalidParameter`` or ``TypeError``."""
        rest = dict(value)
        kind = KINDS.get(rest.pop("kind", None))
        if kind is None:
            raise InvalidParameter("kind must be one that this version knows")
        envelope = {name: rest.pop(name, None) for name in ("sequence", "time", "session", "previous", "hash")}
        own = {field.name for field in fields(kind)}  # type: ignore[arg-type]
        if not own - _ADDED <= rest.keys() <= own or any(rest[name] is None for name in _ADDED & rest.keys()):
            raise InvalidParameter(f"an entry of kind {kind.kind!r} must have exactly its own fields")
        content = kind(**{name: _DECODERS[name](item) if name in _DECODERS else item for name, item in rest.items()})
        return cls(content=content, **envelope)


def seal(content: Content, *, sequence: int, time: str, session: int, previous: str) -> Entry:
    """Close an envelope: the entry with its hash."""
    digest = sha256(canonical(_body(sequence, time, session, content, previous)).encode()).hexdigest()
    return Entry(sequence=sequence, time=time, session=session, content=content, previous=previous, hash=digest)


def _body(sequence: int, time: str, session: int, content: Content, previous: str) -> dict[str, Any]:
    values = {field.name: _plain(getattr(content, field.name)) for field in fields(content)}  # type: ignore[arg-type]
    known = {name: value for name, value in values.items() if value is not None or name not in _ADDED}
    return {**known, "kind": content.kind, "previous": previous, "sequence": sequence, "session": session, "time": time}


def _plain(value: object) -> object:
    if isinstance(value, Json):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Part):
        return value.to_object()
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
