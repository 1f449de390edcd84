"""Threads take turns: a query is paid once, and a threshold meets one query at a time."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tests.labelling.asking import ask

from quorate.accounting import Repeated
from quorate.labelling import Memo, OnlineAnswers
from quorate.labelling.stable import STAGE, StableAnswers, stable_purposes
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import GaussianNoisyMax, StableSparseVector
from quorate.mechanisms.sparse_vector import SparseVectorState
from quorate.noise import NoiseSource, SeededNoise
from quorate.types import IntArray, Secret


def test_two_threads_that_ask_one_query_pay_for_it_once() -> None:
    mechanism = GaussianNoisyMax(sigma=50.0, form="binary")
    reservation = Ledger(budget=Budget(4.0, 1e-5)).reserve(
        Repeated(mechanism.event, 8), delta=1e-5, purposes={"online answer": 8}, key="kept back"
    )

    def slow_votes(rows: IntArray) -> Secret[IntArray]:
        time.sleep(0.02)  # long enough for the others to come to the same place
        return Secret(np.array([[50, 50]] * len(rows)))

    online = OnlineAnswers(slow_votes, mechanism, reservation, SeededNoise(0), Memo(), 2)
    with ThreadPoolExecutor(4) as pool:
        answers = [each.tolist() for each in pool.map(lambda _: ask(online, [b"the same"]), range(4))]

    assert reservation.remaining("online answer") == 7
    assert len({tuple(each) for each in answers}) == 1


def test_no_two_queries_meet_one_threshold_at_once(monkeypatch) -> None:
    mechanism = StableSparseVector(4.0, 1e-5, cutoff=6, n_queries=100)
    reservation = Ledger(budget=Budget(4.0, 1e-5)).reserve(
        mechanism.event, delta=1e-5, purposes=stable_purposes(mechanism), key="questions"
    )
    stable = StableAnswers(mechanism, SeededNoise(1))
    inside, crowded, step = threading.Semaphore(1), [], StableSparseVector.step

    def slow(
        self: StableSparseVector, state: SparseVectorState, counts: IntArray, noise: NoiseSource
    ) -> tuple[SparseVectorState, int | None]:
        alone = inside.acquire(blocking=False)
        crowded.append(not alone)
        time.sleep(0.01)
        if alone:
            inside.release()
        return step(self, state, counts, noise)

    monkeypatch.setattr(StableSparseVector, "step", slow)
    votes = Secret(["red"] * 400)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: stable.answer(reservation, f"question {number}", votes), range(8)))

    assert not any(crowded)
    assert reservation.remaining(STAGE) >= 4  # every answer was stable: hardly a stage was used up
