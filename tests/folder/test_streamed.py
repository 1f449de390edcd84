"""A private table that memory does not hold: the same run, bit for bit, and the same refusals; nothing stays behind."""

import fcntl
import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import edit

from quorate.data.stream import StreamedFrame, Workspace
from quorate.errors import QuorateError
from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.release.keys import fingerprint_key
from quorate.voting import shard_rows
from quorate.voting.shard_rows import shards_of

LITTLE = 1e-8  # gigabytes: every teacher's rows come by themselves
SEEDED = {"run.unsafe_noise_seed": 5}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("quorate.data.stream._CELLS", 250)  # so that a small table has several blocks


def hospital(name):
    """Visits with every kind of column, gaps in some, and repeated rows."""
    rng = np.random.default_rng(3)
    n = 400
    rows = pl.DataFrame(
        {
            "age": rng.integers(18, 95, n),
            "bmi": np.round(rng.normal(26, 4, n), 3),
            "ward": rng.choice(["north", "süd", "west"], n),
            "smokes": rng.random(n) < 0.3,
            "ill": np.where(rng.random(n) < 0.4, "yes", "no"),
            "patient_id": rng.integers(1, 180, n),
        }
    )
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
    for run in runs:
        execute(run, command="quorate run .")
    for made in ("public/labels.csv", "public/guarantee.json", "private/votes.stage"):
        assert (held / made).read_bytes() == (streamed / made).read_bytes(), made
    del runs, run
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
