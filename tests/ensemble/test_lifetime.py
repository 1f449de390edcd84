"""What happens to one process must not leave another with private rows: real processes, real signals."""

import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import Tree, on_linux, start

from quorate.ensemble.workers.lifetime import MARK, end_marked, new_mark

pytestmark = on_linux

# A program that trains teachers on its own rows, or has voters vote, and says on its output how it came to an end.
PROGRAM = """
import ctypes, os, pathlib, signal, subprocess, sys, time
import cloudpickle, numpy as np
import polars  # which answers SIGINT in its own way
from quorate.ensemble import ClassifierVoter, Ensemble, count_votes, gather_scores, hash_shards, train_teachers
from quorate.types import Secret
cloudpickle.register_pickle_by_value(sys.modules["__main__"])
work, way, begun = sys.argv[1:]

def busy(rows):
    pathlib.Path(begun, str(os.getpid())).touch()
    while True:
        rows.sum()

def misbehave(rows):
    pathlib.Path(begun, str(os.getpid())).touch()
    if way == "hangs":  # in a compiled call that keeps the interpreter to itself, every signal blocked
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
        ctypes.PyDLL(None).sleep(600)
    if way == "starts":  # workers of its own, rows on a memory-mapped file; and one that leaves the session
        import joblib
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        joblib.Parallel(n_jobs=2, max_nbytes=1000)(joblib.delayed(busy)(rows) for _ in range(2))
    time.sleep(600)

class Teacher:
    def train(self, X, y, seed):
        misbehave(X)

class Model:
    def predict(self, X):
        misbehave(X)
    predict_proba = predict

X, key, n = np.arange(4000.0).reshape(-1, 2), Secret(bytes(32)), 40
voters = Secret((ClassifierVoter(Model(), np.arange(2)),) * n)
try:
    if work == "train":
        shards = hash_shards([row.to_bytes(4, "big") for row in range(len(X))], n, key)
        train_teachers(Teacher(), X, np.zeros(len(X), dtype=int), shards, n_teachers=n, n_classes=2, key=key, n_jobs=2)
    elif work == "vote":
        count_votes(Ensemble(voters, 2), X, n_jobs=2)
    else:
        gather_scores(Ensemble(voters, 2), X, n_jobs=2)
except KeyboardInterrupt:
    print("KeyboardInterrupt reached the caller", flush=True)
    raise
"""


def program(tmp_path: Path, work: str, way: str, *, begun: int) -> Tree:
    """Start the program, and wait until so many processes have begun with private rows."""
    folder = tmp_path / "begun"
    folder.mkdir()
    tree = start(PROGRAM, work, way, folder, said=tmp_path / "said.txt")
    tree.wait_for(lambda: len(list(folder.iterdir())) >= begun)
    return tree


def memory_mapped(pids: set[str]) -> list[str]:
    """Folders with rows that joblib shared between the processes of a teacher."""
    names = [each.name for each in Path("/dev/shm").iterdir() if each.name.startswith("joblib_memmapping")]
    return [name for name in names if pids & set(name.split("_"))]


@pytest.mark.heavy
@pytest.mark.heavy_cases(3)
@pytest.mark.parametrize(
    ("work", "way", "number", "group"),
    [
        ("train", "waits", signal.SIGINT, False),
        ("train", "starts", signal.SIGINT, True),  # Ctrl-C at a terminal: the whole group hears it
        ("train", "hangs", signal.SIGTERM, False),
        ("train", "starts", signal.SIGKILL, False),
        ("vote", "hangs", signal.SIGHUP, True),  # the terminal is closed
        ("score", "starts", signal.SIGTERM, False),
    ],
)
def test_nothing_private_outlives_the_process_that_asked(tmp_path, work, way, number, group):
    tree = program(tmp_path, work, way, begun=6 if way == "starts" else 2)
    pids = {each.split()[0] for each in tree.alive()}
    assert way != "starts" or memory_mapped(pids), "the test must see rows in shared memory"
    at_work = len(list((tmp_path / "begun").iterdir()))

    tree.signal(number, group=group)
    tree.ends()

    assert tree.process.returncode == -number
    assert ("KeyboardInterrupt reached the caller" in tree.text()) == (number == signal.SIGINT)
    assert memory_mapped(pids) == []
    assert len(list((tmp_path / "begun").iterdir())) == at_work  # no worker went on to the next teacher


@pytest.mark.heavy
def test_a_worker_that_is_killed_takes_its_teacher_along_and_the_others_go_on(tmp_path):
    """As the operating system does when memory runs out; the teacher is run once more, then it abstains."""
    tree = program(tmp_path, "train", "hangs", begun=2)
    try:
        workers = [int(each.split()[0]) for each in tree.alive() if "LokyProcess" in each]
        teachers = {int(each.name) for each in (tmp_path / "begun").iterdir()}
        for worker in set(workers) - teachers:
            os.kill(worker, signal.SIGKILL)
        tree.wait_for(lambda: not any(int(each.split()[0]) in teachers for each in tree.alive()))
        tree.wait_for(lambda: len(list((tmp_path / "begun").iterdir())) > len(teachers))
    finally:
        tree.signal(signal.SIGTERM)
        tree.ends()


@pytest.mark.heavy
def test_what_a_teacher_left_running_ends_with_it(tmp_path):
    """It has its own process group, and its resource tracker is let clean up."""
    code = (
        "import pathlib, subprocess, sys\n"
        "from quorate.ensemble.workers.isolation import in_children\n"
        "def left(item):\n"
        "    import joblib, numpy\n"
        "    joblib.Parallel(n_jobs=2, max_nbytes=10)(joblib.delayed(numpy.sum)(numpy.ones(9)) for _ in range(2))\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "    return b'done'\n"
        "assert in_children(left, [1, 2], together=False) == [b'done', b'done']\n"
        "print('finished', flush=True)\n"
        "sys.stdin.read()\n"
    )
    tree = start(code, said=tmp_path / "said.txt")
    try:
        tree.wait_for(lambda: "finished" in tree.text() or tree.process.poll() is not None)
        left = [each for each in tree.alive() if "time.sleep(600)" in each or "LokyProcess" in each]
        assert left == []
    finally:
        tree.bury()


@pytest.fixture
def sleeper():
    """Start a process that carries a mark and sleeps; it is killed when the test ends."""
    code, started = "import time; print(flush=True); time.sleep(600)", []

    def start_one(mark: str, **options: bool) -> subprocess.Popen[bytes]:
        environment = {**os.environ, MARK: mark}
        process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, **options)
        started.append(process)
        process.stdout.readline()
        process.stdout.close()
        return process

    yield start_one
    for each in started:
        each.kill()
        each.wait()


def test_only_what_carries_the_mark_is_killed(sleeper, monkeypatch):
    """Not another pool's, not one whose mark begins alike; but the pool of a teacher that itself asked for one."""
    mark = new_mark()
    monkeypatch.setenv(MARK, mark)
    within = new_mark()
    monkeypatch.delenv(MARK)
    assert within.startswith(f"{mark}:")

    gone = [sleeper(mark), sleeper(within), sleeper(mark, start_new_session=True)]
    stay = [sleeper(new_mark()), sleeper(f"{mark}0")]
    end_marked(mark)
    assert [each.wait(5) for each in gone] == [-signal.SIGKILL] * 3
    assert [each.poll() for each in stay] == [None, None]


def test_a_worker_spares_the_session_that_it_shares_with_its_fellows(sleeper):
    mark = new_mark()
    fellow, child = sleeper(mark), sleeper(mark, start_new_session=True)
    end_marked(mark, spare_session=os.getsid(0))
    assert child.wait(5) == -signal.SIGKILL
    assert fellow.poll() is None


def test_pools_of_processes_that_pin_their_secrets_do_not_take_each_other_for_their_own(monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda n=32: "2a" * n)
    assert new_mark() != new_mark()
