"""A plan that was written and read back gives every row the same integers, and finds the same charge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from quorate.data.feature_maps.composed import feature_map_for
from quorate.direct.contribution_check import faults_of, made_up
from quorate.direct.plan import DirectPlan, plan_direct
from quorate.direct.stored import dump_plan, load_plan
from quorate.run.schema import Schema

HOW: dict[str, Any] = {"n_classes": 3, "n_units": 2_000, "epsilon": 1.0, "delta": 1e-5}


def planned(name: Any, *, words: bool = False) -> tuple[DirectPlan, Any]:
    pool: Any = np.random.default_rng(0).normal(size=(80, 5))
    if words:
        pool = sparse.random(80, 200, density=0.1, format="csr", random_state=0)
    return plan_direct(feature_map_for(name, pool), pool, **HOW), pool


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("name", "words"), [("linear", False), ("linear", True), ("rbf", False), ("both", False), ("kernels", False)]
)
def test_every_map_is_read_back_bit_for_bit(name: str, words: bool) -> None:
    plan, pool = planned(name, words=words)
    again, encoder = load_plan(dump_plan(plan, None))
    assert encoder is None
    assert again.digest == plan.digest
    assert again.event == plan.event
    assert (again.coordinates(pool) == plan.coordinates(pool)).all()
    assert faults_of(again, *made_up(again, pool)) == []


def test_an_encoder_is_read_back_too() -> None:
    import polars as pl

    pool = pl.DataFrame({"a": [1.0, 2.0, None, 5.0], "b": ["x", "y", "x", "y"]})
    schema = Schema.of(pool)
    plan, _ = planned("linear")
    _, encoder = load_plan(dump_plan(plan, schema.encoder))
    assert (encoder.transform(pool) == schema.encoder.transform(pool)).all()
