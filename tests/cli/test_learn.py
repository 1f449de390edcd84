"""``quorate learn``: a rule from a table with few labels; what is printed, written, charged and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from quorate.ledger import Ledger


@pytest.fixture
def table(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    age, job = random.integers(18, 80, 3_000), random.choice(["nurse", "cook"], 3_000)
    label = np.where((age >= 40) & (job == "cook"), "yes", "no").tolist()
    few = [each if place < 1_000 else None for place, each in enumerate(label)]
    path = tmp_path / "private.csv"
    pl.DataFrame({"age": age, "job": job, "ill": few}).write_csv(path)
    return path


def asked(table: Path, *more: Any) -> tuple[Any, ...]:
    cuts = ("--cut", "age=30,40,50", "--cut", "job=cook")
    return ("learn", table, "--label", "ill", "--class", "no", "--class", "yes", "--epsilon", "1", *cuts, *more)


@pytest.mark.several_fits
def test_a_rule_is_learned_written_and_given_again(cli: Any, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said, _ = cli(*asked(table, "--out", out))
    assert code == 0
    assert "yes where age is at least 40 and job is cook; otherwise no" in said
    assert "(ε = 1, δ = 0)" in said
    rule = json.loads((out / "rule.json").read_text())
    assert rule["rule"]["where"] == "age is at least 40 and job is cook"
    assert rule["labels_used"] == 1_000
    page = (out / "report.html").read_text()
    assert "age is at least 40 and job is cook" in page
    assert "<script" not in page
    code, again, _ = cli(*asked(table, "--out", out, "--json"))
    assert (code, json.loads(again)["concept"]) == (0, rule["concept"])
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "rule.json"]  # no ledger, no key
    with Ledger(tmp_path / "private.csv.ledger.db") as ledger:
        assert ledger.spent.epsilon == 1.0


def test_another_folder_for_the_files_is_no_other_budget(cli: Any, table: Path, tmp_path: Path) -> None:
    assert cli(*asked(table, "--out", tmp_path / "a"))[0] == 0
    (tmp_path / "link.csv").symlink_to(table)
    for same in (table, tmp_path / "link.csv"):
        code, _, said = cli(*asked(same, "--out", tmp_path / "b", "--concept", "stump"))
        assert code == 3, said
    assert not (tmp_path / "b").exists()


@pytest.mark.several_fits
def test_fits_with_other_cuts_share_one_ledger_and_its_budget(cli: Any, table: Path, tmp_path: Path) -> None:
    ledger = ("--ledger", tmp_path / "ledger.db", "--out", tmp_path / "out")
    assert cli(*asked(table, *ledger, "--budget", "2"))[0] == 0
    assert cli(*asked(table, *ledger, "--cut", "age=20,35"))[0] == 0
    code, _, said = cli(*asked(table, *ledger, "--concept", "stump"))
    assert code == 3
    assert "ExponentialLearner.fit costs ε=1, and the ledger has 0 left of 2" in said
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("cook", "clerk", 1))
    assert cli(*asked(other, *ledger))[0] == 4


def test_a_check_charges_nothing(cli: Any, table: Path, tmp_path: Path) -> None:
    code, said, _ = cli(*asked(table, "--check", "--out", tmp_path / "out", "--learner", "sanitized"))
    assert code == 0
    assert "GenericLearner would learn from 1,000 rows with a label and 2,000 without" in said
    assert "Nothing was charged" in said
    assert not (tmp_path / "out").exists()
    code, said, _ = cli(*asked(table, "--check", "--json"))
    assert json.loads(said)["unlabelled"] == 2_000


def test_cuts_may_be_told_by_public_rows(cli: Any, table: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool.csv"
    pl.DataFrame({"age": range(100), "job": ["cook", "nurse"] * 50}).write_csv(pool)
    more = ("--pool", pool, "--column", "age", "--levels", "10", "--out", tmp_path / "out", "--learner", "sanitized")
    code, said, _ = cli(*asked(table, *more, "--unsafe-noise-seed", "0", "--json"))
    told = json.loads(said)
    assert (code, told["seeded"], told["cuts"]["age"]) == (0, True, [10.0 * each for each in range(1, 10)])
    assert told["rule"]["where"] == "age is at least 40 and job is cook"
    assert "reproducible, therefore not private" in (tmp_path / "out" / "report.html").read_text()


def test_the_private_table_is_no_pool(cli: Any, table: Path, tmp_path: Path) -> None:
    """In another order, and with its labels left out."""
    lines = table.read_text().splitlines()
    again = tmp_path / "again.csv"
    again.write_text("\n".join([",".join(line.split(",")[:2]) for line in [lines[0], *reversed(lines[1:])]]))
    code, _, said = cli(*asked(table, "--pool", again, "--column", "age", "--out", tmp_path / "out"))
    assert code == 4
    assert "given again" in said


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--label", "sick"), 4, "no column 'sick'"),
        (("--cut", "height=3"), 4, "no column 'height'"),
        (("--cut", "age"), 2, "COLUMN=VALUE"),
        (("--cut", "age=3,2"), 2, "increasing"),
        (("--cut", "ill=yes"), 2, "is the label"),
        (("--class", "maybe"), 2, "two labels"),
        (("--concept", "threshold"), 2, "one column"),
        (("--concept", "circle"), 2, "concept"),
        (("--learner", "best"), 2, "learner"),
        (("--column", "age"), 2, "--pool"),
        (("--epsilon", "0"), 2, "epsilon"),
    ],
)
def test_refusals_charge_nothing(cli: Any, table: Path, tmp_path: Path, more: Any, code: int, words: str) -> None:
    found, _, said = cli(*asked(table, *more, "--out", tmp_path / "out"))
    assert found == code, said
    assert words in said
    assert not (tmp_path / "out" / "rule.json").exists()


def test_labels_that_are_none_of_the_classes_are_refused_and_not_shown(cli: Any, table: Path, tmp_path: Path) -> None:
    table.write_text(table.read_text().replace(",yes", ",perhaps", 1))
    code, _, said = cli(*asked(table, "--out", tmp_path / "out", "--json"))
    assert code == 4
    assert "perhaps" not in said
    assert json.loads(said)["charged"] == "nothing was charged"
