"""What a ledger tells: its state, its entries, its receipts. What changes it is in :mod:`quorate.ledger.ledger`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from quorate.accounting.neighbouring import OTHER, Change, Neighbouring
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger.budget import Budget, BudgetUnits, Totals, left_totals, spent_totals
from quorate.ledger.chain import Receipt, check_held, receipt_of
from quorate.ledger.entries import Entry, Reserved
from quorate.ledger.journal import Journal
from quorate.ledger.pricing import check_prices
from quorate.ledger.reservation import Reservation
from quorate.ledger.rules import Quota, quota_of
from quorate.ledger.scope import GuaranteeScope, amounts_for, relation_that_holds
from quorate.ledger.state import Epoch, Head, LedgerState
from quorate.ledger.store import LedgerStore, own_store
from quorate.stored_names import stored_as


class LedgerReadings:
    """What can be read of a ledger: everything in it is on stable storage."""

    path: Path | None
    _store: LedgerStore
    _journal: Journal

    @property
    def durable(self) -> bool:
        """Whether the record outlives the process."""
        return self._store.durable

    @property
    def place(self) -> str:
        """Where it is kept, in words: a path, the name of a ledger in PostgreSQL, or that nothing durable is recorded.

        A URL is not told, since it may hold a password.
        """
        if not self.durable:
            return "in memory: nothing durable was recorded"
        place = getattr(self._store, "place", self.path)
        return f"in a store of {own_store(self._store)}" if place is None else str(place)

    @property
    def own_store(self) -> str | None:
        """Name of the store that keeps it, where that is not of this package."""
        return own_store(self._store)

    @property
    def healthy(self) -> bool:
        """Whether it admits requests: open, and no error of its store so far."""
        return self._journal.healthy

    @property
    def in_place(self) -> bool:
        """Whether its files stand where they were opened; where not, the next charge is refused."""
        return self._journal.in_place

    @property
    def budget(self) -> Budget:
        """The lifetime budget in force."""
        return self._journal.read(_budget)

    @property
    def spent(self) -> Totals:
        """What was reserved so far, rounded up."""
        return self._journal.read(lambda state: spent_totals(state.spent, _budget(state)))

    @property
    def left(self) -> Totals:
        """What may still be reserved, rounded down: a reservation of exactly that much is accepted."""
        return self._journal.read(lambda state: left_totals(state.spent, state.limit, _budget(state)))

    @property
    def scope(self) -> GuaranteeScope | None:
        """What all that was charged promises together, as far as it was stated; None where nothing was."""
        return self._journal.read(lambda state: state.scope)

    @property
    def relation(self) -> Change | None:
        """The change that everything charged here is guaranteed for; None where each of them would do.

        It is that of the first reservation which does not cover adding, removing and replacing at one price.
        """
        scope = self.scope
        change = None if scope is None else relation_that_holds(scope).change
        return None if change == "add-remove-replace" else change

    @property
    def spent_otherwise(self) -> tuple[Neighbouring, Totals] | None:
        """The other of the two relations "add or remove" and "replace", and what was reserved for it, rounded up.

        None where a reservation does not tell it, or where one figure holds for both.
        """
        return self._journal.read(_spent_otherwise)

    @property
    def head(self) -> Head:
        """Number and hash of the newest entry."""
        return self._journal.read(lambda state: state.head)

    @property
    def epoch(self) -> Epoch | None:
        """Which history its database is in; None for a ledger that is in no database with standbys."""
        epoch: Epoch | None = getattr(self._store, "epoch", None)
        return epoch

    @property
    def closed(self) -> bool:
        """Whether the release was closed: nothing more is reserved."""
        return self._journal.read(lambda state: state.closed)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The data sets that are this release, oldest first."""
        return self._journal.read(lambda state: state.fingerprints)

    @property
    def quotas(self) -> Mapping[str, Quota]:
        """Every client that has a quota, by name, with what it was given of it."""
        return self._journal.read(
            lambda state: MappingProxyType({client: quota_of(state, client) for client in sorted(state.quotas)})
        )

    def quota(self, client: str) -> Quota:
        """Return the quota of a client, and how many answers were drawn for it; its `answers` are None without one."""
        return self._journal.read(lambda state: quota_of(state, client))

    @property
    def state(self) -> LedgerState:
        """An independent copy of all that the entries add up to."""
        return self._journal.read(lambda state: state.copy())

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries, oldest first, as they are stored."""
        return self._journal.entries()

    def export(self) -> list[dict[str, Any]]:
        """Return all entries as JSON objects, oldest first; :func:`verify` takes their canonical lines."""
        return [entry.to_object() for entry in self.entries()]

    def refresh(self) -> Head:
        """Read what other servers wrote to a shared ledger since; return the newest entry.

        Figures such as :attr:`spent` are those that this process last saw. What is charged is decided by the newest
        ones in any case.
        """
        self._journal.catch_up()
        return self.head

    @stored_as("quorate.ledger.readings.LedgerReadings.verify")
    def verify(self, *, prices: bool = False) -> Head:
        """Read everything again, replay every rule, compare with the anchor and with what this process knows.

        `prices`: whether no amount may be below what its event costs. Returns the newest entry. Raises
        LedgerIntegrityError if something does not fit; the ledger is unhealthy from then on.
        """
        self._journal.verify(*((check_prices,) if prices else ()))
        return self.head

    def check_receipt(self, receipt: Receipt) -> None:
        """Accept a receipt of this ledger; see :func:`~quorate.ledger.chain.check_held`."""
        if not isinstance(receipt, Receipt):
            raise InvalidParameter(f"receipt must be a Receipt, got {type(receipt).__name__}")
        self._journal.read(lambda state: check_held(state, receipt))

    def receipt(self) -> Receipt:
        """Return a receipt of everything recorded so far: of the newest entry."""
        return self._journal.read(lambda state: receipt_of(state, state.head.sequence))

    def reservation(self, key: str, *, client: str = "local") -> Reservation | None:
        """Return the reservation that a client made under a key, or None."""

        def find(state: LedgerState) -> Reservation | None:
            use = state.keys.get((client, key))
            return None if use is None or use.kind != Reserved.kind else self._handle(state, use.entries[0])

        return self._journal.read(find)

    def reservations(self) -> tuple[Reservation, ...]:
        """Return all reservations, oldest first."""
        return self._journal.read(lambda state: tuple(self._handle(state, sequence) for sequence in state.reservations))

    def _handle(self, state: LedgerState, sequence: int) -> Reservation:
        return Reservation(self._journal, state, sequence)


def _spent_otherwise(state: LedgerState) -> tuple[Neighbouring, Totals] | None:
    whole = None if state.scope is None else relation_that_holds(state.scope)
    if whole is None or whole.change not in OTHER:
        return None
    other = Neighbouring.of(OTHER[whole.change], whole.unit, owner_states=whole.owner_states)
    spent = BudgetUnits()
    for reservation in state.reservations.values():
        reserved = reservation.reserved
        amounts = amounts_for(other.change, reserved.amounts, reserved.claim, reserved.also)
        if amounts is None:
            return None
        spent += amounts
    return other, spent_totals(spent, _budget(state))


def _budget(state: LedgerState) -> Budget:
    if state.budget is None:
        raise PreconditionFailed("the ledger has no entry yet")
    return state.budget
