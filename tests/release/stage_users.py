"""A process whose forked, threaded, copied and spawned users share one sparse-vector ledger. See test_stages.py."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorate.errors import BudgetExhausted, LedgerBusy
from quorate.labelling.stable import QUERY, STAGE, StableAnswers, stable_purposes
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import StableSparseVector
from quorate.noise import OSNoise
from quorate.types import Secret

DELTA = 1e-3
N_QUERIES = 200
VOTES = {"far": ["a"] * 30, "near": ["a"] * 19 + ["b"] * 11, "tied": ["a", "b"] * 15}
REFUSED = "refused"
STOP = "stop"
MEMORY = "/dev/shm"


def vector(cutoff: int) -> StableSparseVector:
    return StableSparseVector(20.0, DELTA, cutoff=cutoff, n_queries=N_QUERIES)


@contextmanager
def opened(path: str, mechanism: StableSparseVector) -> Iterator[Any]:
    """Open the ledger as soon as nobody else holds it, and its one reservation."""
    while True:
        try:
            ledger = Ledger(path, budget=Budget(20.0, DELTA))
            break
        except LedgerBusy:
            time.sleep(0.001)
    with ledger:
        yield ledger.reserve(mechanism.event, delta=DELTA, purposes=stable_purposes(mechanism), key="questions")


def asked(answers: StableAnswers, reservation: Any, votes: str) -> str | None:
    try:
        return answers.answer(reservation, os.urandom(8).hex(), Secret(VOTES[votes]))
    except BudgetExhausted:
        return REFUSED


@dataclass
class Here:
    path: str
    mechanism: StableSparseVector
    answers: StableAnswers
    told: str | None = None

    def begin(self, votes: str) -> None:
        with opened(self.path, self.mechanism) as reservation:
            self.told = asked(self.answers, reservation, votes)

    def end(self) -> str | None:
        return self.told

    def close(self) -> None:
        pass


class Forked:
    """A child that inherits all that this process holds."""

    def __init__(self, here: Here) -> None:
        (down_read, self._down), (self._up, up_write) = os.pipe(), os.pipe()
        self._child = os.fork()
        if not self._child:
            try:
                os.close(self._down)
                for line in os.fdopen(down_read):
                    if line.strip() == STOP:  # later children hold the other end too, so that its close is not seen
                        break
                    here.begin(line.strip())
                    os.write(up_write, (json.dumps(here.end()) + "\n").encode())
            finally:
                os._exit(0)
        os.close(down_read)
        os.close(up_write)
        self._told = os.fdopen(self._up)

    def begin(self, votes: str) -> None:
        os.write(self._down, (votes + "\n").encode())

    def end(self) -> str | None:
        return json.loads(self._told.readline())  # type: ignore[no-any-return]

    def close(self) -> None:
        self.begin(STOP)
        os.waitpid(self._child, 0)
        os.close(self._down)
        self._told.close()


class Spawned:
    """A process of its own, which knows the ledger's place and nothing else."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "user"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def join(self, path: str, cutoff: int) -> None:
        self._say({"path": path, "cutoff": cutoff})

    def begin(self, votes: str) -> None:
        self._say({"votes": votes})

    def end(self) -> str | None:
        return json.loads(self._process.stdout.readline())  # type: ignore[no-any-return, union-attr]

    def close(self) -> None:
        pass

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _say(self, what: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps(what) + "\n")  # type: ignore[union-attr]
        self._process.stdin.flush()  # type: ignore[union-attr]


def be_spawned() -> None:
    here: Here | None = None
    for line in sys.stdin:
        what = json.loads(line)
        if "path" in what:
            mechanism = vector(what["cutoff"])
            here = Here(what["path"], mechanism, StableAnswers(mechanism, OSNoise()))
        elif here is not None:
            here.begin(what["votes"])
            print(json.dumps(here.end()), flush=True)


def snapshot(answers: StableAnswers) -> StableAnswers:
    """Copy an object with all that it holds, as a copy of the whole machine would."""
    copied = copy.copy(answers)
    for name, value in vars(copied).items():
        if type(value).__name__ in {"Stages", "_Held"}:
            setattr(copied, name, snapshot(value) if hasattr(value, "__dict__") else copy.copy(value))
    return copied


def threads(here: Here, rng: random.Random) -> list[str | None]:
    """Let threads share one object and one open ledger."""
    told: list[str | None] = []
    with opened(here.path, here.mechanism) as reservation:

        def ask(votes: str) -> None:
            told.append(asked(here.answers, reservation, votes))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, [rng.choice(list(VOTES)) for _ in range(4)]))
    return told


def schedule(seed: int, spawned: list[Spawned], folder: str) -> dict[str, int]:
    """Play one random schedule; return what was paid for, counted, declined and answered."""
    rng = random.Random(seed)
    cutoff = rng.randint(1, 4)
    mechanism, path = vector(cutoff), str(Path(folder) / f"{seed}.db")
    here = Here(path, mechanism, StableAnswers(mechanism, OSNoise()))
    with opened(path, mechanism):
        pass
    for each in spawned:
        each.join(path, cutoff)
    users: list[Any] = [here, *spawned]
    told: list[str | None] = []
    for act in rng.choices(["ask", "far", "fork", "copy", "threads"], [8, 2, 3, 1, 1], k=rng.randint(6, 14)):
        if act == "fork":
            users.append(Forked(here))
        elif act == "copy":
            users.append(Here(path, mechanism, snapshot(here.answers)))
        elif act == "threads":
            told += threads(here, rng)
        elif act == "far":  # so that a stage is open, which others may copy
            here.begin("far")
            told.append(here.end())
        else:
            at_once = rng.sample(users, min(len(users), rng.randint(1, 3)))
            at_once.sort(key=lambda user: isinstance(user, Here))  # this process begins last, and so waits for nobody
            for user in at_once:
                user.begin(rng.choice(["tied", "tied", "near", "far"]))
            told += [user.end() for user in at_once]
    for user in users:
        user.close()
    with opened(path, mechanism) as reservation:
        counted = cutoff - reservation.remaining(STAGE)
        stored = [each["value"] for block in reservation.blocks(QUERY) for each in block.answers or ()]
    declined = told.count(None)
    assert declined == stored.count(None), "what was declined is what was stored"
    return {"paid": cutoff, "counted": counted, "declined": declined, "answered": told.count("a"), "users": len(users)}


def without_defences() -> None:
    """The cheating twin: whoever holds a threshold uses it, and the ledger is not asked."""
    from quorate.release import stages

    stages._Held.goes_on = lambda self, reservation: bool(self.stages)  # type: ignore[method-assign]
    draw = stages.draw
    stages.draw = lambda reservation, purpose, count=1, **_: draw(reservation, purpose, count)


def main() -> None:
    if sys.argv[1] == "user":
        be_spawned()
        return
    first, end, n_spawned = (int(each) for each in sys.argv[2:5])
    spawned = [Spawned() for _ in range(n_spawned)]
    with tempfile.TemporaryDirectory(dir=MEMORY if Path(MEMORY).is_dir() else None) as folder:
        for seed in range(first, end):
            print(json.dumps(schedule(seed, spawned, folder)), flush=True)
        if sys.argv[1] == "and cheats":
            without_defences()
            found = (schedule(seed, spawned, folder) for seed in range(1_000, 1_100))
            print(json.dumps(next((each for each in found if each["declined"] > each["counted"]), None)), flush=True)
    for each in spawned:
        each.stop()


if __name__ == "__main__":
    main()
