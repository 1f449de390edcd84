"""What a chain of entries adds up to. No clock, no disk; the rules stand in :mod:`quorate.ledger.rules`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from quorate.errors import InvalidParameter
from quorate.ledger.budget import Budget, BudgetUnits
from quorate.ledger.entries import (
    GENESIS_HASH,
    Bound,
    BudgetRaised,
    Closed,
    Drawn,
    Entry,
    Opened,
    QuotaSet,
    Reserved,
    SameRelease,
    Started,
    Stored,
)
from quorate.ledger.fields import Json
from quorate.ledger.scope import GuaranteeScope, combined_scope

BlockStatus: TypeAlias = Literal["drawn", "stored", "interrupted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Epoch:
    """Which history a database is in: a standby that takes a primary's place begins the next one.

    `cluster`: which database, with all its standbys and copies. `timeline`: number of its history.
    """

    cluster: str
    timeline: int

    def ended_by(self, other: Epoch) -> bool:
        """Whether the other one took this one's place."""
        return self.cluster == other.cluster and self.timeline < other.timeline


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest entry of a chain: what an anchor and a receipt hold.

    `epoch`: of the database in which it was seen to be the newest, where that tells one; no part of the entry itself.
    """

    sequence: int
    hash: str
    epoch: Epoch | None = field(default=None, compare=False)


GENESIS = Head(sequence=0, hash=GENESIS_HASH)


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockState:
    """One drawn block: answers ``first`` to ``first + count - 1`` of a purpose, and what was stored of them."""

    sequence: int
    drawn: Drawn
    session: int
    stored: int | None = None
    answers: Json | None = None

    def status(self, session: int | None) -> BlockStatus:
        """Return its status, as seen by the process that writes as ``session`` (None: one that wrote nothing)."""
        if self.stored is not None:
            return "stored"
        return "drawn" if self.session == session else "interrupted"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyUse:
    """What an idempotency key of one client was used for."""

    kind: str
    body_hash: str
    entries: tuple[int, ...]  # the reservation, or the blocks drawn under the key, oldest first


@dataclass(kw_only=True, slots=True)
class ReservationState:
    """How far the answers of a reservation have been drawn; and the newest block of each sparse-vector stage.

    ``stored`` has, in order, the number of each entry that stored answers, with that of its block.
    """

    sequence: int
    reserved: Reserved
    drawn: dict[str, int]
    blocks: list[int] = field(default_factory=list)
    stages: dict[int, int] = field(default_factory=dict)
    stored: list[tuple[int, int]] = field(default_factory=list)

    def remaining(self, purpose: str) -> int:
        """Return how many answers of a purpose are left."""
        if purpose not in self.drawn:
            known = ", ".join(map(repr, self.drawn))
            raise InvalidParameter(parameter="purpose", got=purpose, expected=f"one of the reservation's ({known})")
        return self.reserved.purposes[purpose] - self.drawn[purpose]


@dataclass(slots=True)
class LedgerState:
    """The sum of a chain.

    `hashes`: of each entry, in order. `budget`, `limit`: what is in force, and the amounts it comes to; None before the
    first entry. `spent`: sum of all reservations; never above `limit`. `scope`: what the guarantees of all reservations
    that state theirs cover together. `fingerprints`: the data sets that are this release, the newest last.
    `reservations`, `blocks`: by sequence number. `keys`: by client and idempotency key. `quotas`: the most answers that
    a client is ever given, where it has a quota. `unbound`: clients whose quota was taken away and not set again.
    `drawn_by`: how many answers were drawn for each client.
    """

    hashes: list[str] = field(default_factory=list)
    identity: str = ""
    budget: Budget | None = None
    limit: BudgetUnits = field(default_factory=BudgetUnits)
    spent: BudgetUnits = field(default_factory=BudgetUnits)
    scope: GuaranteeScope | None = None
    fingerprints: tuple[str, ...] = ()
    closed: bool = False
    sessions: set[int] = field(default_factory=set)
    reservations: dict[int, ReservationState] = field(default_factory=dict)
    blocks: dict[int, BlockState] = field(default_factory=dict)
    keys: dict[tuple[str, str], KeyUse] = field(default_factory=dict)
    quotas: dict[str, int] = field(default_factory=dict)
    unbound: set[str] = field(default_factory=set)
    drawn_by: dict[str, int] = field(default_factory=dict)

    @property
    def head(self) -> Head:
        """The newest entry."""
        return Head(sequence=len(self.hashes), hash=self.hashes[-1]) if self.hashes else GENESIS

    def copy(self) -> LedgerState:
        """Return an independent copy."""
        return replace(
            self,
            hashes=list(self.hashes),
            sessions=set(self.sessions),
            reservations={
                sequence: replace(
                    one,
                    drawn=dict(one.drawn),
                    blocks=list(one.blocks),
                    stages=dict(one.stages),
                    stored=list(one.stored),
                )
                for sequence, one in self.reservations.items()
            },
            blocks=dict(self.blocks),
            keys=dict(self.keys),
            quotas=dict(self.quotas),
            unbound=set(self.unbound),
            drawn_by=dict(self.drawn_by),
        )

    def stored_under(self, use: KeyUse) -> BlockState | None:
        """Return the first block under a key whose answers were stored."""
        blocks: Iterator[BlockState] = (self.blocks[sequence] for sequence in use.entries)
        return next((block for block in blocks if block.stored is not None), None)

    def take(self, entry: Entry) -> None:
        """Add an entry that keeps every rule (see :func:`quorate.ledger.rules.apply`)."""
        match entry.content:
            case Opened() as opened:
                self.identity, self.budget, self.limit = opened.ledger, opened.budget, opened.limit
                self.sessions.add(entry.sequence)
            case Started():
                self.sessions.add(entry.sequence)
            case Bound(fingerprint=fingerprint) | SameRelease(fingerprint=fingerprint):
                self.fingerprints = (*self.fingerprints, fingerprint)
            case BudgetRaised() as raised:
                self.budget, self.limit = raised.budget, raised.limit
            case QuotaSet(quota=None) as removed:
                self.quotas.pop(removed.client, None)
                self.unbound.add(removed.client)
            case QuotaSet(quota=int(quota)) as given:
                self.quotas[given.client] = quota
                self.unbound.discard(given.client)
            case Reserved() as reserved:
                self._take_reserved(reserved, entry.sequence)
            case Drawn() as drawn:
                self._take_drawn(drawn, entry)
            case Stored() as stored:
                block = self.blocks[stored.block]
                self.blocks[stored.block] = replace(block, stored=entry.sequence, answers=stored.answers)
                self.reservations[block.drawn.reservation].stored.append((entry.sequence, stored.block))
            case Closed():
                self.closed = True
            case other:
                raise NotImplementedError(other.kind)
        self.hashes.append(entry.hash)

    def _take_reserved(self, reserved: Reserved, sequence: int) -> None:
        self.spent += reserved.amounts
        if reserved.claim is not None:
            self.scope = combined_scope([reserved.claim] if self.scope is None else [self.scope, reserved.claim])
        self.reservations[sequence] = ReservationState(
            sequence=sequence, reserved=reserved, drawn=dict.fromkeys(reserved.purposes, 0)
        )
        self.keys[reserved.client, reserved.key] = KeyUse(
            kind=reserved.kind, body_hash=reserved.body_hash, entries=(sequence,)
        )

    def _take_drawn(self, drawn: Drawn, entry: Entry) -> None:
        reservation = self.reservations[drawn.reservation]
        reservation.drawn[drawn.purpose] += drawn.count
        reservation.blocks.append(entry.sequence)
        if drawn.stage is not None:
            reservation.stages[drawn.stage] = entry.sequence
        self.blocks[entry.sequence] = BlockState(sequence=entry.sequence, drawn=drawn, session=entry.session)
        for client, answers in drawn.answers_by_client().items():
            self.drawn_by[client] = self.drawn_by.get(client, 0) + answers
        for client, key, body_hash in drawn.uses():
            use = self.keys.get((client, key))
            earlier = () if use is None else use.entries
            self.keys[client, key] = KeyUse(kind=drawn.kind, body_hash=body_hash, entries=(*earlier, entry.sequence))
