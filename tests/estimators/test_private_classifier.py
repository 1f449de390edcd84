"""PrivateClassifier in scikit-learn's words: parameters, tables of every container, learning, model selection."""

from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.estimators.small_task import POOL, SETTINGS, D, M, N, X, Y, classifier, fitted, table

from quorate import LabelPrivateClassifier, PrivateClassifier, PublicPool
from quorate.ensemble import DaskScheduler, training
from quorate.ensemble.workers import workers
from quorate.errors import DataRefused, InvalidParameter
from quorate.findings import Outcome
from quorate.voting import kept_votes

pytestmark = pytest.mark.mostly_heavy


@pytest.mark.quick
def test_parameters_are_stored_as_given_and_survive_get_set_and_clone():
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


def test_fit_leaves_every_parameter_as_it_was(clf):
    assert clf.get_params() == {**clf.get_params(), **SETTINGS, "online_answers": 30}
    assert not hasattr(clf.teacher, "classes_")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("clf", "said"),
    [
        (classifier(), r"PrivateClassifier is not fitted; call fit\(X, y, public=PublicPool"),
        (LabelPrivateClassifier(classes=[0, 1]), "LabelPrivateClassifier instance is not fitted yet"),
    ],
    ids=lambda each: "" if isinstance(each, str) else type(each).__name__,
)
def test_an_unfitted_classifier_says_so(clf, said, tmp_path):
    asked = [clf.predict, clf.predict_proba, *([clf.ask] if hasattr(clf, "ask") else [])]
    acts = [*(lambda each=each: each(POOL) for each in asked), clf.summary]
    for act in (*acts, lambda: clf.export(tmp_path / "s.skops")):
        with pytest.raises(NotFittedError, match=said):
            act()


def test_the_student_learns_and_its_probabilities_stand_in_the_declared_order():
    swapped = fitted(classes=[1, 0], epsilon=30.0)
    X_new, y_new = table(400, 9)
    assert swapped.score(X_new, y_new) > 0.8
    proba = swapped.predict_proba(X_new)
    assert swapped.classes_.tolist() == [1, 0]
    assert proba.sum(axis=1) == pytest.approx(np.ones(400))
    assert np.mean(proba[:, 0] > proba[:, 1]) == pytest.approx(np.mean(swapped.predict(X_new) == 1))


def test_a_class_that_was_never_released_has_a_column_of_zeros():
    three = fitted(classes=[0, 1, 2], epsilon=60.0, mechanism="GaussianNoisyMax", queries=40)
    assert three.predict_proba(POOL).shape == (M, 3)
    assert set(three.predict(POOL)) <= {0, 1}
    assert three.predict_proba(POOL)[:, 2].tolist() == [0.0] * M


def test_a_refused_fit_leaves_an_earlier_one_in_working_order():
    clf = fitted(online_answers=3)
    before = clf.predict(POOL)
    for changes in ({"epsilon": -1.0}, {"n_teachers": N + 1}):
        with pytest.raises((InvalidParameter, DataRefused)):
            clf.set_params(**changes).fit(X, Y, public=PublicPool(POOL))
        clf.set_params(**SETTINGS)
    assert (clf.predict(POOL) == before).all()
    assert len(clf.ask(table(2, 5)[0])) == 2


@pytest.mark.several_fits
def test_model_selection_fits_each_fold_as_a_release_of_its_own_and_never_cuts_the_pool():
    pool = PublicPool(table(N, 3)[0])  # as many rows as the private table: what model selection would slice
    seen = []

    class Watched(PrivateClassifier):
        def fit(self, X, y, *, public=None, groups=None):
            seen.append(public.n_rows)
            return super().fit(X, y, public=public, groups=groups)

    watched = Watched(GaussianNB(), **{**SETTINGS, "epsilon": 60.0, "unsafe_noise_seed": 1})
    found = cross_validate(watched, X, Y, cv=2, params={"public": pool}, return_estimator=True, error_score="raise")
    assert (found["test_score"] > 0.6).all()
    assert seen == [N, N]
    reservations = [each._kept.result.reservation for each in found["estimator"]]
    assert len({id(each._journal) for each in reservations}) == 2
    search = GridSearchCV(watched, {"teacher__var_smoothing": [1e-9, 1e-3]}, cv=2, error_score="raise")
    search.fit(X, Y, public=pool)
    assert seen == [N] * 7


def test_a_pipeline_gets_the_frame_as_it_is_and_reads_dates_by_itself():
    names = [f"x{i}" for i in range(D)]
    rows, pool = (pl.DataFrame(each, schema=names).with_columns(day=pl.date(2026, 1, 1)) for each in (X, POOL))
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), ["x0", "x1"])), LogisticRegression())
    clf = classifier(teacher=pipeline, student=pipeline, epsilon=30.0).fit(rows, Y, public=PublicPool(pool))
    assert clf.score(rows, Y) > 0.75


def test_fitted_public_preprocessing_is_kept_where_the_owner_says_so():
    scaler = StandardScaler().fit(POOL)
    model = make_pipeline(scaler, LogisticRegression())
    with pytest.raises(InvalidParameter, match="already fitted: StandardScaler"):
        classifier(teacher=model).fit(X, Y, public=PublicPool(POOL))
    clf = classifier(teacher=model, preprocessing="public").fit(X, Y, public=PublicPool(POOL))
    (told,) = [check for check in clf.facts().checks if check.code == "preprocessing"]
    assert told.outcome is Outcome.NOT_COVERED
    assert "the owner's statement" in told.evidence


@pytest.mark.several_fits
def test_what_a_scheduler_is_given_gives_the_same_votes(tmp_path, monkeypatch):
    scheduler, given = DaskScheduler("tls://cluster.example.org:8786", folder=tmp_path), []

    def played(at, work, items, **_size):
        given.append(at)
        for number, item in items:
            yield number, work([item])[0]

    asked = {"queries": 40, "online_answers": 3, "unsafe_noise_seed": 5}
    here = classifier(**asked).fit(X, Y, public=PublicPool(POOL))
    assert given == []
    monkeypatch.setattr(DaskScheduler, "connected", lambda self: nullcontext())
    monkeypatch.setattr(kept_votes, "_here", None)  # were a teacher trained by processes here, it would raise
    for module in (training, workers):
        monkeypatch.setattr(module, "map_elsewhere", played)
    clf = clone(classifier(**asked, scheduler=scheduler))
    assert clf.scheduler is scheduler  # a connection has no copy
    there = clf.fit(X, Y, public=PublicPool(POOL))
    assert given == [scheduler, scheduler]  # to train, and to have them vote on the pool
    assert np.array_equal(here.released_.answers, there.released_.answers)
    before = len(given)
    assert here.ask(X[:3]) == there.ask(X[:3])
    assert len(given) == before  # questions are asked here
