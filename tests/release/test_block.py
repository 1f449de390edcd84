"""Draw → durable → noise → store → told: the order of one answer, as seen from the ledger while it happens.

One release, once, for what was charged for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quorate.accounting import PureDP, Repeated
from quorate.errors import BudgetExhausted, InvalidParameter, PreconditionFailed
from quorate.ledger import Budget, Ledger, MemoryStore
from quorate.mechanisms import NoisySum, StableSparseVector
from quorate.noise import OSNoise, discrete_laplace
from quorate.release import DrawnBlock, Stages, draw, release, release_once
from quorate.release.charge import EVALUATION, LABEL, STAGE
from quorate.types import Secret

SUMS = Secret(np.array([1_000]))
HALF = NoisySum.costing(0.5, grid=1)
VECTOR = StableSparseVector(4.0, 1e-5, cutoff=2, n_queries=10)


class Watched:
    """Noise that looks at the ledger whenever it is drawn, and writes down which block it found to be the newest."""

    seeded = False

    def __init__(self, ledger: Ledger, seen: list[str], where: str = "") -> None:
        self._ledger, self._seen, self._where = ledger, seen, where

    def words(self, n: int) -> Any:
        drawn = [each.content for each in self._ledger.entries() if each.kind == "drawn"]
        stored = {each.content.block for each in self._ledger.entries() if each.kind == "stored"}  # type: ignore[attr-defined]
        entries = [each.sequence for each in self._ledger.entries() if each.kind == "drawn"]
        open_ = [f"{c.purpose} {c.first}" for c, s in zip(drawn, entries, strict=True) if s not in stored]  # type: ignore[attr-defined]
        self._seen.append(f"noise of {self._where} while drawn and not stored: {', '.join(open_) or 'nothing'}")
        return OSNoise().words(n)

    def at(self, purpose: str, index: int) -> Watched:
        return Watched(self._ledger, self._seen, f"{purpose} {index}")


def reserved(event: Any, purposes: dict[str, int], delta: float = 1e-5) -> tuple[Ledger, Any]:
    ledger = Ledger(budget=Budget(8.0, 1e-4), store=MemoryStore())
    return ledger, ledger.reserve(event, delta=delta, purposes=purposes, key="x")


def by_release(reservation: Any, noise: Any) -> Any:
    def compute(drawn: DrawnBlock) -> list[int]:
        return [int(z) for z in discrete_laplace(2.0, drawn.count, drawn.noise(noise))]

    return release(reservation, EVALUATION, 1, compute)[1]


def by_release_once(reservation: Any, noise: Any) -> Any:
    return release_once(SUMS, HALF, reservation, noise, purpose=EVALUATION)


def noise_first(reservation: Any, noise: Any) -> Any:
    answer = HALF.release(SUMS.reveal(), noise.at(EVALUATION, 0))
    reservation.store(reservation.draw(EVALUATION), [answer])
    return answer


def never_stored(reservation: Any, noise: Any) -> Any:
    return HALF.release(SUMS.reveal(), draw(reservation, EVALUATION).noise(noise))


def in_order(act: Callable[[Any, Any], Any]) -> bool:
    """Whether noise was drawn for a block that was durable, and the answer stored when it came back."""
    ledger, reservation = reserved(Repeated(HALF.event, 3), {EVALUATION: 3}, delta=0.0)
    seen: list[str] = []
    act(reservation, Watched(ledger, seen))
    [block, *rest] = reservation.blocks(EVALUATION)
    expected = "noise of evaluation 0 while drawn and not stored: evaluation 0"
    return bool(seen) and set(seen) == {expected} and not rest and block.status == "stored"


@pytest.mark.parametrize("act", [by_release, by_release_once])
def test_noise_is_drawn_for_a_durable_block_and_the_answer_is_stored_when_it_is_told(act):
    assert in_order(act)


@pytest.mark.parametrize("cheat", [noise_first, never_stored])
def test_that_test_catches_another_order(cheat):
    assert not in_order(cheat)


@pytest.mark.parametrize("ahead", [0, 1])
def test_thresholds_and_queries_have_noise_of_blocks_that_are_durable(ahead):
    ledger, reservation = reserved(VECTOR.event, {LABEL: 4, STAGE: 2})
    seen: list[str] = []
    stages = Stages(VECTOR, VECTOR.cutoff, ahead=ahead)
    rows = [np.array([900, 100]), np.array([50, 50])]
    for _ in range(2):
        stages.release(reservation, LABEL, 2, lambda _: rows, Watched(ledger, seen))
    assert seen
    drawn = {f"{LABEL} {first}" for first in (0, 2)}
    for line in seen:
        _, _, block = line.partition("while drawn and not stored: ")
        assert drawn & set(block.split(", ")), line
    assert all(block.status == "stored" for block in reservation.blocks(LABEL))


def test_a_failure_between_draw_and_store_leaves_a_block_that_is_never_drawn_again():
    _, reservation = reserved(PureDP(1.0), {"sum": 2}, delta=0.0)

    def broken(drawn: DrawnBlock) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release(reservation, "sum", 1, broken)
    drawn, answers = release(reservation, "sum", 1, lambda drawn: [drawn.first])
    assert (drawn.first, answers) == (1, [1])
    assert [block.answers for block in reservation.blocks("sum")] == [None, [1]]
    with pytest.raises(BudgetExhausted):
        release(reservation, "sum", 1, lambda drawn: [0])


def test_nothing_is_told_where_it_cannot_be_stored():
    ledger, reservation = reserved(PureDP(1.0), {"sum": 2}, delta=0.0)
    told = []

    def compute(drawn: DrawnBlock) -> list[int]:
        ledger.close()
        return [7]

    with pytest.raises(PreconditionFailed, match="closed"):
        told.append(release(reservation, "sum", 1, compute))
    assert told == []


def test_what_is_stored_may_say_more_than_what_is_told():
    _, reservation = reserved(PureDP(1.0), {"sum": 1}, delta=0.0)
    _, answer = release(reservation, "sum", 1, lambda _: 7, record=lambda answer: [{"rows": [3], "answer": answer}])
    assert answer == 7
    assert reservation.blocks("sum")[0].answers == [{"rows": [3], "answer": 7}]


PURPOSES = {"evaluation": 1, "tuning": 1, "label": 1}


def reserved_for(event, epsilon, purposes):
    return Ledger(budget=Budget(epsilon, 1e-6)).reserve(event, delta=0, purposes=purposes, key="x")


def test_one_charge_is_not_drawn_for_two_purposes():
    """An event of ε = 0.5 never paid for an evaluation and for a choice."""
    reservation = reserved_for(HALF.event, 0.5, PURPOSES)
    for purpose in ("evaluation", "tuning"):
        with pytest.raises(InvalidParameter, match="does not pay for 3 answers"):
            release_once(SUMS, HALF, reservation, OSNoise(), purpose=purpose)
        assert reservation.remaining(purpose) == 1


def test_what_was_charged_three_times_is_drawn_three_times():
    reservation = reserved_for(Repeated(HALF.event, 3), 2.0, PURPOSES)
    told = [release_once(SUMS, HALF, reservation, OSNoise(), purpose=purpose) for purpose in PURPOSES]
    assert len(told) == 3
    with pytest.raises(BudgetExhausted):
        release_once(SUMS, HALF, reservation, OSNoise(), purpose="label")
