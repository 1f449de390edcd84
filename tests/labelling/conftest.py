"""Reservations and noise that write down what is asked of them, in one diary."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from quorate.accounting import Repeated
from quorate.errors import BudgetExhausted
from quorate.ledger import Budget, Ledger, MemoryStore, SqliteStore
from quorate.mechanisms import NoisyCounts
from quorate.noise import OSNoise

SIGMA = 6.0
BINARY = NoisyCounts(sigma=SIGMA, form="binary")
DELTA = 1e-5
BUDGET = Budget(60.0, DELTA)


@dataclass
class DiaryNoise:
    """Real noise; every use of it is an entry."""

    diary: list[str]
    seeded: bool = False
    where: str = ""

    def words(self, n: int) -> Any:
        self.diary.append(f"noise {self.where}")
        return OSNoise().words(n)

    def at(self, purpose: str, index: int) -> DiaryNoise:
        return DiaryNoise(self.diary, where=f"{purpose} {index}")


@dataclass
class DiaryReservation:
    """As much of a reservation as labelling uses; every act is an entry, written when the act has ended."""

    purpose: str
    total: int
    mechanism: Any
    diary: list[str] = field(default_factory=list)
    stored: list[Any] = field(default_factory=list)
    given: int = 0

    @property
    def purposes(self) -> dict[str, int]:
        return {self.purpose: self.total}

    @property
    def event(self) -> Repeated:
        return Repeated(self.mechanism.event, self.total)

    @property
    def charged_to(self) -> None:
        return None

    def blocks(self, purpose: str) -> tuple[Any, ...]:
        return ()

    def stored_elsewhere(self, *, after: int) -> tuple[Any, ...]:
        return ()

    def draw(self, purpose: str, count: int = 1) -> Any:
        if self.given + count > self.total:
            raise BudgetExhausted("none left", spent=self.given, requested=count, limit=self.total, unit="answers")
        first, self.given = self.given, self.given + count
        self.diary.append(f"draw {purpose} {first}")
        return SimpleNamespace(purpose=purpose, first=first, count=count, answers=None)

    def store(self, block: Any, answers: Any) -> None:
        self.diary.append(f"store {block.purpose} {block.first}")
        self.stored.append(answers)


def faults(diary: list[str]) -> list[str]:
    """What is wrong with the order: noise without its charge, noise after its storage, an answer out unstored."""
    found, drawn, stored = [], set(), set()
    for entry in diary:
        act, _, block = entry.partition(" ")
        if act == "draw":
            drawn.add(block)
        elif act == "noise":
            if block not in drawn:
                found.append(f"noise for {block} before its charge")
            if block in stored:
                found.append(f"noise for {block} after it was stored")
        elif act == "store":
            stored.add(block)
        elif act == "returned" and drawn != stored:
            found.append("answers were returned before they were stored")
    return found


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
    """Make up votes."""
    return cast_votes


@pytest.fixture(scope="session")
def diary():
    """Give a fresh diary: a reservation and noise that write into it, and what is wrong with its order."""

    def fresh(purpose, total, mechanism=BINARY):
        reservation = DiaryReservation(purpose, total, mechanism)
        return reservation, DiaryNoise(reservation.diary)

    def check_single(reservation):
        """One block was drawn, its noise after that, and it was stored before anything was returned."""
        reservation.diary.append("returned")
        assert faults(reservation.diary) == []
        assert list(dict.fromkeys(entry.split()[0] for entry in reservation.diary)) == [
            "draw",
            "noise",
            "store",
            "returned",
        ]

    fresh.faults, fresh.check_single = faults, check_single
    return fresh


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
