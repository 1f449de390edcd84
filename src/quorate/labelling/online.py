"""Online answers: queries that arrive later, answered by the ensemble from answers kept back for them.

They have the noise and the price of the labels and one cap with them. When the cap is reached the ensemble is
silent for ever; the student is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from quorate.data import take
from quorate.data.rows import Rows, n_rows
from quorate.errors import (
    NOTHING_CHARGED,
    BudgetExhausted,
    InvalidParameter,
    LedgerBusy,
    LedgerIntegrityError,
    PreconditionFailed,
    QuorateError,
    QuotaExhausted,
    TeachersSilent,
)
from quorate.labelling.block_answers import Answering, answering
from quorate.labelling.questions import ClientAnswer, ClientRequest, Memo, PlannedBlock, Planning, distinct
from quorate.labelling.release_log import ReleaseBuilder
from quorate.ledger import Block, Part, Receipt, Reservation
from quorate.mechanisms import Mechanism
from quorate.noise import NoiseSource
from quorate.release import NEVER_ASKED, DrawnBlock, check_covered
from quorate.release.charge import ONLINE_ANSWER, STAGE
from quorate.types import IntArray, Secret

_ATTEMPTS = 8  # to draw a block while other servers draw from the same reservation
_CHARGED_IN_PART = "what was charged is stored, and free to ask"
_LOST = "no answer was stored for what was drawn; ask again, at a charge of its own"
_STAYS_CHARGED = "what was drawn stays charged"
_NOT_DRAWN = "answering failed before this request was drawn; ask again"


def _is_lost_race(failure: Exception) -> bool:
    """Whether a draw was refused by what the ledger holds by now; one that another process holds is not drawn from."""
    refusals = (BudgetExhausted, QuotaExhausted, PreconditionFailed)
    return isinstance(failure, refusals) and not isinstance(failure, LedgerBusy | TeachersSilent)


def _lost_by(failure: Exception) -> QuorateError:
    """Return what a request is told whose block was drawn, and of which no answer was stored."""
    if isinstance(failure, InvalidParameter):  # of a user's own mechanism
        return failure
    lost = QuorateError(_LOST, charged=_STAYS_CHARGED)
    lost.__cause__ = failure
    return lost


def _left_by(failure: Exception, *, charged: bool) -> QuorateError:
    """Return what a request is told that waited for a block of others; `charged`, where one of its own was stored."""
    words = _CHARGED_IN_PART if charged else NOTHING_CHARGED
    if isinstance(failure, TeachersSilent):
        return TeachersSilent(str(failure), charged=words)
    left = QuorateError(_NOT_DRAWN, charged=words)
    left.__cause__ = failure
    return left


def _rows_at(rows: Rows, places: Sequence[int] | IntArray) -> Rows:
    """Return rows by their ascending places; where that is all of them, as they are, which is quicker."""
    return rows if len(places) == n_rows(rows) else take(rows, np.asarray(places, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class OnlineAnswers:
    """Charge, then draw, then answer.

    `count_votes`: ``count_votes(rows) -> Secret``, the votes ``(n_queries, n_classes)`` on rows that nobody asked about
    before. `mechanism`: the one that released the labels. `reservation`: where the answers were kept back, under the
    purpose "online answer". `noise`: addressed by purpose and by the number of the answer. `memo`: every answer
    released so far; the labels of public rows belong in it, and threads that share it take turns. `purposes`: what
    pays, in this order; "label" stands for the labels that an active strategy has left when it stopped, which are of
    the same schedule and have the same noise. `votes_first`: whether votes are counted before answers are drawn: where
    teachers can be out of reach, which is a public fact, and a draw would be noise on nothing. Raises InvalidParameter
    if the reservation holds no such answers, or did not pay for this mechanism.
    """

    count_votes: Callable[[Rows], Secret[Any]]
    mechanism: Mechanism
    reservation: Reservation
    noise: NoiseSource
    memo: Memo
    n_classes: int
    purposes: tuple[str, ...] = (ONLINE_ANSWER,)
    votes_first: bool = False
    _answering: Answering = field(init=False, repr=False)
    _seen: list[int] = field(init=False, repr=False, default_factory=lambda: [0])  # the newest entry in the memo

    def __post_init__(self) -> None:
        for purpose in self.purposes:
            check_covered(self.reservation, purpose, self.mechanism)
        object.__setattr__(self, "_answering", answering(self.mechanism, self.reservation))

    def ask(self, rows: Rows, digests: Sequence[bytes]) -> IntArray:
        """Answer a batch, all or nothing: ``(n_queries,)`` class codes, -1 for declined, and -2 for never asked, where
        the mechanism closed inside the batch.

        `rows`: ``(n_queries, ...)``, as the teachers see them. `digests`: one canonical digest a query. A query that
        was answered before gets the same answer and costs nothing; one that appears twice in the batch is asked once.
        Raises BudgetExhausted if fewer answers are left than there are new queries, or the mechanism is closed;
        TeachersSilent if votes are counted first, and whom the teachers ask is gone. Nothing is drawn for these queries
        then.
        """
        with self.memo.lock:
            self.memo.await_answers(set(digests))
            return self._ask(rows, digests)

    def ask_together(self, rows: Rows, requests: Sequence[ClientRequest]) -> list[ClientAnswer | QuorateError]:
        """Answer requests of several clients that wait together: one wait for the disk counts them, one stores them.

        `rows`: the queries of all requests, one request after another, as the teachers see them. Each request is
        answered in full, or refused by itself and costs nothing. Returns for each a :class:`ClientAnswer`, or what
        refuses it: ``BudgetExhausted``, ``QuotaExhausted``, ``PreconditionFailed`` where its idempotency key was used
        for another request, ``TeachersSilent``, or a ``QuorateError`` whose cause is why: votes could not be counted,
        or answers not stored, after its draw (an ``InvalidParameter`` where a user's own mechanism failed), or after
        that of another request, before its own. Its `charged` tells which. Raises LedgerIntegrityError,
        PreconditionFailed if the ledger stopped, was closed, or is not to be had: none is answered, and what was drawn
        by then stays charged.

        Several threads may ask at once: while one of them waits for the disk, another one draws. Of two that ask the
        same new query one waits for the other's answer.
        """
        with self.memo.lock:
            return self._ask_together(rows, requests)

    def _ask_together(self, rows: Rows, requests: Sequence[ClientRequest]) -> list[ClientAnswer | QuorateError]:
        digests = [digest for request in requests for digest in request.digests]
        waiting = set(digests)
        charged: dict[int, tuple[int, Receipt]] = {}
        for attempt in range(_ATTEMPTS):
            drawn: list[PlannedBlock] = []  # holds a block from when it is drawn to when its answers are stored
            self.memo.await_answers(waiting)
            self._recall_from_elsewhere()
            closed = self._closed if self._answering.closed else None
            planned = Planning(requests, self.memo, self.reservation, self.purposes, closed)
            answered = partial(self._answers_of, requests, charged, planned.refused)
            try:
                with self.memo.drawing({digests[place] for block in planned.blocks for place in block.rows}):
                    for block in planned.blocks:
                        charged |= self._ask_block(block, rows, digests, partial(drawn.append, block))
                        drawn.clear()
            except LedgerIntegrityError:  # the ledger stopped
                raise
            except Exception as failure:
                if drawn:  # charged: to draw again would charge it again
                    return answered(failure, drawn[0].requests)
                # Another server on the same ledger was given answers in between: what is left is known by now.
                if _is_lost_race(failure) and attempt + 1 < _ATTEMPTS:
                    continue
                if charged or isinstance(failure, TeachersSilent):
                    return answered(failure)
                raise
            break
        return answered()

    def _answers_of(
        self,
        requests: Sequence[ClientRequest],
        charged: Mapping[int, tuple[int, Receipt]],
        refused: Mapping[int, QuorateError],
        failure: Exception | None = None,
        lost: Sequence[int] = (),
    ) -> list[ClientAnswer | QuorateError]:
        """Say what became of each request: `failure` left queries unanswered, and took what was drawn for `lost`."""
        answers: list[ClientAnswer | QuorateError] = []
        for number, request in enumerate(requests):
            if number in lost and failure is not None:
                answers.append(_lost_by(failure))
            elif number in refused and number not in charged:
                answers.append(refused[number])
            elif failure is None or all(self.memo.recall(digest) is not None for digest in request.digests):
                answers.append(ClientAnswer(self._recalled(request.digests), *charged.get(number, (0, None))))
            else:
                answers.append(_left_by(failure, charged=number in charged))
        return answers

    def _ask_block(
        self, block: PlannedBlock, rows: Rows, digests: Sequence[bytes], counting: Callable[[], None]
    ) -> dict[int, tuple[int, Receipt]]:
        if not block.rows:
            return {}
        parts, keys = block.share.parts, [digests[place] for place in block.rows]
        drawn = self._ask_part(block.share.purpose, _rows_at(rows, block.rows), keys, parts, counting)
        return {number: (part.count, drawn.block.receipt) for number, part in zip(block.requests, parts, strict=True)}

    def _recalled(self, digests: Iterable[bytes]) -> IntArray:
        codes = map(self.memo.recall, digests)
        return np.array([NEVER_ASKED if code is None else code for code in codes], dtype=np.int64)

    def count_new(self, digests: Sequence[bytes]) -> int:
        """Return how many queries of a batch :meth:`ask` would draw: where there are none, no teacher is needed.

        BudgetExhausted if there are any, and the mechanism is closed.
        """
        self._recall_from_elsewhere()
        return len(self._new(digests)[0])

    @property
    def left(self) -> int:
        """How many new queries may still be asked: none once the mechanism is closed."""
        return 0 if self._answering.closed else sum(self.reservation.remaining(purpose) for purpose in self.purposes)

    def _new(self, digests: Sequence[bytes]) -> tuple[IntArray, IntArray, IntArray]:
        """Return the places of queries to be asked, and what :func:`~quorate.labelling.questions.distinct` returns."""
        first, which = distinct(digests)
        new = np.array([place for place in first if self.memo.recall(digests[place]) is None], dtype=np.int64)
        if len(new) and self._answering.closed:
            raise self._closed(len(new))
        return new, first, which

    def _ask(self, rows: Rows, digests: Sequence[bytes]) -> IntArray:
        self._recall_from_elsewhere()
        new, first, which = self._new(digests)
        for number, (purpose, places) in enumerate(self._paid_for(new)):
            try:
                self._ask_part(purpose, _rows_at(rows, places), [digests[place] for place in places])
            except TeachersSilent as silent:
                raise TeachersSilent(str(silent), charged=_CHARGED_IN_PART) if number else silent from None
        return self._recalled(digests[first[query]] for query in which)

    def _closed(self, requested: int) -> BudgetExhausted:
        stages = self.reservation.purposes[STAGE]
        return BudgetExhausted(
            f"{type(self.mechanism).__name__} is closed: all {stages:,} of its stages are used up, so no further row "
            "is asked. What was answered is still free to ask; the student answers the rest for free",
            spent=stages,
            requested=requested,
            limit=stages,
            unit="stages",
        )

    def _ask_part(
        self,
        purpose: str,
        rows: Rows,
        digests: list[bytes],
        parts: Sequence[Part] | None = None,
        counting: Callable[[], None] = lambda: None,
    ) -> DrawnBlock:
        """Draw, count and store; `counting` is called when the draw is durable."""
        queries = [digest.hex() for digest in digests]
        counted: list[Secret[Any]] = []
        if self.votes_first and len(digests) <= self.reservation.remaining(purpose):  # else the draw is refused at once
            counted.append(self.count_votes(rows))

        def votes(_: DrawnBlock) -> IntArray:
            counting()
            counts: IntArray = (counted[0] if counted else self.count_votes(rows)).reveal()
            return counts

        drawn, answers = self._answering.answer(
            purpose,
            len(digests),
            votes,
            self.noise,
            record=lambda answers: {"queries": queries, "answers": answers},
            parts=parts,
        )
        self._recall_from_elsewhere()  # of two servers' answers to one query the one that was stored first is told
        self._remember(digests, answers)
        return drawn

    def _paid_for(self, new: IntArray) -> list[tuple[str, IntArray]]:
        """Divide new queries among what pays for them; all or nothing."""
        if len(self.purposes) == 1 or not len(new):
            return [(purpose, new) for purpose in self.purposes if len(new)]  # the draw is all or nothing by itself
        left = [self.reservation.remaining(purpose) for purpose in self.purposes]
        if len(new) > sum(left):
            raise BudgetExhausted(
                f"{len(new):,} new rows, {sum(left):,} answers left; "
                + (f"ask about {sum(left):,} rows at most" if sum(left) else "ask the student, which answers for free"),
                spent=sum(self.reservation.purposes[purpose] for purpose in self.purposes) - sum(left),
                requested=len(new),
                limit=sum(self.reservation.purposes[purpose] for purpose in self.purposes),
                unit="answers",
            )
        parts = []
        for purpose, answers in zip(self.purposes, left, strict=True):
            if len(new[:answers]):
                parts.append((purpose, new[:answers]))
            new = new[answers:]
        return parts

    def recall_stored(self) -> None:
        """Put every online answer that the ledger holds into the memo, after a restart."""
        blocks = (block for purpose in self.purposes for block in self.reservation.blocks(purpose))
        self._recall(sorted(blocks, key=lambda block: block.receipt.sequence))  # as they were stored

    def _recall_from_elsewhere(self) -> None:
        """Where several servers share the ledger: what one of them answered is not asked again by another."""
        for block in self.reservation.stored_elsewhere(after=self._seen[0]):
            if block.purpose in self.purposes:
                self._recall([block])
            self._seen[0] = block.receipt.sequence

    def _recall(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            if block.answers is not None and "queries" in block.answers:
                queries = [bytes.fromhex(digest) for digest in block.answers["queries"]]
                self._remember(queries, block.answers["answers"])

    def _remember(self, digests: list[bytes], answers: list[Any]) -> None:
        """Keep what was released, declined answers included; of a query that was never asked there is nothing."""
        builder = ReleaseBuilder(self.mechanism, n_queries=len(answers), n_classes=self.n_classes)
        builder.put(0, len(answers), answers)
        released = builder.released()
        places = np.flatnonzero(released.asked)
        self.memo.remember([digests[place] for place in places], released.codes[places].tolist())
