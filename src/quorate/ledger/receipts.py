"""Receipts: what a client keeps of a charge, and how anybody holds a ledger, or an export of one, against it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from quorate.errors import InvalidParameter, LedgerIntegrityError
from quorate.ledger.chain import holds
from quorate.ledger.state import Head, LedgerState

_SHAPE = 'a receipt is {"sequence": NUMBER, "head_hash": 64 HEXADECIMAL DIGITS}'


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
    >>> receipt = Receipt(1, "ab" * 32)
    >>> Receipt.from_object(receipt.to_object()) == receipt
    True
    """

    sequence: int
    head_hash: str

    def to_object(self) -> dict[str, Any]:
        """Return the receipt as a JSON object."""
        return {"sequence": self.sequence, "head_hash": self.head_hash}

    @classmethod
    def from_object(cls, value: object) -> Receipt:
        """Read a receipt.

        Raises
        ------
        InvalidParameter
            The object is none.
        """
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

    Raises LedgerIntegrityError the chain does not hold the receipt's entry: an older or another ledger was put in its
    place.
    """
    if not holds(state, Head(sequence=receipt.sequence, hash=receipt.head_hash)):
        raise LedgerIntegrityError(
            f"the ledger does not hold entry {receipt.sequence} of the receipt: an older or another ledger was put "
            "in its place; restore the newest one"
        )


def read_receipts(text: str) -> tuple[Receipt, ...]:
    """Read receipts as clients keep them: one object, a list, one object a line, or answers that hold a ``receipt``.

    Raises InvalidParameter the text holds something else, or nothing.

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
    found = tuple(receipt for value in values for receipt in _receipts_in(value))
    if not found:
        raise InvalidParameter(f"there is no receipt; {_SHAPE}")
    return found


def _receipts_in(value: object) -> Iterator[Receipt]:
    if isinstance(value, list):
        for item in value:
            yield from _receipts_in(item)
    elif isinstance(value, dict) and "receipt" in value:
        if value["receipt"] is not None:  # an answer that cost nothing has none
            yield Receipt.from_object(value["receipt"])
    else:
        yield Receipt.from_object(value)
