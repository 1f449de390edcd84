"""What a fitted classifier says, writes and keeps: guarantee, report, student; no private row, nothing that travels."""

import gc
import re
import weakref
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.estimators.small_task import POOL, N, X, Y, classifier, fitted, table
from tests.report.accessibility import Page

from quorate import (
    Budget,
    LabelPrivateClassifier,
    Ledger,
    PrivateClassifier,
    PrivateLogisticRegression,
    PublicPool,
    SubsampleAggregate,
)
from quorate.accounting import Guarantee
from quorate.data.overlap import PrivateRecords
from quorate.deferred import skops
from quorate.errors import DataRefused, QuorateError, SeededNoiseRefused
from quorate.types import Secret

pytestmark = pytest.mark.mostly_heavy


@pytest.mark.several_fits
def test_the_guarantee_says_what_it_rests_on_and_survives_json(tmp_path):
    bare = fitted(queries=20)
    assert Guarantee.from_json(bare.guarantee_.to_json()) == bare.guarantee_
    caveats = " ".join(bare.guarantee_.caveats)
    assert "position" in caveats
    assert "memory" in caveats
    assert "read off the data" not in caveats, "K was given, so n was not needed"
    people = classifier(n_teachers="auto", queries=20, ledger=tmp_path / "ledger.db").fit(
        X, Y, public=PublicPool(POOL), groups=np.arange(N) // 2
    )
    assert people.guarantee_.unit == "person"
    assert people.guarantee_.neighbours == "replace one person", "one person more could be another number of teachers"
    units, rows = people.guarantee_.caveats
    assert units == "the number of private units was read off the data and is treated as public"
    assert rows == (
        "the number of private rows was read off the data and is treated as public: the tables that are compared have "
        "as many rows"
    )
    declared = fitted(n_teachers="auto", n_records=N, queries=20)
    assert "read off the data" not in " ".join(declared.guarantee_.caveats)
    assert declared.guarantee_.neighbours == "add, remove or replace one record"
    assert fitted(partition="balanced", queries=20).guarantee_.neighbours == "replace one record"


@pytest.mark.quick
def test_a_seed_voids_the_guarantee_and_the_export_and_is_remembered_by_the_ledger(tmp_path):
    with Ledger(budget=Budget(20.0, 1e-3)) as ledger:
        seeded = fitted(unsafe_noise_seed=1, ledger=ledger)
        assert "no guarantee holds" in " ".join(seeded.guarantee_.caveats)
        assert seeded.facts().seeded
        with pytest.raises(SeededNoiseRefused, match="Remove unsafe_noise_seed"):
            seeded.export(tmp_path / "student.skops")
        assert list(tmp_path.iterdir()) == []
        after = fitted(ledger=ledger)
        assert "an earlier run on the same ledger had seeded noise" in " ".join(after.guarantee_.caveats)
    labels = LabelPrivateClassifier(classes=[0, 1], **LEAST, n_teachers=5, n_jobs=1, unsafe_noise_seed=1).fit(X, Y)
    with pytest.raises(SeededNoiseRefused):
        labels.export(tmp_path / "student.skops")


def test_report_summary_and_export_are_written(clf, tmp_path):
    X_new, y_new = table(200, 9)
    page = clf.report(tmp_path / "report.html", evaluation=(X_new, y_new)).read_text()
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "10 teachers" in clf.summary() or "teachers    10" in clf.summary()
    student = skops.io.load(clf.export(tmp_path / "student.skops"))
    assert (student.predict(POOL) == clf.predict(POOL)).all()
    assert skops.io.get_untrusted_types(file=tmp_path / "student.skops") == []
    with zipfile.ZipFile(tmp_path / "student.skops") as model:  # which tells nobody how long private rows took
        assert {part.date_time for part in model.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_private_records_are_no_evaluation_rows_however_they_are_mixed_or_ordered():
    rng = np.random.default_rng(5)
    private, fresh, pool = (pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"]) for n in (600, 700, 60))
    y, others = (private["a"] > 0).astype(int), (fresh["a"] > 0).astype(int)
    fitted = classifier(queries=40, n_teachers=10).fit(private, y, public=PublicPool(pool))
    mixed = pd.concat([private[:40], fresh])[["c", "a", "b"]], [*y[:40], *others]
    others_said = private[["c", "b", "a"]].set_index(private.index + 7).astype("float32"), 1 - y
    for evaluation in ((private, y), (private[::-1], y[::-1]), (private[:10], y[:10]), mixed, others_said):
        for act in (
            fitted.facts,
            fitted.summary,
            lambda evaluation: fitted.report("never.html", evaluation=evaluation),
        ):
            with pytest.raises(DataRefused, match="holds the private rows again, or some of them"):
                act(evaluation=evaluation)
    assert fitted.facts(evaluation=(fresh, others)).utility.student is not None


@pytest.mark.parametrize("turned", [lambda X, y: (X, ~y), lambda X, y: (X[:, ::-1], y), lambda X, y: (X[:60], y[:60])])
def test_no_score_on_private_rows_is_published_whatever_their_labels_or_columns(turned, tmp_path, capfd):
    """Labels turned round gave 1 − accuracy on all private rows, free of charge."""
    rng = np.random.default_rng(0)
    X, fresh, pool = (rng.normal(size=(n, 4)) for n in (600, 200, 80))
    y, settings = X[:, 0] > 0, {"classes": [False, True], "epsilon": 2.0, "delta": 1e-5, "n_records": 600}
    by_votes = PrivateClassifier(**settings, n_teachers=10, queries=40, n_jobs=1, ledger=tmp_path / "votes.db")
    by_votes.fit(X, y, public=PublicPool(pool))
    with pytest.raises(DataRefused, match="evaluation holds the private rows again, or some of them"):
        by_votes.facts(evaluation=turned(X, y))
    direct = PrivateLogisticRegression(**settings, rounds=4, ledger=tmp_path / "direct.db")
    direct.fit(X, y, public=PublicPool(pool))
    capfd.readouterr()
    left_out, without = direct.facts(evaluation=turned(X, y)), direct.facts()
    assert left_out.to_json() == without.to_json()  # no reason, and no empty field
    out, err = capfd.readouterr()
    assert (out, err.count("\n"), "the score was left out: evaluation holds private rows" in err) == ("", 1, True)
    assert direct.facts(evaluation=(fresh, fresh[:, 0] > 0)).utility.student is not None
    assert capfd.readouterr().err == ""


def test_the_private_rows_are_let_go_of_after_fit():
    rows, labels = X.copy(), Y.copy()
    alive = [weakref.ref(rows), weakref.ref(labels)]
    clf = classifier(online_answers=2, queries=20).fit(rows, labels, public=PublicPool(POOL))
    del rows, labels
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert reachable_arrays(clf, rows=N) == []
    assert clf._kept.task.inputs.private.reveal().X is None


def test_the_direct_method_lets_go_of_them_too():
    clf = PrivateLogisticRegression(classes=[0, 1], epsilon=4.0, delta=1e-5, n_records=N)
    clf.fit(X.copy(), Y.copy(), public=PublicPool(POOL))
    assert reachable_arrays(clf, rows=N) == []
    assert clf._kept.result.task is clf._kept.task


@pytest.mark.quick
def test_that_walk_finds_rows_that_were_kept(clf):
    twin = fitted(queries=20)
    object.__setattr__(twin._kept, "memo", Secret({"rows": [X]}))
    assert len(reachable_arrays(twin, rows=N)) == 1


def reachable_arrays(root, *, rows):
    """Arrays with that many rows to which any chain of references leads, through Secrets too.

    Keyed digests, by which private records are known again, are not followed: they are what may be kept of rows.
    """
    modules = {id(each) for each in (*vars(np).values(),)}
    seen = {}
    waiting, found = [root], []
    while waiting:
        each = waiting.pop()
        if id(each) in seen or id(each) in modules or isinstance(each, type) or callable(each):
            continue
        if type(each).__name__ in {"module", "frame", "code"} or isinstance(each, PrivateRecords):
            continue
        seen[id(each)] = each
        if isinstance(each, np.ndarray):
            found += [each] if each.ndim and len(each) == rows else []
            waiting += [each.base] if each.base is not None else []
        elif isinstance(each, Secret):
            waiting.append(each.reveal())
        else:
            waiting += gc.get_referents(each)
    return found


LEAST = {"epsilon": 4.0, "delta": 1e-5}


def card(estimator):
    page = estimator._repr_mimebundle_()["text/html"]
    assert page == estimator._repr_html_()
    for tag, attributes in Page(str(page)).seen:
        assert tag != "script"
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "href")]
    assert len(page) < 6_000
    return str(page)


def words(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_a_fitted_classifier_shows_its_guarantee_and_what_is_left(clf):
    said = words(card(clf))
    assert "PrivateClassifier · fitted" in said
    assert "guarantee ε ≤ 4, δ ≤ 1e-5 for any one record" in said
    assert "left 30 answers, already charged; ε 0 of 4" in said
    assert "ledger in memory: nothing durable was recorded" in said
    assert repr(clf).startswith("PrivateClassifier(")
    shown = "\n  guarantee: ε ≤ 4, δ ≤ 1e-5 for any one record\n  left: 30 answers, already charged; ε 0 of 4"
    assert repr(clf).endswith(shown)
    clf.ask(table(3, 8)[0])
    assert "left 27 answers" in words(card(clf))
    assert str(N) not in said


@pytest.mark.quick
def test_an_estimator_that_is_not_fitted_says_what_a_fit_may_cost():
    for estimator in (
        classifier(),
        LabelPrivateClassifier(**LEAST),
        PrivateLogisticRegression(classes=[0, 1], **LEAST),
        SubsampleAggregate(**LEAST, n_shards=80, cutoff=1, n_queries=5),
    ):
        said = words(card(estimator))
        assert f"{type(estimator).__name__} · not fitted" in said
        assert "a fit may cost ε = 4, δ = 1e-5" in said
        assert "guarantee" not in repr(estimator)


@pytest.mark.several_fits
def test_the_others_show_theirs():
    direct = PrivateLogisticRegression(classes=[0, 1], **LEAST).fit(X, Y, public=PublicPool(POOL))
    assert "left ε 0 of 4" in words(card(direct))
    aggregate = SubsampleAggregate(**LEAST, n_shards=60, cutoff=1, n_queries=5, n_jobs=1).fit(X)
    assert "left 5 questions, of which 1 may be declined" in words(card(aggregate))


def test_a_seed_is_told_and_no_guarantee():
    seeded = classifier(unsafe_noise_seed=1, queries=20).fit(X, Y, public=PublicPool(POOL))
    assert "guarantee none: the noise was seeded" in words(card(seeded))
    assert "ε ≤" not in repr(seeded)


@pytest.mark.quick
def test_arguments_are_escaped_and_text_alone_is_shown_where_that_is_asked_for():
    odd = classifier(classes=["<script>alert(1)</script>", "b"])
    assert "<script" not in card(odd)
    with config_context(display="text"):
        assert set(odd._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(odd, "_repr_html_")


@pytest.mark.quick
def test_it_is_shown_inside_a_pipeline():
    pipeline = make_pipeline(FunctionTransformer(), classifier())
    assert "PrivateClassifier(" in repr(pipeline)
    assert "PrivateClassifier" in pipeline._repr_html_()


def test_printing_opens_no_ledger(clf, monkeypatch):
    def refuse(*_, **__):
        raise QuorateError("a ledger was opened")

    monkeypatch.setattr("quorate.release.charge.session", refuse)
    with pytest.raises(QuorateError):
        clf.ask(X[:1])
    assert "guarantee" in repr(clf)
    assert "guarantee" in card(clf)
