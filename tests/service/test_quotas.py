"""Quotas of keys: the ledger's is its owner's to change, the key's own holds beside it, and the lower one decides."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from tests.service.conftest import ensemble, rows, running

from quorate.ledger import Budget, Ledger
from quorate.service.keys import KeyFile
from quorate.service.problems import Problem
from quorate.service.turns import Answered, LabelRequest
from quorate.service.votes import EnsembleAnswers


def served(**how: Any) -> tuple[Ledger, EnsembleAnswers]:
    ledger = Ledger(budget=Budget(40.0, 1e-5))
    return ledger, ensemble(12, ledger, **how)


def asked(*places: int, client: str = "ann", quota: int | None = 3) -> LabelRequest:
    return LabelRequest(client, tuple((float(place),) for place in places), quota)


def code_of(reply: Any) -> Any:
    return reply.code if isinstance(reply, Problem) else [point.by for point in reply.points]


@pytest.mark.heavy
@pytest.mark.parametrize("after_budget", ["student", "refuse"])
def test_a_quota_that_the_owner_lowered_stays_lowered(own_run: Callable[..., Path], after_budget: str) -> None:
    root = own_run()
    token, key = KeyFile(root / "private").create("a trial", ["ask"], quota=20)
    with running(root, after_budget=after_budget) as run:
        run.token = token
        assert run.post({"rows": rows(1)}).json()["charged"] == 1
    with Ledger(root / "ledger.db") as ledger:
        assert ledger.quota(key.client).answers == 20
        ledger.set_quota(key.client, 0, "the trial is over")
    with running(root, after_budget=after_budget) as run:
        run.token = token
        assert run.post({"rows": rows(1)}).json()["answers"][0]["by"] == "ensemble"
        told = run.post({"rows": rows(1, seed=8)}).json()
        assert told["code"] == "quota-spent" if after_budget == "refuse" else told["answers"][0]["by"] == "student"
    with Ledger(root / "ledger.db") as ledger:
        assert (ledger.quota(key.client).answers, ledger.quota(key.client).drawn) == (0, 1)


@pytest.mark.parametrize("refuse", [False, True])
def test_a_quota_that_was_taken_away_stays_away_and_the_key_keeps_its_own(refuse: bool) -> None:
    ledger, answers = served(refuse=refuse)
    answers.answer([asked(1)])
    ledger.remove_quota("ann", "she has a key of her own")
    answers.answer([asked(2)])
    told = answers.answer([asked(3, 4), asked(5, 6), asked(3, client="bob", quota=None)])

    assert ledger.quota("ann").answers is None
    assert ledger.quota("ann").drawn <= 3
    assert code_of(told[0]) == ("quota-spent" if refuse else ["ensemble", "student"])
    assert code_of(told[2]) == ["ensemble"]
    assert [entry.kind for entry in ledger.entries()].count("quota set") == 2


def test_a_point_that_another_client_was_refused_does_not_pass_a_key_s_quota() -> None:
    ledger, answers = served(refuse=True)
    answers.answer([asked(1, 2, 3)])
    ledger.set_quota("ann", 10, "more")
    told = answers.answer([asked(*range(10, 30), client="bob", quota=None), asked(10)])
    assert [code_of(each) for each in told] == ["budget-spent", "quota-spent"]
    assert ledger.quota("ann").drawn == 3


def test_a_free_request_writes_nothing() -> None:
    ledger, answers = served()
    answers.answer([asked(1, client="bob", quota=None)])
    before = ledger.head
    answers.answer([asked(1)])
    assert ledger.head == before


@pytest.mark.parametrize("removed", [False, True])
def test_threads_at_once_neither_fail_nor_pass_the_quota(removed: bool) -> None:
    ledger, answers = served()
    if removed:
        ledger.set_quota("ann", 9, "a trial")
        ledger.remove_quota("ann", "no trial")
    start = Barrier(8)

    def ask(place: int) -> Any:
        start.wait()
        return answers.answer([asked(place)])[0]

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(ask, range(8)))
    assert all(isinstance(each, Answered) for each in told)
    assert ledger.quota("ann").drawn == 3
    assert ledger.quota("ann").answers == (None if removed else 3)


def test_a_thread_that_was_slower_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, answers = served()
    set_quota = ledger.set_quota

    def later(client: str, count: int, reason: str, *, first: bool = False) -> Any:
        set_quota(client, count, "another server was quicker")
        return set_quota(client, count, reason, first=first)

    monkeypatch.setattr(ledger, "set_quota", later)
    assert code_of(answers.answer([asked(1)])[0]) == ["ensemble"]
