"""Stable answers: queries answered exactly where the votes are far from a tie, by a sparse vector over a ledger.

The ledger holds T stages and m queries. Each is counted there, durably, before its noise is drawn. Who may use a stage,
and until when, stands in :mod:`quorate.release.stages`: no number of threads, processes or copies passes the cut-off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock

import numpy as np

from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.ledger import Receipt, Reservation
from quorate.mechanisms import StableSparseVector
from quorate.noise import NoiseSource
from quorate.release import Stages, check_covered
from quorate.release.charge import STAGE
from quorate.types import IntArray, Secret

QUERY = "stable query"


def stable_purposes(mechanism: StableSparseVector) -> dict[str, int]:
    """Return what one run of the mechanism reserves: T stages and m queries."""
    return {STAGE: mechanism.stages, QUERY: mechanism.n_queries}


class StableAnswers:
    """Charge, then draw, then store, then answer. `noise`: addressed by purpose and by the number of the stage or
    query.
    """

    def __init__(self, mechanism: StableSparseVector, noise: NoiseSource) -> None:
        self._mechanism = mechanism
        self._noise = noise
        self._stages = Stages(mechanism, mechanism.cutoff, ahead=0)

    def __repr__(self) -> str:
        return f"StableAnswers({self._mechanism})"

    def declines_left(self, reservation: Reservation) -> int:
        """Return how many queries may still be declined: stages not opened yet, and the one that is open here."""
        return self._stages.left(reservation)

    def check_left(self, reservation: Reservation, n_queries: int = 1) -> None:
        """Refuse queries that are past the end: BudgetExhausted (``unit="answers"``); nothing is drawn."""
        if self.declines_left(reservation) == 0:
            cutoff = self._mechanism.cutoff
            raise BudgetExhausted(
                f"all {cutoff} declined answers (cutoff={cutoff}) are used up, those of interrupted stages included; "
                "what was answered is still free to ask",
                spent=cutoff,
                requested=1,
                limit=cutoff,
                unit="answers",
            )
        left, total = reservation.remaining(QUERY), reservation.purposes[QUERY]
        if left < n_queries:
            raise BudgetExhausted(
                f"{n_queries} new queries would pass n_queries={total} ({left} left); ask fewer, what was answered is "
                "still free to ask",
                spent=total - left,
                requested=n_queries,
                limit=total,
                unit="answers",
            )

    def answer(self, reservation: Reservation, question: str, votes: Secret[Sequence[str | None]]) -> str | None:
        """Return the value with the most votes (None abstains), exactly; or None for declined. `reservation`: made for
        :attr:`StableSparseVector.event` and :func:`stable_purposes`. `question`: public, one line. Raises
        BudgetExhausted, with nothing drawn; InvalidParameter if the reservation paid for something else.
        """
        check_covered(reservation, QUERY, self._mechanism)
        if any(reservation.purposes.get(name, 0) > most for name, most in stable_purposes(self._mechanism).items()):
            raise InvalidParameter("the reservation holds more stages or queries than the mechanism's event pays for")
        values, counts = tally(votes.reveal())

        def record(codes: list[int]) -> list[dict[str, str | None]]:
            return [{"question": question, "value": _value(values, code)} for code in codes]

        with self._stages.turn:  # nothing is used up between this look and the draw
            self.check_left(reservation)
            try:
                _, [code] = self._stages.release(reservation, QUERY, 1, lambda _: [counts], self._noise, record=record)
            except BudgetExhausted:  # others have used up what was left
                self.check_left(reservation)
                raise
        return _value(values, code)


def _value(values: Sequence[str], code: int) -> str | None:
    """Return the value with this code; None where the query was declined, or nobody voted."""
    return values[code] if 0 <= code < len(values) else None


class StoredAnswers:
    """Every answer that was released, by its question; None for declined. Each block is read once. A query whose
    process died before it was stored is not among them: it was counted, and nobody saw its answer.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._reservation: Receipt | None = None
        self._seen = 0  # the newest entry that was read
        self._found: dict[str, str | None] = {}

    def read(self, reservation: Reservation) -> Mapping[str, str | None]:
        """Return what a reservation's blocks hold: of two servers' answers to one question that was stored first."""
        with self._lock:
            if self._reservation != reservation.receipt:
                self._reservation, self._seen, self._found = reservation.receipt, 0, {}
            for block in reservation.stored(after=self._seen):
                for entry in block.answers if block.purpose == QUERY else ():
                    self._found.setdefault(entry["question"], entry["value"])
                self._seen = block.receipt.sequence
            return self._found


def tally(votes: Sequence[str | None]) -> tuple[list[str], IntArray]:
    """Return the distinct values, in their own order, which tells nothing of who voted, and the votes of each,
    ``(max(2, n_values),)``; 0 for a value that nobody voted for, named or not.
    """
    tallies = Counter(value for value in votes if value is not None)
    values = sorted(tallies)
    counts = np.zeros(max(2, len(values)), dtype=np.int64)
    counts[: len(values)] = [tallies[value] for value in values]
    return values, counts
