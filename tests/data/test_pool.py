"""The public pool cannot be sliced by model selection; labels are codes of declared classes, or refused."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, cross_validate

from quorate.data import PublicPool, check_classes, encode_labels
from quorate.data.labels import finite_numbers
from quorate.errors import DataRefused, InvalidParameter

N = 30
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.tile([0, 1], N // 2)


class SeesPublic(ClassifierMixin, BaseEstimator):
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


def test_codes_are_indices_into_the_declared_classes():
    codes = encode_labels(list("bacb"), ["c", "a", "b"])
    assert (codes.dtype, codes.tolist()) == (np.int64, [2, 1, 0, 2])
    for dtype in ("int8", "uint8", "int64", "float64"):
        assert encode_labels([7, 0], np.array([0, 7], dtype=dtype)).tolist() == [1, 0]
    assert encode_labels([], [0, 7]).tolist() == []


#: The name of a column, and tables.
NO_COLUMNS = ["ill", b"ill", {"ill": 1}, {"yes"}, pl.DataFrame({"a": ["no"], "b": ["no"]})]


@pytest.mark.parametrize(
    ("labels", "classes", "told", "hidden"),
    [
        *((["a", missing], ["a", "b"], "missing", None) for missing in (None, np.nan, pd.NA, pd.NaT)),
        (["a", "confidential"], ["a", "b"], r"outside classes.*'a', 'b'", "confidential"),
        ([0, 8675309], [0, 1], r"outside classes.*0, 1", "8675309"),
        (np.zeros((3, 2)), [0, 1], "one column", "0.0"),
        ([["a"], ["b"]], ["a", "b"], "outside classes", "['a']"),
        *((y, ["no", "yes"], f"got {type(y).__name__}.*one label for every row", str(y)) for y in (417, 41.7, True)),
        *((y, ["no", "yes"], "^y: (got|expected one label per row)", None) for y in NO_COLUMNS),
        (["'yes"], ["no", "yes"], "outside classes", None),  # a mark that keeps a formula from being run is none
        (["=yes"], ["no", "'=yes"], "outside classes", None),
    ],
)
def test_labels_that_are_missing_or_none_of_the_classes_are_refused_without_being_shown(labels, classes, told, hidden):
    with pytest.raises(DataRefused, match=told) as refusal:
        encode_labels(labels, classes)
    assert hidden is None or hidden not in str(refusal.value)


@pytest.mark.parametrize("found", [">50K.", ">50k", ">50K . "])
def test_a_label_that_differs_by_case_or_a_dot_is_shown(found):
    with pytest.raises(DataRefused, match="by case or a trailing dot") as refusal:
        encode_labels([found], ["<=50K", ">50K"])
    assert repr(found) in str(refusal.value)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "classes",
    [
        None, "ab", 5, [], ["a"], ["a", "a"], [0, 0.0], [0, True], [0, "1"], ["a", None], [0, float("nan")], [0.5, 1],
        [(0,), (1,)], {"a", "b"}, {"a": 1, "b": 2}, np.zeros((2, 2)),
    ],
)  # fmt: skip
def test_a_class_list_that_is_none_is_refused(classes):
    with pytest.raises(InvalidParameter, match="classes"):
        check_classes(classes)


def test_classes_keep_their_order_and_become_plain_values():
    classes = check_classes(np.array([">50K", "<=50K"]))
    assert classes == (">50K", "<=50K")
    assert {type(value) for value in classes} == {str}
    assert [type(value) for value in check_classes(np.array([1, 0]))] == [int, int]
    assert [type(value) for value in check_classes(np.array([True, False]))] == [bool, bool]


def test_public_labels_and_targets_that_are_none_are_refused_in_one_line():
    for y, words in (
        ([0, 1, 1], r"^calibration: got 3 for 4 rows; give one \w+ for every row$"),
        (None, "^calibration: .*(y is None|got NoneType).* for every row"),
        (3, "^calibration: got int.* for every row"),
        ("y", "^calibration: got str, expected one .* for every row"),
        ([0, 1, None, 1], "is missing; every row needs one|row 2 holds no finite number"),
    ):
        for read in (partial(encode_labels, y, [0, 1]), partial(finite_numbers, y)):
            with pytest.raises(DataRefused, match=words) as refused:
                read(name="calibration", n_rows=4)
            assert "\n" not in str(refused.value)
    assert encode_labels([0, 1, 1], [0, 1], n_rows=3).tolist() == finite_numbers([0, 1, 1], name="y", n_rows=3).tolist()
