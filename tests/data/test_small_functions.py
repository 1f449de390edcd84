"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import polars as pl

from quorate.data.columns import column, in_words, is_plain_number, listed, names_columns, nearest
from quorate.data.database import is_database
from quorate.data.database_errors import refused_by_sqlite
from quorate.data.digests import order_of, pack
from quorate.data.feature_maps.patches import has_patches
from quorate.data.feature_maps.scale import holds_one_quantity, in_one_unit, is_one_quantity
from quorate.data.identity import as_column
from quorate.data.images import image_columns
from quorate.data.notation import (
    are_dates,
    date_like,
    microseconds,
    text_kind,
    time_type,
)
from quorate.data.rows import flat_images, holds_texts, texts_like, texts_table, with_text_names, without_columns
from quorate.data.unit_keys import PositionKeys, count_units


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
    assert order_of(np.array([2, 1, 2]), np.array([5, 9, 4])).tolist() == [1, 2, 0]


def test_feature_maps_patches() -> None:
    assert (has_patches((28, 28)), has_patches((8, 8)), has_patches((32, 32, 3))) == (True, False, False)


def test_feature_maps_scale() -> None:
    assert in_one_unit(np.array([[0.0, 8.0], [2.0, 4.0]])).scale.tolist() == [2.0, 2.0]
    pixels = np.random.default_rng(0).integers(0, 4, (50, 16)).astype(float)
    assert (holds_one_quantity(pixels), holds_one_quantity(pixels[:, :9])) == (True, False)
    assert (is_one_quantity(pixels), is_one_quantity(pixels * np.arange(1, 17))) == (True, False)


def test_identity() -> None:
    assert as_column(np.array([[1], [2]])).tolist() == [1, 2]


def test_images() -> None:
    assert image_columns(pl.DataFrame({"file": ["1.png", "b/2.PNG", None], "note": ["a", "b", "c"]})) == ["file"]


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


def test_unit_keys() -> None:
    keys = PositionKeys(3)
    assert (keys[2], keys.n_units, keys.named) == (b"row:\x00\x00\x00\x00\x00\x00\x00\x02", 3, False)
    assert (count_units([b"ann", b"bob", b"ann"]), count_units(PositionKeys(4))) == (2, 4)
