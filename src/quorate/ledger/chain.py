"""The hash chain: how entries are joined, read back and verified, and the receipts by which anybody holds it. Pure.

A chain is refused if any byte of it was edited, or an entry removed, added or moved; and by its anchor if it was
cut short or is an older copy. Where ledger and anchor were restored together, any later receipt shows it: what a client
keeps of a charge is held against a ledger, or against an export of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from quorate.errors import InvalidParameter, LedgerIntegrityError, QuorateError
from quorate.ledger.entries import Content, Entry, seal
from quorate.ledger.fields import canonical
from quorate.ledger.rules import apply
from quorate.ledger.state import Head, LedgerState

_REFUSED = "nothing is released from it; restore the newest ledger and anchor together, and tell whoever holds receipts"


def utc(moment: datetime) -> str:
    """Write a moment as the ledger does."""
    if moment.tzinfo is None:
        raise InvalidParameter("clock must return times with a time zone, got a naive one")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def now() -> datetime:
    """Return the time, with its zone."""
    return datetime.now(UTC)


def extend(head: Head, contents: Iterable[Content], *, time: str, session: int | None) -> tuple[Entry, ...]:
    """Join ``contents`` to a chain that ends in ``head``; ``session`` None begins one with the first of them."""
    entries: list[Entry] = []
    for content in contents:
        sequence = head.sequence + 1
        session = sequence if session is None else session
        entry = seal(content, sequence=sequence, time=time, session=session, previous=head.hash)
        entries.append(entry)
        head = Head(sequence=entry.sequence, hash=entry.hash)
    return tuple(entries)


def read_line(line: object) -> Entry:
    """Read one stored line, or exported object; anything but the exact canonical text of a sound entry is refused."""
    if not isinstance(line, str | dict):
        raise LedgerIntegrityError(f"the ledger holds something that is no entry; {_REFUSED}")
    try:
        line = line if isinstance(line, str) else canonical(line)
        value = json.loads(line, parse_constant=_no_constant)
        entry = Entry.from_object(value)
        envelope: dict[str, Any] = {"sequence": entry.sequence, "time": entry.time, "session": entry.session}
        sound = seal(entry.content, previous=entry.previous, **envelope).to_json() == line
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError) as error:
        raise LedgerIntegrityError(f"the ledger holds an entry that was altered; {_REFUSED}") from error
    if not sound:
        raise LedgerIntegrityError(f"entry {entry.sequence} of the ledger was altered; {_REFUSED}")
    return entry


def verify(lines: Sequence[object], *, anchor: Head | None = None, known: LedgerState | None = None) -> LedgerState:
    """Replay a stored chain by every rule, from its first entry, and hold it against its anchor.

    `lines`: the canonical JSON of each entry, or the object it holds (as exported), oldest first. `anchor`: the head
    that was anchored last: the chain must contain it; one that goes on beyond it is taken (the process died between the
    commit and the anchor). `known`: what the entries before `lines` add up to, verified by this process; it grows.
    Raises LedgerIntegrityError if the chain was altered, breaks a rule, or is older; `known` is of no more use then.
    """
    state = LedgerState() if known is None else known
    for entry in map(read_line, lines):
        replay(state, entry)
    if anchor is not None:
        check_anchor(state, anchor)
    return state


def begins_at(head: Head, lines: Sequence[object]) -> bool:
    """Whether the first of these stored entries, oldest first, is this one: where it is, the chain goes on from there.

    Raises LedgerIntegrityError if it was altered.
    """
    first = read_line(lines[0]) if lines else None
    return first is not None and Head(sequence=first.sequence, hash=first.hash) == head


def replay(state: LedgerState, entry: Entry) -> None:
    """Apply a stored entry; a broken rule means that somebody else wrote it."""
    try:
        apply(state, entry)
    except LedgerIntegrityError as error:
        raise LedgerIntegrityError(f"{error}; {_REFUSED}") from None
    except QuorateError as error:
        raise LedgerIntegrityError(
            f"entry {entry.sequence} of the ledger breaks a rule ({error}); {_REFUSED}"
        ) from error


def check_anchor(state: LedgerState, anchor: Head) -> None:
    """Refuse a chain that does not contain the anchored head."""
    if not holds(state, anchor):
        raise LedgerIntegrityError(
            f"the ledger ends at entry {state.head.sequence} and does not hold the anchored entry {anchor.sequence}: "
            f"it is an older copy, was cut, or belongs to another anchor; {_REFUSED}"
        )


def holds(state: LedgerState, head: Head) -> bool:
    """Whether the chain has this entry: at this place, with this hash."""
    if head.sequence == 0:
        return head == LedgerState().head
    return 0 < head.sequence <= len(state.hashes) and state.hashes[head.sequence - 1] == head.hash


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_SHAPE = 'a receipt is {"sequence": NUMBER, "head_hash": 64 HEXADECIMAL DIGITS}'


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a client keeps: it shows a ledger that was altered or put back, even together with its anchor.

    `sequence`: number of the entry that recorded the act. `head_hash`: hash of that entry, the head at the time.
    """

    sequence: int
    head_hash: str

    def to_object(self) -> dict[str, Any]:
        """Return the receipt as a JSON object."""
        return {"sequence": self.sequence, "head_hash": self.head_hash}

    @classmethod
    def from_object(cls, value: object) -> Receipt:
        """Read a receipt; InvalidParameter if the object is none."""
        if not isinstance(value, dict) or value.keys() != {"sequence", "head_hash"}:
            raise InvalidParameter(_SHAPE)
        sequence, head_hash = value["sequence"], value["head_hash"]
        sound = isinstance(head_hash, str) and len(head_hash) == 64 and set(head_hash) <= set("0123456789abcdef")
        if not sound or isinstance(sequence, bool) or not isinstance(sequence, int) or sequence < 1:
            raise InvalidParameter(_SHAPE)
        return cls(sequence, head_hash)


def receipt_of(state: LedgerState, sequence: int) -> Receipt:
    """Return the receipt of an entry of a ledger."""
    return Receipt(sequence, state.hashes[sequence - 1])


def check_held(state: LedgerState, receipt: Receipt) -> None:
    """Accept a receipt of a chain.

    Raises LedgerIntegrityError if the chain does not hold the receipt's entry: an older or another ledger was put in
    its place.
    """
    if not holds(state, Head(sequence=receipt.sequence, hash=receipt.head_hash)):
        raise LedgerIntegrityError(
            f"the ledger does not hold entry {receipt.sequence} of the receipt: an older or another ledger was put "
            "in its place; restore the newest one"
        )


def read_receipts(text: str) -> tuple[Receipt, ...]:
    """Read receipts as clients keep them: one object, a list, one object a line, or answers that hold a ``receipt``.

    Raises InvalidParameter if the text holds something else, or nothing.

    Examples
    --------
    >>> kept = '{"answers": [1], "receipt": {"sequence": 7, "head_hash": "%s"}}' % ("0" * 64)
    >>> [receipt.sequence for receipt in read_receipts(kept)]
    [7]
    """
    try:
        values = [json.loads(text)]
    except (ValueError, RecursionError):
        try:
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise InvalidParameter(f"the receipt is not JSON; {_SHAPE}") from None
    receipts = tuple(receipt for value in values for receipt in _receipts_in(value))
    if not receipts:
        raise InvalidParameter(f"there is no receipt; {_SHAPE}")
    return receipts


def _receipts_in(value: object) -> Iterator[Receipt]:
    if isinstance(value, list):
        for item in value:
            yield from _receipts_in(item)
    elif isinstance(value, dict) and "receipt" in value:
        if value["receipt"] is not None:  # an answer that cost nothing has none
            yield Receipt.from_object(value["receipt"])
    else:
        yield Receipt.from_object(value)
