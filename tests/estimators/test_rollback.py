"""A fitted estimator knows its ledger's newest entry: an older state put back sells no answer twice."""

import contextlib
import shutil
import sqlite3

import numpy as np
import pytest
from sklearn.datasets import make_classification

from quorate import Ledger, PrivateClassifier, PublicPool, SubsampleAggregate
from quorate.errors import BudgetExhausted, LedgerIntegrityError
from quorate.ledger import SqliteStore
from quorate.ledger.chain import extend
from quorate.ledger.entries import Bound
from quorate.release import RollbackGuard

pytestmark = pytest.mark.mostly_heavy
X, Y = make_classification(900, n_features=5, random_state=0)


def classifier(folder, online=1, **changes):
    clf = PrivateClassifier(
        classes=[0, 1], epsilon=2.0, delta=1e-5, n_teachers=10, n_records=600, queries=40, online_answers=online,
        ledger=folder / "ledger.db", n_jobs=1,
    ).set_params(**changes)  # fmt: skip
    return clf.fit(X[:600], Y[:600], public=PublicPool(X[600:700]))


def half(rows):
    return int(np.mean(rows[:, 0]) > 0)


def aggregate(folder):
    asked = SubsampleAggregate(
        n_shards=40, cutoff=2, n_queries=3, epsilon=4.0, delta=1e-5, ledger=folder / "ledger.db", n_jobs=1
    )
    return asked.fit(X[:600])


@pytest.mark.parametrize("made", [classifier, aggregate], ids=["classifier", "aggregate"])
def test_a_ledger_that_was_put_back_between_two_questions_is_refused(made, tmp_path):
    folder, copy = tmp_path / "run", tmp_path / "copy"
    folder.mkdir()
    fitted = made(folder)

    def ask(point):
        return fitted.ask(X[point : point + 1]) if made is classifier else fitted.ask(half)

    shutil.copytree(folder, copy)
    ask(800)
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    with pytest.raises(LedgerIntegrityError, match="older or another ledger"):
        ask(801)


# --- what is verified when -------------------------------------------------------------------------------------------


def edited(path, number, old, new):
    """Change one entry of a ledger's file as somebody would who has an editor for SQLite."""
    with contextlib.closing(sqlite3.connect(path)) as file:
        (line,) = file.execute("SELECT line FROM entry WHERE sequence = ?", (number,)).fetchone()
        assert old in line
        file.execute("UPDATE entry SET line = ? WHERE sequence = ?", (line.replace(old, new), number))
        file.commit()


def test_an_edited_old_entry_sells_no_answer_and_is_refused_by_whoever_reads_it(tmp_path):
    path = tmp_path / "ledger.db"
    clf = classifier(tmp_path)
    with Ledger(path) as ledger:
        (reserved,) = ledger.reservations()
    edited(path, reserved.sequence, '"online answer":1', '"online answer":9')
    assert len(clf.ask(X[800:801])) == 1  # by what was verified before the edit
    with pytest.raises(BudgetExhausted):
        clf.ask(X[801:802])
    with pytest.raises(LedgerIntegrityError, match="altered"):
        Ledger(path)
    with pytest.raises(LedgerIntegrityError, match="altered"):
        classifier(tmp_path)


def test_an_edit_of_the_newest_entry_is_refused_by_the_next_question(tmp_path):
    clf = classifier(tmp_path)
    with Ledger(tmp_path / "ledger.db") as ledger:
        newest = ledger.head.sequence
    edited(tmp_path / "ledger.db", newest, '"sequence"', '"sequencE"')
    with pytest.raises(LedgerIntegrityError):
        clf.ask(X[800:801])


@pytest.mark.quick
def test_an_entry_that_somebody_else_forged_is_refused_by_the_next_question(tmp_path):
    """Its number, link and hash are sound, and it breaks a rule: the ledger is bound a second time."""
    path = tmp_path / "ledger.db"
    clf = classifier(tmp_path)
    with Ledger(path) as ledger:
        session, head = ledger.entries()[0].session, ledger.head
    [entry] = extend(head, [Bound(fingerprint="another")], time="2026-01-02T03:04:05.000000Z", session=session)
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("INSERT INTO entry VALUES (?, ?)", (entry.sequence, entry.to_json()))
        file.commit()
    with pytest.raises(LedgerIntegrityError, match="breaks a rule"):
        clf.ask(X[800:801])


def lines_read(clf, points, monkeypatch):
    """How many entries each question reads from the disk."""
    read = []
    load = SqliteStore.load

    def counted(self, after=0):
        stored = load(self, after)
        read.append(len(stored.lines))
        return stored

    monkeypatch.setattr(SqliteStore, "load", counted)
    for point in points:
        clf.ask(X[point : point + 1])
    return read


def test_a_question_reads_what_is_newer_and_not_all_earlier_answers(tmp_path, monkeypatch):
    assert lines_read(classifier(tmp_path, online=6), range(800, 806), monkeypatch) == [1] * 6


def test_that_test_sees_questions_that_read_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(RollbackGuard, "take", lambda _: None)
    read = lines_read(classifier(tmp_path, online=6), range(800, 806), monkeypatch)
    assert sorted(read) == read
    assert read[-1] > read[0] > 1


def test_another_ledger_in_its_place_is_refused_too(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = classifier(tmp_path / "one"), classifier(tmp_path / "two")
    one.ledger = two.ledger
    with pytest.raises(LedgerIntegrityError):
        one.ask(X[800:801])


def test_the_ledger_may_grow_by_others_in_between(tmp_path):
    clf = classifier(tmp_path)
    with pytest.raises(BudgetExhausted):  # charged nothing, but it was opened and read
        classifier(tmp_path, online=0, epsilon=0.1, delta=1e-6, allow_hopeless=True)
    assert len(clf.ask(X[800:801])) == 1
