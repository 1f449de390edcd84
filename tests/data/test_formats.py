"""A format of files from outside the package, and what the registry refuses."""

from __future__ import annotations

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
    read_batches,
    read_cells,
    read_data,
    read_table,
    register_format,
)
from quorate.data.database import DatabaseQuery
from quorate.data.reading import bytes_held
from quorate.data.stream import PartedFrame
from quorate.errors import InvalidParameter


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


def test_without_it_the_file_is_taken_for_sparse_text(visits):
    with pytest.raises(Exception, match="svmlight"):
        read_data(visits)


@pytest.mark.usefixtures("json_lines")
def test_a_suffix_has_one_format():
    with pytest.raises(InvalidParameter, match=r"'\.jsonl' belongs to the format JsonLines"):
        register_format(JsonLines())


@pytest.mark.parametrize("suffixes", [("jsonl",), (".JSONL",), ()])
def test_a_suffix_is_small_letters_after_a_dot(suffixes):
    class Odd(JsonLines):
        pass

    Odd.suffixes = suffixes
    with pytest.raises(InvalidParameter, match="suffix"):
        register_format(Odd())


def test_what_cannot_read_is_no_format():
    with pytest.raises(InvalidParameter, match="read method"):
        register_format("csv")


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


def as_text(rows, place):
    rows.write_csv(place / "visits.csv")
    return "visits.csv"


def as_parquet(rows, place):
    rows.write_parquet(place / "visits.parquet")
    return "visits.parquet"


def as_arrow(rows, place):
    rows.write_ipc(place / "visits.arrow")
    return "visits.arrow"


def as_parts(rows, place):
    (place / "visits").mkdir()
    rows[:2].write_parquet(place / "visits" / "1.parquet")
    rows[2:].write_parquet(place / "visits" / "2.parquet")
    return "visits"


def as_database(rows, place):
    with closing(sqlite3.connect(place / "clinic.db")) as made:
        made.execute("create table visits (age, ward, ill)")
        made.executemany("insert into visits values (?, ?, ?)", rows.rows())
        made.commit()
    return "clinic.db"


@pytest.mark.parametrize("write", [as_text, as_parquet, as_arrow, as_parts, as_database])
def test_tables_are_read_in_a_folder_whose_name_is_no_text(write, tmp_path):
    rows = pl.DataFrame({"age": [31, 47, 58], "ward": ["north", None, "south"], "ill": ["no", "yes", "no"]})
    (tmp_path / "plain").mkdir()
    file = write(rows, tmp_path / "plain")
    place = (tmp_path / "plain").rename(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
    source = place / file
    if write is as_database:
        source = DatabaseQuery("sqlite:///clinic.db", "select * from visits order by age", "[data] private", place)
    assert read_data(source, label="ill").y.tolist() == rows["ill"].to_list()
    cells = read_cells(source, label="ill", n_features=2).X
    cells = pl.concat(cells.blocks(8)) if isinstance(cells, PartedFrame) else cells
    assert [str(age) for age in cells["age"].to_list()] == ["31", "47", "58"]
    assert cells["ward"].to_list()[::2] == ["north", "south"]
