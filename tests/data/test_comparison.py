"""Private tables that are scaled by themselves, or say nothing, are seen; two honest samples are not accused."""

import unicodedata
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from quorate.data.column_kinds import ColumnKinds, column_kinds
from quorate.data.comparison import FEWEST_CELLS, FEWEST_VALUES, Scales, UnlikeCells, compared_scales, unlike_cells

NAMES = ["age", "income", "lab", "flag"]


def table(n, seed):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(18, 95, n), rng.lognormal(10, 1, n), rng.normal(4.2, 0.3, n), rng.integers(0, 2, n)]
    return np.column_stack(columns).astype(np.float64)


PRIVATE, PUBLIC = table(900, 1), table(300, 2)


def found(private, public):
    return compared_scales(private, public).reveal()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("seed", range(200))
def test_two_samples_of_one_population_are_not_accused(seed):
    """With as few as fifty rows on a side, and heavy tails. No false alarm in 200 pairs: below 2 % at 95 %."""
    n = FEWEST_VALUES if seed % 2 else 200
    assert found(table(n, 3 * seed + 5), table(n, 3 * seed + 6)) == Scales((), ())


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=lambda each: type(each).__name__
)
def test_a_scaler_that_was_applied_to_the_private_rows_alone_is_seen(scaler):
    seen = found(scaler.fit_transform(PRIVATE), PUBLIC)
    assert seen.differing[:2] == ("column 0", "column 1")
    fitted = () if isinstance(scaler, RobustScaler) else ("column 0", "column 1", "column 2")
    assert seen.fitted == fitted


def test_a_scaler_of_public_rows_is_seen_where_it_was_applied_to_them_alone_and_one_of_private_rows_always():
    """Of those on one scale every teacher has met every row: the mean is 0 to the last digit."""
    all_but_flags = ("column 0", "column 1", "column 2")
    of_public, of_private = StandardScaler().fit(PUBLIC), StandardScaler().fit(PRIVATE)
    assert found(PRIVATE, of_public.transform(PUBLIC)) == Scales(all_but_flags, ())
    assert found(of_private.transform(PRIVATE), of_private.transform(PUBLIC)) == Scales((), all_but_flags)
    assert found(of_public.transform(PRIVATE), of_public.transform(PUBLIC)) == Scales((), ())


def test_columns_are_named_where_they_have_names():
    scaled = PRIVATE.copy()
    scaled[:, 1] /= 1_000
    for library in (pd.DataFrame, lambda rows, columns: pl.DataFrame(rows, schema=columns)):
        frames = (library(rows, columns=NAMES) for rows in (scaled, PUBLIC))
        assert found(*frames) == Scales(("income",), ())


def test_texts_gaps_and_sparse_tables_do_no_harm():
    gaps = PRIVATE.copy()
    gaps[::3, 0] = np.nan
    assert found(gaps, PUBLIC) == Scales((), ())
    words = pl.DataFrame({"ward": ["north", "south"] * 30, "age": list(range(60))})
    assert found(words, words.with_columns(pl.col("age") * 100)) == Scales(("age",), ())
    assert found(sparse.csr_array(PRIVATE), sparse.csr_array(PUBLIC * 100)) == Scales((), ())
    assert found(PRIVATE[: FEWEST_VALUES - 1], PUBLIC * 100) == Scales((), ())


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("divided_by", [1.0, 255.0])
@pytest.mark.parametrize("seed", range(10))
def test_pixels_are_not_accused(seed, divided_by):
    """Some are nearly always 0, and reach 255 on one side alone: divided by 255 that is a range of 0 to 1."""
    rng = np.random.default_rng(seed)
    rare = rng.random((3_000, 60)) < np.linspace(0.001, 0.5, 60)
    pixels = np.where(rare, np.minimum(rng.geometric(0.01, rare.shape), 255), 0) / divided_by
    assert found(pixels[:2_000], pixels[2_000:]) == Scales((), ())


RNG_KINDS = {
    "shares": lambda rng, shape: np.round(rng.beta(0.3, 0.3, shape), 2),
    "scores": lambda rng, shape: rng.integers(0, 101, shape) / 100,
    "answers": lambda rng, shape: rng.integers(0, 7, shape) / 6,
    "saturated": lambda rng, shape: np.clip(rng.normal(0.5, 0.4, shape), 0, 1),
    "images": lambda rng, shape: np.clip(rng.uniform(0, 1, shape[1]) * (1 + rng.normal(0, 0.5, shape)), 0, 1),
}


@pytest.mark.default_cases(5)
@pytest.mark.parametrize("n_columns", [1, 5, 300])
@pytest.mark.parametrize("kind", RNG_KINDS)
def test_what_lies_between_0_and_1_by_itself_is_not_accused(kind, n_columns):
    """Few public rows, so that these do not reach both ends."""
    rng = np.random.default_rng(3)
    for n in (60, 2_000):
        rows = [RNG_KINDS[kind](rng, (size, n_columns)) for size in (n, FEWEST_VALUES)]
        assert found(*rows).fitted == (), n


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("n_columns", [1, 5, 300])
@pytest.mark.parametrize("whole", [False, True])
def test_what_a_scaler_brought_between_0_and_1_is_seen(whole, n_columns):
    """Numbers that tie at both ends too: 17 to 90 years, as 73rds."""
    rng = np.random.default_rng(4)
    rows = rng.integers(17, 91, (2_000, n_columns)) if whole else rng.lognormal(0, 1, (2_000, n_columns))
    scaled = MinMaxScaler().fit_transform(rows.astype(float))
    assert len(found(scaled, scaled[:FEWEST_VALUES] * 0.98 + 0.01).fitted) == n_columns


def test_the_narrowest_gap_between_two_numbers_is_no_step():
    rows = np.concatenate([[0.0, 5e-324, 1.0], np.linspace(0.1, 0.9, 97)])[:, None]
    assert found(rows, np.linspace(0.1, 0.9, 60)[:, None]).fitted == ()  # two rows are at 0


NOTHING = UnlikeCells()


def frame(n, seed, **other):
    rng = np.random.default_rng(seed)
    cells = {
        "age": rng.integers(18, 95, n).astype(float),
        "town": rng.choice(["Ulm", "Bonn", "Jena"], n),
        "note": [f"note {i} of a {word} day" for i, word in enumerate(rng.choice(["long", "short"], n))],
    }
    return pl.DataFrame(cells | {name: pl.Series(values) for name, values in other.items()})


PUBLIC_CELLS = frame(60, 1)


def unlike(private, public=PUBLIC_CELLS, kinds=None):
    return unlike_cells(private, public, kinds).reveal()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("seed", range(50))
def test_cells_of_one_population_are_not_accused(seed):
    assert unlike(frame(FEWEST_CELLS, 2 + seed)) == NOTHING


VOID = pl.Series([None] * 30, dtype=pl.Float64)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("as_frame", [lambda each: each, lambda each: each.to_pandas()], ids=["polars", "pandas"])
@pytest.mark.parametrize(
    ("name", "cells", "seen"),
    [
        ("age", VOID, "empty"),
        ("note", VOID.cast(pl.String), "empty"),
        ("note", ["  "] * 30, "empty"),
        ("town", ["89073"] * 30, "foreign"),
        ("note", [f"x{i}" for i in range(30)], "foreign"),
    ],
)
def test_a_column_without_any_private_cell_or_of_other_words_is_seen(as_frame, name, cells, seen):
    private = as_frame(frame(30, 2, **{name: cells}))
    assert unlike(private, as_frame(PUBLIC_CELLS)) == UnlikeCells(**{seen: (name,)})


def test_a_column_that_is_empty_on_both_sides_is_not_private_to_one():
    assert unlike(frame(30, 2, age=VOID), frame(30, 3, age=VOID)) == NOTHING


SPELLED = {
    "case": str.upper,
    "blanks": lambda text: f"{text}   ",
    "a hard blank": lambda text: f"{text}\N{NO-BREAK SPACE}",
    "Unicode": lambda text: unicodedata.normalize("NFD", text),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("library", ["polars", "pandas"])
@pytest.mark.parametrize("spelled", SPELLED)
def test_an_entry_that_is_another_to_the_model_is_seen_though_a_person_reads_the_same(spelled, library):
    """The check compares as what learns from the tables does: where a Pipeline reads them, blanks count too."""
    public = frame(60, 1, town=["Köln", "Bonn"] * 30)
    kinds = column_kinds(public)
    towns = [SPELLED[spelled](town) if at % 2 else town for at, town in enumerate(["Bonn", "Köln"] * 15)]
    private = frame(30, 2, town=towns)
    if library == "pandas":
        private, public = private.to_pandas(), public.to_pandas()
    assert unlike(private, public, replace(kinds, words={})) == UnlikeCells(respelled=("town",))
    assert unlike(private, public, kinds) == (UnlikeCells(respelled=("town",)) if spelled == "case" else NOTHING)


def test_one_slip_of_the_pen_and_categories_of_the_same_words_in_another_entry():
    public = frame(60, 1)
    kinds = column_kinds(public)
    slip = frame(300, 2)
    slip = slip.with_columns(town=pl.Series(["ULM", *slip["town"][1:].to_list()]))
    assert unlike(slip, public, kinds) == NOTHING
    assert unlike(frame(30, 2, town=["Ulm an der Donau", "Bonn am Rhein"] * 15), public, kinds).foreign == ("town",)


def test_words_of_ids_and_dates_are_not_compared():
    ids, others = [f"a{i}" for i in range(60)], [f"b{i}" for i in range(60)]
    tables = pl.DataFrame({"id": others}), pl.DataFrame({"id": ids})
    assert unlike(*tables).foreign == ("id",)
    for kind in ("dropped", "date"):
        assert unlike(*tables, kinds=ColumnKinds(kinds={"id": kind})) == NOTHING


def test_images_that_could_not_be_read_are_counted():
    images = np.random.default_rng(0).integers(1, 255, (40, 6, 6)).astype(float).reshape(40, -1)
    private = images.copy()
    private[:7] = 0.0
    assert unlike(private, images).blank == 7
    assert unlike(private, private).blank == 0  # the public ones are no better


def test_what_is_too_small_or_sparse_is_not_looked_at():
    nothing = pl.Series([None] * (FEWEST_CELLS - 1), dtype=pl.String)
    assert unlike(frame(FEWEST_CELLS - 1, 2, note=nothing)) == NOTHING
    assert unlike(sparse.csr_matrix((30, 3)), sparse.csr_matrix(np.ones((30, 3)))) == NOTHING


def test_nothing_is_shown_but_to_who_reveals_it():
    assert repr(compared_scales(PRIVATE, PUBLIC * 100)) == "Secret(…)"
    assert str(unlike_cells(pd.DataFrame({"a": [1.0] * 30}), pd.DataFrame({"a": [1.0] * 30}))) == "Secret(…)"
