"""What the ledger says of the past, for the page: ε over time, answers over time, the newest entries, the runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.ledger import Ledger
from quorate.ledger.budget import BudgetUnits, spent_totals
from quorate.ledger.entries import BudgetRaised, Drawn, Entry, Opened, Reserved, Stored
from quorate.service.answers import Standing

MOMENTS: Final = 512  # of a line; where there are more, every other one is left out
TAIL: Final = 8  # entries


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of the ledger, as the page shows it."""

    sequence: int
    time: str
    told: str
    hash: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """How far one reservation has been drawn: a purpose, how many answers, and of how many."""

    purpose: str
    drawn: int
    reserved: int


@dataclass(slots=True)
class History:
    """The ledger's past. Written by the threads that answer, read by the page.

    `verified_at`: when the ledger was verified. `spent`: ε charged, from each of these times on. `left`: answers left,
    likewise. `tail`: the newest entries. `drawings`: what was reserved when the service was started, and how far it was
    drawn.
    """

    verified_at: str
    spent: list[tuple[str, float]] = field(default_factory=list)
    left: list[tuple[str, int]] = field(default_factory=list)
    tail: deque[Line] = field(default_factory=lambda: deque(maxlen=TAIL))
    drawings: tuple[Drawing, ...] = ()

    @classmethod
    def of(cls, ledger: Ledger, *, verified_at: str, purposes: Sequence[str] = ()) -> History:
        """Read it off a ledger.

        `ledger`: verified. `verified_at`: when. `purposes`: those that pay for online answers, of the newest
        reservation.
        """
        history, budget, spent = cls(verified_at), ledger.budget, BudgetUnits()
        reservations = ledger.reservations()
        newest = reservations[-1].sequence if reservations else 0
        left = sum(reservations[-1].purposes.get(each, 0) for each in purposes) if reservations else 0
        for entry in ledger.entries():
            match entry.content:
                case Reserved() as reserved:
                    spent += reserved.amounts
                    history.spent.append((entry.time, spent_totals(spent, budget).epsilon or 0.0))
                    if entry.sequence == newest and purposes:
                        history._note_left(entry.time, left)
                case Drawn() as drawn if drawn.reservation == newest and drawn.purpose in purposes:
                    left -= drawn.count
                    history._note_left(entry.time, left)
            history.tail.append(Line(entry.sequence, entry.time, _told(entry), entry.hash))
        history.drawings = tuple(
            Drawing(purpose, count - reservation.remaining(purpose), count)
            for reservation in reservations
            for purpose, count in reservation.purposes.items()
        )
        return history

    def note(self, standing: Standing, time: str) -> None:
        """Add what a block has changed."""
        if standing.answers_left is not None:
            self._note_left(time, standing.answers_left)
        self.tail.append(Line(standing.entries, time, "answers drawn and stored", standing.head))

    def _note_left(self, time: str, left: int) -> None:
        self.left.append((time, left))
        if len(self.left) > MOMENTS:
            del self.left[1:-1:2]


def _told(entry: Entry) -> str:
    """Say what an entry is, without what it holds."""
    match entry.content:
        case Opened():
            return "opened"
        case Reserved() as reserved:
            return "reserved " + ", ".join(f"{count:,} × {purpose}" for purpose, count in reserved.purposes.items())
        case Drawn() as drawn:
            return f"drew {drawn.count:,} × {drawn.purpose}"
        case Stored():
            return "stored their answers"
        case BudgetRaised():
            return "budget raised"
        case other:
            return other.kind
