"""A fit goes on after its process ended: the same teachers, no charge, earlier answers free; other data are refused."""

import re
import shutil
from contextlib import contextmanager
from dataclasses import make_dataclass
from functools import partial

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from tests.estimators.small_task import POOL, X, Y, classifier, entries, resume_refused, resumes_nothing, table

from quorate import Budget, LabelPrivateClassifier, Ledger, PrivateClassifier, PublicPool, check
from quorate.errors import BudgetExhausted, LedgerMismatch, PreconditionFailed
from quorate.estimators import private_classifier, resumable
from quorate.labelling.active import Margin
from quorate.release.keys import fingerprint_key
from quorate.types import Secret
from quorate.voting import resumed
from quorate.voting.config import RunConfig

pytestmark = [pytest.mark.mostly_heavy, pytest.mark.several_fits]

ROWS = table(12, 77)[0]
PUBLIC = PublicPool(POOL)


def made(ledger, **changes):
    return classifier(ledger=ledger, online_answers=8, queries=40, **changes)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A fitted classifier that was asked three questions, and its ledger; nobody writes to that."""
    path = tmp_path_factory.mktemp("kept") / "ledger.db"
    clf = made(path).fit(X, Y, public=PUBLIC)
    return path, clf, clf.ask(ROWS[:3])


def begun_with(**changes):
    """The configuration as it was when something that is on by default now was not, or the other way round."""
    changed = [(name, type(value), value) for name, value in changes.items()]
    return make_dataclass("Begun", changed, bases=(RunConfig,), frozen=True, kw_only=True, slots=True)


def copied(kept, folder):
    """The ledger and what lies beside it, as another process would find them."""
    shutil.copytree(kept[0].parent, folder, dirs_exist_ok=True)
    return folder / "ledger.db"


def test_another_process_has_the_same_student_and_teachers_and_charges_nothing(kept, tmp_path):
    _, first, answers = kept
    path = copied(kept, tmp_path)
    before = entries(path)
    clf = made(path).resume(X, Y, public=PUBLIC)
    assert entries(path) == before
    assert (clf.predict(POOL) == first.predict(POOL)).all()
    assert (clf.queries_ == first.queries_).all()
    assert clf.guarantee_ == first.guarantee_
    votes = [
        each._kept.result.ensemble.voters.reveal()  # the same teachers, one by one
        for each in (clf, first)
    ]
    assert all((a.vote(ROWS) == b.vote(ROWS)).all() for a, b in zip(*votes, strict=True))
    assert clf.ask(ROWS[:3]) == answers  # from the memo
    assert entries(path) == before
    told = clf.ask(ROWS[:8])  # three of them for free
    assert len(told) == 8
    assert entries(path) == [*before, "drawn", "stored"]
    again = made(path).resume(X, Y, public=PUBLIC)
    assert again.ask(ROWS[:8]) == told
    assert entries(path) == [*before, "drawn", "stored"]
    assert "left: no answers" in repr(again)
    with pytest.raises(BudgetExhausted):
        clf.ask(ROWS[8:])
    assert "PrivateClassifier.resume" in clf.summary()


def test_a_promise_that_the_fit_did_not_make_is_refused(tmp_path):
    """With the number of records read, one record more may be other teachers; to declare it later changes nothing."""
    path = tmp_path / "ledger.db"
    asked = {"n_teachers": "auto", "epsilon": 4.0}
    first = made(path, **asked).fit(X, Y, public=PUBLIC)
    assert first.guarantee_.neighbours == "replace one record"
    with pytest.raises(PreconditionFailed, match="another promise"):
        made(path, n_records=len(X), **asked).resume(X, Y, public=PUBLIC)
    assert made(path, **asked).resume(X, Y, public=PUBLIC).guarantee_ == first.guarantee_


def test_a_key_that_is_another_ones_gives_other_teachers(kept):
    path, first, _ = kept
    beside = fingerprint_key(path, begin=False)
    with Ledger(path) as ledger:
        (nonce,) = resumed.nonces_of(ledger)
    ours, other = resumed.fit_key(beside, nonce), resumed.fit_key(beside, "00" * 16)
    assert first._kept.task.key.reveal() == ours.reveal() != other.reveal()
    assert resumed.fit_key(Secret(bytes(32)), nonce).reveal() != ours.reveal()  # nothing without the key beside it
    assert path.with_name("ledger.db.key").stat().st_mode & 0o777 == 0o600


shuffled = np.random.default_rng(0).permutation(len(X))
OTHERS = {
    "another row": ({}, {"X": np.vstack([X[:-1], X[-1:] + 1])}, LedgerMismatch, "cannot resume: the data differ"),
    "another label": ({}, {"y": np.r_[Y[:-1], 1 - Y[-1:]]}, LedgerMismatch, "answers about other people"),
    "groups": ({}, {"groups": np.arange(len(X))}, LedgerMismatch, "cannot resume: the data differ"),
    "rows in another order": ({}, {"X": X[shuffled], "y": Y[shuffled]}, PreconditionFailed, "the order of the rows"),
    "other public rows": ({}, {"public": PublicPool(table(120, 3)[0])}, PreconditionFailed, "none of these settings"),
    "another number of teachers": ({"n_teachers": 9}, {}, PreconditionFailed, "none of these settings"),
    "another teacher": ({"teacher": None}, {}, PreconditionFailed, "none of these settings"),
    "more answers kept back": ({"online_answers": 9}, {}, PreconditionFailed, "none of these settings"),
    "another epsilon": ({"epsilon": 3.0}, {}, PreconditionFailed, "none of these settings"),
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_the_same_fit_is_refused_and_costs_nothing(name, kept, tmp_path):
    settings, given, error, said = OTHERS[name]
    path = copied(kept, tmp_path)
    clf = classifier(**{"ledger": path, "online_answers": 8, "queries": 40, **settings})
    resume_refused(clf, {"X": X, "y": Y, "public": PUBLIC, **given}, path, error, said)


@pytest.mark.quick
def test_where_there_is_nothing_to_resume_it_says_so(tmp_path):
    resumes_nothing(lambda ledger: made(ledger).resume(X, Y, public=PUBLIC), tmp_path)
    with Ledger(tmp_path / "empty.db", budget=Budget(4.0, 1e-5)):
        pass
    with pytest.raises(PreconditionFailed, match="nothing was spent: call fit"):
        made(tmp_path / "empty.db").resume(X, Y, public=PUBLIC)


def of_labels(ledger, **changes):
    given = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_teachers": 20, "queries": 80, "n_jobs": 1}
    return LabelPrivateClassifier(**{**given, "ledger": ledger, **changes})


INTERRUPTED = {
    "fixed": (lambda path: made(path).set_params(queries=80), {"public": PUBLIC}),
    "active": (lambda path: made(path).set_params(queries=Margin(80, batch=40)), {"public": PUBLIC}),
    "labels alone": (of_labels, {}),
}


@pytest.mark.parametrize("kind", INTERRUPTED)
def test_a_fit_that_was_interrupted_goes_on_and_is_charged_once(kind, tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    fresh, tables = INTERRUPTED[kind]
    stopping = fresh(path)
    with monkeypatch.context() as patch:
        patch.setattr(resumable, "progress", interrupting("labels", at=1))
        with pytest.raises(KeyboardInterrupt) as stopped:
            stopping.fit(X, Y, **tables)
    note = r".* after the charge. \d+ of 80 answers are stored. Nothing is charged twice: resume\(\.\.\.\) .*"
    assert re.fullmatch(note, stopped.value.__notes__[0])
    assert entries(path).count("reserved") == 1
    for act in (stopping.fit, partial(check, stopping)):
        with pytest.raises(BudgetExhausted, match=r"this very fit was charged before: resume\(...\) goes on"):
            act(X, Y, **tables)
    kept = _stored_labels(path)
    assert len(kept) > 0
    clf = fresh(path).resume(X, Y, **tables)
    assert entries(path).count("reserved") == 1
    assert len(clf.released_.codes) == 80
    assert (clf.released_.codes >= 0).all()
    assert _stored_labels(path)[: len(kept)] == kept  # none was drawn again
    assert f"{type(clf).__name__}.resume" in clf.summary()
    assert kind == "labels alone" or len(clf.ask(ROWS[:8])) == 8
    once_more = fresh(path).resume(X, Y, **tables)
    assert (once_more.predict(POOL) == clf.predict(POOL)).all()
    assert once_more.guarantee_ == clf.guarantee_
    before = entries(path)
    for changed, labels, error, said in (
        ({"n_teachers": 19}, Y, PreconditionFailed, "none of these settings"),
        ({}, np.r_[Y[:-1], 1 - Y[-1:]], LedgerMismatch, "cannot resume: the data differ"),
    ):
        with pytest.raises(error, match=said):
            fresh(path).set_params(**changed).resume(X, labels, **tables)
    assert entries(path) == before


def _stored_labels(path):
    with Ledger(path) as ledger:
        (reservation,) = ledger.reservations()
        return [block.answers for block in reservation.blocks("label")]


def interrupting(stage, *, at):
    """A progress display at which somebody presses Ctrl-C."""

    @contextmanager
    def progress(*, quiet):
        def watch(name, done, total):
            if name == stage and done >= at:
                raise KeyboardInterrupt

        yield watch

    return progress


@pytest.mark.quick
def test_before_the_charge_an_interruption_says_that_nothing_was_charged(tmp_path, monkeypatch):
    monkeypatch.setattr(resumable, "progress", interrupting("teachers", at=0))
    with pytest.raises(KeyboardInterrupt) as stopped:
        made(tmp_path / "ledger.db").fit(X, Y, public=PUBLIC)
    assert stopped.value.__notes__ == ["quorate: interrupted before anything was charged. Call fit again"]
    assert "reserved" not in entries(tmp_path / "ledger.db")


@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"]], ids=["named", "numbered"])
def test_a_fit_whose_weights_were_for_numbers_in_a_shard_goes_on_with_these(tmp_path, monkeypatch, classes):
    weights, labels = {0: 1, 1: 20}, np.asarray(classes)[Y]
    own = classifier(ledger=tmp_path / "ledger.db", classes=classes, teacher=LogisticRegression(class_weight=weights))
    with monkeypatch.context() as then:
        then.setattr(private_classifier, "RunConfig", begun_with(classes_by_shard=True))
        before = clone(own).fit(X, labels, public=PUBLIC)
    charged = entries(tmp_path / "ledger.db")
    again = clone(own).resume(X, labels, public=PUBLIC)
    assert np.array_equal(again.released_.codes, before.released_.codes)
    assert entries(tmp_path / "ledger.db") == charged


def test_a_fit_that_told_spellings_apart_goes_on_so(tmp_path, monkeypatch):
    """Blanks around a word made another category of it; the fit is found by what it was charged for."""
    rng = np.random.default_rng(0)
    drawn = pl.DataFrame({"age": rng.normal(size=400), "ward": rng.choice([" north", "north", "south"], 400)})
    rows, pool = drawn[:300], PublicPool(drawn[300:])
    labels = (rows["age"] > 0).to_numpy().astype(int)
    own = classifier(ledger=tmp_path / "ledger.db")
    with monkeypatch.context() as then:
        then.setattr(private_classifier, "RunConfig", begun_with(words_as_written=True))
        before = clone(own).fit(rows, labels, public=pool)
    charged = entries(tmp_path / "ledger.db")
    with pytest.raises(BudgetExhausted, match="resume"):
        clone(own).fit(rows, labels, public=pool)
    again = clone(own).resume(rows, labels, public=pool)
    assert np.array_equal(again.predict_proba(rows), before.predict_proba(rows))
    assert entries(tmp_path / "ledger.db") == charged


def test_a_fit_of_smaller_tiny_teachers_goes_on_with_them(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    drawn = (rng.random((1_540, 70)) < 0.3).astype(float)
    labels, pool = (drawn[:1_500, 0] > 0).astype(int), PublicPool(drawn[1_500:])
    own = PrivateClassifier(
        classes=[0, 1], epsilon=64.0, delta=1e-5, n_records=1_500, ledger=tmp_path / "ledger.db", n_jobs=1
    )
    with monkeypatch.context() as then:
        then.setattr(private_classifier, "RunConfig", begun_with(most_tiny=30))
        before = clone(own).set_params(method="votes").fit(drawn[:1_500], labels, public=pool)
    charged = entries(tmp_path / "ledger.db")
    again = clone(own).resume(drawn[:1_500], labels, public=pool)
    assert (again.method_, again.method_.why) == ("votes", "the fit was begun so")  # whatever the rule says now
    assert again.recipe_.n_teachers == before.recipe_.n_teachers == 50
    assert np.array_equal(again.predict_proba(drawn), before.predict_proba(drawn))
    assert entries(tmp_path / "ledger.db") == charged
    afresh = clone(own).set_params(ledger=None, method="votes").fit(drawn[:1_500], labels, public=pool)
    assert afresh.recipe_.n_teachers < 50


@pytest.mark.quick
def test_a_fit_that_is_refused_leaves_no_key_behind(tmp_path):
    for clf, tables in ((made(tmp_path / "ledger.db"), {"public": PUBLIC}), (of_labels(tmp_path / "ledger.db"), {})):
        with pytest.raises(ValueError, match=r"length|inconsistent"):
            clf.fit(X, Y[:-1], **tables)
        assert list(tmp_path.iterdir()) == []
