"""What a client is given: a block of answers that count as given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.ledger.parts import Part
from quorate.ledger.receipts import Receipt, receipt_of
from quorate.ledger.state import BlockState, BlockStatus, LedgerState


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
    parts : tuple of Part
        The requests of several clients that share the block, in the order of its answers; empty where one client asked.
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
