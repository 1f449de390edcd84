"""Reading files: names with good errors, types from all rows, no value in a message."""

import gzip
import lzma

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from quorate.data import column_names, encode_labels, read_batches, read_data, read_table, slot_bytes
from quorate.errors import DataRefused, InvalidParameter

CSV = "person,age,sex,income\n007,39,F,<=50K\n008,50,,>50K\n,12.5,M,<=50K\n"
FRAME = pl.DataFrame({"person": ["a", "a", "b"], "age": [1, None, 3], "income": ["x", "y", "x"]})


def written(folder, name, content):
    path = folder / name
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz", "T.CSV", "t.tsv", "t.tsv.gz"])
def test_text_tables_are_read_whatever_their_compression(tmp_path, name):
    content = CSV.replace(",", "\t") if ".tsv" in name else CSV
    frame = read_table(written(tmp_path, name, content), text_columns=["person"])
    assert frame.columns == ["person", "age", "sex", "income"]
    assert frame["age"].to_list() == [39.0, 50.0, 12.5]
    assert frame["person"].to_list() == ["007", "008", None]
    assert column_names(tmp_path / name) == frame.columns


def test_the_type_of_a_column_comes_from_all_its_rows(tmp_path):
    late = "a\n" + "1\n" * 20_000 + "x\n"
    assert read_table(written(tmp_path, "t.csv", late))["a"].dtype == pl.String


def test_labels_and_ids_are_taken_out_of_the_features(tmp_path):
    path = written(tmp_path, "t.csv", CSV.replace(",12.5", "009,12.5"))
    table = read_data(path, label="income", unit="person")
    assert table.columns == ("age", "sex")
    assert table.unit == ["007", "008", "009"]
    assert encode_labels(table.y, ["<=50K", ">50K"]).tolist() == [0, 1, 0]
    assert repr(table) == "Table(polars, 2 features, with labels, with unit ids)"
    public = read_data(path, drop=("income", "person", "not there"))
    assert public.columns == table.columns
    assert public.y is None


def test_a_missing_id_of_a_file_is_refused(tmp_path):
    table = read_data(written(tmp_path, "t.csv", CSV), label="income", unit="person")
    with pytest.raises(DataRefused, match="missing"):
        slot_bytes(table.unit, 3)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_unknown_column_is_refused_and_no_name_of_the_file_is_quoted(tmp_path, suffix):
    """Of a file without names these are cells of a row, maybe of a private one."""
    path = tmp_path / f"t.{suffix}"
    FRAME.write_csv(path) if suffix == "csv" else FRAME.write_parquet(path)
    for given in ({"label": "incom"}, {"unit": "PERSON"}, {"label": "zzz"}):
        with pytest.raises(DataRefused, match=r"no column '.*'; its first line must name the columns") as refused:
            read_data(path, **given)
        assert not [name for name in FRAME.columns if f"'{name}'" in str(refused.value)]
    with pytest.raises(InvalidParameter, match="two columns"):
        read_data(path, label="age", unit="age")
    with pytest.raises(DataRefused, match="no feature is left"):
        read_data(path, label="age", unit="person", drop=["income"])


def test_parquet_is_read_whole_and_in_batches(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pl.DataFrame({"a": range(10), "b": [str(i) for i in range(10)]})
    frame.write_parquet(path, row_group_size=3)
    assert read_table(path).equals(frame)
    assert column_names(path) == ["a", "b"]
    batches = list(read_batches(path, batch_rows=4, columns=["b", "a"]))
    assert [batch.height for batch in batches] == [4, 4, 2]
    assert pl.concat(batches).equals(frame.select("b", "a"))
    with pytest.raises(DataRefused, match="no column 'c'"):
        next(read_batches(path, columns=["c"]))
    for wrong in (0, True, 2.0):
        with pytest.raises(InvalidParameter, match="batch_rows"):
            next(read_batches(path, batch_rows=wrong))


def test_batches_of_csv_have_the_types_of_the_whole_file(tmp_path):
    path = written(tmp_path, "t.csv", "a\n1\n2\nx\n")
    assert {batch["a"].dtype for batch in read_batches(path, batch_rows=1)} == {pl.String}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,b\n1,SECRET,SECRET\n", "more fields than the header"),
        ("t.csv", "", "empty"),
        ("t.csv", "a,a\n1,2\n", "columns 1, 2 have names that occur twice"),
        ("t.csv", b"a\n\xff\xfeSECRET\n", "not UTF-8"),
        ("t.csv.gz", None, "damaged"),
        ("t.csv.xz", None, "damaged"),
        ("t.parquet", "SECRET", "not Parquet"),
        ("t.npz", "SECRET", "not a .npz"),
        ("t.svm", "SECRET 1:2\n", "not svmlight text"),
        ("t.svm", "1 0:2\n", "indices from 1"),
        ("t.svm", "1 1:SECRET\n", "not svmlight text"),
        ("t.svm", "1,2 1:1\n", "not svmlight text"),
    ],
)
def test_a_damaged_file_is_refused_without_quoting_it(tmp_path, name, content, message):
    path = tmp_path / name
    if content is None:
        path.write_text("SECRET")
    else:
        written(tmp_path, name, content)
    with pytest.raises(DataRefused, match=message) as refusal:
        read_data(path)
    assert "SECRET" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert "\n" not in str(refusal.value)


def test_files_that_are_not_there_and_names_that_say_nothing(tmp_path):
    for name in ("t.csv", "t.parquet", "t.npz", "t.svm"):
        with pytest.raises(DataRefused, match="no such file"):
            read_data(tmp_path / name)
    with pytest.raises(InvalidParameter, match=r"expected a table with named columns \(\.csv, .*\.arrow"):
        read_table(written(tmp_path, "t.doc", "a"))


SVM = "+1 2:1 3:0.5\n-1 1:1\n+1\n"
DENSE = np.array([[0, 1, 0.5, 0], [1, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", ["rows", "rows.t.xz", "rows.svm.gz", "rows.libsvm"])
def test_svmlight_text_is_read_whatever_its_name(tmp_path, name):
    table = read_data(written(tmp_path, name, SVM), label="label", n_features=4)
    assert_array_equal(table.X.toarray(), DENSE)
    assert table.X.indices.dtype == np.int32
    assert table.y.dtype == np.int64
    assert table.y.tolist() == [1, -1, 1]
    assert read_data(tmp_path / name).X.shape == (3, 3)


def test_a_declared_width_must_hold_every_index(tmp_path):
    path = written(tmp_path, "rows.svm", SVM)
    with pytest.raises(DataRefused, match="above n_features=2"):
        read_data(path, n_features=2)
    for wrong in (0, True, 2.0, "4"):
        with pytest.raises(InvalidParameter, match="n_features"):
            read_data(path, n_features=wrong)
    with pytest.raises(InvalidParameter, match="no column of ids"):
        read_data(path, unit="person")


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_archives_of_scipy_are_read(tmp_path, kind):
    path = tmp_path / "rows.npz"
    sparse.save_npz(path, kind(DENSE))
    table = read_data(path, n_features=4)
    assert_array_equal(table.X.toarray(), DENSE)
    assert table.X.format == "csr"
    assert table.y is None
    with pytest.raises(DataRefused, match="n_features=5"):
        read_data(path, n_features=5)


def compressed(**changes):
    parts = {
        "data": np.array([200, 200, 1], dtype=np.uint8),
        "indices": np.array([0, 40_000, 65_535], dtype=np.uint16),
        "indptr": np.array([0, 2, 3], dtype=np.int32),
        "shape": np.array([2, 65_536]),
        "y": np.array([1, 0], dtype=np.int8),
        "doc_id": np.array([7, 9]),
    }
    return {name: value for name, value in {**parts, **changes}.items() if value is not None}


def test_small_integer_types_of_an_archive_are_widened(tmp_path):
    path = tmp_path / "counts.npz"
    np.savez_compressed(path, **compressed())
    table = read_data(path, label="y", unit="doc_id")
    assert table.X.sum(axis=1).tolist() == [400.0, 1.0]
    assert table.X[0, 40_000] == 200
    assert (table.X.dtype, table.X.indices.dtype) == (np.float64, np.int32)
    assert table.y.tolist() == [1, 0]
    assert table.unit == [7, 9]
    assert read_data(path).y.tolist() == [1, 0]
    with pytest.raises(DataRefused, match="no array 'docid'; did you mean 'doc_id'"):
        read_data(path, unit="docid")


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": None},
        {"indptr": np.array([0, 3, 2])},
        {"indices": np.array([0, 1, 70_000])},
        {"indices": np.array([0, -1, 2])},
        {"shape": np.array([2])},
        {"data": np.array(["a", "b", "c"])},
        {"data": np.array([1, 2, {}], dtype=object)},
        {"format": np.array(b"bsr")},
    ],
)
def test_a_malformed_archive_is_refused(tmp_path, changes):
    path = tmp_path / "counts.npz"
    np.savez(path, **compressed(**changes))
    with pytest.raises(DataRefused, match=r"not a \.npz of sparse rows"):
        read_data(path)


def test_an_archive_with_too_few_labels_is_refused(tmp_path):
    path = tmp_path / "counts.npz"
    np.savez(path, **compressed(y=np.array([1])))
    with pytest.raises(DataRefused, match="one entry per row"):
        read_data(path)
