"""The drill of a failover: the primary is killed under load, its standby takes over, and the old primary comes back."""

import random
import shutil
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

import pytest
from tests.ledger.faults.table import Line
from tests.ledger.postgres_server import running

from quorate.accounting import PureDP
from quorate.errors import QuorateError
from quorate.folder.folder import NotedHead, RunFolder
from quorate.ledger import Budget, Ledger, postgres
from quorate.ledger.postgres import PostgresStore

FAULT = "primary killed, standby promoted"
BUDGET, PURPOSE, ANSWERS, CLIENTS = Budget(1.0, 1e-5), "label", 10**6, 3
WAITING = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@dataclass
class Told:
    """What left: the numbers that noise was drawn for, and the answers that were given, by number."""

    noise: list[int] = field(default_factory=list)
    answers: list[tuple[int, int]] = field(default_factory=list)

    def answer(self, reservation):
        """Answer once more, in the order that is promised."""
        block = reservation.draw(PURPOSE)
        self.noise.append(block.first)
        answer = random.getrandbits(30)
        reservation.store(block, [answer])
        self.answers.append((block.first, answer))

    def breaches(self, url):
        """How much of it is uncharged, is not on record, or was given twice."""
        with Ledger(url) as ledger:
            ledger.verify(prices=True)
            [reservation] = ledger.reservations()
            stored = {block.first: block.answers for block in reservation.blocks(PURPOSE)}
        lost = sum(stored.get(number) != [answer] for number, answer in self.answers)
        twice = sum(len(numbers) - len(set(numbers)) for numbers in (self.noise, [first for first, _ in self.answers]))
        return lost + twice + sum(number not in stored for number in self.noise)


def opened(folder, act):
    """Open a run's ledger and act on its reservation."""
    with folder.open_ledger(BUDGET) as ledger:
        act(ledger.reserve(PureDP(0.5), delta=0, purposes={PURPOSE: ANSWERS}, key="labels"))


def folder_at(root, url):
    """The folder of a run whose ledger is at a URL."""
    folder = RunFolder(root)
    folder.make()
    (root / "ledger.url").write_text(url)
    return folder


class Pair:
    """A primary whose commits wait for its standby, a place for the next standby, and clients that go on meanwhile."""

    def __init__(self, stack, root, *, demanded=True):
        self.root, self.told, self.ended, self.stuck = root, Told(), threading.Event(), 0
        self.more = {"standby": "required"} if demanded else {}
        self.primary, self.standby, self.spare = (
            stack.enter_context(running(started=number == 0)) for number in range(3)
        )
        self.places = ",".join(str(server.folder) for server in (self.primary, self.standby, self.spare))
        self.primary.setting("synchronous_standby_names", "*")  # the standby gets it with its copy
        self.attach(self.standby)
        self.url = self.primary.url("drill", host=self.places, target_session_attrs="read-write", **self.more)
        self.folders = [folder_at(root / f"client {number}", self.url) for number in range(CLIENTS)]
        opened(self.folders[0], self.told.answer)
        self.clients = [threading.Thread(target=self.ask, args=(folder,), daemon=True) for folder in self.folders]
        for client in self.clients:
            client.start()
        stack.callback(self.end)

    def ask(self, folder):
        """Ask until the drill is over; after whatever error, open the ledger again."""

        def act(reservation):
            while not self.ended.is_set():
                self.told.answer(reservation)

        while not self.ended.is_set():
            with suppress(QuorateError):
                opened(folder, act)
            time.sleep(0.02)

    def end(self):
        """Have all clients end."""
        self.ended.set()
        for client in self.clients:
            client.join(60)
            assert not client.is_alive()

    def attach(self, server):
        """Make a standby of the primary."""
        server.copy(self.primary)
        self.primary.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")

    def cut_off(self):
        """Cut the standby off, and have what waits for it cancelled for a while; return how many waits were."""
        self.standby.setting("primary_conninfo", "")
        self.primary.until(f"SELECT count(*) > 0 {WAITING}")
        number, end = 0, time.monotonic() + 0.4
        while time.monotonic() < end:
            number += len(self.primary.rows(f"SELECT pg_cancel_backend(pid) {WAITING}"))
            time.sleep(0.01)
        return number

    def fail_over(self, name, *, cut, patience):
        """Kill the primary, promote the standby, attach the next one, and try the old primary when it comes back.

        Return how many waits were cancelled, and how often the old primary gave an answer.
        """
        late = folder_at(self.root / f"{name} late", self.url)
        opened(late, self.told.answer)
        cancelled = self.cut_off() if cut else 0
        self.primary.kill()
        self.standby.promote()
        old, self.primary, self.standby, self.spare = self.primary, self.standby, self.spare, self.primary
        self.attach(self.standby)
        before, until = len(self.told.answers), time.monotonic() + patience
        while len(self.told.answers) < before + 4 * CLIENTS and time.monotonic() < until:
            time.sleep(0.02)  # until they have found the new primary
        self.stuck += len(self.told.answers) == before
        old.restart()
        old.setting("synchronous_standby_names", "")  # the worst: it takes commits by itself
        old.until("SELECT current_setting('synchronous_standby_names') = ''")
        alone = self.primary.url("drill", host=str(old.folder), **self.more)
        (late.root / "ledger.url").write_text(alone)
        shutil.copytree(self.folders[0].root, self.root / f"{name} knows")
        taken = 0
        for folder in (late, folder_at(self.root / f"{name} knows", alone)):
            with suppress(QuorateError):
                opened(folder, self.told.answer)
                taken += 1
        old.stop("immediate")
        return cancelled, taken


def breaches_of(root, times, *, demanded=True, seed=1, patience=20.0):
    """Fail over so many times; return what was broken, how often no client went on, and what happened, in figures.

    `patience`: seconds that clients are given to find the new primary.
    """
    chance, cancelled, taken = random.Random(seed), 0, 0
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres, "_ANSWERS_WITHIN", 3.0)  # as in use, with shorter waits
        patch.setattr(postgres, "_SESSION", (*postgres._SESSION, "SET lock_timeout = '2s'"))
        servers = Pair(stack, root, demanded=demanded)
        for number in range(times):
            time.sleep(chance.uniform(0.1, 0.6))
            waits, answers = servers.fail_over(str(number), cut=number % 2 == 0, patience=patience)
            cancelled, taken = cancelled + waits, taken + answers
        servers.end()
        counted = (
            f"{len(servers.told.answers):,} answers to {CLIENTS} clients, {cancelled:,} waits for a standby cancelled, "
            f"{2 * times - taken} refusals of {2 * times} by primaries that came back"
        )
        return taken + servers.told.breaches(servers.url), servers.stuck, counted


def drill(root, times):
    """Try it; and three twins: one takes a warning for a success, two take the old primary when it comes back."""
    broken, stuck, counted = breaches_of(root / "honest", times)
    assert not stuck, "no client went on with the new primary"
    caught = 0
    forgetful = ("_note", PostgresStore, True, 2.0)  # what it answered is lost already: its clients are not waited for
    for name, kind, demanded, patience in (forgetful, ("_refuse_replaced_primary", NotedHead, False, 20.0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kind, name, lambda *_: None)
            breaks, *_ = breaches_of(root / name, 1, demanded=demanded, patience=patience)
        assert breaks, f"the check would not have noticed a ledger without {name}"
        caught += breaks
    return Line(FAULT, times, counted, broken, "takes a warning for a success; takes the old primary", caught)
