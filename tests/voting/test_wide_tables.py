"""Teachers of a wide table see the leading directions of the pool; narrow tables and given teachers see columns."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from quorate import PrivateClassifier, PrivateLogisticRegression, check
from quorate.data import PublicPool
from quorate.noise import SeededNoise
from quorate.types import Secret
from quorate.voting.config import RunConfig
from quorate.voting.prepare import prepare

pytestmark = pytest.mark.mostly_heavy

WIDTH = 300
CONFIG = RunConfig(classes=[0, 1], epsilon=1.0, delta=1e-5, n_records=400)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3)) @ rng.normal(size=(3, WIDTH)) + 0.1 * rng.normal(size=(500, WIDTH))
    return rows[:400], (rows[:400, 0] > 0).astype(int), rows[400:]


def task_of(table, config=CONFIG, width=WIDTH):
    X, y, pool = table
    how = {"groups": None, "key": Secret(bytes(32)), "fingerprint_key": Secret(bytes(32)), "noise": SeededNoise(0)}
    return prepare(config, X[:, :width], y, public=PublicPool(pool[:, :width]), **how)


LINEAR = replace(CONFIG, teacher=LogisticRegression(), built_in=True)


def test_a_linear_teacher_of_ours_sees_directions_of_a_wide_pool_and_the_recipe_says_so(table):
    task = task_of(table, LINEAR)
    assert task.views.teacher(table[0]).shape == (400, 64)
    assert "teachers see the 64 leading directions of the public pool in place of 300 columns" in task.recipe.why


@pytest.mark.parametrize(
    ("config", "width"),
    [(LINEAR, 256), (replace(CONFIG, teacher=LogisticRegression()), WIDTH)],
    ids=["narrow", "given"],
)
def test_others_see_columns(table, config, width):
    task = task_of(table, config, width)
    assert task.views.teacher(table[0][:, :width]).shape == (400, width)
    assert "directions" not in task.cache_inputs


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("config", [CONFIG, LINEAR], ids=["default", "linear"])
def test_one_private_row_moves_no_other_row_that_teachers_see(table, config):
    """Not by a bit: else it would reach every shard."""
    task, X = task_of(table, config), table[0].copy()
    before = task.views.teacher(X)
    X[17] = 1e6 * X[17][::-1]
    after = task.views.teacher(X)
    others = np.arange(400) != 17
    assert (before[others] == after[others]).all()
    assert (before[17] != after[17]).any()


@pytest.mark.parametrize("config", [CONFIG, LINEAR], ids=["default", "linear"])
def test_directions_are_read_off_public_rows_alone(table, config):
    X, y, pool = table
    asked = np.ones((1, WIDTH))
    seen = [task_of((private, y, pool), config).views.teacher(asked) for private in (X, X[::-1] ** 3)]
    assert (seen[0] == seen[1]).all()
    fewer = task_of((X, y, pool[:80]), config).views.teacher(asked)
    assert fewer.shape != seen[0].shape or (fewer != seen[0]).any()


def test_the_key_of_votes_says_that_teachers_saw_directions(table):
    assert task_of(table, LINEAR).cache_inputs["directions"] == 64


ASKED_ONCE = {"columns", "families", "feature_families", "column_names", "schema", "other_columns", "public_units"}


def questions_of_names(columns, container, method):
    """How often a check asks for the names or the types of a whole table: each time goes through all of its columns."""
    rng, names = np.random.default_rng(0), [f"g{at}" for at in range(columns)]
    tables = [pl.DataFrame(rng.normal(size=(n, columns)), schema=names) for n in (80, 60)]
    tables = [each.with_columns(pl.col(names[: columns // 2]).cast(pl.String)) for each in tables]  # of both families
    X, pool = tables if container == "polars" else [each.to_pandas() for each in tables]
    settings = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_records": 80}
    estimator = PrivateLogisticRegression(**settings)
    if method == "votes":
        estimator = PrivateClassifier(**settings, n_teachers=8, queries=30, n_jobs=1, allow_hopeless=True)
    count = 0

    def counted(frame, event, _):
        nonlocal count
        count += event == "call" and frame.f_code.co_name in ASKED_ONCE

    sys.setprofile(counted)
    try:
        check(estimator, X, np.arange(80) % 2, public=PublicPool(pool))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("method", ["votes", "direct"])
@pytest.mark.parametrize("container", ["polars", "pandas"])
def test_names_and_types_of_a_table_are_asked_for_as_often_whatever_the_number_of_columns(container, method):
    """Asked for in a loop over columns, they made a check of 4,000 columns take 94 s."""
    assert questions_of_names(12, container, method) == questions_of_names(36, container, method)
