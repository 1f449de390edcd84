"""A file that is no CSV table: what it is instead, and what to do; nothing of it is quoted."""

import gzip
import io
from pathlib import Path

import pytest

from quorate.data import column_names, file_reading, match_columns, read_data
from quorate.data.stream import Workspace
from quorate.errors import DataRefused, PreconditionFailed

ROWS = "id;age;crp\n1;70;4,5\n"
WRONG = [
    ("empty", b"", "the file is empty"),
    ("blank", b"\n \n", "the file is empty"),
    ("latin1", "id,ort\n1,Köln\n".encode("latin1"), "not UTF-8 text; save as CSV UTF-8 (or: iconv -f latin1 -t utf-8)"),
    ("latin1 header", "id,größe\n1,2\n".encode("latin1"), "not UTF-8 text"),
    ("utf16", "id,age\n1,70\n".encode("utf-16"), "UTF-16 text, not UTF-8; save as CSV UTF-8"),
    ("binary", bytes(range(256)) * 8, "a binary file, not text"),
    ("renamed spreadsheet", b"PK\x03\x04" + bytes(64), "an Excel file, whatever its name says; name it .xlsx"),
    ("semicolons", ROWS.encode(), "the columns look separated by semicolons, and commas are expected; write separator"),
    (
        "tabs",
        ROWS.replace(";", "\t").encode(),
        r'separated by tabs, and commas are expected; write separator = "\t" under [data]',
    ),
    ("no rows", b"id,age,ill\n", "the file names its columns and holds no row"),
    ("no header", b"17,70.5,yes\n18,64.5,no\n", "it is not shown, since it may be a row"),
]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("content", "expected"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_each_kind_of_wrong_file_is_told_apart(tmp_path, content, expected):
    path = tmp_path / "private.csv"
    path.write_bytes(content)
    with pytest.raises(DataRefused) as refusal:
        read_data(path, label=None if "no row" in expected else "ill")
    message = str(refusal.value)
    assert message.startswith((f"{path}: ", f"{path} has no column"))
    assert expected in message
    said = message.replace(str(path), "")  # it may hold any number
    assert not any(private in said for private in ("Köln", "17", "70"))


def test_tabs_are_expected_where_the_name_says_so(tmp_path):
    (tmp_path / "t.tsv").write_text("id,age\n1,2\n")
    with pytest.raises(DataRefused, match=r"separated by commas, and tabs are expected; write separator"):
        read_data(tmp_path / "t.tsv")


def test_a_spreadsheet_and_a_folder_say_so(tmp_path):
    (tmp_path / "private.xls").write_bytes(b"PK\x03\x04")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataRefused, match=r"private\.xls: such spreadsheets are not read; save as \.xlsx or"):
        read_data(tmp_path / "private.xls", label="ill", unit="id")
    with pytest.raises(DataRefused, match=r"folder\.csv: this is a folder"):
        read_data(tmp_path / "folder.csv", label="ill")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.svm"])
def test_a_file_that_may_not_be_read_names_the_permission(tmp_path, monkeypatch, name):
    (tmp_path / name).write_bytes(b"")

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(DataRefused, match=f"no permission to read .*{name}; ask its owner"):
        read_data(tmp_path / name)


def test_tables_are_called_what_the_caller_calls_them():
    import polars as pl

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
