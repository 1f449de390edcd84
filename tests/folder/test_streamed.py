"""Tables that memory does not hold, in a file or in parts: the same run, bit for bit, and the same refusals."""

import errno
import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import DIRECT, KILLED_IN_A_ROUND, at_round, charges, edit, interrupted, run, stored, visits
from tests.folder.test_resume import perform_killed

import quorate
from quorate.data import spool
from quorate.data.stream import StreamedFrame, Workspace
from quorate.direct import descend, prepare, task
from quorate.direct.spool import units_of
from quorate.errors import QuorateError
from quorate.folder import cell_run, table_source
from quorate.folder.batch import load_run
from quorate.folder.methods import execute, read_run
from quorate.release.keys import fingerprint_key
from quorate.run import progress, usable_rows
from quorate.voting import shard_rows
from quorate.voting.shard_rows import shards_of

LITTLE = 1e-8  # gigabytes: every teacher's rows come by themselves
SEEDED = {"run.unsafe_noise_seed": 5}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("quorate.data.stream._CELLS", 250)  # so that a small table has several blocks


def hospital(name):
    """Visits with every kind of column, gaps in some, and repeated rows."""
    (rows, ill), rng = visits(400, 3), np.random.default_rng(3)
    smokes, patients = pl.Series(rng.random(400) < 0.3), pl.Series(rng.integers(1, 180, 400))
    rows = rows.with_columns(pl.col("ward").replace("south", "süd"), smokes=smokes, ill=pl.Series(ill))
    rows = rows.with_columns(patient_id=patients)
    if name == "gaps":
        rows = rows.with_columns(
            pl.when(pl.col("age") < 30).then(None).otherwise(pl.col("bmi")).alias("bmi"),
            pl.when(pl.col("age") > 80).then(None).otherwise(pl.col("ward")).alias("ward"),
        )
    if name == "void":
        rows = rows.with_columns(pl.lit(None, dtype=pl.String).alias("bmi"))
    return rows


def written(root, rows, file):
    """Write the private table of a run in the format of a file's name."""
    if file.endswith(".parquet"):
        rows.write_parquet(root / file, row_group_size=90)
    elif file.endswith(".arrow"):
        rows.write_ipc(root / file)
    elif file.endswith(".gz"):
        import gzip

        (root / file).write_bytes(gzip.compress(rows.write_csv().encode()))
    else:
        rows.write_csv(root / file)


def both(make_run, rows, file, **changes):
    """Return two folders that differ in the allowed memory alone."""
    held = make_run(**SEEDED, **changes, **{"run.memory": 100.0, "data.private": file})
    (held / "private.csv").unlink()
    written(held, rows, file)
    for public in ("public.csv", "evaluation.csv"):
        more = pl.read_csv(held / public)
        few = pl.Series(np.arange(len(more)) % 3 == 0)
        more.with_columns(smokes=few, bmi=pl.col("bmi") / 100).write_csv(held / public)
    fingerprint_key(held / "ledger.db")  # the same for both
    return held, with_little(held)


def with_little(root):
    """Copy a folder, and allow next to no memory in the copy."""
    streamed = Path(shutil.copytree(root, root.with_name("streamed")))
    edit(streamed, "memory = 100.0", f"memory = {LITTLE}")
    return streamed


def facts_of(run):
    """All that a ledger, a stage and a teacher know a run by."""
    task = run.task
    return {
        "fingerprint": task.fingerprint,
        "order": task.order,
        "charge": run.charge_key,
        "scope": repr(run.charge.scope),
        "recipe": repr(task.recipe),
        "digests": list(task.inputs.private.reveal().digests),
        "units": list(task.inputs.private.reveal().unit_keys),
        "codes": task.inputs.private.reveal().codes.tolist(),
    }


CASES = [
    ("private.parquet", "plain", {}),
    ("private.parquet", "gaps", {"data.unit": "patient_id", "teachers.count": 5}),
    ("private.csv", "gaps", {"data.unit": "patient_id", "teachers.partition": "balanced"}),
    ("private.csv.gz", "plain", {"teachers.count": "auto"}),
    ("private.arrow", "plain", {}),
    ("private.parquet", "void", {"data.evaluation": "evaluation.csv"}),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("file", "name", "changes"), CASES, ids=lambda each: each if isinstance(each, str) else "")
def test_a_streamed_run_is_the_same_run(make_run, file, name, changes):
    rows = hospital(name).drop([] if "data.unit" in changes else ["patient_id"])
    held, streamed = both(make_run, rows, file, **changes)
    runs = [load_run(root) for root in (held, streamed)]
    kinds = [type(run.task.inputs.private.reveal().X) for run in runs]
    assert kinds == [pl.DataFrame, StreamedFrame]
    assert facts_of(runs[0]) == facts_of(runs[1])
    for each in runs:
        execute(each, command="quorate run .")
    for made in ("public/labels.csv", "public/guarantee.json", "private/votes.stage"):
        assert (held / made).read_bytes() == (streamed / made).read_bytes(), made
    del runs, each
    left = {str(path.relative_to(streamed)) for path in streamed.rglob("*")}
    assert left == {str(path.relative_to(held)) for path in held.rglob("*")}


def given(root):
    """Return what each teacher of a run is trained on, as bytes."""
    task = load_run(root).task
    n_teachers = task.recipe.n_teachers
    found = {}
    for part in shard_rows.rows_by_teacher(task, shards_of(task), [range(5), range(5, n_teachers)]):
        for number in part.numbers:
            mine = part.shards.reveal() == number
            found[number] = np.asarray(part.X)[mine].tobytes() + part.codes[mine].tobytes()
    assert sorted(found) == list(range(n_teachers))
    return found


@pytest.mark.heavy
def test_each_teacher_gets_the_same_rows_in_the_same_order(make_run, monkeypatch):
    """And one row that is put aside for another teacher is seen by this comparison."""
    held, streamed = both(make_run, hospital("gaps").drop("patient_id"), "private.parquet")
    right = given(held)
    assert given(streamed) == right
    put_aside = shard_rows._put_aside

    def wrong(X, group_rows):
        first = group_rows[0].copy()
        first[0] = np.setdiff1d(np.arange(len(X)), first)[0]
        return put_aside(X, [np.sort(first), *group_rows[1:]])

    monkeypatch.setattr(shard_rows, "_put_aside", wrong)
    assert {number for number, rows in given(streamed).items() if rows != right[number]} == {0}


WRONG = {
    "an unknown label": lambda rows: rows.with_columns(ill=pl.lit("maybe")),
    "a missing label": lambda rows: rows.with_columns(
        ill=pl.when(pl.col("age") < 30).then(pl.lit("x")).when(pl.col("age") != 40).then("ill")
    ),
    "a missing id": lambda rows: rows.with_columns(patient_id=pl.when(pl.col("age") != 40).then("patient_id")),
    "ids that are fractions": lambda rows: rows.with_columns(patient_id=pl.col("patient_id") + 0.5),
    "an infinite number": lambda rows: rows.with_columns(bmi=pl.lit(float("inf"))),
    "a number that cannot be scaled": lambda rows: rows.with_columns(bmi=pl.lit(1e308)),
    "numbers that became text": lambda rows: rows.with_columns(bmi=pl.lit("n/a")),
    "a column too many": lambda rows: rows.with_columns(more=pl.lit(1)),
    "no label column": lambda rows: rows.drop("ill"),
    "no row": lambda rows: rows.head(0),
    "fewer units than teachers": lambda rows: rows.head(7),
    "no feature": lambda rows: rows.select("ill", "patient_id"),
}


def refusals(*roots):
    """How each folder is refused, if it is; none of its rows stays behind."""
    said = []
    for root in roots:
        try:
            load_run(root, begin=False)
        except QuorateError as error:
            said.append((type(error), str(error).replace(str(root), "")))
        else:
            said.append(None)
        assert not list(root.glob(".rows-*"))
    return said


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("file", ["private.parquet", "private.csv"])
def test_a_streamed_table_is_refused_in_the_same_words(make_run, what, file):
    held, streamed = refusals(*both(make_run, WRONG[what](hospital("plain")), file, **{"data.unit": "patient_id"}))
    assert held == streamed
    assert (held is None) == (what == "ids that are fractions" and file == "private.csv")  # where they are texts


BROKEN = {
    "empty": b"",
    "latin-1": "age,ill\n30,sí\n".encode("latin-1"),
    "utf-16": "age,ill\n30,no\n".encode("utf-16"),
    "excel": b"PK\x03\x04age,ill\n30,no\n",
    "binary": b"age,ill\n3\x000,no\n",
    "too many fields": b"age,ill\n30,no\n31,no,2,3\n",
    "an open mark": b'age,ill\n30,"no\n31,yes\n',
    "another separator": b"age;ill\n30;no\n",
    "names that occur twice": b"age,age\n30,no\n",
    "a number of too many digits": b"age,ill\n30,no\n" + b"1" * 60 + b",no\n",
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("what", BROKEN)
def test_broken_text_is_refused_in_the_same_words(make_run, what):
    held = make_run(**{"run.memory": 100.0})
    (held / "private.csv").write_bytes(BROKEN[what])
    said = refusals(held, with_little(held))
    assert said[0] == said[1]
    assert said[0] is not None


@pytest.mark.heavy
def test_a_file_that_changes_under_a_run_is_refused(make_run):
    _, root = both(make_run, hospital("plain").drop("patient_id"), "private.parquet")
    run = load_run(root)
    written(root, hospital("plain").drop("patient_id").reverse(), "private.parquet")
    with pytest.raises(QuorateError, match="was changed while it was read; start again"):
        execute(run, command="quorate run .")


def test_what_a_killed_process_left_is_removed_and_what_another_uses_is_not(tmp_path):
    used, left = Workspace(lambda: tmp_path), tmp_path / ".rows-left"
    left.mkdir()
    (left / "lock").touch()
    assert used.path.is_dir()
    assert not left.exists()
    assert Workspace(lambda: tmp_path).path != used.path
    assert used.path.is_dir()
    descriptor = os.open(used.path / "lock", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    assert (used.path.stat().st_mode & 0o777) == 0o700


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


OTHER = "b%C3%A4d=street"


def in_parts(root, n_parts=20):
    """Cut the tables of a run into folders: parts whose types differ, and some without rows; and name the folders."""
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
    edit(root, '.csv"', '_parts"')
    edit(root, "[data]\n", '[data]\ndrop = ["part", "bäd"]\n')  # what the folders' names say
    edit(root, '"public_parts"', '"public_parts/**/*.parquet"')
    return root


def copied_in_parts(root):
    """Copy a run whose tables are files, with its key: there they are in parts."""
    fingerprint_key(root / "ledger.db")
    return in_parts(shutil.copytree(root, root.with_name("parts")))


@pytest.mark.heavy
def test_a_direct_run_on_parts_releases_what_it_does_on_one_file(make_run):
    root = make_run(m=60, **{**DIRECT, **SEEDED, "data.evaluation": "evaluation.csv"})
    parts = copied_in_parts(root)
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
    parts = copied_in_parts(root)
    place = parts / "private_parts"
    for file in place.rglob("*.parquet"):  # a teacher's table has one type a column, and text among numbers is text
        pl.read_parquet(file).with_columns(pl.col("age", "bmi").cast(pl.Float64)).write_parquet(file)
    for each in (root, parts):
        run(each)
    assert (root / "public/labels.csv").read_text() == (parts / "public/labels.csv").read_text()
    assert not list((parts / "private").glob(".rows-*"))


def test_each_part_that_is_none_is_told_at_once_and_nothing_is_charged(make_run, cli):
    root = in_parts(make_run(m=60, **DIRECT))
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
    edit(root, "public_parts/**/*.parquet", "private_parts/part=1?")
    assert "is the private file again" in cli.refused(4, "check", root).words
