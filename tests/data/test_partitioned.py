"""Tables in parts: a part's types decide nothing, a folder's name is a cell, a part that does not fit is a line."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from quorate.data import PublicPool, column_names, read_batches, read_cells, read_data, read_table
from quorate.data.column_kinds import GivenKinds
from quorate.data.formats.columnar import PartitionedParquet
from quorate.data.labels import codes_of
from quorate.data.stream import PartedFrame, Workspace
from quorate.errors import DataRefused, PreconditionFailed
from quorate.run.schema import Schema
from quorate.run.usable_rows import PrivateTable, labels_and_slots

PUBLIC = pl.DataFrame({
    "age": [30, 41, 52, 63, 20, 77] * 5,
    "dose": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5] * 5,
    "ward": ["1", "2", "1", "2", "1", "3"] * 5,
    "seen": [f"2024-03-{day:02d}" for day in range(1, 31)],
})  # fmt: skip
PART = pl.DataFrame({
    "age": [30, 41, 52], "dose": [1.0, 2.0, 3.0], "ward": ["1", "2", "1"],
    "seen": ["2024-03-01", "2024-03-02", "2024-03-03"], "ill": ["1", "0", "1"], "who": ["1", "2", "3"],
})  # fmt: skip
DAYS = [dt.date(2024, 3, day) for day in (1, 2, 3)]
# The same cells in types that a library may have given them; what stands last is missing or of another kind.
FORMS = {
    "age": [
        pl.Series([30.0, 41.0, 52.0]), pl.Series(["30", "41", "52"]), pl.Series([30, 41, 52], dtype=pl.Int16),
        pl.Series([Decimal(30), Decimal(41), Decimal(52)]), pl.Series([None, None, None]), pl.Series([30, None, None]),
        pl.Series(["thirty", "41", "2e400"]), pl.Series([float("nan"), 2.0**63, 1e300]),
    ],
    "dose": [pl.Series([1, 2, 3]), pl.Series(["1.0", "2", "3"]), pl.Series([None] * 3), pl.Series([True, False, True])],
    "ward": [
        pl.Series([1, 2, 1]), pl.Series([1.0, 2.0, 1.0]), pl.Series(["1", "2", "1"], dtype=pl.Categorical),
        pl.Series([None] * 3), pl.Series(["9", None, "1"]), pl.Series([b"1", b"2", b"1"]),
    ],
    "seen": [
        pl.Series(DAYS), pl.Series(DAYS).cast(pl.Datetime("us")), pl.Series(DAYS).cast(pl.Datetime("ms", "UTC")),
        pl.Series([None] * 3), pl.Series(["soon", None, ""]),
    ],
    "ill": [pl.Series([1, 0, 1]), pl.Series([1.0, None, 0.0]), pl.Series([None] * 3), pl.Series([True, False, True])],
    "who": [pl.Series([1, 2, 3]), pl.Series([None] * 3), pl.Series(["P1", None, "2.0"])],
}  # fmt: skip
CASES = [(name, form) for name, forms in FORMS.items() for form in range(len(forms))]


def folder_of(root, *parts):
    for number, rows in enumerate(parts):
        place = root / f"{number:03d}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        rows.write_parquet(place)
    return root


def read(table):
    return read_cells(table, label="ill", unit="who", n_features=1)


def everything_read(table):
    """Return what a run takes of each row: its cells in the pool's terms, whether it counts, its class, its unit."""
    pool = PublicPool.described(PUBLIC, GivenKinds(categorical=("ward",), dates=("seen",)))
    schema = Schema.of(pool.rows(), given=pool.given)
    held = read(table)
    rows, usable = [], []
    for _, block, counts in PrivateTable(schema, held.X).parsed():
        rows += block.rows()
        usable += counts.tolist()
    how = {"codes": lambda part: codes_of(part, ("0", "1")), "last": 1}
    codes, slots = labels_and_slots(held.y, held.unit, len(held.X), **how)
    return [repr(row) for row in rows], usable, codes.tolist(), list(slots)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("name", "form"), CASES)
def test_the_type_that_a_column_has_in_one_part_changes_no_row_of_another(name, form, tmp_path):
    other = PART.with_columns(FORMS[name][form].alias(name))
    plain = everything_read(folder_of(tmp_path / "plain", PART, PART.head(0), PART))
    mixed = everything_read(folder_of(tmp_path / "mixed", PART, PART.head(0), other, PART))
    for same, seen in zip(plain, mixed, strict=True):
        assert seen[:3] == same[:3]
        assert seen[6:] == same[3:]
    other.write_parquet(alone := tmp_path / "alone.parquet")
    for same, seen in zip(everything_read(alone), mixed, strict=True):
        assert seen[3:6] == same


def test_that_test_catches_a_reader_that_gives_all_parts_one_type(tmp_path, monkeypatch):
    def of_one_type(self, path, columns, right=PartitionedParquet.cell_parts):
        parts = list(right(self, path, columns))
        numbers = any(part["ward"].dtype.is_numeric() for part in parts if "ward" in columns)
        return [part.cast({"ward": pl.Float64}, strict=False) if numbers else part for part in parts]

    named = PART.with_columns(ward=pl.Series(["north", "2", "1"]))
    numbered = PART.with_columns(ward=pl.Series([1, 2, 1]))
    tables = [folder_of(tmp_path / "a", named, named), folder_of(tmp_path / "b", named, numbered)]
    right = [everything_read(table)[0][:3] for table in tables]
    monkeypatch.setattr(PartitionedParquet, "cell_parts", of_one_type)
    wrong = [everything_read(table)[0][:3] for table in tables]
    assert right[0] == right[1] == wrong[0] != wrong[1]


def test_ids_of_floats_in_one_part_are_a_column_of_floats(tmp_path):
    table = folder_of(tmp_path / "t", PART, PART.with_columns(who=pl.Series([2.0, None, 2.0**53])))
    ids = read(table).unit
    assert ids.dtype == pl.Float64  # which its owner is asked about
    assert ids.to_list() == [1.0, 2.0, 3.0, 2.0, None, None]


def test_the_name_of_a_folder_is_a_cell_as_it_is_written(tmp_path):
    rows = PART.drop("ward")
    for number, name in enumerate(
        ["ward=1", "ward=%32", "ward=__HIVE_DEFAULT_PARTITION__", "ward=a%2Fb%3D c", "ward="]
    ):
        place = tmp_path / "t" / "plain" / name / f"part-{number}.parquet"
        place.parent.mkdir(parents=True)
        rows.write_parquet(place)
    (tmp_path / "t" / "_SUCCESS").write_bytes(b"")
    (tmp_path / "t" / "_old.parquet").write_bytes(b"no table")
    (tmp_path / "t" / ".hidden").mkdir()
    rows.drop("age").write_parquet(tmp_path / "t" / ".hidden" / "0.parquet")
    assert column_names(tmp_path / "t") == [*rows.columns, "ward"]
    table = read_table(tmp_path / "t")
    in_order = [None] * 3 + ["2"] * 3 + ["1"] * 3 + [None] * 3 + ["a/b= c"] * 3
    assert table["ward"].dtype == pl.String
    assert table["ward"].to_list() == in_order
    assert read(tmp_path / "t").X.columns == ["age", "dose", "seen", "ward"]
    labels = read_cells(tmp_path / "t", label="ward", n_features=1)
    assert list(labels.y) == in_order
    assert pl.concat(read_batches(tmp_path / "t", columns=["ward"], batch_rows=2))["ward"].to_list() == in_order
    assert read_table(tmp_path / "t" / "plain" / "ward=[!_]*" / "*.parquet").height == 9
    assert read_table(tmp_path / "t" / "*" / "ward=1").height == 3


def test_a_table_that_is_held_has_the_least_types_that_hold_all_parts(tmp_path):
    parts = [
        pl.DataFrame({"a": [1], "b": [1], "c": [None], "d": [1], "e": [2**60 + 1], "f": [dt.date(2024, 3, 1)]}),
        pl.DataFrame({"a": [2.5], "b": ["x"], "c": [None], "d": [True], "e": ["P1"], "f": ["soon"]}),
        pl.DataFrame({"a": [None], "b": [2.0], "c": ["y"], "d": [3], "e": [None], "f": [None]}),
    ]
    table = folder_of(tmp_path / "t", *parts)
    held = read_data(table, label=None, unit="e")
    assert held.X.rows() == [
        (1.0, "1", None, 1, "2024-03-01"), (2.5, "x", None, 1, "soon"), (None, "2", "y", 3, None)
    ]  # fmt: skip
    assert held.unit == [str(2**60 + 1), "P1", None]
    streamed = read_data(table, label=None, unit="e", memory=0, workspace=Workspace(lambda: tmp_path))
    assert streamed.X.collect().equals(held.X)
    assert streamed.unit.series.to_list() == held.unit


def test_each_part_that_does_not_fit_is_one_line_and_no_cell_of_it_is_said(tmp_path):
    table = folder_of(tmp_path / "t", *[PART] * 50)
    PART.drop("dose").write_parquet(table / "003.parquet")
    PART.head(0).write_parquet(table / "004.parquet")
    (table / "005.parquet").write_bytes(b"no table at all")
    (table / "006.parquet").write_bytes(b"")
    PART.with_columns(extra=pl.lit(7_777)).write_parquet(table / "007.parquet")
    PART.with_columns(dose=pl.Series([[7_777.0], [], []])).write_parquet(table / "008.parquet")
    (table / "dose=1").mkdir()
    PART.write_parquet(table / "dose=1" / "0.parquet")
    with pytest.raises(DataRefused) as refused:
        read(table)
    lines = str(refused.value).splitlines()
    assert [Path(line.split(": ")[0]).relative_to(table).as_posix() for line in lines] == [
        "003.parquet", "005.parquet", "006.parquet", "007.parquet", "008.parquet", "dose=1/0.parquet",
    ]  # fmt: skip
    assert "lacks the column 'dose'" in lines[0]
    assert "damaged, or not Parquet" in lines[1]
    assert "has the column 'extra'" in lines[3]
    assert "lists or structures" in lines[4]
    assert "7777" not in str(refused.value)
    for name in ("003", "005", "006", "007", "008", "dose=1/0"):
        (table / f"{name}.parquet").unlink()
    assert len(read(table).X) == 45 * 3 - 3


def test_a_part_that_is_changed_added_or_broken_later_stops_the_pass(tmp_path):
    table = folder_of(tmp_path / "t", PART, PART)
    frame = read(table).X
    assert isinstance(frame, PartedFrame)
    PART.write_parquet(table / "9.parquet")
    with pytest.raises(PreconditionFailed, match="was changed while it was read"):
        list(frame.blocks(2))
    frame = read(table).X
    content = bytearray((table / "9.parquet").read_bytes())
    content[8:40] = bytes(32)  # the first page, behind a sound end of the file
    (table / "9.parquet").write_bytes(content)
    with pytest.raises((DataRefused, PreconditionFailed)) as refused:
        list(read(table).X.blocks(2))
    assert "2024" not in str(refused.value)


def test_what_is_no_table_in_parts_says_what_to_type(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataRefused, match=r"empty: this is a folder and holds no \.parquet file"):
        read_table(tmp_path / "empty")
    with pytest.raises(DataRefused, match=r"\*\.parquet: no \.parquet file has such a name"):
        read_table(tmp_path / "*.parquet")
    nothing = folder_of(tmp_path / "nothing", PART.head(0), PART.head(0))
    assert len(read(nothing).X) == 0
    with pytest.raises(DataRefused, match="holds no row"):
        read_data(nothing)
    assert np.shape(read_table(nothing)) == (0, 6)
