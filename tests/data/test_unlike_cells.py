"""Private columns and images that say nothing are seen; honest samples of one population are not accused."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from quorate.data.column_kinds import ColumnKinds, column_kinds
from quorate.data.comparison import FEWEST_CELLS, UnlikeCells, unlike_cells

NOTHING = UnlikeCells()


def frame(n: int, seed: int, **other: Any) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    cells = {
        "age": rng.integers(18, 95, n).astype(float),
        "town": rng.choice(["Ulm", "Bonn", "Jena"], n),
        "note": [f"note {i} of a {word} day" for i, word in enumerate(rng.choice(["long", "short"], n))],
    }
    return pl.DataFrame(cells | {name: pl.Series(values) for name, values in other.items()})


PUBLIC = frame(60, 1)


def found(private: Any, public: Any = PUBLIC, kinds: ColumnKinds | None = None) -> UnlikeCells:
    return unlike_cells(private, public, kinds).reveal()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("seed", range(50))
def test_two_samples_of_one_population_are_not_accused(seed: int) -> None:
    assert found(frame(FEWEST_CELLS, 2 + seed)) == NOTHING


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("as_frame", [lambda each: each, lambda each: each.to_pandas()], ids=["polars", "pandas"])
@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("age", pl.Series([None] * 30, dtype=pl.Float64)),
        ("note", pl.Series([None] * 30, dtype=pl.String)),
        ("note", pl.Series(["  "] * 30)),
    ],
)
def test_a_column_without_any_private_cell_is_seen(as_frame: Any, name: str, cells: pl.Series) -> None:
    assert found(as_frame(frame(30, 2, **{name: cells})), as_frame(PUBLIC)) == UnlikeCells(empty=(name,))


def test_a_column_that_is_empty_on_both_sides_is_not_private_to_one() -> None:
    nothing = pl.Series([None] * 30, dtype=pl.Float64)
    assert found(frame(30, 2, age=nothing), frame(30, 3, age=nothing)) == NOTHING


@pytest.mark.parametrize(("name", "cells"), [("town", ["89073"] * 30), ("note", [f"x{i}" for i in range(30)])])
def test_a_column_of_other_words_is_seen(name: str, cells: list[str]) -> None:
    assert found(frame(30, 2, **{name: cells})) == UnlikeCells(foreign=(name,))


SPELLED = {
    "case": str.upper,
    "blanks": lambda text: f"{text}   ",
    "a hard blank": lambda text: f"{text}\N{NO-BREAK SPACE}",
    "Unicode": lambda text: unicodedata.normalize("NFD", text),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("spelled", SPELLED)
def test_an_entry_that_is_another_to_the_model_is_seen_though_a_person_reads_the_same(
    spelled: str, library: str
) -> None:
    """The check compares as what learns from the tables does: where a Pipeline reads them, blanks count too."""
    public = frame(60, 1, town=["Köln", "Bonn"] * 30)
    kinds = column_kinds(public)
    towns = [SPELLED[spelled](town) if at % 2 else town for at, town in enumerate(["Bonn", "Köln"] * 15)]
    private = frame(30, 2, town=towns)
    if library == "pandas":
        private, public = private.to_pandas(), public.to_pandas()
    assert found(private, public, replace(kinds, words={})) == UnlikeCells(respelled=("town",))
    assert found(private, public, kinds) == (UnlikeCells(respelled=("town",)) if spelled == "case" else NOTHING)


def test_one_slip_of_the_pen_and_categories_of_the_same_words_in_another_entry() -> None:
    public = frame(60, 1)
    kinds = column_kinds(public)
    slip = frame(300, 2)
    slip = slip.with_columns(town=pl.Series(["ULM", *slip["town"][1:].to_list()]))
    assert found(slip, public, kinds) == NOTHING
    assert found(frame(30, 2, town=["Ulm an der Donau", "Bonn am Rhein"] * 15), public, kinds).foreign == ("town",)


def test_words_of_ids_and_dates_are_not_compared() -> None:
    ids, others = [f"a{i}" for i in range(60)], [f"b{i}" for i in range(60)]
    tables = pl.DataFrame({"id": others}), pl.DataFrame({"id": ids})
    assert found(*tables).foreign == ("id",)
    for kind in ("dropped", "date"):
        assert found(*tables, kinds=ColumnKinds(kinds={"id": kind})) == NOTHING


def test_images_that_could_not_be_read_are_counted() -> None:
    images = np.random.default_rng(0).integers(1, 255, (40, 6, 6)).astype(float).reshape(40, -1)
    private = images.copy()
    private[:7] = 0.0
    assert found(private, images).blank == 7
    assert found(private, private).blank == 0  # the public ones are no better


def test_what_is_too_small_or_sparse_is_not_looked_at() -> None:
    nothing = pl.Series([None] * (FEWEST_CELLS - 1), dtype=pl.String)
    assert found(frame(FEWEST_CELLS - 1, 2, note=nothing)) == NOTHING
    assert found(sparse.csr_matrix((30, 3)), sparse.csr_matrix(np.ones((30, 3)))) == NOTHING


def test_nothing_is_shown_but_to_who_reveals_it() -> None:
    assert str(unlike_cells(pd.DataFrame({"a": [1.0] * 30}), pd.DataFrame({"a": [1.0] * 30}))) == "Secret(…)"
