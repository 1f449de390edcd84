"""What an operator does in the life of a service: the next version, a backup put back, another key."""

import json
import shutil
import tarfile
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.conftest import rows
from tests.service.processes import serving

from quorate.ledger import Ledger
from quorate.service.keys import KeyFile

ARCHIVES = Path(__file__).parents[1] / "golden" / "version_0_2_dev0"
pytestmark = pytest.mark.heavy


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
