"""Students have the declared classes, whatever was released."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder
from tests.students.made_up_student_data import K, labels, release, student_data_of, values

from quorate.students import (
    AutoStudent,
    NoiseAwareStudent,
    SpreadLabels,
    VoteShareStudent,
    class_probabilities,
    fit_student,
)
from quorate.students.declared import last_step, spread, takes_weights

X = np.array([[0.0], [1.0], [2.0], [3.0]])
NAMES = [("b", "a", "c"), (2, 0, 1), ("é", "", "x y")]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("classes", NAMES)
@pytest.mark.parametrize("got", [(0, 2), (2, 1), (0, 1, 2), (1,), ()])
def test_probabilities_are_in_the_declared_order_and_zero_for_a_class_that_never_got_a_label(classes, got):
    codes = np.array([got[row % len(got)] for row in range(4)] if got else [], dtype=np.int64)
    student = fit_student(GaussianNB(), X[: len(codes)], codes, classes)
    probabilities = class_probabilities(student, X, classes)
    assert probabilities.shape == (4, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities[:, sorted({0, 1, 2} - set(got or (0,)))] == 0).all()
    best = [classes[code] for code in probabilities.argmax(axis=1)]
    assert best == student.predict(X).tolist()


@given(order=st.permutations(["a", "b", "c", "d"]), seen=st.sets(st.sampled_from("abcd"), min_size=1))
def test_spread_puts_each_column_where_its_class_is(order, seen):
    columns = sorted(seen)
    values = np.arange(1.0, 1 + len(columns))[None]
    everywhere = spread(values, np.array(columns), order)
    assert everywhere[0].tolist() == [values[0, columns.index(each)] if each in seen else 0.0 for each in order]


TABLES = [X, csr_array(X), pd.DataFrame(X, columns=["a"]), pl.DataFrame(X, schema=["a"])]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("table", TABLES, ids=["numpy", "sparse", "pandas", "polars"])
def test_a_student_of_one_class_or_none_is_a_constant_for_any_table(table):
    for codes, expected in (([1, 1, 1, 1], "b"), ([], "a")):
        student = fit_student(LogisticRegression(), table[: len(codes)], np.array(codes, dtype=np.int64), ["a", "b"])
        assert student.predict(table).tolist() == [expected] * 4


def test_a_seed_fills_every_random_state_that_is_open_and_no_other():
    student = make_pipeline(StandardScaler(), SGDClassifier())
    assert (
        fit_student(student, X, np.array([0, 0, 1, 1]), [0, 1], seed=7).get_params()["sgdclassifier__random_state"] == 7
    )
    fixed = SGDClassifier(random_state=1)
    assert fit_student(fixed, X, np.array([0, 0, 1, 1]), [0, 1], seed=7).random_state == 1


def test_weights_go_to_the_step_that_learns():
    rng = np.random.default_rng(0)
    points, codes, weights = rng.normal(size=(30, 2)), np.arange(30) % 2, rng.random(30)
    alone = LogisticRegression().fit(StandardScaler().fit_transform(points), codes, sample_weight=weights)
    for student in (
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline("passthrough", LogisticRegression())),
    ):
        assert takes_weights(student)
        fitted = fit_student(student, points, codes, [0, 1], weights=weights)
        np.testing.assert_allclose(last_step(fitted)[1].coef_, alone.coef_)


def test_who_takes_weights_is_asked_and_not_tried():
    assert takes_weights(GaussianNB())
    assert not takes_weights(KNeighborsClassifier())
    assert not takes_weights(make_pipeline(StandardScaler(), KNeighborsClassifier()))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "student",
    [
        make_pipeline(SelectKBest(k=1), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline(TargetEncoder(), LogisticRegression())),
        make_pipeline(FeatureUnion([("own", PLSRegression())]), LogisticRegression()),
        make_pipeline(ColumnTransformer([("own", SelectFromModel(LogisticRegression()), [0])]), LogisticRegression()),
        make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()),
        CalibratedClassifierCV(KNeighborsClassifier()),
        AdaBoostClassifier(make_pipeline(SelectKBest(k=1), LogisticRegression())),
    ],
    ids=["selection", "nested", "union", "columns", "discriminants", "calibrated", "boosted"],
)
def test_a_part_that_weights_do_not_reach_gets_each_point_once_with_its_largest_class(student):
    assert not takes_weights(student)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "step",
    [
        "passthrough",
        PCA(),
        SimpleImputer(),
        Nystroem(),
        VarianceThreshold(),
        FrozenEstimator(SelectKBest(k=1)),
        ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="drop"),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_step_that_learns_nothing_from_labels_leaves_the_weights_to_the_last(step):
    assert takes_weights(make_pipeline(step, LogisticRegression()))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("form", "mechanism"),
    [(VoteShareStudent, values), (AutoStudent, values), (NoiseAwareStudent, labels), (SpreadLabels, labels)],
    ids=["vote shares", "answers", "noisy labels", "spreading"],
)
def test_a_student_that_selects_features_finds_those_that_tell(form, mechanism):
    draw = np.random.default_rng(9)
    X = draw.normal(size=(300, 12))
    yes = (X[:, 7] > 0).astype(int)
    votes = np.column_stack([K - 80 * yes - 10, 80 * yes + 10])
    data = student_data_of(X, release(votes, mechanism()), classes=[0, 1])
    student = form(make_pipeline(SelectKBest(k=1), LogisticRegression()))
    assert student.fit(data)[0].get_support().nonzero()[0].tolist() == [7]
