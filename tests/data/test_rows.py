"""Row access, the checks of whole tables, and what a sparse row's cells sum to."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from quorate.data import (
    as_rows,
    check_features,
    columns,
    families,
    kind,
    match_columns,
    missing_columns,
    n_rows,
    refuse_missing,
    take,
    width,
)
from quorate.data.identity import is_same_object
from quorate.data.rows import summed_cells
from quorate.errors import DataRefused
from quorate.run.schema import Schema

X = np.arange(12.0).reshape(4, 3)
TABLES = {
    "numpy": X,
    "sparse": sparse.csr_array(X),
    "pandas": pd.DataFrame(X, columns=list("abc"), index=[9, 8, 7, 6]),
    "polars": pl.DataFrame(X, schema=list("abc")),
}


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


@pytest.mark.parametrize("name", TABLES)
def test_a_proper_table_comes_back_as_it_is_and_rows_are_taken_alike_from_every_container(name):
    rows = TABLES[name]
    assert as_rows(rows) is check_features(rows) is rows
    assert (kind(rows), n_rows(rows), width(rows)) == (name, 4, 3)
    assert columns(rows) == (("a", "b", "c") if name in ("pandas", "polars") else None)
    for indices in ([2, 0, 2], np.array([3]), [], np.array([True, False, True, False])):
        taken = take(rows, indices)
        assert type(taken) is type(rows)
        assert_array_equal(dense(taken), X[np.asarray(indices, dtype=None if len(indices) else int)])
    with pytest.raises(DataRefused, match="mask"):
        take(rows, np.array([True]))


def test_other_sparse_formats_become_rows_and_lists_become_floats():
    assert as_rows(sparse.csc_matrix(X)).format == "csr"
    assert as_rows([[1, 2]]).dtype == np.float64
    assert as_rows(X.astype(object)).dtype == np.float64
    assert as_rows(np.eye(2, dtype=np.uint8)).dtype == np.uint8


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (X[0], "Reshape your data"),
        (X[None, None, None], "5 dimension"),
        (np.zeros((0, 3)), r"0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (X + 1j, "Complex data not supported"),
        (sparse.csr_array(X + 1j), "Complex data not supported"),
        (np.array([["a", "b"]]), "give a DataFrame"),
        (np.array([["a", 1]], dtype=object), "give a DataFrame"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "give a DataFrame"),
        ([[1, 2], [3]], "differ in length"),
        (np.ma.masked_array(X, X > 3), "mask"),
        ("rows.csv", "got str"),
        ({"a": [1]}, "got dict"),
        (pl.LazyFrame({"a": [1]}), "got LazyFrame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column is called 'a'"),
        (pl.DataFrame(), r"0 feature\(s\)"),
    ],
)
def test_what_is_no_table_of_features_is_refused(wrong, message):
    with pytest.raises(DataRefused, match=message):
        as_rows(wrong)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_infinite_values_are_refused_and_missing_ones_unless_allowed(wrap):
    bad = X.copy()
    bad[2, 1] = -np.inf
    with pytest.raises(DataRefused, match=r"^X: Input contains infinity in column 1; expected finite numbers$"):
        check_features(wrap(bad), allow_missing=True)
    bad[2, 1] = np.nan
    assert n_rows(check_features(wrap(bad), allow_missing=True)) == 4
    with pytest.raises(DataRefused, match="Input contains NaN in column 1"):
        check_features(wrap(bad))


def test_a_refusal_of_missing_values_names_the_columns_alone():
    frame = pl.DataFrame(
        {"age": [1.0, None, 3.0], "sex": ["F", "M", None], "weight": [60.0, float("nan"), 1.0], "n": [1, 2, 3]}
    )
    for rows in (frame, frame.to_pandas()):
        assert missing_columns(rows).tolist() == [True, True, True, False]
        with pytest.raises(DataRefused) as refusal:
            refuse_missing(rows, name="private", taker="SVC")
        assert str(refusal.value) == (
            "private: Input contains NaN in columns 'age', 'sex', 'weight', which SVC cannot take; "
            "fill or drop the column, or give a Pipeline that imputes"
        )
    refuse_missing(frame.select("n"), taker="SVC")
    assert not missing_columns(np.ones((2, 2), dtype=int)).any()


def test_missing_values_are_found_in_every_block(monkeypatch):
    monkeypatch.setitem(missing_columns.__globals__, "_BLOCK_CELLS", 5)
    bad = np.zeros((7, 4))
    bad[6, 3] = np.nan
    assert missing_columns(bad).tolist() == [False, False, False, True]


PRIVATE = pl.DataFrame({"age": [39, 50], "sex": ["F", "M"], "rich": [True, False]})


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.to_pandas()])
def test_public_columns_are_put_in_the_private_order(convert):
    private, public = match_columns(convert(PRIVATE), convert(PRIVATE[["rich", "sex", "age"]]))
    assert columns(private) == columns(public) == ("age", "sex", "rich")
    assert list(public["sex"]) == ["F", "M"]


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.to_pandas()])
def test_columns_on_one_side_alone_are_refused_by_name(convert):
    private, public = convert(PRIVATE), convert(PRIVATE.rename({"sex": "gender"}))
    both = "public lacks the column 'sex' of private; private lacks the column 'gender' of public"
    with pytest.raises(DataRefused, match=both):
        match_columns(private, public)
    with pytest.raises(DataRefused, match=r"^private lacks the column 'gender' of public\. Give"):
        match_columns(convert(PRIVATE), convert(PRIVATE.with_columns(gender=1)))


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_dates_of_a_type_are_written_as_text_where_the_other_table_has_text(library):
    """A private CSV file beside a public Parquet file, or the other way round; durations have no words."""
    typed = pl.DataFrame({"seen": [dt.date(2024, 3, 1), None], "at": [dt.time(12, 30), None], "n": [1, 2]})
    text = pl.DataFrame({"seen": ["01.03.2024", "soon"], "at": ["12:30", None], "n": [1, 2]})
    spans = pl.DataFrame({"seen": [dt.timedelta(days=1), None], "at": ["12:30", None], "n": [1, 2]})
    if library == "pandas":
        typed, text, spans = (frame.to_pandas(use_pyarrow_extension_array=True) for frame in (typed, text, spans))
    for private, public in ((text, typed), (typed, text)):
        for given, read in zip((private, public), match_columns(private, public), strict=True):
            written = read["seen"].to_list() if library == "polars" else read["seen"].tolist()
            assert written[0] == ("01.03.2024" if given is text else "2024-03-01")
    with pytest.raises(DataRefused, match="column 'seen' holds text in private, but dates or times in public"):
        match_columns(text, spans)


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.to_pandas()])
def test_text_against_numbers_is_refused_by_column_name_without_a_value(convert):
    public = PRIVATE.with_columns(age=pl.Series(["thirty-nine", "fifty"]))
    with pytest.raises(DataRefused, match="column 'age' holds numbers in private, but text in public") as refusal:
        match_columns(convert(PRIVATE), convert(public))
    assert "fifty" not in str(refusal.value)


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.to_pandas()])
def test_a_column_without_any_value_takes_the_type_of_the_other_side(convert):
    empty = PRIVATE.with_columns(age=pl.Series([None, None], dtype=pl.String), sex=pl.Series([None, None]))
    for one, other in ((PRIVATE, empty), (empty, PRIVATE)):
        private, public = match_columns(convert(one), convert(other))
        assert families(private) == families(public) == {"age": "number", "sex": "text", "rich": "number"}
        assert n_rows(private) == n_rows(public) == 2


def test_arrays_must_have_the_same_width_and_kind():
    assert match_columns(X, X + 1)[0] is X
    with pytest.raises(DataRefused, match="public has 2 features, but private has 3"):
        match_columns(X, X[:, :2])
    with pytest.raises(DataRefused, match="private rows are numpy, public rows sparse"):
        match_columns(X, sparse.csr_array(X))


def test_families_of_pandas_columns():
    frame = pd.DataFrame(
        {
            "int": pd.array([1, None], dtype="Int64"),
            "float": [0.5, np.nan],
            "bool": [True, False],
            "nullbool": pd.array([True, None], dtype="boolean"),
            "str": ["a", None],
            "object": pd.Series(["a", None], dtype=object),
            "string": pd.array(["a", None], dtype="string"),
            "category": pd.Categorical(["a", None]),
            "time": pd.to_datetime(["2020-01-01", None]),
            "empty": pd.Series([None, None], dtype=object),
            "arrow": pd.array([1, None], dtype=pd.ArrowDtype(__import__("pyarrow").int64())),
        }
    )
    assert list(families(frame).values()) == ["number"] * 4 + ["text"] * 4 + ["time", "missing", "number"]
    for name in frame.columns:
        assert n_rows(frame[[name]]) == 2


WIDTH, PARTS = 6, 60
FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def in_parts(neighbour, as_format):
    """A row of cells in ten parts each, in order, above a row of two cells in an order of choice."""
    rng = np.random.default_rng(0)
    where = np.concatenate([np.sort(rng.integers(0, WIDTH, PARTS)), neighbour])
    values = np.concatenate([rng.normal(size=PARTS) * 10.0 ** rng.integers(-8, 9, PARTS), [1.0, 1.0]])
    if as_format == "csr":
        return sparse.csr_matrix((values, where, [0, PARTS, PARTS + 2]), shape=(2, WIDTH))
    return sparse.coo_matrix((values, (np.repeat([0, 1], [PARTS, 2]), where)), shape=(2, WIDTH))


def first_rows(read, as_format):
    return [read(in_parts(neighbour, as_format))[[0]].toarray().tobytes() for neighbour in ([0, 1], [1, 0])]


def by_scipy(rows):
    summed = rows.tocsr(copy=True)
    summed.sum_duplicates()
    return summed


def by_schema(rows):
    pool = sparse.random(30, WIDTH, 0.5, format="csr", random_state=0)
    return Schema.of(pool).parsed(rows)[0]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("as_format", ["csr", "coo"])
@pytest.mark.parametrize("read", [summed_cells, by_schema, as_rows])
def test_a_row_is_the_same_whatever_the_order_of_the_next_which_scipy_does_not_do(read, as_format):
    one, other = first_rows(read, as_format)
    assert one == other
    one, other = first_rows(by_scipy, "csr")
    assert one != other


def test_parts_are_summed_as_they_are_stored():
    parts = sparse.coo_array(([1.0, 1e16, 3.0, -1e16], ([0, 0, 0, 0], [1, 1, 0, 1])), shape=(1, 2))
    assert summed_cells(parts).toarray().tolist() == [[3.0, (1.0 + 1e16) - 1e16]]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("as_format", FORMATS)
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("number", [np.float64, np.float32, np.int64, np.bool_])
def test_every_format_keeps_its_values_and_type(as_format, form, number):
    told = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]]).astype(number)
    made = summed_cells(form(told).asformat(as_format))
    assert made.dtype == number
    assert made.has_canonical_format
    assert isinstance(made, form)
    assert (made.toarray() == told).all()


def test_an_index_that_is_no_column_is_infinite():
    rows = sparse.csr_matrix(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, 2))
    rows.indices[1] = 7
    assert summed_cells(rows).toarray().tolist() == [[1.0, 0.0], [np.inf, 0.0]]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("as_format", FORMATS)
def test_a_private_table_of_any_format_is_told_from_the_pool(as_format):
    pool = sparse.eye(4, format="csr")
    assert not is_same_object(pool.asformat(as_format, copy=True), pool)
    assert is_same_object(pool, pool)
