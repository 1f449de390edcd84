"""A reservation in use: draw a block, then store its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quorate import accounting
from quorate.ledger.claim import Claim
from quorate.ledger.state import BlockState, BlockStatus, LedgerState, ReservationState

if TYPE_CHECKING:
    from quorate.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a client keeps: it shows a ledger that was altered or put back, even together with its anchor.

    Parameters
    ----------
    sequence : int
        Number of the entry that recorded the act.
    head_hash : str
        Hash of that entry, the head of the chain at the time.

    Examples
    --------
    >>> Receipt(1, "ab" * 32).sequence
    1
    """

    sequence: int
    head_hash: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """A block of answers that count as given.

    Parameters
    ----------
    sequence : int
        Number of the entry that marks it as drawn.
    purpose : str
        What the answers are for.
    first, count : int
        It holds answers ``first`` to ``first + count - 1`` of the reservation's answers for this purpose, from 0.
    status : {"drawn", "stored", "interrupted"}
        Stored, with `answers`; drawn by this process and not stored yet; or drawn by a process that ended before it
        stored them: those answers are lost, and count as declined.
    answers : JSON value
        What was stored; None before.
    receipt : Receipt
        Of the newest entry about the block.
    stage : int or None
        The stage of a sparse vector in which it began; None where none was open, for other mechanisms, and in ledgers
        of version 0.1.
    """

    sequence: int
    purpose: str
    first: int
    count: int
    status: BlockStatus
    answers: Any
    receipt: Receipt
    stage: int | None = None

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
            receipt=Receipt(newest, state.hashes[newest - 1]),
            stage=block.drawn.stage,
        )


class Reservation:
    """Answers that were charged together, at the exact price of their event; made by :meth:`Ledger.reserve`.

    Formal guarantees
    -----------------
    - A block is on stable storage, marked as drawn, before :meth:`draw` returns: draw noise only after it.
    - Answers are on stable storage before :meth:`store` returns: let them leave only after it.
    - No more blocks are drawn for a purpose than were reserved for it, by any number of threads.
    - A block is stored once, by the process that drew it.
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

    def __init__(self, ledger: Ledger, state: ReservationState, receipt: Receipt) -> None:
        self._ledger = ledger
        self._reserved = state.reserved
        self.sequence = state.sequence
        self.receipt = receipt

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
    def paid_by(self) -> Mapping[str, int] | None:
        """Which part of a composed event pays for each purpose; None where the whole event pays for all."""
        return self._reserved.paid_by

    @property
    def claim(self) -> Claim | None:
        """Whose data it protects, against which change; None where that was not said."""
        return self._reserved.claim

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
    ) -> Block:
        """Count ``count`` answers as given, durably; only then may their noise be drawn.

        Parameters
        ----------
        purpose : str
            One of the reservation's.
        count : int, default 1
            How many answers, at least 1.
        key : str, optional
            Idempotency key of the client. A retry with the same key and body returns the block whose answers were
            stored; where none was, the retry is counted again, and gets a block of its own.
        client : str, optional
            Who asks; the reservation's own client if left out.
        body : str, optional
            Digest of the request: another body under the same key is refused.
        stage : int, optional
            Number of the sparse-vector stage that is open, where the block goes on in one.
        after : Block, optional
            The newest block that began in this stage; left out for the first of them.

        Raises
        ------
        BudgetExhausted
            Fewer answers are left for this purpose (``unit="answers"``); nothing was counted.
        PreconditionFailed
            The key was used for another request.
        MechanismClosed
            Another block than `after` is the newest of the stage, or its answers were not stored: whoever holds the
            stage's threshold is not the only one. Nothing was counted.
        InvalidParameter
            An argument is of the wrong kind, or the purpose was not reserved.
        """
        return self._ledger._draw(
            self.sequence,
            purpose,
            count,
            key=key,
            client=self.client if client is None else client,
            body=body,
            stage=stage,
            after=after,
        )

    def goes_on(self, stage: int, after: Block | None) -> bool:
        """Whether :meth:`draw` would go on in a stage of a sparse vector, as far as is known here."""
        return self._ledger._goes_on(self.sequence, stage, after)

    def store(self, block: Block, answers: object) -> Receipt:
        """Record the answers of a block, durably; only then may they leave.

        Parameters
        ----------
        block : Block
            As :meth:`draw` returned it.
        answers : list or JSON value
            A list (or array) has one item for each answer; None or -1 stand for declined as the caller likes.
            Storing the very same answers again changes nothing.

        Raises
        ------
        PreconditionFailed
            The block has other answers, or was drawn by a process that ended.
        InvalidParameter
            The answers are not JSON, or not as many as were drawn.
        """
        return self._ledger._store_answers(block, answers)

    def blocks(self, purpose: str) -> tuple[Block, ...]:
        """Return all blocks drawn for a purpose, in order of `first`; together they are the answers given so far.

        A run that resumes reads them, takes every block without answers as declined, and draws what remains.
        """
        return self._ledger._blocks(self.sequence, purpose)

    def remaining(self, purpose: str) -> int:
        """Return how many answers of a purpose are left to draw."""
        return self._ledger._remaining(self.sequence, purpose)
