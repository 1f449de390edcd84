"""A fitted estimator knows its ledger's newest entry: an older state put back sells no answer twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from quorate import PrivateClassifier, PublicPool, SubsampleAggregate
from quorate.errors import BudgetExhausted, LedgerIntegrityError

X, Y = make_classification(900, n_features=5, random_state=0)


def classifier(folder: Path) -> PrivateClassifier:
    clf = PrivateClassifier(
        classes=[0, 1], epsilon=2.0, delta=1e-5, n_teachers=10, n_records=600, queries=40, online_answers=1,
        ledger=folder / "ledger.db", n_jobs=1,
    )  # fmt: skip
    return clf.fit(X[:600], Y[:600], public=PublicPool(X[600:700]))


def half(rows: Any) -> int:
    return int(np.mean(rows[:, 0]) > 0)


def aggregate(folder: Path) -> SubsampleAggregate:
    asked = SubsampleAggregate(
        n_shards=40, cutoff=2, n_queries=3, epsilon=4.0, delta=1e-5, ledger=folder / "ledger.db", n_jobs=1
    )
    return asked.fit(X[:600])


@pytest.mark.parametrize("made", [classifier, aggregate], ids=["classifier", "aggregate"])
def test_a_ledger_that_was_put_back_between_two_questions_is_refused(made: Any, tmp_path: Path) -> None:
    folder, copy = tmp_path / "run", tmp_path / "copy"
    folder.mkdir()
    fitted = made(folder)

    def ask(point: int) -> Any:
        return fitted.ask(X[point : point + 1]) if made is classifier else fitted.ask(half)

    shutil.copytree(folder, copy)
    ask(800)
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    with pytest.raises(LedgerIntegrityError, match="older or another ledger"):
        ask(801)


def test_another_ledger_in_its_place_is_refused_too(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = classifier(tmp_path / "one"), classifier(tmp_path / "two")
    one.ledger = two.ledger
    with pytest.raises(LedgerIntegrityError):
        one.ask(X[800:801])


def test_the_ledger_may_grow_by_others_in_between(tmp_path: Path) -> None:
    clf = classifier(tmp_path)
    other = PrivateClassifier(
        classes=[0, 1], epsilon=0.1, delta=1e-6, n_teachers=10, n_records=600, ledger=tmp_path / "ledger.db", n_jobs=1
    )
    with pytest.raises(BudgetExhausted):  # charged nothing, but it was opened and read
        other.fit(X[:600], Y[:600], public=PublicPool(X[600:700]))
    assert len(clf.ask(X[800:801])) == 1
