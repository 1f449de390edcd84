"""What PrivateClassifier takes as a table: frames, sparse rows, lists, and pipelines that read them as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.estimators.small_task import POOL, D, M, N, X, Y, classifier, table

from quorate import PrivateClassifier, PublicPool
from quorate.errors import (
    DataRefused,
    InvalidParameter,
)
from quorate.findings import Outcome


def frames(library: str, n: int, seed: int) -> tuple[Any, Any]:
    rows, labels = table(n, seed)
    columns = {f"x{i}": rows[:, i] for i in range(D)}
    columns["ward"] = np.random.default_rng(seed).choice(["north", "south"], n)  # type: ignore[assignment]
    return (pd.DataFrame(columns) if library == "pandas" else pl.DataFrame(columns)), labels


@pytest.mark.heavy
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
        with pytest.raises(DataRefused, match="X has 2 features, but PublicPool is expecting 4 features"):
            act(POOL[:, :2])


@pytest.mark.heavy
def test_a_pipeline_gets_the_frame_as_it_is() -> None:
    X, y = frames("pandas", N, 1)
    pool, _ = frames("pandas", M, 2)
    read = make_column_transformer((StandardScaler(), ["x0", "x1"]), (OneHotEncoder(handle_unknown="ignore"), ["ward"]))
    clf = classifier(
        teacher=make_pipeline(read, GaussianNB()), student=make_pipeline(read, LogisticRegression()), epsilon=30.0
    )
    clf.fit(X, y, public=PublicPool(pool))
    assert clf.score(*frames("pandas", 400, 9)) > 0.75


@pytest.mark.heavy
def test_a_pipeline_reads_dates_by_itself() -> None:
    X, y = frames("polars", N, 1)
    pool, _ = frames("polars", M, 2)
    dated = [each.with_columns(day=pl.date(2026, 1, 1)) for each in (X, pool)]
    read = make_column_transformer((StandardScaler(), ["x0", "x1"]))
    pipeline = make_pipeline(read, LogisticRegression())
    clf = classifier(teacher=pipeline, student=pipeline, epsilon=30.0).fit(dated[0], y, public=PublicPool(dated[1]))
    assert clf.score(dated[0], y) > 0.75


@pytest.mark.heavy
@pytest.mark.several_fits
def test_sparse_rows_and_lists_are_taken() -> None:
    pool = PublicPool(sparse.csr_array(POOL))
    clf = classifier(teacher=LogisticRegression(), epsilon=30.0).fit(sparse.csc_array(X), Y, public=pool)
    assert clf.predict(sparse.coo_array(POOL)).shape == (M,)
    as_lists = classifier(queries=40).fit(X.tolist(), Y.tolist(), public=PublicPool(POOL.tolist()))
    assert as_lists.predict(POOL.tolist()).shape == (M,)


@pytest.mark.heavy
def test_fitted_public_preprocessing_is_kept_where_the_owner_says_so() -> None:
    scaler = StandardScaler().fit(POOL)
    model = make_pipeline(scaler, LogisticRegression())
    with pytest.raises(InvalidParameter, match="already fitted: StandardScaler"):
        classifier(teacher=model).fit(X, Y, public=PublicPool(POOL))
    clf = classifier(teacher=model, preprocessing="public").fit(X, Y, public=PublicPool(POOL))
    (told,) = [check for check in clf.facts().checks if check.code == "preprocessing"]
    assert told.outcome is Outcome.NOT_COVERED
    assert "the owner's statement" in told.evidence
