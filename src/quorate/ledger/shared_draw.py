"""Requests of several clients, collected into one block: one wait for the disk counts them all, one stores them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger.entries import Drawn
from quorate.ledger.parts import Part
from quorate.ledger.quotas import check_quota
from quorate.ledger.rules import KEY_ANSWERED, KEY_USED, check_answers_left, check_same_request
from quorate.ledger.state import LedgerState


class SharedDraw:
    """Collects the parts of one block; each is taken or refused by itself, so that one client never fails another.

    It decides by what the ledger holds at the moment, and counts nothing. The draw decides again, under the ledger's
    lock, and refuses the block as a whole where another process was given answers in between: collect anew then.
    Made by :meth:`Reservation.share`; used by one thread.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import Budget, Ledger
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"online answer": 9}, key="kept back")
    >>> receipt = ledger.set_quota("bob", 1, "a trial")
    >>> shared = reservation.share("online answer")
    >>> shared.add(Part(client="alice", count=2, key="first", body="sha"))
    >>> shared.add(Part(client="bob", count=2, key="first", body="sha"))
    Traceback (most recent call last):
    quorate.errors.QuotaExhausted: 2 new rows for the client 'bob', 1 of its quota of 1 answers left; ask for fewer, ...
    >>> block = reservation.draw("online answer", shared.count, parts=shared.parts)
    >>> block.count, ledger.quota("alice").drawn, ledger.quota("bob").left
    (2, 2, 1)
    """

    def __init__(self, read: Callable[[Callable[[LedgerState], Any]], Any], reservation: int, purpose: str) -> None:
        self._read = read
        self._reservation = reservation
        self.purpose = purpose
        self._parts: list[Part] = []
        self._by_client: Counter[str] = Counter()
        self._keys: set[tuple[str, str]] = set()
        self.count = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts so far, in the order of the block's answers."""
        return tuple(self._parts)

    def add(self, part: Part) -> None:
        """Take one request more.

        Raises
        ------
        BudgetExhausted
            The reservation has fewer answers left, the earlier parts counted.
        QuotaExhausted
            The client has fewer left, likewise.
        PreconditionFailed
            The key was used for another request, or an earlier part has it.
        """
        if not isinstance(part, Part):
            raise InvalidParameter(f"part must be a Part, got {type(part).__name__}")
        if part.key is not None and (part.client, part.key) in self._keys:
            raise PreconditionFailed(KEY_USED)
        self._read(lambda state: self._check(state, part))
        self._parts.append(part)
        self.count += part.count
        self._by_client[part.client] += part.count
        if part.key is not None:
            self._keys.add((part.client, part.key))

    def check_quota(self, client: str, count: int, at_most: int) -> None:
        """Refuse more answers for a client than are left of `at_most`, or of its quota in the ledger.

        Raises
        ------
        QuotaExhausted
            Fewer are left.
        """
        self._read(lambda state: check_quota(state, client, count, at_most))

    def answered(self, client: str, key: str, body: str) -> bool:
        """Whether the ledger holds the answer to a request under a key.

        Raises
        ------
        PreconditionFailed
            The key was used for another request.
        """
        body_hash = Part(client=client, count=1, key=key, body=body).body_hash(self._reservation)

        def read(state: LedgerState) -> bool:
            use = state.keys.get((client, key))
            if use is None:
                return False
            check_same_request(use, Drawn.kind, body_hash)
            return state.stored_under(use) is not None

        return bool(self._read(read))

    def _check(self, state: LedgerState, part: Part) -> None:
        use = None if part.key is None else state.keys.get((part.client, part.key))
        if use is not None:
            check_same_request(use, Drawn.kind, part.body_hash(self._reservation))
            if state.stored_under(use) is not None:
                raise PreconditionFailed(KEY_ANSWERED)
        check_answers_left(state.reservations[self._reservation], self.purpose, self.count + part.count)
        check_quota(state, part.client, self._by_client[part.client] + part.count)
