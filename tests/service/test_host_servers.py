"""Real servers under the faults of a host, one after the other: released ⊆ charged, no bare 500, back to work."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.ledger.postgres_server import running as database
from tests.ledger.postgres_server import why_not
from tests.service.conftest import online, rows, runs
from tests.service.processes import CLI, LISTENING, free_port

from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.ledger import Ledger
from quorate.ledger.ledger import store_at
from quorate.service.keys import KeyFile

pytestmark = pytest.mark.faults
KEPT = 600


@dataclass
class Asker:
    """A client that keeps all that it was told; every refusal must be a problem that says what was charged."""

    token: str
    points: list[dict[str, Any]] = field(default_factory=lambda: rows(4 * KEPT, seed=11))
    told: dict[str, str] = field(default_factory=dict)
    charged: int = 0
    doubtful: int = 0
    seen: list[tuple[int, str]] = field(default_factory=list)

    def ask(self, port, *, timeout=60):
        point = self.points.pop()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=timeout) as http:
            headers = {"authorization": f"Bearer {self.token}"}
            response = http.post("/v1/label", json={"row": point}, headers=headers)
        return self.take(point, response)

    def take(self, point, response):
        body = response.json()
        if response.status_code == 200:
            assert body["answer"]["by"] == "ensemble"
            self.told[json.dumps(point)] = json.dumps(body["answer"])
            self.charged += body["charged"]
            code = "answered"
        else:
            assert response.headers["content-type"] == "application/problem+json"
            self.doubtful += bool(body["charged"])
            code = body["code"]
        self.seen.append((response.status_code, code))
        return response.status_code, code

    def until_answered(self, port, seconds=20):
        """Ask until a point is answered: the service is back at work, and no person was needed."""
        until = time.monotonic() + seconds
        while self.ask(port)[1] != "answered":
            assert time.monotonic() < until
            time.sleep(0.2)

    def check(self, ledger):
        """Hold what was told against the ledger: all of it is charged, and nothing was answered twice."""
        answered, drawn = online(ledger)
        assert len(self.told) <= self.charged <= answered <= drawn <= self.charged + self.doubtful


@dataclass
class Serving:
    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def ready(self):
        return httpx.get(f"http://127.0.0.1:{self.port}/readyz", timeout=60).status_code

    def stop(self, seconds=60):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def lines(self, event):
        """Return what the log says of an event; each of its lines is JSON."""
        said = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in map(json.loads, said) if line["event"] == event]


@contextmanager
def serving(root, *, soft=None, port=0, stderr=None, **how):
    """Serve a run in a process of its own; `stderr` is a place of the log that is not a file of the test."""
    log = root.with_name(f"{root.name}.log")
    place = log.open("wb") if stderr is None else stderr

    def limited():
        if soft is not None:
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft if "hard" in how else hard))

    environment = {**os.environ, **{name: value for name, value in how.items() if name.isupper()}}
    command = [sys.executable, "-c", CLI, "serve", str(root), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=place, preexec_fn=limited, env=environment)
    try:
        if stderr is None:
            place.close()
        until = time.monotonic() + 120
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            if stderr is None and (found := LISTENING.search(log.read_text())):
                port = int(found[1])
                break
            if port and _listens(port):
                break
            time.sleep(0.05)
        yield Serving(process, port, log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(60)


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = runs.write_run(tmp_path_factory.mktemp("host") / "run", **{"mechanism.online_answers": KEPT})
    execute(load_run(root), command="quorate run")
    return root


@pytest.fixture
def run(made, tmp_path):
    root = shutil.copytree(made, tmp_path / "run")
    token, _ = KeyFile(root / "private").create("a test", ["ask", "read", "admin"])
    return root, Asker(token)


def test_a_service_survives_the_faults_of_its_host_one_after_the_other(run):
    root, asker = run
    dropped_connections(root, asker)
    unread_log(root, asker)
    full_disk(root, asker)
    assert all(status != 500 for status, _ in asker.seen)
    with Ledger(root / "ledger.db") as ledger:
        asker.check(ledger)


def dropped_connections(root, asker):
    """1,500 connections that say nothing, where 1,024 files may be open: who was there goes on, and then all."""
    for more in ({}, {"hard": "yes"}):
        with serving(root, soft=1_024, QUORATE_SERVE_BODY_SECONDS="3", **more) as server, ExitStack() as stack:
            known = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=60))
            headers = {"authorization": f"Bearer {asker.token}"}
            point = asker.points.pop()
            assert asker.take(point, known.post("/v1/label", json={"row": point}, headers=headers))[0] == 200
            silent = []
            for _ in range(1_500):
                connection = stack.enter_context(socket.socket())
                connection.setblocking(False)
                connection.connect_ex(("127.0.0.1", server.port))
                silent.append(connection)
            time.sleep(0.5)
            for _ in range(3):
                point = asker.points.pop()
                assert asker.take(point, known.post("/v1/label", json={"row": point}, headers=headers))[0] == 200
            asker.until_answered(server.port, 60)  # the silent ones are ended, though nobody closed them
            assert server.ready() == 200
            for each in silent:
                each.close()
            asker.until_answered(server.port)
            assert server.stop() == 0
            assert all(line.startswith(("{", "serving", "left")) for line in server.log.read_text().splitlines())


def unread_log(root, asker):
    """A log that nobody reads: answers go on beyond what pipe and queue hold, and what is dropped is counted."""
    reader, writer = os.pipe()
    port = free_port()
    with serving(root, stderr=writer, port=port) as server:
        os.close(writer)
        headers = {"authorization": f"Bearer {asker.token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as http:
            point = asker.points.pop()
            assert asker.take(point, http.post("/v1/label", json={"row": point}))[0] == 200
            fill_log(port)
            point = asker.points.pop()
            assert asker.take(point, http.post("/v1/label", json={"row": point}))[0] == 200
            assert http.get("/livez").status_code == http.get("/readyz").status_code == 200
            text = http.get("/metrics").text
        dropped = int(text.split("\nquorate_log_dropped_total ")[1].split()[0])
        assert dropped > 0
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 40
    os.close(reader)


def fill_log(port):
    """Make lines of the log, more than wait for it: 11,000 requests of one connection, a hundred at a time."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for _ in range(110):
            connection.sendall(b"GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n" * 100)
            answered = b""
            while answered.count(b"HTTP/1.1 404") < 100 or answered.count(b'"charged": false}') < 100:
                answered += connection.recv(1 << 16)


def full_disk(root, asker):
    """A ledger whose disk is full: nothing is answered until a start, and the log says why."""
    with serving(root, PYTHONPATH=_with_a_small_disk(root.parent)) as server:
        codes = [asker.ask(server.port)[1] for _ in range(20)]
        assert codes[-1] == "unhealthy"
        assert server.ready() == 503
        [failed] = server.lines("failed")
        assert "SQLITE_FULL: the disk is full" in failed["why"]
        server.stop()
    with serving(root) as server:
        asker.until_answered(server.port)
        assert server.stop() == 0


def _with_a_small_disk(folder):
    """Make SQLite's file as large as it may get, in the process that is started with this path."""
    place = folder / "small"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import quorate.ledger.sqlite as s\n"
        "real = s.SqliteStore.begin\n"
        "def begin(self, after):\n"
        "    pages = self._connection.execute('PRAGMA page_count').fetchone()[0]\n"
        "    if self.commits == 4:\n"
        "        self._connection.execute(f'PRAGMA max_page_count={pages}')\n"
        "    return real(self, after)\n"
        "s.SqliteStore.begin = begin\n"
    )
    return str(place)


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_a_service_on_postgresql_survives_the_faults_of_its_database(tmp_path):
    with database() as server:
        root = runs.write_run(tmp_path / "run", **{"mechanism.online_answers": KEPT})
        url = server.url()
        (root / "ledger.url").write_text(f"{url}\n")
        execute(load_run(root), command="quorate run")
        token, _ = KeyFile(root / "private").create("a test", ["ask", "read", "admin"])
        asker = Asker(token)
        frozen_database(root, asker, server)
        stopped_database(root, asker, server)
        assert all(status != 500 for status, _ in asker.seen)
        with Ledger(store=store_at(url, create=False)) as ledger:
            asker.check(ledger)


def frozen_database(root, asker, database):
    """The database says nothing any more: 503 within half a minute, and a service that is told to stop ends."""
    with serving(root) as server:
        assert asker.ask(server.port)[0] == 200
        backends = [
            pid for [pid] in database.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'quorate'")
        ]
        for pid in backends:
            os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            assert asker.ask(server.port) == (503, "unhealthy")
            assert time.monotonic() - began < 40
            assert "did not answer in time" in server.lines("failed")[0]["why"]
            began = time.monotonic()
            server.stop()
            assert time.monotonic() - began < 40
        finally:
            for pid in backends:
                os.kill(pid, signal.SIGCONT)
    with serving(root) as server:
        asker.until_answered(server.port)
        assert server.stop() == 0


def stopped_database(root, asker, database):
    """The database is stopped: nothing is answered until a start, and the log tells its code."""
    with serving(root) as server:
        assert asker.ask(server.port)[0] == 200
        database.stop("fast")
        assert asker.ask(server.port) == (503, "unhealthy")
        assert "SQLSTATE 57P01: the database is shutting down" in server.lines("failed")[0]["why"]
        assert "terminating connection" not in server.log.read_text()
        server.stop()
        database.start()
    with serving(root) as server:
        asker.until_answered(server.port)
        assert server.stop() == 0
