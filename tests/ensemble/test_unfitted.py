"""A teacher that has already learned something is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from quorate.ensemble import ClassifierTeacher, check_unfitted
from quorate.errors import InvalidParameter

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10) // 5
SCALER = StandardScaler().fit(X)
FITTED = LogisticRegression().fit(X, Y)


def column_transformer(fit: bool):
    columns = ColumnTransformer([("scale", StandardScaler(), [0])])
    return columns.fit(X) if fit else columns


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "teacher",
    [
        LogisticRegression(),
        RandomForestClassifier(warm_start=True),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(Normalizer().fit(X), FunctionTransformer(np.log1p), LogisticRegression()),
        make_pipeline(column_transformer(fit=False), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}),
        VotingClassifier([("a", LogisticRegression()), ("b", RandomForestClassifier())]),
        make_pipeline(FeatureUnion([("a", StandardScaler()), ("b", "passthrough")]), LogisticRegression()),
    ],
)
def test_an_unfitted_teacher_is_taken(teacher):
    check_unfitted(teacher)
    check_unfitted(teacher, preprocessing="public")


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("teacher", "culprit"),
    [
        (make_pipeline(SCALER, LogisticRegression()), "StandardScaler"),
        (make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), "StandardScaler"),
        (make_pipeline(column_transformer(fit=True), LogisticRegression()), "ColumnTransformer"),
        (make_pipeline(make_pipeline(SCALER), LogisticRegression()), "StandardScaler"),
        (make_pipeline(FrozenEstimator(SCALER), LogisticRegression()), "StandardScaler"),
        (make_pipeline(FunctionTransformer(SCALER.transform), LogisticRegression()), "StandardScaler"),
        (make_pipeline(FunctionTransformer(partial(SCALER.transform, copy=True)), FITTED), "StandardScaler"),
        (CalibratedClassifierCV(FrozenEstimator(FITTED)), "LogisticRegression"),
        (VotingClassifier([("a", FITTED), ("b", RandomForestClassifier())]), "LogisticRegression"),
        (GridSearchCV(LogisticRegression(), {"classifier": [FITTED]}), "LogisticRegression"),
    ],
)
def test_a_fitted_step_is_refused_by_name(teacher, culprit):
    with pytest.raises(InvalidParameter, match=f"this Pipeline step is already fitted: {culprit}"):
        check_unfitted(teacher)
    with pytest.raises(InvalidParameter):
        ClassifierTeacher(teacher)


@pytest.mark.parametrize(
    "step", [SCALER, column_transformer(fit=True), FrozenEstimator(SCALER), make_pipeline(StandardScaler()).fit(X)]
)
def test_steps_fitted_on_public_data_are_taken_when_that_is_said(step):
    check_unfitted(make_pipeline(step, LogisticRegression()), preprocessing="public")


@pytest.mark.parametrize("teacher", [FITTED, make_pipeline(SCALER, FITTED), CalibratedClassifierCV(FITTED)])
def test_a_fitted_classifier_is_refused_even_then(teacher):
    with pytest.raises(
        InvalidParameter, match=r"LogisticRegression is already fitted|already fitted: LogisticRegression"
    ):
        check_unfitted(teacher, preprocessing="public")


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("teacher", "how", "said"),
    [
        (FITTED, "inside", "LogisticRegression is already fitted"),
        (LogisticRegression, "inside", "got the class LogisticRegression"),
        (StandardScaler(), "inside", "without predict"),
        ("logistic", "inside", "without fit"),
        (LogisticRegression(), "publik", 'did you mean "public"'),
        (
            make_pipeline(StandardScaler(), LogisticRegression(), memory="/nowhere"),
            "inside",
            r"memory=…\) keeps a cache",
        ),
    ],
)
def test_what_is_fitted_no_classifier_or_keeps_a_cache_is_refused(teacher, how, said):
    with pytest.raises(InvalidParameter, match=said):
        check_unfitted(teacher, preprocessing=how)
