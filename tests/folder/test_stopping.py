"""A run that is told to stop: nothing of it is alive after five seconds, it goes on, and it is charged once."""

import random
import signal
import time

import pytest
from tests.folder.test_drawn_pool_runs import LISTS_ALONE
from tests.folder.test_resume import Snapshot, breaches, entries_so_far, label_rows
from tests.processes import on_linux, start

from quorate.folder.batch import load_run
from quorate.folder.methods import execute
from quorate.ledger import Ledger
from quorate.release.charge import MARGINAL_LEVEL
from quorate.voting.dry_run import ROWS

pytestmark = [on_linux, pytest.mark.heavy]

COMMAND = "import sys; from quorate.cli import main; main(['run', *sys.argv[1:]])"
HOW_TO_GO_ON = ": quorate run "
AT_FIRST = "type the same command again"

# Models that take for ever while there is a file in the run's folder: not when they are tried on public rows, of which
# there are more than a shard or the queries have.
WARD = """
import hashlib, os, pathlib
from sklearn.linear_model import LogisticRegression

class Slow(LogisticRegression):
    def fit(self, X, y):
        slow = pathlib.Path({root!r}, "slow")
        if slow.exists() and len(X) != {rows}:
            slow.with_name(f"begun-{{os.getpid()}}").touch()
            while True:  # in compiled code, that is
                hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
        return super().fit(X, y)

def model():
    return Slow()
"""


def run(root, *options):
    return start(COMMAND, root, *options, said=root / "said.txt", preloaded=True)


def slow(root):
    (root / "slow_ward.py").write_text(WARD.format(root=str(root), rows=ROWS))
    (root / "slow").touch()
    return root


def begun(root):
    return lambda: any(root.glob("begun-*"))


def assert_stopped(tree, code):
    tree.ends()
    assert tree.process.returncode == code, tree.text()
    if code == 6:
        assert HOW_TO_GO_ON in tree.text()
        assert "never charged twice" in tree.text() or "; nothing was charged)" in tree.text()
        assert "Traceback" not in tree.text()


@pytest.mark.heavy_cases(2)
@pytest.mark.parametrize(
    ("number", "group", "code", "n_jobs"),
    [
        (signal.SIGINT, True, 6, 2),  # Ctrl-C, with polars loaded
        (signal.SIGTERM, False, 6, 1),
        (signal.SIGHUP, True, 6, 1),  # the terminal was closed
        (signal.SIGKILL, False, -signal.SIGKILL, 2),
    ],
)
def test_a_run_stopped_while_teachers_are_trained_ends_whole_and_goes_on(make_run, number, group, code, n_jobs):
    root = slow(make_run(m=60, **{"teachers.model": "slow_ward:model", "teachers.count": 20, "run.n_jobs": n_jobs}))
    tree = run(root)
    tree.wait_for(begun(root))
    tree.signal(number, group=group)
    assert_stopped(tree, code)

    (root / "slow").unlink()
    before = Snapshot.of(root)
    execute(load_run(root), command="quorate run")
    assert breaches([before, Snapshot.of(root)], n_queries=len(label_rows(root))) == []


def test_a_run_whose_student_hears_no_signal_ends_all_the_same(make_run):
    """Its fit is one long compiled call in the process of the command itself; the labels stay, paid for once."""
    root = slow(make_run(m=60, **{"student.model": "slow_ward:model"}))
    tree = run(root)
    tree.wait_for(begun(root))
    tree.signal(signal.SIGTERM)
    assert_stopped(tree, 6)
    assert tree.text().count(HOW_TO_GO_ON) == 1
    assert "nothing was charged" not in tree.text()

    (root / "slow").unlink()
    before = Snapshot.of(root)
    assert before.reservations == 1
    assert len(before.stored) > 0
    execute(load_run(root), command="quorate run")
    assert breaches([before, Snapshot.of(root)], n_queries=len(label_rows(root))) == []


# A run that is sent a signal by itself, between the draw of its first level of marginals and its noise.
WITHIN_A_LEVEL = """
import os, signal, sys
from quorate.mechanisms import NoisyMarginals

real = NoisyMarginals.release_level

def release_level(*how):
    os.kill(os.getpid(), signal.{number})
    return real(*how)

NoisyMarginals.release_level = release_level
from quorate.cli import main

main(['run', *sys.argv[1:]])
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_run_stopped_between_a_draw_and_its_store_loses_nothing_that_was_paid(make_run, cli, number):
    root = make_run(**LISTS_ALONE)
    tree = start(WITHIN_A_LEVEL.format(number=number), root, said=root / "said.txt", preloaded=True)
    assert_stopped(tree, 6)
    with Ledger(root / "ledger.db") as ledger:
        [reservation] = ledger.reservations()
        assert [block.status for block in reservation.blocks(MARGINAL_LEVEL)] == ["stored"]
    assert cli.json("status", root)["lost"] == {}
    assert "never released" not in cli.ok("run", root)


def test_what_ignores_a_hangup_goes_on_ignoring_it(make_run):
    """``nohup quorate run``: the terminal may be closed."""
    root = make_run(m=60)
    code = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {COMMAND}"
    tree = start(code, root, said=root / "said.txt", preloaded=True)
    tree.wait_for(lambda: entries_so_far(root) > 0)
    tree.signal(signal.SIGHUP)
    assert tree.process.wait() == 0, tree.text()
    tree.ends()


def stopped_at_random_moments(make_run, moments, chance, n_jobs):
    """Send SIGTERM at random moments of runs that go on from one another; return how long each took to be gone."""
    seconds = []
    size = {"n": 1200, "m": 1200, "teachers.count": 70, "run.n_jobs": n_jobs}
    whole = make_run("whole", **size)
    tree = run(whole)
    assert tree.process.wait() == 0, tree.text()
    length = time.monotonic() - tree.began
    number = 0
    while len(seconds) < moments:
        number += 1
        root = make_run(f"run-{number}", **size)
        snapshots, over = [Snapshot.of(root)], False
        while not over:
            tree = run(root)
            struck = len(seconds) < moments
            if struck:
                until = tree.began + chance.uniform(0, length)
                while time.monotonic() < until and tree.process.poll() is None:
                    time.sleep(0.002)
                tree.process.send_signal(signal.SIGTERM)
            else:
                tree.process.wait()
            took = tree.ends()
            over = "· done" in tree.text()  # nothing was left to stop
            if not over:
                # Before the command line had come up there is nobody to answer, and nothing private yet.
                assert tree.process.returncode == 6 or (tree.process.returncode, tree.text()) == (-15, ""), tree.text()
                # Before it knows its run, it says to type the same command again.
                assert tree.process.returncode == -15 or HOW_TO_GO_ON in tree.text() or AT_FIRST in tree.text()
                seconds.append(took)
            snapshots.append(Snapshot.of(root))
        assert breaches(snapshots, n_queries=len(label_rows(root))) == []
    return seconds


def test_sigterm_at_a_random_moment_leaves_no_process_and_one_charge(make_run):
    assert len(stopped_at_random_moments(make_run, 1, random.Random(20261130), 1)) == 1


@pytest.mark.faults
def test_sigterm_at_fifty_random_moments_leaves_no_process_and_one_charge(make_run):
    seconds = stopped_at_random_moments(make_run, 50, random.Random(), 2)
    mean = sum(seconds) / len(seconds)
    print(f"\n{len(seconds)} moments; gone after {max(seconds):.2f} s at most, {mean:.2f} s in the mean")
