"""The life of a service: the next version, a backup put back, another key, kills, and two services on one ledger."""

import json
import random
import shutil
import tarfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.service import WithoutLedger
from tests.ledger import postgres_server
from tests.service.conftest import online, rows, running, runs
from tests.service.processes import serving

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.batch import load_run
from quorate.folder.folder import RunFolder
from quorate.folder.methods import execute
from quorate.ledger import Budget, Ledger
from quorate.service import Client
from quorate.service.keys import KeyFile

ARCHIVES = Path(__file__).parents[1] / "golden" / "version_0_2_dev0"
pytestmark = pytest.mark.mostly_heavy
server = postgres_server.server


def ask(server, token, row):
    headers = {"authorization": f"Bearer {token}"}
    response = httpx.post(f"http://127.0.0.1:{server.port}/v1/label", json={"row": row}, headers=headers, timeout=120)
    assert response.status_code == 200, response.text
    return response.json()


def by_ensemble(answers):
    return sum(answer["answer"]["by"] == "ensemble" for answer in answers)


def test_a_folder_that_an_earlier_version_served_is_served_on(tmp_path):
    """The archive was run and served by an earlier version: 8 answers kept back, a key with a quota of 6, 3 asked."""
    with tarfile.open(ARCHIVES / "served.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / "run"
    (root / "private").chmod(0o700)
    before = json.loads((root / "told.json").read_text())
    token = before["token"]
    with Ledger(root / "ledger.db") as ledger:
        entries = ledger.export()
    ages = iter(range(21, 90, 5))
    with serving(root) as server:
        told = [ask(server, token, row) for row in before["rows"]]
        assert [[answer["answer"]["label"], answer["answer"]["status"]] for answer in told] == before["answers"]
        assert [answer["charged"] for answer in told] == [0, 0, 0]
        new = [ask(server, token, {"age": next(ages), "bmi": 31.5, "ward": "north"}) for _ in range(4)]
        assert by_ensemble(new) == 3  # the key's own quota of 6
        other, _ = KeyFile(root / "private").create("ward 8", ["ask"])
        more = [ask(server, other, {"age": next(ages), "bmi": 31.5, "ward": "south"}) for _ in range(4)]
        assert by_ensemble(more) == 2  # the cap of 8
        assert server.stop() == 0
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        assert ledger.export()[: len(entries)] == entries
        [reservation] = ledger.reservations()
        assert reservation.remaining("online answer") == 0


def put_back(root, backup):
    """Put a ledger's files back from a backup of the folder, and nothing else."""
    for file in root.glob("ledger.db*"):
        file.unlink()
    for file in backup.glob("ledger.db*"):
        shutil.copy2(file, root / file.name)


def test_an_older_backup_is_refused_and_the_newest_one_serves_on(own_run, cli, tmp_path):
    root, (old, new) = own_run(), (tmp_path / name for name in ("old", "new"))
    token, _ = KeyFile(root / "private").create("a test", ["ask"])
    points = rows(5)
    for backup, number in ((old, 0), (new, 2)):
        with serving(root) as server:
            receipt = [ask(server, token, point)["receipt"] for point in points[number : number + 2]][-1]
            assert server.stop() == 0
        shutil.copytree(root, backup)
    put_back(root, old)
    code, _, err = cli("serve", root, "--port", 0)
    assert (code, "older than private/ledger.head" in err) == (5, True)
    put_back(root, new)
    with serving(root) as server:
        assert [ask(server, token, point)["charged"] for point in points[:5]] == [0, 0, 0, 0, 1]
        assert server.stop() == 0
    # The whole folder put back: nothing in it tells, and any client's receipt does.
    note = tmp_path / "receipt.json"
    note.write_text(json.dumps(receipt))
    assert cli("ledger", "verify", new, "--receipt", note)[0] == 0
    assert cli("ledger", "verify", old)[0] == 0
    code, _, err = cli("ledger", "verify", old, "--receipt", note)
    assert (code, "an older or another ledger" in err) == (5, True)


def test_a_key_is_changed_for_another_one_without_a_refusal(own_run, cli):
    root = own_run()
    _, first, _ = cli("keys", "create", root, "--name", "ward 7", "--scope", "ask")
    held, ended, met = [first.strip()], threading.Event(), list[tuple[str, dict[str, Any]]]()
    points = rows(40)
    with serving(root) as server:

        def client():
            number = 0
            while not ended.is_set():
                token = held[0]  # as a client that reads its key anew for each request
                met.append((token, ask(server, token, points[number % len(points)])))
                number += 1

        asking = threading.Thread(target=client)
        asking.start()

        def go_on(requests=5):
            enough = len(met) + requests
            while len(met) < enough:
                assert asking.is_alive(), "a request was refused"

        go_on()
        _, second, _ = cli("keys", "create", root, "--name", "ward 7, from May", "--scope", "ask")
        go_on()  # both hold
        held[0] = second.strip()
        go_on()
        assert cli("keys", "revoke", root, first.split("_")[1])[0] == 0
        go_on()
        ended.set()
        asking.join(60)
        refused = httpx.post(
            f"http://127.0.0.1:{server.port}/v1/label",
            json={"row": points[0]},
            headers={"authorization": f"Bearer {first.strip()}"},
        )
        assert (refused.status_code, refused.json()["code"]) == (401, "key-refused")
        assert server.stop() == 0
    assert {token for token, _ in met} == {first.strip(), second.strip()}
    answers = {json.dumps(points[number % len(points)]): answer["answer"] for number, (_, answer) in enumerate(met)}
    assert all(
        answers[json.dumps(points[number % len(points)])] == answer["answer"] for number, (_, answer) in enumerate(met)
    )


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


def is_held(root, told):
    """Whether what clients were told is what the ledger holds: it is told again, and free."""
    with running(root) as run:
        again = run.post({"rows": [json.loads(point) for point in told]}).json()
    return [json.dumps(point) for point in again["answers"]] == list(told.values()) and again["charged"] == 0


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


@pytest.mark.parametrize(
    ("kept", "kills"),
    [(300, 1), pytest.param(3_000, 20, marks=pytest.mark.faults)],
)
def test_a_killed_service_told_nothing_that_is_not_in_its_ledger(own_run, kept, kills):
    root, rng = own_run(**{"mechanism.online_answers": kept}), random.Random(kills)
    token, _ = KeyFile(root / "private").create("a test", ["ask"])
    points, told = rows(400, seed=kills), dict[str, str]()
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
        answered, drawn = online(ledger)
    assert 0 < len(told) <= answered <= drawn <= kept
    assert is_held(root, told)


KEPT = 12


@pytest.fixture(scope="module")
def made(server, tmp_path_factory):
    """A finished run whose ledger is on the server; no test changes its folder."""
    root = runs.write_run(tmp_path_factory.mktemp("shared") / "run", **{"mechanism.online_answers": KEPT})
    url = server.url()
    (root / "ledger.url").write_text(f"{url}\n")
    execute(load_run(root), command="quorate run")
    return root, url


@pytest.fixture
def copied(made, tmp_path):
    return lambda name: shutil.copytree(made[0], tmp_path / name)


@pytest.mark.heavy
def test_a_run_with_a_url_keeps_nothing_but_the_key_in_its_folder(made, cli):
    root, url = made
    beside = {file.name for file in root.iterdir() if file.name.startswith("ledger")}
    assert beside == {"ledger.url", "ledger.db.key"}
    assert f"{KEPT} online answers" in cli("status", root)[1]
    for place in (root, url):
        code, out, _ = cli("ledger", "verify", place)
        assert (code, out.startswith("verified: ")) == (0, True)
    before = cli("ledger", "verify", root)[1]
    execute(load_run(root), command="quorate run")  # it is finished: charged once
    assert cli("ledger", "verify", root)[1] == before


@pytest.mark.heavy
def test_two_services_on_one_ledger_give_exactly_the_cap(made, tmp_path):
    token, _ = KeyFile(made[0] / "private").create("a test", ["ask", "read"])
    roots = [shutil.copytree(made[0], tmp_path / name) for name in ("one", "two")]
    points = rows(2 * KEPT)
    with serving(roots[0]) as one, serving(roots[1]) as two:
        urls = [f"http://127.0.0.1:{each.port}" for each in (one, two)]

        def ask(number):
            with Client(urls[number % 2], token) as client:
                label = client.label(points[number])
                return label.by, label.label

        with ThreadPoolExecutor(len(points)) as pool:
            told = list(pool.map(ask, range(len(points))))
        assert Counter(by for by, _ in told) == {"ensemble": KEPT, "student": KEPT}
        for url in urls:
            with Client(url, token) as client:
                again = client.label_many(points)
                assert client.answers_left == 0
            # What one of them answered, the other one tells, and charges nothing.
            assert [(each.by, each.label) for each in again] == told
        assert one.stop() == two.stop() == 0
    with Ledger(made[1]) as ledger:
        ledger.verify(prices=True)
        [reservation] = ledger.reservations()
        blocks = reservation.blocks("online answer")
        assert reservation.remaining("online answer") == 0
        assert sum(block.count for block in blocks) == KEPT
        assert {block.status for block in blocks} == {"stored"}
        assert len({entry.session for entry in ledger.entries() if entry.kind == "drawn"}) >= 3  # the run, and both


@pytest.mark.heavy
def test_a_folder_has_one_ledger(copied):
    root = copied("both")
    with Ledger(root.with_name("ledger.db"), budget=Budget(1.0, 1e-5)):
        pass
    for ending in ("", ".anchor"):
        root.with_name(f"ledger.db{ending}").rename(root / f"ledger.db{ending}")
    with pytest.raises(PreconditionFailed, match="a run has one ledger"):
        load_run(root)


@pytest.mark.parametrize("text", ["", "ledger.db", "postgresql://a\npostgresql://b"])
def test_what_is_no_url_is_refused(copied, text):
    root = copied("wrong")
    (root / "ledger.url").write_text(text)
    with pytest.raises(InvalidParameter, match="in one line"):
        load_run(root)


@pytest.mark.heavy
def test_where_a_run_has_results_a_missing_ledger_is_not_made_anew(copied, server, cli):
    root, elsewhere = copied("elsewhere"), server.url()
    (root / "ledger.url").write_text(elsewhere)
    for command in (("run", root), ("status", root), ("ledger", "show", root), ("serve", root)):
        code, _, said = cli(*command)
        assert code == 4, (command, said)
        assert "there is no ledger" in said
        assert len(said.strip().splitlines()) <= 3
    with pytest.raises(PreconditionFailed):
        Ledger(elsewhere)


def test_without_its_url_the_ledger_is_missed(copied, cli):
    root = copied("without")
    (root / "ledger.url").unlink()
    assert RunFolder(root).has_ledger
    code, _, said = cli("run", root)
    assert code == 5
    assert "are missing, but were there" in said
