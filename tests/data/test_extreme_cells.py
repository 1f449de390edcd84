"""Cells that no model can be given: each is refused in one line that names the column and nothing of the cell."""

import datetime as dt
from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from quorate.data import (
    PublicPool,
    check_classes,
    check_features,
    column_kinds,
    encode_labels,
    fingerprint,
    fixed_types,
    public_encoder,
    read_data,
    refuse_infinite,
    refuse_unscalable,
    row_digests,
    slot_bytes,
)
from quorate.data.fixed_types import fixed_labels
from quorate.data.table_reader import TableReader
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import Secret

N = 8
HUGE = 10**400


def objects(cell, *, at=1):
    made = np.full((N, 2), 1.0, dtype=object)
    made[3, at] = cell
    return made


def frame(cell):
    return pd.DataFrame({"age": pd.Series([1.0, 2.0, 3.0, cell, *[5.0] * 4], dtype=object), "b": 1.0})


@contextmanager
def refused(*said, error=DataRefused, hides=""):
    """What is done here is refused in one short line, which says each of these and shows nothing of the cell."""
    with pytest.raises(error) as refusal:
        yield
    text = str(refusal.value)
    assert "\n" not in text
    assert len(text) < 300
    assert all(each in text for each in said)
    assert not hides or hides not in text


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("cell", [HUGE, -HUGE, 2**1024])
@pytest.mark.parametrize("name", ["X", "public"])
def test_a_whole_number_beyond_the_floats_is_refused(cell, name):
    beyond = "a whole number is beyond the range of 64-bit floats"
    for table, column in ((objects(cell), "1"), (frame(cell), "'age'"), (objects(cell).tolist(), "1")):
        with refused(f"{name}: {beyond}", f"column {column}"):
            check_features(table, name)
    with refused(f"public: {beyond}", "in column 'age'"):
        PublicPool(frame(cell))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("cell", [2**53 + 1, 2**63, 2**64, 2**127, -(2**70), Decimal("1.5"), True, np.int8(3)])
def test_whole_numbers_within_the_floats_are_taken(cell):
    assert check_features(objects(cell))[3, 1] == float(cell)
    table = objects(cell) if isinstance(cell, (Decimal, bool)) else frame(cell)
    assert len(row_digests(check_features(table))) == N


@pytest.mark.filterwarnings("error")
def test_what_is_infinite_as_a_float_is_refused_also_of_floats_of_more_than_64_bits():
    long = np.ones((N, 2), dtype=np.longdouble)
    assert check_features(long).dtype == np.float64
    long[3, 1] = np.longdouble("1e4000")
    cells = (float("inf"), -float("inf"), Decimal("1e400"), np.longdouble("1e4000"))
    for table in (*map(objects, cells), long, sparse.csr_array(long)):
        with refused("X: Input contains infinity in column 1"):
            check_features(table, "X")


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"age": [1.0, float("inf")]}),
        pl.DataFrame({"age": [1.0, -float("inf")]}),
        pd.DataFrame({"age": pd.Series([1, float("inf")], dtype=object)}),
        pl.DataFrame({"age": pl.Series([1.0, float("inf")], dtype=pl.Float32)}),
    ],
)
def test_infinite_numbers_of_a_frame_are_refused_where_a_model_would_meet_them(table):
    with refused("X: Input contains infinity in column 'age'"):
        refuse_infinite(table, "X")
    with refused("public: Input contains infinity in column 'age'"):
        public_encoder(table)
    public = type(table)({"age": [1.0, 2.0]})
    with refused("X: Input contains infinity in column 'age'"):
        TableReader.of(public, column_kinds(public))(table)
    check_features(table)  # a Pipeline of the user's own may read it


def test_text_and_times_are_never_infinite():
    table = pl.DataFrame({"word": ["inf", "1e400"], "day": [dt.date(9999, 12, 31), dt.date(1, 1, 1)]})
    refuse_infinite(table)
    refuse_infinite(table.to_pandas(), "X")
    assert len(row_digests(table)) == 2


@pytest.mark.default_cases(2)
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cell", [1e308, -1e308, 1e300])
@pytest.mark.parametrize("as_frame", [pl.DataFrame, pd.DataFrame])
def test_a_number_that_becomes_infinite_in_public_units_is_refused(cell, as_frame):
    narrow = as_frame({"id": [1.0, 2.0, 3.0], "share": [1e-12, 2e-12, 3e-12], "word": ["a", "b", "a"]})
    encoder = public_encoder(narrow)
    private = as_frame({"id": [1e308], "share": [cell], "word": ["a"]})
    with refused("X: column 'share' holds a number too large to be scaled by the public pool", hides="308"):
        refuse_unscalable(encoder, private, "X")
    refuse_unscalable(encoder, as_frame({"id": [1e308], "share": [1e100], "word": ["a"]}), "X")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cells", [[1e308, -1e308, 1.0], [1e308, 1e308, 1.0], [1e200, -1e200, 0.0]])
def test_a_public_column_without_a_finite_spread_is_refused(cells):
    for table in (pl.DataFrame({"age": cells}), np.array([[each] for each in cells])):
        with refused("public: column", "holds a number too large to be scaled by the public pool"):
            public_encoder(table)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 3, 1_000])
def test_a_constant_column_is_taken_whatever_its_size(n):
    table = pl.DataFrame({"age": [1e308] * n, "share": np.arange(n) / n})
    assert np.asarray(public_encoder(table).transform(table))[:, 0].tolist() == [0.0] * n


def test_two_such_columns_are_both_named():
    encoder = public_encoder(pl.DataFrame({"a": [1e-12, 2e-12], "b": [1e-12, 2e-12]}))
    with pytest.raises(DataRefused, match=r"X: columns 'a', 'b' hold a number .* or drop the columns"):
        refuse_unscalable(encoder, pl.DataFrame({"a": [1e308], "b": [-1e308]}), "X")


def test_missing_numbers_marked_among_python_objects_are_refused_in_public_and_taken_in_private():
    marked = pd.DataFrame({"age": pd.Series([1, pd.NA, 3], dtype=object)})
    with pytest.raises(InvalidParameter, match=r"columns 'age' mark missing numbers by pandas\.NA"):
        public_encoder(marked)
    public_encoder(marked.astype({"age": "Float64"}))
    assert np.isnan(fixed_types(marked)["age"].iloc[1])


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "cell",
    [
        b"x", [1, 2], (1,), {"a": 1}, {1}, object(), 1j, Decimal("sNaN"), "9" * 5000, pd.NaT, pd.NA,
        dt.datetime(9999, 12, 31, tzinfo=dt.UTC),
    ],
    ids=lambda cell: type(cell).__name__,
)  # fmt: skip
def test_what_is_no_number_is_refused_in_an_array(cell):
    with refused(hides="999"):
        check_features(objects(cell))


def visits(folder, cell):
    path = folder / "visits.csv"
    path.write_text(f"age,share,ill\n39,0.5,no\n{cell},0.25,yes\n50,0.75,no\n", encoding="utf-8")
    return path


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("cell", ["1" + "0" * 400, "9" * 5000, str(2**127), "-" + "9" * 60, "٣"])
def test_an_entry_of_a_file_that_no_number_can_hold_names_file_and_place(tmp_path, cell):
    """A regression: it was called a row with more fields than the header."""
    said = "visits.csv: column 1, counted from the left: an entry looks like a number and cannot be read as one"
    with refused(said, hides=cell[:20]):
        read_data(visits(tmp_path, cell), label="ill")


@pytest.mark.parametrize("cell", ["1e400", "inf", "-inf"])
def test_an_infinite_entry_of_a_file_is_refused_before_a_model_meets_it(tmp_path, cell):
    table = read_data(visits(tmp_path, cell), label="ill")
    with pytest.raises(DataRefused, match="X: Input contains infinity in column 'age'"):
        refuse_infinite(table.X, "X")


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("dtype", "cell"),
    [(pl.Int128, 2**126), (pl.UInt64, 2**64 - 1), (pl.Decimal(38, 2), Decimal("1e30")), (pl.Float64, 1e308)],
)
def test_wide_types_of_a_parquet_file_are_read(tmp_path, dtype, cell):
    rows = pl.DataFrame({"age": pl.Series([cell, cell], dtype=dtype), "ill": ["no", "yes"]})
    rows.write_parquet(tmp_path / "v.parquet")
    table = read_data(tmp_path / "v.parquet", label="ill")
    assert fixed_types(check_features(table.X))["age"].to_list() == [float(cell)] * 2


@pytest.mark.parametrize("cell", [b"x", [1, 2], {"a": 1}], ids=lambda cell: type(cell).__name__)
def test_nested_and_binary_columns_of_a_parquet_file_are_refused_by_name(tmp_path, cell):
    pl.DataFrame({"age": [cell, cell], "ill": ["no", "yes"]}).write_parquet(tmp_path / "v.parquet")
    with refused("column 'age' is of type"):
        row_digests(check_features(read_data(tmp_path / "v.parquet", label="ill").X))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "row", ["1e400 1:1", "1 1:1e400", "1 99999999999999999999:1", "1" + "0" * 400 + " 1:1", "nan 1:1", "1e308 1:1"]
)
def test_extreme_svmlight_rows_are_refused(tmp_path, row):
    path = tmp_path / "visits.svm"
    path.write_text(f"0 1:2\n{row}\n")
    with refused():
        table = read_data(path, n_features=3)
        check_features(table.X, "X")
        encode_labels(table.y, [0, 1])


def test_labels_beyond_the_floats_are_infinite_ones():
    assert fixed_labels([HUGE, -HUGE, Decimal("sNaN")])[:2] == [float("inf"), -float("inf")]
    assert np.isnan(fixed_labels([Decimal("sNaN")])[0])
    key = Secret(bytes(32))
    X = np.ones((2, 1))
    assert fingerprint(X, [HUGE, 1], None, key) == fingerprint(X, [float("inf"), 1], None, key)
    assert fingerprint(X, [-HUGE, 1], None, key) != fingerprint(X, [HUGE, 1], None, key)


def test_classes_beyond_64_bits_are_refused_and_not_shown():
    for classes in ([0, HUGE], [0, 2**63], [0, 10**5000]):
        with refused("classes: a whole number is beyond 64 bits", error=InvalidParameter):
            check_classes(classes)
    assert check_classes([-(2**63), 2**63 - 1]) == (-(2**63), 2**63 - 1)


def test_ids_of_thousands_of_digits_are_taken_as_long_ones_are():
    assert slot_bytes([HUGE, 2], 2)[0] != slot_bytes([HUGE + 1, 2], 2)[0]
    assert slot_bytes([10**5000, 2], 2)[0] != slot_bytes([10**5000 + 1, 2], 2)[0]
