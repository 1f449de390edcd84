"""How a mechanism answers a block of queries: each query by itself, or all of them as one stream.

A stream (a sparse vector) goes on from stage to stage (:mod:`quorate.release.stages`); when none is left it is
closed: no further query is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from quorate.errors import InvalidParameter
from quorate.labelling.guarded import guarded
from quorate.ledger import Part, Reservation
from quorate.mechanisms import Mechanism, QueryMechanism, StreamMechanism
from quorate.noise import NoiseSource
from quorate.release import DrawnBlock, Stages, release
from quorate.release.purposes import LABEL, ONLINE_ANSWER, STAGE
from quorate.types import FloatArray

Rows: TypeAlias = Callable[[DrawnBlock], Any]  # what a mechanism looks at, one row a query of the block
Record: TypeAlias = Callable[[list[Any]], object]


def _as_they_are(answers: list[Any]) -> object:
    return answers


class Answering(Protocol):
    """Answers blocks of queries, in order: draw → noise → store → tell."""

    def answer(
        self,
        purpose: str,
        count: int,
        rows: Rows,
        source: NoiseSource,
        *,
        predictions: FloatArray | None = None,
        record: Record = _as_they_are,
        parts: Sequence[Part] | None = None,
    ) -> tuple[DrawnBlock, list[Any]]:
        """Return the block, and one JSON value a row: a class code, a noisy half-lead or counts.

        -1 stands for declined, and -2 for never asked.

        Parameters
        ----------
        purpose : str
            What pays.
        count : int
            Queries of the block.
        rows : callable
            From the drawn block to what the mechanism looks at, one row a query.
        source : NoiseSource
            Where noise comes from.
        predictions : FloatArray, optional
            For an interactive mechanism: a student's class probabilities ``(count, n_classes)``.
        record : callable, optional
            From the answers to what the ledger stores.
        parts : sequence of Part, optional
            The requests of several clients that share the block.
        """

    @property
    def closed(self) -> bool:
        """Whether no further query can be asked, however many are paid for."""


def answering(mechanism: Mechanism, reservation: Reservation) -> Answering:
    """Return what answers by `mechanism`, paid by `reservation`.

    Raises
    ------
    InvalidParameter
        If the reservation of a stream has other stages, or more queries, than the stream was priced for.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.noise import SeededNoise
    >>> from quorate.mechanisms import StableSparseVector
    >>> mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=10)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> purposes = {"label": 10, **stages_of(mechanism)}
    >>> reservation = ledger.reserve(mechanism.event, delta=1e-5, purposes=purposes, key="labels")
    >>> stream = answering(mechanism, reservation)
    >>> stream.answer("label", 3, lambda _: np.array([[900, 100], [510, 490], [90, 910]]), SeededNoise(0))[1]
    [0, -1, 1]
    >>> reservation.remaining("sparse-vector stage")
    0
    """
    if isinstance(mechanism, QueryMechanism):
        return _EachQuery(mechanism, reservation)
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
    return _Stream(mechanism, reservation)


def stages_of(mechanism: Mechanism) -> dict[str, int]:
    """Return the stages that a schedule of `mechanism` holds, as purposes of its reservation."""
    return {STAGE: mechanism.stages} if isinstance(mechanism, StreamMechanism) else {}


class _EachQuery:
    closed = False

    def __init__(self, mechanism: QueryMechanism, reservation: Reservation) -> None:
        self._mechanism = guarded(mechanism)
        self._reservation = reservation

    def answer(
        self,
        purpose: str,
        count: int,
        rows: Rows,
        source: NoiseSource,
        *,
        predictions: FloatArray | None = None,
        record: Record = _as_they_are,
        parts: Sequence[Part] | None = None,
    ) -> tuple[DrawnBlock, list[Any]]:
        def compute(drawn: DrawnBlock) -> list[Any]:
            looked_at, noise = rows(drawn), drawn.noise(source)
            answer: Any = self._mechanism.release_many  # one that takes predictions has an argument more
            informed = self._mechanism.takes == "votes and predictions"
            answers = answer(looked_at, noise, predictions) if informed else answer(looked_at, noise)
            return list(answers.tolist())

        return release(self._reservation, purpose, count, compute, record=record, parts=parts)


class _Stream:
    def __init__(self, mechanism: StreamMechanism, reservation: Reservation) -> None:
        self._stages = Stages(guarded(mechanism), mechanism.stages, ahead=mechanism.stages_a_query)
        self._reservation = reservation

    @property
    def closed(self) -> bool:
        return self._stages.left(self._reservation) == 0

    def answer(
        self,
        purpose: str,
        count: int,
        rows: Rows,
        source: NoiseSource,
        *,
        predictions: FloatArray | None = None,
        record: Record = _as_they_are,
        parts: Sequence[Part] | None = None,
    ) -> tuple[DrawnBlock, list[Any]]:
        return self._stages.release(self._reservation, purpose, count, rows, source, record=record, parts=parts)
