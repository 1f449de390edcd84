"""What a check costs over the number of columns: both methods, the three containers of a table of gene expression."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.paired import Growth

PRIVATE, PUBLIC = 200, 60  # rows
SETTINGS: dict[str, Any] = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_records": PRIVATE}


def table(rows: int, columns: int, seed: int, container: str) -> Any:
    values = np.random.default_rng(seed).normal(size=(rows, columns))
    if container == "array":
        return values
    names = [f"gene {at}" for at in range(columns)]
    if container == "polars":
        import polars as pl

        return pl.DataFrame(values, schema=names)
    import pandas as pd

    return pd.DataFrame(values, columns=names)


def checked(columns: int, *, method: str, container: str) -> Callable[[], Any]:
    from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, check

    X, pool = table(PRIVATE, columns, 1, container), PublicPool(table(PUBLIC, columns, 2, container))
    y = np.random.default_rng(3).integers(0, 2, PRIVATE)
    estimator = (
        PrivateClassifier(method="votes", **SETTINGS, n_jobs=1)
        if method == "votes"
        else PrivateLogisticRegression(**SETTINGS)
    )
    return lambda: check(estimator, X, y, public=pool)


CURVES = tuple(
    Growth(
        f"check, {method}, {container}",
        "columns",
        (100, 1_000, 4_000, 20_000),
        (100, 400),
        partial(checked, method=method, container=container),
        repeats=1,
    )
    for method in ("votes", "direct")
    for container in ("array", "polars", "pandas")
)
