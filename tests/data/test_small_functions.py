"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from quorate.data.cell_text import canonical_text, each, is_missing, truth_text, without_imaginary
from quorate.data.column_cells import frame_of, plain_columns
from quorate.data.column_kinds import word_figures, words_of
from quorate.data.columns import column, in_words, is_plain_number, listed, names_columns, nearest
from quorate.data.database import is_database
from quorate.data.database_errors import refused_by_sqlite
from quorate.data.digests import once, order_of, pack, tally
from quorate.data.encoding import without_frequent_texts
from quorate.data.feature_maps.exact import squared_lengths, to_grid
from quorate.data.feature_maps.patches import has_patches
from quorate.data.feature_maps.product_kernel import category_codes
from quorate.data.feature_maps.scale import holds_one_quantity, in_one_unit, is_one_quantity
from quorate.data.file_reading import format_of, is_plain
from quorate.data.identity import as_column
from quorate.data.images import image_columns
from quorate.data.notation import (
    are_dates,
    are_decimal_commas,
    date_like,
    has_decimal_comma,
    has_thousands,
    microseconds,
    text_kind,
    time_type,
)
from quorate.data.rows import flat_images, holds_texts, texts_like, texts_table, with_text_names, without_columns
from quorate.data.table_reader import is_marked_missing
from quorate.data.unit_keys import PositionKeys, count_units


def test_cell_text() -> None:
    assert (is_missing(float("nan")), is_missing(None), is_missing("")) == (True, True, False)
    assert (without_imaginary(7 + 0j), without_imaginary(7 + 1j), without_imaginary("7")) == (7.0, (7 + 1j), "7")
    assert each(canonical_text, ["1", 1, " 1", None]) == ["1", "1", "1", None]
    assert (truth_text("True"), truth_text(" false"), truth_text(True), truth_text("yes")) == ("1", "0", "1", "yes")


def test_column_cells() -> None:
    frame = pd.DataFrame({"age": [1, 2], "ward": ["a", "b"], "code": pd.Series([1, None], dtype="category")})
    assert plain_columns(frame, {0: True, 1: False, 2: False}) == {2: ["1", None]}
    assert frame_of({"age": np.array([39.0]), "sex": ["F"]}, "polars").rows() == [(39.0, "F")]


def test_column_kinds() -> None:
    assert words_of("A good film!") == ["good", "film"]
    assert word_figures(["a good film", "a bad film"]) == (2.0, 0.5)


def test_columns() -> None:
    assert nearest("lable", ["age", "label"]) == "; did you mean 'label'?"
    assert nearest("income", ["age", "label"]) == "; known: 'age', 'label'"
    assert listed(["age", "sex"]) == "'age', 'sex'"
    assert (
        names_columns(["age", "income", "id"], ["age", "income"]),
        names_columns(["39", "1", "P17"], ["0", "1"]),
    ) == (True, False)
    assert column(pl.DataFrame({"age": [39, 50]}), 0).to_list() == [39, 50]
    assert (is_plain_number(pl.Series([1, None])), is_plain_number(pl.Series(["1"]))) == (True, False)
    assert in_words(["age", "sex"]) == "columns 'age', 'sex'"


def test_database() -> None:
    assert (is_database("sqlite:///clinic.db"), is_database("clinic.csv")) == (True, False)


def test_database_errors() -> None:
    assert (
        refused_by_sqlite(sqlite3.OperationalError("no such column: ag"), "select ag from v")
        == "names a column that is not there; see how it is spelt"
    )


def test_date_notation() -> None:
    assert (
        microseconds("1970-01-01T02:00+02:00", "date"),
        microseconds("12:30", "date"),
        microseconds("1.5", "duration"),
    ) == (0, None, 1500000)
    assert (text_kind(["2024-03-01", "2024-03-02 10:00"]), text_kind(["10:30"]), text_kind(["2024-03-01", "soon"])) == (
        "date",
        "time",
        None,
    )
    assert (
        time_type(pl.Series(dtype=pl.Date)),
        time_type(pl.Series(dtype=pl.Datetime("ms", "UTC"))),
    ) == ("date", "datetime UTC")
    assert date_like(
        pl.DataFrame({"seen": ["2024-03-01", None], "ward": ["north", "1.2"], "code": ["1-2", "3-4"]})
    ) == ["seen"]
    assert (are_dates(["01/03/2024", "1 Mar 2024"]), are_dates(["soon"])) == (True, False)


def test_digests() -> None:
    digests = pack([bytes(16), b"0123456789abcdef"])
    assert (len(digests), digests[1], list(digests) == [bytes(16), b"0123456789abcdef"]) == (
        2,
        b"0123456789abcdef",
        True,
    )
    assert once(tally([b"b" * 16, b"a" * 16, b"b" * 16])).counts.tolist() == [1, 1]
    assert order_of(np.array([2, 1, 2]), np.array([5, 9, 4])).tolist() == [1, 2, 0]


def test_encoding() -> None:
    assert without_frequent_texts(pl.DataFrame({"id": ["a", "b", "c", "d"], "ward": ["x", "x", "y", "y"]})) == ["id"]


def test_feature_maps_exact() -> None:
    assert to_grid(np.array([0.3, -0.3]), 3).tolist() == [2.0, -2.0]
    assert squared_lengths(np.array([[3.0, 4.0], [0.0, 2.0]])).tolist() == [25.0, 4.0]


def test_feature_maps_patches() -> None:
    assert (has_patches((28, 28)), has_patches((8, 8)), has_patches((32, 32, 3))) == (True, False, False)


def test_feature_maps_product_kernel() -> None:
    assert category_codes(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])).tolist() == [2, 1, 0]


def test_feature_maps_scale() -> None:
    assert in_one_unit(np.array([[0.0, 8.0], [2.0, 4.0]])).scale.tolist() == [2.0, 2.0]
    pixels = np.random.default_rng(0).integers(0, 4, (50, 16)).astype(float)
    assert (holds_one_quantity(pixels), holds_one_quantity(pixels[:, :9])) == (True, False)
    assert (is_one_quantity(pixels), is_one_quantity(pixels * np.arange(1, 17))) == (True, False)


def test_files() -> None:
    assert (format_of("visits.csv.gz"), format_of("a9a.xz")) == (".csv", "")
    assert (is_plain(Path("visits.csv")), is_plain(Path("visits.csv.gz"))) == (True, False)


def test_identity() -> None:
    assert as_column(np.array([[1], [2]])).tolist() == [1, 2]


def test_images() -> None:
    assert image_columns(pl.DataFrame({"file": ["1.png", "b/2.PNG", None], "note": ["a", "b", "c"]})) == ["file"]


def test_number_notation() -> None:
    assert (has_decimal_comma("3,5"), has_decimal_comma("1,2,3"), has_decimal_comma("3.5")) == (True, False, False)
    assert (has_thousands("1,234"), has_thousands("1.234,50"), has_thousands("3,5"), has_thousands("40")) == (
        True,
        True,
        False,
        False,
    )
    assert (
        are_decimal_commas(["3,5", "12"]),
        are_decimal_commas(["1,234", "12"]),
        are_decimal_commas(["1,234", "0,125"]),
    ) == (True, False, True)


def test_rows() -> None:
    assert without_columns(pl.DataFrame({"age": [39], "note": ["x"]}), ["note", "sex"]).columns == ["age"]
    assert list(with_text_names(pd.DataFrame([[1, 2, 3]], columns=[0, ("age", "years"), "sex"])).columns) == [
        "0",
        "age/years",
        "sex",
    ]
    assert flat_images(np.zeros((5, 28, 28))).shape == (5, 784)
    assert (holds_texts(["a good film", None]), holds_texts([[1.0], [2.0]]), holds_texts(np.array(["a", "b"]))) == (
        True,
        False,
        True,
    )
    assert texts_table(["a good film", None]).rows() == [("a good film",), (None,)]
    assert texts_like(["a good film"], pl.DataFrame({"review": ["a bad one"]})).rows(named=True) == [
        {"review": "a good film"}
    ]


def test_table_reader() -> None:
    assert (is_marked_missing(" N/A "), is_marked_missing("0")) == (True, False)


def test_unit_keys() -> None:
    keys = PositionKeys(3)
    assert (keys[2], keys.n_units, keys.named) == (b"row:\x00\x00\x00\x00\x00\x00\x00\x02", 3, False)
    assert (count_units([b"ann", b"bob", b"ann"]), count_units(PositionKeys(4))) == (2, 4)
