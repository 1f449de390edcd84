"""PrivateClassifier: a scikit-learn classifier in manners, and a privacy boundary in what it keeps and says."""

from __future__ import annotations

import copy
import gc
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from quorate import Budget, Ledger, PrivateClassifier, PublicPool
from quorate.accounting import Guarantee, PureDP
from quorate.audit import audit_shards
from quorate.errors import (
    BudgetExhausted,
    DataRefused,
    InvalidParameter,
    LedgerMismatch,
    PreconditionFailed,
    SecretRefused,
    SeededNoiseRefused,
)
from quorate.ledger import Reservation
from quorate.mechanisms import GaussianNoisyMax
from quorate.noise import OSNoise
from quorate.release.described import described
from quorate.release.source import noise_and_key
from quorate.release.target import floor_budget
from quorate.run.journey import teachers
from quorate.run.stages import NoStages
from quorate.run.task import Task, Wishes, prepare
from quorate.types import Secret

N, M, D = 300, 120, 4
SETTINGS: dict[str, Any] = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_teachers": 10, "jobs": 1}


def table(n: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(np.int64)


X, Y = table(N, 1)
POOL = table(M, 2)[0]


def classifier(**changes: Any) -> PrivateClassifier:
    return PrivateClassifier(changes.pop("teacher", GaussianNB()), **{**SETTINGS, **changes})


def fitted(**changes: Any) -> PrivateClassifier:
    return classifier(**changes).fit(X, Y, public=PublicPool(POOL))


@pytest.fixture(scope="module")
def clf() -> PrivateClassifier:
    return fitted(online_answers=30)


# --- manners --------------------------------------------------------------------------------------------------------


def test_parameters_are_stored_as_given_and_survive_get_set_and_clone() -> None:
    teacher, classes = DecisionTreeClassifier(), ["b", "a"]
    first = classifier(teacher=teacher, classes=classes, queries=50)
    assert first.get_params(deep=False)["teacher"] is teacher
    assert first.get_params(deep=False)["classes"] is classes
    assert first.get_params()["teacher__max_depth"] is None
    again = clone(first.set_params(teacher__max_depth=2, epsilon=np.float64(0.5)))
    assert again.teacher.max_depth == 2
    assert again.epsilon == 0.5
    assert again.teacher is not teacher
    assert repr(first).startswith("PrivateClassifier(")
    assert "PrivateClassifier" in first._repr_html_()


def test_fit_leaves_every_parameter_as_it_was(clf: PrivateClassifier) -> None:
    assert clf.get_params() == {**clf.get_params(), **SETTINGS, "online_answers": 30}
    assert not hasattr(clf.teacher, "classes_")


def test_an_unfitted_classifier_says_so(tmp_path: Path) -> None:
    for act in (
        lambda: classifier().predict(POOL),
        lambda: classifier().predict_proba(POOL),
        lambda: classifier().ask(POOL),
        lambda: classifier().summary(),
        lambda: classifier().export(tmp_path / "s.skops"),
    ):
        with pytest.raises(NotFittedError, match=r"call fit\(X, y, public=PublicPool"):
            act()


def test_the_student_learns_and_its_probabilities_stand_in_the_declared_order() -> None:
    swapped = fitted(classes=[1, 0], epsilon=30.0)
    X_new, y_new = table(400, 9)
    assert swapped.score(X_new, y_new) > 0.8
    proba = swapped.predict_proba(X_new)
    assert swapped.classes_.tolist() == [1, 0]
    assert proba.sum(axis=1) == pytest.approx(np.ones(400))
    assert np.mean(proba[:, 0] > proba[:, 1]) == pytest.approx(np.mean(swapped.predict(X_new) == 1))


def test_a_class_that_was_never_released_has_a_column_of_zeros() -> None:
    three = fitted(classes=[0, 1, 2], epsilon=60.0, mechanism="GaussianNoisyMax", queries=40)
    assert three.predict_proba(POOL).shape == (M, 3)
    assert set(three.predict(POOL)) <= {0, 1}
    assert three.predict_proba(POOL)[:, 2].tolist() == [0.0] * M


def test_a_refused_fit_leaves_an_earlier_one_in_working_order() -> None:
    clf = fitted(online_answers=3)
    before = clf.predict(POOL)
    for changes in ({"epsilon": -1.0}, {"n_teachers": N + 1}):
        with pytest.raises((InvalidParameter, DataRefused)):
            clf.set_params(**changes).fit(X, Y, public=PublicPool(POOL))
        clf.set_params(**SETTINGS)
    assert (clf.predict(POOL) == before).all()
    assert len(clf.ask(table(2, 5)[0])) == 2


# --- containers -----------------------------------------------------------------------------------------------------


def frames(library: str, n: int, seed: int) -> tuple[Any, Any]:
    rows, labels = table(n, seed)
    columns = {f"x{i}": rows[:, i] for i in range(D)}
    columns["ward"] = np.random.default_rng(seed).choice(["north", "south"], n)  # type: ignore[assignment]
    return (pd.DataFrame(columns) if library == "pandas" else pl.DataFrame(columns)), labels


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_words_are_encoded_on_the_public_pool_for_teachers_and_student(library: str) -> None:
    X, y = frames(library, N, 1)
    pool, _ = frames(library, M, 2)
    clf = classifier(epsilon=30.0).fit(X, y, public=PublicPool(pool))
    X_new, y_new = frames(library, 400, 9)
    assert clf.score(X_new, y_new) > 0.75
    reordered = X_new[list(reversed(X_new.columns))]
    assert (clf.predict(reordered) == clf.predict(X_new)).all()
    assert clf.n_features_in_ == D + 1


def test_rows_of_another_width_are_refused_in_the_users_words(clf: PrivateClassifier) -> None:
    for act in (clf.predict, clf.predict_proba, clf.ask):
        with pytest.raises(DataRefused, match="X has 2 features, but PrivateClassifier is expecting 4 features"):
            act(POOL[:, :2])


def test_a_pipeline_gets_the_frame_as_it_is() -> None:
    X, y = frames("pandas", N, 1)
    pool, _ = frames("pandas", M, 2)
    read = make_column_transformer((StandardScaler(), ["x0", "x1"]), (OneHotEncoder(handle_unknown="ignore"), ["ward"]))
    clf = classifier(
        teacher=make_pipeline(read, GaussianNB()), student=make_pipeline(read, LogisticRegression()), epsilon=30.0
    )
    clf.fit(X, y, public=PublicPool(pool))
    assert clf.score(*frames("pandas", 400, 9)) > 0.75


def test_dates_are_for_pipelines_that_read_them() -> None:
    X, y = frames("polars", N, 1)
    pool, _ = frames("polars", M, 2)
    dated = [each.with_columns(day=pl.date(2026, 1, 1)) for each in (X, pool)]
    read = make_column_transformer((StandardScaler(), ["x0", "x1"]))
    pipeline = make_pipeline(read, LogisticRegression())
    clf = classifier(teacher=pipeline, student=pipeline, epsilon=30.0).fit(dated[0], y, public=PublicPool(dated[1]))
    assert clf.score(dated[0], y) > 0.75
    with pytest.raises(InvalidParameter, match="columns 'day' hold dates"):
        classifier().fit(dated[0], y, public=PublicPool(dated[1]))


def test_sparse_rows_and_lists_are_taken() -> None:
    pool = PublicPool(sparse.csr_array(POOL))
    clf = classifier(teacher=LogisticRegression(), epsilon=30.0).fit(sparse.csc_array(X), Y, public=pool)
    assert clf.predict(sparse.coo_array(POOL)).shape == (M,)
    as_lists = classifier(queries=40).fit(X.tolist(), Y.tolist(), public=PublicPool(POOL.tolist()))
    assert as_lists.predict(POOL.tolist()).shape == (M,)


def test_fitted_public_preprocessing_is_kept_where_the_owner_says_so() -> None:
    scaler = StandardScaler().fit(POOL)
    model = make_pipeline(scaler, LogisticRegression())
    with pytest.raises(InvalidParameter, match="already fitted: StandardScaler"):
        classifier(teacher=model).fit(X, Y, public=PublicPool(POOL))
    clf = classifier(teacher=model, preprocessing="public").fit(X, Y, public=PublicPool(POOL))
    told = [check.meaning for check in clf.facts().checks if check.key == "preprocessing"]
    assert "as the owner states" in told[0]


# --- budget ---------------------------------------------------------------------------------------------------------


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


def test_a_new_file_is_opened_with_the_budget_of_the_fit_and_nothing_is_left(tmp_path: Path) -> None:
    fitted(ledger=tmp_path / "ledger.db")
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert (ledger.budget.epsilon, ledger.budget.delta) == (4.0, 1e-5)
    with pytest.raises(BudgetExhausted):
        fitted(ledger=tmp_path / "ledger.db")


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


# --- asking ---------------------------------------------------------------------------------------------------------


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


# --- guarantee ------------------------------------------------------------------------------------------------------


def test_the_guarantee_says_what_it_rests_on_and_survives_json(tmp_path: Path) -> None:
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
    assert people.guarantee_.neighbours == "add, remove or replace one person"
    [caveat] = people.guarantee_.caveats
    assert "read off the data" in caveat
    declared = fitted(n_teachers="auto", n_records=N, queries=20)
    assert "read off the data" not in " ".join(declared.guarantee_.caveats)
    assert fitted(partition="balanced", queries=20).guarantee_.neighbours == "replace one record"


def test_a_seed_voids_the_guarantee_and_the_export_and_is_remembered_by_the_ledger(tmp_path: Path) -> None:
    with Ledger(budget=Budget(20.0, 1e-3)) as ledger:
        seeded = fitted(unsafe_noise_seed=1, ledger=ledger)
        assert "no guarantee holds" in " ".join(seeded.guarantee_.caveats)
        assert seeded.facts().seeded
        with pytest.raises(SeededNoiseRefused, match="Remove unsafe_noise_seed"):
            seeded.export(tmp_path / "student.skops")
        assert list(tmp_path.iterdir()) == []
        after = fitted(ledger=ledger)
        assert "an earlier run on the same ledger had seeded noise" in " ".join(after.guarantee_.caveats)


def test_report_summary_and_export_are_written(clf: PrivateClassifier, tmp_path: Path) -> None:
    X_new, y_new = table(200, 9)
    page = clf.report(tmp_path / "report.html", evaluation=(X_new, y_new)).read_text()
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "10 teachers" in clf.summary() or "teachers    10" in clf.summary()
    student = skops.io.load(clf.export(tmp_path / "student.skops"))
    assert (student.predict(POOL) == clf.predict(POOL)).all()
    assert skops.io.get_untrusted_types(file=tmp_path / "student.skops") == []


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_a_fitted_classifier_does_not_travel(clf: PrivateClassifier) -> None:
    for act in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused, match=r"export\(\) writes the student"):
            act(clf)
    assert pickle.loads(pickle.dumps(classifier())).get_params().keys() == clf.get_params().keys()  # noqa: S301


class _Rows(np.ndarray[Any, Any]):
    """Rows that the collector can be asked about."""


def test_the_private_rows_are_let_go_of_after_fit() -> None:
    import weakref

    rows, labels = X.copy(), Y.copy()
    alive = [weakref.ref(rows), weakref.ref(labels)]
    clf = classifier(online_answers=2, queries=20).fit(rows, labels, public=PublicPool(POOL))
    del rows, labels
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert reachable_arrays(clf, rows=N) == []
    assert clf._kept.task.inputs.private.reveal().X is None


def test_that_walk_finds_rows_that_were_kept(clf: PrivateClassifier) -> None:
    twin = fitted(queries=20)
    object.__setattr__(twin._kept, "memo", Secret({"rows": [X]}))
    assert len(reachable_arrays(twin, rows=N)) == 1


def reachable_arrays(root: object, *, rows: int) -> list[Any]:
    """Arrays with that many rows to which any chain of references leads, through Secrets too."""
    modules = {id(each) for each in (*vars(np).values(),)}
    seen: dict[int, object] = {}
    waiting, found = [root], []
    while waiting:
        each = waiting.pop()
        if id(each) in seen or id(each) in modules or isinstance(each, type) or callable(each):
            continue
        if type(each).__name__ in {"module", "frame", "code"}:
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


# --- model selection ------------------------------------------------------------------------------------------------


def test_model_selection_fits_each_fold_as_a_release_of_its_own_and_never_cuts_the_pool() -> None:
    pool = PublicPool(table(N, 3)[0])  # as many rows as the private table: what model selection would slice
    seen: list[int] = []

    class Watched(PrivateClassifier):
        def fit(self, X: Any, y: Any, *, public: Any = None, groups: Any = None) -> PrivateClassifier:
            seen.append(public.n_rows)
            return super().fit(X, y, public=public, groups=groups)

    watched = Watched(GaussianNB(), **{**SETTINGS, "epsilon": 60.0})
    found = cross_validate(watched, X, Y, cv=2, params={"public": pool}, return_estimator=True, error_score="raise")
    assert (found["test_score"] > 0.6).all()
    assert seen == [N, N]
    reservations = [each._kept.outcome.reservation for each in found["estimator"]]
    assert len({id(each._ledger) for each in reservations}) == 2
    search = GridSearchCV(watched, {"teacher__var_smoothing": [1e-9, 1e-3]}, cv=2, error_score="raise")
    search.fit(X, Y, public=pool)
    assert seen == [N] * 7
    assert search.best_estimator_.guarantee_.epsilon <= 60.0


class FromOneTable(PrivateClassifier):
    """Takes its pool and its classes from the very table it is given, so that scikit-learn can call ``fit(X, y)``.

    That is what nobody must do with private rows. Noise is seeded, since the checks compare one fit with another.
    """

    def __init__(self, teacher: Any = None, student: Any = None) -> None:
        fixed = {"epsilon": 60.0, "delta": 1e-5, "n_teachers": 2, "jobs": 1, "unsafe_noise_seed": 1}
        super().__init__(teacher, student, classes=[0, 1], **fixed)  # type: ignore[arg-type]

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import validate_data

        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        pool = X[: max(1, X.shape[0] - 1)] * 0.999
        found, self.classes = self.classes, np.unique(y).tolist()
        try:
            return super().fit(X, y, public=PublicPool(pool))
        finally:
            self.classes = found


# --- bad input ------------------------------------------------------------------------------------------------------

ARGUMENTS = [
    ("classes that are not given", {"classes": None}, InvalidParameter, "classes= is required. Reading the label set"),
    ("one class", {"classes": [0]}, InvalidParameter, "expected at least two"),
    ("a set of classes", {"classes": {0, 1}}, InvalidParameter, "a set has no order"),
    ("a label outside classes", {"classes": [0, 2]}, DataRefused, "a label outside classes was found"),
    ("epsilon of zero", {"epsilon": 0}, InvalidParameter, "epsilon must be a number > 0, got 0"),
    ("epsilon below zero", {"epsilon": -2}, InvalidParameter, "epsilon must be a number > 0, got -2"),
    ("epsilon NaN", {"epsilon": float("nan")}, InvalidParameter, "epsilon must be a number > 0, got nan"),
    ("epsilon infinite", {"epsilon": float("inf")}, InvalidParameter, "got inf"),
    ("epsilon True", {"epsilon": True}, InvalidParameter, "got True"),
    ("epsilon a text", {"epsilon": "1"}, InvalidParameter, "got '1'"),
    ("epsilon None", {"epsilon": None}, InvalidParameter, "got None"),
    ("epsilon below the ledger's unit", {"epsilon": 1e-10}, InvalidParameter, "at least 1e-9"),
    ("delta of one", {"delta": 1}, InvalidParameter, "delta must be a number > 0 and < 1, got 1"),
    ("delta of zero", {"delta": 0.0}, InvalidParameter, "got 0.0"),
    ("delta NaN", {"delta": float("nan")}, InvalidParameter, "got nan"),
    ("delta below the ledger's unit", {"delta": 1e-20}, InvalidParameter, "at least 1e-18"),
    ("no teachers", {"n_teachers": 0}, InvalidParameter, "n_teachers must be a whole number >= 1, got 0"),
    ("teachers as a float", {"n_teachers": 10.0}, InvalidParameter, "n_teachers must be a whole number"),
    ("teachers as a truth value", {"n_teachers": True}, InvalidParameter, "n_teachers must be a whole number"),
    ("more teachers than units", {"n_teachers": N + 1}, DataRefused, "too many teachers"),
    ("a declared n above the truth", {"n_teachers": "auto", "n_records": 10**9}, DataRefused, "the true n_records"),
    ("more queries than points", {"queries": M + 1}, InvalidParameter, "ask at most that many"),
    ("queries in words", {"queries": "most"}, InvalidParameter, "queries must be a whole number"),
    ("online answers below zero", {"online_answers": -1}, InvalidParameter, "online_answers must be a whole number"),
    ("an unknown mechanism", {"mechanism": "NoisyMax"}, InvalidParameter, "did you mean"),
    ("a mechanism of another form", {"mechanism": GaussianNoisyMax(9.0, "histogram")}, InvalidParameter, "form"),
    ("a unit without groups", {"unit": "person"}, InvalidParameter, "persons may cross shards"),
    ("an unknown partition", {"partition": "random"}, InvalidParameter, "partition must be one of"),
    ("an unknown treatment of declined", {"declined": "guess"}, InvalidParameter, "declined must be one of"),
    ("no jobs", {"jobs": 0}, InvalidParameter, "jobs must be a whole number"),
    ("a seed as a text", {"unsafe_noise_seed": "1"}, InvalidParameter, "unsafe_noise_seed must be a whole number"),
    ("a teacher that is a class", {"teacher": GaussianNB}, InvalidParameter, "instance"),
    ("a fitted teacher", {"teacher": GaussianNB().fit(POOL, POOL[:, 0] > 0)}, InvalidParameter, "already fitted"),
    ("a fitted step", {"teacher": make_pipeline(StandardScaler().fit(POOL), GaussianNB())}, InvalidParameter,
     "this Pipeline step is already fitted: StandardScaler"),
    ("a ledger in no folder", {"ledger": "/no/such/folder/ledger.db"}, PreconditionFailed, "no folder"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "error", "expected"), [row[1:] for row in ARGUMENTS], ids=[row[0] for row in ARGUMENTS]
)
def test_a_wrong_argument_is_one_line_and_charges_nothing(
    tmp_path: Path, changes: dict[str, Any], error: type[Exception], expected: str
) -> None:
    clf = classifier(**{"ledger": tmp_path / "ledger.db", **changes})
    with pytest.raises(error) as refusal:
        clf.fit(X, Y, public=PublicPool(POOL))
    assert expected in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "ledger.db").exists()
    assert not hasattr(clf, "student_")


gaps = X.copy()
gaps[3, 1] = np.nan

TABLES: list[tuple[str, dict[str, Any], str]] = [
    ("missing values that the teacher cannot take", {"X": gaps}, "Input contains NaN in column 1"),
    ("infinity", {"X": np.where(np.isnan(gaps), np.inf, gaps)}, "infinity in column 1"),
    ("labels missing", {"y": [None] * N}, "a label is missing"),
    ("labels too few", {"y": Y[:-1]}, "differ in length"),
    ("groups too few", {"groups": np.arange(N - 1)}, "differ"),
    ("an id that is missing", {"groups": [None, *range(1, N)]}, "a unit id is missing"),
    ("a pool of another width", {"public": PublicPool(POOL[:, :3])}, "public has 3 features, but private has 4"),
    ("a pool of another kind", {"public": PublicPool(pl.DataFrame(POOL))}, "give both in the same kind"),
    ("a pool that is an array", {"public": POOL}, "public must be a PublicPool, got ndarray"),
    ("no pool", {"public": None}, "public must be a PublicPool, got NoneType"),
    ("the private rows as the pool", {"public": PublicPool(X)}, "the private rows again"),
    ("a copy of the private rows", {"public": PublicPool(X.copy())}, "the private rows again"),
    ("the private rows shuffled", {"public": PublicPool(X[::-1].copy())}, "the private rows again"),
]


@pytest.mark.parametrize(("changes", "expected"), [row[1:] for row in TABLES], ids=[row[0] for row in TABLES])
def test_a_wrong_table_is_one_line_and_charges_nothing(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    given: dict[str, Any] = {"X": X, "y": Y, "public": PublicPool(POOL), **changes}
    clf = classifier(teacher=LogisticRegression(), ledger=tmp_path / "ledger.db")
    with pytest.raises((DataRefused, InvalidParameter)) as refusal:
        clf.fit(given.pop("X"), given.pop("y"), **given)
    assert expected in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "ledger.db").exists()


def test_groups_with_the_unit_record_are_a_contradiction() -> None:
    with pytest.raises(InvalidParameter, match='unit is "record"'):
        classifier(unit="record").fit(X, Y, public=PublicPool(POOL), groups=np.arange(N))


def test_a_spent_budget_refuses_before_any_teacher_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    from quorate.run import journey

    monkeypatch.setattr(journey, "train_chunk", lambda *a, **k: pytest.fail("a teacher was trained"))
    with Ledger(budget=Budget(5.0, 1e-4)) as ledger:
        ledger.reserve(PureDP(4.0), delta=0, purposes={"label": 1}, key="earlier")
        with pytest.raises(BudgetExhausted) as refusal:
            fitted(ledger=ledger)
    assert (refusal.value.spent, refusal.value.limit) == (4.0, 5.0)
    assert "ask fewer queries" in str(refusal.value)


# --- one unit, one teacher ------------------------------------------------------------------------------------------


def trained(rows: Any, labels: Any, groups: Any, key: bytes, **changes: Any) -> list[str]:
    """The teachers of a fit, by the estimator's own way of preparing and training, each as a text of all it learned."""
    settings = {**SETTINGS, **changes}
    task: Task = prepare(
        Wishes(teacher=settings.pop("teacher", GaussianNB()), **settings),
        rows,
        labels,
        public=PublicPool(POOL),
        groups=groups,
        key=Secret(key),
        fingerprint_key=Secret(key),
        noise=OSNoise(),
    )
    voters = teachers(task, NoStages(), lambda stage, done, total: None).voters.reveal()
    return [described(voter) for voter in voters]


GROUPS = np.repeat(np.arange(N // 3), 3)


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(), DecisionTreeClassifier()])
def test_changing_adding_or_removing_a_person_of_several_rows_changes_exactly_one_teacher(model: Any) -> None:
    key = bytes(range(32))
    before = trained(X, Y, GROUPS, key, teacher=model)
    assert before == trained(X, Y, GROUPS, key, teacher=model), "the same rows give the same teachers"
    theirs = GROUPS == 7
    changed, flipped = X.copy(), Y.copy()
    changed[theirs] += 5.0
    flipped[theirs] = 1 - flipped[theirs]
    neighbours = {
        "replaced": (changed, flipped, GROUPS),
        "removed": (X[~theirs], Y[~theirs], GROUPS[~theirs]),
        "added": (np.vstack([X, changed[theirs]]), np.append(Y, flipped[theirs]), np.append(GROUPS, [9_999] * 3)),
    }
    for change, table_ in neighbours.items():
        after = trained(*table_, key, teacher=model)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1, change


def test_a_balanced_partition_keeps_that_promise_for_replacing_only() -> None:
    key = bytes(range(32))
    before = trained(X, Y, GROUPS, key, partition="balanced")
    theirs = GROUPS == 7
    changed = np.where(theirs[:, None], X + 5.0, X)
    after = trained(changed, Y, GROUPS, key, partition="balanced")
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    removed = trained(X[~theirs], Y[~theirs], GROUPS[~theirs], key, partition="balanced")
    assert sum(a != b for a, b in zip(before, removed, strict=True)) > 1


def test_a_row_by_position_is_blanked_in_place_or_appended() -> None:
    key = bytes(range(32))
    before = trained(X, Y, None, key)
    after = trained(np.vstack([X, X[:1] + 3.0]), np.append(Y, 1 - Y[0]), None, key)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    renumbered = trained(X[1:], Y[1:], None, key)
    assert sum(a != b for a, b in zip(before, renumbered, strict=True)) > 1, "not covered, as the guarantee says"


def test_an_encoder_fitted_on_private_rows_would_move_every_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin of the test above: preprocessing on pooled private rows."""
    from quorate.run import journey

    key = bytes(range(32))
    real = journey.train_chunk

    def scaled_together(teacher: Any, rows: Any, *args: Any, **how: Any) -> Any:
        return real(teacher, StandardScaler().fit_transform(rows), *args, **how)

    monkeypatch.setattr(journey, "train_chunk", scaled_together)
    before = trained(X, Y, GROUPS, key)
    after = trained(np.where((GROUPS == 7)[:, None], X + 5.0, X), Y, GROUPS, key)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == SETTINGS["n_teachers"]


def test_the_shard_audit_agrees() -> None:
    found = audit_shards(GaussianNB(), X, Y, GROUPS, classes=[0, 1], n_teachers=10, units=1, seed=1)
    assert not found.violated
    assert found.worst == 1


# --- the task's small parts -----------------------------------------------------------------------------------------


def test_a_budget_is_rounded_down_to_what_a_ledger_counts_in() -> None:
    assert floor_budget(1.0986122886681098, 1e-5) == (1.098612288, 1e-5)
    assert floor_budget(np.float32(2), np.float64(1e-6)) == (2.0, 1e-6)


def test_a_seed_fixes_the_key_and_no_seed_draws_a_fresh_one() -> None:
    keys = [noise_and_key(seed)[1].reveal() for seed in (1, 1, 2, None, None)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
    assert [noise_and_key(seed)[0].seeded for seed in (1, None)] == [True, False]


def test_a_model_is_described_alike_in_every_process_and_otherwise_where_it_differs() -> None:
    def clip(rows: Any) -> Any:
        return rows.clip(0, 1)

    def double(rows: Any) -> Any:
        return rows * 2

    from sklearn.preprocessing import FunctionTransformer

    models = [
        FunctionTransformer(clip), FunctionTransformer(double), FunctionTransformer(), GaussianNB(),
        GaussianNB(var_smoothing=1e-3), DecisionTreeClassifier(class_weight={0: 1, 1: 2}),
        DecisionTreeClassifier(class_weight={0: 2, 1: 1}), make_pipeline(StandardScaler(), GaussianNB()),
        make_pipeline(StandardScaler().fit(POOL), GaussianNB()),
    ]  # fmt: skip
    told = [described(model) for model in models]
    assert len(set(told)) == len(models)
    assert told == [described(copy.deepcopy(model)) for model in models]
    assert not any(" at 0x" in each for each in told)
    json.dumps(told)


def test_what_an_estimator_is_not_has_no_say_in_its_description() -> None:
    class Held(BaseEstimator):
        def __init__(self, lock: Any = None) -> None:
            self.lock = lock

    assert described(Held(object())) == described(Held(object()))


EXPECTED_FAILURES = {
    "check_estimators_pickle": "a fitted classifier holds the run's key and refuses to travel; export() does instead",
    "check_classifier_data_not_an_array": "rows to predict come in the kind of container of the public pool",
}


def test_scikit_learns_own_checks_pass() -> None:
    results = check_estimator(
        FromOneTable(LogisticRegression()), on_fail=None, on_skip=None, expected_failed_checks=EXPECTED_FAILURES
    )
    failed = {each["check_name"]: repr(each["exception"]) for each in results if each["status"] == "failed"}
    assert failed == {}
    assert {each["check_name"] for each in results if each["status"] == "xfail"} == EXPECTED_FAILURES.keys()
    assert sum(each["status"] == "passed" for each in results) >= 45


def test_private_records_are_no_evaluation_rows_however_they_are_mixed_or_ordered() -> None:
    rng = np.random.default_rng(5)
    private, fresh, pool = (pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"]) for n in (600, 700, 60))
    y, others = (private["a"] > 0).astype(int), (fresh["a"] > 0).astype(int)
    fitted = classifier(queries=40, n_teachers=10).fit(private, y, public=PublicPool(pool))
    mixed = pd.concat([private[:40], fresh])[["c", "a", "b"]], [*y[:40], *others]
    for evaluation in ((private, y), (private[::-1], y[::-1]), (private[:10], y[:10]), mixed):
        for act in (
            fitted.facts,
            fitted.summary,
            lambda evaluation: fitted.report("never.html", evaluation=evaluation),
        ):
            with pytest.raises(DataRefused, match="holds the private rows again, or some of them"):
                act(evaluation=evaluation)
    assert fitted.facts(evaluation=(fresh, others)).utility.student is not None
