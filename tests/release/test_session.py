"""One act on a ledger: opened, held against what was seen before, bound to its data, and let go of."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from quorate.accounting import PureDP
from quorate.errors import InvalidParameter, LedgerBusy, LedgerIntegrityError, LedgerMismatch, PreconditionFailed
from quorate.ledger import Budget, Ledger
from quorate.release import RollbackGuard, ledger_location, session

BUDGET = Budget(1.0, 1e-5)


def charged(ledger: Ledger, key: str) -> None:
    ledger.reserve(PureDP(0.125), delta=0, purposes={"label": 1}, key=key)


def test_a_file_is_let_go_of_after_each_act(tmp_path):
    path = tmp_path / "ledger.db"
    for key in ("one", "two"):
        with session(str(path), budget=BUDGET) as ledger:
            charged(ledger, key)
            with pytest.raises(LedgerBusy):
                Ledger(path)
    with Ledger(path) as ledger:
        assert len(ledger.reservations()) == 2


def test_a_ledger_that_was_handed_in_stays_open():
    with Ledger(budget=BUDGET) as mine:
        with session(mine, budget=Budget(9.0, 1e-5)) as ledger:
            assert ledger is mine
        assert mine.healthy


def test_without_a_ledger_the_one_that_was_made_before_goes_on():
    with session(None, budget=BUDGET) as first:
        charged(first, "one")
    with session(None, budget=BUDGET, in_memory=first) as again:
        assert again is first
        assert not again.durable


def test_a_file_that_exists_keeps_its_budget_unless_the_very_same_is_asked_for(tmp_path):
    path, other = tmp_path / "ledger.db", Budget(0.5, 1e-6)
    with session(path, budget=BUDGET):
        pass
    with session(path, budget=other) as ledger:
        assert ledger.budget == BUDGET
    with pytest.raises(LedgerMismatch), session(path, budget=other, same_budget=True):
        pass
    with session(path, budget=None) as ledger:
        assert ledger.budget == BUDGET
    with pytest.raises(PreconditionFailed, match="there is no ledger"), session(tmp_path / "no.db", budget=None):
        pass


def test_a_ledger_of_other_data_is_refused(tmp_path):
    path = tmp_path / "ledger.db"
    for _ in range(2):
        with session(path, budget=BUDGET, fingerprint="these data"):
            pass
    with pytest.raises(LedgerMismatch), session(path, budget=BUDGET, fingerprint="other data"):
        pass
    with Ledger(path) as ledger:
        assert ledger.fingerprints == ("these data",)


def test_a_ledger_that_was_put_back_is_refused_before_anything_is_bound(tmp_path):
    folder, copy, guard = tmp_path / "run", tmp_path / "copy", RollbackGuard()
    folder.mkdir()
    path = folder / "ledger.db"
    with session(path, budget=BUDGET, guard=guard) as ledger:
        charged(ledger, "one")
    shutil.copytree(folder, copy)
    with session(path, budget=BUDGET, guard=guard) as ledger:
        charged(ledger, "two")
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    refused = pytest.raises(LedgerIntegrityError, match="older or another")
    with refused, session(path, budget=BUDGET, guard=guard, fingerprint="data"):
        pytest.fail("it was let in")
    with Ledger(path) as ledger:
        assert ledger.fingerprints == ()


def test_what_was_seen_is_noted_also_where_the_act_fails(tmp_path):
    path, guard = tmp_path / "ledger.db", RollbackGuard()

    def fail(ledger: Ledger) -> None:
        charged(ledger, "one")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), session(path, budget=BUDGET, guard=guard) as ledger:
        fail(ledger)
    with Ledger(path) as ledger:
        guard.check(ledger)
    with Ledger(budget=BUDGET) as other, pytest.raises(LedgerIntegrityError):
        guard.check(other)


def test_a_text_is_a_path_and_nothing_else_is_changed():
    ledger = Ledger(budget=BUDGET)
    assert ledger_location("run/ledger.db") == Path("run/ledger.db")
    assert ledger_location(ledger) is ledger
    assert ledger_location(None) is None


def test_a_refused_url_is_not_quoted():
    with pytest.raises(InvalidParameter, match="a URL of postgresql;") as refusal:
        ledger_location("postgresql://user:hunter2@host/db")
    assert "hunter2" not in str(refusal.value)
