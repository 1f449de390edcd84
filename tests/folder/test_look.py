"""A folder is looked at on its owner's terminal alone: nothing is written, and no JSON has it."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from quorate.run.look import Look, Names

DIRECT: dict[str, Any] = {"method.by": "direct", "data.n_records": 200, "method.rounds": 2}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("method", ["direct", "votes"])
def test_a_folder_is_looked_at_on_the_terminal_alone(make_run: Any, cli: Any, method: str) -> None:
    root = make_run(m=60, **{**(DIRECT if method == "direct" else {}), "data.unit": "patient_id"})
    public = pl.read_csv(root / "public.csv")
    private = pl.read_csv(root / "private.csv")
    public.with_columns(patient_id=private["patient_id"][: len(public)]).write_csv(root / "public.csv")
    if method == "direct":
        with (root / "private.csv").open("a") as file:
            file.write(private.columns and ",".join("" for _ in private.columns) + "\n")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    plain = cli.ok("check", root)
    assert "LOOK" not in plain
    out = cli.ok("check", root, "--look")
    said = " ".join(out.partition("LOOK")[2].split())
    n = len(private) + (method == "direct")
    assert f"labels {len(private):,} of {n:,} can be used" in said
    assert f"ids {len(private):,} of {n:,} can be used" in said
    assert "carry ids of private.csv" in " ".join(out.split())
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    code, out, err = cli("check", root, "--look", "--json")
    assert (code, out) == (2, "")
    assert "--look is for your eyes alone" in " ".join(err.split())
    assert "NOT checked" not in plain or "check --look counts" in " ".join(plain.split())


@pytest.mark.heavy
def test_a_table_that_is_read_part_by_part_is_counted_so(
    make_run: Any, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_run(m=60, **DIRECT)
    whole = cli("check", root, "--look")[1]
    monkeypatch.setattr("quorate.folder.tables.CELLS_IN_MEMORY", 0)
    monkeypatch.setattr("quorate.run.usable_rows.CELLS", 1 << 8)
    assert cli("check", root, "--look")[1] == whole
    assert json.loads(cli("check", root, "--json")[1])


@pytest.mark.parametrize(
    ("counts", "hopeless"), [({}, False), ({"rows": 0}, True), ({"labels": (0, 5)}, True), ({"ids": 0}, True)]
)
def test_a_table_of_which_no_row_can_be_used_is_not_run_next(counts: dict[str, Any], hopeless: bool) -> None:
    look = Look(**{"names": Names(), "n": 5, "labels": (3, 1), "ids": None, "rows": None, "cells": (), **counts})
    assert any("no row can be used" in words for _, words in look.lines()) == hopeless


def test_a_look_at_numbers_speaks_of_no_class() -> None:
    look = Look(names=Names(), n=5, labels=(3, 1), ids=None, rows=3, cells=(), of_number=True)
    assert ("targets", "3 of 5 can be used; 1 is no number; 1 is missing") in list(look.lines())
