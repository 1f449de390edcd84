"""Two threads answer by turns: requests that wait together become one block, with one wait for the disk.

The event loop reads and checks requests and sends what comes back; everything that charges, draws or stores happens in
these threads. While the answers of one block are being stored, the next block is drawn, and one commit serves both.
After an error of the ledger nothing is answered any more.

What is asked of a run and what comes back has one form, whichever method the run has (:class:`Answers`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from quorate.accounting.attacker import rounded_up
from quorate.errors import LedgerBusy, LedgerIntegrityError
from quorate.ledger import Ledger, Receipt
from quorate.release.guarantee import spent_of
from quorate.service.features import Row
from quorate.service.problems import Problem

By: TypeAlias = Literal["ensemble", "student", "model"]
Status: TypeAlias = Literal["answered", "declined"]


@dataclass(frozen=True, slots=True)
class LabelRequest:
    """One request that waits for its answers.

    `quota`: answers that may be charged for the client in its whole life. `body`: a digest that `key` is bound to.
    """

    client: str
    rows: tuple[Row, ...]
    quota: int | None = None
    key: str | None = None
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """What one point gets: a class, or None where the mechanism declined; and who answers.

    `by`: "ensemble", from what was kept back; "student" or "model", for free.
    """

    label: Any
    status: Status
    by: By

    def tree(self) -> dict[str, Any]:
        """Return the point as JSON has it."""
        return {"label": self.label, "status": self.status, "by": self.by}


@dataclass(frozen=True, slots=True)
class Answered:
    """What a request gets: its points, how many of them were charged for, and the receipt of that charge."""

    points: tuple[Point, ...]
    charged: int = 0
    receipt: Receipt | None = None


Reply: TypeAlias = Answered | Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What is left, as of the newest block; it depends on votes through released answers alone.

    `answers_left`, `answers_reserved`: None where every prediction is free. `epsilon`, `delta`: spent, and the cap.
    """

    answers_left: int | None
    answers_reserved: int | None
    epsilon: tuple[float, float]
    delta: tuple[float, float]
    entries: int
    head: str

    @classmethod
    def of(cls, ledger: Ledger, *, answers_left: int | None = None, answers_reserved: int | None = None) -> Standing:
        """Read what was spent off a ledger."""
        budget, (epsilon, delta), head = ledger.budget, spent_of(ledger), ledger.head
        spent = {"epsilon": (epsilon, budget.epsilon), "delta": (delta, budget.delta)}
        return cls(
            answers_left=answers_left, answers_reserved=answers_reserved, entries=head.sequence, head=head.hash, **spent
        )

    def amounts(self, name: str) -> dict[str, float]:
        """Return what was spent of "epsilon" or "delta", rounded up to six digits as pages print it, limit and rest."""
        exactly, limit = getattr(self, name)
        spent = min(limit, float(rounded_up(exactly, 6)))
        return {"spent": spent, "limit": limit, "left": max(0.0, limit - spent)}


class Answers(Protocol):
    """Answers blocks of requests. Two threads may call :meth:`answer` at a time, each with a block of its own."""

    @property
    def standing(self) -> Standing:
        """What is left."""

    @property
    def healthy(self) -> bool:
        """Whether anything may still be answered."""

    @property
    def in_place(self) -> bool:
        """Whether the ledger stands where it was opened; where not, the next new point is refused."""

    def answer(self, block: Sequence[LabelRequest]) -> list[Reply]:
        """Answer the requests of a block, one reply each, in their order.

        Raises LedgerIntegrityError if the ledger failed; nothing of the block may leave.
        """


POINTS_A_BLOCK: Final = 4_096
GATHER_SECONDS: Final = 0.010


class AnsweringThreads:
    """Answers what waits, block by block; beyond `max_waiting` requests are refused. `failed` is told what went wrong.

    What one block waits for depends on who asked at the same time, never on how anybody was answered.
    """

    def __init__(
        self,
        answers: Answers,
        *,
        max_waiting: int = 1_024,
        threads: int = 2,
        failed: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        self._answers = answers
        self._max_waiting = max_waiting
        self._failed = failed
        self._waiting: deque[tuple[LabelRequest, asyncio.Future[Reply]]] = deque()
        self._turn = threading.Condition()
        self._stopping = False
        self.healthy = True
        self.blocks = 0
        self._busy = 0
        self._threads = [
            threading.Thread(target=self._run, name=f"quorate answers {number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    async def ask(self, request: LabelRequest) -> Reply:
        """Wait for the answers to one request."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        with self._turn:
            if not self.healthy:
                return Problem("unhealthy")
            if self._stopping:
                return Problem("stopping")
            if len(self._waiting) >= self._max_waiting:
                return Problem("overloaded")
            self._waiting.append((request, future))
            self._turn.notify()
        return await future

    def stop(self, seconds: float | None = None) -> bool:
        """Answer what waits, and end; what comes after is refused.

        Returns when the threads have ended, or after so many seconds; whether they have ended.
        """
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
        until = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            thread.join(None if until is None else max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        while block := self._next():
            try:
                replies = self._answered([request for request, _ in block])
            finally:
                with self._turn:
                    self._busy -= 1
                    self._turn.notify_all()
            waiting: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Reply], Reply]]] = {}
            for (_, future), reply in zip(block, replies, strict=True):
                waiting.setdefault(future.get_loop(), []).append((future, reply))
            for loop, answered in waiting.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_tell, answered)

    def _next(self) -> list[tuple[LabelRequest, asyncio.Future[Reply]]]:
        """Wait for requests; take all that wait, up to a limit. Empty where there is nothing left to do."""
        block: list[tuple[LabelRequest, asyncio.Future[Reply]]] = []
        points = 0
        with self._turn:
            while not block:
                self._turn.wait_for(lambda: self._waiting or self._stopping)
                self._gather()
                while self._waiting and (not block or points + len(self._waiting[0][0].rows) <= POINTS_A_BLOCK):
                    points += len(self._waiting[0][0].rows)
                    block.append(self._waiting.popleft())
                if self._stopping:
                    break
            self._busy += bool(block)
        return block

    def _gather(self) -> None:
        """While another block waits for the disk, let requests come in as long as they do."""
        until = time.monotonic() + GATHER_SECONDS
        waiting = -1
        while self._busy and not self._stopping and waiting < len(self._waiting) and time.monotonic() < until:
            waiting = len(self._waiting)
            self._turn.wait_for(lambda: self._stopping or not self._busy, timeout=GATHER_SECONDS / 10)

    def _answered(self, block: Sequence[LabelRequest]) -> Sequence[Reply]:
        if not self.healthy:
            return [Problem("unhealthy") for _ in block]
        with self._turn:
            self.blocks += 1
        try:
            replies = self._answers.answer(block)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the thread, nor be told
            return self._not_answered(block, error)
        causes = [problem.__cause__ for problem in replies if isinstance(problem, Problem) and problem.__cause__]
        for cause in {(type(failure), str(failure)): failure for failure in causes}.values():
            self._note(cause)  # why is logged, and not told
        return replies

    def _not_answered(self, block: Sequence[LabelRequest], error: Exception) -> Sequence[Reply]:
        """Say what becomes of requests that failed together."""
        if isinstance(error, LedgerIntegrityError) or not self._answers.healthy:
            self.healthy = False
        self._note(error.__cause__ if isinstance(error, Problem) and error.__cause__ else error)
        if not self.healthy:
            return [Problem("unhealthy", charged=True) for _ in block]
        if isinstance(error, LedgerBusy):  # nothing was written
            return [Problem("overloaded") for _ in block]
        if len(block) > 1:  # one request must not be what another one fails by
            return [reply for request in block for reply in self._answered([request])]
        return [error if isinstance(error, Problem) else Problem("internal-error", charged=True)]

    def _note(self, error: BaseException) -> None:
        with suppress(Exception):  # what is said of an error must not end the thread
            self._failed(error)


def _tell(replies: Sequence[tuple[asyncio.Future[Reply], Reply]]) -> None:
    for future, reply in replies:
        if not future.done():  # its client has gone
            future.set_result(reply)
