"""What a class takes as points, and how it refuses the rest: one line, never a value."""

import decimal
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from quorate.errors import DataRefused
from quorate.learners.concepts import (
    FiniteClass,
    Intervals,
    PointFunctions,
    Rectangles,
    Stumps,
    SymmetricDifference,
    Thresholds,
)
from quorate.learners.concepts.stumps import Stump

COLUMN = [5, 0, 7]
ONE_COLUMN = [Thresholds(3), Intervals(3), PointFunctions(3), Rectangles(3, 1), SymmetricDifference(Thresholds(3))]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("concepts", ONE_COLUMN, ids=str)
@pytest.mark.parametrize(
    "points",
    [
        COLUMN,
        [[5], [0], [7]],
        [5.0, 0.0, 7.0],
        np.array(COLUMN, dtype=np.int8),
        np.array(COLUMN, dtype=np.uint64)[:, np.newaxis],
        np.array(COLUMN, dtype=np.float32),
        np.array(COLUMN, dtype=object),
        tuple(COLUMN),
        pd.Series(COLUMN),
        pd.DataFrame({"age": COLUMN}),
        pd.DataFrame({"age": pd.array(COLUMN, dtype="Int64")}),
        pl.Series(COLUMN),
        pl.DataFrame({"age": COLUMN}),
        pl.DataFrame({"age": COLUMN}, schema={"age": pl.Float32}),
        sparse.csc_array(np.array([[5], [0], [7]])),
    ],
    ids=lambda points: f"{type(points).__module__.split('.')[0]}-{type(points).__name__}",
)
def test_whole_numbers_of_every_container_are_taken(concepts, points):
    taken = concepts.check(points)
    assert taken.dtype == np.int64
    assert taken.tolist() == [[5], [0], [7]]


def test_frames_with_columns_of_different_types_are_taken():
    frame = pl.DataFrame({"age": [1, 2], "share": [0.0, 3.0], "known": [True, False]})
    for rows in (frame, frame.to_pandas()):
        assert Rectangles((2, 2, 1), 3).check(rows).tolist() == [[1, 0, 1], [2, 3, 0]]
        assert Stumps(3).check(rows).tolist() == [[1.0, 0.0, 1.0], [2.0, 3.0, 0.0]]


def test_whole_numbers_that_no_float_holds_stay_what_they_are():
    large = 2**62 - 1
    for points in ([large], np.array([large]), pl.DataFrame({"x": [large]}), np.array([large], dtype=object)):
        assert Thresholds(62).check(points).tolist() == [[large]]
    assert Thresholds(62).dichotomies(Thresholds(62).check([large]))[1].cut == 2**62


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("concepts", ONE_COLUMN, ids=str)
@pytest.mark.parametrize(
    "points",
    [
        np.array(["3"], dtype=object),
        *([cell] for cell in (8, -1, 0.5, float("nan"), float("inf"), "3", b"3", 3 + 0j, 2**70, [1, 2])),
        [None, 1],
        [[1], [2, 3]],
        [],
        "3",
        {"age": [3]},
        object(),
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([-0.25], dtype=np.float32),
        np.array([np.datetime64("2020-01-01")]),
        np.ma.masked_array([1, 2], [True, False]),
        np.zeros((2, 1, 1, 1, 1)),  # three dimensions are an image a row
        *(pd.DataFrame({"age": cells}) for cells in ([1.0, np.nan], pd.array([1, None], dtype="Int64"), ["3"])),
        *(frame({"age": cells}) for frame in (pl.DataFrame, pl.LazyFrame) for cells in ([1, None], ["3"], [3.5])),
    ],
    ids=lambda points: re.sub(r" at 0x\w+", "", f"{type(points).__name__}-{points!r}")[:40].replace("\n", " "),
)
def test_anything_else_is_refused_in_one_line_without_a_value(concepts, points):
    with pytest.raises(DataRefused) as refusal:
        concepts.check(points)
    told = str(refusal.value)
    assert "\n" not in told
    # no number but those of the class, its domain, the columns, the shape and a dtype
    assert set(re.findall(r"-?\d+\.?\d*|nan|inf", told)) <= {"0", "1", "2", "3", "5", "7", "-1", "1.", "64"}


def test_the_refused_column_is_named_and_the_domain_told():
    with pytest.raises(DataRefused, match=r"column 1 leaves the domain of .*from 0 to 3$"):
        Rectangles((4, 2), 2).check([[9, 0], [9, 4]])
    with pytest.raises(DataRefused, match=r"X has 3 features, but Stumps.n_features=2. is expecting 2 features"):
        Stumps(2).check(np.zeros((2, 3)))
    with pytest.raises(DataRefused, match=r"column 0 leaves the domain of .*finite numbers"):
        Stumps(2).check([[np.inf, 0.0]])


def test_real_columns_take_any_number_and_know_one_zero():
    points = Stumps(1).check([-0.0, 0.0, Fraction(1, 4), 10**18])
    assert np.signbit(points).tolist() == [[False]] * 4
    assert len(Stumps(1).dichotomies(points[:2])) == 2
    with pytest.raises(DataRefused):
        Stumps(1).check([decimal.Decimal("NaN")])


def test_a_finite_class_hands_its_classifiers_what_they_were_fitted_on():
    stumps = FiniteClass([Adapter(Stump(1, 2.0, "<="))], 2)
    points = stumps.check(pd.DataFrame({"a": [1, 2], "b": [2.0, 3.0]}))
    assert stumps.erm(points, np.array([1, 0])).labels(points).tolist() == [1, 0]


class Adapter:
    def __init__(self, concept):
        self.concept = concept

    def predict(self, X):
        assert X.dtype == np.float64
        return self.concept.labels(X)
