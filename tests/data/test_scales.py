"""A scaler that was applied to one table alone is seen; two honest samples are not accused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from quorate.data.scales import FEWEST, Scales, compared_scales

NAMES = ["age", "income", "lab", "flag"]


def table(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(18, 95, n), rng.lognormal(10, 1, n), rng.normal(4.2, 0.3, n), rng.integers(0, 2, n)]
    return np.column_stack(columns).astype(np.float64)


PRIVATE, PUBLIC = table(900, 1), table(300, 2)


def found(private: object, public: object) -> Scales:
    return compared_scales(private, public).reveal()  # type: ignore[arg-type]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("seed", range(200))
def test_two_samples_of_one_population_are_not_accused(seed: int) -> None:
    """With as few as fifty rows on a side, and heavy tails. No false alarm in 200 pairs: below 2 % at 95 %."""
    n = FEWEST if seed % 2 else 200
    assert found(table(n, 3 * seed + 5), table(n, 3 * seed + 6)) == Scales((), ())


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()], ids=lambda each: type(each).__name__
)
def test_a_scaler_that_was_applied_to_the_private_rows_alone_is_seen(scaler: object) -> None:
    seen = found(scaler.fit_transform(PRIVATE), PUBLIC)  # type: ignore[attr-defined]
    assert seen.differing[:2] == ("column 0", "column 1")
    fitted = () if isinstance(scaler, RobustScaler) else ("column 0", "column 1", "column 2")
    assert seen.fitted == fitted


def test_a_scaler_that_was_applied_to_the_public_rows_alone_is_seen() -> None:
    assert found(PRIVATE, StandardScaler().fit_transform(PUBLIC)) == Scales(("column 0", "column 1", "column 2"), ())


def test_a_scaler_that_was_fitted_on_the_private_rows_and_applied_to_both_is_seen() -> None:
    """On one scale, and yet every teacher has met every row: the mean is 0 to the last digit."""
    scaler = StandardScaler().fit(PRIVATE)
    seen = found(scaler.transform(PRIVATE), scaler.transform(PUBLIC))
    assert seen == Scales((), ("column 0", "column 1", "column 2"))


def test_a_scaler_that_was_fitted_on_public_rows_is_not_accused() -> None:
    scaler = StandardScaler().fit(PUBLIC)
    assert found(scaler.transform(PRIVATE), scaler.transform(PUBLIC)) == Scales((), ())


def test_columns_are_named_where_they_have_names() -> None:
    scaled = PRIVATE.copy()
    scaled[:, 1] /= 1_000
    for library in (pd.DataFrame, lambda rows, columns: pl.DataFrame(rows, schema=columns)):
        frames = (library(rows, columns=NAMES) for rows in (scaled, PUBLIC))
        assert found(*frames) == Scales(("income",), ())


def test_texts_gaps_and_sparse_tables_do_no_harm() -> None:
    gaps = PRIVATE.copy()
    gaps[::3, 0] = np.nan
    assert found(gaps, PUBLIC) == Scales((), ())
    words = pl.DataFrame({"ward": ["north", "south"] * 30, "age": list(range(60))})
    assert found(words, words.with_columns(pl.col("age") * 100)) == Scales(("age",), ())
    assert found(sparse.csr_array(PRIVATE), sparse.csr_array(PUBLIC * 100)) == Scales((), ())
    assert found(PRIVATE[: FEWEST - 1], PUBLIC * 100) == Scales((), ())


def test_what_was_found_does_not_print() -> None:
    assert repr(compared_scales(PRIVATE, PUBLIC * 100)) == "Secret(…)"


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("divided_by", [1.0, 255.0])
@pytest.mark.parametrize("seed", range(10))
def test_pixels_are_not_accused(seed: int, divided_by: float) -> None:
    """Some are nearly always 0, and reach 255 on one side alone: divided by 255 that is a range of 0 to 1."""
    rng = np.random.default_rng(seed)
    rare = rng.random((3_000, 60)) < np.linspace(0.001, 0.5, 60)
    pixels = np.where(rare, np.minimum(rng.geometric(0.01, rare.shape), 255), 0) / divided_by
    assert found(pixels[:2_000], pixels[2_000:]) == Scales((), ())
