"""The service under load, on this machine alone: with its ledger and without, one by one and in batches, for long.

    python -m benchmarks.service [--seconds 5] [--rounds 3] [--clients 64] [--requests 200000] [--json FILE]

Two services run side by side, each in a process of its own on a port of the loopback interface: one with its ledger,
one that draws the same noise and records nothing. Load goes to one and then to the other, for some seconds and some
rounds, so that both meet the same machine. Every request asks a new point. Nothing but 127.0.0.1 is ever reached.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

BATCH = 100
ANSWERS = 400_000


# --- the run that is served ---------------------------------------------------------------------------------------


def make_run(root: Path, *, teachers: int = 100, answers: int = ANSWERS) -> Path:
    """A finished run with linear teachers; so many answers are kept back that they say little, which is no matter."""
    from quorate.folder.batch import load_run
    from quorate.folder.methods import execute

    root.mkdir(parents=True)
    rng = np.random.default_rng(0)

    def visits(n: int) -> pl.DataFrame:
        ward = rng.choice(["north", "south", "west"], n)
        return pl.DataFrame({"age": rng.integers(18, 95, n), "bmi": np.round(rng.normal(26, 4, n), 3), "ward": ward})

    private = visits(5_000)
    ill = np.where(private["age"].to_numpy() + rng.normal(0, 10, 5_000) > 55, "yes", "no")
    private.with_columns(pl.Series("ill", ill)).write_csv(root / "private.csv")
    visits(300).write_csv(root / "public.csv")
    (root / "quorate.toml").write_text(
        '[data]\nprivate = "private.csv"\npublic = "public.csv"\nlabel = "ill"\nclasses = ["no", "yes"]\n'
        f"n_records = 5000\n[budget]\nepsilon = 8.0\ndelta = 1e-5\n[teachers]\ncount = {teachers}\n"
        f'[mechanism]\nqueries = 100\nonline_answers = {answers}\nname = "GaussianNoisyMax"\n'
        "[run]\nallow_hopeless = true\n"
    )
    execute(load_run(root), command="quorate run")
    return root


class WithoutLedger:
    """Stands where the ledger's answers stand: draws the same noise on the same votes, and records nothing."""

    def __init__(self, online: Any) -> None:
        self._online = online
        self.memo, self.reservation, self.purposes = online.memo, online.reservation, online.purposes
        self.left = online.left
        self._drawn = 0

    def ask_together(self, rows: Any, requests: Sequence[Any]) -> list[Any]:
        from quorate.data import take
        from quorate.labelling import ClientAnswer

        digests = [digest for request in requests for digest in request.digests]
        new = [at for at, digest in enumerate(digests) if self.memo.recall(digest) is None]
        if new:
            votes = self._online.count_votes(take(rows, new)).reveal()
            noise = self._online.noise.at("no ledger", self._drawn)
            codes = self._online.mechanism.release_many(votes, noise)
            self._drawn += len(new)
            self.left -= len(new)
            self.memo.remember([digests[at] for at in new], codes.tolist())
        return [
            ClientAnswer(np.array([self.memo.recall(digest) for digest in request.digests]), len(request.digests), None)
            for request in requests
        ]


def serve(root: Path, *, ledger: bool) -> None:
    """Serve a run on a free port, which is printed; until standard input ends."""
    import threading

    import uvicorn

    from quorate.folder.folder import RunFolder
    from quorate.service.app import Service, create_app
    from quorate.service.keys import KeyFile
    from quorate.service.open_run import opened
    from quorate.service.records import Records
    from quorate.service.settings import ServiceSettings

    settings = ServiceSettings()
    with opened(root, settings) as served:
        if not ledger:
            served.answers._online = WithoutLedger(served.answers._online)  # type: ignore[attr-defined]
        log = (root / "service.log").open("w")
        service = Service(
            served, KeyFile(RunFolder(root).private), settings, Records(write=lambda line: print(line, file=log))
        )
        config = uvicorn.Config(create_app(service), port=0, log_config=None, access_log=False, ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        sys.stdin.read()
        blocks = service.threads.blocks if service.threads else 0
        print(json.dumps({"blocks": blocks, "charged": service.records.charged}), file=sys.stderr)
        server.should_exit = True
        thread.join()


@contextmanager
def started(root: Path, *, ledger: bool) -> Iterator[tuple[int, int]]:
    """Serve in a process of its own; its port and its process id."""
    command = [sys.executable, "-m", "benchmarks.service", "--serve", str(root), *(() if ledger else ("--no-ledger",))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield int(process.stdout.readline()), process.pid
    finally:
        process.stdin.close()
        process.wait(120)


# --- the load -----------------------------------------------------------------------------------------------------


class Load:
    """Clients that each send a request, wait for its answer, and send the next."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._head = (
            f"POST /v1/label HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
        )
        self.seconds: list[float] = []
        self.failed = 0

    async def run(self, bodies: Callable[[], bytes], *, clients: int, seconds: float = 0, requests: int = 0) -> float:
        """Send for some seconds, or so many requests; return how long it took."""
        begun = time.perf_counter()
        left = [requests or 1 << 60]
        until = begun + (seconds or 1e9)
        await asyncio.gather(*(self._client(bodies, left, until) for _ in range(clients)))
        return time.perf_counter() - begun

    async def _client(self, bodies: Callable[[], bytes], left: list[int], until: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while left[0] > 0 and time.perf_counter() < until:
            left[0] -= 1
            body = bodies()
            sent = time.perf_counter()
            writer.write(f"{self._head}content-length: {len(body)}\r\n\r\n".encode() + body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            self.seconds.append(time.perf_counter() - sent)
            self.failed += not head.startswith(b"HTTP/1.1 200")
        writer.close()


def fresh(first: int, batch: int = 0) -> Callable[[], bytes]:
    """Bodies with points that nobody asked before."""
    at = [first]

    def body() -> bytes:
        rows = [{"age": 50, "bmi": (at[0] + k) / 1024, "ward": "north"} for k in range(max(1, batch))]
        at[0] += len(rows)
        return json.dumps({"rows": rows} if batch else {"row": rows[0]}).encode()

    return body


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rounds_of(
    servers: dict[str, tuple[int, int]], token: str, *, clients: int, seconds: float, rounds: int
) -> dict[str, Any]:
    """Throughput and waiting times with the ledger and without, in turn; and CPU, which other work does not change."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    used: dict[str, list[float]] = {name: [] for name in servers}
    for number in range(-1, rounds):
        for name, (port, pid) in servers.items():
            load, before = Load(port, token), cpu_of(pid)
            took = asyncio.run(
                load.run(fresh((number + 2) * 40_000), clients=clients, seconds=seconds if number >= 0 else 1)
            )
            assert not load.failed
            if number >= 0:
                found[name].append((len(load.seconds) / took, float(np.quantile(load.seconds, 0.99))))
                used[name].append((cpu_of(pid) - before) / len(load.seconds))
    told = {
        name: {
            "requests_a_second": round(statistics.median(rate for rate, _ in each), 1),
            "p99_ms": round(1e3 * statistics.median(late for _, late in each), 2),
            "cpu_ms_a_request": round(1e3 * statistics.median(used[name]), 3),
            "rounds": [(round(rate, 1), round(1e3 * late, 2)) for rate, late in each],
        }
        for name, each in found.items()
    }
    on, off = told["ledger"], told["no ledger"]
    share = statistics.median(a / b for (a, _), (b, _) in zip(found["ledger"], found["no ledger"], strict=True))
    late = statistics.median(a / b for (_, a), (_, b) in zip(found["ledger"], found["no ledger"], strict=True))
    return {"ledger": on, "no_ledger": off, "share": round(share, 3), "p99_ratio": round(late, 2)}


def batches_of(port: int, token: str, *, clients: int, seconds: float) -> dict[str, float]:
    """Answers a second, one by one and in batches."""
    rates = {}
    for name, batch in (("one by one", 0), ("in batches", BATCH)):
        load = Load(port, token)
        took = asyncio.run(load.run(fresh(10_000_000 + 1_000_000 * batch, batch), clients=clients, seconds=seconds))
        assert not load.failed
        rates[name] = len(load.seconds) * max(1, batch) / took
    return {
        "answers_a_second_one_by_one": round(rates["one by one"], 1),
        f"answers_a_second_in_batches_of_{BATCH}": round(rates["in batches"], 1),
        "ratio": round(rates["in batches"] / rates["one by one"], 1),
    }


def memory_of(root: Path, token: str, *, clients: int, requests: int) -> dict[str, float]:
    """Resident memory before and after many requests about points of a hospital that come again and again."""

    def resident(pid: int) -> float:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    at = [0]

    def body() -> bytes:
        at[0] = (at[0] + 7_919) % 5_000
        return json.dumps({"row": {"age": 20 + at[0] % 60, "bmi": at[0] / 128, "ward": "west"}}).encode()

    with started(root, ledger=True) as (port, pid):
        load = Load(port, token)
        asyncio.run(load.run(body, clients=clients, requests=max(6_000, requests // 10)))
        before = resident(pid)
        load.seconds.clear()
        took = asyncio.run(load.run(body, clients=clients, requests=requests))
        after = resident(pid)
        assert not load.failed
    return {
        "requests": requests,
        "megabytes_before": round(before, 1),
        "megabytes_after": round(after, 1),
        "growth_percent": round(100 * (after / before - 1), 2),
        "requests_a_second": round(requests / took, 1),
    }


def _load(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Measure throughput, waiting times and batches."""
    from quorate.folder.folder import RunFolder
    from quorate.service.keys import FILE, KeyFile

    roots = [make_run(folder / name) for name in ("one", "other")]
    token = KeyFile(RunFolder(roots[0]).private).create("load", ["ask"])[0]
    # One token for both: the second folder gets the first one's keys.
    (RunFolder(roots[1]).private / FILE).write_bytes((RunFolder(roots[0]).private / FILE).read_bytes())
    found: dict[str, Any] = {}
    with started(roots[0], ledger=True) as one, started(roots[1], ledger=False) as other:
        found["throughput"] = rounds_of(
            {"ledger": one, "no ledger": other},
            token,
            clients=given.clients,
            seconds=given.seconds,
            rounds=given.rounds,
        )
        print(json.dumps(found["throughput"], indent=1), flush=True)
        found["batches"] = batches_of(one[0], token, clients=8, seconds=given.seconds)
        print(json.dumps(found["batches"], indent=1), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--only", choices=("load", "memory"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--no-ledger", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, ledger=not given.no_ledger)
        return
    from quorate.folder.folder import RunFolder
    from quorate.service.keys import KeyFile

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if given.only != "memory":
            found |= _load(Path(folder), given)
        if given.only != "load":
            small = make_run(Path(folder, "small"), answers=1_000)
            token = KeyFile(RunFolder(small).private).create("load", ["ask"])[0]
            found["memory"] = memory_of(small, token, clients=given.clients, requests=given.requests)
            print(json.dumps(found["memory"], indent=1), flush=True)
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
