"""Private rows of a direct run are read one by one: what one holds changes nothing about another, and stops nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from quorate.data import read_cells
from quorate.direct.schema import codes_of_text


def test_a_missing_label_does_not_round_the_others(tmp_path: Path) -> None:
    path, far = tmp_path / "rows.parquet", 2**53 + 1
    for last in (2, None):
        pl.DataFrame({"a": [1.0, 2.0, 3.0], "l": [far, 2, last]}).write_parquet(path)
        codes = codes_of_text(read_cells(path, label="l", n_features=1).y, (2, far))
        assert codes.tolist()[:2] == [1, 0]
