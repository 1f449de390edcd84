"""Runs whose tables are folders of Parquet files: the same run as of one file, and a line for each part that fails."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.folder.conftest import DIRECT
from tests.folder.test_spooled import released

import quorate
from quorate.folder.batch import load_run
from quorate.folder.direct_run import read_direct
from quorate.folder.methods import execute
from quorate.release.keys import fingerprint_key

SEEDED = {"run.unsafe_noise_seed": 5}
OTHER = "b%C3%A4d=street"


def in_parts(root: Path, n_parts: int = 20) -> Path:
    """Cut the tables of a run into folders, by ward: parts whose types differ, and some without rows."""
    for name in ("private", "public", "evaluation"):
        rows = pl.read_csv(root / f"{name}.csv")
        (root / f"{name}.csv").unlink()
        for number in range(n_parts):
            own = rows[number * len(rows) // n_parts : (number + 1) * len(rows) // n_parts]
            if number % 3 == 1:
                own = own.with_columns(pl.col("age").cast(pl.Float64))
            if number % 3 == 2 and name == "private":
                own = own.with_columns(pl.col("bmi", "age").cast(pl.String))
            place = root / f"{name}_parts" / f"part={number:02d}" / OTHER / "0.parquet"
            place.parent.mkdir(parents=True)
            (own.head(0) if number == 7 else own).write_parquet(place)
            if number == 7:
                own.write_parquet(place.with_name("1.parquet"))
    return root


def settings_in_parts(root: Path) -> None:
    """Name folders in place of the files; what the folders' names say is left out."""
    place = root / "quorate.toml"
    text = (
        place.read_text(encoding="utf-8")
        .replace('.csv"', '_parts"')
        .replace("[data]\n", '[data]\ndrop = ["part", "bäd"]\n')
    )
    place.write_text(text.replace('"public_parts"', '"public_parts/**/*.parquet"'), encoding="utf-8")


@pytest.mark.heavy
def test_a_direct_run_on_parts_releases_what_it_does_on_one_file(make_run: Any) -> None:
    root = make_run(m=60, **{**DIRECT, **SEEDED, "data.evaluation": "evaluation.csv"})
    fingerprint_key(root / "ledger.db")
    parts = in_parts(shutil.copytree(root, root.with_name("parts")))
    settings_in_parts(parts)
    whole, facts = (execute(read_direct(each), command="quorate run") for each in (root, parts))
    assert released(root) == released(parts)
    assert facts.utility == whole.utility
    for file in (parts / "public").rglob("*"):
        content = file.read_bytes() if file.is_file() and file.suffix != ".parquet" else b""
        assert b"street" not in content, file
    shutil.rmtree(parts / "private_parts")  # who predicts needs no private row
    rows = pl.read_csv(root / "public.csv")
    assert quorate.load(parts).predict(rows).tolist() == quorate.load(root).predict(rows).tolist()


@pytest.mark.heavy
@pytest.mark.parametrize("memory", [100.0, 1e-8])
def test_votes_on_parts_are_those_on_one_file(make_run: Any, memory: float) -> None:
    root = make_run(**SEEDED, **{"run.memory": memory, "data.evaluation": "evaluation.csv"})
    fingerprint_key(root / "ledger.db")
    parts = in_parts(shutil.copytree(root, root.with_name("parts")))
    place = parts / "private_parts"
    for file in place.rglob("*.parquet"):  # a teacher's table has one type a column, and text among numbers is text
        pl.read_parquet(file).with_columns(pl.col("age", "bmi").cast(pl.Float64)).write_parquet(file)
    settings_in_parts(parts)
    for each in (root, parts):
        execute(load_run(each), command="quorate run")
    assert (root / "public/labels.csv").read_text() == (parts / "public/labels.csv").read_text()
    assert not list((parts / "private").glob(".rows-*"))


def test_each_part_that_is_none_is_told_at_once_and_nothing_is_charged(make_run: Any, cli: Any) -> None:
    root = in_parts(make_run(m=60, **DIRECT))
    settings_in_parts(root)
    lacking, unreadable = (next((root / "private_parts" / f"part={number}").rglob("0.parquet")) for number in (11, 12))
    pl.read_parquet(lacking).drop("age").write_parquet(lacking)
    unreadable.write_bytes(b"PAR1 and nothing more")
    for command in ("check", "run"):
        code, shown, told = cli(command, root)
        first, second, *_ = told.splitlines()
        assert (code, shown) == (4, "")
        assert "part=11" in first
        assert "lacks the column 'age', which other parts have" in " ".join(told.split())
        assert "part=12" in told
        assert "part=07" not in told
        assert second
    assert not (root / "ledger.db").exists()


def test_a_private_part_that_is_public_too_is_the_private_file_again(make_run: Any, cli: Any) -> None:
    root = in_parts(make_run(m=60, **DIRECT))
    settings_in_parts(root)
    text = (root / "quorate.toml").read_text(encoding="utf-8")
    (root / "quorate.toml").write_text(
        text.replace("public_parts/**/*.parquet", "private_parts/part=1?"), encoding="utf-8"
    )
    assert "is the private file again" in " ".join(cli.refused(4, "check", root).split())
