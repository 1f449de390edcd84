"""A reservation in use: draw a block, then store its answers; alone, or for several clients at once.

Requests of several clients are collected into one block: one wait for the disk counts them all, one stores them all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate import accounting
from quorate.errors import InvalidParameter, PreconditionFailed, note_charge
from quorate.ledger.chain import Receipt, receipt_of
from quorate.ledger.entries import Drawn, Part
from quorate.ledger.fields import Json
from quorate.ledger.journal import Journal
from quorate.ledger.rules import (
    KEY_ANSWERED,
    KEY_USED,
    admit_answers,
    admit_draw,
    check_answers_left,
    check_quota,
    check_same_request,
)
from quorate.ledger.scope import GuaranteeScope, OtherCharge
from quorate.ledger.state import BlockState, BlockStatus, LedgerState


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A block of answers that count as given.

    `sequence`: number of the entry that marks it as drawn. It holds answers `first` to `first` + `count` - 1 of the
    reservation's answers for `purpose`, from 0. `status`: stored, with `answers`, a JSON value; drawn by this process
    and not stored yet; or interrupted: the process that drew it ended before it stored them, so they are lost, and
    count as declined. `receipt`: of the newest entry about it. `stage`: of a sparse vector, in which it began; None
    where none was open, for other mechanisms, and in ledgers of version 0.1. `parts`: requests of several clients that
    share it, in the order of its answers.
    """

    sequence: int
    purpose: str
    first: int
    count: int
    status: BlockStatus
    answers: Any
    receipt: Receipt
    stage: int | None = None
    parts: tuple[Part, ...] = ()

    @classmethod
    def of(cls, state: LedgerState, block: BlockState, *, session: int | None) -> Block:
        """Read a block off a ledger's state, as seen by one session."""
        newest = block.sequence if block.stored is None else block.stored
        return cls(
            sequence=block.sequence,
            purpose=block.drawn.purpose,
            first=block.drawn.first,
            count=block.drawn.count,
            status=block.status(session),
            answers=None if block.answers is None else block.answers.value,
            receipt=receipt_of(state, newest),
            stage=block.drawn.stage,
            parts=block.drawn.parts or (),
        )


class SharedDraw:
    """Collects the parts of one block; each is taken or refused by itself, so that one client never fails another.

    It decides by what the ledger holds at the moment, and counts nothing. The draw decides again, under the ledger's
    lock, and refuses the block as a whole where another process was given answers in between: collect anew then.
    Made by :meth:`Reservation.share`; used by one thread.
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

        Raises BudgetExhausted or QuotaExhausted if the reservation or the client has fewer answers left, the earlier
        parts counted; PreconditionFailed if the key was used for another request, or an earlier part has it.
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
        """Refuse more answers for a client than are left of `at_most`, or its quota in the ledger: QuotaExhausted."""
        self._read(lambda state: check_quota(state, client, count, at_most))

    def answered(self, client: str, key: str, body: str) -> bool:
        """Whether the ledger holds the answer to a request under a key; PreconditionFailed if that was another one."""
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


class Reservation:
    """Answers that were charged together, at the exact price of their event; made by :meth:`Ledger.reserve`.

    Formal guarantees
    -----------------
    - A block is on stable storage, marked as drawn, before :meth:`draw` returns: draw noise only after it.
    - Answers are on stable storage before :meth:`store` returns: let them leave only after it.
    - No more blocks are drawn for a purpose than were reserved for it, by any number of threads.
    - A block is stored once, by the process that drew it.
    - No client with a quota is given more answers than it has, in blocks of its own or shared ones.
    - Blocks that name the same stage of a sparse vector follow one another: each is stored before the next is drawn,
      and of two that would follow the same block, one is refused.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> from quorate.ledger import Budget, Ledger
    >>> with Ledger(budget=Budget(1.0, 1e-5)) as ledger:
    ...     reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": 3}, key="labels")
    ...     block = reservation.draw("label", 2)
    ...     receipt = reservation.store(block, [1, 0])
    ...     [(b.first, b.status, b.answers) for b in reservation.blocks("label")], reservation.remaining("label")
    ([(0, 'stored', [1, 0])], 1)
    """

    def __init__(self, journal: Journal, state: LedgerState, sequence: int) -> None:
        self._journal = journal
        self._reserved = state.reservations[sequence].reserved
        self.sequence = sequence
        self.receipt = receipt_of(state, sequence)

    def __repr__(self) -> str:
        return f"Reservation(sequence={self.sequence}, purposes={dict(self.purposes)})"

    @property
    def event(self) -> accounting.Event:
        """What was charged for."""
        return accounting.from_json(self._reserved.event.text)

    @property
    def purposes(self) -> Mapping[str, int]:
        """How many answers were reserved for each purpose."""
        return self._reserved.purposes

    @property
    def own_kinds(self) -> tuple[str, ...]:
        """The kinds in its event that are a user's own, sorted; known without the package that registers them."""
        return accounting.own_kinds(self._reserved.event.text)

    @property
    def charged_to(self) -> Mapping[str, int] | None:
        """Which part of a composed event pays for each purpose; None where the whole event pays for all."""
        return self._reserved.paid_by

    @property
    def scope(self) -> GuaranteeScope | None:
        """Whose data it protects, against which change; None where that was not said."""
        return self._reserved.claim

    @property
    def also(self) -> OtherCharge | None:
        """What it comes to for the other relation; None where that is not known, or is the same."""
        return self._reserved.also

    @property
    def key(self) -> str:
        """The idempotency key it was made under."""
        return self._reserved.key

    @property
    def client(self) -> str:
        """Who made it."""
        return self._reserved.client

    def draw(
        self,
        purpose: str,
        count: int = 1,
        *,
        key: str | None = None,
        client: str | None = None,
        body: str | None = None,
        stage: int | None = None,
        after: Block | None = None,
        parts: Sequence[Part] | None = None,
    ) -> Block:
        """Count ``count`` answers as given, durably; only then may their noise be drawn.

        `purpose`: one of the reservation's. `key`: idempotency key of the client: a retry with the same key and body
        returns the block whose answers were stored; where none was, the retry is counted again, and gets a block of its
        own. `client`: who asks; the reservation's own if left out. `body`: digest of the request: another one under the
        same key is refused. `stage`: number of the sparse-vector stage that is open, where the block goes on in one.
        `after`: the newest block that began in this stage; left out for the first of them. `parts`: the requests of
        several clients that share the block, each with its own client, key and body (:meth:`share` collects them);
        `count` is what they ask for together.

        Raises BudgetExhausted or QuotaExhausted if fewer answers are left for this purpose (``unit="answers"``), or of
        a client's quota; PreconditionFailed if the key was used for another request; MechanismClosed if another block
        than `after` is the newest of the stage, or its answers were not stored: whoever holds the stage's threshold is
        not the only one; InvalidParameter if an argument is of the wrong kind, or the purpose was not reserved. Nothing
        was counted then.
        """
        content = Drawn(
            reservation=self.sequence,
            purpose=purpose,
            first=0,
            count=count,
            client=self.client if client is None else client,
            key=key,
            body=body,
            stage=stage,
            parts=None if parts is None else tuple(parts),
        )
        newest = None if after is None else after.sequence
        drawn = self._journal.submit(lambda state: admit_draw(state, content, after=newest), self._block)
        note_charge()
        return drawn

    def share(self, purpose: str) -> SharedDraw:
        """Begin to collect requests of several clients that are drawn together, as one block."""
        return SharedDraw(self._journal.read, self.sequence, purpose)

    def goes_on(self, stage: int, after: Block | None) -> bool:
        """Whether :meth:`draw` would go on in a stage of a sparse vector, as far as is known here."""

        def read(state: LedgerState) -> bool:
            newest = state.reservations[self.sequence].stages.get(stage)
            if newest is None or after is None:
                return newest is None and after is None
            return newest == after.sequence and state.blocks[newest].stored is not None

        return self._journal.read(read)

    def store(self, block: Block, answers: object) -> Receipt:
        """Record the answers of a block, durably; only then may they leave.

        `answers`: a JSON value; a list (or array) has one item for each answer; None or -1 stand for declined as the
        caller likes. Storing the very same ones again changes nothing. Raises PreconditionFailed if the block has other
        answers, or was drawn by a process that ended; InvalidParameter if they are not JSON, or not as many as drawn.
        """
        if not isinstance(block, Block):
            raise InvalidParameter(f"block must be a Block, got {type(block).__name__}")
        stored = Json.of(answers, "answers")
        return self._journal.submit(lambda state: admit_answers(state, block.sequence, stored), receipt_of)

    def blocks(self, purpose: str, *, after: int = 0) -> tuple[Block, ...]:
        """Return all blocks drawn for a purpose, in order of `first`; together they are the answers given so far.
        Blocks whose entry is not beyond entry `after` are left out.

        A run that resumes reads them, takes every block without answers as declined, and draws what remains.
        """

        def read(state: LedgerState) -> tuple[Block, ...]:
            state_ = state.reservations[self.sequence]
            state_.remaining(purpose)  # refuses a purpose that was not reserved
            return tuple(
                self._block(state, sequence)
                for sequence in state_.blocks[bisect_right(state_.blocks, after) :]
                if state.blocks[sequence].drawn.purpose == purpose
            )

        return self._journal.read(read)

    def stored_elsewhere(self, *, after: int) -> tuple[Block, ...]:
        """Return the same as :meth:`stored` where several servers share the ledger; where one process holds it, there
        is nothing that it does not know, and none are returned.
        """
        return self.stored(after=after) if self._journal.shared else ()

    def stored(self, *, after: int) -> tuple[Block, ...]:
        """Return the blocks whose answers were stored by an entry beyond `after`, by any server, in that order, in
        which every server tells them. Where several share the ledger, what they wrote since is read first.
        """
        if self._journal.shared:
            self._journal.catch_up()

        def read(state: LedgerState) -> tuple[Block, ...]:
            stored = state.reservations[self.sequence].stored
            newer = stored[bisect_right(stored, (after, 2**63)) :]
            return tuple(self._block(state, sequence) for _, sequence in newer)

        return self._journal.read(read)

    def remaining(self, purpose: str) -> int:
        """Return how many answers of a purpose are left to draw."""
        return self._journal.read(lambda state: state.reservations[self.sequence].remaining(purpose))

    def _block(self, state: LedgerState, sequence: int) -> Block:
        return Block.of(state, state.blocks[sequence], session=self._journal.session)
