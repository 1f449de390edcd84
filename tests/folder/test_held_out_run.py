"""A folder holds units out for prediction sets: one charge, in all that is published, and nothing drawn again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.folder.conftest import charges, visits

import quorate
from quorate.errors import InvalidParameter
from quorate.folder.loaded import _teachers
from quorate.folder.methods import execute, read_run
from quorate.folder.settings import read_settings
from quorate.ledger import Ledger

SETS = {"data.n_records": 1_200, "data.calibration_share": 0.4, "budget.epsilon": 3.0}


@pytest.mark.heavy
@pytest.mark.parametrize("by", ["direct", pytest.param("votes", marks=pytest.mark.heavy)])
def test_a_run_holds_units_out_and_publishes_the_limit(make_run: Any, cli: Any, by: str) -> None:
    count = {"teachers.count": 40} if by == "votes" else {}
    root = make_run(n=1_200, **{"method.by": by, **SETS, **count})
    out = cli.ok("check", root)
    assert "hold out" in out
    facts = execute(read_run(root), command="quorate run")
    sets = facts.fitted.private_sets
    loaded = quorate.load(root)
    rows, _ = visits(300, 5)
    assert loaded.coverage_promise().least == pytest.approx(0.9 - sets.slack)
    assert 0 < loaded.predict_set(rows).mean() <= 1
    card = (root / "public" / "model_card.md").read_text(encoding="utf-8")
    assert "which nothing learned from" in " ".join(card.split())
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        entries = len(ledger.reservations())
    assert execute(read_run(root), command="quorate run").fitted.private_sets == sets
    assert charges(root) == entries == 1
    assert np.isfinite(sets.limit)
    if by == "votes":
        task = read_run(root).task
        taught = sum(facts.n_records for facts in _teachers(task))
        assert taught == int((~task.held.held.reveal()).sum())
    out = cli.ok("audit", root, "--runs", "2000")
    assert "which units were held out for prediction sets" in " ".join(out.split())
    attacks = json.loads((root / "public" / "audit.json").read_text(encoding="utf-8"))["attacks"]
    assert [attack["violated"] for attack in attacks if attack["attack"].startswith("limit of prediction sets")] == [
        False
    ]


def test_the_two_ways_to_sets_are_not_asked_for_at_once(make_run: Any) -> None:
    root = make_run(n=1_200, **SETS, **{"data.calibration": "other.csv"})
    with pytest.raises(InvalidParameter, match=r"leave calibration_share out"):
        read_settings(root / "quorate.toml")
    alone = make_run("alone", **{"data.coverage": 0.8})
    with pytest.raises(InvalidParameter, match=r"\[data\] coverage is what .* calibration_share .* is missing"):
        read_settings(alone / "quorate.toml")
