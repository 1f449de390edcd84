"""Examples of functions that nobody outside the room calls: what each returns for a value or two."""

import sqlite3

import numpy as np
import polars as pl
import pytest
from sklearn.preprocessing import MinMaxScaler

from quorate.data import digests
from quorate.data.cell_text import as_column
from quorate.data.columns import nearest, refuse_larger
from quorate.data.database import is_database, refused_by_sqlite
from quorate.data.dialect import records_of
from quorate.data.digests import pack
from quorate.data.feature_maps.first_maps import has_patches
from quorate.data.feature_maps.scale import (
    PoolScale,
    has_numbers,
    holds_one_quantity,
    in_one_unit,
    is_one_quantity,
    with_narrow,
)
from quorate.data.fixed_types import label_array
from quorate.data.formats import require_column
from quorate.data.images import image_columns
from quorate.data.labels import without_numbers
from quorate.data.notation import time_type, times_of_type
from quorate.data.rows import holds_texts, texts_like, texts_table, without_columns
from quorate.data.table_reader import unread_in_words
from quorate.data.unit_ids import UnitKeys, count_units
from quorate.errors import DataRefused


def test_database():
    assert (is_database("sqlite:///clinic.db"), is_database("clinic.csv")) == (True, False)
    error = sqlite3.OperationalError("no such column: ag")
    assert refused_by_sqlite(error, "select ag from v") == "names a column that is not there; see how it is spelt"


def test_date_notation():
    berlin = times_of_type([0, None], "datetime Europe/Berlin", "polars").to_list()
    assert [time and time.isoformat() for time in berlin] == ["1970-01-01T01:00:00+01:00", None]
    types = (pl.Date, pl.Datetime("ms", "UTC"))
    assert [time_type(pl.Series(dtype=type_)) for type_ in types] == ["date", "datetime UTC"]


def test_files():
    assert nearest("income", ["age", "label"]) == "; known: 'age', 'label'"
    with pytest.raises(DataRefused, match=r"^adult\.csv has no column 'incom'; did you mean 'income'"):
        require_column("incom", ["age", "income"], "adult.csv", public=["age"])
    open_record = records_of(['7;"tired', 'since May";yes', '8;5" tube;no', '9;"pale'], ";", '"', last=False)
    assert open_record == (['7;"tired\nsince May";yes', '8;5" tube;no'], ['9;"pale'])


def test_labels_and_words():
    assert [label_array(labels).dtype.kind for labels in ([7.0, float("nan")], ["a", 7.0])] == ["f", "O"]
    assert [without_numbers(cells) for cells in (["yes", "no"], ["n/a", "1.234,5"], [" "])] == ["no", None, None]
    assert unread_in_words({"CRP": 37, "PCT": 1}, "new.csv") == (
        "new.csv: 37 cells of column 'CRP' and 1 of 'PCT' are no numbers; they count as missing"
    )


def test_digests():
    digests = pack([bytes(16), b"0123456789abcdef"])
    assert (len(digests), digests[1], list(digests)) == (2, b"0123456789abcdef", [bytes(16), b"0123456789abcdef"])


def test_numbers_that_a_model_does_not_hold():
    with pytest.raises(DataRefused, match="X: a number in column 0 is larger than DecisionTreeClassifier holds"):
        refuse_larger(np.array([[1e39, 2.0]]), 3e38, name="X", taker="DecisionTreeClassifier")


def test_images():
    assert (has_patches((28, 28)), has_patches((8, 8)), has_patches((32, 32, 3))) == (True, False, False)
    assert image_columns(pl.DataFrame({"file": ["1.png", "b/2.PNG", None], "note": ["a", "b", "c"]})) == ["file"]


def test_feature_maps_scale():
    assert in_one_unit(np.array([[0.0, 8.0], [2.0, 4.0]])).scale.tolist() == [2.0, 2.0]
    pixels = np.random.default_rng(0).integers(0, 4, (50, 16)).astype(float)
    assert (holds_one_quantity(pixels), holds_one_quantity(pixels[:, :9])) == (True, False)
    assert (is_one_quantity(pixels), is_one_quantity(pixels * np.arange(1, 17))) == (True, False)
    ages = np.array([[0.0, 30.0], [1.0, 50.0], [1.0, 70.0]])
    assert [PoolScale.fit(ages[:, chosen]).differing for chosen in ([0, 1], [1, 1], [0, 0])] == [True, False, False]
    assert [has_numbers(ages[:, [at]]) for at in range(2)] == [False, True]
    ends = np.array([[0.0], [1e-18]])
    scalers = MinMaxScaler().fit(ends), with_narrow(MinMaxScaler().fit(ends))
    assert [float(scaler.transform(ends).max().round(6)) for scaler in scalers] == [0.0, 1.0]


def test_rows():
    assert as_column(np.array([[1], [2]])).tolist() == [1, 2]
    assert without_columns(pl.DataFrame({"age": [39], "note": ["x"]}), ["note", "sex"]).columns == ["age"]
    assert [holds_texts(X) for X in (["a good film", None], [[1.0], [2.0]], np.array(["a"]))] == [True, False, True]
    assert texts_table(["a good film", None]).rows() == [("a good film",), (None,)]
    assert texts_like(["a film"], pl.DataFrame({"review": ["a bad one"]})).to_dicts() == [{"review": "a film"}]


def test_unit_keys():
    keys = UnitKeys.of_positions(3)
    assert (keys[2], keys.n_units, keys.named) == (b"row:\x00\x00\x00\x00\x00\x00\x00\x02", 3, False)
    assert (count_units([b"ann", b"bob", b"ann"]), count_units(UnitKeys.of_positions(4))) == (2, 4)


@pytest.mark.parametrize("most", [0, 10_000])
def test_units_that_are_read_in_blocks_stand_as_they_first_occur(most, monkeypatch, tmp_path):
    monkeypatch.setattr(digests, "ORDERED_AT_ONCE", 20)
    rng = np.random.default_rng(1)
    units = [b"id:" + bytes([65 + each]) * int(each) for each in rng.integers(0, 60, 300)]
    units = [*units, b"", b"id:\xed\xb2\x80", b""]  # a row without an id, and a lone surrogate
    keys = UnitKeys.read((units[start : start + 41] for start in range(0, len(units), 41)), folder=tmp_path, most=most)
    assert list(keys) == units
    assert [unit for block in keys.blocks() for unit in block] == list(dict.fromkeys(units))
    assert keys.named
    assert list(tmp_path.iterdir()) == []
    assert list(UnitKeys.read([])) == []
