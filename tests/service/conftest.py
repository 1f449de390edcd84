"""A finished run of the small hospital, served in this process, and its keys."""

import shutil
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn
from tests.folder import conftest as runs

from quorate.accounting import Repeated
from quorate.folder.folder import RunFolder
from quorate.labelling import Memo, OnlineAnswers
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import GaussianNoisyMax
from quorate.noise import SeededNoise
from quorate.service.app import Service, create_app
from quorate.service.features import Column, Features
from quorate.service.keys import KeyFile
from quorate.service.open_run import opened
from quorate.service.records import Records
from quorate.service.settings import ServiceSettings
from quorate.service.votes import EnsembleAnswers
from quorate.types import Secret

cli, finished_runs, visits = runs.cli, runs.finished_runs, runs.visits

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
GOOD = {"age": 41, "bmi": 24.5, "ward": "north"}
MARK = "zqxmark"  # stands in hostile bodies, and must come back in nothing
PLACES = Features((Column("place", "number", nullable=False),), named=True, sparse=False)


@pytest.fixture(scope="session")
def finished(finished_runs):
    """Return ``finished(**{"section.key": value})``: a finished run that no test may change; 12 answers are kept."""
    kept = {"mechanism.online_answers": 12}
    return lambda **changes: finished_runs(**changes if changes.get("method.by") == "direct" else kept | changes)


@pytest.fixture
def own_run(finished, tmp_path):
    """Return ``own_run(**changes)``: a copy for this test alone."""
    return lambda **changes: shutil.copytree(finished(**changes), tmp_path / "run")


@dataclass
class Running:
    root: Path
    service: Service
    http: httpx.Client
    token: str
    lines: list[str] = field(default_factory=list)

    def headers(self, **more):
        return {"authorization": f"Bearer {self.token}", **more}

    def post(self, body, **more):
        if isinstance(body, bytes):
            headers = {"content-type": "application/json", **more}
            return self.http.post("/v1/label", content=body, headers=self.headers(**headers))
        return self.http.post("/v1/label", json=body, headers=self.headers(**more))

    def get(self, path):
        return self.http.get(path, headers=self.headers())

    @property
    def left(self):
        return self.service.served.answers.standing.answers_left

    @property
    def entries(self):
        return self.service.served.answers.standing.entries


@contextmanager
def running(root, *, scopes=("ask", "read", "admin"), **settings):
    keys = KeyFile(RunFolder(root).private)
    token, _ = keys.create("a test", scopes)
    chosen = ServiceSettings(**settings)
    lines = []
    with opened(root, chosen, clock=lambda: NOW) as served:
        service = Service(served, keys, chosen, Records(write=lines.append, clock=lambda: NOW))
        with listening(create_app(service)) as url, httpx.Client(base_url=url, timeout=120) as http:
            yield Running(root, service, http, token, lines)


@contextmanager
def listening(app, **how):
    """Have an application listen on a port of this machine, in a thread; return its address."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False, ws="none", **how)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 120
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < until
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


@pytest.fixture
def serve(own_run):
    """Return ``serve(run=None, **settings)``: a service that ends with the test; of a fresh run where none is given."""
    with ExitStack() as stack:
        yield lambda run=None, **settings: stack.enter_context(running(run or own_run(), **settings))


def online(ledger):
    """How many queries a ledger says were answered, none of them twice, and how many were drawn; all is paid for."""
    ledger.verify(prices=True)
    [reservation] = ledger.reservations()
    blocks = reservation.blocks("online answer")
    queries = [query for block in blocks if block.answers is not None for query in block.answers["queries"]]
    drawn = sum(block.count for block in blocks)
    assert len(set(queries)) == len(queries) <= drawn <= reservation.purposes["online answer"]
    return len(queries), drawn


def rows(n, seed=7):
    frame = visits(n, seed=seed)[0]
    return frame.to_dicts()


def sure(places):
    """Votes of sixty teachers who say yes to every place."""
    return Secret(np.tile([0, 60], (len(places), 1)))


def no(places):
    """A student who says no to every place."""
    return ["no"] * len(places)


def ensemble(left, ledger=None, *, votes=sure, student=no, seed=0, **how):
    """An ensemble that has so many answers about places."""
    ledger, mechanism = ledger or Ledger(budget=Budget(40.0, 1e-5)), GaussianNoisyMax(sigma=4.0, form="binary")
    event, purposes = Repeated(mechanism.event, left), {"online answer": left}
    reservation = ledger.reserve(event, delta=1e-5, purposes=purposes, key="kept back")
    online = OnlineAnswers(votes, mechanism, reservation, SeededNoise(seed), Memo(), 2)
    return EnsembleAnswers(online, ledger, student, ("no", "yes"), PLACES, **how)
