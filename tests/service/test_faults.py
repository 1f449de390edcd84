"""When the disk fails, the service fails closed; when it is started anew, a sparse vector's stage is over.

Logs and metrics tell nothing of votes: neighbours who get equal answers leave equal bytes.
"""

import errno
import os
import secrets
from datetime import UTC, datetime

import httpx
import numpy as np
import pytest
from tests.service.conftest import PLACES, ensemble, listening, rows, running
from tests.service.processes import free_port, serving

from quorate.errors import LedgerBusy, PreconditionFailed, SeededNoiseRefused
from quorate.ledger import Budget, Ledger
from quorate.service.app import Served, Service, create_app
from quorate.service.dashboard import History
from quorate.service.keys import KeyFile
from quorate.service.open_run import MANIFEST, opened
from quorate.service.records import Records
from quorate.service.settings import ServiceSettings
from quorate.types import Secret

STEPS = ("begun", "inserted", "committed", "anchor written", "anchored")


def fail_at(run, step, number, *, after=0):
    store = run.service.served.answers._ledger._store
    passed = [0]

    def at(reached):
        passed[0] += reached == step
        if reached == step and passed[0] > after:
            raise OSError(number, os.strerror(number))

    store._at = store._files.anchor._at = at


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("step", "number", "after"),
    [*((step, errno.ENOSPC, 0) for step in STEPS), ("begun", errno.EROFS, 0), ("inserted", errno.EIO, 1)],
)
def test_a_disk_that_is_full_or_read_only_stops_every_answer(own_run, step, number, after):
    root = own_run()
    with running(root) as run:
        run.post({"row": rows(1)[0]})
        fail_at(run, step, number, after=after)
        refused = run.post({"rows": rows(3)})
        assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (503, "unhealthy", True)
        assert "label" not in refused.text
        for again in ({"row": rows(1)[0]}, {"rows": rows(3)}):  # not even what was answered before
            assert run.post(again).status_code == 503
        assert run.http.get("/readyz").status_code == run.get("/v1/budget").status_code == 503
        assert run.http.get("/livez").status_code == 200
        assert "quorate_healthy 0" in run.get("/metrics").text
    with running(root) as run:  # started again, and so verified
        assert run.post({"rows": rows(3)}).status_code == 200
        assert run.left in (8 - 3, 8)  # what was drawn and lost stays counted
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)


SPARSE = {  # ε is large, so that twelve teachers who agree are far from a tie
    "mechanism.name": "StableSparseVector",
    "mechanism.cutoff": 8,
    "mechanism.queries": 2,
    "mechanism.online_answers": 12,
    "budget.epsilon": 400.0,
    "data.n_records": 400,
}


def stages_of(root):
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        stages = {block.stage for block in reservation.blocks("online answer")}
        return reservation.purposes["sparse-vector stage"] - reservation.remaining("sparse-vector stage"), stages


@pytest.mark.heavy
def test_a_restart_in_the_middle_of_a_stage_ends_it_and_charges_a_new_one(own_run):
    root = own_run(**SPARSE)
    before, _ = stages_of(root)
    points = [{"age": 94, "bmi": 20 + k / 8, "ward": "west"} for k in range(8)]  # far from a tie: no stage ends by them
    for part in (points[:4], points[4:]):
        with running(root) as run:
            told = [run.post({"row": point}).json()["answer"]["status"] for point in part]
        assert told == ["answered"] * 4
        after, begun_in = stages_of(root)
        assert after == before + 2  # the open one, and the one that a query may end, for all four points together
        before = after
    assert len(begun_in - {None}) == 2


@pytest.mark.parametrize(
    ("file", "said"), [("private/teachers-*.stage", MANIFEST), ("public/student.skops", "SHA-256")]
)
def test_files_of_teachers_or_of_a_student_that_were_changed_are_not_opened(own_run, file, said):
    root = own_run()
    with opened(root, ServiceSettings()):
        pass
    assert (root / "private" / MANIFEST).exists()
    [kept] = root.glob(file)
    kept.write_bytes(kept.read_bytes() + b" ")
    with pytest.raises(PreconditionFailed, match=said), opened(root, ServiceSettings()):
        pass


@pytest.mark.heavy
def test_what_is_not_served(finished, own_run, tmp_path):
    with pytest.raises(SeededNoiseRefused), opened(finished(**{"run.unsafe_noise_seed": 5}), ServiceSettings()):
        pass
    root = own_run()
    with running(root), pytest.raises(LedgerBusy), Ledger(root / "ledger.db"):
        pass
    (root / "public" / "facts.json").unlink()
    with pytest.raises(PreconditionFailed, match="finished"), opened(root, ServiceSettings()):
        pass


@pytest.mark.heavy
def test_the_command_serves_until_it_is_told_to_stop_and_answers_what_is_under_way(own_run):
    root = own_run()
    token, _ = KeyFile(root / "private").create("a test", ["ask", "read"])
    beside = free_port()
    with serving(root, metrics=beside) as server:
        assert "quorate_answers_left 12" in httpx.get(f"http://127.0.0.1:{beside}/metrics").text
        headers = {"authorization": f"Bearer {token}"}
        told = httpx.post(f"http://127.0.0.1:{server.port}/v1/label", json={"row": rows(1)[0]}, headers=headers)
        assert server.stop() == 0
        said = server.said.read_text()
    assert told.json()["answers_left"] == 11
    assert '"event": "stopped"' in said
    assert token not in said
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)


NOW = datetime(2026, 3, 4, tzinfo=UTC)
POINTS = 12


def left_by(counts, folder, seed, spy=lambda votes, _: votes):
    """Serve an ensemble with these votes ``(POINTS, 2)``; return the answers, and all that was logged and counted."""
    lines = []
    records = Records(write=lines.append, clock=lambda: NOW)
    ledger = Ledger(budget=Budget(40.0, 1e-5), clock=lambda: NOW)

    def votes(rows):
        return Secret(counts[rows["place"].to_numpy().astype(int)])

    served = Served(
        title="a ward",
        method="votes",
        answers=ensemble(POINTS - 2, ledger, votes=spy(votes, records), seed=seed),
        features=PLACES,
        classes=("no", "yes"),
        guarantee={},
        verified_at=NOW.isoformat(),
        history=History(NOW.isoformat()),
    )
    keys = KeyFile(folder, clock=lambda: NOW)
    token = (folder / "token").read_text()
    service = Service(served, keys, ServiceSettings(), records)
    headers = {"authorization": f"Bearer {token}"}
    with listening(create_app(service)) as url, httpx.Client(base_url=url, headers=headers) as http:
        told = [http.post("/v1/label", json={"row": {"place": place}}).json()["answer"] for place in range(POINTS)]
        told += http.post("/v1/label", json={"rows": [{"place": place} for place in range(POINTS)]}).json()["answers"]
        http.post("/v1/label", json={"row": {"place": "x"}})
        page = http.get("/").text
        metrics = http.get("/metrics").text
    return told, "\n".join([*lines, metrics, page])


def neighbours(rng):
    """Votes of 60 teachers on each point, and what they are once one teacher has changed its mind everywhere."""
    first = rng.integers(5, 55, POINTS)
    counts = np.stack([first, 60 - first], axis=1).astype(np.int64)
    other = counts + np.where(rng.random(POINTS) < 0.5, 1, -1)[:, np.newaxis] * np.array([1, -1])
    return counts, other


@pytest.fixture
def folder(tmp_path, monkeypatch):
    token, _ = KeyFile(tmp_path, clock=lambda: NOW).create("a test", ["ask", "admin"])
    (tmp_path / "token").write_text(token)
    monkeypatch.setattr(secrets, "token_hex", lambda n: "0" * 2 * n)  # the name of a ledger, which its hashes hold
    return tmp_path


@pytest.mark.heavy
def test_equal_answers_leave_equal_logs_metrics_and_pages(folder):
    equal = 0
    for seed in range(6):
        one, other = (left_by(counts, folder, seed) for counts in neighbours(np.random.default_rng(seed)))
        if one[0] == other[0]:
            equal += 1
            assert one[1] == other[1]
            assert '"client"' in one[1]
    assert equal >= 3  # with noise of 4 votes, one vote seldom decides


def _logs_margins(votes, records):
    def counted(rows):
        found = votes(rows)
        records.event("answered", margin=int(np.abs(np.diff(found.reveal())).sum()))
        return found

    return counted


def _counts_agreement(votes, records):
    def counted(rows):
        found = votes(rows)
        records.points["ensemble", f"agreed by {int(found.reveal().max())}"] += 1
        return found

    return counted


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("spy", [_logs_margins, _counts_agreement])
def test_a_service_that_tells_of_votes_is_caught(folder, spy):
    for seed in range(6):
        one, other = (left_by(counts, folder, seed, spy) for counts in neighbours(np.random.default_rng(seed)))
        if one[0] == other[0]:
            assert one[1] != other[1]
            return
    pytest.fail("no two neighbours had equal answers")
