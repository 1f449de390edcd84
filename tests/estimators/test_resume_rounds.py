"""A fit of the direct method goes on after its process was killed: no second charge, no round drawn twice."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from tests.estimators.small_task import entries, resume_refused, resumes_nothing

from quorate import Budget, Ledger, PrivateLogisticRegression, PublicPool
from quorate.direct import descend
from quorate.direct.task import DirectTask
from quorate.errors import DataRefused, LedgerMismatch, PreconditionFailed, QuorateError
from quorate.release import DrawnBlock
from quorate.release.charge import GRADIENT_ROUND

pytestmark = pytest.mark.mostly_heavy
_rng = np.random.default_rng(5)
X, POOL = _rng.normal(size=(300, 4)), _rng.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = PublicPool(POOL)
ROUNDS, KILLED_AT = 6, 3


def made(ledger, **changes):
    given = {"classes": [0, 1], "epsilon": 2.0, "delta": 1e-5, "n_records": 300, "rounds": ROUNDS, "ledger": ledger}
    return PrivateLogisticRegression(**{**given, **changes})


def noting(said, *, kill_at=None):
    """Return what notes for which round noise is drawn, durably, and kills the process in the middle of one."""
    noise = DrawnBlock.noise

    def noted(drawn, source):
        with said.open("a") as file:
            file.write(f"{drawn.first}\n")
        if drawn.first == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return noise(drawn, source)

    return noted


def killed_fit(folder):
    """Run in a process of its own, which does not outlive it."""
    DrawnBlock.noise = noting(Path(folder, "drawn"), kill_at=KILLED_AT)
    made(Path(folder, "ledger.db")).fit(X, Y, public=PUBLIC)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a fit that was killed between drawing and storing its fourth round; nobody writes there."""
    folder = tmp_path_factory.mktemp("killed")
    call = f"from tests.estimators.test_resume_rounds import killed_fit; killed_fit({str(folder)!r})"
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", call], cwd=root, capture_output=True, check=False)
    assert found.returncode == -signal.SIGKILL, found.stderr
    return folder


@pytest.fixture
def left(killed, tmp_path):
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    return tmp_path / "ledger.db"


def faults(ledger):
    """Say what is wrong after a fit went on: from the ledger, and from what was noted wherever noise was drawn."""
    drawn = (ledger.parent / "drawn").read_text().split()
    found = ["a round was drawn twice"] * (len(set(drawn)) < len(drawn))
    return found + ["there is a second charge"] * (entries(ledger).count("reserved") > 1)


def test_a_killed_fit_goes_on_without_a_charge_and_draws_no_round_twice(left, monkeypatch):
    monkeypatch.setattr(DrawnBlock, "noise", noting(left.parent / "drawn"))
    before = entries(left)
    clf = made(left).resume(X, Y, public=PUBLIC)
    assert faults(left) == []
    assert (left.parent / "drawn").read_text().split() == [str(each) for each in range(ROUNDS)]
    assert entries(left) == before + ["drawn", "stored"] * (ROUNDS - 1 - KILLED_AT)
    assert clf.n_rounds_ == ROUNDS - 1  # the fourth was drawn once, and lost
    assert clf.guarantee_.epsilon <= 2.0
    assert "PrivateLogisticRegression.resume" in clf.facts().provenance.run
    again = made(left).resume(X, Y, public=PUBLIC)  # and once it is finished, it is given back
    assert (again.coef_ == clf.coef_).all()
    assert again.guarantee_ == clf.guarantee_
    assert faults(left) == []
    assert {path.name for path in left.parent.iterdir()} <= {
        "drawn", "ledger.db", "ledger.db.anchor", "ledger.db.key", "ledger.db.lock",
    }  # fmt: skip


def test_a_twin_that_draws_the_lost_round_again_is_caught(left, monkeypatch):
    honest = descend.release

    def again(reservation, purpose, count, compute, **how):
        lost = [block for block in reservation.blocks(GRADIENT_ROUND) if block.answers is None]
        if lost:
            block = DrawnBlock(reservation, lost[0])
            return block, block.answer(compute, **how)
        return honest(reservation, purpose, count, compute, **how)

    monkeypatch.setattr(DrawnBlock, "noise", noting(left.parent / "drawn"))
    monkeypatch.setattr(descend, "release", again)
    with suppress(QuorateError):  # the ledger takes no answers of an older block; by then it was drawn
        made(left).resume(X, Y, public=PUBLIC)
    assert "a round was drawn twice" in faults(left)


def test_a_twin_that_charges_again_is_caught(left, monkeypatch):
    monkeypatch.setattr(DrawnBlock, "noise", noting(left.parent / "drawn"))
    with Ledger(left) as ledger:
        ledger.raise_budget(Budget(9.0, 1e-3), reason="room for a twin that charges again")

    def second(task, ledger):
        charges = task.charges()
        next(charges)
        return next(charges)

    monkeypatch.setattr(DirectTask, "charge_on", second)
    with pytest.raises(PreconditionFailed, match="cannot resume"):  # what resume looks for is a charge that was made
        made(left).resume(X, Y, public=PUBLIC)
    assert faults(left) == []
    made(left).fit(X, Y, public=PUBLIC)
    assert faults(left) == ["a round was drawn twice", "there is a second charge"]


OTHERS = {
    "another label": ({}, {"y": 1 - Y}, LedgerMismatch, "cannot resume: the data differ"),
    "another epsilon": ({"epsilon": 1.0}, {}, PreconditionFailed, "no fit of these settings"),
    "other public rows": ({}, {"public": PublicPool(POOL[:50])}, PreconditionFailed, "no fit of these settings"),
    "other rounds": ({"rounds": 7}, {}, PreconditionFailed, "no fit of these settings"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_the_same_fit_is_refused_and_changes_nothing(name, left):
    settings, given, error, said = OTHERS[name]
    resume_refused(made(left, **settings), {"X": X, "y": Y, "public": PUBLIC, **given}, left, error, said)


def test_where_every_round_was_drawn_and_none_stored_resume_charges_nothing(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    with Ledger(path, budget=Budget(9.0, 1e-3)):  # room for a second charge, so that nothing but resume refuses it
        pass
    with monkeypatch.context() as patch:
        patch.setattr(DrawnBlock, "store", lambda self, answers: (_ for _ in ()).throw(KeyboardInterrupt))
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                made(path, rounds=2).fit(X, Y, public=PUBLIC)
    before = entries(path)
    with pytest.raises(PreconditionFailed, match="what it cost is lost: call fit"):
        made(path, rounds=2).resume(X, Y, public=PUBLIC)
    assert entries(path) == before


def test_where_there_is_nothing_to_resume_it_says_so_and_leaves_no_file(tmp_path):
    resumes_nothing(lambda ledger: made(ledger).resume(X, Y, public=PUBLIC), tmp_path)


@pytest.mark.quick
def test_a_fit_that_is_refused_leaves_no_key_behind_and_a_file_that_is_no_ledger_as_it_was(tmp_path):
    with pytest.raises(DataRefused, match="differ in length"):
        made(tmp_path / "ledger.db").fit(X, Y[:-1], public=PUBLIC)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "ledger.db").write_text("my notes")
    with pytest.raises(PreconditionFailed, match="is no ledger"):
        made(tmp_path / "ledger.db").fit(X, Y, public=PUBLIC)
    assert [each.name for each in tmp_path.iterdir()] == ["ledger.db"]
