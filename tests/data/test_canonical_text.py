"""What a cell says: docs/reference/cells.md, in every container, whatever stands in the others; none is a formula."""

import csv
import datetime as dt
import decimal
import io
import re
import sqlite3
from contextlib import closing
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.postgres_server import running, why_not

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, check
from quorate.data import check_classes, encode_labels, read_cells, read_data
from quorate.data.cell_text import as_cell, canonical_text, csv_text, from_cell, id_text
from quorate.data.database import DatabaseQuery
from quorate.data.labels import codes_of
from quorate.data.stream import StreamedColumn
from quorate.data.unit_ids import only_whole_ids, slot_bytes, usable_slots
from quorate.errors import DataRefused, InvalidParameter
from quorate.run.schema import Schema

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cells.md"


class Answer(str, Enum):  # noqa: UP042 - members that are texts too
    NO = "no"


KNOWN = {"np": np, "pd": pd, "dt": dt, "Decimal": Decimal, "Fraction": Fraction, "UUID": UUID, "Answer": Answer}
SAID = {"nothing": None, "the empty text": "", "its digits": "1" + "0" * 309}


def rows():
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    cut = [[part.strip() for part in line.strip("|").split(" | ")] for line in lines]
    return [(name, cell.strip("`"), said, as_id) for name, cell, said, as_id in cut]


def meant(said):
    return said[1:-1] if said.startswith("`") else SAID[said]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_cell_says_what_the_table_says(row):
    _, written, said, as_id = row
    cell = eval(written, dict(KNOWN))  # noqa: S307 - a page of this repository
    with decimal.localcontext(decimal.Context(prec=3)):
        assert canonical_text(cell) == meant(said)
        assert id_text(cell) == meant(as_id)


def test_the_table_has_a_row_for_every_type():
    assert len(rows()) > 35
    assert len({name for name, *_ in rows()}) == len(rows())


NUMBERS = [0, 1, 1, 0]
LABELS = {
    "truth values": [False, True, True, False],
    "truth values of numpy": np.array([False, True, True, False]),
    "floats": [0.0, 1.0, 1.0, 0.0],
    "small numbers of numpy": np.array(NUMBERS, dtype="uint8"),
    "texts in pandas": pd.Series(["0", "1", "1", "0"], dtype="str"),
    "categories of polars": pl.Series(["0", "1", "1", "0"], dtype=pl.Categorical),
    "texts": ["0", "1", " 1", "0.0"],
    "texts of numpy": np.array(["0", "1", "1", "0"]),
    "bytes": np.array([b"0", b"1", b"1", b"0"]),
    "decimals": [Decimal(0), Decimal("1.0"), Decimal(1), Decimal(0)],
    "categories": pd.Series(NUMBERS, dtype="category"),
    "categories of texts": pd.Series(["0", "1", "1", "0"], dtype="category"),
    "Int64": pd.Series(NUMBERS, dtype="Int64"),
    "string": pd.Series(["0", "1", "1", "0"], dtype="string"),
    "Arrow in pandas": pd.Series(NUMBERS, dtype=pd.ArrowDtype(pa.int32())),
    "an Arrow array": pa.array(NUMBERS),
    "polars": pl.Series(NUMBERS, dtype=pl.UInt8),
    "a frame of one column": pd.DataFrame({"ill": NUMBERS}),
    "a polars frame of one column": pl.DataFrame({"ill": NUMBERS}),
    "a column of an array": np.array([NUMBERS]).T,
    "a column of a file": StreamedColumn(pl.Series(["0", "1", " 1", "0"])),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], [False, True]], ids=str)
@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_labels_of_another_type_are_the_classes_that_say_the_same(y, classes):
    assert encode_labels(y, classes).tolist() == NUMBERS
    assert codes_of(y, check_classes(classes)).tolist() == NUMBERS


def test_a_member_of_an_enumeration_is_its_value():
    assert encode_labels([Answer.NO, "yes"], ["no", "yes"]).tolist() == [0, 1]
    assert check_classes([Answer.NO, "yes"]) == ("no", "yes")


def test_truth_values_that_were_declared_as_texts_are_these():
    for classes in (["false", "true"], ["False", "True"], [False, True]):
        assert encode_labels([True, "FALSE", 0, "1"], classes).tolist() == [1, 0, 0, 1]


def test_one_label_changes_no_other():
    for hostile in (None, float("nan"), "x", 2**63, [1], 1e300, b"\xff", Answer.NO):
        assert codes_of(pd.Series([*NUMBERS, hostile], dtype=object), (0, 1)).tolist() == [*NUMBERS, -1]
    assert codes_of(pd.Series([*NUMBERS, None]), (0, 1)).tolist() == [*NUMBERS, -1]
    for column in (pd.Series, np.array):
        assert codes_of(column([*NUMBERS, 1 + 1j]), (0, 1)).tolist() == [*NUMBERS, -1]
        assert codes_of(column([*NUMBERS, 1 + 0j]), (0, 1)).tolist() == [*NUMBERS, 1]


@pytest.mark.parametrize("column", [pd.Series, np.array])
def test_one_complex_number_makes_no_other_cell_one(column):
    schema = Schema.of(pd.DataFrame({"age": np.arange(100.0)}))
    rows, usable = schema.parsed(pd.DataFrame({"age": column([5, float("nan"), 7, 1 + 0j, 1 + 2j])}))
    assert usable.tolist() == [True, True, True, True, False]
    assert rows.iloc[:4, 0].fillna(-1).tolist() == [5, -1, 7, 1]
    words = Schema.of(pd.DataFrame({"ward": ["1", "2", "3", "north"] * 4}))
    assert words.parsed(pd.DataFrame({"ward": column([1, 2, 3, 1 + 2j])}))[0]["ward"].tolist()[:3] == ["1", "2", "3"]
    numbers, usable = Schema.of(np.arange(20.0).reshape(10, 2)).parsed(
        pd.DataFrame({"a": column([5, 6, 1 + 2j]), "b": [1.0, 2.0, 3.0]})
    )
    assert numbers[:2].tolist() == [[5, 1], [6, 2]]
    assert usable.tolist() == [True, True, False]


@pytest.mark.parametrize("column", [pd.Series, np.array])
def test_a_column_of_complex_ids_is_one_that_has_lost_digits(column):
    ids = column([7, 8, 2**53 + 1, 1 + 1j, 9 + 0j])
    with pytest.raises(DataRefused, match="a column of complex numbers has lost digits"):
        usable_slots(ids, 5)
    assert list(usable_slots(only_whole_ids(ids), 5)) == [b"id:7", b"id:8", b"", b"", b"id:9"]


@pytest.mark.parametrize("classes", [["a", "a "], ["1", "1.0"], [2**60, 2**60 + 1]], ids=str)
def test_classes_that_say_the_same_are_refused(classes):
    with pytest.raises(InvalidParameter, match="are one label"):
        check_classes(classes)


FAR = [2**60 + i for i in range(1000)]
IDS = {
    "numpy": lambda ids: np.array(ids),
    "a list": list,
    "objects": lambda ids: pd.Series(ids, dtype=object),
    "Int64": lambda ids: pd.Series(ids, dtype="Int64"),
    "Arrow in pandas": lambda ids: pd.Series(ids, dtype=pd.ArrowDtype(pa.int64())),
    "an Arrow array": lambda ids: pa.array(ids, type=pa.int64()),
    "polars": lambda ids: pl.Series(ids, dtype=pl.Int64),
    "text": lambda ids: [None if one is None else str(one) for one in ids],
    "decimals": lambda ids: [None if one is None else Decimal(one) for one in ids],
}
FLOATS = {
    "numpy": lambda ids: np.array(ids, dtype=float),
    "pandas": lambda ids: pd.Series(ids, dtype=float),
    "Float64": lambda ids: pd.Series(ids, dtype="Float64"),
    "categories": lambda ids: pd.Series(ids, dtype=float).astype("category"),
    "Arrow in pandas": lambda ids: pd.Series(ids, dtype=float).astype(pd.ArrowDtype(pa.float64())),
    "an Arrow array": lambda ids: pa.array([None if one is None else float(one) for one in ids], type=pa.float64()),
    "polars": lambda ids: pl.Series(ids, dtype=pl.Float32),
    "a frame of one column": lambda ids: pd.DataFrame({"person": pd.Series(ids, dtype=float)}),
}


def of_csv(ids, place, read):
    lines = [f"{'' if one is None else one},{row},{'no' if row % 2 else 'yes'}" for row, one in enumerate(ids)]
    (place / "visits.csv").write_text("\n".join(["person,age,ill", *lines]), encoding="utf-8")
    return read(place / "visits.csv")


def of_parquet(ids, place, read):
    rows = pl.DataFrame({"person": pl.Series(ids, dtype=pl.Int64), "age": range(len(ids)), "ill": ["no", "yes"] * 500})
    rows.write_parquet(place / "visits.parquet")
    return read(place / "visits.parquet")


def of_database(kind):
    def ids_of(ids, place, read):
        rows = [(one, row, "no" if row % 2 else "yes") for row, one in enumerate(ids)]
        make = "create table visits (person bigint, age integer, ill text)"
        if kind == "sqlite":
            url = f"sqlite:///{place / 'clinic.db'}"
            with closing(sqlite3.connect(place / "clinic.db")) as made:
                made.execute(make)
                made.executemany("insert into visits values (?, ?, ?)", rows)
                made.commit()
            return read(DatabaseQuery(url, "select * from visits order by age", "[data] private", place))
        if (reason := why_not()) is not None:
            pytest.skip(reason)
        with running() as server:
            server.sql(make)
            server.insert("visits", rows)
            url = f"postgresql://quorate@/postgres?host={server.folder}"
            return read(DatabaseQuery(url, "select * from visits order by age", "[data] private", place))

    return ids_of


READ = {
    "cell by cell": lambda source: read_cells(source, label="ill", unit="person", n_features=1).unit,
    "as a table": lambda source: read_data(source, label="ill", unit="person").unit,
}
STORED = {"CSV": of_csv, "Parquet": of_parquet, "SQLite": of_database("sqlite"), "PostgreSQL": of_database("postgres")}
EVERYWHERE = [(name, None) for name in IDS] + [(name, how) for name in STORED for how in READ]


def ids_in(container, how, ids, place):
    return IDS[container](ids) if how is None else STORED[container](ids, place, READ[how])


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("container", "how"),
    [
        pytest.param(*each, marks=pytest.mark.faults if each == ("PostgreSQL", "as a table") else ())
        for each in EVERYWHERE
    ],
    ids=lambda part: part or "in memory",
)
def test_a_missing_id_merges_no_units_in_any_container_and_whole_ids_takes_none_of_them(container, how, tmp_path):
    with_one_missing = [*FAR[:500], None, *FAR[500:999]]
    for name in ("all", "one missing"):
        (tmp_path / name).mkdir()
    ids = ids_in(container, how, FAR, tmp_path / "all")
    slots = usable_slots(ids, 1000)
    assert len(set(slots)) == 1000
    assert slots == usable_slots(IDS["text"](FAR), 1000)
    assert not any(usable_slots(only_whole_ids(ids), 1000))
    one_less = ids_in(container, how, with_one_missing, tmp_path / "one missing")
    assert usable_slots(one_less, 1000) == [*slots[:500], b"", *slots[500:999]]
    assert not any(usable_slots(only_whole_ids(one_less), 1000))
    for taken in (one_less, only_whole_ids(one_less)):
        with pytest.raises(DataRefused, match="unit ids are missing"):
            slot_bytes(taken, 1000)
    assert list(slot_bytes(ids, 1000)) == list(slot_bytes(IDS["text"](FAR), 1000))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("container", FLOATS)
def test_ids_in_a_column_of_floats_are_refused_unless_they_are_said_to_be_whole(container):
    near = [float(one) for one in range(7, 12)]
    for ask in (slot_bytes, usable_slots):
        with pytest.raises(DataRefused, match=r"has lost digits of its ids.*whole_ids=True"):
            ask(FLOATS[container](near), 5)
    whole = usable_slots(only_whole_ids(FLOATS[container](near)), 5)
    assert whole == [b"id:7", b"id:8", b"id:9", b"id:10", b"id:11"]
    assert usable_slots(only_whole_ids(FLOATS[container]([*near, None])), 6) == [*whole, b""]
    assert not any(usable_slots(only_whole_ids(FLOATS[container](FAR)), 1000))


def test_a_column_of_a_file_says_the_same():
    for series in (pl.Series([" 12", "12.0", "007", "P-7"]), pl.Series([12, 12, 7, 8])):
        assert list(slot_bytes(StreamedColumn(series), 4)) == list(slot_bytes(series, 4))
    whole, part = (StreamedColumn(pl.Series(cells)) for cells in ([1.0, 2.0], [1.0, 2.5]))
    assert list(slot_bytes(only_whole_ids(whole), 2)) == [b"id:1", b"id:2"]
    for ids, said in ((whole, "has lost digits"), (only_whole_ids(part), "unit ids are missing")):
        with pytest.raises(DataRefused, match=said):
            slot_bytes(ids, 2)


def test_an_estimator_refuses_floats_as_ids_before_anything_is_charged_unless_they_are_declared_whole():
    X, y, groups = np.arange(12.0).reshape(6, 2), [0, 1] * 3, np.array([1.0, 2.0, 3.0, 3.0, np.nan, 2.0**60])
    how = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "rounds": 2, "n_records": 3}
    with pytest.raises(DataRefused, match="groups: a column of floats"):
        PrivateLogisticRegression(**how).fit(X, y, groups=groups)
    votes = PrivateClassifier(method="votes", classes=[0, 1], epsilon=1.0, delta=1e-5)
    with pytest.raises(DataRefused, match="groups: a column of floats"):
        check(votes, X, y, public=PublicPool(X + 0.5), groups=groups)
    fitted = PrivateLogisticRegression(**how, whole_ids=True, unsafe_noise_seed=1).fit(X, y, groups=groups)
    as_text = PrivateLogisticRegression(**how, unsafe_noise_seed=1)
    as_text.fit(X, y, groups=["1", "2", "3", "3", None, None])
    assert fitted.coef_.tolist() == as_text.coef_.tolist()


def test_times_of_numpy_are_times_and_not_counts():
    moments = np.array(["2024-03-01", "2024-03-01T07:30"], dtype="M8[ns]")
    assert usable_slots(moments, 2) == usable_slots(pd.Series(moments), 2) == usable_slots(pl.Series(moments), 2)
    assert re.match(rb"id:2024-03-01$", usable_slots(moments, 2)[0])


DANGEROUS = tuple("=+-@\t\r\n")
FORMULAS = (
    "=1+1", "+1+1", "-1+1|cmd", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("http://x?"&A1)', "=", "+", "-", "@", "'=1",
)  # fmt: skip

texts = st.text(st.sampled_from("=+-@'\t\r\n1.e a,\""), max_size=8)


def is_a_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()


@given(text=texts)
def test_every_cell_is_harmless_and_read_back(text):
    cell = as_cell(text)
    assert not cell.startswith(DANGEROUS) or is_a_number(cell)
    assert from_cell(cell) == text
    assert as_cell(text) == text or cell == "'" + text


@given(one=texts, other=texts)
def test_two_texts_never_become_one(one, other):
    assert (as_cell(one) == as_cell(other)) == (one == other)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("value", [-1, 0.5, -2.5e-3, True, None, "-1", "+1.5e3", "yes", "<=50K", ">50K", "it's", ""])
def test_what_is_no_formula_stays_as_it_is(value):
    assert as_cell(value) == value


@given(rows=st.lists(st.tuples(st.integers(-9, 9), texts), max_size=5), name=texts)
def test_a_table_is_read_back_by_any_reader_of_csv(rows, name):
    read = list(csv.reader(io.StringIO(csv_text(["row", name], rows), newline="")))
    assert [[from_cell(cell) for cell in line] for line in read] == [["row", name], *([str(n), t] for n, t in rows)]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("formula", [each for each in FORMULAS if each.strip()])
def test_a_file_of_labels_with_such_a_class_is_read_by_our_own_reader(formula, tmp_path):
    classes, rows = [formula, "no"], [[0.5, formula], [1.5, "no"], [2.5, formula]]
    path = tmp_path / "labels.csv"
    path.write_text(csv_text(["x", "label"], rows), encoding="utf-8", newline="")
    table = read_data(path, label="label")
    assert encode_labels(table.y, classes).tolist() == [0, 1, 0]
    assert encode_labels(np.array([formula, "no"], dtype=object), classes).tolist() == [0, 1]


def test_two_classes_that_would_be_written_alike_are_refused():
    with pytest.raises(InvalidParameter, match="would be one in a file of labels"):
        check_classes(["=1", "'=1", "no"])
    assert check_classes(["+", "-"]) == ("+", "-")
    assert check_classes([-1, 1]) == (-1, 1)


def test_that_test_catches_a_file_without_quotes(tmp_path):
    """polars, too, would have taken the cell as it is: nothing else neutralises it."""
    text = pl.DataFrame({"label": list(FORMULAS)}).write_csv()
    assert any(cell.startswith(DANGEROUS) for (cell,) in csv.reader(io.StringIO(text, newline="")))
