"""A text that is missing in pandas rows: they look the same alone and in company, and what fails costs nothing."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.estimators.small_task import D, M, N, classifier, table

from quorate import PrivateClassifier, PublicPool
from quorate.data import public_encoder
from quorate.data.column_kinds import column_kinds
from quorate.voting.inputs import View


def frame(n: int, seed: int, *, absent: Any = None, share: float = 0.1) -> tuple[pd.DataFrame, Any]:
    rows, labels = table(n, seed)
    rng = np.random.default_rng(seed)
    words = rng.choice(["north", "south"], n).tolist()
    ward = [absent if gone else word for word, gone in zip(words, rng.random(n) < share, strict=True)]
    named = pd.DataFrame(rows, columns=[f"x{i}" for i in range(D)])
    return named.assign(ward=pd.Series(ward, dtype=object)), labels


def fitted(private: Any, labels: Any, pool: Any, **changes: Any) -> PrivateClassifier:
    clf = classifier(epsilon=30.0, queries=20, online_answers=6, **changes)
    return clf.fit(private, labels, public=PublicPool(pool))


def as_seen(clf: PrivateClassifier, rows: pd.DataFrame) -> Any:
    seen = clf._kept.task.views.teacher(clf._kept.public_rows(rows))
    return seen.to_numpy(dtype=object) if isinstance(seen, pd.DataFrame) else np.asarray(seen)


def pipelines() -> dict[str, Any]:
    read = make_column_transformer(
        (StandardScaler(), [f"x{i}" for i in range(D)]), (OneHotEncoder(handle_unknown="ignore"), ["ward"])
    )
    return {"teacher": make_pipeline(read, GaussianNB()), "student": make_pipeline(read, LogisticRegression())}


# Models, how a text is missing, and how it is missing in the pool and how often: each of them is in the first four.
CELLS = [(dict, None, (np.nan, 0.1)), (dict, np.nan, (None, 0.0)), (pipelines, np.nan, (None, 0.1))]
CELLS += [(pipelines, None, (None, 0.0))]
ALL = product([dict, pipelines], [None, np.nan], [(None, 0.1), (np.nan, 0.1), (None, 0.0)])
CELLS += [cell for cell in ALL if cell not in CELLS]


@pytest.mark.heavy
@pytest.mark.heavy_cases(5)
@pytest.mark.parametrize(("models", "mark", "public"), CELLS)
def test_a_row_looks_the_same_alone_and_in_company(models: Any, mark: Any, public: tuple[Any, float]) -> None:
    X, y = frame(N, 1)
    clf = fitted(X, y, frame(M, 2, absent=public[0], share=public[1])[0], **models())
    rows = frame(3, 9, share=0.0)[0]
    rows["ward"] = pd.Series(["north", mark, mark], dtype=object)
    together = as_seen(clf, rows)
    for place in range(3):
        alone = as_seen(clf, rows.iloc[[place]])
        assert repr(alone[0].tolist()) == repr(together[place].tolist())
    assert repr(as_seen(clf, rows.iloc[1:])[0].tolist()) == repr(together[1].tolist())
    assert clf.ask(rows.iloc[[1]])[0] in (0, 1, None)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("mark", [None, np.nan])
def test_a_private_column_without_any_text_is_text(mark: Any) -> None:
    pool = frame(M, 2)[0]
    X, y = frame(N, 1, absent=mark, share=1.0)
    clf = fitted(X, y, pool)
    row, read = frame(1, 9)[0], column_kinds(pool)(pool)
    assert np.array_equal(as_seen(clf, row), public_encoder(read).transform(row)), "no private row decides"


@pytest.mark.heavy
def test_a_column_of_number_objects_without_any_value_is_numbers() -> None:
    X, y = frame(N, 1)
    pool = frame(M, 2)[0].assign(age=pd.Series([None, 1.0] * (M // 2), dtype=object))
    clf = fitted(X.assign(age=pd.Series([None] * N, dtype=object)), y, pool)
    rows = frame(2, 9)[0].assign(age=pd.Series([None, 3.0], dtype=object))
    assert np.array_equal(as_seen(clf, rows.iloc[[0]])[0], as_seen(clf, rows)[0])
    assert clf.ask(rows.iloc[[0]])[0] in (0, 1, None)


@pytest.mark.heavy
def test_a_view_that_fails_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = fitted(*frame(N, 1), frame(M, 2)[0])

    def fails(self: View, rows: Any) -> Any:
        raise TypeError("cannot be read")

    rows = frame(2, 9)[0]
    with monkeypatch.context() as patched:
        patched.setattr(View, "__call__", fails)
        with pytest.raises(TypeError, match="cannot be read"):
            clf.ask(rows)
    assert clf.facts().spending.answers_left == 6
