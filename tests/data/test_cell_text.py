"""One cell of any type, at its extremes, among others: each other cell stays what it is, and nothing raises."""

import datetime as dt
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate.data import cell_text
from quorate.data.cell_text import OUT_OF_RANGE, as_list, canonical_text
from quorate.data.columns import texts
from quorate.data.labels import codes_of
from quorate.data.unit_ids import usable_slots
from quorate.errors import DataRefused
from quorate.run.schema import Schema

EXTREMES = (2**63 - 1, -(2**63), 2**60, -(2**60), 253_402_300_800_000_000, -62_135_596_800_000_001)
POLARS = {
    "date": pl.Date, "ms": pl.Datetime("ms"), "us": pl.Datetime("us"), "ns": pl.Datetime("ns"),
    "zoned": pl.Datetime("us", "Asia/Tokyo"), "zoned ns": pl.Datetime("ns", "Asia/Tokyo"),
    "duration ms": pl.Duration("ms"), "duration us": pl.Duration("us"), "duration ns": pl.Duration("ns"),
}  # fmt: skip
ARROW = {
    "date32": pa.date32(), **{unit: pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    "zoned": pa.timestamp("us", tz="America/New_York"), "zoned ns": pa.timestamp("ns", tz="Asia/Tokyo"),
    **{f"duration {unit}": pa.duration(unit) for unit in ("s", "ms", "us")},
}  # fmt: skip


def polars_column(dtype, integers):
    whole = pl.Int32 if dtype == pl.Date else pl.Int64
    return pl.Series("seen", integers, dtype=whole).cast(dtype)


def arrow_column(dtype, integers):
    whole = pa.int32() if dtype == pa.date32() else pa.int64()
    return pd.Series(pa.array(integers, type=whole).cast(dtype), dtype=pd.ArrowDtype(dtype), name="seen")


def zoned_column(unit, integers):
    """A column of pandas whose last moment has a local time beyond 64 bits, which fails where all are read at once."""
    whole = [-(2**63) if at is None else at for at in integers]
    moments = pd.Series(np.array(whole, dtype=np.int64).view(f"datetime64[{unit}]"), name="seen")
    return moments.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")


def categories_column(unit, integers):
    return zoned_column(unit, integers).astype("category")


COLUMNS = {
    **{f"pandas zoned {unit}": partial(zoned_column, unit) for unit in ("s", "us", "ns")},
    **{f"pandas categories {unit}": partial(categories_column, unit) for unit in ("s", "us", "ns")},
    **{f"polars {name}": partial(polars_column, dtype) for name, dtype in POLARS.items()},
    **{f"arrow {name}": partial(arrow_column, dtype) for name, dtype in ARROW.items()},
}
every_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)


def extremes(column):
    try:
        column([2**60])
    except (TypeError, OverflowError, pl.exceptions.PolarsError, pa.ArrowException):  # days are of 32 bits
        return (2**31 - 1, -(2**31), 3_000_000, -800_000)
    return EXTREMES


@pytest.mark.default_cases(2)
@every_column
def test_a_time_beyond_python_changes_no_other_cell_and_says_nothing(column, capfd):
    plain = as_list(column([0, None, 86_400]))
    assert plain[1] is None or plain[1] is pd.NA or pd.isna(plain[1])
    for hostile in extremes(column):
        values = as_list(column([0, None, 86_400, hostile]))
        said = [[None if pd.isna(value) else str(value) for value in cells[:3]] for cells in (values, plain)]
        assert said[0] == said[1]
        assert values[3] is OUT_OF_RANGE or isinstance(values[3], (dt.date, dt.timedelta)) or pd.isna(values[3])
        slots = usable_slots(column([0, None, 86_400, hostile]), 4)
        assert list(slots[:3]) == list(usable_slots(column([0, None, 86_400]), 3))
        assert codes_of(column([0, hostile]), ("a", "b")).tolist() == [-1, -1]
    assert capfd.readouterr() == ("", "")


def test_the_last_days_are_read_what_is_nested_is_no_value_and_what_is_out_of_range_is_neither_shown_nor_missing():
    ends = [dt.date.min, dt.date.max]
    assert as_list(pl.Series(ends)) == ends
    moments = [dt.datetime.min, dt.datetime.max]  # noqa: DTZ901 - columns without a zone hold such
    assert as_list(pl.Series(moments, dtype=pl.Datetime("us"))) == moments
    assert as_list(pl.Series([[dt.date(2024, 1, 1)], None])) == [OUT_OF_RANGE, None]
    assert repr(OUT_OF_RANGE) == "<out of range>"
    assert canonical_text(OUT_OF_RANGE) is None


@pytest.mark.default_cases(2)
@every_column
@pytest.mark.parametrize("held", ["date", "text"])
def test_a_direct_run_leaves_the_row_out_and_no_other(column, held, capfd):
    entries = {"date": [dt.date(2024, 3, day) for day in range(1, 9)], "text": ["north", "south"] * 4}[held]
    frames = pd.DataFrame if isinstance(column([0]), pd.Series) else pl.DataFrame
    schema = Schema.of(frames({"age": np.arange(8.0), "seen": entries}))
    plain, kept = schema.parsed(frames({"age": [1.0, 2.0], "seen": column([0, 86_400])}))
    for hostile in extremes(column)[:2]:
        rows, usable = schema.parsed(frames({"age": [1.0, 2.0, 3.0], "seen": column([0, 86_400, hostile])}))
        assert usable[:2].tolist() == kept.tolist()
        assert rows[:2].equals(plain)
    assert capfd.readouterr() == ("", "")


@pytest.mark.default_cases(3)
@every_column
def test_votes_refuse_such_a_column_in_one_line_without_the_cell(column, capfd):
    hostile = next((n for n in extremes(column) if as_list(column([n]))[0] is OUT_OF_RANGE), None)
    if hostile is None:  # such a unit has no other
        assert len(texts(column([0]))) == 1
        return
    with pytest.raises(DataRefused, match="column 'seen' holds a date or a duration beyond") as refusal:
        texts(column([0, hostile]))
    assert str(hostile) not in str(refusal.value)
    if column([0]).dtype == "category":  # an entry that no cell has refuses nothing
        assert len(texts(column([0, hostile])[:1])) == 1
    assert capfd.readouterr() == ("", "")


WARDS = [1, 2, 3, 2]
CONTAINERS = {
    "pandas int": lambda cells: pd.DataFrame({"ward": cells}),
    "pandas object": lambda cells: pd.DataFrame({"ward": pd.Series(cells, dtype=object)}),
    "pandas nullable": lambda cells: pd.DataFrame({"ward": pd.Series(cells, dtype="Int64")}),
    "pandas category": lambda cells: pd.DataFrame({"ward": pd.Series(cells).astype("category")}),
    "pandas Arrow": lambda cells: pd.DataFrame({"ward": pd.Series(cells, dtype=pd.ArrowDtype(pa.int64()))}),
    "polars int": lambda cells: pl.DataFrame({"ward": pl.Series(cells, dtype=pl.Int64)}),
    "polars float": lambda cells: pl.DataFrame({"ward": pl.Series(cells, dtype=pl.Float64)}),
    "polars object": lambda cells: pl.DataFrame({"ward": pl.Series(cells, dtype=pl.Object)}),
}


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("pool", [["1", "2", "3", "north"], ["1.0", "2.0", "3.0", "north"]], ids=["digits", "points"])
@pytest.mark.parametrize("hostile", [None, float("nan")])
@pytest.mark.parametrize("container", CONTAINERS)
def test_a_missing_number_changes_no_other_word_of_its_column(container, hostile, pool):
    frame = CONTAINERS[container]
    public = pl.DataFrame({"ward": pool * 4})
    schema = Schema.of(public.to_pandas() if container.startswith("pandas") else public)
    plain = as_list(schema.parsed(frame(WARDS))[0]["ward"])
    assert plain == [pool[number - 1] for number in WARDS]
    if "nullable" in container or "Arrow" in container or "polars int" in container:
        hostile = None
    assert as_list(schema.parsed(frame([*WARDS, hostile]))[0]["ward"])[:4] == plain


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("hostile", ["", "north", 1e300, 2**63, True, 1.5, 10**5000, -(10**4300), 10**400], ids=type)
def test_nor_does_any_other_cell_and_one_that_python_does_not_write_makes_its_own_row_unusable_alone(hostile):
    schema = Schema.of(pd.DataFrame({"ward": ["1", "2", "3", "north"] * 4}))
    rows, usable = schema.parsed(pd.DataFrame({"ward": pd.Series([*WARDS, hostile])}))
    assert rows["ward"].tolist()[:4] == ["1", "2", "3", "2"]
    assert usable[:4].all()


def fails(*_):
    raise RuntimeError("a private value")


EVIL = {
    "int": type("Whole", (int,), {"__float__": fails, "__index__": fails, "__str__": fails, "__hash__": fails})(3),
    "float": type("Real", (float,), {"__float__": fails, "is_integer": fails, "__eq__": fails, "__hash__": fails})(3.5),
    "str": type("Text", (str,), dict.fromkeys(("strip", "lower", "encode", "__hash__", "__eq__"), fails))("3"),
    "date": type("Day", (dt.date,), {"isoformat": fails, "toordinal": fails, "__hash__": fails})(2020, 1, 1),
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("kind", EVIL)
def test_an_object_that_raises_where_it_is_read_changes_no_other_row(kind):
    columns = {"ward": ["1", "2", "3", "north"], "size": [1.5, 2.0, 3.0, 4.0], "day": [dt.date(2020, 1, 1)] * 4}
    schema = Schema.of(pl.DataFrame({name: cells * 4 for name, cells in columns.items()}).to_pandas())
    plain = schema.parsed(pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()}))[0]
    for name in columns:
        hostile = {each: [*cells, EVIL[kind] if each == name else cells[0]] for each, cells in columns.items()}
        frame = pd.DataFrame({each: pd.Series(cells, dtype=object) for each, cells in hostile.items()})
        read = schema.parsed(frame)[0]
        for each in columns:
            assert as_list(read[each])[:4] == as_list(plain[each])
    assert usable_slots(["a", EVIL[kind], "b"], 3) is not None
    assert codes_of(["1", EVIL[kind], "2"], ["1", "2"]).tolist()[::2] == [0, 1]


def test_a_cell_that_recurs_is_read_once_and_truth_values_are_no_numbers():
    asked = []

    def read(cell):
        asked.append(cell)
        return repr(cell)

    cells = [True, 1, "1", 1.0, True, 1, "1", 1.0, np.int64(1)]
    assert cell_text.each(read, cells) == [repr(cell) for cell in cells]
    assert [repr(cell) for cell in asked] == ["True", "1", "'1'", "1.0", "1.0", repr(np.int64(1))]
