"""A thousand teachers on a Dask worker of this machine, beside the same teachers trained without a scheduler.

    python -m benchmarks.elsewhere [--quick] [--json FILE] [--rounds N] [--only WORDS] [--dask-as-it-comes]

Both sides have one process for teachers, which they start, as each run does. CPU time is that of every process: this
one, quorate's, and Dask's scheduler, nanny and worker. The cluster is started before each of its turns and ended after
it, which is not counted, and so is the end of a clean process on either side; to connect, to look at versions, and to
write and read the files is counted. The teachers of both sides have to be the same, bit for bit. The aim is a ratio of
at most 1.15.

The scheduler and the worker are started as docs/how-to/beyond-one-machine.md says, without what Dask measures of itself
all the while; `--dask-as-it-comes` starts them without these settings.

Two sizes, 128 teachers and a thousand, part what a run pays once from what each teacher pays. What is paid only by a
process that has not loaded Dask yet is measured by itself, in new processes.

    python -m benchmarks.elsewhere rounds [ROWS]

takes a table (by default 100,000 rows of 20 columns) through the rounds of the direct method on this machine, and on
clusters of 1, 2 and 4 workers of one thread; of two workers and more one is killed after the second round. CPU time and
the most memory are those of all processes of a side. What the ledger records of each charge, draw and released sum has
to be the same everywhere; the model follows from that and from public rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

AIM = 1.15
SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
WORKER = "from distributed.cli.dask_worker import main; main()"
CONNECT = """
import sys
from pathlib import Path
from time import process_time
from quorate.ensemble import DaskScheduler
before = process_time()
with DaskScheduler(sys.argv[1], folder=Path(sys.argv[2])).connected():
    print(process_time() - before)
"""
FEW = 128  # two tasks

#: As docs/how-to/beyond-one-machine.md starts schedulers and workers.
SETTINGS = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
OPTIONS = ["--memory-limit", "0"]


@contextmanager
def cluster(place: Path, *, as_it_comes: bool = False, workers: int = 1, started: list | None = None):
    """A scheduler and workers of one thread; yields the address; all are children of this process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    settings = {**os.environ, **({} if as_it_comes else SETTINGS)}
    options = [] if as_it_comes else OPTIONS
    asked = [[SCHEDULER, *common, "--port", str(port)]]
    for number in range(workers):
        local = str(place / f"local-{number}")
        asked.append([WORKER, *common, address, "--nthreads", "1", "--local-directory", local, *options])
    with (place / "said.txt").open("a") as said:
        processes = [
            subprocess.Popen([sys.executable, "-c", *each], stdout=said, stderr=said, env=settings) for each in asked
        ]
    if started is not None:
        started += processes
    try:
        from distributed import Client

        with Client(address, set_as_default=False, timeout=120) as client:
            client.wait_for_workers(workers, timeout=120)
        yield address
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def used(pids: list[int]) -> float:
    """CPU seconds of these processes and of all that they started."""
    import psutil

    total = 0.0
    for pid in pids:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
    return total


def wait_for_clean_processes() -> None:
    """Wait until the processes of an earlier turn have ended."""
    import psutil

    def running() -> bool:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if "loky" in (said := " ".join(process.cmdline())) and "tracker" not in said:
                    return True
        return False

    until = time.monotonic() + 60
    while running():
        if time.monotonic() > until:
            raise SystemExit("a clean process of an earlier turn does not end")
        time.sleep(0.2)


def first_connection(address: str, folder: Path) -> float:
    """CPU seconds that a new process takes to connect, of which most go to loading Dask."""
    asked = [sys.executable, "-c", CONNECT, address, str(folder)]
    return float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)


def trained_here(kind, X, y, shards, n):
    from quorate.ensemble import train_chunk
    from quorate.types import Secret

    voters = []
    for numbers, rows in stages(shards, n):
        voters += train_chunk(
            kind,
            X[rows],
            y[rows],
            Secret(shards[rows]),
            numbers=numbers,
            n_teachers=n,
            n_classes=2,
            key=Secret(bytes(32)),
        ).reveal()
    return voters


def trained_elsewhere(kind, X, y, shards, n, address, folder):
    from quorate.ensemble import DaskScheduler, train_elsewhere
    from quorate.types import Secret

    parts = ((numbers, X[rows], y[rows], Secret(shards[rows])) for numbers, rows in stages(shards, n))
    scheduler = DaskScheduler(address, folder=folder)
    found = train_elsewhere(kind, parts, n_teachers=n, n_classes=2, key=Secret(bytes(32)), scheduler=scheduler)
    voters = {number: voter.reveal() for number, voter in found}
    return [voters[number] for number in range(n)]


def stages(shards, n):
    """The teachers of each stage and the rows that are theirs, as a run hands them over."""
    for start in range(0, n, 64):
        numbers = range(start, min(start + 64, n))
        yield numbers, slice(*np.searchsorted(shards, [numbers.start, numbers.stop]))


def timed(work, pids):
    before, wall = used(pids), time.perf_counter()
    came = work()
    wall = time.perf_counter() - wall
    return used(pids) - before, wall, came


def kinds():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    return {
        "logistic regressions": LogisticRegression(),
        "forests of 10 trees": RandomForestClassifier(n_estimators=10, max_depth=6),
        "forests of 50 trees": RandomForestClassifier(n_estimators=50, max_depth=6),
    }


def measured(name: str, *, quick: bool, rounds: int, as_it_comes: bool) -> dict[str, object]:
    """Median ratios of paired rounds, CPU time and the clock, and what more is used in all and by each teacher."""
    import joblib  # whose hash is of values alone: equal objects of two processes may be pickled otherwise

    from quorate.ensemble import ClassifierTeacher
    from quorate.ensemble.workers.workers import end_workers

    n = 130 if quick else 1000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n * 100, 50))
    y = (X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(np.int64)
    shards = np.repeat(np.arange(n), 100)
    kind = ClassifierTeacher(kinds()[name])
    mine = [os.getpid()]

    def rows(of: int):
        return kind, X[: of * 100], y[: of * 100], shards[: of * 100], of

    def here(of: int):
        end_workers()
        return timed(lambda: trained_here(*rows(of)), mine)

    def there(of: int, address: str, folder: Path):
        end_workers()
        wait_for_clean_processes()
        return timed(lambda: trained_elsewhere(*rows(of), address, folder), mine)

    ratios, clock, few, many, connections = [], [], [], [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "private")
        folder.mkdir(mode=0o700)
        trained_here(*rows(64))
        for number in range(1 if quick else rounds):

            def on_a_cluster():
                with cluster(Path(place), as_it_comes=as_it_comes) as address:
                    trained_elsewhere(*rows(64), address, folder)  # as above: whose worker is there already
                    found = there(n, address, folder), there(FEW, address, folder)
                    connections.append(first_connection(address, folder))
                return found

            turns = {False: lambda: (here(n), here(FEW)), True: on_a_cluster}
            first = bool(number % 2)  # each side begins as often as the other
            found = {side: turns[side]() for side in (first, not first)}
            (here_n, here_few), (there_n, there_few) = found[False], found[True]
            if [joblib.hash(each) for each in here_n[2]] != [joblib.hash(each) for each in there_n[2]]:
                raise SystemExit(f"{name}: the teachers differ")
            ratios.append(there_n[0] / here_n[0])
            clock.append(there_n[1] / here_n[1])
            many.append((here_n[0], there_n[0]))
            few.append((here_few[0], there_few[0]))
            print(f"  round {number + 1}: {here_n[0]:.2f} s here, {there_n[0]:.2f} there: {ratios[-1]:.3f}", flush=True)
    more, more_of_few = (float(np.median([there - here for here, there in each])) for each in (many, few))
    each = (more - more_of_few) / (n - FEW)
    return {
        "name": f"{n:,} {name}, 100 rows × 50",
        "settings": "as Dask comes" if as_it_comes else "as in the how-to",
        "ratio": float(np.median(ratios)),
        "ratio_by_the_clock": float(np.median(clock)),
        "least": min(ratios),
        "most": max(ratios),
        "cpu_here": float(np.median([here for here, _ in many])),
        "cpu_there": float(np.median([there for _, there in many])),
        "more_in_all": more_of_few - FEW * each,
        "more_a_teacher": each,
        "first_connection": float(np.median(connections)),
        "aim": AIM,
        "rounds": len(ratios),
    }


def most_memory(pids: list[int], ended: threading.Event, found: list[float]) -> None:
    """Keep the most megabytes that these processes and all that they started have held together."""
    import psutil

    while not ended.wait(0.5):
        held = 0
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
                    with suppress(psutil.NoSuchProcess):
                        held += process.memory_info().rss
        found[0] = max(found[0], held / 1e6)


def rounds_by(workers: int, root: Path, place: Path) -> tuple[list[object], tuple[float, float, float]]:
    """Go all rounds; return what has to be the same, and CPU time, the clock and memory."""
    from quorate.direct import descend
    from quorate.folder.methods import execute, read_run
    from quorate.folder.settings import settings_of
    from quorate.ledger import Ledger

    started: list[subprocess.Popen[bytes]] = []
    release, rounds, ended, most, lost = descend.release, [], threading.Event(), [0.0], [0.0]

    def released(*given, **options):
        rounds.append(1)
        if workers > 1 and len(rounds) == 2:
            import psutil

            nanny = psutil.Process(started[-1].pid)
            for process in [nanny, *nanny.children(recursive=True)]:  # one worker with all that it started, for good
                lost[0] += sum(process.cpu_times()[:4])
                process.kill()
        return release(*given, **options)

    with cluster(place, workers=workers, started=started) if workers else nullcontext() as address:
        settings = settings_of(root)
        run = read_run(root, settings=replace(settings, run=replace(settings.run, scheduler=address)))
        pids = [os.getpid()]
        watching = threading.Thread(target=most_memory, args=(pids, ended, most))
        watching.start()
        descend.release = released
        try:
            cpu, wall, _ = timed(lambda: execute(run, command="quorate run"), pids)
        finally:
            descend.release = release
            ended.set()
            watching.join()
    with Ledger(root / "ledger.db") as ledger:
        said = [entry.content for entry in ledger.entries() if entry.kind in ("reserved", "drawn", "stored")]
    return said, (cpu + lost[0], wall, most[0])


def main_rounds(n_rows: int) -> None:
    from benchmarks.streaming import write_direct

    with tempfile.TemporaryDirectory() as folder:
        first = write_direct(Path(folder, "runs"), n_rows, "linear", 20) / "records"
        with (first / "quorate.toml").open("a") as settings:
            settings.write("unsafe_noise_seed = 5\n")  # whose last section is [run]
        from quorate.release.keys import fingerprint_key

        fingerprint_key(first / "ledger.db")  # one key, or the charges would name other data
        found = []
        for workers in (0, 1, 2, 4):
            root = Path(folder, f"of {workers}")
            shutil.copytree(first, root)
            came, (cpu, wall, most) = rounds_by(workers, root, Path(folder))
            found.append(came)
            where = f"{workers} workers, one killed" if workers > 1 else "one worker" if workers else "this machine"
            print(f"{where}: {cpu:.1f} s of CPU, {wall:.0f} s by the clock, {most:,.0f} MB", flush=True)
        if any(came != found[0] for came in found):
            raise SystemExit("what the ledger records differs")
        print(f"{n_rows:,} rows: the ledger records the same charge, draws and released sums on all")


def main() -> None:
    if sys.argv[1:2] == ["rounds"]:
        main_rounds(int(float(sys.argv[2])) if len(sys.argv) > 2 else 100_000)
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--dask-as-it-comes", action="store_true")
    given = parser.parse_args()
    found = []
    for name in kinds():
        if given.only in name:
            found.append(measured(name, quick=given.quick, rounds=given.rounds, as_it_comes=given.dask_as_it_comes))
            print(
                "{name}, {settings}: CPU × {ratio:.3f} ({least:.3f} to {most:.3f}, {rounds} rounds), clock × "
                "{ratio_by_the_clock:.3f}; at most {aim:g}; {cpu_here:.2f} s of CPU here, {cpu_there:.2f} there".format(
                    **found[-1]
                ),
                flush=True,
            )
            if not given.quick:
                print(
                    "  more than here: {more_in_all:.2f} s in all and {each:.2f} ms a teacher; {first_connection:.2f} "
                    "s once in a process that has not connected before".format(
                        **found[-1], each=1000 * found[-1]["more_a_teacher"]
                    ),
                    flush=True,
                )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    main()
