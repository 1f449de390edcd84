"""The owner's own look: counts on the terminal alone, from every container, of both methods, in Python and a folder."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate import LabelPrivateClassifier, PrivateClassifier, PrivateLogisticRegression, PublicPool, check
from quorate.errors import InvalidParameter, SecretRefused
from quorate.run.look import OUTSIDE

N = 400
SETTINGS = {"classes": ["no", "yes"], "epsilon": 2.0, "delta": 1e-5, "n_records": N}
VOTES = {"n_teachers": 10, "queries": 30, "n_jobs": 1}


def rows(n, seed):
    rng = np.random.default_rng(seed)
    crp = [f"{value:.2f}" if value > 0.5 else "n/a" for value in rng.uniform(0, 9, n)]
    return pd.DataFrame({"ward": rng.choice(["north", "south"], n), "x": rng.normal(size=n), "crp": crp})


def as_polars(frame):
    return pl.DataFrame({name: [None if pd.isna(cell) else cell for cell in frame[name]] for name in frame})


def labels(n):
    return pd.Series(np.random.default_rng(0).choice(["no", "yes"], n), dtype=object)


def direct(**how):
    return PrivateLogisticRegression(**{**SETTINGS, "rounds": 2, "feature_map": "linear", **how})


def printed(found):
    assert "look" not in found.to_json().lower().replace("check(..., look=true)", "")
    text = " ".join(repr(found).split())
    assert " ".join(OUTSIDE.format(private="X").split()) in text
    return text.partition("LOOK")[2]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_direct_method_counts_what_nothing_else_says_of_private_rows(library):
    X, y, pool = rows(N, 1), labels(N), rows(100, 2)
    X.loc[0, "x"], X.loc[1, "ward"], X.loc[2, "crp"], X.loc[3, "ward"] = np.inf, None, "<0.5", "moon"
    y[[4, 5, 6]] = ["maybe", 1, None]
    groups = pd.Series([f"P{i // 2}" for i in range(N)], dtype=object)
    groups[[7, 8]] = [None, [1]]
    tables = (X, pool) if library == "pandas" else tuple(map(as_polars, (X, pool)))
    found = check(direct(), tables[0], y, public=PublicPool(tables[1]), groups=groups, look=True)
    said, missing = printed(found), int((rows(N, 1)["crp"] == "n/a").sum())
    for words in (
        "labels 397 of 400 can be used; 2 are none of the declared classes; 1 is missing",
        "ids 398 of 400 can be used; 2 rows have none",
        "'x': 399 of 400 can be used",
        "'ward': 400 of 400 can be used (1 of these missing, 1 with an entry that no public row has)",
        "'crp': 399 of 400 can be used",
        "1 no number, and taken as missing",
        "rows 394 of 400 can be used as a whole; 6 would be left out. A cell of column",
        "that cannot be read leaves out its row: write them as None, which is a missing value, or clean the column",
    ):
        assert words in said, said
    assert missing
    assert not {"maybe", "moon", "<0.5"} & set(said.replace("'", " ").split()), "no cell is quoted"


@pytest.mark.heavy
def test_without_being_asked_for_there_is_no_look_and_the_check_depends_on_no_private_row():
    X, y, pool = rows(N, 1), labels(N), PublicPool(rows(100, 2))
    plain = check(direct(), X, y, public=pool)
    assert plain.look.reveal() is None
    asked = check(direct(), X.assign(x=np.inf), y.replace("no", "perhaps"), public=pool, look=True)
    assert repr(asked).partition("  LOOK")[0].rstrip() == repr(plain).partition("\n\nNothing")[0]
    assert asked.to_json() == plain.to_json()
    assert dict(asked.found) == dict(plain.found)
    with pytest.raises(SecretRefused):
        pickle.dumps(asked)


@pytest.mark.heavy
def test_what_stands_in_both_tables_and_what_the_pool_does_not_know_is_said():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(N, 3)), labels(N)
    said = printed(check(direct(), X, y, public=PublicPool(X[:100].copy()), look=True))
    assert "100 rows of X equal a row of the public rows in every cell; that is more than chance explains" in said
    coins, pool = rng.integers(0, 2, (N, 3)), rng.integers(0, 2, (100, 3))
    said = printed(check(direct(), coins, y, public=PublicPool(pool), look=True))
    assert "where rows hold few different values, chance makes them so" in said
    towns = [f"town {i}" for i in range(8)]
    X, pool = (
        pd.DataFrame({"town": np.resize(names, n), "x": rng.normal(size=n)})
        for names, n in ((towns, N), (towns[:2], 100))
    )
    said = printed(check(direct(), X, y, public=PublicPool(pool), look=True))
    assert "'town' (6 of 8 different entries) of X stand in no row of the public rows" in said
    said = printed(check(direct(), X.assign(town=X["town"].str.upper()), y, public=PublicPool(pool), look=True))
    assert "but for case, for blanks" in said


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "classifier",
    [
        pytest.param(direct(), id="drawn", marks=pytest.mark.heavy),
        pytest.param(direct(marginals=0), id="no marginals"),
        pytest.param(PrivateClassifier(**SETTINGS, **VOTES, allow_hopeless=True), id="votes"),
    ],
)
def test_cells_that_a_schema_does_not_declare_are_counted_by_column(classifier):
    """Nothing else says so before the whole budget is spent on rows that say nothing."""
    rng, y = np.random.default_rng(3), labels(N)
    X = pd.DataFrame({"ward": rng.choice(["north", "south"], N), "age": rng.uniform(0, 90, N), "sex": ["F", "M"] * 200})
    X.loc[0, "sex"], X.loc[1, "age"] = "U", np.nan
    schema = {"ward": ["N", "S"], "age": (200, 300), "sex": ["f", "F", "M"]}
    found = check(classifier, X, y, schema=schema, look=True)
    said = printed(found)
    for words in (
        "'ward': 400 of 400 can be used (400 with an entry that the schema does not list)",
        "399 beyond the bounds of the schema",
        "'sex': 400 of 400 can be used (1 with an entry that the schema does not list)",
        "most cells of columns 'ward', 'age' of X are in no list and within no bounds of the schema",
    ):
        assert words in said, said
    X["ward"], X["age"] = X["ward"].str[0].str.upper(), X["age"] + 200
    said = printed(check(classifier, X, y, schema=schema, look=True))
    assert "most cells" not in said
    assert "'ward'" in said.partition("all of 400")[0], "nothing is said of a column that fits"
    plain = check(classifier, X, y, schema=schema)
    assert found.to_json() == plain.to_json(), "no private cell is in what may be reported"


@pytest.mark.parametrize("votes", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_declared_classes_that_no_row_has_are_told_to_the_owner_alone(votes):
    X, y, pool = rows(N, 1), labels(N), PublicPool(rows(100, 2))
    more = {"classes": ["no", "unclear", "yes"]}
    made = PrivateClassifier(**{**SETTINGS, **VOTES, **more}) if votes else direct(**more)
    found = check(made, X, y, public=pool, look=True)
    assert "no row has the class 'unclear'; a declared class without rows costs budget" in printed(found)
    assert "unclear" not in "".join(caution.words for caution in found.cautions)
    assert found.to_json() == check(made, X, y, public=pool).to_json()
    assert "no row has" not in printed(check(direct(), X, y, public=pool, look=True))


@pytest.mark.heavy
def test_where_teachers_vote_the_look_is_there_too():
    X, y, pool = rows(N, 1), labels(N), rows(100, 2)
    X.loc[2, "crp"] = "<0.5"
    votes = PrivateClassifier(**SETTINGS, **VOTES)
    said = printed(check(votes, X, y, public=PublicPool(pool), groups=[f"P{i}" for i in range(N)], look=True))
    assert "labels 400 of 400 can be used" in said
    assert "ids 400 of 400 can be used" in said
    assert "'crp': 399 of 400 can be used" in said
    of_labels = LabelPrivateClassifier(classes=["no", "yes"], epsilon=4.0, delta=1e-5, n_jobs=1)
    said = printed(check(of_labels, np.arange(2.0 * N).reshape(N, 2), y, look=True))
    assert "equal" not in said, "features are public there"
    for wrong in ("yes", 1):
        with pytest.raises(InvalidParameter, match="look must be"):
            check(votes, X, y, public=PublicPool(pool), look=wrong)


def test_no_private_cell_stops_a_look():
    X, pool = rows(N, 1).astype(object), rows(100, 2)
    X.loc[0, "x"], X.loc[1, "x"], X.loc[2, "ward"], X.loc[3, "x"] = 10**5000, 1e300, [1], "\ud800"
    y = labels(N)
    y[0] = 10**5000
    assert "labels 399 of 400" in printed(check(direct(), X, y, public=PublicPool(pool), look=True))
    assert "labels 0 of 0" in printed(check(direct(), X[:0], y[:0], public=PublicPool(pool), look=True))
    sound = np.random.default_rng(0).normal(size=(N, 3))
    assert "labels 399 of 400" in printed(check(direct(), sound, y, look=True))
