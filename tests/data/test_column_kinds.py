"""What columns are read as: by a public rule on the pool, by what the owner says, and never by a private cell."""

import datetime as dt
import math
from enum import Enum
from time import process_time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from quorate import PublicPool
from quorate.data import public_encoder
from quorate.data.column_kinds import ColumnKinds, GivenKinds, column_kinds, text_column_kind
from quorate.data.notation import number, time_number, written_number
from quorate.data.rows import as_rows, take
from quorate.errors import InvalidParameter

WORDS = ["cough", "fever", "ache", "well", "fine", "healthy", "rest", "seen", "again", "tomorrow"]
FIRST, EPOCH = dt.datetime.fromisoformat("2024-01-01T08:00"), dt.datetime.fromisoformat("1970-01-01")


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    days = [FIRST + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9_000, n)]
    return pl.DataFrame(
        {
            "age": rng.integers(18, 95, n),
            "ward": rng.choice(["north", "south"], n),
            "patient": [f"P{seed}{i:05d}" for i in range(n)],
            "zip": [f"{9_000 + i % (n // 2)}" for i in range(n)],
            "note": [" ".join(rng.choice(WORDS, 5)) + f" {i}" for i in range(n)],
            "seen": [f"{day:%Y-%m-%d}" for day in days],
            "came": days,
            "at": [f"{day:%H:%M}" for day in days],
            "stayed": [day - days[0] for day in days],
            "lab": [f"{x:.2f}" if i % 9 else "n/a" for i, x in enumerate(rng.normal(size=n))],
        }
    )


KINDS = {
    "age": "number", "ward": "category", "patient": "dropped", "zip": "category", "note": "text", "seen": "date",
    "came": "date", "at": "time", "stayed": "duration", "lab": "number",
}  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize("frame", [lambda t: t, lambda t: pd.DataFrame(t.to_dict(as_series=False))], ids=["pl", "pd"])
def test_each_column_is_read_as_what_it_is_in_either_library(frame):
    pool = frame(table())
    kinds = column_kinds(pool)
    assert kinds.kinds == KINDS
    read = kinds(pool)
    assert list(read.columns) == [name for name in KINDS if name != "patient"]
    assert as_rows(kinds(read)) is not None
    assert kinds(read)["came"].to_list() == read["came"].to_list()  # what was read is left as it is
    want = [(day - EPOCH).total_seconds() / 86_400 for day in table()["came"].to_list()]
    assert np.allclose(read["came"].to_list(), want, rtol=0, atol=1e-9)
    assert np.isnan(read["lab"].to_list()[0])
    alone = [kinds(take(pool, [i])) for i in range(60)]
    for name in read.columns:
        assert repr([one[name].to_list()[0] for one in alone]) == repr(read[name].to_list())


def test_no_private_cell_changes_what_another_is_read_as():
    kinds, private = column_kinds(table()), table(40, seed=1)
    odd = private.clone()
    odd[7, "seen"], odd[7, "at"], odd[7, "lab"], odd[7, "note"], odd[7, "zip"] = "soon", "noon", "high", None, "x y z"
    before, after = kinds(private), kinds(odd)
    others = [i for i in range(40) if i != 7]
    assert repr(before[others].rows()) == repr(after[others].rows())
    assert after.dtypes == before.dtypes
    assert np.isnan(after[7, "seen"])
    assert after[7, "note"] == ""
    cheating, of_odd = (column_kinds(rows)(rows) for rows in (private, odd))  # a twin: the rule asked about its rows
    assert cheating.dtypes != of_odd.dtypes


def test_the_owner_says_otherwise():
    given = GivenKinds.of(text="ward", categorical=["age", "note"], numeric=["zip"], drop=["came"])
    kinds = column_kinds(table(), given)
    assert [kinds.kinds[name] for name in ("ward", "age", "note", "zip", "came", "patient")] == [
        "text", "category", "category", "number", "dropped", "dropped",
    ]  # fmt: skip
    read = kinds(table())
    assert read["age"][0] == str(table()["age"][0])
    assert read["zip"].dtype == pl.Float64
    pool = PublicPool(table(), dates=["seen"], drop=["at"])
    assert PublicPool(pool).given == pool.given


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"text": ["notes"]}, "text names 'notes', which is no column of the public rows; did you mean 'note'"),
        ({"text": ["age"]}, "holds no text, but numbers"),
        ({"dates": ["ward"]}, "holds no date in ISO 8601"),
        ({"numeric": ["ward"]}, "holds no number"),
        ({"categorical": ["came"]}, "holds dates or times"),
        ({"text": ["note"], "drop": ["note"]}, "more than once"),
        ({"text": 7}, "must name columns"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given, told):
    with pytest.raises(InvalidParameter, match=told) as refusal:
        PublicPool(table(), **given)
    assert "\n" not in str(refusal.value)


def test_columns_of_an_array_have_no_names():
    assert column_kinds(np.zeros((3, 2))) == ColumnKinds()
    with pytest.raises(InvalidParameter, match="give a data frame"):
        PublicPool(np.zeros((3, 2)), text=["note"])


def test_dates_that_other_countries_read_otherwise_are_no_dates():
    assert text_column_kind([f"{i % 12 + 1:02d}/{i % 28 + 1:02d}/2024" for i in range(60)], 60) == "category"
    assert np.isnan(time_number("2024-02-30", "date"))
    assert np.isnan(time_number("24:00", "time"))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1969-12-31T12:00", -0.5),
        ("2024-03-01 00:00:00.5+00:30", 19783 + (0.5 - 1800) / 86_400),
        ("2024/03/01", 19783.0),
        ("2024-03", 19783.0),
        ("2024-03-01T00:00:00Z", 19783.0),
    ],
)
def test_a_date_is_days_in_utc(text, value):
    assert time_number(text, "date") == pytest.approx(value, abs=1e-11)


def test_one_instant_is_one_number_however_it_is_written():
    noon = dt.datetime(2024, 3, 1, 12, 0, 0, 123_456, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    forms = [
        pl.DataFrame({"t": pl.Series([noon]).dt.convert_time_zone("Europe/Berlin")}),
        pd.DataFrame({"t": pd.to_datetime([noon.isoformat()])}),
        pl.DataFrame({"t": [noon.isoformat()]}),
    ]
    values = {float(ColumnKinds({"t": "date"}, frozenset({"t"}))(form)["t"].to_list()[0]) for form in forms}
    assert values == {time_number("2024-03-01T10:00:00.123456Z", "date")}


@pytest.mark.parametrize("frame", [lambda t: t, lambda t: pd.DataFrame(t.to_dict(as_series=False))], ids=["pl", "pd"])
def test_a_decimal_comma_in_the_pool_is_read_as_a_point_in_every_table(frame):
    kinds = column_kinds(frame(pl.DataFrame({"bmi": ["27,5", "30", "n/a"], "pay": ["1,234", "950", None]})))
    assert kinds.kinds == {"bmi": "number", "pay": "category"}
    assert kinds.commas == {"bmi"}
    read = kinds(frame(pl.DataFrame({"bmi": ["22,125", "22.5", "1,2,3"], "pay": ["1,234", "2", "x"]})))
    assert repr(read["bmi"].to_list()) == "[22.125, 22.5, nan]"
    assert read["pay"].to_list() == ["1,234", "2", "x"]


def test_the_owner_says_what_a_comma_with_three_digits_is():
    pool = pl.DataFrame({"pay": ["1,234", "950"] * 20})
    kinds = column_kinds(pool, GivenKinds(numeric=("pay",)))
    assert kinds(pool)["pay"].to_list()[:2] == [1.234, 950.0]
    assert column_kinds(pool, GivenKinds(categorical=("pay",))).commas == frozenset()


def test_private_commas_decide_on_nothing():
    kinds = column_kinds(pl.DataFrame({"lab": ["2.5", "3", "NA"]}))
    assert kinds.kinds["lab"] == "number"
    assert np.isnan(kinds(pl.DataFrame({"lab": ["2,5"]}))["lab"][0])  # the pool does not say that commas are decimal


@pytest.mark.default_cases(8)
@pytest.mark.parametrize(
    ("cell", "value"),
    [("12", 12.0), (" -1.5 ", -1.5), ("+.5", 0.5), ("5.", 5.0), ("1E-3", 1e-3), ("inf", math.inf)]
    + [(cell, math.nan) for cell in ("1_2", "\u0661\u0662", "\uff11", "1e", "0x1f", "1 2", "", ".")],
)
def test_what_tables_write_as_a_number_is_one_and_nothing_else(cell, value):
    """Also in a private cell: there is one rule for both."""
    assert repr(written_number(cell)) == repr(number(cell)) == repr(value)


@pytest.mark.parametrize("form", ["{0}_{1}", "{0}_{1}_{1}"])
def test_codes_with_underscores_beside_a_mark_are_categories(form):
    codes = [form.format(i % 3, i % 2) for i in range(60)]
    read = column_kinds(pl.DataFrame({"code": [*codes, "n/a"], "age": [*map(str, range(60)), "n/a"]}))
    assert read.kinds == {"code": "category", "age": "number"}


WRITTEN = {
    "a list of texts": lambda cells: pd.Series(cells, dtype=object),
    "str": lambda cells: pd.Series(cells, dtype="str"),
    "string": lambda cells: pd.Series(cells, dtype="string"),
    "categories": lambda cells: pd.Series(cells, dtype="category"),
    "Arrow": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.string())),
    "polars": lambda cells: pl.Series(cells, dtype=pl.String),
    "polars' categories": lambda cells: pl.Series(cells, dtype=pl.Categorical),
    "polars' enumeration": lambda cells: pl.Series(cells, dtype=pl.Enum([cell for cell in cells if cell is not None])),
}


@pytest.mark.parametrize("container", WRITTEN)
def test_a_word_is_the_public_entry_that_says_the_same_in_every_container(container):
    """Padded, decomposed, a whole number with a point; other letters are another word, and a missing one is missing."""
    pool = pl.DataFrame({"ward": ["north", "Zürich", "7"] * 20, "age": range(60)})
    kinds = column_kinds(pool)
    cells = WRITTEN[container]([" north  ", "Zu\u0308rich", "7.0", "NORTH", None])
    frame = pd.DataFrame if isinstance(cells, pd.Series) else pl.DataFrame
    read = kinds(frame({"ward": cells, "age": range(5)}))["ward"]
    assert [None if pd.isna(cell) else cell for cell in list(read)] == ["north", "Zürich", "7", "NORTH", None]
    assert kinds.respells(frame({"ward": cells}))
    assert not kinds.respells(frame({"ward": cells[3:]}))


def test_numbers_and_members_of_an_enumeration_are_the_public_words_that_say_the_same():
    kinds = column_kinds(pl.DataFrame({"code": ["7", "1"] * 30, "sure": ["True", "False"] * 30}))

    class Code(str, Enum):  # noqa: UP042 - members that are texts too
        SEVEN = "7"

    for cells in ([7, 1], [7.0, 1.0], ["7", "1.0"], [Code.SEVEN, "1"], np.array([7, 1], dtype=np.int8)):
        read = kinds(pd.DataFrame({"code": cells, "sure": [True, False]}))
        assert read["code"].tolist() == ["7", "1"]
        assert read["sure"].tolist() == ["True", "False"]
        assert all(type(cell) is str for cell in read["code"].tolist())


def test_of_two_public_spellings_the_commoner_is_the_entry_and_case_is_none():
    cells = ["north "] * 30 + ["north"] * 20 + ["North"] * 10
    kinds = column_kinds(pl.DataFrame({"ward": cells}))
    read = kinds(pl.DataFrame({"ward": ["north", "\tnorth", "North ", "NORTH"]}))["ward"].to_list()
    assert read == ["north ", "north ", "North", "NORTH"]


@pytest.mark.heavy
def test_words_are_looked_at_once_each_so_that_two_million_cells_cost_little():
    """Compared with the encoder that follows, which looks at every cell."""
    pool = pd.DataFrame({"ward": ["north", "south", "west"] * 400})
    kinds, encoder = column_kinds(pool), public_encoder(pool)
    rows = pd.DataFrame({"ward": np.random.default_rng(0).choice(["north", "south", "west"], 2_000_000)})
    took = {}
    for name, act in (("words", kinds), ("encoder", encoder.transform)):
        begun = process_time()
        act(rows)
        took[name] = process_time() - begun
    assert took["words"] < 0.25 * took["encoder"]
