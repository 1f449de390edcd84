"""A missing value says the same whatever stands for it and holds it: at fit, predict and ask, of both methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.data.column_kinds import column_kinds
from quorate.data.columns import texts

pytestmark = pytest.mark.several_fits

N, M, NEW = 240, 80, 40
Cells = dict[str, list[Any]]


def cells(part: slice, mark: Any) -> Cells:
    rng = np.random.default_rng(3)
    n = N + M + NEW
    columns: dict[str, list[Any]] = {
        "age": rng.integers(20, 90, n).astype(float).tolist(),
        "x": rng.normal(size=n).tolist(),
        "ward": rng.choice(["north", "south"], n).tolist(),
        "code": rng.integers(1, 4, n).tolist(),
    }
    gone = {name: rng.random(n) < 0.2 for name in columns}
    gone["x"][:] = False
    marked = {name: [mark if gone[name][at] else cell for at, cell in enumerate(columns[name])] for name in columns}
    return {name: column[part] for name, column in marked.items()}


def labels() -> Any:
    whole = cells(slice(0, N), None)
    return np.array(["yes" if (age or 50) > 55 else "no" for age in whole["age"]])


def typed(**types: Any) -> Callable[[Cells], pd.DataFrame]:
    return lambda columns: pd.DataFrame({name: pd.Series(columns[name], dtype=types[name]) for name in columns})


OBJECTS = typed(age=object, x=object, ward=object, code=object)
PLAIN = typed(age=float, x=float, ward=object, code=float)
NULLABLE = typed(age="Float64", x="Float64", ward="string", code="Int64")
ARROW = typed(
    age=pd.ArrowDtype(pa.float64()),
    x=pd.ArrowDtype(pa.float64()),
    ward=pd.ArrowDtype(pa.string()),
    code=pd.ArrowDtype(pa.int64()),
)
CATEGORIES = typed(age=float, x=float, ward="category", code="Int64")
POLARS: Callable[[Cells], Any] = pl.DataFrame
TABLES = {
    "objects, None": (OBJECTS, None),
    "objects, NA": (OBJECTS, pd.NA),
    "nullable, NA": (NULLABLE, pd.NA),
    "polars": (POLARS, None),
    "objects, NaN": (OBJECTS, float("nan")),
    "objects, NaT": (OBJECTS, pd.NaT),
    "plain, None": (PLAIN, None),
    "Arrow in pandas": (ARROW, None),
    "categories": (CATEGORIES, None),
    "categories of polars": (lambda columns: POLARS(columns).cast({"ward": pl.Categorical}), None),
}
SEEDED: dict[str, Any] = {
    "classes": ["no", "yes"], "epsilon": 8.0, "delta": 1e-5, "n_records": N, "unsafe_noise_seed": 1,
}  # fmt: skip


def parts(name: str) -> tuple[Any, Any, Any]:
    make, mark = TABLES[name]
    private, pool, new = (make(cells(part, mark)) for part in (slice(N), slice(N, N + M), slice(N + M, N + M + NEW)))
    return private, pool, new


def direct() -> PrivateLogisticRegression:
    return PrivateLogisticRegression(**SEEDED, rounds=3)


def votes() -> PrivateClassifier:
    return PrivateClassifier(**SEEDED, n_teachers=8, n_jobs=1, online_answers=4)


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    private, pool, new = (PLAIN(cells(part, np.nan)) for part in (slice(N), slice(N, N + M), slice(N + M, None)))
    rounds = direct().fit(private, labels(), public=PublicPool(pool))
    voted = votes().fit(private, labels(), public=PublicPool(pool))
    return {"direct": rounds.predict_proba(new), "votes": voted.predict_proba(new), "asked": voted.ask(new[:4])}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", TABLES)
def test_a_missing_value_is_the_same_in_every_table(name: str, plain: dict[str, Any]) -> None:
    """None among Python objects was another value than NaN: a model was right for 37 in 100, and for 81."""
    private, pool, new = parts(name)
    rounds = direct().fit(private, labels(), public=PublicPool(pool))
    assert np.array_equal(rounds.predict_proba(new), plain["direct"])
    voted = votes().fit(private, labels(), public=PublicPool(pool))
    assert np.array_equal(voted.predict_proba(new), plain["votes"])
    assert voted.ask(new[:4]) == plain["asked"]


@pytest.mark.heavy
def test_a_model_takes_any_mark_of_a_missing_value_whatever_it_was_fitted_on() -> None:
    private, pool, new = (PLAIN(cells(part, np.nan)) for part in (slice(N), slice(N, N + M), slice(N + M, None)))
    fitted = direct().fit(private, labels(), public=PublicPool(pool))
    for name in TABLES:
        if "polars" not in name:
            assert np.array_equal(fitted.predict_proba(parts(name)[2]), fitted.predict_proba(new)), name


def test_a_missing_category_of_whole_numbers_changes_no_other_cell() -> None:
    """A library turns a list of such categories into floats where one of them is missing: "1" became "1.0"."""
    whole = pd.Series([1, 2, 2**60], dtype="category")
    assert texts(whole) == ["1", "2", str(2**60)]
    assert texts(pd.Series([1, None, 2], dtype="category")) == ["1", None, "2"]
    assert texts(pd.Series(["a", None, "1.0"], dtype="category")) == ["a", None, "1.0"]
    frame = pd.DataFrame({"code": pd.Series([1, 2, None] * 10, dtype="category"), "x": np.arange(30.0)})
    kinds = column_kinds(frame)
    assert kinds.kinds["code"] == "category"
    assert kinds(frame)["code"].tolist()[:2] == kinds(frame.drop(index=2))["code"].tolist()[:2] == ["1", "2"]


@pytest.mark.heavy
def test_categories_of_whole_numbers_and_labels_as_a_table_of_one_column_are_taken() -> None:
    private, pool, new = parts("plain, None")
    as_codes = [table.assign(code=table["code"].astype("Int64").astype("category")) for table in (private, pool, new)]
    as_texts = [table.assign(code=table["code"].astype("object").map("{:.0f}".format, na_action="ignore"))
                for table in (private, pool, new)]  # fmt: skip
    for make in (direct, votes):
        one = make().fit(
            as_codes[0], pd.DataFrame({"ill": labels()}), public=PublicPool(as_codes[1], categorical="code")
        )
        other = make().fit(as_texts[0], labels(), public=PublicPool(as_texts[1], categorical="code"))
        assert np.array_equal(one.predict_proba(as_codes[2]), other.predict_proba(as_texts[2]))
