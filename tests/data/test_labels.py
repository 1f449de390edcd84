"""Labels as codes."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate.data import check_classes, encode_labels
from quorate.data.labels import finite_numbers
from quorate.errors import DataRefused, InvalidParameter


def test_codes_are_indices_into_the_declared_classes():
    codes = encode_labels(list("bacb"), ["c", "a", "b"])
    assert (codes.dtype, codes.tolist()) == (np.int64, [2, 1, 0, 2])
    for dtype in ("int8", "uint8", "int64", "float64"):
        assert encode_labels([7, 0], np.array([0, 7], dtype=dtype)).tolist() == [1, 0]
    assert encode_labels([], [0, 7]).tolist() == []


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_a_missing_label_is_refused(missing):
    with pytest.raises(DataRefused, match="missing"):
        encode_labels(["a", missing], ["a", "b"])


def test_a_label_outside_classes_is_refused_without_being_shown():
    with pytest.raises(DataRefused, match=r"outside classes.*'a', 'b'") as refusal:
        encode_labels(["a", "confidential"], ["a", "b"])
    assert "confidential" not in str(refusal.value)
    with pytest.raises(DataRefused, match=r"outside classes.*0, 1") as refusal:
        encode_labels([0, 8675309], [0, 1])
    assert "8675309" not in str(refusal.value)


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


def test_labels_must_be_one_per_row():
    with pytest.raises(DataRefused, match="one column"):
        encode_labels(np.zeros((3, 2)), [0, 1])
    with pytest.raises(DataRefused, match="outside classes"):
        encode_labels([["a"], ["b"]], ["a", "b"])


@pytest.mark.parametrize("y", [417, 41.7, True])
def test_what_is_given_in_place_of_labels_is_not_quoted(y):
    with pytest.raises(DataRefused, match="one label for every row") as refusal:
        encode_labels(y, ["no", "yes"])
    assert type(y).__name__ in str(refusal.value)
    assert str(y) not in str(refusal.value)


@pytest.mark.parametrize("y", ["ill", b"ill", {"ill": 1}, {"yes"}, pl.DataFrame({"a": ["no"], "b": ["no"]})])
def test_the_name_of_a_column_or_a_table_is_no_column_of_labels(y):
    with pytest.raises(DataRefused, match=r"^y: (got|expected one label per row)"):
        encode_labels(y, ["no", "yes"])


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
