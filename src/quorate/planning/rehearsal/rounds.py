r"""Noisy gradient rounds without private rows: labelled public rows stand for all units, each many times over.

Where each of T rows stands for :math:`n_0/T` units, the sum of all units is :math:`n_0/T` times theirs. So T units with
noise of :math:`\sigma T/n_0` take the very steps of :math:`n_0` units with noise of σ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.data.rows import take
from quorate.direct.model import published_model
from quorate.direct.plan import DirectPlan
from quorate.direct.rounds import Descent, PrivateUnits
from quorate.noise import discrete_gaussian
from quorate.planning.rehearsal.material import Material
from quorate.release.source import noise_and_key
from quorate.types import IntArray

MOST_UNITS = 60  # of several rows each
MOST_ROWS = 20_000  # that are drawn for them


def round_codes(
    material: Material, plan: DirectPlan, trained_on: IntArray, held: IntArray, *, rows_each: float, seed: int
) -> IntArray:
    """Go all rounds on rows that play the private ones, and predict the held-out rows: codes ``(n_held,)``.

    Parameters
    ----------
    material : Material
        Public rows.
    plan : DirectPlan
        Coordinates, settings and noise of the true run.
    trained_on, held : IntArray
        Labelled rows.
    rows_each : float
        Rows of a unit, on average.
    seed : int
        Of noise and of what is drawn.
    """
    assert material.schema is not None  # noqa: S101 - a direct row has one
    rng = np.random.default_rng(seed)
    codes, starts, n_units = material.codes[trained_on], None, len(trained_on)
    rows = trained_on
    if rows_each >= 2:
        each = round(rows_each)
        n_units = max(2, min(plan.n_units, MOST_UNITS, MOST_ROWS // each))
        rows = rng.choice(trained_on, n_units * each)
        codes, starts = material.codes[rows], np.arange(n_units + 1, dtype=np.int64) * each
    numbers: Any = take(material.rows[2], rows)
    with np.errstate(all="ignore"):
        units = PrivateUnits(plan.coordinates(material.schema.numbers(numbers)), codes, starts)
        summing = units.summing(plan.grid)
        descent = Descent(plan.settings, plan.grid, n_units, plan.start)
        noise, _ = noise_and_key(seed)
        for _ in range(plan.settings.rounds):
            drawn = discrete_gaussian(max(plan.sigma * n_units / plan.n_units, 1.0), plan.start.shape, noise)
            descent.take(summing(descent.weights) + drawn)
    model = published_model(plan, material.schema, descent.result(), tuple(range(material.n_classes)))
    return np.asarray(model.predict(material.schema.formed(take(material.rows[2], held))))
