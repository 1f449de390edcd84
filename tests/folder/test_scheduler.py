"""A run whose teachers are trained by the workers of a real Dask scheduler: real processes, some of them killed."""

import os
import shutil
import signal
import socket
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.folder.conftest import DIRECT, KILLED_IN_A_ROUND, at_round, charges, stored, write_run
from tests.folder.test_command_run import COUNT, broken_off, seeds, trained_anew
from tests.processes import on_linux, start

from quorate.direct import descend
from quorate.folder.batch import load_run
from quorate.folder.methods import execute, read_run
from quorate.folder.settings import settings_of
from quorate.ledger import Ledger
from quorate.release.keys import fingerprint_key

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.mostly_heavy, on_linux, pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")]

SCHEDULER = "import sys; from distributed.cli.dask_scheduler import main; main()"
WORKER = "import sys; from distributed.cli.dask_worker import main; main()"
COMMAND = "import sys; from quorate.cli import main; main(['run', *sys.argv[1:]])"
K = 114  # two tasks: 64 and 50 teachers

# In a child of a worker: holds while there is a file `hold`; and a teacher whose shard has a certain patient ends the
# Dask worker that it was trained on, while there is a file `hunt`, and itself otherwise.
WARD = """
import os, pathlib, signal, time
from sklearn.linear_model import LogisticRegression

ROOT = pathlib.Path({root!r})

def above(pid):
    return int(pathlib.Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])

class Ward(LogisticRegression):
    def fit(self, X, y):
        if "OF_A_WORKER" in os.environ:  # not where it is tried on public rows
            (ROOT / f"begun-{{above(os.getppid())}}-{{os.getpid()}}").touch()
            while (ROOT / "hold").exists():
                time.sleep(0.1)
            if (X == 9999).any():
                if (ROOT / "hunt").exists():
                    os.kill(above(os.getppid()), signal.SIGKILL)
                    time.sleep(60)
                raise ValueError
        return super().fit(X, y)

def model():
    return Ward()
"""


class Cluster:
    """A scheduler and workers, processes of their own on this machine."""

    def __init__(self, place):
        self.place = place
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.workers = []
        self.scheduler = self._start(SCHEDULER, "--port", self.address.rpartition(":")[2])

    def _start(self, code, *arguments, **more):
        said = self.place / f"said-{len(self.workers)}-{len(code)}.txt"
        environment = {
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "DASK_LOGGING__DISTRIBUTED": "warning",
            "OF_A_WORKER": "1",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
            **more,
        }
        return start(code, "--host", "127.0.0.1", "--no-dashboard", *arguments, said=said, **environment)

    def add_worker(self, *options, **environment):
        local = self.place / f"local-{len(self.workers)}"
        options = ("--nthreads", "1", "--local-directory", str(local), "--memory-limit", "0", *options)
        self.workers.append(self._start(WORKER, self.address, *options, **environment))
        return self.workers[-1]

    def wait(self, workers):
        """Wait until so many workers are there, and no other one."""
        until = time.monotonic() + 120
        with distributed.Client(self.address, set_as_default=False, timeout=120) as client:
            while len(client.scheduler_info(n_workers=-1)["workers"]) != workers:
                assert time.monotonic() < until
                time.sleep(0.1)

    def end(self):
        for tree in (*self.workers, self.scheduler):
            tree.bury()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.add_worker("--nanny")
    made.add_worker("--no-nanny")
    try:
        made.wait(2)
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The run before it begins."""
    return ward(tmp_path_factory.mktemp("before") / "run")


@pytest.fixture(scope="module")
def here(before, tmp_path_factory):
    """The same run on this machine."""
    root = copied(before, tmp_path_factory.mktemp("here") / "run")
    execute(load_run(root), command="quorate run")
    return root


def ward(root):
    write_run(root, n=1300, m=40, **{"teachers.model": "ward:model", "teachers.count": K, "run.unsafe_noise_seed": 5})
    rows = (root / "private.csv").read_text().splitlines()
    rows[700] = rows[700].replace(rows[700].split(",")[0], "9999", 1)
    (root / "private.csv").write_text("\n".join(rows) + "\n")
    (root / "ward.py").write_text(WARD.format(root=str(root)))
    return root


def copied(before, root, *files):
    """A run of the same settings and rows that has not begun."""
    root.mkdir()
    for name in ("private.csv", "public.csv", "evaluation.csv", "quorate.toml"):
        shutil.copy(before / name, root)
    (root / "ward.py").write_text(WARD.format(root=str(root)))
    for name in files:
        (root / name).touch()
    return root


def run(root, cluster):
    return start(COMMAND, root, "--scheduler", cluster.address, said=root / "said.txt", preloaded=True)


def begun(root):
    """The Dask workers whose teachers have begun."""
    return {int(path.name.split("-")[1]) for path in root.glob("begun-*")}


def votes(root):
    return (root / "private" / "votes.stage").read_bytes().partition(b"\n")[2]


def assert_same(root, here):
    """Votes and released bytes; the labels are of a seeded run, whose noise is the same too."""
    assert votes(root) == votes(here)
    for name in ("labels.csv", "guarantee.json"):
        mine, other = (each / "public" / name for each in (root, here))
        assert mine.exists() == other.exists()
        if mine.exists() and name == "labels.csv":
            assert mine.read_bytes() == other.read_bytes()
    assert (root / "public" / "labels.csv").exists()
    assert not list((root / "private").glob(".rows-*"))


def alive(pid):
    return Path(f"/proc/{pid}").exists()


@pytest.mark.faults
def test_a_worker_killed_in_the_middle_changes_no_byte(cluster, before, here, tmp_path):
    root = copied(before, tmp_path / "run", "hold")
    tree = run(root, cluster)
    tree.wait_for(lambda: time.sleep(0.1) or len(begun(root)) == 2)
    teachers = [int(path.name.split("-")[2]) for path in root.glob("begun-*")]
    gone = next(pid for pid in begun(root) if pid in _nannied(cluster))
    os.kill(gone, signal.SIGKILL)
    (root / "hold").unlink()
    assert tree.process.wait() == 0, tree.text()
    assert_same(root, here)
    assert len(begun(root)) >= 2
    assert not any(map(alive, teachers))
    until = time.monotonic() + 120
    while clean_processes(cluster):  # which have read private rows
        assert time.monotonic() < until
        time.sleep(0.5)
    with distributed.Client(cluster.address, set_as_default=False) as client:
        kept = client.run(lambda dask_worker: [len(dask_worker.data), list(dask_worker.state.tasks)])
        names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert all(each == [0, []] for each in kept.values())
    assert set(names) <= {"quorate"}
    spilled = [path for path in cluster.place.rglob("local-*/**/*") if path.is_file() and path.stat().st_size]
    assert spilled == []


def test_rounds_on_a_cluster_are_those_of_one_machine_though_a_worker_is_killed(cluster, tmp_path, monkeypatch):
    how = {**DIRECT, "method.rounds": 5, "run.unsafe_noise_seed": 5, "data.unit": "patient_id"}
    here = write_run(tmp_path / "here", n=400, m=60, **how)
    fingerprint_key(here / "ledger.db")
    there = shutil.copytree(here, tmp_path / "there")
    execute(read_run(here), command="quorate run")
    killed = []
    kill = at_round(2, lambda: killed.append(os.kill(next(iter(_nannied(cluster))), signal.SIGKILL)))
    monkeypatch.setattr(descend, "release", kill)
    execute(rounds_at(there, cluster.address), command="quorate run")
    assert len(killed) == 1
    assert stored(there, "gradient round") == stored(here, "gradient round")
    assert not list((there / "private").glob(".rows-*"))


@contextmanager
def a_cluster(place):
    """A cluster of a test's own, without a worker."""
    place.mkdir()
    own = Cluster(place)
    try:
        yield own
    finally:
        own.end()


def rounds_at(root, address):
    """A direct run whose sums are made by the workers of a scheduler."""
    settings = settings_of(root)
    return read_run(root, settings=replace(settings, run=replace(settings.run, scheduler=address)))


# Python's own hook: every process of such a worker has another exponential.
OTHER_BITS = """
import numpy as np
from quorate.data.feature_maps import exact

honest = exact.exp
exact.exp = lambda x: np.nextafter(honest(x), 2.0)
"""


@pytest.mark.heavy
def test_a_worker_that_may_compute_other_bits_is_refused_and_nothing_is_charged(tmp_path, cli):
    """A twin that does not ask, other versions: tests/direct/test_elsewhere.py, tests/ensemble/test_elsewhere.py."""
    import numpy._core._multiarray_umath as built

    off = " ".join(name for name in built.__cpu_dispatch__ if built.__cpu_features__[name])
    root = write_run(tmp_path / "run", n=400, m=60, **{**DIRECT, "method.rounds": 2})
    (tmp_path / "sitecustomize.py").write_text(OTHER_BITS)
    refusals = (
        ({"NPY_DISABLE_CPU_FEATURES": off}, "SIMD"),
        ({"PYTHONPATH": str(tmp_path)}, "computes other coordinates or contributions of public rows"),
    )
    with a_cluster(tmp_path / "cluster") as cluster:
        for environment, why in refusals if off else refusals[1:]:
            worker = cluster.add_worker(**environment)
            cluster.wait(1)
            said = cli.refused(4, "run", root, "--scheduler", cluster.address)
            assert (why in said, "nothing was charged" in said) == (True, True), said
            assert charges(root) == 0
            worker.bury()
            cluster.wait(0)


@pytest.mark.faults
def test_rounds_go_on_from_the_last_stored_one_when_the_driver_and_then_the_scheduler_was_killed(
    tmp_path, cli, monkeypatch
):
    root = write_run(tmp_path / "run", n=400, m=60, **{**DIRECT, "method.rounds": 6})
    with a_cluster(tmp_path / "one") as one:
        one.add_worker()
        one.wait(1)
        tree = start(KILLED_IN_A_ROUND, 3, root, "--scheduler", one.address, said=tmp_path / "said")
        assert tree.process.wait() == -signal.SIGKILL, tree.text()
        tree.bury()
        by_driver = stored(root, "gradient round")
        assert len(by_driver) == 2
        monkeypatch.setattr(descend, "release", at_round(2, lambda: one.scheduler.signal(signal.SIGKILL)))
        cli.refused(6, "run", root, "--scheduler", one.address)
        monkeypatch.undo()
    by_scheduler = stored(root, "gradient round")
    assert by_scheduler[:2] == by_driver
    assert len(by_scheduler) == 4
    with a_cluster(tmp_path / "two") as two:
        two.add_worker()
        two.wait(1)
        cli.ok("run", root, "--scheduler", two.address)
    assert stored(root, "gradient round")[:4] == by_scheduler
    with Ledger(root / "ledger.db") as ledger:
        ledger.verify(prices=True)
        [reservation] = ledger.reservations()
        blocks = reservation.blocks("gradient round")
        assert [(block.first, block.count, block.status) for block in blocks] == [(at, 1, "stored") for at in range(6)]
    assert not list((root / "private").glob(".rows-*"))


def test_calls_of_a_command_that_were_made_here_are_not_made_again_there(cluster, make_run, tmp_path):
    root = trained_anew(make_run)
    whole = Path(shutil.copytree(root, tmp_path / "whole"))
    execute(load_run(whole), command="test")
    broken_off(root, 3)
    (root / "calls").write_text("")
    tree = run(root, cluster)
    assert tree.process.wait() == 0, tree.text()
    assert len(seeds(root)) == COUNT - 3
    assert (root / "private" / "votes.stage").read_bytes() == (whole / "private" / "votes.stage").read_bytes()


def clean_processes(cluster):
    """Processes of quorate's own that workers have started."""
    return [each for tree in cluster.workers for each in tree.alive() if "loky" in each and "tracker" not in each]


def _nannied(cluster):
    """Process numbers under the worker that has a nanny: whatever dies there is started again."""
    return {int(each.split()[0]) for each in cluster.workers[0].alive()}


@pytest.mark.faults
def test_a_teacher_that_kills_its_worker_again_and_again_abstains_alone(cluster, before, here, tmp_path):
    """The reference is a run on this machine in which that teacher raises: its neighbours in the task vote in both."""
    cluster.add_worker("--nanny")
    cluster.workers[1].bury()  # it would not come again
    root = copied(before, tmp_path / "run", "hunt")
    tree = run(root, cluster)
    assert tree.process.wait() == 0, tree.text()
    assert_same(root, here)
    hit = tree.text()
    assert "9999" not in hit
    assert "killed" not in hit.lower()
    assert "abstain" not in hit.lower()


@pytest.mark.faults
def test_a_client_that_is_killed_leaves_no_teacher_behind_and_the_run_goes_on(cluster, before, here, tmp_path, cli):
    root = copied(before, tmp_path / "run", "hold")
    tree = run(root, cluster)
    tree.wait_for(lambda: time.sleep(0.1) or len(begun(root)) >= 1)
    tree.signal(signal.SIGKILL)
    tree.process.wait()
    teachers = [int(path.name.split("-")[2]) for path in root.glob("begun-*")]
    cluster.scheduler.wait_for(lambda: time.sleep(0.1) or not any(map(alive, teachers)))
    assert list((root / "private").glob(".rows-*"))  # what it left
    (root / "hold").unlink()
    cli.ok("run", root, "--scheduler", cluster.address)
    assert_same(root, here)
    assert charges(root) == 1


def test_a_scheduler_that_dies_is_exit_code_6(cluster, before, tmp_path):
    root = copied(before, tmp_path / "run", "hold")
    tree = run(root, cluster)
    tree.wait_for(lambda: time.sleep(0.1) or len(begun(root)) >= 1)
    cluster.scheduler.signal(signal.SIGKILL)
    assert tree.process.wait() == 6, tree.text()
    assert "is gone; what is stored stays" in tree.text()
    assert "never charged twice" in tree.text()
    assert "Traceback" not in tree.text()
    teachers = [int(path.name.split("-")[2]) for path in root.glob("begun-*")]
    (root / "hold").unlink()
    tree.ends()
    assert charges(root) == 0
    until = time.monotonic() + 120
    while any(map(alive, teachers)):
        assert time.monotonic() < until
        time.sleep(0.5)
