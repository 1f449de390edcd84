"""Stable answers: queries answered exactly where the votes are far from a tie, by a sparse vector over a ledger.

A *stage* is one noisy threshold; it answers any number of stable queries and ends at the first that is declined. The
ledger holds T stages and m queries. Each is counted there, durably, before its noise is drawn, so no process and
no number of processes passes the cut-off. The threshold itself is kept in memory and nowhere else: when
the process ends, or anything interrupts an answer, its stage is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import numpy as np

from quorate.errors import BudgetExhausted, InvalidParameter
from quorate.labelling.paid import STAGE, check_paid
from quorate.ledger import Reservation
from quorate.mechanisms import StableSparseVector
from quorate.mechanisms.stable_sparse_vector import SparseVectorState
from quorate.noise import NoiseSource
from quorate.types import IntArray, Secret

QUERY = "stable query"


def stable_purposes(mechanism: StableSparseVector) -> dict[str, int]:
    """Return what one run of the mechanism reserves: T stages and m queries.

    Examples
    --------
    >>> stable_purposes(StableSparseVector(1.0, 1e-5, cutoff=2, n_queries=100))
    {'sparse-vector stage': 2, 'stable query': 100}
    """
    return {STAGE: mechanism.cutoff, QUERY: mechanism.n_queries}


class StableAnswers:
    """Charge, then draw, then store, then answer.

    Parameters
    ----------
    mechanism : StableSparseVector
        What answers.
    noise : NoiseSource
        Addressed by purpose and by the number of the stage or query.

    Examples
    --------
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.noise import SeededNoise
    >>> mechanism = StableSparseVector(1.0, 1e-5, cutoff=2, n_queries=100)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> purposes = stable_purposes(mechanism)
    >>> reservation = ledger.reserve(mechanism.event, delta=1e-5, purposes=purposes, key="questions")
    >>> answers = StableAnswers(mechanism, SeededNoise(0))
    >>> answers.answer(reservation, "colour", Secret(["red"] * 200 + ["blue"] * 20))
    'red'
    >>> answers.answer(reservation, "size", Secret(["S"] * 110 + ["M"] * 110)) is None
    True
    >>> answers.declines_left(reservation), reservation.remaining(QUERY), stored_answers(reservation)
    (1, 98, {'colour': 'red', 'size': None})
    """

    def __init__(self, mechanism: StableSparseVector, noise: NoiseSource) -> None:
        self._mechanism = mechanism
        self._noise = noise
        self._stage: SparseVectorState | None = None
        self._turn = Lock()

    def __repr__(self) -> str:
        return f"StableAnswers({self._mechanism})"

    def declines_left(self, reservation: Reservation) -> int:
        """Return how many queries may still be declined: stages not opened yet, and the one that is open here."""
        return reservation.remaining(STAGE) + (self._stage is not None)

    def check_left(self, reservation: Reservation, n_queries: int = 1) -> None:
        """Refuse queries that can no longer be answered; nothing is drawn.

        Raises
        ------
        BudgetExhausted
            If the cut-off is reached, or fewer than `n_queries` are left (``unit="answers"``).
        """
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
        """Answer one query from its votes.

        Parameters
        ----------
        reservation : Reservation
            Made for :attr:`StableSparseVector.event` and :func:`stable_purposes`.
        question : str
            What the answer is stored under: public, one line.
        votes : Secret of sequence of (str or None), (n_shards,)
            The value of each shard; None abstains.

        Returns
        -------
        str or None
            The value with the most votes, exactly; or None for declined.

        Raises
        ------
        BudgetExhausted
            If the cut-off or the number of queries is reached; nothing is drawn then.
        InvalidParameter
            If the reservation did not pay for this mechanism.
        """
        with self._turn:  # a threshold belongs to one query at a time
            return self._answer(reservation, question, votes)

    def _answer(self, reservation: Reservation, question: str, votes: Secret[Sequence[str | None]]) -> str | None:
        self._check_paid(reservation)
        self.check_left(reservation)
        values, counts = tally(votes.reveal())
        stage, self._stage = self._stage, None  # whatever interrupts from here on ends the stage
        opened = reservation.draw(STAGE) if stage is None else None
        drawn = reservation.draw(QUERY)  # both are durable before any noise exists
        if opened is not None:
            reservation.store(opened, ["opened"])
            stage = self._mechanism.init(self._noise.at(STAGE, opened.first), stages_spent=opened.first)
        assert stage is not None  # noqa: S101 - one of the two
        stage = replace(stage, asked=drawn.first)  # other processes may have asked in between
        stage, code = self._mechanism.step(stage, counts, self._noise.at(QUERY, drawn.first))
        value = values[code] if code is not None and code < len(values) else None
        reservation.store(drawn, [{"question": question, "value": value}])  # durable before anybody sees it
        # The mechanism has drawn the next threshold already; it is thrown away, for its stage is not charged yet.
        self._stage = None if code is None else stage
        return value

    def _check_paid(self, reservation: Reservation) -> None:
        check_paid(reservation, QUERY, self._mechanism)
        if any(reservation.purposes.get(name, 0) > most for name, most in stable_purposes(self._mechanism).items()):
            raise InvalidParameter("the reservation holds more stages or queries than the mechanism's event pays for")


def stored_answers(reservation: Reservation) -> dict[str, str | None]:
    """Return every answer that was released, by its question; None for declined.

    A query whose process died before it was stored is not among them: it was counted, and nobody saw its answer.
    """
    found: dict[str, str | None] = {}
    for block in reservation.blocks(QUERY):
        for told in block.answers or ():
            found.setdefault(told["question"], told["value"])  # the first answer to a question stays
    return found


def tally(votes: Sequence[str | None]) -> tuple[list[str], IntArray]:
    """Count equal values.

    Returns
    -------
    values : list of str
        The distinct ones, in their own order, so that their places tell nothing of who voted.
    counts : IntArray, (max(2, n_values),)
        Votes of each. A value that nobody voted for has 0, named or not.

    Examples
    --------
    >>> tally(["b", None, "a", "b"])
    (['a', 'b'], array([1, 2]))
    >>> tally(["b", None])
    (['b'], array([1, 0]))
    """
    found = Counter(value for value in votes if value is not None)
    values = sorted(found)
    counts = np.zeros(max(2, len(values)), dtype=np.int64)
    counts[: len(values)] = [found[value] for value in values]
    return values, counts
