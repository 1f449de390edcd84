"""The rule that chooses columns without a label: what it says of rows whose law is known."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import telling_columns


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


@pytest.mark.heavy
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


def test_dates_and_mixed_cells_are_left_out_or_refused_by_name() -> None:
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
