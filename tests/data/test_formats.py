"""Formats of files, those from outside the package too; and private rows that are read one by one."""

import gzip
import os
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from quorate.data import (
    TableFormat,
    column_names,
    formats,
    match_columns,
    read_batches,
    read_cells,
    read_data,
    read_table,
    register_format,
)
from quorate.data.database import DatabaseQuery
from quorate.data.labels import codes_of
from quorate.data.reading import bytes_held
from quorate.data.stream import PartedFrame
from quorate.errors import DataRefused, InvalidParameter
from quorate.run.schema import Schema


class JsonLines(TableFormat):
    """One JSON object a line."""

    suffixes = (".jsonl",)

    def frame(self, path, *, text_columns=()):
        frame = pl.read_ndjson(path)
        return frame.with_columns(pl.col(name).cast(pl.String) for name in text_columns)

    def names(self, path):
        return self.frame(path).columns


@pytest.fixture
def json_lines(monkeypatch):
    monkeypatch.setattr(formats, "_BY_SUFFIX", dict(formats._BY_SUFFIX))
    register_format(JsonLines())


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.jsonl"
    path.write_text('{"person": 7, "age": 39, "ill": "no"}\n{"person": 8, "age": 50, "ill": "yes"}\n')
    return path


@pytest.mark.usefixtures("json_lines")
def test_a_format_of_ones_own_is_read_like_any_other(visits):
    table = read_data(visits, label="ill", unit="person")
    assert (table.columns, table.y.tolist(), table.unit) == (("age",), ["no", "yes"], ["7", "8"])
    assert column_names(visits) == ["person", "age", "ill"]
    assert read_table(visits).height == 2
    assert [batch.rows() for batch in read_batches(visits, batch_rows=1, columns=["age"])] == [[(39,)], [(50,)]]


def test_without_it_the_file_is_refused_by_its_name(visits):
    with pytest.raises(DataRefused, match=r"visits\.jsonl: \.jsonl is not read; save the table as CSV or Parquet"):
        read_data(visits)


@pytest.mark.usefixtures("json_lines")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (JsonLines(), r"'\.jsonl' belongs to the format JsonLines"),
        *(
            (type("Odd", (JsonLines,), {"suffixes": suffixes})(), "suffix")
            for suffixes in (("jsonl",), (".JSONL",), ())
        ),
        ("csv", "read method"),
    ],
    ids=["of another format", "without a dot", "in capitals", "none", "nothing that reads"],
)
def test_a_format_reads_and_has_suffixes_of_its_own_in_small_letters_after_a_dot(made, said):
    with pytest.raises(InvalidParameter, match=said):
        register_format(made)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", ["rows.npz", "rows.svm", "rows.svm.gz"])
def test_what_a_file_of_sparse_rows_takes_in_memory_is_known_by_its_size(name, tmp_path):
    X = sparse.random_array((20_000, 50), density=0.2, format="csr", rng=np.random.default_rng(0))
    y = np.arange(20_000) % 2
    path = tmp_path / name
    if name == "rows.npz":
        np.savez_compressed(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    else:
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "wb") as file:
            dump_svmlight_file(sparse.csr_matrix(X), y, file, zero_based=False)
    tracemalloc.start()
    try:
        read_cells(path, label="y", n_features=50, memory=0)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most <= bytes_held(path) <= 8 * most


def test_a_table_that_is_read_in_parts_is_never_held(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as database, database:
        database.execute("create table visits as select 1 as age, 'no' as ill")
    query = DatabaseQuery("sqlite:///a.db", "select * from visits", "[data] private", tmp_path)
    assert bytes_held(query) == 0
    (tmp_path / "visits.csv").write_text("age,ill\n39,no\n")
    assert bytes_held(tmp_path / "visits.csv") == 0


def in_parts(rows, path):
    path.mkdir()
    rows[:2].write_parquet(path / "1.parquet")
    rows[2:].write_parquet(path / "2.parquet")


def in_a_database(rows, path):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table visits (age, ward, ill)")
        database.executemany("insert into visits values (?, ?, ?)", rows.rows())


WRITTEN = {
    "visits.csv": pl.DataFrame.write_csv, "visits.parquet": pl.DataFrame.write_parquet, "visits": in_parts,
    "visits.arrow": pl.DataFrame.write_ipc, "clinic.db": in_a_database,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_tables_are_read_in_a_folder_whose_name_is_no_text(name, tmp_path):
    rows = pl.DataFrame({"age": [31, 47, 58], "ward": ["north", None, "south"], "ill": ["no", "yes", "no"]})
    (tmp_path / "plain").mkdir()
    WRITTEN[name](rows, tmp_path / "plain" / name)
    place = (tmp_path / "plain").rename(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
    source = place / name
    if name == "clinic.db":
        source = DatabaseQuery("sqlite:///clinic.db", "select * from visits order by age", "[data] private", place)
    assert read_data(source, label="ill").y.tolist() == rows["ill"].to_list()
    cells = read_cells(source, label="ill", n_features=2).X
    cells = pl.concat(cells.blocks(8)) if isinstance(cells, PartedFrame) else cells
    assert [str(age) for age in cells["age"].to_list()] == ["31", "47", "58"]
    assert cells["ward"].to_list()[::2] == ["north", "south"]


def test_a_missing_label_does_not_round_the_others(tmp_path):
    path, far = tmp_path / "rows.parquet", 2**53 + 1
    for last in (2, None):
        pl.DataFrame({"a": [1.0, 2.0, 3.0], "l": [far, 2, last]}).write_parquet(path)
        codes = codes_of(read_cells(path, label="l", n_features=1).y, (2, far))
        assert codes.tolist()[:2] == [1, 0]


@pytest.mark.heavy
def test_a_line_of_svmlight_text_is_read_by_itself(tmp_path):
    path = tmp_path / "rows.svm"
    good = ["1 1:2.5 3:1", "0 2:1 # of note", "1"]

    def read(lines):
        path.write_text("\n".join([*lines, ""]))
        return read_cells(path, label="", n_features=3)

    without = read(good)
    assert without.X.toarray().tolist() == [[2.5, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert without.y.tolist() == [1, 0, 1]
    for odd in ("nothing", "1 1:x", "1 0:1", "1 2:1 1:1", f"1 {'9' * 30}:1", "1 3000000000:1", "1,0 1:1", "1 1"):
        for place in range(4):
            table = read([*good[:place], odd, *good[place:]])
            rest = np.delete(np.arange(4), place)
            assert (table.X.toarray()[rest] == without.X.toarray()).all(), odd
            assert (table.y[rest] == without.y).all(), odd
            assert np.isnan(table.X.toarray()[place]).any(), odd


class Rounding(TableFormat):
    """A format that knows frames alone: one cell that is no whole number makes floats of all."""

    suffixes = (".rounding",)

    def frame(self, path, *, text_columns=()):
        return pl.read_csv(path, infer_schema_length=None)

    def names(self, path):
        return self.frame(path).columns


class Written(Rounding):
    """The same, which says how cells are written."""

    suffixes = (".written",)

    def cells(self, path):
        return pl.read_csv(path, infer_schema=False)


class Whole:
    """A format without named columns, which reads a file as a whole alone."""

    suffixes = (".whole",)

    def read(self, path, **how):
        raise AssertionError("it is not asked")


def test_a_format_that_reads_frames_alone_is_refused_for_private_rows_and_one_that_reads_cells_is_not(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(formats, "_BY_SUFFIX", dict(formats._BY_SUFFIX))
    for each in (Rounding(), Written(), Whole()):
        register_format(each)
    far = 2**53 + 1
    for name in ("rows.rounding", "rows.written", "rows.whole"):
        (tmp_path / name).write_text(f"a,l\n{far},1\n0.5,0\n")
    assert read_data(tmp_path / "rows.rounding", label="l").X["a"].to_list()[0] == 2**53  # rounded by the other row
    for name in ("rows.rounding", "rows.whole"):
        with pytest.raises(DataRefused, match=r"does not say how one private row is read by itself.*define cells"):
            read_cells(tmp_path / name, label="l", n_features=1)
    assert read_cells(tmp_path / "rows.written", label="l", n_features=1).X["a"].to_list() == [f"{far}", "0.5"]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.parquet", "rows.svm", "rows.npz"])
def test_a_file_without_a_row_is_read(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pl.DataFrame({"a": [], "l": []}, schema={"a": pl.Float64, "l": pl.String}).write_parquet(path)
    elif name.endswith(".npz"):
        parts = {"data": np.empty(0), "indices": np.empty(0, int), "indptr": np.zeros(1, int), "shape": [0, 1]}
        np.savez(path, l=np.empty(0), **parts)
    else:
        path.write_text({"rows.csv": "a,l\n", "rows.tsv": "a\tl\n"}.get(name, ""))
    table = read_cells(path, label="l", n_features=1)
    assert table.X.shape == (0, 1)
    assert len(table.y) == 0


HEADERLESS = "Ann,HIV,1951\nBob,none,1960\n"


def test_what_is_said_of_a_file_without_names_quotes_no_cell_of_its_first_row(tmp_path):
    path = tmp_path / "rows.csv"
    pool = pl.DataFrame({"name": ["Eve"], "finding": ["none"], "year": [1970]})
    path.write_text(HEADERLESS)
    said = []
    for act in (
        lambda: read_cells(path, label="ill", n_features=3),
        lambda: read_data(path, label="ill"),
        lambda: match_columns(read_data(path).X, pool),
        lambda: Schema.of(pool).parsed(read_data(path).X),
    ):
        with pytest.raises(DataRefused) as refusal:
            act()
        said.append(str(refusal.value))
    path.write_text("Ann,HIV,Ann\n")
    for act in (lambda: read_cells(path, label="ill", n_features=3), lambda: read_data(path, label="ill")):
        with pytest.raises(DataRefused) as refusal:
            act()
        said.append(str(refusal.value))
    assert not [each for each in said if "Ann" in each or "HIV" in each or "1951" in each]
    assert all(word in said[2] and word in said[3] for word in ("name", "finding", "year"))  # those of the pool are
