"""A missing value says the same whatever stands for it and holds it: at fit, predict and ask, of both methods."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.estimators.small_task import D, M, N, classifier, table

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.data import public_encoder
from quorate.data.column_kinds import column_kinds
from quorate.data.columns import texts
from quorate.voting.inputs import View

pytestmark = [pytest.mark.mostly_heavy, pytest.mark.several_fits]

N_PRIVATE, N_POOL, NEW = 240, 80, 40
PARTS = slice(N_PRIVATE), slice(N_PRIVATE, N_PRIVATE + N_POOL), slice(N_PRIVATE + N_POOL, None)


def cells(part, mark):
    rng = np.random.default_rng(3)
    n = N_PRIVATE + N_POOL + NEW
    columns = {
        "age": rng.integers(20, 90, n).astype(float).tolist(),
        "x": rng.normal(size=n).tolist(),
        "ward": rng.choice(["north", "south"], n).tolist(),
        "code": rng.integers(1, 4, n).tolist(),
    }
    gone = {name: rng.random(n) < 0.2 for name in columns}
    gone["x"][:] = False
    marked = {name: [mark if gone[name][at] else cell for at, cell in enumerate(columns[name])] for name in columns}
    return {name: column[part] for name, column in marked.items()}


def labels():
    whole = cells(PARTS[0], None)
    return np.array(["yes" if (age or 50) > 55 else "no" for age in whole["age"]])


def typed(**types):
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
POLARS = pl.DataFrame
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
SEEDED = {
    "classes": ["no", "yes"], "epsilon": 8.0, "delta": 1e-5, "n_records": N_PRIVATE, "unsafe_noise_seed": 1,
}  # fmt: skip


def parts(name):
    make, mark = TABLES[name]
    private, pool, new = (make(cells(part, mark)) for part in PARTS)
    return private, pool, new


def direct():
    return PrivateLogisticRegression(**SEEDED, rounds=3)


def votes():
    return PrivateClassifier(**SEEDED, n_teachers=8, n_jobs=1, online_answers=4)


@pytest.fixture(scope="module")
def plain():
    private, pool, new = (PLAIN(cells(part, np.nan)) for part in PARTS)
    rounds = direct().fit(private, labels(), public=PublicPool(pool))
    voted = votes().fit(private, labels(), public=PublicPool(pool))
    return {"direct": rounds.predict_proba(new), "votes": voted.predict_proba(new), "asked": voted.ask(new[:4])}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", TABLES)
def test_a_missing_value_is_the_same_in_every_table(name, plain):
    """None among Python objects was another value than NaN: a model was right for 37 in 100, and for 81."""
    private, pool, new = parts(name)
    rounds = direct().fit(private, labels(), public=PublicPool(pool))
    assert np.array_equal(rounds.predict_proba(new), plain["direct"])
    voted = votes().fit(private, labels(), public=PublicPool(pool))
    assert np.array_equal(voted.predict_proba(new), plain["votes"])
    assert voted.ask(new[:4]) == plain["asked"]


def test_a_model_takes_any_mark_of_a_missing_value_whatever_it_was_fitted_on():
    private, pool, new = (PLAIN(cells(part, np.nan)) for part in PARTS)
    fitted = direct().fit(private, labels(), public=PublicPool(pool))
    for name in TABLES:
        if "polars" not in name:
            assert np.array_equal(fitted.predict_proba(parts(name)[2]), fitted.predict_proba(new)), name


@pytest.mark.quick
def test_a_missing_category_of_whole_numbers_changes_no_other_cell():
    """A library turns a list of such categories into floats where one of them is missing: "1" became "1.0"."""
    whole = pd.Series([1, 2, 2**60], dtype="category")
    assert texts(whole) == ["1", "2", str(2**60)]
    assert texts(pd.Series([1, None, 2], dtype="category")) == ["1", None, "2"]
    assert texts(pd.Series(["a", None, "1.0"], dtype="category")) == ["a", None, "1.0"]
    frame = pd.DataFrame({"code": pd.Series([1, 2, None] * 10, dtype="category"), "x": np.arange(30.0)})
    kinds = column_kinds(frame)
    assert kinds.kinds["code"] == "category"
    assert kinds(frame)["code"].tolist()[:2] == kinds(frame.drop(index=2))["code"].tolist()[:2] == ["1", "2"]


def test_categories_of_whole_numbers_and_labels_as_a_table_of_one_column_are_taken():
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


def frame(n, seed, *, absent=None, share=0.1):
    rows, labels = table(n, seed)
    rng = np.random.default_rng(seed)
    words = rng.choice(["north", "south"], n).tolist()
    ward = [absent if gone else word for word, gone in zip(words, rng.random(n) < share, strict=True)]
    named = pd.DataFrame(rows, columns=[f"x{i}" for i in range(D)])
    return named.assign(ward=pd.Series(ward, dtype=object)), labels


def fitted(private, labels, pool, **changes):
    clf = classifier(epsilon=30.0, queries=20, online_answers=6, **changes)
    return clf.fit(private, labels, public=PublicPool(pool))


def as_seen(clf, rows):
    seen = clf._kept.task.views.teacher(clf._kept.public_rows(rows))
    return seen.to_numpy(dtype=object) if isinstance(seen, pd.DataFrame) else np.asarray(seen)


def pipelines():
    read = make_column_transformer(
        (StandardScaler(), [f"x{i}" for i in range(D)]), (OneHotEncoder(handle_unknown="ignore"), ["ward"])
    )
    return {"teacher": make_pipeline(read, GaussianNB()), "student": make_pipeline(read, LogisticRegression())}


# Models, how a text is missing, and how it is missing in the pool and how often: each of them is in the first four.
CELLS = [(dict, None, (np.nan, 0.1)), (dict, np.nan, (None, 0.0)), (pipelines, np.nan, (None, 0.1))]
CELLS += [(pipelines, None, (None, 0.0))]
ALL = product([dict, pipelines], [None, np.nan], [(None, 0.1), (np.nan, 0.1), (None, 0.0)])
CELLS += [cell for cell in ALL if cell not in CELLS]


@pytest.mark.heavy_cases(5)
@pytest.mark.parametrize(("models", "mark", "public"), CELLS)
def test_a_row_looks_the_same_alone_and_in_company(models, mark, public):
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
def test_a_private_column_without_any_text_is_text(mark):
    pool = frame(M, 2)[0]
    X, y = frame(N, 1, absent=mark, share=1.0)
    clf = fitted(X, y, pool)
    row, read = frame(1, 9)[0], column_kinds(pool)(pool)
    assert np.array_equal(as_seen(clf, row), public_encoder(read).transform(row)), "no private row decides"


def test_a_view_that_fails_costs_nothing(monkeypatch):
    clf = fitted(*frame(N, 1), frame(M, 2)[0])

    def fails(self, rows):
        raise TypeError("cannot be read")

    rows = frame(2, 9)[0]
    with monkeypatch.context() as patched:
        patched.setattr(View, "__call__", fails)
        with pytest.raises(TypeError, match="cannot be read"):
            clf.ask(rows)
    assert clf.facts().spending.answers_left == 6
