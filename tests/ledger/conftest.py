"""Stores under test, a clock that ticks by itself, and a nursery of processes that may be killed."""

import errno
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.ledger import postgres_server

from quorate.accounting import PureDP
from quorate.ledger import Budget, Ledger, MemoryStore, SqliteStore
from quorate.ledger.postgres import PostgresStore


class Clock:
    """Each reading is a second after the one before."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now


class Place:
    """Somewhere a ledger can be opened, closed and opened again.

    `kind`: the store's, as its facts say. `steps`: of a commit, after each of which it can be made to fail. `facts`:
    what a process says of the store when it begins to write.
    """

    kind, steps, facts = "memory", (), ("store",)

    def __init__(self, folder, fixture=None):
        self.clock, self.at, self.opened = Clock(), lambda _: None, []
        self.prepare(folder, fixture)

    def prepare(self, folder, fixture):
        self.memory = MemoryStore()

    def store(self, *, create):
        return self.memory

    def open(self, budget=None, known=None):
        store = self.store(create=budget is not None)
        ledger = Ledger(budget=budget, clock=self.clock, store=store, known=known)
        self.opened.append(ledger)
        return ledger

    def fail_at(self, point):
        """Let the disk fail, or the connection be lost, after this step of a commit."""

        def at(name):
            if name == point:
                self.fail()

        self.at = at

    def close(self):
        while self.opened:
            self.opened.pop().close()


class SqlitePlace(Place):
    kind, steps = "sqlite", ("begun", "inserted", "committed", "anchor written", "anchored")
    facts = ("store", "sqlite")

    def prepare(self, folder, fixture):
        self.path = folder / "ledger.db"

    def store(self, *, create):
        return SqliteStore(self.path, create=create, at=lambda name: self.at(name))

    def fail(self):
        raise OSError(errno.ENOSPC, "No space left")


class PostgresPlace(Place):
    kind, steps = "postgresql", ("begun", "inserted", "anchored", "committed")
    facts = ("store", "postgresql", "cluster", "timeline")

    def prepare(self, folder, fixture):
        self.server = fixture("server")
        self.url = self.server.url()

    def store(self, *, create):
        return PostgresStore(self.url, create=create, at=lambda name: self.at(name))

    def fail(self):
        self.server.sql(f"SELECT pg_terminate_backend({self.opened[-1]._store._connection.info.backend_pid})")


STORES = {place.kind: place for place in (Place, SqlitePlace, PostgresPlace)}


server = postgres_server.server


@pytest.fixture(params=list(STORES))
def place(request, tmp_path):
    """Run the test with each store: the contract suite."""
    place = STORES[request.param](tmp_path, request.getfixturevalue)
    yield place
    place.close()


def reserved(ledger, count=10, key="labels", **more):
    return ledger.reserve(PureDP(0.25), delta=0, purposes={"label": count, **more}, key=key)


@pytest.fixture
def ledger(place):
    return place.open(Budget(1.0, 1e-5))


@pytest.fixture
def reservation(ledger):
    return reserved(ledger)


@pytest.fixture
def on_disk(tmp_path):
    place = SqlitePlace(tmp_path)
    yield place
    place.close()


def used_and_closed(ledger):
    """Make a few entries: of ten answers four are drawn and stored."""
    with ledger:
        ledger.bind("a")
        reservation = reserved(ledger)
        for answers in ([1, 0], [2, 1]):
            reservation.store(reservation.draw("label", 2), answers)


@pytest.fixture
def path(on_disk):
    """A closed ledger with a few entries."""
    used_and_closed(on_disk.open(Budget(1.0, 1e-5)))
    return on_disk.path


@pytest.fixture
def url(server):
    """The same on a server."""
    url = server.url()
    used_and_closed(Ledger(url, budget=Budget(1.0, 1e-5)))
    return url


@contextmanager
def a_nursery(**environment):
    """A process that forks children to order, so that the libraries are imported once."""
    script, environ = Path(__file__).with_name("nursery.py"), {**os.environ, **environment}
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as process:

        def order(**what):
            process.stdin.write(json.dumps(what) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield order
        process.stdin.close()


@pytest.fixture(scope="session")
def nursery():
    with a_nursery() as order:
        yield order


@pytest.fixture(scope="session")
def failing_nursery(tmp_path_factory):
    """A process that forks children whose disk fails."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: writes and syncs cannot be made to fail")
    library = tmp_path_factory.mktemp("faults") / "storage_faults.so"
    source = Path(__file__).parent / "faults" / "storage_faults.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    with a_nursery(LD_PRELOAD=str(library)) as order:
        yield order
