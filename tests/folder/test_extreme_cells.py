"""One extreme cell in any of a run's files, or given to an estimator: one line, nothing charged, no traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate import LabelPrivateClassifier, PrivateClassifier, PublicPool
from quorate.errors import DataRefused
from quorate.ledger import Ledger

HUGE = "1" + "0" * 400
SMALL = {"n": 80, "m": 30, "teachers.count": 4, "mechanism.queries": 10}


def put(file: Path, column: str, cell: str, *, narrow: bool = False) -> None:
    """Write a cell into the fourth row of a file; where narrow, every other cell of its column is very small."""
    lines = [line.split(",") for line in file.read_text().splitlines()]
    at = lines[0].index(column)
    for number, line in enumerate(lines[1:]):
        if narrow:
            line[at] = f"{number % 7}e-12"
    lines[4][at] = cell
    file.write_text("\n".join(map(",".join, lines)) + "\n")


def assert_refused(root: Path, result: tuple[int, str, str], *expected: str) -> None:
    code, said, told = result
    assert code == 4, told
    assert said == ""
    assert len(told.splitlines()) == 2, told
    assert "Traceback" not in told
    assert "nothing was charged" in told
    assert HUGE[:9] not in told
    assert "308" not in told.replace(str(root), "")  # whose path pytest numbers
    assert all(each in told for each in expected), told
    if (root / "ledger.db").exists():
        with Ledger(root / "ledger.db") as ledger:
            assert ledger.reservations() == ()


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("cell", [HUGE, "1e400", "inf", "-inf"])
@pytest.mark.parametrize(
    ("table", "called"), [("private", "X"), ("public", "public"), ("evaluation", "evaluation.csv")]
)
def test_a_cell_that_no_model_can_be_given_is_refused(
    make_run: Any, cli: Any, table: str, called: str, cell: str
) -> None:
    root = make_run(**SMALL, **{"data.evaluation": "evaluation.csv"})
    put(root / f"{table}.csv", "bmi", cell)
    expected = f"{called}: Input contains infinity in column 'bmi'"
    assert_refused(root, cli("check", root), expected)
    assert_refused(root, cli("run", root), expected)


@pytest.mark.parametrize("table", ["private", "public", "evaluation"])
def test_a_number_with_more_digits_than_are_read_names_file_and_place(make_run: Any, cli: Any, table: str) -> None:
    root = make_run(**SMALL, **{"data.evaluation": "evaluation.csv"})
    put(root / f"{table}.csv", "age", HUGE)
    assert_refused(
        root,
        cli("run", root),
        f"{table}.csv: column 1, counted from the left: an entry looks like a number and cannot be read",
    )


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("cell", ["1e308", "-1e308"])
@pytest.mark.parametrize(("table", "called"), [("private", "X"), ("evaluation", "evaluation.csv")])
def test_a_cell_that_is_infinite_in_public_units_is_refused(
    make_run: Any, cli: Any, table: str, called: str, cell: str
) -> None:
    root = make_run(**SMALL, **{"data.evaluation": "evaluation.csv"})
    for each in ("private", "public", "evaluation"):
        put(root / f"{each}.csv", "bmi", "2e-12", narrow=True)
    put(root / f"{table}.csv", "bmi", cell)
    assert_refused(root, cli("run", root), f"{called}: column 'bmi' holds a number too large to be scaled")


@pytest.mark.parametrize("cell", ["1e308", "-1e308"])
def test_a_public_cell_that_leaves_no_spread_is_refused(make_run: Any, cli: Any, cell: str) -> None:
    root = make_run(**SMALL)
    put(root / "public.csv", "bmi", cell)
    assert_refused(root, cli("run", root), "public: column 'bmi' holds a number too large to be scaled")


@pytest.mark.heavy
def test_a_question_with_such_a_cell_costs_nothing(make_run: Any, cli: Any) -> None:
    root = make_run(**SMALL, **{"mechanism.online_answers": 3})
    assert cli("run", root)[0] == 0
    before = (root / "ledger.db.anchor").read_bytes()
    new = root / "new.csv"
    for column, cell, expected in (
        ("bmi", "1e400", "new.csv: Input contains infinity in column 'bmi'"),
        ("age", HUGE, "new.csv: column 1, counted from the left: an entry looks like a number"),
    ):
        new.write_text((root / "public.csv").read_text())
        put(new, column, cell)
        told = cli.refused(4, "ask", root, new)
        assert expected in told, told
    assert (root / "ledger.db.anchor").read_bytes() == before


def rows(cell: object, n: int = 40) -> list[list[object]]:
    made: list[list[object]] = [[float(number % 7), float(number % 3)] for number in range(n)]
    made[5][1] = cell
    return made


def containers(cell: object) -> dict[str, Any]:
    table = rows(cell)
    frame = pd.DataFrame(table, columns=["age", "bmi"], dtype=object)
    found: dict[str, Any] = {"list": table, "array": np.array(table, dtype=object), "pandas": frame}
    if isinstance(cell, float):
        found["polars"] = pl.DataFrame(table, schema=["age", "bmi"], orient="row")
    return found


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("cell", [10**400, -(10**400), float("inf"), 1e308])
@pytest.mark.parametrize("side", ["private", "public"])
def test_an_estimator_refuses_it_in_any_container(cell: Any, side: str) -> None:
    y = [0, 1] * 20
    for kind, table in containers(cell).items():
        plain = containers(1.0)[kind]
        private, public = (table, plain) if side == "private" else (plain, table)
        model = PrivateClassifier(classes=[0, 1], epsilon=5.0, delta=1e-5, n_teachers=5, n_jobs=1)
        if cell == 1e308 and (side == "private" or kind in ("list", "array")):
            continue  # a number like another one
        with pytest.raises(DataRefused) as error:
            model.fit(private, y, public=PublicPool(public))
        text = str(error.value)
        assert "\n" not in text
        assert ("'bmi'" if kind in ("pandas", "polars") else "column 1") in text
        assert text.startswith("X: " if side == "private" else "public: ")
        assert not hasattr(model, "student_")


@pytest.mark.parametrize("cell", [10**400, float("inf")])
def test_where_labels_alone_are_private_features_are_refused_alike(cell: Any) -> None:
    for table in containers(cell).values():
        model = LabelPrivateClassifier(classes=[0, 1], epsilon=5.0, delta=1e-5, n_jobs=1)
        with pytest.raises(ValueError, match=r"beyond the range of 64-bit floats in column|contains infinity"):
            model.fit(table, [0, 1] * 20)
