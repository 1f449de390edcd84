"""What a fit charges, to which ledger, and when it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.estimators.small_task import POOL, X, Y, classifier, fitted

from quorate import Budget, Ledger, PublicPool
from quorate.accounting import PureDP
from quorate.errors import (
    BudgetExhausted,
    DataRefused,
    LedgerMismatch,
)


@pytest.mark.heavy
def test_each_fit_is_charged_to_the_file_and_one_too_many_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger(path, budget=Budget(9.0, 1e-4)).close()
    first = fitted(ledger=path)
    assert "earlier runs" not in " ".join(first.guarantee_.caveats)
    second = fitted(ledger=str(path))
    assert second.guarantee_.epsilon == pytest.approx(2 * first.guarantee_.epsilon)
    assert "earlier runs" in " ".join(second.guarantee_.caveats)
    with pytest.raises(BudgetExhausted) as refusal:
        fitted(ledger=path)
    assert refusal.value.spent == second.guarantee_.epsilon
    with Ledger(path) as ledger:
        assert len(ledger.reservations()) == 2
        assert ledger.spent.epsilon == second.guarantee_.epsilon


@pytest.mark.heavy
def test_a_new_file_is_opened_with_the_budget_of_the_fit_and_nothing_is_left(tmp_path: Path) -> None:
    fitted(ledger=tmp_path / "ledger.db")
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert (ledger.budget.epsilon, ledger.budget.delta) == (4.0, 1e-5)
    with pytest.raises(BudgetExhausted):
        fitted(ledger=tmp_path / "ledger.db")


@pytest.mark.heavy
@pytest.mark.parametrize("durable", [True, False])
def test_a_ledger_object_takes_several_fits_on_the_same_data_and_none_on_others(tmp_path: Path, durable: bool) -> None:
    with Ledger(tmp_path / "ledger.db" if durable else None, budget=Budget(20.0, 1e-3)) as ledger:
        fitted(ledger=ledger)
        fitted(ledger=ledger)
        assert len(ledger.reservations()) == 2
        with pytest.raises(LedgerMismatch, match="another data set"):
            classifier(ledger=ledger).fit(X + 1, Y, public=PublicPool(POOL))
        assert len(ledger.reservations()) == 2


def test_a_refused_argument_leaves_no_ledger_behind(tmp_path: Path) -> None:
    with pytest.raises(DataRefused):
        classifier(ledger=tmp_path / "ledger.db").fit(X, Y, public=PublicPool(POOL[:, :2]))
    assert not (tmp_path / "ledger.db").exists()


def test_a_file_whose_opening_was_interrupted_is_opened_again(tmp_path: Path) -> None:
    from quorate.ledger import SqliteStore

    SqliteStore(tmp_path / "ledger.db", create=True).close()
    assert fitted(ledger=tmp_path / "ledger.db").guarantee_.epsilon <= 4.0


def test_a_spent_budget_refuses_before_any_teacher_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    from quorate.voting import kept_votes

    monkeypatch.setattr(kept_votes, "train_chunk", lambda *a, **k: pytest.fail("a teacher was trained"))
    with Ledger(budget=Budget(5.0, 1e-4)) as ledger:
        ledger.reserve(PureDP(4.0), delta=0, purposes={"label": 1}, key="earlier")
        with pytest.raises(BudgetExhausted) as refusal:
            fitted(ledger=ledger)
    assert (refusal.value.spent, refusal.value.limit) == (4.0, 5.0)
    assert "give a smaller epsilon=" in str(refusal.value)
