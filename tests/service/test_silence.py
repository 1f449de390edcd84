"""Logs and metrics tell nothing of votes: with the noise frozen, neighbours who get equal answers leave equal bytes."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.service.conftest import PLACES, ensemble, listening

from quorate.ledger import Budget, Ledger
from quorate.service.app import Served, Service, create_app
from quorate.service.dashboard import History
from quorate.service.keys import KeyFile
from quorate.service.records import Records
from quorate.service.settings import ServiceSettings
from quorate.types import IntArray, Secret

NOW = datetime(2026, 3, 4, tzinfo=UTC)
POINTS = 12

Votes = Callable[[Any], Secret[IntArray]]


def left_by(
    counts: IntArray, folder: Path, seed: int, spy: Callable[[Votes, Records], Votes] = lambda votes, _: votes
) -> tuple[list[Any], str]:
    """Serve an ensemble with these votes ``(POINTS, 2)``; return the answers, and all that was logged and counted."""
    lines: list[str] = []
    records = Records(write=lines.append, clock=lambda: NOW)
    ledger = Ledger(budget=Budget(40.0, 1e-5), clock=lambda: NOW)

    def votes(rows: Any) -> Secret[IntArray]:
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


def neighbours(rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Votes of 60 teachers on each point, and what they are once one teacher has changed its mind everywhere."""
    first = rng.integers(5, 55, POINTS)
    counts = np.stack([first, 60 - first], axis=1).astype(np.int64)
    other = counts + np.where(rng.random(POINTS) < 0.5, 1, -1)[:, np.newaxis] * np.array([1, -1])
    return counts, other


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    token, _ = KeyFile(tmp_path, clock=lambda: NOW).create("a test", ["ask", "admin"])
    (tmp_path / "token").write_text(token)
    monkeypatch.setattr(secrets, "token_hex", lambda n: "0" * 2 * n)  # the name of a ledger, which its hashes hold
    return tmp_path


@pytest.mark.heavy
def test_equal_answers_leave_equal_logs_metrics_and_pages(folder: Path) -> None:
    equal = 0
    for seed in range(6):
        one, other = (left_by(counts, folder, seed) for counts in neighbours(np.random.default_rng(seed)))
        if one[0] == other[0]:
            equal += 1
            assert one[1] == other[1]
            assert '"client"' in one[1]
    assert equal >= 3  # with noise of 4 votes, one vote seldom decides


def _logs_margins(votes: Votes, records: Records) -> Votes:
    def counted(rows: Any) -> Secret[IntArray]:
        found = votes(rows)
        records.event("answered", margin=int(np.abs(np.diff(found.reveal())).sum()))
        return found

    return counted


def _counts_agreement(votes: Votes, records: Records) -> Votes:
    def counted(rows: Any) -> Secret[IntArray]:
        found = votes(rows)
        records.points["ensemble", f"agreed by {int(found.reveal().max())}"] += 1
        return found

    return counted


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("spy", [_logs_margins, _counts_agreement])
def test_a_service_that_tells_of_votes_is_caught(folder: Path, spy: Any) -> None:
    for seed in range(6):
        one, other = (left_by(counts, folder, seed, spy) for counts in neighbours(np.random.default_rng(seed)))
        if one[0] == other[0]:
            assert one[1] != other[1]
            return
    pytest.fail("no two neighbours had equal answers")
