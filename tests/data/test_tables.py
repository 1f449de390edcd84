"""Reading files: names with good errors, types from all rows, no value in a message; and what is no table."""

import gzip
import io
import lzma
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from quorate.data import column_names, encode_labels, file_reading, match_columns, read_batches, read_data, read_table
from quorate.data.formats import delimited_text
from quorate.data.formats.delimited_text import DelimitedText
from quorate.data.stream import Workspace
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed

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


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_unknown_column_is_refused_and_no_name_of_the_file_is_quoted(tmp_path, suffix):
    """Of a file without names these are cells of a row, maybe of a private one."""
    path = tmp_path / f"t.{suffix}"
    FRAME.write_csv(path) if suffix == "csv" else FRAME.write_parquet(path)
    for given in ({"label": "incom"}, {"unit": "PERSON"}, {"label": "zzz"}):
        with pytest.raises(DataRefused, match=r"no column '.*'. See that its first line names the columns") as refused:
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


def test_files_that_are_not_there_and_names_that_say_nothing(tmp_path):
    for name in ("t.csv", "t.parquet", "t.npz", "t.svm"):
        with pytest.raises(DataRefused, match="no such file"):
            read_data(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataRefused, match=r"folder\.csv: this is a folder"):
        read_data(tmp_path / "folder.csv", label="ill")
    with pytest.raises(InvalidParameter, match=r"expected a table with named columns \(\.csv, .*\.arrow"):
        read_table(written(tmp_path, "t.data", "a"))


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


def archive(**changes):
    content = io.BytesIO()
    np.savez(content, **compressed(**changes))
    return content.getvalue()


NO_ARCHIVE = "not a .npz of sparse rows"
EXPECTED = {"semicolons": "columns look separated by semicolons, and commas are expected; all tables of a run have one",
            "tabs": 'save this one with commas or, where all have tabs, write separator = "\\t" under [data]',
            "commas": "separated by commas, and tabs are expected; all tables of a run have one separator"}  # fmt: skip
WRONG = [
    ("t.csv", b"a,b\n1,SECRET,SECRET\n", "more fields than the header"),
    ("t.csv", b"", "the file is empty"),
    ("t.csv", b"\n \n", "the file is empty"),
    ("t.csv", b"a,a\n1,2\n", "columns 1, 2 have names that occur twice"),
    ("t.csv", b"a\n\xff\xfeSECRET\n", "not UTF-8"),
    ("t.csv", "id,ort\n1,Köln\n".encode("latin1"), "not UTF-8 text; save as CSV UTF-8 (or: iconv -f latin1 -t utf-8)"),
    ("t.csv", "id,größe\n1,2\n".encode("latin1"), "not UTF-8 text"),
    ("t.csv", "id,age\n1,70\n".encode("utf-16"), "UTF-16 text, not UTF-8; save as CSV UTF-8"),
    ("t.csv", bytes(range(256)) * 8, "a binary file, not text"),
    ("t.csv", b"PK\x03\x04" + bytes(64), "an Excel file, whatever its name says; name it .xlsx"),
    ("t.csv", b"id;age;crp\n1;70;4,5\n", EXPECTED["semicolons"]),
    ("t.csv", b"id\tage\tcrp\n1\t70\t4,5\n", EXPECTED["tabs"]),
    ("t.tsv", b"id,age\n1,2\n", EXPECTED["commas"]),
    ("t.csv", b"id,age,ill\n", "the file names its columns and holds no row"),
    ("t.csv", b"17,70.5,yes\n18,64.5,no\n", "that line is not printed here, since it may be a private row"),
    ("t.csv.gz", b"SECRET", "damaged"),
    ("t.csv.xz", b"SECRET", "damaged"),
    *((f"t{suffix}", b"PK\x03\x04", f"{suffix} is not read; save it as .xlsx or CSV") for suffix in (".xls", ".ods")),
    *(
        (f"t{suffix}", b"{}", f"{suffix} is not read; save the table as")
        for suffix in (".sav", ".dta", ".json", ".docx")
    ),
    ("t.zip", b"PK\x03\x04", ".zip is not read; unpack it"),
    ("t.xlsx", b"a;b\n1;2\n", "no Excel file, whatever its name says; name it .csv"),
    ("t.parquet", b"SECRET", "not Parquet"),
    ("t.svm", b"SECRET 1:2\n", "not svmlight text"),
    ("t.svm", b"1 0:2\n", "indices from 1"),
    ("t.svm", b"1 1:SECRET\n", "not svmlight text"),
    ("t.svm", b"1,2 1:1\n", "not svmlight text"),
    ("t.npz", b"SECRET", NO_ARCHIVE),
    *(("t.npz", archive(indptr=wrong), NO_ARCHIVE) for wrong in (None, np.array([0, 3, 2]))),
    *(("t.npz", archive(indices=np.array(wrong)), NO_ARCHIVE) for wrong in ([0, 1, 70_000], [0, -1, 2])),
    ("t.npz", archive(shape=np.array([2])), NO_ARCHIVE),
    *(
        ("t.npz", archive(data=wrong), NO_ARCHIVE)
        for wrong in (np.array(["a", "b", "c"]), np.array([1, 2, {}], object))
    ),
    ("t.npz", archive(format=np.array(b"bsr")), NO_ARCHIVE),
    ("t.npz", archive(y=np.array([1])), "one entry per row"),
]


@pytest.mark.default_cases(8)
@pytest.mark.parametrize(("name", "content", "expected"), WRONG)
def test_each_kind_of_wrong_file_is_told_apart_and_not_quoted(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataRefused) as refusal:
        read_data(path, label="ill" if "may be a private row" in expected else None)
    message = str(refusal.value)
    assert message.startswith((f"{path}: ", f"{path} has no column"))
    assert expected in message
    assert "\n" not in message
    assert refusal.value.__cause__ is None
    said = message.replace(str(path), "")  # it may hold any number
    assert not any(private in said for private in ("SECRET", "Köln", "17", "70"))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.svm"])
def test_a_file_that_may_not_be_read_names_the_permission(tmp_path, monkeypatch, name):
    (tmp_path / name).write_bytes(b"")

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(DataRefused, match=f"no permission to read .*{name}; ask its owner"):
        read_data(tmp_path / name)


def test_tables_are_called_what_the_caller_calls_them():
    ours, theirs = pl.DataFrame({"age": [1], "crp": [2]}), pl.DataFrame({"age": ["old"], "crp": [2]})
    called = ("evaluation.csv", "the public pool")
    with pytest.raises(DataRefused, match=r"^evaluation\.csv lacks the column 'crp' of the public pool\. Give both"):
        match_columns(ours.drop("crp"), theirs, called=called)
    with pytest.raises(DataRefused, match=r"holds numbers in evaluation\.csv, but text in the public pool; write it"):
        match_columns(ours, theirs, called=called)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("read", [read_data, column_names], ids=["rows", "names"])
def test_what_the_machine_does_not_read_is_not_called_damaged(tmp_path, monkeypatch, name, read):
    (tmp_path / name).write_bytes(b"a,b\n1,2\n" if name == "t.csv" else gzip.compress(b"a,b\n1,2\n"))

    class Failing(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, _):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(file_reading, "existing_file", Path)
    monkeypatch.setattr(Path, "open", lambda *_, **__: Failing())
    monkeypatch.setitem(file_reading._OPENERS, ".gz", lambda *_: gzip.GzipFile(fileobj=Failing()))
    with pytest.raises(DataRefused, match=r"cannot be read \(OSError\)$"):
        read(tmp_path / name)


@pytest.mark.parametrize("read", [read_data, column_names], ids=["rows", "names"])
def test_a_packed_file_with_a_byte_changed_is_damaged(tmp_path, read):
    content = bytearray(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000))
    content[12:20] = b"\xff" * 8
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(DataRefused, match="is damaged"):
        read(tmp_path / "t.csv.gz")


def test_a_full_disk_is_not_called_a_damaged_file(tmp_path, monkeypatch):
    path, workspace = tmp_path / "t.csv", Workspace(lambda: tmp_path)
    path.write_bytes(b"a,b\n1,2\n")
    _ = workspace.path

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(PreconditionFailed, match="No space left on device"):
        read_data(path, memory=0, workspace=workspace)


FIRST = {"whole": "7", "real": "2.5", "truth": "true", "text": '"a ""b"", c\nd"', "none": "", "exponent": "1e5"}


def table(seed, n=60):
    rng = np.random.default_rng(seed)
    kinds = [rng.choice(list(FIRST), 2) for _ in range(6)]
    change = rng.integers(0, 2 * n, 6)
    rows = [
        ",".join(FIRST[str(kind[int(row >= at)])] for kind, at in zip(kinds, change, strict=True)) for row in range(n)
    ]
    return "\n".join([",".join("abcdef"), *rows]) + "\n" * (seed % 2)


def read(part, *, types):
    return pl.read_csv(io.BytesIO(part), schema_overrides=types, infer_schema_length=None)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(40))
def test_the_types_are_those_of_the_whole_file(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_text, "AT_ONCE", 90)
    content, path = table(seed).encode(), tmp_path / ("t.csv.gz" if seed % 3 == 0 else "t.csv")
    path.write_bytes(gzip.compress(content) if seed % 3 == 0 else content)
    whole = pl.read_csv(io.BytesIO(content), infer_schema_length=None)
    assert len(list(delimited_text.parts_of(path))) > 5
    streamed = DelimitedText().stream(path, text_columns=["c"], workspace=Workspace(lambda: tmp_path))
    assert streamed.schema == {**whole.schema, "c": pl.String}
    text = pl.read_csv(io.BytesIO(content), infer_schema_length=None, schema_overrides={"c": pl.String})
    assert streamed.collect().equals(text)


def test_that_test_catches_types_of_the_first_part(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_text, "AT_ONCE", 90)
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 80 + "2.5\n", encoding="utf-8")
    first = read(next(delimited_text.parts_of(path)), types={})
    assert first.schema != delimited_text.schema_of(delimited_text.parts_of(path), read, given={})


@pytest.mark.parametrize("content", ['a,b\n1,"x\n' + "y\n" * 50, "a\n", "a"])
def test_marks_that_are_not_matched_and_files_without_rows(content, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(content, encoding="utf-8")
    assert b"".join(part for part in delimited_text.parts_of(path)).decode() == content


@pytest.mark.heavy
def test_memory_holds_no_more_than_a_part(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_text, "AT_ONCE", 1_000)
    path, longest = tmp_path / "t.csv", 0
    path.write_text("a,b\n" + "12,word\n" * 20_000, encoding="utf-8")

    def watched(part, *, types):
        nonlocal longest
        longest = max(longest, len(part))
        return read(part, types=types)

    schema = delimited_text.schema_of(delimited_text.parts_of(path), watched, given={})
    assert schema == {"a": pl.Int64, "b": pl.String}
    assert longest < 1_100


@pytest.mark.parametrize("suffix", [".arrow", ".feather", ".ipc"])
def test_arrow_files_are_tables(suffix, tmp_path):
    rows = pl.DataFrame({"age": [39, 50], "ill": ["no", "yes"], "id": ["007", "008"]})
    path = tmp_path / f"t{suffix}"
    rows.write_ipc(path)
    found = read_data(path, label="ill", unit="id")
    assert (found.X.rows(), found.y.tolist(), found.unit) == ([(39,), (50,)], ["no", "yes"], ["007", "008"])
    streamed = read_data(path, label="ill", memory=0, workspace=Workspace(lambda: tmp_path))
    assert type(streamed.X).__name__ == "StreamedFrame"
    assert streamed.X.collect().equals(rows.drop("ill"))
