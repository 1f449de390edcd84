r"""Noisy gradient rounds without private rows: labelled public rows stand for all units, each many times over.

T rows that stand for n units, with noise of :math:`\sigma T/n`, take the steps of all units with noise of σ. Rows are
scored by their integer coordinates; what a run publishes differs from that by rounding alone.
"""

from __future__ import annotations

import numpy as np

from quorate.deferred import special
from quorate.direct.budgets import Outline
from quorate.direct.rounds import Descent, PrivateUnits
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import MAX_SCALE
from quorate.release.charge import noise_and_key
from quorate.types import FloatArray, IntArray

MOST_UNITS = 40  # of several rows each
MOST_ROWS = 20_000  # that are drawn for them


def codes_of_logits(logits: FloatArray) -> IntArray:
    """Return the likeliest class of each row."""
    return np.asarray(logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(axis=1), dtype=np.int64)


def probabilities_of_logits(logits: FloatArray) -> FloatArray:
    """Return ``(n_rows, n_classes)`` probabilities."""
    both = np.column_stack([np.zeros(len(logits)), logits[:, 0]]) if logits.shape[1] == 1 else logits
    return np.asarray(special.softmax(both, axis=1))


def round_logits(
    plan: Outline,
    z: FloatArray,
    codes: IntArray,
    trained_on: IntArray,
    held: IntArray,
    *,
    rows_each: float,
    share: float,
    seed: int,
) -> FloatArray:
    """Go all rounds on rows that play the private ones; return logits ``(n_held, n_outputs)`` of the held-out rows.

    `z`: integer coordinates of all labelled rows. `trained_on`, `held`: which of them. `rows_each`: of a unit, on
    average. `share`: how much of the rows that play the private ones these are: a half plays half as many units of
    several rows.
    """
    rng = np.random.default_rng(seed)
    starts, n_units, rows = None, len(trained_on), trained_on
    if rows_each >= 2:
        rows_of_one = round(rows_each)
        n_units = max(2, round(share * min(plan.n_units, MOST_UNITS, MOST_ROWS // rows_of_one)))
        rows = rng.choice(trained_on, n_units * rows_of_one)
        starts = np.arange(n_units + 1, dtype=np.int64) * rows_of_one
    with np.errstate(all="ignore"):
        summing = PrivateUnits(z[rows], codes[rows], starts).summing(plan.grid)  # of classes: one grid for all rounds
        start = np.zeros((z.shape[1], plan.n_outputs))
        descent = Descent(plan.settings, plan.grid, n_units, start)
        noise, _ = noise_and_key(seed)
        for _ in range(plan.settings.rounds):
            drawn = _drawn(plan.sigma, n_units / plan.n_units, start.shape, noise)
            descent.take(summing(descent.weights) + drawn)
        return np.asarray(np.ldexp(z[held] @ plan.shrunk(descent.result(), n_units, descent.n_rounds), -plan.grid.bits))


def _drawn(sigma: float, times: float, shape: tuple[int, ...], noise: NoiseSource) -> IntArray:
    """Return discrete Gaussian noise of `times` as much, or noise as large where that is more than can be drawn."""
    if sigma * times <= MAX_SCALE:
        return discrete_gaussian(max(sigma * times, 1.0), shape, noise)
    drawn: IntArray = np.rint(discrete_gaussian(sigma, shape, noise) * times).astype(np.int64)
    return drawn
