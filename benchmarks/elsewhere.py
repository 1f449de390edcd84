"""A thousand teachers on a Dask worker of this machine, beside the same teachers trained without a scheduler.

    python -m benchmarks.elsewhere [--quick] [--json FILE] [--rounds N]

Both sides have one process for teachers, which they start, as each run does. CPU time is that of every process: this
one, quorate's, and Dask's scheduler, nanny and worker. The cluster is started before each of its turns and ended after
it, which is not counted; to connect, to look at versions, and to write and read the files is. The teachers of both
sides have to be the same, bit for bit. The aim is a ratio of at most 1.15.
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


@contextmanager
def cluster(place: Path):
    """A scheduler and one worker of one thread; yields the address; both are children of this process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    asked = (
        [SCHEDULER, *common, "--port", str(port)],
        [WORKER, *common, address, "--nthreads", "1", "--local-directory", str(place / "local")],
    )
    with (place / "said.txt").open("a") as said:
        processes = [subprocess.Popen([sys.executable, "-c", *each], stdout=said, stderr=said) for each in asked]
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


def trained_here(kind, X, y, shards, n):
    from quorate.ensemble import train_chunk
    from quorate.types import Secret

    voters = []
    for start in range(0, n, 64):  # stage by stage, as a run does
        numbers = range(start, min(start + 64, n))
        voters += train_chunk(
            kind, X, y, Secret(shards), numbers=numbers, n_teachers=n, n_classes=2, key=Secret(bytes(32))
        ).reveal()
    return voters


def trained_elsewhere(kind, X, y, shards, n, address, folder):
    from quorate.ensemble import DaskScheduler, train_elsewhere
    from quorate.types import Secret

    parts = ((range(s, min(s + 64, n)), X, y, Secret(shards)) for s in range(0, n, 64))
    scheduler = DaskScheduler(address, folder=folder)
    found = train_elsewhere(kind, parts, n_teachers=n, n_classes=2, key=Secret(bytes(32)), scheduler=scheduler)
    voters = {number: voter.reveal() for number, voter in found}
    return [voters[number] for number in range(n)]


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
    }


def measured(name: str, *, quick: bool, rounds: int) -> dict[str, object]:
    """Median ratios of paired rounds; CPU time and the clock."""
    import pickle

    from quorate.ensemble import ClassifierTeacher
    from quorate.ensemble.workers import end_workers

    n = 130 if quick else 1000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n * 100, 50))
    y = (X[:, :5].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(np.int64)
    shards = np.repeat(np.arange(n), 100)
    kind = ClassifierTeacher(kinds()[name])
    cpu, clock = [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "private")
        folder.mkdir(mode=0o700)
        trained_here(kind, X[:6400], y[:6400], shards[:6400], 64)
        for _ in range(1 if quick else rounds):
            mine = [os.getpid()]
            end_workers()
            cpu_here, wall_here, here = timed(lambda: trained_here(kind, X, y, shards, n), mine)
            with cluster(Path(place)) as address:
                first = 64  # as above: whose worker is there already
                trained_elsewhere(
                    kind, X[: first * 100], y[: first * 100], shards[: first * 100], first, address, folder
                )
                cpu_there, wall_there, there = timed(
                    lambda at=address: trained_elsewhere(kind, X, y, shards, n, at, folder), mine
                )
            if [pickle.dumps(each) for each in here] != [pickle.dumps(each) for each in there]:
                raise SystemExit(f"{name}: the teachers differ")
            cpu.append(cpu_there / cpu_here)
            clock.append(wall_there / wall_here)
    return {
        "name": f"{n:,} {name}, 100 rows × 50",
        "ratio": float(np.median(cpu)),
        "ratio_by_the_clock": float(np.median(clock)),
        "least": min(cpu),
        "most": max(cpu),
        "cpu_here": cpu_here,
        "cpu_there": cpu_there,
        "aim": AIM,
        "rounds": len(cpu),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    found = []
    for name in kinds():
        if given.only in name:
            found.append(measured(name, quick=given.quick, rounds=given.rounds))
            print(
                "{name}: CPU × {ratio:.3f} ({least:.3f} to {most:.3f}), clock × {ratio_by_the_clock:.3f}; at most "
                "{aim:g}; {cpu_here:.2f} s of CPU here, {cpu_there:.2f} there".format(**found[-1]),
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    main()
