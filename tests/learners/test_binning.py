"""The binning step: a level is a function of its value and of public cuts; what was learned is said in their words.

The rule that chooses columns without a label: what it says of rows whose law is known.
"""

import datetime as dt
import io
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from quorate.data import read_data
from quorate.data.cell_text import as_list
from quorate.errors import DataRefused, InvalidParameter
from quorate.learn.request import LearnRequest
from quorate.learn.rule import _rows
from quorate.learners import Binning, ExponentialLearner, telling_columns
from quorate.learners.binning import value_of
from quorate.learners.concepts import Interval, PointFunction, Rectangle, Rectangles, Stump, Threshold

CUTS = {"age": (30, 40, 50), "job": ("nurse", "cook")}
ROWS = {"age": [29.9, 30.0, None, 55.0, float("nan")], "job": ["cook", "clerk", None, "nurse", "Cook"]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_levels(frame):
    assert Binning(CUTS).transform(frame(ROWS)).tolist() == [[0, 2], [1, 0], [0, 0], [3, 1], [0, 0]]


@given(ages=st.lists(st.one_of(st.none(), st.floats(), st.integers()), min_size=1, max_size=8), place=st.integers(0, 7))
def test_a_level_hangs_on_its_own_row_alone(ages, place):
    binning, frame = Binning({"age": (0, 10)}), pd.DataFrame({"age": pd.Series(ages, dtype=object)})
    together = binning.transform(frame)
    alone = binning.transform(frame.iloc[[place % len(ages)]])
    assert together[place % len(ages)].tolist() == alone[0].tolist()


def test_fitting_looks_at_nothing_and_a_copy_is_the_same():
    binning = Binning(CUTS)
    assert binning.fit(object(), object()).cuts is CUTS
    assert clone(binning).transform(pd.DataFrame(ROWS)).tolist() == binning.transform(pd.DataFrame(ROWS)).tolist()


def test_a_pool_tells_cuts_that_part_it_evenly():
    random = np.random.default_rng(0)
    pool = pd.DataFrame(
        {"x": random.normal(size=1_000), "job": random.choice(["a", "b", "c"], 1_000, p=[0.5, 0.3, 0.2])}
    )
    found = Binning.from_pool(pool, ["x", "job"], levels=4)
    assert np.bincount(found.transform(pool)[:, 0]).tolist() == [250, 250, 250, 250]
    assert found.cuts["job"] == ("a", "b", "c")
    assert Binning.from_pool(pool, ["job"], levels=3).cuts["job"] == ("a", "b")
    assert Binning.from_pool(pd.DataFrame({"gain": [0] * 99 + [7]}), ["gain"], levels=4).cuts == {"gain": (7.0,)}
    with pytest.raises(DataRefused, match="cannot be cut"):
        Binning.from_pool(pd.DataFrame({"x": [1, 1]}), ["x"])
    with pytest.raises(DataRefused, match="no column 'y'"):
        Binning.from_pool(pool, ["y"])


def test_what_is_no_cut_is_refused():
    for cuts in ({}, None, {"age": ()}, {"age": (2, 1)}, {"age": (1, 1)}, {"job": ("a", "a")}, {"a": "ab"}):
        with pytest.raises(InvalidParameter, match="cuts"):
            Binning(cuts).fit()
    with pytest.raises(InvalidParameter, match=r"got \[40\.0, 20\.0\]; write 20, 40"):
        Binning({"age": (40.0, 20.0)}).fit()
    for texts in (("1", "1.0"), ("true", "1"), ("", "a"), ("nan", "a"), ("a", " a")):  # one value, or none
        with pytest.raises(InvalidParameter, match="distinct texts"):
            Binning({"code": texts}).fit()


@pytest.mark.parametrize(
    ("concept", "said"),
    [
        (Rectangle((0, 0), (3, 3)), "always"),
        (Rectangle((1, 1), (0, 0)), "never"),
        (Rectangle((1, 0), (2, 9)), "age is at least 30 and below 50"),
        (Rectangle((0, 1), (0, 2)), "age is below 30 and job is nurse or cook"),
        (Rectangle((3, 0), (3, 1)), "age is at least 50 and job is not cook"),
        (Stump(0, 1.0, ">"), "age is at least 40"),
        (Stump(1, 0.0, "<="), "job is not nurse or cook"),
        (Stump(0, 3.0, ">"), "never"),
    ],
)
def test_a_rule_in_words(concept, said):
    binning = Binning(CUTS)
    assert binning.told(concept) == said
    levels = np.array(binning.domain)
    labels = concept.labels(levels.astype(np.int64))
    if said in {"always", "never"}:
        assert set(labels.tolist()) == {int(said == "always")}


def test_rules_on_one_column_in_words():
    binning = Binning({"age": (30, 40)})
    assert binning.told(Threshold(2)) == "age is below 40"
    assert binning.told(Threshold(0)) == "never"
    assert binning.told(Interval(1, 3)) == "age is at least 30"
    assert binning.told(PointFunction(1)) == "PointFunction(value=1)"


def test_a_table_is_learned_from_through_a_pipeline():
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": random.integers(18, 80, 2_000), "job": random.choice(["nurse", "cook", "clerk"], 2_000)}
    )
    y = np.where((table["age"] >= 40) & (table["job"] == "cook"), "yes", "no")
    binning = Binning(CUTS)
    learner = ExponentialLearner(
        concepts=Rectangles(binning.bits, 2), epsilon=1.0, classes=["no", "yes"], unsafe_noise_seed=0
    )
    steps = make_pipeline(binning, learner).fit(table, y)
    assert steps.score(table, y) == 1.0
    assert binning.told(learner.concept_) == "age is at least 40 and job is cook"


def pool(n=600, seed=0):
    random = np.random.default_rng(seed)
    size, place = random.integers(0, 4, n), random.integers(0, 3, n)
    return {
        "noise": random.random(n),
        "constant": np.ones(n),
        "weight": size * 10 + random.integers(0, 9, n),
        "size": size,
        "price": size // 2,
        "town": np.array(["a", "b", "c"])[place],
        "postcode": place * 100,
    }


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_that_say_most_about_the_others_come_first_and_the_second_says_something_new(frame):
    for seed in range(5):
        first, second = telling_columns(frame(pool(seed=seed)), 2)
        assert {first, second} & {"weight", "size"}
        assert {first, second} & {"town", "postcode"}


def test_the_order_of_the_rows_and_of_equal_columns_is_all_that_a_frame_adds():
    found = telling_columns(pd.DataFrame(pool()), 3)
    assert telling_columns(pd.DataFrame(pool()).iloc[::-1], 3) == found
    assert len(set(found)) == 3
    assert telling_columns(pd.DataFrame(pool()), 1, columns=["noise", "price"]) == ("noise",)


def test_noise_does_not_look_telling_because_rows_are_few():
    """Without the correction a column of many levels would seem to say most in so few rows."""
    random = np.random.default_rng(0)
    rows = {f"noise {place}": random.random(160) for place in range(6)}
    size = random.integers(0, 2, 160)
    assert telling_columns(pd.DataFrame({**rows, "size": size, "sign": size * 2 - 1}), 1, levels=8) in {
        ("size",),
        ("sign",),
    }


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(InvalidParameter, match="at most 6"):
        telling_columns(pd.DataFrame(pool()), 7)
    with pytest.raises(InvalidParameter, match="n_columns"):
        telling_columns(pd.DataFrame(pool()), 0)


def test_dates_and_mixed_cells_are_left_out_or_refused_by_name():
    random = np.random.default_rng(0)
    size = random.integers(0, 4, 200)
    pool = pd.DataFrame(
        {
            "size": size,
            "weight": size * 10,
            "day": [date(2020, 1, 1 + each % 28) for each in range(200)],
            "mixed": [each if each % 2 else "word" for each in range(200)],
        }
    )
    assert set(telling_columns(pool, 2)) == {"size", "weight"}
    for name in ("day", "mixed"):
        with pytest.raises(DataRefused, match=f"column '{name}' holds other things than numbers"):
            telling_columns(pool, 1, columns=["size", name])
    with pytest.raises(InvalidParameter, match="pool must be a pandas or polars frame"):
        telling_columns(np.zeros((3, 2)), 1)


CELL_CUTS: dict[str, Any] = {"age": (30, 40), "smoker": ("true",), "flag": (1,), "code": ("1", "A")}
CELLS = {
    "age": ["29", "30", "41.5", "30.0", "40"],
    "smoker": ["true", "false", "true", "true", "false"],
    "flag": ["true", "false", "true", "false", "true"],
    "code": ["1", "2", "1", "2", "1"],
}
PUT = ["maybe", "A", "", '"', '"x', "x,y", "0.5", "true", "1", "1e400", "999999999999999999999", "NaN"]
Read = Callable[[dict[str, list[str]]], Any]


def written(cells: dict[str, list[str]]) -> str:
    return pl.DataFrame(cells).write_csv()


def typed(cell: str) -> Any:
    if cell in ("true", "false"):
        return cell == "true"
    try:
        return float(cell) if "." in cell or "e" in cell else int(cell)
    except ValueError:
        return cell or None


FRAMES: dict[str, Read] = {
    "pandas, inferred": lambda cells: pd.read_csv(io.StringIO(written(cells))),
    "polars, inferred": lambda cells: pl.read_csv(io.StringIO(written(cells)), infer_schema_length=None),
    "polars, text": pl.DataFrame,
    "pandas, objects": lambda cells: pd.DataFrame(
        {name: pd.Series([typed(cell) for cell in column], dtype=object) for name, column in cells.items()}
    ),
    "pandas, of objects": lambda cells: pd.DataFrame(
        {name: [typed(cell) for cell in column] for name, column in cells.items()}
    ),
}


def moved(levels: Callable[[dict[str, list[str]]], Any]) -> list[tuple[str, str]]:
    """The columns and the cells that moved another row when they were put into the second one."""
    before, others = levels(CELLS), [0, 2, 3, 4]
    found = []
    for name in CELLS:
        for cell in PUT:
            changed = {**CELLS, name: [CELLS[name][0], cell, *CELLS[name][2:]]}
            after = levels(changed)
            if len(after) != len(before) or after[others].tobytes() != before[others].tobytes():
                found.append((name, cell))
    return found


def old_level(value: Any, cuts: Any) -> int:
    """A twin: the level of a value by the type that its column has."""
    if isinstance(cuts[0], str):
        return cuts.index(value) + 1 if value in cuts else 0
    return 0 if value is None or isinstance(value, str) else int(np.searchsorted(cuts, float(value), side="right"))


def by_type(frame: Any) -> Any:
    return np.array([[old_level(value, CELL_CUTS[name]) for value in as_list(frame[name])] for name in CELL_CUTS]).T


@pytest.mark.parametrize("how", FRAMES)
def test_one_cell_of_a_frame_moves_no_other_row(how):
    assert moved(lambda cells: Binning(CELL_CUTS).transform(FRAMES[how](cells))) == []


@pytest.mark.parametrize("how", ["pandas, inferred", "polars, inferred"])
def test_a_twin_that_goes_by_types_is_caught(how):
    assert {("smoker", "maybe"), ("code", "A")} <= set(moved(lambda cells: by_type(FRAMES[how](cells))))


def request(path: Path) -> LearnRequest:
    path = path / "private.csv"
    classes = ("1", "2")
    return LearnRequest(table=path, label="ill", classes=classes, cuts=CELL_CUTS, epsilon=1.0, ledger=path / "none")


def raw(cells: dict[str, list[str]]) -> str:
    """Lines as they are, whatever a cell does to its own one."""
    rows = zip(*cells.values(), ["1", "2", "1", "2", "1"], strict=True)
    return "\n".join([",".join([*cells, "ill"]), *map(",".join, rows)]) + "\n"


def test_one_cell_of_a_csv_file_moves_no_other_row(tmp_path):
    def levels(cells: dict[str, list[str]]) -> Any:
        (tmp_path / "private.csv").write_text(raw(cells))
        X, y = _rows(request(tmp_path))
        labels = [0 if label is None else int(label) if label in ("1", "2") else 9 for label in y]
        return np.column_stack([Binning(CELL_CUTS).transform(X), labels])

    def inferred(cells: dict[str, list[str]]) -> Any:
        (tmp_path / "private.csv").write_text(written({**cells, "ill": ["1", "2", "1", "2", "1"]}))
        return by_type(read_data(tmp_path / "private.csv").X)

    assert moved(levels) == []
    assert ("smoker", "maybe") in moved(inferred)


@pytest.mark.parametrize("cell", [*PUT, "2.0", "yes"])
def test_one_label_of_a_csv_file_moves_no_other_label(tmp_path, cell):
    lines = raw(CELLS).splitlines()
    lines[2] = ",".join([*lines[2].split(",")[:-1], cell])
    (tmp_path / "private.csv").write_text("\n".join(lines))
    _, y = _rows(request(tmp_path))
    assert [y[at] for at in (0, 2, 3, 4)] == ["1", "1", "2", "1"]
    assert y[1] == {"1": "1", "true": "1", "2.0": "2", "": None, '"': None, '"x': None, "NaN": None}.get(cell, y[1])


def test_equal_values_have_equal_levels_whatever_holds_them():
    for same in (
        [True, np.True_, 1, 1.0, np.int8(1), np.float32(1), Decimal(1), "1", " 1.0 ", "true", "True"],
        [dt.date(2024, 2, 29), pd.Timestamp("2024-02-29"), "2024-02-29"],
        [None, float("nan"), pd.NA, pd.NaT, "", " ", "NaN", [1], object()],
        [10**400, float("inf"), "1e400"],
    ):
        assert len({value_of(cell) for cell in same}) == 1, same
    column = pd.DataFrame({"age": pd.Series([40, "40", " 4e1", "forty", "", None, b"x"], dtype=object)})
    assert Binning({"age": (30, 40)}).transform(column)[:, 0].tolist() == [2, 2, 2, 0, 0, 0, 0]


def test_a_pool_tells_each_value_once():
    pool = pl.DataFrame({"code": ["1.0", "1", "1", "A", "nan", "B", "B"]})
    assert Binning.from_pool(pool, ["code"], levels=3).cuts == {"code": ("1", "B")}
