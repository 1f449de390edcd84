"""Canonical digests: the same features have the same digest in every container, other features another."""

import datetime as dt
import math
import struct
from hashlib import blake2b

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from quorate.data import row_digests
from quorate.errors import DataRefused

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 1e300, 5e-324, math.nan, -math.nan, 2.0**53, 7.0])
TEXTS = st.sampled_from([None, "", "a", "A", "0", "nan", "None", "é", "\x00", "\x01"])


@st.composite
def number_tables(draw, cells=NUMBERS):
    width = draw(st.integers(1, 5))
    return np.array(draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=12)))


def slow_cell(value):
    """The value itself, in a form that Python compares as the digests ought to."""
    if isinstance(value, float) and math.isnan(value):
        return "missing number"
    return value


def slow_digest(row):
    """The encoding of a row of numbers, cell by cell."""
    cells = [(i, float(v)) for i, v in enumerate(row) if v != 0]
    message = struct.pack("<Id", len(row), float(len(cells)))
    for position, value in cells:
        message += struct.pack("<I", position)
        message += bytes.fromhex("000000000000f87f") if math.isnan(value) else struct.pack("<d", value)
    return blake2b(message, digest_size=16).digest()


@given(number_tables())
def test_digests_of_numbers_are_those_of_the_cell_by_cell_encoding(X):
    assert row_digests(X) == [slow_digest(row) for row in X]


@pytest.mark.heavy
@given(number_tables())
@settings(deadline=None)
def test_every_container_of_the_same_numbers_gives_the_same_digests(X):
    expected = row_digests(X)
    names = [f"c{i}" for i in range(X.shape[1])]
    stored_zeros = sparse.csr_array(np.where(X == 0, 1.0, X))
    stored_zeros.data[(X == 0).ravel()] = 0.0
    frame, sheet = pl.DataFrame(X, schema=names), pd.DataFrame(X, columns=names)
    rows = [np.asfortranarray(X), sparse.csr_array(X), sparse.csr_matrix(X), sparse.coo_array(X), stored_zeros]
    for table in (*rows, frame, frame.fill_nan(None), sheet, sheet.convert_dtypes(), sheet.astype(object)):
        assert row_digests(table) == expected


@given(number_tables(), number_tables())
def test_rows_have_equal_digests_exactly_where_their_values_are_equal(A, B):
    rows = [tuple(map(slow_cell, row)) for X in (A, B) for row in X.tolist()]
    digests = row_digests(A) + row_digests(B)
    for a, first in zip(rows, digests, strict=True):
        for b, second in zip(rows, digests, strict=True):
            assert (first == second) == (a == b)


@pytest.mark.heavy
@given(st.lists(st.tuples(NUMBERS, TEXTS, TEXTS), min_size=1, max_size=12))
@settings(deadline=None)
def test_rows_of_text_and_numbers_agree_across_frames_and_differ_where_values_differ(rows):
    columns = [list(values) for values in zip(*rows, strict=True)]
    polars = pl.DataFrame(
        {"n": columns[0], "s": columns[1], "t": columns[2]}, schema_overrides={"s": pl.String, "t": pl.String}
    )
    pandas = pd.DataFrame(
        {"n": columns[0], "s": pd.Series(columns[1], dtype="str"), "t": pd.Series(columns[2], dtype="str")}
    )
    digests = row_digests(polars)
    assert digests == row_digests(polars.cast({"s": pl.Categorical}))
    assert digests == row_digests(pandas)
    assert digests == row_digests(pandas.astype({"t": "category"})) or pandas["t"].isna().all()
    keys = [tuple(map(slow_cell, row)) for row in rows]
    for a, first in zip(keys, digests, strict=True):
        for b, second in zip(keys, digests, strict=True):
            assert (first == second) == (a == b)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float16", "float32"])
def test_the_number_type_does_not_enter(dtype):
    X = np.array([[0, 1, 1], [1, 0, 0]])
    assert row_digests(X.astype(dtype)) == row_digests(X.astype("float64"))
    assert row_digests(sparse.csr_array(X.astype("float32"))) == row_digests(X)


def test_numbers_and_truth_values_of_every_pandas_and_polars_type_are_doubles_and_a_missing_one_is_missing():
    for cells, of_pandas, of_polars in (
        ([True, False, None], ("boolean", object), (pl.Boolean,)),
        ([3, None], ("Int8", "UInt64", "Float32", pd.ArrowDtype(pa.int64()), object), (pl.Int8, pl.UInt64, pl.Float32)),
        ([3, None], (), (pl.Decimal(10, 2),)),
    ):
        frames = [pd.DataFrame({"n": pd.array(cells, dtype=dtype)}) for dtype in of_pandas]
        frames += [pl.DataFrame({"n": pl.Series(cells, dtype=dtype)}) for dtype in of_polars]
        expected = row_digests(np.array(cells, dtype=float)[:, None])
        assert [row_digests(frame) for frame in frames] == [expected] * len(frames)


def test_dates_and_times_agree_across_frames_and_with_their_iso_text():
    moments = [
        dt.datetime.fromisoformat("2024-02-29T12:30"),
        dt.datetime.fromisoformat("1999-01-01T00:00:00.000005"),
        None,
    ]
    expected = row_digests(pl.DataFrame({"t": ["2024-02-29T12:30:00", "1999-01-01T00:00:00.000005", None]}))
    assert row_digests(pl.DataFrame({"t": moments})) == expected
    assert row_digests(pd.DataFrame({"t": pd.to_datetime(pd.Series(moments))})) == expected
    gaps = [dt.timedelta(days=1), None]
    assert row_digests(pl.DataFrame({"t": gaps})) == row_digests(pd.DataFrame({"t": pd.to_timedelta(pd.Series(gaps))}))
    days = pl.DataFrame({"t": [dt.date(2024, 2, 29)]})
    assert row_digests(days) == row_digests(pl.DataFrame({"t": ["2024-02-29"]}))


def test_sparse_rows_with_double_and_unsorted_entries_are_summed_and_the_input_is_left_alone():
    messy = sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    before = messy.data.copy()
    assert row_digests(messy) == row_digests(np.array([[2.0, 0.0, 4.0, 0.0]]))
    assert_array_equal(messy.data, before)
    X = np.array([[-0.0, -math.nan], [1.0, 2.0]])
    before = X.tobytes()
    row_digests(X)
    row_digests(X + 1)
    assert X.tobytes() == before


def test_the_width_and_the_place_of_a_value_enter():
    narrow, wide = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]])
    assert row_digests(narrow) != row_digests(wide)
    assert row_digests(narrow) != row_digests(narrow[:, ::-1])
    assert row_digests(pl.DataFrame({"a": ["1"]})) != row_digests(pl.DataFrame({"a": [1]}))
    assert row_digests(pl.DataFrame({"a": ["x"], "b": [None]}, schema_overrides={"b": pl.String})) != row_digests(
        pl.DataFrame({"a": [None], "b": ["x"]}, schema_overrides={"a": pl.String})
    )


def test_blocks_do_not_enter(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (101, 7)).astype(float)
    frame = pl.DataFrame(X).with_columns(pl.Series("t", rng.choice(["a", "b"], 101)))
    tables = [X, sparse.csr_array(X), frame, frame.to_pandas()]
    whole = [row_digests(table) for table in tables]
    monkeypatch.setitem(row_digests.__globals__, "_BLOCK_CELLS", 21)
    assert [row_digests(table) for table in tables] == whole
    assert row_digests(sparse.csr_array((5, 3))) == row_digests(np.zeros((5, 3)))


@pytest.mark.parametrize(
    "odd",
    [
        pl.Series([[1, 2]]),
        pd.Series(["a", 1], dtype=object),
        pd.Series(pd.period_range("2024", periods=2, freq="D")),
        pd.cut(pd.Series([20, 70]), [0, 30, 90]),  # categories that are intervals
        pd.Series([(1, 2), (3, 4)]).astype("category"),
    ],
)
def test_a_column_of_what_says_nothing_is_refused_by_name(odd):
    frame = pl.DataFrame if isinstance(odd, pl.Series) else pd.DataFrame
    with pytest.raises(DataRefused, match="column 'odd' "):
        row_digests(frame({"odd": odd}))
