"""Runs whose rows are not held at once: in a file, or in folders of Parquet files; a full disk, a kill, a check."""

import errno
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import polars as pl
import pytest
from tests.folder.conftest import DIRECT, KILLED_IN_A_ROUND, at_round, charges, edit, interrupted, run, stored
from tests.folder.test_resume import perform_killed

import quorate
from quorate.data import spool
from quorate.direct import descend, prepare, task
from quorate.direct.spool import units_of
from quorate.folder import cell_run, table_source
from quorate.folder.methods import read_run
from quorate.release.keys import fingerprint_key
from quorate.run import progress, usable_rows


def no_room(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def make_spooled(make_run, monkeypatch):
    """Folders of direct runs whose rows are read part by part and whose coordinates lie in a file."""
    monkeypatch.setattr(usable_rows, "CELLS", 500)
    settings = {**DIRECT, "method.feature_map": "linear", "run.memory": 1e-9}
    return lambda name="run", **changes: make_run(name, m=60, **{**settings, **changes})


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("call", "hashes"), [("posix_fallocate", False), ("pwrite", False), ("pwrite", True)])
def test_a_full_disk_is_exit_code_4_and_nothing_is_charged(make_spooled, cli, call, hashes, monkeypatch):
    root = make_spooled()
    with monkeypatch.context() as patch:
        if not hashes:  # of rows, which are written first: it is the coordinates that have no room
            patch.setattr(prepare, "most_held", lambda _: 1 << 20)
            patch.setattr(task, "units_of", lambda *given, **how: units_of(*given, **{**how, "most": 0}))
        patch.setattr(spool, "os", SimpleNamespace(**{**vars(os), call: no_room}))  # of the spool alone
        code, _, said = cli("run", root)
    assert code == 4
    assert "private: what is made of the private rows cannot be kept there (No space left on device)" in said
    assert charges(root) == 0
    assert not (hashes and (root / "ledger.db").exists())  # which is opened once the rows are read
    assert cli("run", root)[0] == 0


@pytest.mark.heavy
def test_a_run_that_was_killed_goes_on_from_its_rounds_with_a_spool_of_its_own(make_spooled, monkeypatch):
    seeded = {"run.unsafe_noise_seed": 5, "data.unit": "patient_id", "data.drop": [], "data.n_records": 200}
    killed, whole = make_spooled("killed", **seeded), make_spooled("whole", **seeded, **{"run.memory": 0.5})
    perform_killed(killed, after=2, in_flight=False, read=read_run)
    assert not [each for each in (killed / "private").iterdir() if each.name.startswith((".", "tmp"))]
    run(killed)
    monkeypatch.setattr(usable_rows, "CELLS", 1 << 22)
    run(whole)
    assert stored(killed, "gradient round") == stored(whole, "gradient round")


@pytest.mark.heavy
def test_each_pass_over_a_large_file_is_told_from_its_first_row_on_and_where_a_killed_run_goes_on(
    make_spooled, cli, monkeypatch
):
    root = make_spooled(**{"method.rounds": 6})
    monkeypatch.setattr(table_source, "LARGE_FILE", 100)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(descend, "release", at_round(4, interrupted))
        code, _, said = cli("run", root)
    first, *later = said.splitlines()
    assert code == 6
    assert first == "reading private rows"
    assert re.fullmatch(r"reading private rows: \d+ %, about \d+ s left", later[0])
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 60.0)
    resumed = cli("run", root)[2]
    assert resumed.startswith("reading private rows\nreading them as at first\n")
    assert "gradient rounds (6, 3 of them done before)" in resumed
    monkeypatch.setattr(table_source, "LARGE_FILE", 1 << 24)
    assert "private rows" not in cli("run", root)[2]


@pytest.mark.heavy
def test_a_check_says_what_a_large_file_takes_and_no_json_does(make_spooled, cli, monkeypatch):
    root = make_spooled()
    small = cli("check", root)[1]
    monkeypatch.setattr(table_source, "LARGE_FILE", 100)
    said, told = cli("check", root)[1].words, cli("check", root, "--json")[1]
    assert "private.csv has 0 MB: expect about" in said
    assert "of one core" in said
    assert "private.csv has" not in small
    assert "one core" not in told
    monkeypatch.setattr(cell_run, "disk_usage", lambda _: type("Usage", (), {"free": 3})())
    monkeypatch.setattr(cell_run, "allowed_memory", lambda _: 1)
    monkeypatch.setattr(cell_run, "bytes_held", lambda _: 10**10)
    said = cli("check", root)[1].words
    assert "where 0 MB are free: make room, or the run is refused before its charge" in said
    assert "10 GB of memory" in said
    assert "This machine allows 0 MB of memory: take one with more, or save the table as Parquet" in said


@pytest.mark.faults
def test_a_process_that_is_killed_in_a_round_leaves_no_row_behind(make_run):
    """SIGKILL, twice: nothing is left in the folder, and the run goes on to its end with every round once."""
    root = make_run("run", m=60, **{**DIRECT, "method.rounds": 30})
    nothing_held = "from quorate.data import spool\nfrom quorate.folder import tables\n"
    child = f"{nothing_held}spool.IN_MEMORY = tables.CELLS_IN_MEMORY = 0\n{KILLED_IN_A_ROUND}"
    before = {each.name for each in (root / "private").glob("*")} if (root / "private").exists() else set()
    for rounds in (5, 8):
        ended = subprocess.run([sys.executable, "-c", child, str(rounds), str(root)], capture_output=True)
        assert ended.returncode == -9, ended.stderr
        left = {each.name for each in (root / "private").iterdir()} - before
        assert not [name for name in left if not name.endswith((".stage", ".head", ".key"))], left
    assert subprocess.run([sys.executable, "-c", child, "99", str(root)], capture_output=True).returncode == 0
    assert len(stored(root, "gradient round")) == 30
    assert all(answers is not None for answers in stored(root, "gradient round"))


SEEDED = {"run.unsafe_noise_seed": 5}
OTHER = "b%C3%A4d=street"


def in_parts(root, n_parts=20):
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


def settings_in_parts(root):
    """Name folders in place of the files; what the folders' names say is left out."""
    edit(root, '.csv"', '_parts"')
    edit(root, "[data]\n", '[data]\ndrop = ["part", "bäd"]\n')
    edit(root, '"public_parts"', '"public_parts/**/*.parquet"')


@pytest.mark.heavy
def test_a_direct_run_on_parts_releases_what_it_does_on_one_file(make_run):
    root = make_run(m=60, **{**DIRECT, **SEEDED, "data.evaluation": "evaluation.csv"})
    fingerprint_key(root / "ledger.db")
    parts = in_parts(shutil.copytree(root, root.with_name("parts")))
    settings_in_parts(parts)
    whole, facts = (run(each) for each in (root, parts))
    assert stored(root, "gradient round") == stored(parts, "gradient round")
    assert facts.utility == whole.utility
    for file in (parts / "public").rglob("*"):
        content = file.read_bytes() if file.is_file() and file.suffix != ".parquet" else b""
        assert b"street" not in content, file
    shutil.rmtree(parts / "private_parts")  # who predicts needs no private row
    rows = pl.read_csv(root / "public.csv")
    assert quorate.load(parts).predict(rows).tolist() == quorate.load(root).predict(rows).tolist()


@pytest.mark.heavy
@pytest.mark.parametrize("memory", [100.0, 1e-8])
def test_votes_on_parts_are_those_on_one_file(make_run, memory):
    root = make_run(**SEEDED, **{"run.memory": memory, "data.evaluation": "evaluation.csv"})
    fingerprint_key(root / "ledger.db")
    parts = in_parts(shutil.copytree(root, root.with_name("parts")))
    place = parts / "private_parts"
    for file in place.rglob("*.parquet"):  # a teacher's table has one type a column, and text among numbers is text
        pl.read_parquet(file).with_columns(pl.col("age", "bmi").cast(pl.Float64)).write_parquet(file)
    settings_in_parts(parts)
    for each in (root, parts):
        run(each)
    assert (root / "public/labels.csv").read_text() == (parts / "public/labels.csv").read_text()
    assert not list((parts / "private").glob(".rows-*"))


def test_each_part_that_is_none_is_told_at_once_and_nothing_is_charged(make_run, cli):
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
        assert "lacks the column 'age', which other parts have" in told.words
        assert "part=12" in told
        assert "part=07" not in told
        assert second
    assert not (root / "ledger.db").exists()


def test_a_private_part_that_is_public_too_is_the_private_file_again(make_run, cli):
    root = in_parts(make_run(m=60, **DIRECT))
    settings_in_parts(root)
    edit(root, "public_parts/**/*.parquet", "private_parts/part=1?")
    assert "is the private file again" in cli.refused(4, "check", root).words
