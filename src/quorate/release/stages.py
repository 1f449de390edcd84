"""The stages of a sparse vector: no noisy threshold is used past its end, whoever holds a copy of it.

A *stage* is one noisy threshold; it answers any number of stable queries and ends with the first that is declined. A
reservation holds T of them. Each is counted in the ledger, durably, before its threshold exists; the threshold is kept
in memory and nowhere else. So a stage ends, too,

- with its process: a forked child has a copy of the threshold, and does not use it;
- when a query is interrupted;
- when another holder of the same threshold goes on in it. Every block names the stage that it goes on in, and the
  newest block of that stage that its holder knows; the ledger refuses it, in the transaction that would count it,
  where another block came in between or was not stored. So the queries of a stage follow one another in the ledger,
  and whoever missed the one that was declined asks nothing more of it.

Blocks without a stage, as version 0.1 wrote them, belong to thresholds that nobody here has ever held: their stages
were counted, and count as spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from quorate.errors import MechanismClosed
from quorate.ledger import Block, Part, Reservation
from quorate.ledger.journal import Turn, this_process
from quorate.mechanisms import DECLINED
from quorate.mechanisms.sparse_vector import SparseVectorState
from quorate.noise import NoiseSource
from quorate.release.block import DrawnBlock, draw, uninterrupted
from quorate.release.charge import STAGE

#: How a query that was never asked stands among stored answers; version 0.1 noted ``DECLINED`` for it too.
NEVER_ASKED: Final = -2


class Stream(Protocol):
    """A sparse vector, as far as its stages go."""

    def init(self, noise: NoiseSource, stages_spent: int = 0, asked: int = 0) -> SparseVectorState:
        """Draw a noisy threshold."""
        ...

    def step(self, state: SparseVectorState, row: Any, noise: NoiseSource, /) -> tuple[SparseVectorState, int | None]:
        """Answer one query; where that ends stages, with the next threshold drawn."""
        ...


@dataclass(slots=True)
class _Held:
    """What one process alone may use."""

    stages: tuple[int, ...]  # numbers of stages that it has counted and not ended; the open one first
    state: SparseVectorState | None = None
    newest: Block | None = None  # the newest block that went on in the open stage
    process: tuple[int, object] = field(default_factory=this_process)

    def goes_on(self, reservation: Reservation) -> bool:
        """Whether it may be used: in this process, and as far as the ledger knows by nobody else."""
        ours = bool(self.stages) and self.process == this_process()
        return ours and reservation.goes_on(self.stages[0], self.newest)


class Stages:
    """Answers blocks of queries by a sparse vector: draw → noise → store, stage by stage.

    `mechanism`: what answers. `n_stages`: how many stages its event pays for. `ahead`: how many stages one query may
    end: so many more than the open one are counted before it is asked. With 0 a stage is counted when it is needed,
    before the query's own block, and its threshold has noise of its own. Threads take turns. A copy of this object, in
    this process or a forked one, never has a use of the same stage.
    """

    def __init__(self, mechanism: Stream, n_stages: int, *, ahead: int) -> None:
        self._mechanism = mechanism
        self._n_stages = n_stages
        self._ahead = ahead
        self._held: _Held | None = None
        self.turn = Turn()  # a threshold meets one block at a time

    def left(self, reservation: Reservation) -> int:
        """Return how many stages may still end: those not counted yet, and those held here."""
        with self.turn:
            held = self._held
            ours = 0 if held is None or not held.goes_on(reservation) else len(held.stages)
            return reservation.remaining(STAGE) + ours

    def release(
        self,
        reservation: Reservation,
        purpose: str,
        count: int,
        rows: Callable[[DrawnBlock], Iterable[Any]],
        source: NoiseSource,
        *,
        record: Callable[[list[int]], object] = lambda answers: answers,
        parts: Sequence[Part] | None = None,
    ) -> tuple[DrawnBlock, list[int]]:
        """Draw a block, answer its queries, store the answers, and only then return the block and them.

        `reservation`: holds the stages, and `count` answers left for `purpose`. `rows`: from the drawn block to what
        the mechanism looks at, one item a query. `source`: where noise comes from. `record`, `parts`: as in
        :func:`quorate.release.release`. Answers are ``DECLINED`` where the mechanism declined, and ``NEVER_ASKED``
        where no stage was left.
        """
        with self.turn, uninterrupted():
            held, opened, drawn = self._drawn(reservation, purpose, count, parts)
            if opened is not None:
                opened.store(["opened"])

            def compute(drawn: DrawnBlock) -> list[int]:
                noise = drawn.noise(source)
                threshold_noise = noise if opened is None else opened.noise(source)
                return [self._one(reservation, held, row, noise, threshold_noise) for row in rows(drawn)]

            answers = drawn.answer(compute, record=record)
            if held.stages:
                held.newest = drawn.block if drawn.block.stage == held.stages[0] else None
                self._held = held
            return drawn, answers

    def _drawn(
        self, reservation: Reservation, purpose: str, count: int, parts: Sequence[Part] | None
    ) -> tuple[_Held, DrawnBlock | None, DrawnBlock]:
        """Mark a block as drawn, in the open stage if there is one; with the block that counted a stage for it."""
        held, self._held = self._held, None  # whatever interrupts from here on ends the stage
        if held is not None and held.goes_on(reservation):
            try:
                return (
                    held,
                    None,
                    draw(reservation, purpose, count, stage=held.stages[0], after=held.newest, parts=parts),
                )
            except MechanismClosed:
                pass  # somebody went on in it just now
        if self._ahead:
            return _Held(()), None, draw(reservation, purpose, count, parts=parts)
        opened = draw(reservation, STAGE)
        return _Held((opened.first,)), opened, draw(reservation, purpose, count, stage=opened.first, parts=parts)

    def _one(
        self, reservation: Reservation, held: _Held, row: Any, noise: NoiseSource, threshold_noise: NoiseSource
    ) -> int:
        # The open stage, and every one that this query may open, are counted before their thresholds are drawn.
        missing = min(1 + self._ahead - len(held.stages), reservation.remaining(STAGE))
        if missing > 0:
            counted = draw(reservation, STAGE, missing)
            held.stages += tuple(range(counted.first, counted.first + missing))
        if not held.stages:
            return NEVER_ASKED
        spent = self._n_stages - len(held.stages)  # what others have counted, finished or not, is spent too
        if held.state is None:
            held.state = self._mechanism.init(threshold_noise, stages_spent=spent)
        held.state, answer = self._mechanism.step(replace(held.state, stages_spent=spent), row, noise)
        # A threshold that was drawn beyond the last stage held here is thrown away: its stage is not counted yet.
        held.stages = held.stages[held.state.stages_spent - spent :]
        return DECLINED if answer is None else answer
