"""Online answers of a fitted classifier: charged before they are drawn, and remembered."""

from __future__ import annotations

import numpy as np
import pytest
from tests.estimators.small_task import POOL, fitted, table

from quorate import PrivateClassifier
from quorate.errors import (
    BudgetExhausted,
    PreconditionFailed,
)
from quorate.ledger import Reservation


@pytest.mark.heavy
def test_ask_answers_with_classes_and_remembers_what_it_answered() -> None:
    clf = fitted(online_answers=5, epsilon=60.0)
    points = table(3, 21)[0]
    answers = clf.ask(points)
    assert set(answers) <= {0, 1}
    left = clf.facts().spending.answers_left
    assert left == 2
    assert clf.ask(points[::-1]) == answers[::-1]
    assert clf.ask(np.vstack([points[:1]] * 40)) == answers[:1] * 40
    assert clf.facts().spending.answers_left == 2
    with pytest.raises(BudgetExhausted) as refusal:
        clf.ask(table(3, 22)[0])
    assert (refusal.value.requested, refusal.value.unit) == (3, "answers")
    assert clf.facts().spending.answers_left == 2, "all or nothing"
    assert len(clf.ask(table(2, 22)[0])) == 2
    assert clf.predict(points).shape == (3,), "the student goes on for free"


@pytest.mark.heavy
def test_asking_for_a_released_label_is_free(clf: PrivateClassifier) -> None:
    left = clf.facts().spending.answers_left
    asked = clf.queries_[:10]
    assert clf.ask(POOL[asked]) == [clf.classes_[code] for code in clf.released_.codes[:10]]
    assert clf.facts().spending.answers_left == left


def test_a_declined_answer_is_none(clf: PrivateClassifier) -> None:
    from quorate.data import row_digests

    point = table(1, 33)[0]
    clf._kept.memo.remember(row_digests(point), [-1])
    assert clf.ask(point) == [None]


def test_ask_without_answers_kept_back_says_how_to_have_some() -> None:
    with pytest.raises(PreconditionFailed, match="give online_answers= before fit"):
        fitted(queries=20).ask(POOL)


@pytest.mark.heavy
def test_an_answer_is_charged_before_its_noise_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = fitted(online_answers=2, queries=20)
    order: list[str] = []
    draw, release = Reservation.draw, type(clf.recipe_.mechanism).release_many
    monkeypatch.setattr(Reservation, "draw", lambda *a, **k: (draw(*a, **k), order.append("charged"))[0])
    monkeypatch.setattr(
        type(clf.recipe_.mechanism), "release_many", lambda *a, **k: (order.append("drawn"), release(*a, **k))[1]
    )
    clf.ask(table(2, 40)[0])
    assert order == ["charged", "drawn"]
