"""What a fit and its online answers are charged, to which ledger, and when they are refused; what is remembered."""

import contextlib
import shutil
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from tests.estimators.small_task import POOL, D, X, Y, classifier, fitted, table

from quorate import Budget, Ledger, PublicPool, SubsampleAggregate
from quorate.accounting import PureDP
from quorate.data import row_digests
from quorate.errors import BudgetExhausted, DataRefused, LedgerIntegrityError, LedgerMismatch, PreconditionFailed
from quorate.labelling import OnlineAnswers
from quorate.ledger import SqliteStore
from quorate.ledger.chain import extend
from quorate.ledger.entries import Bound
from quorate.mechanisms import DECLINED
from quorate.release import NEVER_ASKED, RollbackGuard
from quorate.voting import kept_votes

pytestmark = pytest.mark.mostly_heavy


def test_ask_answers_with_classes_and_remembers_what_it_answered():
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


@pytest.mark.quick
def test_a_row_without_an_answer_was_declined_or_never_asked(clf, monkeypatch):
    points = table(3, 33)[0]
    clf._kept.memo.remember(row_digests(points[:1]), [DECLINED])
    assert (clf.ask(points[:1]), clf.asked_.status) == ([None], ["declined"])
    monkeypatch.setattr(OnlineAnswers, "ask", lambda *_: np.array([1, DECLINED, NEVER_ASKED]))
    assert clf.ask(points) == clf.asked_.answers == [1, None, None]
    assert clf.asked_.status == ["answered", "declined", "never asked"]
    assert clf.asked_.left == clf.facts().spending.answers_left


@pytest.mark.quick
def test_without_answers_kept_back_labels_are_told_and_new_rows_are_refused():
    clf = fitted(queries=20)
    assert clf.ask(POOL[clf.queries_[:1]]) == [clf.classes_[clf.released_.codes[0]]]
    with pytest.raises(PreconditionFailed, match="set online_answers before a run"):
        clf.ask(POOL)


NAMES = [f"x{place}" for place in range(D)]
FRAMES = {
    "polars": lambda rows: pl.DataFrame(rows, schema=NAMES),
    "pandas": lambda rows: pd.DataFrame(rows, columns=NAMES, index=range(5, 5 + len(rows))),
    "Arrow": lambda rows: pl.DataFrame(rows, schema=NAMES).select(reversed(NAMES)).to_arrow(),
}
ARRAYS = {"numpy": np.asarray, "sparse": sparse.csc_array, "list": np.ndarray.tolist}


@pytest.mark.several_fits
@pytest.mark.default_cases(1)
@pytest.mark.parametrize("held", [*FRAMES, "numpy", "sparse"])
def test_a_fit_is_asked_of_rows_in_any_container_and_charged_once(held):
    hold = {**FRAMES, **ARRAYS}[held]
    clf = classifier(teacher=LogisticRegression(), online_answers=5, epsilon=60.0).fit(
        hold(X), Y, public=PublicPool(hold(POOL))
    )
    points = table(3, 21)[0]
    answers, expected = clf.ask(hold(points)), clf.predict(hold(points)).tolist()
    doors = FRAMES if held in FRAMES else {**ARRAYS, "polars": FRAMES["polars"], "pandas": FRAMES["pandas"]}
    for door in doors.values():
        assert clf.ask(door(points)) == answers
        assert clf.predict(door(points)).tolist() == expected
    assert clf.facts().spending.answers_left == 2


@pytest.mark.several_fits
def test_rows_without_names_do_not_stand_for_columns_with_names():
    frame = FRAMES["polars"]
    clf = classifier(online_answers=5, epsilon=60.0).fit(frame(X), Y, public=PublicPool(frame(POOL)))
    for door in (clf.ask, clf.predict):
        with pytest.raises(DataRefused, match=r"got ndarray, and expected a frame with columns 'x0', 'x1'"):
            door(POOL[:2])
    array = classifier(online_answers=5, epsilon=60.0).fit(X, Y, public=PublicPool(POOL))
    with pytest.raises(DataRefused, match=r"column 'x1' holds no numbers, and the public pool is an array"):
        array.ask(frame(POOL[:2]).with_columns(x1=pl.lit("north")))
    assert clf.facts().spending.answers_left == array.facts().spending.answers_left == 5


@pytest.mark.several_fits
def test_an_array_is_taken_where_the_columns_are_called_by_their_places():
    held = pd.DataFrame(X), pd.DataFrame(POOL)
    clf = classifier(online_answers=5, epsilon=60.0).fit(held[0], Y, public=PublicPool(held[1]))
    assert clf.ask(POOL[:2]) == clf.ask(pd.DataFrame(POOL[:2])) == clf.ask(pl.DataFrame(POOL[:2], schema=list("0123")))
    assert clf.predict(POOL[:2]).tolist() == clf.predict(pd.DataFrame(POOL[:2])).tolist()


def test_each_fit_is_charged_to_the_file_and_one_too_many_is_refused(tmp_path):
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


def test_a_new_file_is_opened_with_the_budget_of_the_fit_and_nothing_is_left(tmp_path):
    fitted(ledger=tmp_path / "ledger.db")
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert (ledger.budget.epsilon, ledger.budget.delta) == (4.0, 1e-5)
    with pytest.raises(BudgetExhausted):
        fitted(ledger=tmp_path / "ledger.db")


@pytest.mark.parametrize("durable", [True, False])
def test_a_ledger_object_takes_several_fits_on_the_same_data_and_none_on_others(tmp_path, durable):
    with Ledger(tmp_path / "ledger.db" if durable else None, budget=Budget(20.0, 1e-3)) as ledger:
        fitted(ledger=ledger)
        fitted(ledger=ledger)
        assert len(ledger.reservations()) == 2
        with pytest.raises(LedgerMismatch, match="another data set"):
            classifier(ledger=ledger).fit(X + 1, Y, public=PublicPool(POOL))
        assert len(ledger.reservations()) == 2


@pytest.mark.quick
def test_a_file_whose_opening_was_interrupted_is_opened_again(tmp_path):
    SqliteStore(tmp_path / "ledger.db", create=True).close()
    assert fitted(ledger=tmp_path / "ledger.db").guarantee_.epsilon <= 4.0


@pytest.mark.quick
def test_a_spent_budget_refuses_before_any_teacher_is_trained(monkeypatch):
    monkeypatch.setattr(kept_votes, "train_chunk", lambda *a, **k: pytest.fail("a teacher was trained"))
    with Ledger(budget=Budget(5.0, 1e-4)) as ledger:
        ledger.reserve(PureDP(4.0), delta=0, purposes={"label": 1}, key="earlier")
        with pytest.raises(BudgetExhausted) as refusal:
            fitted(ledger=ledger)
    assert (refusal.value.spent, refusal.value.limit) == (4.0, 5.0)
    assert "give a smaller epsilon=" in str(refusal.value)


NEW = table(20, 50)[0]


def fitted_in(folder, online=1, **changes):
    return fitted(ledger=folder / "ledger.db", online_answers=online, queries=40, **changes)


def half(rows):
    return int(np.mean(rows[:, 0]) > 0)


def aggregate(folder):
    asked = SubsampleAggregate(
        n_shards=40, cutoff=2, n_queries=3, epsilon=4.0, delta=1e-5, ledger=folder / "ledger.db", n_jobs=1
    )
    return asked.fit(X)


@pytest.mark.parametrize("made", [fitted_in, aggregate], ids=["classifier", "aggregate"])
def test_a_ledger_that_was_put_back_between_two_questions_is_refused(made, tmp_path):
    folder, copy = tmp_path / "run", tmp_path / "copy"
    folder.mkdir()
    clf = made(folder)
    shutil.copytree(folder, copy)
    clf.ask(NEW[:1] if made is fitted_in else half)
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    with pytest.raises(LedgerIntegrityError, match="older or another ledger"):
        clf.ask(NEW[1:2] if made is fitted_in else half)


def test_an_edited_old_entry_sells_no_answer_and_is_refused_by_whoever_reads_it(tmp_path):
    path = tmp_path / "ledger.db"
    clf = fitted_in(tmp_path)
    with Ledger(path) as ledger:
        (reserved,) = ledger.reservations()
    with contextlib.closing(sqlite3.connect(path)) as file:
        change = """replace(line, '"online answer":1', '"online answer":9')"""
        assert file.execute(f"UPDATE entry SET line = {change} WHERE sequence = {reserved.sequence}").rowcount == 1
        file.commit()
    assert len(clf.ask(NEW[:1])) == 1  # by what was verified before the edit
    with pytest.raises(BudgetExhausted):
        clf.ask(NEW[1:2])
    for act in (lambda: Ledger(path), lambda: fitted_in(tmp_path)):
        with pytest.raises(LedgerIntegrityError, match="altered"):
            act()


@pytest.mark.quick
def test_an_entry_that_somebody_else_forged_is_refused_by_the_next_question(tmp_path):
    """Its number, link and hash are sound, and it breaks a rule: the ledger is bound a second time."""
    path = tmp_path / "ledger.db"
    clf = fitted_in(tmp_path)
    with Ledger(path) as ledger:
        session, head = ledger.entries()[0].session, ledger.head
    [entry] = extend(head, [Bound(fingerprint="another")], time="2026-01-02T03:04:05.000000Z", session=session)
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("INSERT INTO entry VALUES (?, ?)", (entry.sequence, entry.to_json()))
        file.commit()
    with pytest.raises(LedgerIntegrityError, match="breaks a rule"):
        clf.ask(NEW[:1])


@pytest.mark.parametrize("cheats", [False, True])
def test_a_question_reads_what_is_newer_and_not_all_earlier_answers(tmp_path, monkeypatch, cheats):
    """And where everything is read again, the count of entries that a question reads grows."""
    clf, read, load = fitted_in(tmp_path, online=6), [], SqliteStore.load

    def counted(self, after=0):
        stored = load(self, after)
        read.append(len(stored.lines))
        return stored

    monkeypatch.setattr(SqliteStore, "load", counted)
    if cheats:
        monkeypatch.setattr(RollbackGuard, "take", lambda _: None)
    for point in range(6):
        clf.ask(NEW[point : point + 1])
    assert (read == [1] * 6) is not cheats
    assert not cheats or read == sorted(read)


def test_another_ledger_in_its_place_is_refused_too(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = fitted_in(tmp_path / "one"), fitted_in(tmp_path / "two")
    one.ledger = two.ledger
    with pytest.raises(LedgerIntegrityError):
        one.ask(NEW[:1])


def test_the_ledger_may_grow_by_others_in_between(tmp_path):
    clf = fitted_in(tmp_path)
    with pytest.raises(BudgetExhausted):  # charged nothing, but it was opened and read
        fitted_in(tmp_path, online=0, epsilon=0.1, delta=1e-6, allow_hopeless=True)
    assert len(clf.ask(NEW[:1])) == 1
