"""A run that was rehearsed says before it is paid for what to expect, and afterwards that beside what came."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.folder.conftest import Cli, MakeRun

WITH_LABELS: dict[str, Any] = {"data.evaluation": "evaluation.csv", "data.n_records": 400}


@pytest.mark.heavy
def test_check_and_run_say_what_to_expect(make_run: MakeRun, cli: Cli) -> None:
    root = make_run(**WITH_LABELS)
    out = cli.ok("check", root, "--rehearse")
    assert "  expect     accuracy " in out
    assert "rehearsed on public rows with their own labels; always saying the commonest class: " in " ".join(
        out.split()
    )
    expected = json.loads(cli("check", root, "--rehearse", "--json")[1])["expected"]
    assert json.loads(cli("check", root, "--json")[1])["expected"] == expected  # by itself, where there are labels
    assert "expected" not in json.loads(cli("check", root, "--no-rehearse", "--json")[1])
    assert not (root / "ledger.db").exists()

    out = cli.ok("run", root, "--rehearse")
    assert "\nbaseline    accuracy " in out
    assert "\nexpected    accuracy " in out
    facts = json.loads((root / "public" / "facts.json").read_text())
    told = facts["utility"]["expected"]
    assert [round(told[name], 4) for name in ("accuracy", "low", "high")] == [
        expected[name] for name in ("accuracy", "low", "high")
    ]
    for page in ("report.html", "model_card.md"):
        assert "Expected before anything was spent: accuracy " in (root / "public" / page).read_text()
    assert "\nbaseline   accuracy " in cli("status", root)[1]


@pytest.mark.heavy
def test_a_rehearsal_needs_labelled_public_rows(make_run: MakeRun, cli: Cli) -> None:
    code, _, err = cli("check", make_run(), "--rehearse")
    assert (code, "name a table of them: [data] evaluation" in " ".join(err.split())) == (2, True), err
    direct = make_run("direct", **{"method.by": "direct"})
    code, _, err = cli("check", direct, "--rehearse")
    assert (code, "name a table of them: [data] evaluation" in " ".join(err.split())) == (2, True), err
    labelled = make_run("labelled", **{"method.by": "direct"}, **WITH_LABELS)
    expected = json.loads(cli("check", labelled, "--json")[1])["expected"]
    assert 0 < expected["low"] <= expected["accuracy"] <= expected["high"] <= 1
