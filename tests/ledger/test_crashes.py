"""kill −9 at named failpoints (the fault matrix has random moments too): released ⊆ charged, the chain stays valid."""

import json

import pytest

from quorate.accounting import PureDP
from quorate.ledger import Budget, Ledger

BUDGET, ANSWERS = Budget(1.0, 1e-5), 40
POINTS = ["begun", "inserted", "committed", "anchor written", "anchor renamed", "anchored"]  # of the store
POINTS += ["drawn", "noised", "stored", "released"]


def told(path, what):
    file = path.with_name(f"{path.name}.{what}")
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def breaches(path, url=None):
    """Open the ledger after a crash; name every promise that what was told outside breaks."""
    with Ledger(path if url is None else url, budget=BUDGET) as ledger:
        ledger.verify()
        reservation = ledger.reserve(PureDP(0.5), delta=0, purposes={"label": ANSWERS}, key="labels")
        blocks = {block.first: block for block in reservation.blocks("label")}
        charged, cap = ledger.spent.epsilon, sum(block.count for block in blocks.values())
    found = []
    if charged != 0.5 or cap > ANSWERS:
        found.append("the cap was passed, or the charge is not on record")
    for first, answers in told(path, "released"):
        if first not in blocks:
            found.append("an answer left before its charge")
        elif blocks[first].answers != answers:
            found.append("an answer left that is not on record")
    noise = [index for first, count in told(path, "noise") for index in range(first, first + count)]
    if len(noise) != len(set(noise)):
        found.append("noise was drawn twice under one charge")
    if not set(noise) <= {
        index for block in blocks.values() for index in range(block.first, block.first + block.count)
    }:
        found.append("noise was drawn before its charge")
    return found


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("kind", "point"),
    [("sqlite", point) for point in POINTS]
    + [("postgresql", point) for point in POINTS if not point.startswith("anchor ")],
)
def test_killed_at_a_failpoint_nothing_was_released_uncharged_and_the_run_ends(request, nursery, tmp_path, kind, point):
    path = tmp_path / "ledger.db"
    url = request.getfixturevalue("server").url() if kind == "postgresql" else None
    order = {"do": "killed", "path": str(path), "url": url, "order": "honest", "delay": None}
    for occurrence in (0,) if point == "anchor renamed" else (0, 3, 5):  # an anchor is made once
        assert nursery(point=point, occurrence=occurrence, **order)["killed"]
        assert not breaches(path, url)
    assert nursery(point=None, occurrence=0, **order)["finished"]
    assert not breaches(path, url)
    with Ledger(url or path) as ledger:
        [reservation] = ledger.reservations()
        blocks = reservation.blocks("label")
        assert reservation.remaining("label") == 0
        assert ledger.spent.epsilon == 0.5  # resumed three times, charged once
    released = {first for first, _ in told(path, "released")}
    assert released <= {block.first for block in blocks if block.status == "stored"}
    assert {block.status for block in blocks} <= {"stored", "interrupted"}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("order", "breach"),
    [
        ("answers before charge", "an answer left before its charge"),
        ("answers before store", "an answer left that is not on record"),
    ],
)
def test_these_tests_catch_a_twin_that_answers_too_early(nursery, tmp_path, order, breach):
    found = []
    for number, point in enumerate(["begun", "inserted", "drawn", "noised"]):
        path = tmp_path / f"{number}" / "ledger.db"
        path.parent.mkdir()
        nursery(do="killed", path=str(path), point=point, occurrence=8, order=order, delay=None)
        found += breaches(path)
    assert breach in found
