"""PrivateClassifier as a scikit-learn classifier: parameters, learning, model selection, the checks of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from tests.estimators.small_task import POOL, SETTINGS, M, N, X, Y, classifier, fitted, table

from quorate import PrivateClassifier, PublicPool
from quorate.errors import (
    DataRefused,
    InvalidParameter,
)


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


@pytest.mark.heavy
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


@pytest.mark.heavy
def test_the_student_learns_and_its_probabilities_stand_in_the_declared_order() -> None:
    swapped = fitted(classes=[1, 0], epsilon=30.0)
    X_new, y_new = table(400, 9)
    assert swapped.score(X_new, y_new) > 0.8
    proba = swapped.predict_proba(X_new)
    assert swapped.classes_.tolist() == [1, 0]
    assert proba.sum(axis=1) == pytest.approx(np.ones(400))
    assert np.mean(proba[:, 0] > proba[:, 1]) == pytest.approx(np.mean(swapped.predict(X_new) == 1))


@pytest.mark.heavy
def test_a_class_that_was_never_released_has_a_column_of_zeros() -> None:
    three = fitted(classes=[0, 1, 2], epsilon=60.0, mechanism="GaussianNoisyMax", queries=40)
    assert three.predict_proba(POOL).shape == (M, 3)
    assert set(three.predict(POOL)) <= {0, 1}
    assert three.predict_proba(POOL)[:, 2].tolist() == [0.0] * M


@pytest.mark.heavy
def test_a_refused_fit_leaves_an_earlier_one_in_working_order() -> None:
    clf = fitted(online_answers=3)
    before = clf.predict(POOL)
    for changes in ({"epsilon": -1.0}, {"n_teachers": N + 1}):
        with pytest.raises((InvalidParameter, DataRefused)):
            clf.set_params(**changes).fit(X, Y, public=PublicPool(POOL))
        clf.set_params(**SETTINGS)
    assert (clf.predict(POOL) == before).all()
    assert len(clf.ask(table(2, 5)[0])) == 2


@pytest.mark.heavy
@pytest.mark.several_fits
def test_model_selection_fits_each_fold_as_a_release_of_its_own_and_never_cuts_the_pool() -> None:
    pool = PublicPool(table(N, 3)[0])  # as many rows as the private table: what model selection would slice
    seen: list[int] = []

    class Watched(PrivateClassifier):
        def fit(self, X: Any, y: Any, *, public: Any = None, groups: Any = None) -> PrivateClassifier:
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
