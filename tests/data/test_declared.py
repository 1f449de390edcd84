"""Columns that were declared: bounds and values, and nothing that is read off rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from quorate.data.rows import take
from quorate.data.schema_encoder import declared_columns, declared_kinds
from quorate.deferred import skops
from quorate.errors import InvalidParameter

DECLARED = {"age": [0, 120], "sex": ["F", "M"], "share": (0.0, 1.0), "ward": ["north"]}


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_rows_are_encoded_by_what_was_declared_each_by_itself(frame: Any) -> None:
    _, encoder = declared_columns(DECLARED)
    rows = frame(
        {
            "ward": ["north", "moon", None],
            "share": [0.5, -7.0, 1e300],
            "sex": ["M", "F", "x"],
            "age": [30.0, None, 120.0],
        }
    )
    together = encoder.transform(rows)
    expected = [[-0.5, 0, 0, 1, 1], [0, -1, 1, 0, 0], [1, 1, 0, 0, 0]]
    assert np.allclose(together, expected)
    assert (np.vstack([encoder.transform(take(rows, [i])) for i in range(3)]) == together).all()
    assert skops.io.get_untrusted_types(data=skops.io.dumps(encoder)) == []


def test_a_list_of_truth_values_is_read_as_what_they_say() -> None:
    _, encoder = declared_columns({"smokes": [True, False]})
    kinds = declared_kinds({"smokes": [True, False]})
    for cells in ([True, False], ["1", "0"], [1, 0], ["True", "False"]):
        rows = kinds(pl.DataFrame({"smokes": cells}))
        assert encoder.transform(rows).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"age": []},
        {"age": [0]},
        {"age": [3, 3]},
        {"age": [5, 1]},
        {"age": [0, float("inf")]},
        {"age": [-1e308, 1.7e308]},
        {"sex": ["F", "F"]},
        {"sex": ["F", 1]},
        {"sex": "FM"},
        {7: [0, 1]},
        ["age"],
    ],
)
def test_anything_else_is_refused_in_one_line(declared: Any) -> None:
    with pytest.raises(InvalidParameter, match="schema") as refusal:
        declared_columns(declared)
    assert "\n" not in str(refusal.value)
