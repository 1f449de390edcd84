"""Whether contributions are, on this machine, what the price rests on: looked at on public rows before each run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from quorate.data.rows import Rows, take
from quorate.direct.contributions import Grid, lengths_of, of_groups, of_records
from quorate.direct.plan import DirectPlan
from quorate.errors import PreconditionFailed
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

ROWS = 48
GROUP = 3  # rows of a made-up person


@stored_as("quorate.direct.contribution_check.check_contributions")
def check_contributions(plan: DirectPlan, pool: Rows, *, unit: str = "record") -> None:
    """Look whether public rows with made-up labels add the same integers alone and together, none too long. That it
    holds for every row there could be is what the proof says; this finds a library or a processor on which the proof's
    arithmetic does not happen, and raises PreconditionFailed. Privacy: a function of public rows alone.
    """
    rows, codes, weights = made_up(plan, pool)
    faults = faults_of(plan, rows, codes, weights)
    if faults:
        raise PreconditionFailed(
            f"{' and '.join(faults)}, so the price would not cover what one {unit} can change. Nothing was drawn. This "
            "is a fault of quorate or of a numerical library on this machine; please report it"
        )


def made_up(plan: DirectPlan, pool: Rows) -> tuple[Rows, IntArray, FloatArray]:
    """Return public rows, labels and weights to look at contributions with; the same ones each time."""
    rng = np.random.default_rng(0)
    rows: Any = take(pool, rng.integers(0, pool.shape[0], ROWS)).copy()
    # The first row holds what is not finite: it must add nothing, and change no other row's part.
    if isinstance(rows, np.ndarray):
        rows[0, 0] = np.nan
    else:
        rows = rows.tolil()
        rows[0, 0] = np.inf
        rows = rows.tocsr()
    codes = rng.integers(0, plan.n_codes, ROWS)
    return rows, codes, rng.normal(size=plan.start.shape)


@np.errstate(all="ignore")  # one row holds what is not finite
def faults_of(plan: DirectPlan, rows: Rows, codes: IntArray, weights: FloatArray) -> list[str]:
    """Name what is wrong with the contributions of rows, alone and together, as records and as groups; none if well."""
    together = plan.coordinates(rows)
    rows_alone = [plan.coordinates(take(rows, [i])) for i in range(len(codes))]
    faults = []
    alone, beside = (
        np.vstack([z.toarray() if hasattr(z, "toarray") else z for z in of]) for of in (rows_alone, [together])
    )
    if not np.array_equal(alone, beside, equal_nan=True):
        faults.append("the coordinates of a row depend on the rows beside it")
    forms = (together, plan.coordinates.for_rounds(rows))
    return faults + list(
        dict.fromkeys(fault for grid in plan.grids for fault in _faults_on(grid, forms, rows_alone, codes, weights))
    )


def _faults_on(
    grid: Grid, forms: tuple[Any, Any], rows_alone: list[Any], codes: IntArray, weights: FloatArray
) -> list[str]:
    """Name what is wrong with what rows add on one grid; `forms`: all rows, as coordinates and as in rounds."""
    together, faults = forms[0], []
    alone = [
        of_records(rows_alone[i], lengths_of(rows_alone[i]), codes[i : i + 1], weights, grid) for i in range(len(codes))
    ]
    sums = [of_records(z, lengths_of(z), codes, weights, grid) for z in forms]
    if any((np.sum(alone, axis=0) != total).any() for total in sums):
        faults.append("what a record adds depends on the records beside it")
    starts = np.arange(0, len(codes) + 1, GROUP)
    groups = [of_groups(together[a:b], codes[a:b], np.array([0, b - a]), weights, grid) for a, b in pairwise(starts)]
    if not (np.sum(groups, axis=0) == of_groups(together, codes, starts, weights, grid)).all():
        faults.append("what a person adds depends on the persons beside them")
    if max(sum(int(value) ** 2 for value in part.ravel()) for part in (*alone, *groups)) > 4**grid.k:
        faults.append("a contribution is longer than the clip")
    return faults
