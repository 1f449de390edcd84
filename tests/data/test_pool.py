"""The public pool cannot be sliced by model selection."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_validate

from quorate.data import PublicPool
from quorate.errors import DataRefused

N = 30
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.tile([0, 1], N // 2)


class SeesPublic(ClassifierMixin, BaseEstimator):
    """Remembers how many public rows it was given."""

    seen = []  # noqa: RUF012  shared by the clones on purpose

    def __init__(self, depth=1):
        self.depth = depth

    def fit(self, X, y, public):
        rows = public.rows() if isinstance(public, PublicPool) else public
        self.seen.append(rows.shape[0])
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(X.shape[0], dtype=int)


@pytest.fixture
def seen():
    SeesPublic.seen.clear()
    return SeesPublic.seen


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("rows", [X, sparse.csr_array(X), pd.DataFrame(X), pl.DataFrame(X)])
def test_cross_validation_hands_on_the_whole_pool(rows, seen):
    cross_validate(SeesPublic(), X, Y, cv=3, params={"public": PublicPool(rows)}, error_score="raise")
    assert seen == [N] * 3


def test_grid_search_hands_on_the_whole_pool(seen):
    GridSearchCV(SeesPublic(), {"depth": [1, 2]}, cv=3).fit(X, Y, public=PublicPool(X))
    assert seen == [N] * 7


def test_a_bare_array_would_be_sliced_so_that_test_can_fail(seen):
    cross_validate(SeesPublic(), X, Y, cv=3, params={"public": X}, error_score="raise")
    assert seen == [N * 2 // 3] * 3


def test_a_pool_has_no_length_items_shape_or_array_protocol():
    pool = PublicPool(X)
    for name in ("__len__", "__getitem__", "__iter__", "__array__", "shape", "__array_interface__", "__dataframe__"):
        assert not hasattr(pool, name), name
    with pytest.raises(TypeError):
        len(pool)
    with pytest.raises(TypeError):
        list(pool)


@pytest.mark.parametrize("rows", [X, sparse.csr_array(X), pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X)])
def test_a_pool_gives_its_rows_back_as_they_came(rows):
    pool = PublicPool(rows)
    assert pool.rows() is rows
    assert PublicPool(pool).rows() is rows
    assert (pool.n_rows, pool.width) == (N, 2)
    assert repr(pool) == "PublicPool(30 rows, 2 columns)"


def test_names_are_shown_escaped():
    pool = PublicPool(pl.DataFrame({"<b>": [1], "age": [2]}))
    assert pool.columns == ("<b>", "age")
    assert pool.kind == "polars"
    assert "&lt;b&gt;, age" in pool._repr_html_()


def test_a_pool_travels_to_worker_processes():
    assert pickle.loads(pickle.dumps(PublicPool(X))).n_rows == N  # noqa: S301  our own bytes


def test_a_pool_takes_missing_values_but_not_infinite_ones():
    assert PublicPool([[1.0, np.nan]]).n_rows == 1
    with pytest.raises(DataRefused, match="public: Input contains infinity in column 1"):
        PublicPool([[1.0, np.inf]])


def test_what_is_no_table_is_refused():
    for wrong in ([1, 2], "abc", None, 3, np.zeros((0, 2)), np.zeros((2, 0)), np.array([["a"]])):
        with pytest.raises(DataRefused, match="public"):
            PublicPool(wrong)
