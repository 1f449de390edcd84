"""How a mechanism answers a block of queries: each query by itself, or all of them as one stream.

A stream (a sparse vector) is in a *stage* while it holds a noisy threshold. Stages are counted in the ledger, durably,
before their thresholds exist; a threshold is kept in memory and nowhere else, so a process that ends takes its stage
with it, and the next one opens another. When no stage is left, every further query is declined without being asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from quorate.errors import InvalidParameter
from quorate.labelling.paid import SHARED, STAGE
from quorate.ledger import Reservation
from quorate.mechanisms import DECLINED, InteractiveNoisyMax, Mechanism, SoftLabel, StableSparseVector
from quorate.mechanisms.stable_sparse_vector import SparseVectorState
from quorate.noise import NoiseSource
from quorate.types import FloatArray

Stream = StableSparseVector | SoftLabel


class Answering(Protocol):
    """Answers blocks of queries, in order."""

    def answer(self, rows: Any, noise: NoiseSource, predictions: FloatArray | None = None) -> list[Any]:
        """Return one JSON value a row: a class code, -1 for declined, a noisy half-lead or noisy counts."""


def answering(mechanism: Mechanism | Stream, reservation: Reservation) -> Answering:
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
    >>> mechanism = StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=2, n_queries=10)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> purposes = {"label": 10, **stages_of(mechanism)}
    >>> reservation = ledger.reserve(mechanism.event, delta=1e-5, purposes=purposes, key="labels")
    >>> stream = answering(mechanism, reservation)
    >>> stream.answer(np.array([[900, 100], [510, 490], [90, 910]]), SeededNoise(0))
    [0, -1, 1]
    >>> reservation.remaining("sparse-vector stage")
    0
    """
    if not isinstance(mechanism, Stream):
        return _EachQuery(mechanism)
    queries = sum(reservation.purposes.get(purpose, 0) for purpose in SHARED)
    if reservation.purposes.get(STAGE) != _tests(mechanism).cutoff or queries > mechanism.n_queries:
        raise InvalidParameter(
            f"the reservation does not fit a run of {type(mechanism).__name__}; reserve its stages, and at most as "
            "many answers as it has queries"
        )
    return _Stream(mechanism, reservation)


def stages_of(mechanism: Mechanism | Stream) -> dict[str, int]:
    """Return the stages that a schedule of `mechanism` holds, as purposes of its reservation."""
    return {STAGE: _tests(mechanism).cutoff} if isinstance(mechanism, Stream) else {}


class _EachQuery:
    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism

    def answer(self, rows: Any, noise: NoiseSource, predictions: FloatArray | None = None) -> list[Any]:
        if isinstance(self._mechanism, InteractiveNoisyMax):
            answers = self._mechanism.release_many(rows, noise, predictions)
        else:
            answers = self._mechanism.release_many(rows, noise)
        told: list[Any] = answers.tolist()
        return told


class _Stream:
    def __init__(self, mechanism: Stream, reservation: Reservation) -> None:
        self._mechanism = mechanism
        self._reservation = reservation
        self._stages = _tests(mechanism).cutoff
        self._at_once = 2 if isinstance(mechanism, SoftLabel) else 1  # thresholds that one query may use up
        self._held = (
            0  # stages that this stream has counted and not ended: another stream's are never taken for its own
        )
        self._state: SparseVectorState | None = None

    def answer(self, rows: Any, noise: NoiseSource, predictions: FloatArray | None = None) -> list[Any]:
        return [self._one(row, noise) for row in rows]

    def _one(self, row: Any, noise: NoiseSource) -> int:
        # The open stage, and every one that this query may open, are counted before their thresholds are drawn.
        missing = min(1 + self._at_once - self._held, self._reservation.remaining(STAGE))
        if missing > 0:
            self._reservation.draw(STAGE, missing)
            self._held += missing
        if not self._held:
            return DECLINED
        spent = self._stages - self._held  # what others have counted, finished or not, is spent too
        if self._state is None:
            self._state = self._mechanism.init(noise, stages_spent=spent)
        self._state, answer = self._mechanism.step(replace(self._state, stages_spent=spent), row, noise)
        self._held = self._stages - self._state.stages_spent
        return DECLINED if answer is None else answer


def _tests(mechanism: Stream) -> StableSparseVector:
    return mechanism.tests if isinstance(mechanism, SoftLabel) else mechanism
