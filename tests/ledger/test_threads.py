"""Many threads of one process on one ledger."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from quorate.accounting import PureDP
from quorate.errors import NOTHING_CHARGED, STANDS, BudgetExhausted, LedgerIntegrityError, PreconditionFailed, act
from quorate.ledger import Budget

BUDGET = Budget(1.0, 1e-5)
THREADS = 16


def opened(place, count, purpose="label"):
    ledger = place.open(BUDGET)
    return ledger, ledger.reserve(PureDP(0.5), delta=0, purposes={purpose: count}, key="k")


def together(work):
    """Run ``work(thread)`` in all threads at the same time; return what they return."""
    barrier = threading.Barrier(THREADS)

    def start(thread):
        barrier.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


@pytest.mark.heavy
def test_threads_draw_exactly_to_the_cap(place):
    ledger, reservation = opened(place, 100, "online answer")

    def ask(thread):
        drawn = []
        while True:
            try:
                block = reservation.draw("online answer", key=f"{len(drawn)}", client=f"{thread}", body="sha")
            except BudgetExhausted:
                return drawn
            reservation.store(block, [thread])
            drawn.append(block.first)

    drawn = [first for firsts in together(ask) for first in firsts]
    assert sorted(drawn) == list(range(100))
    assert all(block.status == "stored" for block in reservation.blocks("online answer"))
    ledger.verify()


@pytest.mark.default_cases(1)
def test_threads_reserve_exactly_to_the_cap(place):
    ledger = place.open(BUDGET)

    def reserve(thread):
        made = 0
        for number in range(3):
            try:
                ledger.reserve(PureDP(0.05), delta=0, purposes={"label": 1}, key=f"{thread}-{number}")
                made += 1
            except BudgetExhausted:
                pass
        return made

    assert sum(together(reserve)) == 20
    assert ledger.left.epsilon == 0.0
    ledger.verify()


@pytest.mark.default_cases(1)
def test_a_refusal_says_what_its_own_thread_was_charged_whoever_committed_it(place):
    """One thread decides the requests of all that wait: a refusal must not say what that one was charged."""
    ledger = place.open(BUDGET)

    def ask(thread, number):
        with act():
            if thread % 2:
                ledger.reserve(PureDP(0.01), delta=0, purposes={"label": 1}, key=f"{thread}-{number}")
            ledger.reserve(PureDP(2.0), delta=0, purposes={"label": 1}, key=f"too much {thread}-{number}")

    def refused(thread):
        words = []
        for number in range(3):
            with pytest.raises(BudgetExhausted) as refusal:
                ask(thread, number)
            words.append(refusal.value.charged)
        return words

    assert together(refused) == [[STANDS if thread % 2 else NOTHING_CHARGED] * 3 for thread in range(THREADS)]


def test_one_key_from_many_threads_is_one_reservation(place):
    ledger = place.open(BUDGET)
    made = together(lambda _: ledger.reserve(PureDP(0.5), delta=0, purposes={"label": 1}, key="same").sequence)
    assert len(set(made)) == 1
    assert ledger.spent.epsilon == 0.5


def test_waiting_charges_share_a_commit(on_disk):
    ledger, reservation = opened(on_disk, 1000)
    store, before = ledger._store, ledger.head.sequence
    commits = store.commits
    on_disk.at = lambda name: time.sleep(0.002) if name == "committed" else None  # a disk that takes its time
    together(lambda _: [reservation.draw("label") for _ in range(8)])
    entries = ledger.head.sequence - before
    assert entries == THREADS * 8
    assert store.commits - commits <= entries / 3  # one by one it would be as many


def test_a_failed_commit_fails_every_request_in_it(on_disk):
    ledger, reservation = opened(on_disk, 1000)
    failing = threading.Event()

    def at(name):
        if name == "begun":
            time.sleep(0.01)
            if failing.is_set():
                raise OSError("no more")

    on_disk.at = at

    def ask(thread):
        drawn = 0
        while drawn < 50:
            try:
                reservation.draw("label")
            except LedgerIntegrityError:
                return drawn
            drawn += 1
            if thread == 0 and drawn == 3:
                failing.set()
        return drawn

    drawn = sum(together(ask))
    assert not ledger.healthy
    on_disk.close()
    on_disk.at = lambda _: None
    with on_disk.open(BUDGET) as ledger:
        assert 1000 - ledger.reservations()[0].remaining("label") == drawn


def test_what_is_read_is_on_stable_storage(on_disk):
    """While a commit is under way, a reader waits: nobody sees an answer that a crash could take back."""
    _, reservation = opened(on_disk, 10)
    block = reservation.draw("label")
    inside, durable, seen = threading.Event(), threading.Event(), []

    def at(name):
        if name == "inserted":
            inside.set()
            time.sleep(0.05)
        if name == "anchored":
            durable.set()

    on_disk.at = at
    writer = threading.Thread(target=reservation.store, args=(block, [1]))
    writer.start()
    assert inside.wait(60)
    seen.append((reservation.blocks("label")[0].status, durable.is_set()))
    writer.join()
    assert seen == [("stored", True)]


@pytest.mark.parametrize("repeat", range(3))
def test_closing_while_others_write_leaves_a_sound_chain(on_disk, repeat):
    ledger, reservation = opened(on_disk, 10_000)

    def work(thread):
        if thread == 0:
            time.sleep(0.01)
            ledger.close()
            return 0
        drawn = 0
        try:
            while True:
                reservation.draw("label")
                drawn += 1
        except PreconditionFailed:
            return drawn

    drawn = sum(together(work))
    with on_disk.open(BUDGET) as again:
        again.verify()
        assert 10_000 - again.reservations()[0].remaining("label") == drawn
