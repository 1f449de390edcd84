"""How a mechanism answers a block of queries: each query by itself, or all of them as one stream.

A stream goes on from stage to stage (:mod:`quorate.release.stages`); when none is left it is closed. What a mechanism
of a user's own raises on votes, which may hold these votes, is told to nobody, nor is the exception passed on; its
answers are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from quorate.errors import InvalidParameter
from quorate.ledger import Part, Reservation
from quorate.mechanisms import (
    Mechanism,
    QueryMechanism,
    StreamMechanism,
    check_answers,
    check_state,
    check_step,
    is_own,
)
from quorate.noise import NoiseSource
from quorate.release import DrawnBlock, Stages, release
from quorate.release.charge import LABEL, ONLINE_ANSWER, STAGE
from quorate.types import FloatArray, IntArray

T = TypeVar("T")

CHARGED = "what was charged stays charged, and the queries of this block count as answered"


def guarded(mechanism: Any) -> Any:
    """Return what is asked in place of a mechanism: itself, or for one of a user's own a guard around it."""
    return _Guarded(mechanism) if is_own(mechanism) else mechanism


@dataclass(frozen=True, slots=True)
class _State:
    """A stream's state, of which nothing but the number of stages is touched without a guard."""

    stages_spent: int
    own: Any


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Asks a mechanism of a user's own."""

    mechanism: Mechanism

    @property
    def takes(self) -> str:
        """What it looks at."""
        return self.mechanism.takes

    def release_many(self, counts: Any, noise: NoiseSource, *more: Any) -> IntArray:
        """Answer each row; the answers are what the mechanism declares, or none of them is stored."""
        answer: Any = self.mechanism.release_many  # type: ignore[attr-defined]  # one that answers each query

        def checked() -> IntArray:
            answers: IntArray = answer(counts, noise, *more)
            check_answers(self.mechanism, answers, n_queries=len(counts), n_classes=counts.shape[1])
            return answers

        return _without_votes(self.mechanism, checked)

    def init(self, noise: NoiseSource, stages_spent: int = 0, asked: int = 0) -> _State:
        """Open a run of a stream."""

        def checked() -> _State:
            state = self._stream.init(noise, stages_spent=stages_spent, asked=asked)
            return _State(check_state(self._stream, state, spent=stages_spent), state)

        return _without_votes(self.mechanism, checked)

    def step(self, state: _State, row: Any, noise: NoiseSource, /) -> tuple[_State, int | None]:
        """Answer one query of a stream; the answer is what the mechanism declares, or it is not stored."""

        def checked() -> tuple[_State, int | None]:
            spent = state.stages_spent
            stepped = self._stream.step(replace(state.own, stages_spent=spent), row, noise)
            after, answer = check_step(self._stream, stepped, row=row, spent=spent)
            return _State(after, stepped[0]), answer

        return _without_votes(self.mechanism, checked)

    @property
    def _stream(self) -> StreamMechanism:
        assert isinstance(self.mechanism, StreamMechanism)  # noqa: S101 - the caller's condition
        return self.mechanism


def _without_votes(mechanism: Mechanism, answer: Callable[[], T]) -> T:
    """Return what `answer` does; raise `InvalidParameter`, one line without votes, in place of any exception."""
    with suppress(Exception, SystemExit):  # the user's own code, on votes; what ends a process has a message too
        return answer()
    # After the exception is gone, so that it does not travel with this one.
    raise InvalidParameter(
        f"mechanism {type(mechanism).__name__} fails on the votes of this run, or does not answer as it declares; "
        "how is not told, since that may hold votes. Try it on votes of your own making",
        charged=CHARGED,
    )


Rows: TypeAlias = Callable[[DrawnBlock], Any]  # what a mechanism looks at, one row a query of the block
Record: TypeAlias = Callable[[list[Any]], object]


@dataclass(frozen=True, slots=True)
class Answering:
    """Answers blocks of queries, in order: draw → noise → store → tell; `stages`: of a stream."""

    reservation: Reservation
    mechanism: Any
    stages: Stages | None

    def answer(
        self,
        purpose: str,
        count: int,
        rows: Rows,
        source: NoiseSource,
        *,
        predictions: FloatArray | None = None,
        record: Record = list,
        parts: Sequence[Part] | None = None,
    ) -> tuple[DrawnBlock, list[Any]]:
        """Return the block, and one JSON value a row: a class code (-1 declined, -2 never asked), a noisy half-lead or
        counts.

        `rows`: from the drawn block to what the mechanism looks at. `predictions`: class probabilities ``(count,
        n_classes)``, for an interactive mechanism. `record`: from the answers to what the ledger stores.
        """
        if self.stages is not None:
            return self.stages.release(self.reservation, purpose, count, rows, source, record=record, parts=parts)

        def compute(drawn: DrawnBlock) -> list[Any]:
            row_values, noise = rows(drawn), drawn.noise(source)
            informed = self.mechanism.takes == "votes and predictions"
            return list(self.mechanism.release_many(row_values, noise, *([predictions] if informed else [])).tolist())

        return release(self.reservation, purpose, count, compute, record=record, parts=parts)

    @property
    def closed(self) -> bool:
        """Whether no further query can be asked, however many are paid for."""
        return self.stages is not None and self.stages.left(self.reservation) == 0


def answering(mechanism: Mechanism, reservation: Reservation) -> Answering:
    """Return what answers by `mechanism`, paid by `reservation`.

    Raises InvalidParameter if the reservation of a stream has other stages, or more queries, than it was priced for.
    """
    if isinstance(mechanism, QueryMechanism):
        return Answering(reservation, guarded(mechanism), None)
    if not isinstance(mechanism, StreamMechanism):
        raise InvalidParameter(
            f"mechanism must be a QueryMechanism or a StreamMechanism, got {type(mechanism).__name__}"
        )
    queries = sum(reservation.purposes.get(purpose, 0) for purpose in (LABEL, ONLINE_ANSWER))
    if reservation.purposes.get(STAGE) != mechanism.stages or queries > mechanism.n_queries:
        raise InvalidParameter(
            f"the reservation does not fit a run of {type(mechanism).__name__}; reserve its stages, and at most as "
            "many answers as it has queries"
        )
    stream = guarded(mechanism)
    stages = Stages(stream, mechanism.stages, ahead=mechanism.stages_a_query)
    return Answering(reservation, stream, stages)


def stages_of(mechanism: Mechanism) -> dict[str, int]:
    """Return the stages that a schedule of `mechanism` holds, as purposes of its reservation."""
    return {STAGE: mechanism.stages} if isinstance(mechanism, StreamMechanism) else {}
