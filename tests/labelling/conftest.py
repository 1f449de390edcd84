"""Noise that looks at its ledger, a reservation whose process dies, votes, streams and questions."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.release.test_block import Watched

from quorate.accounting import Repeated
from quorate.labelling import History, OnlineAnswers, stages_of
from quorate.ledger import Budget, Ledger, MemoryStore, SqliteStore
from quorate.mechanisms import NoisyCounts, StableSparseVector
from quorate.types import IntArray


class Killed(BaseException):
    """The process ends here."""


class Mortal:
    """A reservation whose process dies at one of its acts: before or after a draw, before or after a store.

    ``drawn`` holds the first number and the length of every block that was drawn.
    """

    def __init__(self, reservation, dies_at):
        self.reservation, self.left, self.drawn = reservation, dies_at, []

    def __getattr__(self, name):
        return getattr(self.reservation, name)

    def _live(self):
        self.left -= 1
        if self.left < 0:
            raise Killed

    def draw(self, purpose, count=1):
        self._live()
        block = self.reservation.draw(purpose, count)
        self.drawn.append((block.first, block.count))
        self._live()
        return block

    def store(self, block, answers):
        self._live()
        receipt = self.reservation.store(block, answers)
        self._live()
        return receipt


def vector(cutoff=4, n_queries=1_000):
    return StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=cutoff, n_queries=n_queries)


def reserved(mechanism, n_labels):
    """The reservation of a run of so many labels by a stream."""
    purposes = {"label": n_labels, **stages_of(mechanism)}
    return Ledger(budget=Budget(9.0, 1e-4)).reserve(mechanism.event, delta=1e-5, purposes=purposes, key="run")


def paid(mechanism, purpose, *, delta=0):
    """A reservation of one release at whatever it costs."""
    return Ledger(budget=Budget(1e6, 1e-5)).reserve(mechanism.event, delta=delta, purposes={purpose: 1}, key="paid")


def ask_all(strategy, pool, answer, *, n_classes=2, cap=None):
    """Play the labelling service: every batch, and the past after it, until the strategy stops or its cap is met."""
    cap, nothing = strategy.n if cap is None else cap, np.empty(0, dtype=np.int64)
    past, batches = History(nothing, nothing, n_classes), []
    while len(past.rows) < cap:
        rows = strategy.next_batch(pool, past, np.random.default_rng([7, len(batches)]))[: cap - len(past.rows)]
        if not len(rows):
            break
        batches.append(rows.tolist())
        codes = np.array([answer(int(row)) for row in rows], dtype=np.int64)
        past = History(np.concatenate([past.rows, rows]), np.concatenate([past.codes, codes]), n_classes)
    return past, batches


def ask(online: OnlineAnswers, digests: Sequence[bytes]) -> IntArray:
    """Ask a batch; its rows are their own numbers."""
    return online.ask(np.arange(len(digests)), digests)


BINARY = NoisyCounts(sigma=6.0, form="binary")
DELTA = 1e-5
BUDGET = Budget(60.0, DELTA)


def watched(purpose, total, mechanism=BINARY):
    """A reservation, noise that looks at its ledger whenever it is drawn, and what it found."""
    event = Repeated(mechanism.event, total)
    ledger, seen = Ledger(budget=Budget(1e6, 1e-5)), []
    reservation = ledger.reserve(event, delta=DELTA, purposes={purpose: total}, key="watched")
    return reservation, Watched(ledger, seen), seen


def faults(reservation, seen):
    """Noise that was not for the block that was durable and open then; and blocks that were not stored in the end."""
    unstored = [block for purpose in reservation.purposes for block in reservation.blocks(purpose)]
    return [
        *(line for line in seen if not re.fullmatch(r"noise of (.+) while drawn and not stored: \1", line)),
        *(block for block in unstored if block.status != "stored"),
    ]


class Sessions:
    """A ledger that can be left, as by a process that dies, and opened again."""

    def __init__(self, folder: Any, kind: str) -> None:
        self.path, self.kind, self.memory, self.ledger = folder and folder / "ledger.db", kind, MemoryStore(), None

    def reserve(self, purposes: dict[str, int], mechanism: Any = BINARY) -> Any:
        """Open a new session and return the reservation, which is charged once."""
        self.close()
        store = self.memory if self.kind == "memory" else SqliteStore(self.path, create=True)
        self.ledger = Ledger(budget=BUDGET, store=store)
        event = Repeated(mechanism.event, sum(purposes.values()))
        return self.ledger.reserve(event, delta=DELTA, purposes=purposes, key="run")

    def close(self) -> None:
        if self.ledger is not None:
            self.ledger.close()
            self.ledger = None


def cast_votes(n_queries: int, *, n_teachers: int = 100, n_classes: int = 2, seed: int = 0) -> np.ndarray:
    """Votes of all teachers, ``(n_queries, n_classes)``."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_teachers, rng.dirichlet(np.ones(n_classes), size=n_queries)).astype(np.int64)


@pytest.fixture(scope="session")
def votes():
    return cast_votes


@pytest.fixture(params=["memory", "sqlite"])
def sessions(request, tmp_path):
    """Run the test with a ledger in memory and with one on disk."""
    made = Sessions(tmp_path, request.param)
    yield made
    made.close()


@pytest.fixture(scope="session")
def sessions_in_memory():
    """Make ledgers in memory, for tests that need many."""
    return lambda: Sessions(None, "memory")
