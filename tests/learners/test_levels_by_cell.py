"""The level of a row is told by its own cells: no cell of another row moves it, through a type or a quotation mark."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate.data import read_data
from quorate.data.cell_text import as_list
from quorate.errors import InvalidParameter
from quorate.learn.request import LearnRequest
from quorate.learn.rule import _rows
from quorate.learners import Binning
from quorate.learners.binning import value_of

CUTS: dict[str, Any] = {"age": (30, 40), "smoker": ("true",), "flag": (1,), "code": ("1", "A")}
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
    return np.array([[old_level(value, CUTS[name]) for value in as_list(frame[name])] for name in CUTS]).T


@pytest.mark.parametrize("how", FRAMES)
def test_one_cell_of_a_frame_moves_no_other_row(how: str) -> None:
    assert moved(lambda cells: Binning(CUTS).transform(FRAMES[how](cells))) == []


@pytest.mark.parametrize("how", ["pandas, inferred", "polars, inferred"])
def test_a_twin_that_goes_by_types_is_caught(how: str) -> None:
    assert {("smoker", "maybe"), ("code", "A")} <= set(moved(lambda cells: by_type(FRAMES[how](cells))))


def request(path: Path) -> LearnRequest:
    path = path / "private.csv"
    classes = ("1", "2")
    return LearnRequest(table=path, label="ill", classes=classes, cuts=CUTS, epsilon=1.0, ledger=path / "none")


def raw(cells: dict[str, list[str]]) -> str:
    """Lines as they are, whatever a cell does to its own one."""
    rows = zip(*cells.values(), ["1", "2", "1", "2", "1"], strict=True)
    return "\n".join([",".join([*cells, "ill"]), *map(",".join, rows)]) + "\n"


def test_one_cell_of_a_csv_file_moves_no_other_row(tmp_path: Path) -> None:
    def levels(cells: dict[str, list[str]]) -> Any:
        (tmp_path / "private.csv").write_text(raw(cells))
        X, y = _rows(request(tmp_path))
        labels = [0 if label is None else int(label) if label in ("1", "2") else 9 for label in y]
        return np.column_stack([Binning(CUTS).transform(X), labels])

    def inferred(cells: dict[str, list[str]]) -> Any:
        (tmp_path / "private.csv").write_text(written({**cells, "ill": ["1", "2", "1", "2", "1"]}))
        return by_type(read_data(tmp_path / "private.csv").X)

    assert moved(levels) == []
    assert ("smoker", "maybe") in moved(inferred)


@pytest.mark.parametrize("cell", [*PUT, "2.0", "yes"])
def test_one_label_of_a_csv_file_moves_no_other_label(tmp_path: Path, cell: str) -> None:
    lines = raw(CELLS).splitlines()
    lines[2] = ",".join([*lines[2].split(",")[:-1], cell])
    (tmp_path / "private.csv").write_text("\n".join(lines))
    _, y = _rows(request(tmp_path))
    assert [y[at] for at in (0, 2, 3, 4)] == ["1", "1", "2", "1"]
    assert y[1] == {"1": "1", "true": "1", "2.0": "2", "": None, '"': None, '"x': None, "NaN": None}.get(cell, y[1])


def test_equal_values_have_equal_levels_whatever_holds_them() -> None:
    for same in (
        [True, np.True_, 1, 1.0, np.int8(1), np.float32(1), Decimal(1), "1", " 1.0 ", "true", "True"],
        [dt.date(2024, 2, 29), pd.Timestamp("2024-02-29"), "2024-02-29"],
        [None, float("nan"), pd.NA, pd.NaT, "", " ", "NaN", [1], object()],
        [10**400, float("inf"), "1e400"],
    ):
        assert len({value_of(cell) for cell in same}) == 1, same
    column = pd.DataFrame({"age": pd.Series([40, "40", " 4e1", "forty", "", None, b"x"], dtype=object)})
    assert Binning({"age": (30, 40)}).transform(column)[:, 0].tolist() == [2, 2, 2, 0, 0, 0, 0]


@pytest.mark.parametrize("cuts", [("1", "1.0"), ("true", "1"), ("", "a"), ("nan", "a"), ("a", " a")])
def test_cuts_that_are_one_value_or_none_are_refused(cuts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidParameter, match="distinct texts"):
        Binning({"code": cuts}).fit()


def test_a_pool_tells_each_value_once() -> None:
    pool = pl.DataFrame({"code": ["1.0", "1", "1", "A", "nan", "B", "B"]})
    assert Binning.from_pool(pool, ["code"], levels=3).cuts == {"code": ("1", "B")}
