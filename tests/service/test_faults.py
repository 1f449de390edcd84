"""When the disk fails, the service fails closed; when it is started anew, a sparse vector's stage is over."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.conftest import Running, rows, running

from quorate.errors import LedgerBusy, PreconditionFailed, SeededNoiseRefused
from quorate.ledger import Ledger
from quorate.service.keys import KeyFile
from quorate.service.open_run import MANIFEST, opened
from quorate.service.settings import ServiceSettings

STEPS = ("begun", "inserted", "committed", "anchor written", "anchored")


def fail_at(run: Running, step: str, number: int, *, after: int = 0) -> None:
    """Have the disk fail at a step of a commit, from the commit after so many on."""
    store: Any = run.service.served.answers._ledger._store  # type: ignore[attr-defined]
    passed = [0]

    def at(reached: str) -> None:
        passed[0] += reached == step
        if reached == step and passed[0] > after:
            raise OSError(number, os.strerror(number))

    store._at = store._anchor._at = at


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("step", "number", "after"),
    [*((step, errno.ENOSPC, 0) for step in STEPS), ("begun", errno.EROFS, 0), ("inserted", errno.EIO, 1)],
)
def test_a_disk_that_is_full_or_read_only_stops_every_answer(
    own_run: Callable[..., Path], step: str, number: int, after: int
) -> None:
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


def stages_of(root: Path) -> tuple[int, set[int | None]]:
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        stages = {block.stage for block in reservation.blocks("online answer")}
        return reservation.purposes["sparse-vector stage"] - reservation.remaining("sparse-vector stage"), stages


@pytest.mark.heavy
def test_a_restart_in_the_middle_of_a_stage_ends_it_and_charges_a_new_one(own_run: Callable[..., Path]) -> None:
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


def test_files_of_teachers_that_were_changed_are_not_opened(own_run: Callable[..., Path]) -> None:
    root = own_run()
    with opened(root, ServiceSettings()):
        pass
    assert (root / "private" / MANIFEST).exists()
    [stage] = root.joinpath("private").glob("teachers-*.stage")
    stage.write_bytes(stage.read_bytes() + b" ")
    with pytest.raises(PreconditionFailed, match=MANIFEST), opened(root, ServiceSettings()):
        pass


def test_a_student_that_was_changed_is_not_opened(own_run: Callable[..., Path]) -> None:
    root = own_run()
    student = root / "public" / "student.skops"
    student.write_bytes(student.read_bytes() + b" ")
    with pytest.raises(PreconditionFailed, match="SHA-256"), opened(root, ServiceSettings()):
        pass


@pytest.mark.heavy
def test_what_is_not_served(finished: Callable[..., Path], own_run: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(SeededNoiseRefused), opened(finished(**{"run.unsafe_noise_seed": 5}), ServiceSettings()):
        pass
    root = own_run()
    with running(root), pytest.raises(LedgerBusy), Ledger(root / "ledger.db"):
        pass
    (root / "public" / "facts.json").unlink()
    with pytest.raises(PreconditionFailed, match="finished"), opened(root, ServiceSettings()):
        pass


@pytest.mark.heavy
def test_the_command_serves_until_it_is_told_to_stop_and_answers_what_is_under_way(
    own_run: Callable[..., Path],
) -> None:
    root = own_run()
    token, _ = KeyFile(root / "private").create("a test", ["ask", "read"])
    code = "from quorate.cli import main; main()"
    arguments = [sys.executable, "-c", code, "serve", str(root), "--port", "0"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        beside = free.getsockname()[1]
    environment = {**os.environ, "QUORATE_SERVE_METRICS_PORT": str(beside)}
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    ports: list[int] = []
    while len(ports) < 2 and (line := process.stderr.readline()):
        ports += map(int, re.findall(r'"event": "listening".*"port": (\d+)', line))
    assert beside in ports
    port = next(each for each in ports if each != beside)
    assert "quorate_answers_left 12" in httpx.get(f"http://127.0.0.1:{beside}/metrics").text
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {token}"}) as http:
        told = http.post("/v1/label", json={"row": rows(1)[0]})
        process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    rest = process.stderr.read()
    process.stderr.close()

    assert told.json()["answers_left"] == 11
    assert '"event": "stopped"' in rest
    assert token not in rest
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
