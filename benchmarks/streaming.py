"""Tables larger than the allowed memory, and how cost grows with rows and teachers.

    python -m benchmarks.streaming [ROWS] [GIGABYTES]

writes a Parquet file of so many rows (by default 10 million; ten columns of numbers, a label, an id), takes it through
everything that `quorate check` does and through sharding for 20,000 teachers, and tells CPU time, the clock and the
most memory that was taken.

    python -m benchmarks.streaming direct [ROWS] [MAP] [GIGABYTES]

writes a Parquet file of 25 columns (by default 2 million rows) and takes it through `quorate run` by the direct method,
its own process each time: a row a record, and four rows a person. MAP is `[method] feature_map`, by default "linear";
"auto" is a run's default. GIGABYTES is `[run] memory`. Beside it, a pass of scikit-learn's SGDClassifier over the same
file, which promises nothing. Its last lines are those of docs/limitations.md.

    python -m benchmarks.streaming votes [ROWS] [MODEL TEACHERS]

does the same by votes, a row a record, and beside it with 2,000 of these rows: what a run takes whatever its table is.
It tells how often the table, as polars holds it, goes into the largest process of a run, into the difference, and into
all processes of the run together. MODEL is `[teachers] model`, such as lightgbm, by default a run's default, with so
many TEACHERS.

    OMP_NUM_THREADS=1 python -m benchmarks.streaming grow [ROWS ...] [FILE.json]

takes tables of 20 columns (by default 10⁶, 3·10⁶ and 10⁷ rows) through the direct method, each in a process of its own:
CPU time, the clock and the most memory of a run; CPU time of a row in a round beside that of one gradient that numpy
takes over as many floats, some at once (X w, and its product with X); and last a table with the exponent of CPU time
between sizes and what follows from each pair for 10⁸ rows. What is measured is kept in FILE.json, and not measured
again.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression

from benchmarks.paired import Growth
from quorate.ensemble import ClassifierTeacher, hash_shards, train_teachers
from quorate.folder.batch import load_run
from quorate.folder.methods import check
from quorate.run.stage_store import CHUNK
from quorate.types import Secret
from quorate.voting.shard_rows import check_shards, rows_by_teacher, shards_of

COLUMNS, PUBLIC, TEACHERS, AT_ONCE = 10, 5_000, 20_000, 1_000_000
SETTINGS = """\
[data]
private = "private.parquet"
public = "public.parquet"
label = "label"
classes = ["no", "yes"]
unit = "person"

[budget]
epsilon = 1.0
delta = 1e-8

[teachers]
count = {teachers}

[run]
memory = {memory}
n_jobs = 1
allow_hopeless = true
"""

DIRECT_COLUMNS, ROWS_OF_A_PERSON, GROWN_COLUMNS = 25, 4, 20
DIRECT = """\
[data]
private = "private.parquet"
public = "public.parquet"
label = "label"
classes = ["no", "yes"]
n_records = {units}
{whose}

[method]
{method}

[budget]
epsilon = 1.0
delta = 1e-8

[run]
{run}
"""
FEW = 2_000


def table(n_rows: int, seed: int, *, columns: int = COLUMNS) -> pl.DataFrame:
    """Half of the columns of whole numbers and half of others."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            f"x{at}": rng.integers(0, 1000, n_rows) if at % 2 else np.round(rng.normal(0, 1, n_rows), 4)
            for at in range(columns)
        }
    )


def write(root: Path, n_rows: int, memory: float) -> Path:
    """Write the folder of a run; a third as many persons as rows."""
    rng = np.random.default_rng(0)
    parts = root / "parts"
    parts.mkdir(parents=True)
    for number, start in enumerate(range(0, n_rows, AT_ONCE)):
        rows = table(min(AT_ONCE, n_rows - start), seed=number)
        yes = rows["x0"].to_numpy() + rng.normal(0, 1, len(rows)) > 0
        person = rng.integers(0, n_rows // 3, len(rows))
        rows.with_columns(label=np.where(yes, "yes", "no"), person=person).write_parquet(
            parts / f"{number:04d}.parquet"
        )
    pl.scan_parquet(parts / "*.parquet").sink_parquet(root / "private.parquet")
    table(PUBLIC, seed=2**31).write_parquet(root / "public.parquet")
    (root / "quorate.toml").write_text(SETTINGS.format(teachers=min(TEACHERS, n_rows // 100), memory=memory))
    return root


PEER = """\
import sys
import numpy as np
import polars as pl
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

root, columns, at_once = sys.argv[1], [f"x{at}" for at in range(int(sys.argv[2]))], 1 << 16
scaler = StandardScaler().fit(pl.read_parquet(f"{root}/public.parquet").select(columns).to_numpy())
model, scan = SGDClassifier(loss="log_loss"), pl.scan_parquet(f"{root}/private.parquet")
for start in range(0, scan.select(pl.len()).collect().item(), at_once):
    part = scan.slice(start, at_once).collect()
    model.partial_fit(scaler.transform(part.select(columns).to_numpy()), part["label"].to_numpy(), ["no", "yes"])
"""


ROUNDS_TIMED = """\
import json
import sys
import time
from pathlib import Path

import numpy as np

from quorate.direct.spool import DenseUnits
from quorate.folder.methods import execute, read_run

rounds, shape = [], []

def time_rounds(kind):
    summing = kind.summing

    def timed(units, grid):
        sum_of = summing(units, grid)

        def summed(weights):
            begun = time.process_time()
            total = sum_of(weights)
            rounds.append((time.process_time() - begun) / units.n_rows)
            shape[:] = len(weights), units.n_rows
            return total

        return summed

    kind.summing = timed

time_rounds(DenseUnits)
execute(read_run(Path(sys.argv[1])), command="quorate run")
width, n_rows = shape
step = (1 << 18) // width  # of those tried the fastest
n_timed = min(n_rows, (1 << 23) // width)  # of more numbers than a processor holds near itself
X, w = np.random.default_rng(0).normal(size=(n_timed, width)), np.ones(width)
passes = []
for _ in range(5):
    begun = time.process_time()
    for start in range(0, n_timed, step):
        rows = X[start : start + step]
        rows.T @ (rows @ w)
    passes.append((time.process_time() - begun) / n_timed)
print(json.dumps({"width": width, "rounds": rounds, "passes": passes, "timed": n_timed}))
"""


def write_direct(
    root: Path, n_rows: int, feature_map: str = "linear", columns: int = DIRECT_COLUMNS, run: str = ""
) -> Path:
    """Write two folders of direct runs on one table: `records`, and `persons` of four rows on average."""
    rng = np.random.default_rng(0)
    parts = root / "parts"
    parts.mkdir(parents=True)
    for number, start in enumerate(range(0, n_rows, AT_ONCE)):
        rows = table(min(AT_ONCE, n_rows - start), seed=number, columns=columns)
        yes = rows["x0"].to_numpy() + (rows["x1"].to_numpy() - 500) / 500 + rng.logistic(0, 1, len(rows)) > 0
        person = rng.integers(0, max(n_rows // ROWS_OF_A_PERSON, 1), len(rows))
        rows.with_columns(label=np.where(yes, "yes", "no"), person=person).write_parquet(
            parts / f"{number:04d}.parquet"
        )
    for name in ("records", "persons"):
        (root / name).mkdir()
        pl.scan_parquet(parts / "*.parquet").sink_parquet(root / name / "private.parquet")
        table(2_000, seed=2**31, columns=columns).write_parquet(root / name / "public.parquet")
        whose = 'unit = "person"' if name == "persons" else 'drop = ["person"]'
        units = n_rows // ROWS_OF_A_PERSON if name == "persons" else n_rows
        method = f'by = "direct"\nfeature_map = "{feature_map}"'
        (root / name / "quorate.toml").write_text(DIRECT.format(units=units, whose=whose, method=method, run=run))
    return root


def write_votes(root: Path, n_rows: int, model: str = "", n_teachers: str = "") -> float:
    """Write two folders of runs by votes, `records` and `few`; return the bytes of the former's table in memory."""
    write_direct(root, n_rows)
    (root / "persons").rename(root / "few")
    rows = pl.read_parquet(root / "records" / "private.parquet")
    rows.head(FEW).write_parquet(root / "few" / "private.parquet")
    for name, units in (("records", n_rows), ("few", FEW)):
        how = {"whose": 'drop = ["person"]', "method": 'by = "votes"', "run": "n_jobs = 1\nallow_hopeless = true"}
        teachers = ""
        if model:  # of the few rows as many as have some
            teachers = f'\n[teachers]\nmodel = "{model}"\ncount = {min(int(n_teachers), units // 40)}\n'
        (root / name / "quorate.toml").write_text(DIRECT.format(units=units, **how) + teachers)
    return float(rows.estimated_size())


def measured(*command: str, said: Any = subprocess.DEVNULL) -> tuple[float, float, float, float]:
    """Call a command; return seconds of CPU, by the clock, the most megabytes of a process, and of all together.

    All together: looked at five times a second, what processes share once (their proportional sets, in ``/proc``).
    """
    begun, together = time.perf_counter(), 0.0
    child = subprocess.Popen(command, stdout=said)
    while not (ended := os.wait4(child.pid, os.WNOHANG))[0]:
        together = max(together, sum(map(megabytes, family(child.pid))))
        time.sleep(0.2)
    _, status, used = ended
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{command} ended with status {status}")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss * 1024 / 1e6, together


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parent = int(stat.read_text("latin-1").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    members = [pid]
    for member in members:
        members += children.get(member, [])
    return members


def megabytes(pid: int) -> float:
    """Return what a process takes: pages that it shares with others by its share."""
    with suppress(OSError):  # it has ended
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def check_and_shard(root: Path, say: Callable[[str], None] = lambda _: None) -> int:
    """Do what `quorate check` does, assign shards, look at them, and put the rows in the order of the teachers."""
    run = load_run(root, begin=False)
    say("read and checked")
    check(run).private_notes.reveal()
    say("what a check tells")
    shards = shards_of(run.task)
    check_shards(run.task, shards)
    say("shards, looked at")
    n = run.task.recipe.n_teachers
    wanted = [range(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
    rows = sum(len(part.codes) for part in rows_by_teacher(run.task, shards, wanted))
    say("rows, by teacher")
    return rows


def rows_streamed(n_rows: int) -> Callable[[], Any]:
    folder = tempfile.TemporaryDirectory()
    root = write(Path(folder.name, "run"), n_rows, memory=0.01 * n_rows / 1e5)

    def work(_held: Any = folder) -> int:
        return check_and_shard(root)

    return work


def _trained(n_teachers: int, n_columns: int, *, rows_each: int) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_teachers * rows_each, n_columns))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(np.int64)
    key = Secret(bytes(32))
    shards = hash_shards([row.to_bytes(8, "big") for row in range(len(X))], n_teachers, key)
    return train_teachers(
        ClassifierTeacher(LogisticRegression()), X, y, shards, n_teachers=n_teachers, n_classes=2, key=key
    )


def teachers_trained(n_teachers: int) -> Callable[[], Any]:
    return lambda: _trained(n_teachers, 5, rows_each=12)


CURVES = (
    Growth(
        "check and sharding of a table that is streamed", "rows", (1_000_000, 3_000_000, 10_000_000),
        (20_000, 40_000), rows_streamed, repeats=1,
    ),
    Growth(
        "training of teachers of 12 rows", "teachers", (2_000, 6_000, 20_000), (100, 200), teachers_trained,
        processes=True, repeats=1,
    ),
)  # fmt: skip


def main_direct(n_rows: int, feature_map: str = "linear", memory: str = "") -> None:
    run = f"memory = {float(memory)}" if memory else ""
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(
            1, mp_context=get_context("spawn")
        ) as other:  # or its memory counts as that of each run
            root = other.submit(write_direct, Path(folder, "runs"), n_rows, feature_map, run=run).result()
        size = (root / "records" / "private.parquet").stat().st_size / 1e6
        print(f"{n_rows:,} rows of {DIRECT_COLUMNS} columns, a Parquet file of {size:,.0f} MB, {os.cpu_count()} cores")
        sides = {name: [sys.executable, "-m", "quorate", "run", str(root / name)] for name in ("records", "persons")}
        sides["SGDClassifier"] = [sys.executable, "-c", PEER, str(root / "records"), str(DIRECT_COLUMNS)]
        for name, command in sides.items():
            cpu, clock, most, _ = measured(*command)
            print(f"{name}: {cpu:,.0f} s of CPU, {clock:,.0f} s by the clock, {most:,.0f} MB at the most", flush=True)


def main_votes(n_rows: int, *teachers: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            held = other.submit(write_votes, root := Path(folder, "runs"), n_rows, *teachers).result() / 1e6
        most = {}
        for name in ("few", "records"):
            cpu, clock, most[name], together = measured(sys.executable, "-m", "quorate", "run", str(root / name))
            print(
                f"{name}: {cpu:,.0f} s of CPU, {clock:,.0f} s by the clock, {most[name]:,.0f} MB in the largest "
                f"process, {together:,.0f} MB in all together",
                flush=True,
            )
        whole, above = most["records"] / held, (most["records"] - most["few"]) / held
        print(
            f"{n_rows:,} rows, {held:,.0f} MB in memory: {whole:.1f} times that in the largest process, {above:.1f} "
            f"above {FEW:,} rows; {together / held:.1f} times in all together"
        )


def grown(n_rows: int, feature_map: str = "linear") -> dict[str, float]:
    """Run the direct method on a table of so many rows; return what it took."""
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            root = other.submit(write_direct, Path(folder, "runs"), n_rows, feature_map, GROWN_COLUMNS).result()
        with Path(folder, "said.json").open("w") as said:
            cpu, clock, most, _ = measured(sys.executable, "-c", ROUNDS_TIMED, str(root / "records"), said=said)
        told = json.loads(Path(folder, "said.json").read_text())
    return {
        "rows": n_rows,
        "coordinates": told["width"],
        "rounds": len(told["rounds"]),
        "cpu": cpu - sum(told["passes"]) * told["timed"],  # without what the peer took
        "clock": clock,
        "megabytes": most,
        "round": 1e9 * float(np.median(told["rounds"])),
        "gradient": 1e9 * float(np.median(told["passes"])),
    }


def main_grow(*asked: str) -> None:
    """Print the figures of each size, and keep them in a FILE.json that is named among them: it goes on from there."""
    files = [Path(word) for word in asked if word.endswith(".json")]
    sizes = [int(float(word)) for word in asked if not word.endswith(".json")] or [1_000_000, 3_000_000, 10_000_000]
    kept = {int(row["rows"]): row for file in files if file.exists() for row in json.loads(file.read_text())}
    print(f"{GROWN_COLUMNS} columns, a row a record, {os.cpu_count()} cores\n")
    print("| rows | coordinates | rounds | CPU, s | clock, s | MB at the most | a row in a round, ns | of NumPy |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in sizes:
        kept[size] = row = kept.get(size) or grown(size)
        for file in files:
            file.write_text(json.dumps(list(kept.values()), indent=1) + "\n")
        print(
            "| {rows:,} | {coordinates} | {rounds} | {cpu:,.1f} | {clock:,.0f} | {megabytes:,.0f} | {round:,.0f} | "
            "{ratio:.2f} × {gradient:,.0f} |".format(**row, ratio=row["round"] / row["gradient"]),
            flush=True,
        )
    if len(sizes) < 2:
        return
    print("\n| between rows | exponent of CPU | CPU a further row, µs | CPU of 10⁸ rows, minutes | clock, minutes |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    minutes: dict[str, list[float]] = {"cpu": [], "clock": []}
    for pair in pairwise([kept[size] for size in sizes]):
        rows, cpu, clock = (np.array([row[name] for row in pair]) for name in ("rows", "cpu", "clock"))
        exponent, further = (
            float(np.diff(np.log(cpu))[0] / np.diff(np.log(rows))[0]),
            np.diff(cpu)[0] / np.diff(rows)[0],
        )
        for name, spent in (("cpu", cpu), ("clock", clock)):  # a further row takes what these did, on average
            minutes[name].append(float(spent[1] + np.diff(spent)[0] / np.diff(rows)[0] * (1e8 - rows[1])) / 60)
        print(
            f"| {rows[0]:,.0f} to {rows[1]:,.0f} | {exponent:.2f} | {1e6 * further:.1f} | {minutes['cpu'][-1]:.0f} | "
            f"{minutes['clock'][-1]:.0f} |"
        )
    words = (f"{min(of):.0f} to {max(of):.0f} minutes" for of in minutes.values())
    print("\n10⁸ rows, from these alone: {} of CPU, {} by the clock".format(*words))


def main() -> None:
    if sys.argv[1:2] == ["votes"]:
        main_votes(int(float(sys.argv[2])) if len(sys.argv) > 2 else 2_000_000, *sys.argv[3:5])
        return
    if sys.argv[1:2] == ["grow"]:
        main_grow(*sys.argv[2:])
        return
    if sys.argv[1:2] == ["direct"]:
        main_direct(int(float(sys.argv[2])) if len(sys.argv) > 2 else 2_000_000, *sys.argv[3:5])
        return
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder, "run"), n_rows, memory=float(sys.argv[2]) if len(sys.argv) > 2 else 1.5)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        cpu, clock = time.process_time(), time.perf_counter()

        def say(what: str) -> None:
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            used = time.process_time() - cpu, time.perf_counter() - clock
            print(f"{what:<20} {used[0]:7.1f} s of CPU, {used[1]:7.1f} s by the clock, {most:7,.0f} MB", flush=True)

        print(f"{n_rows:,} rows written, {before / 1024:,.0f} MB")
        check_and_shard(root, say)


if __name__ == "__main__":
    main()
