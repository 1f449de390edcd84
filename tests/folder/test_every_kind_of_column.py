"""A folder with texts, dates and ids: what [data] says of columns, for both methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.data.test_column_kinds import table

from quorate.deferred import skops

DIRECT: dict[str, Any] = {"method.by": "direct", "method.rounds": 4, "data.n_records": 300}


def with_tables(root: Path) -> Path:
    for name, n, seed in (("private", 300, 1), ("public", 80, 2), ("evaluation", 90, 3)):
        rows = table(n, seed).drop("came", "stayed").with_columns(extra=pl.lit("x"))
        ill = pl.Series("ill", np.where(rows["age"] > 55, "yes", "no"))
        (rows if name == "public" else rows.with_columns(ill)).write_csv(root / f"{name}.csv")
    return root


@pytest.mark.heavy
@pytest.mark.parametrize("how", [{}, DIRECT], ids=["votes", "direct"])
def test_a_run_reads_them_and_comes_out_the_same_again(make_run: Any, cli: Any, how: dict[str, Any]) -> None:
    changes = {"data.evaluation": "evaluation.csv", "data.drop": ["extra"], "data.categorical": ["zip"], **how}
    root = with_tables(make_run(**changes))
    assert "'patient'" in " ".join(cli.ok("check", root).split())
    assert cli("run", root)[0] == 0
    before = (root / "public" / "facts.json").read_text(encoding="utf-8") if not how else ""
    assert cli("run", root)[0] == 0
    assert not before or "accuracy" in before
    model = skops.io.load(root / "public" / "student.skops")
    assert model is not None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data.text": ["notes"]}, "did you mean 'note'"),
        ({"data.text": ["ill"]}, "which is the label"),
        ({"data.text": ["note"], "data.drop": ["note"]}, "more than once"),
        ({"data.dates": 3}, "must name columns"),
    ],
)
def test_what_data_says_wrongly_of_columns_is_one_line(
    make_run: Any, cli: Any, changes: dict[str, Any], told: str
) -> None:
    assert told in " ".join(cli.refused(2, "check", with_tables(make_run(**changes))).split())


def test_a_private_cell_turns_no_text_column_into_numbers(make_run: Any, cli: Any) -> None:
    root = with_tables(make_run())
    rows = pl.read_csv(root / "private.csv", infer_schema=False)
    rows.with_columns(ward=pl.lit("3")).write_csv(root / "private.csv")
    assert cli("check", root)[0] == 0
