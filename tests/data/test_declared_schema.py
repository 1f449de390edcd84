"""A declared schema: what is refused, the cell of each entry by a slow second way, and that no cell moves another's."""

import datetime as dt
import math
import struct
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate.data.declared_schema import MOST_VALUES, NumberColumn, Schema, bounds_as_texts
from quorate.data.formats import format_for
from quorate.data.rows import take
from quorate.data.schema_encoder import declared_columns, declared_kinds
from quorate.deferred import skops
from quorate.errors import InvalidParameter, naming

DAY = dt.date(2020, 2, 29)
NOON = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - without a zone, as bounds are written


def column(declared):
    return Schema({"x": declared}).columns["x"]


def test_each_spelling_declares_what_it_says():
    spellings = {  # as it is declared, and as facts tell it
        "age": ([0, 120], [0, 120]),
        "share": ((0.0, 1), [0.0, 1.0]),
        "sex": (("F", "M"), ["F", "M"]),
        "code": (["0", "1.0"], ["0", "1"]),
        "flag": ([True, False], [True, False]),
        "written": (["False", "true"], [False, True]),
        "income": ("number", "number"),
        "day": ((DAY, dt.date(2024, 1, 1)), {"dates": ["2020-02-29", "2024-01-01"]}),
        "instant": ((NOON, dt.date(2024, 1, 1)), {"dates": ["2020-01-01T12:00:00", "2024-01-01T00:00:00"]}),
        "note": ("drop", "drop"),
    }
    schema = Schema({name: declared for name, (declared, _) in spellings.items()})
    assert schema.facts == {name: told for name, (_, told) in spellings.items()}
    assert (schema.dropped, list(schema.columns)) == (("note",), list(spellings)[:-1])
    grids = [held.grid for held in schema.columns.values() if isinstance(held, NumberColumn)]
    assert grids == ["int", "real", "real", "date", "time"]
    assert Schema.of(schema) is schema


MANY = [str(number) for number in range(MOST_VALUES + 1)]
#: What columns take that are not counted: narrow bounds, truth values as numbers, any texts.
TAKEN = [
    {"age": [0.0, 5e-324]}, {"age": [False, 3]}, {"code": ["1", "1.0"]}, {"sex": ["F", " "]}, {"code": MANY},
]  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({}, "must name the columns"),
        (["age"], "must name the columns"),
        ({7: [0, 1]}, "names of columns"),
        ({"age": "?", "sex": "?"}, "still open: columns 'age', 'sex'"),
        *(({"note": kind}, 'write "drop"') for kind in ("text", "images")),
        ({"note": "drop"}, "drops every column"),
        *(
            ({"age": wrong}, "'age'")
            for wrong in ([], [0], [3, 3], [5, 1], [0, math.inf], [-1e308, 1.7e308], [0.0, 5e-324])
        ),
        *(({"age": wrong}, "'age'") for wrong in ([0, 10**400], [False, 3], [DAY, 3], "numbers")),
        ({"sex": ["F", "F"]}, "twice"),
        ({"code": ["1", "1.0"]}, "twice"),
        ({"sex": ["F", " "]}, "missing value"),
        ({"sex": ["F", None]}, "'sex'"),
        ({"code": MANY}, "10,001"),
        ({"sex": ["F", 1]}, "'sex'"),
        ({"sex": np.array(["F", "M"])}, "'sex' is declared as ndarray of shape (2,); expected bounds"),
        ({"sex": pd.Series(["F", "M"])}, "'sex' is declared as Series of shape (2,)"),
        ({"sex": pd.NA}, "'sex' is declared as <NA>"),
        ({"sex": "FM"}, "'sex'"),
    ],
)
@pytest.mark.default_cases(10)
def test_everything_else_is_refused_in_one_line_that_names_the_column(declared, said):
    with pytest.raises(InvalidParameter, match="schema") as refusal:
        Schema(declared)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
    if repr(declared) not in map(repr, TAKEN):  # a column in it is equal to nothing
        with pytest.raises(InvalidParameter, match=r"\Aschema.*\Z"):
            declared_columns(declared)


def slow_bounded_leaf(number, low, high):
    """The formula with each product and difference of floats rounded by itself, from exact fractions."""
    difference = float(Fraction(number) - Fraction(low))
    per_leaf = float(Fraction(2**14) / Fraction(float(Fraction(high) - Fraction(low))))
    return min(math.floor(float(Fraction(difference) * Fraction(per_leaf))), 2**14 - 1)


def slow_unbounded_leaf(number):
    """From the bits of the float: its exponent field and the first 16 of its 52."""
    bits = struct.unpack(">Q", struct.pack(">d", abs(number)))[0]
    exponent, mantissa = (bits >> 52) - 1022, (bits >> 36) & 0xFFFF
    if exponent < -39:
        return 2**23
    magnitude = (exponent + 40) * 2**16 + mantissa
    return 2**23 - 1 - magnitude if number < 0 else 2**23 + magnitude


def test_leaves_are_those_of_the_formula_and_keep_the_order_of_numbers():
    rng = np.random.default_rng(0)
    low, high = -0.3, 7.1
    bounded = np.sort(np.concatenate([[low, high, 0.0], rng.uniform(low, high, 300)]))
    codes = column([low, high]).codes(bounded)
    assert codes.tolist() == [slow_bounded_leaf(number, low, high) for number in bounded.tolist()]
    assert (np.diff(codes) >= 0).all()
    assert codes[-1] == 2**14 - 1
    free = np.concatenate(
        [rng.normal(size=300) * 2.0 ** rng.integers(-45, 38, 300), [0.0, -0.0, 2.0**-40, -(2.0**-40)]]
    )
    free = np.sort(np.concatenate([free, [np.nextafter(2.0**40, 0), -np.nextafter(2.0**40, 0), 1.0, -1.0, 0.5]]))
    codes = column("number").codes(free)
    assert codes.tolist() == [slow_unbounded_leaf(number) for number in free.tolist()]
    assert (np.diff(codes) >= 0).all()
    assert 0 <= codes.min() <= codes.max() < 2**24


def test_what_adds_nothing_and_what_is_missing():
    odd = ["soon", math.inf, 1e300, "1e400", b"\xff", object(), [1], complex(1, 2)]
    missing = [None, math.nan, pd.NA, pd.NaT, np.datetime64("NaT")]
    for declared, within, n_cells in (
        ([0, 120], [0, 120.0, "17", " 17 ", "17,5", True], 2**14),
        ("number", [-3, "2.5", 0], 2**24),
        ([DAY, dt.date(2024, 1, 1)], [DAY, "2020-03-01", NOON.replace(year=2021)], 2**14),
        (["1", "b"], [1, 1.0, "1.00", " b", True], 2),
    ):
        codes = column(declared).codes([*odd, *missing, *within])
        assert codes[: len(odd)].tolist() == [-1] * len(odd)
        assert codes[len(odd) :][: len(missing)].tolist() == [n_cells] * len(missing)
        assert ((codes[len(odd) + len(missing) :] >= 0) & (codes[len(odd) + len(missing) :] < n_cells)).all()
    assert column([0, 120]).codes([-1e-300, 120.0000001]).tolist() == [-1, -1]
    assert column("number").codes([2.0**40, -(2.0**40)]).tolist() == [-1, -1]
    assert column([True, False]).codes(["True", 0, "false", 1.0, "yes"]).tolist() == [0, 1, 1, 0, -1]
    assert column(["007", "1.10", "1e3"]).codes([7, "007", 1.1, "1.10", 1000, "1e3"]).tolist() == [-1, 0, -1, 1, -1, 2]


KINDS = {
    "codes": (["0", "1", "2"], [0, 1, 2, 1, 0, 2]),
    "shares as codes": (["0.5", "1", "2"], [0.5, 1.0, 2.0, 1.0, 0.5, 2.0]),
    "truth values": ([True, False], [True, False, True, True, False, True]),
    "words": (["F", "M"], ["F", "M", "F", "F", "M", "M"]),
    "whole numbers": ([0, 120], [17, 0, 120, 55, 3, 81]),
    "numbers": ([0.0, 5.0], [0.1, 2.25, 5.0, 1e-5, 3.3, 0.0]),
    "free numbers": ("number", [0.1, -2.25, 1e9, 1e-5, 3.3, 0.0]),
    "dates": ([DAY, dt.date(2024, 1, 1)], [DAY + dt.timedelta(days=day) for day in (0, 1, 100, 7, 30, 800)]),
}
ODD = [None, math.nan, "text", 2**63, 1e300, 1 + 2j]


def containers(values, folder):
    """The same column in every container that can hold it; a table of text is read as it is read for a run."""
    held = {"pandas": pd.Series(values), "pandas objects": pd.Series(values, dtype=object)}
    held["pandas categories"] = held["pandas"].astype("category")
    for dtype in ("Int64", "Float64", "boolean", "string"):
        try:
            held[dtype] = pd.Series(values, dtype=dtype)
        except (TypeError, ValueError, OverflowError):
            continue
    held["numpy"] = np.array(values)
    held["numpy objects"] = np.array(values, dtype=object)
    try:
        held["polars"] = pl.Series(values, strict=True)
        held["arrow"] = held["polars"].to_arrow()
        held["pandas arrow"] = held["polars"].to_pandas(use_pyarrow_extension_array=True)
    except (TypeError, OverflowError):
        held["polars objects"] = pl.Series(values, dtype=pl.Object)
    path = folder / "table.csv"
    lines = ["" if value is None or value != value else str(value) for value in values]
    path.write_text("x,y\n" + "".join(f"{line},1\n" for line in lines))
    held["csv"] = format_for(path).cells(path)["x"]
    held["csv by pandas"] = pd.read_csv(path)["x"]
    return held


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.default_cases(3)
def test_one_entry_decides_on_no_other_whatever_the_column_became(kind, tmp_path):
    declared, values = KINDS[kind]
    held = column(declared)
    expected = held.codes(values)
    assert (expected >= 0).all()
    for name, whole in containers(values, tmp_path).items():
        if kind == "truth values" and name == "string":
            continue  # pandas writes them by a rule of its own
        assert held.codes(whole).tolist() == expected.tolist(), name
    for odd in ODD:
        changed = [*values[:3], odd, *values[4:]]
        for name, whole in containers(changed, tmp_path).items():
            codes = held.codes(whole)
            if isinstance(odd, complex) and "csv" not in name and kind != "words":
                assert codes[3] == -1, name
            assert np.delete(codes, 3).tolist() == np.delete(expected, 3).tolist(), (name, odd)
            assert codes[3] in (-1, held.missing), (name, odd)


def test_the_type_of_the_column_decides_in_a_broken_twin():
    """What 0.2.0.dev0 did: the text that a library makes of a whole column."""
    held = column(["0", "1", "2"])
    whole, with_gap = pd.Series([0, 1, 2]), pd.Series([0, 1, None])

    def by_type(series):
        return [held.values.index(text) if text in held.values else -1 for text in series.astype(str)]

    assert by_type(whole)[:2] != by_type(with_gap)[:2]
    assert held.codes(whole)[:2].tolist() == held.codes(with_gap)[:2].tolist()


TURNED = [
    ((5, 1), "(5, 1)", ": (1, 5)"),
    ([5, 5], "[5, 5]", ""),
    ([dt.date(2024, 12, 31), DAY], "[2024-12-31, ", ": ["),
    (
        (dt.datetime(2024, 12, 31, 12, tzinfo=dt.UTC), dt.date(2023, 1, 1)),
        "(2024-12-31T12:00:00+00:00, 2023-01-01)",
        ": (2023-01-01, 2024-12-31T",
    ),
]


@pytest.mark.parametrize(("declared", "typed", "turned"), TURNED)
def test_bounds_the_wrong_way_round_are_said_so_as_they_were_typed(declared, typed, turned):
    readers = (Schema, declared_columns) if isinstance(declared[0], int) else (Schema,)
    for read in readers:
        with pytest.raises(InvalidParameter) as refusal:
            read({"x": declared})
        assert f"'x' is declared as {typed}" in str(refusal.value)
        assert f"; the first bound must be below the second{turned}" in str(refusal.value)
        assert "datetime" not in str(refusal.value)


@pytest.mark.parametrize(
    ("texts", "meant"),
    [
        (["0", "120"], "write [0, 120],"),
        (["100,5", "220,0"], "write [100.5, 220.0],"),
        (["0", "50.000"], "such as [0, 120000]"),
        (["2023-01-01", "2024-12-31"], "two datetime.date"),
        (["01.01.2023", "31.12.2024"], "two datetime.date"),
        *(
            (codes, None)
            for codes in (["0", "1"], ["1", "9"], ["0.5", "1.5"], ["F", "M"], ["true", "false"], ["0", "5", "90"])
        ),
    ],
)
def test_two_texts_that_are_bounds_are_told_from_codes(texts, meant):
    said = list(bounds_as_texts({"x": texts}))
    assert len(said) == (meant is not None)
    assert meant is None or (meant in said[0] and f"{texts[0]!r} and {texts[1]!r}" in said[0])
    with naming({"schema": "[schema]"}):
        assert not said or "datetime" not in next(bounds_as_texts({"x": texts}))


DECLARED = {"age": [0, 120], "sex": ["F", "M"], "share": (0.0, 1.0), "ward": ["north"]}


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_rows_are_encoded_by_what_was_declared_each_by_itself(frame):
    _, encoder = declared_columns(DECLARED)
    numbers = {"share": [0.5, -7.0, 1e300], "age": [30.0, None, 120.0]}
    rows = frame({"ward": ["north", "moon", None], "sex": ["M", "F", "x"], **numbers})
    together = encoder.transform(rows)
    expected = [[-0.5, 0, 0, 1, 1], [0, -1, 1, 0, 0], [1, 1, 0, 0, 0]]
    assert np.allclose(together, expected)
    assert (np.vstack([encoder.transform(take(rows, [i])) for i in range(3)]) == together).all()
    assert skops.io.get_untrusted_types(data=skops.io.dumps(encoder)) == []


def test_a_list_of_truth_values_is_read_as_what_they_say():
    _, encoder = declared_columns({"smokes": [True, False]})
    kinds = declared_kinds({"smokes": [True, False]})
    for cells in ([True, False], ["1", "0"], [1, 0], ["True", "False"]):
        rows = kinds(pl.DataFrame({"smokes": cells}))
        assert encoder.transform(rows).tolist() == [[1.0, 0.0], [0.0, 1.0]]
