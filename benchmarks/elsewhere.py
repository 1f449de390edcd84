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
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
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
def cluster(place: Path, *, as_it_comes: bool = False):
    """A scheduler and one worker of one thread; yields the address; both are children of this process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    settings = {**os.environ, **({} if as_it_comes else SETTINGS)}
    options = [] if as_it_comes else OPTIONS
    asked = (
        [SCHEDULER, *common, "--port", str(port)],
        [WORKER, *common, address, "--nthreads", "1", "--local-directory", str(place / "local"), *options],
    )
    with (place / "said.txt").open("a") as said:
        processes = [
            subprocess.Popen([sys.executable, "-c", *each], stdout=said, stderr=said, env=settings) for each in asked
        ]
    try:
        from distributed import Client

        with Client(address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
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


def main() -> None:
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
