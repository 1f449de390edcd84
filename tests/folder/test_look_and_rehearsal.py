"""What a check shows before anything is paid: a look, on its owner's terminal alone; a rehearsal; what is hopeless."""

import json

import polars as pl
import pytest
from tests.folder.conftest import DIRECT, charges, edit

from quorate.run.look import Look, Names


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("method", ["direct", "votes"])
def test_a_folder_is_looked_at_on_the_terminal_alone(make_run, cli, method):
    how = {**DIRECT, "data.n_records": 200} if method == "direct" else {}
    root = make_run(m=60, **how, **{"data.unit": "patient_id"})
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
    assert "carry ids of private.csv" in out.words
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    code, out, err = cli("check", root, "--look", "--json")
    assert (code, out) == (2, "")
    assert "--look is for your eyes alone" in err.words
    assert "NOT checked" not in plain or f"quorate check {root} --look counts" in plain.words


@pytest.mark.parametrize(("declared", "is_said"), [(200, True), (380, False)])
def test_a_declared_number_that_is_far_off_is_said_to_the_owner_of_a_direct_run(make_run, cli, declared, is_said):
    root = make_run(m=60, **{**DIRECT, "data.n_records": declared})
    said = f"[data] n_records = {declared} is more than 10 % off the number of records in private.csv"
    assert (said in cli.ok("check", root, "--look").words) == is_said
    assert "more than 10 % off" not in cli.ok("check", root)


@pytest.mark.heavy
def test_a_table_that_is_read_part_by_part_is_counted_so(make_run, cli, monkeypatch):
    root = make_run(m=60, **DIRECT)
    whole = cli("check", root, "--look")[1]
    monkeypatch.setattr("quorate.folder.tables.CELLS_IN_MEMORY", 0)
    monkeypatch.setattr("quorate.run.usable_rows.CELLS", 1 << 8)
    assert cli("check", root, "--look")[1] == whole
    assert cli.json("check", root)


@pytest.mark.parametrize(
    ("counts", "hopeless"), [({}, False), ({"rows": 0}, True), ({"labels": (0, 5)}, True), ({"ids": 0}, True)]
)
def test_a_table_of_which_no_row_can_be_used_is_not_run_next(counts, hopeless):
    look = Look(**{"names": Names(), "n": 5, "labels": (3, 1), "ids": None, "rows": None, "cells": (), **counts})
    assert any("no row can be used" in words for _, words in look.lines()) == hopeless


def test_a_look_at_numbers_speaks_of_no_class():
    look = Look(names=Names(), n=5, labels=(3, 1), ids=None, rows=3, cells=(), of_number=True)
    assert ("targets", "3 of 5 can be used; 1 is no number; 1 is missing") in list(look.lines())


WITH_LABELS = {"data.evaluation": "evaluation.csv", "data.n_records": 400}


@pytest.mark.heavy
def test_check_and_run_say_what_to_expect(make_run, cli):
    root = make_run(**WITH_LABELS)
    out = cli.ok("check", root, "--rehearse")
    assert "  expect     accuracy " in out
    assert "rehearsed on public rows with their own labels; always saying the commonest class: " in out.words
    expected = cli.json("check", root, "--rehearse")["expected"]
    assert cli.json("check", root)["expected"] == expected  # by itself, where there are labels
    assert "expected" not in cli.json("check", root, "--no-rehearse")
    assert not (root / "ledger.db").exists()

    out = cli.ok("run", root, "--rehearse")
    assert "\nbaseline    accuracy " in out
    assert "\nexpected    accuracy " in out
    facts = json.loads((root / "public" / "facts.json").read_text())
    told = facts["utility"]["expected"]
    for name in ("accuracy", "low", "high"):
        assert round(told[name], 4) == expected[name], name
    for page in ("report.html", "model_card.md"):
        assert "Expected before anything was spent: accuracy " in (root / "public" / page).read_text()
    assert "\nbaseline   accuracy " in cli("status", root)[1]


@pytest.mark.heavy
def test_a_rehearsal_needs_labelled_public_rows_and_a_number_of_records(make_run, cli):
    for by in ("votes", "direct"):
        err = cli.refused(2, "check", make_run(by, **{"method.by": by}), "--rehearse")
        assert "name a table of them: [data] evaluation" in err.words, err
    err = cli.refused(2, "check", make_run(**{"data.evaluation": "evaluation.csv"}), "--rehearse")
    assert "quorate: rehearsing needs the number of records; declare [data] n_records\n" in err
    labelled = make_run("labelled", **{"method.by": "direct"}, **WITH_LABELS)
    expected = cli.json("check", labelled)["expected"]
    assert 0 < expected["low"] <= expected["accuracy"] <= expected["high"] <= 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data.n_records": None}, "[data] n_records is not declared. Write it there"),
        ({"data.public": None, "method.by": "direct"}, "[data] public names none"),
        ({"data.evaluation": "few.csv"}, "a rehearsal needs 40 rows in [data] evaluation, and it has 39"),
        ({"data.evaluation": None}, None),
    ],
)
def test_why_nothing_is_rehearsed_is_one_line(make_run, cli, changes, told):
    root = make_run(**{**WITH_LABELS, "data.evaluation": "evaluation.csv", **changes})
    lines = (root / "evaluation.csv").read_text().splitlines()
    (root / "few.csv").write_text("\n".join(lines[:40]) + "\n")
    if changes.get("data.public", "") is None:
        with (root / "quorate.toml").open("a") as file:
            file.write('[schema]\nage = [18, 95]\nbmi = [10, 50]\nward = ["north", "south", "west"]\n')
    out = " ".join(cli.ok("check", root).split())
    assert (told in out) if told else "expect" not in out
    assert (f"quorate check {root} --rehearse" in out) == (told is not None and "n_records" in told)
    found = json.loads(cli.ok("check", root, "--json"))
    assert (told in found["not_rehearsed"]) if told else "not_rehearsed" not in found
    assert "  expect " not in cli.ok("check", root, "--no-rehearse")


@pytest.mark.heavy
@pytest.mark.parametrize("by", ["votes", "direct"])
def test_a_folder_with_other_private_rows_is_told_the_same_byte_for_byte(by, make_run, cli):
    """Values, labels and, where it is declared, the number of rows: what programs and the report get of a check."""
    changes = {"method.by": by, "data.n_records": 400, "budget.epsilon": 12.0, "budget.delta": 0.01}
    if by == "direct":
        changes |= DIRECT
    root = make_run(**changes)
    before = cli("check", root, "--json")
    assert "epsilon-promises-little" in before[1]
    lines = (root / "private.csv").read_text().splitlines()
    head, cells = lines[0], [line.split(",") for line in lines[1:-1]]  # one row less
    other = [["44", "31.5", "north", "no"] for _ in cells]
    assert len(other[0]) == len(cells[0])
    (root / "private.csv").write_text("\n".join([head, *(",".join(row) for row in other)]) + "\n")
    assert cli("check", root, "--json") == before


DROWNED = {
    "budget.epsilon": 0.02, "teachers.count": 12, "mechanism.name": "GaussianNoisyMax", "run.allow_hopeless": False
}  # fmt: skip


@pytest.mark.heavy
def test_check_and_run_refuse_it_and_settings_let_it_run(make_run, cli):
    root = make_run(**DROWNED)
    for command in ("check", "run"):
        told = cli.refused(2, command, root)
        assert "nothing was spent: the noise of GaussianNoisyMax" in told
        assert "[run] allow_hopeless = true" in told
    assert not (root / "ledger.db").exists()
    edit(root, "allow_hopeless = false", "allow_hopeless = true")
    assert cli("run", root)[0] == 0


@pytest.mark.heavy
def test_a_run_that_was_charged_goes_on_whatever_the_settings_say_now(finished_run, cli):
    """As a run of an earlier version may: what is paid for is not refused."""
    root = finished_run(**DROWNED | {"run.allow_hopeless": True})
    edit(root, "allow_hopeless = true\n", "")
    assert cli("run", root)[0] == 0
    assert charges(root) == 1
