"""A service that is killed while many ask: what any client was told is in the ledger, and nothing is drawn twice."""

import json
import random
import threading
import time

import httpx
import pytest
from benchmarks.service import WithoutLedger
from tests.service.conftest import rows, running
from tests.service.processes import serving

from quorate.ledger import Ledger
from quorate.service.keys import KeyFile

CLIENTS = 8


def ask_until_it_dies(port, token, points, told):
    """Ask for point after point, and keep each answer of the ensemble that came back whole."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {token}"}) as http:
        for point in points:
            try:
                answer = http.post("/v1/label", json={"row": point}, timeout=120).json()["answer"]
            except httpx.TransportError:
                return
            if answer["by"] == "ensemble":
                before = told.setdefault(json.dumps(point), json.dumps(answer))
                assert before == json.dumps(answer)  # the same answer as before a restart


def killed(root, kills, seed):
    """Kill the service so many times while clients ask; what they were told must be what the ledger holds."""
    rng = random.Random(seed)
    token, _ = KeyFile(root / "private").create("a test", ["ask"])
    points, told = rows(400, seed=seed), dict[str, str]()
    for _ in range(kills):
        with serving(root) as server:
            threads = [
                threading.Thread(target=ask_until_it_dies, args=(server.port, token, rng.sample(points, 60), told))
                for _ in range(CLIENTS)
            ]
            for thread in threads:
                thread.start()
            enough, until = len(told) + rng.randrange(1, 20), time.monotonic() + 60
            while len(told) < enough and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.03))
            server.process.kill()
            for thread in threads:
                thread.join(60)
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        [reservation] = ledger.reservations()
        blocks = reservation.blocks("online answer")
        stored = sum(len(block.answers["queries"]) for block in blocks if block.answers is not None)
        drawn = sum(block.count for block in blocks)
        queries = [query for block in blocks if block.answers is not None for query in block.answers["queries"]]
    assert len(told) <= stored <= drawn <= reservation.purposes["online answer"]
    assert len(set(queries)) == len(queries)  # no query was answered twice
    assert told
    assert is_held(root, told)


def is_held(root, told):
    """Whether what clients were told is what the ledger holds: it is told again, and free."""
    with running(root) as run:
        again = run.post({"rows": [json.loads(point) for point in told]}).json()
    return [json.dumps(point) for point in again["answers"]] == list(told.values()) and again["charged"] == 0


@pytest.mark.heavy
def test_a_service_that_tells_without_its_ledger_is_caught(own_run):
    root = own_run(**{"mechanism.name": "GaussianNoisyMax"})
    for cheats in (False, True):
        told = {}
        with running(root) as run:
            if cheats:
                answers = run.service.served.answers
                answers._online = WithoutLedger(answers._online)
            for point in rows(3, seed=3 + cheats):
                told[json.dumps(point)] = json.dumps(run.post({"row": point}).json()["answer"])
        assert is_held(root, told) is not cheats


@pytest.mark.heavy
def test_a_killed_service_told_nothing_that_is_not_in_its_ledger(own_run):
    killed(own_run(**{"mechanism.online_answers": 300}), kills=1, seed=1)


@pytest.mark.faults
def test_and_so_twenty_times(own_run):
    killed(own_run(**{"mechanism.online_answers": 3_000}), kills=20, seed=2)
