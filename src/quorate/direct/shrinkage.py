r"""Released weights shrunk towards 0 by what is known of their error: public, and free.

After the rounds of one logit each weight is :math:`w_j + e_j`, and how large the error :math:`e_j` is on average is
known: the noise of the rounds, and the units' own randomness under the model's probabilities. Weights along directions
of about equal size are taken together, some at a time, and multiplied by half of what James and Stein's estimator takes
away: :math:`\max(0, 1 - \tfrac12 \frac{q - 2}{q} \sum V / \sum w^2)` for q of them.

References
----------
James and Stein (1961), Estimation with quadratic loss; in bands, as Cavalier and Tsybakov (2001).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quorate.direct.defaults import DirectSettings
from quorate.direct.rounds import averaged_rounds
from quorate.types import FloatArray

STRENGTH = 0.5
FIRST_BAND = 8
GROWTH = 1.3  # of the next band


@dataclass(frozen=True, slots=True)
class RoundNoise:
    """What the error of released weights follows from.

    `noise`: standard deviation on each number of a round, in the unit of the gradient. `n_units`: n₀. `n_rounds`: those
    that were stored.
    """

    noise: float
    n_units: int
    n_rounds: int


def shrunk(
    weights: FloatArray, z: FloatArray, settings: DirectSettings, rounds: RoundNoise, blocks: Sequence[int]
) -> FloatArray:
    """Return released weights of one logit, ``(n_coordinates, 1)``, shrunk; as they are where settings do not say so.

    `z`: coordinates of public rows. `blocks`: how many coordinates each block has, in their order.
    """
    if settings.length is None or not rounds.n_rounds or not len(z):
        return weights
    variances = error_variances(weights[:, 0], z, settings, rounds)
    result = weights[:, 0].copy()
    for band in _bands(blocks):
        q, size = len(result[band]), float(np.sum(result[band] ** 2))
        if q > 2 and size > 0:
            result[band] *= max(0.0, 1 - STRENGTH * (q - 2) / q * float(np.sum(variances[band])) / size)
    return result[:, None]


def error_variances(weights: FloatArray, z: FloatArray, settings: DirectSettings, rounds: RoundNoise) -> FloatArray:
    """Return the variance of each averaged weight, ``(n_coordinates,)``, to first order about the weights."""
    lengths = np.linalg.norm(z, axis=1)
    middle = float(np.median(lengths))
    scale = (settings.length or 0.0) / middle if middle > 0 else 1.0
    z, lengths = z * scale, lengths * scale  # rows that coordinates were fitted on are shorter than others
    p = 1.0 / (1.0 + np.exp(-np.clip(z @ weights, -500.0, 500.0)))
    most = settings.clip / np.maximum(lengths, 1e-300)  # of a slope
    slopes, chances = np.stack([1 - p, p]), np.stack([p, 1 - p])
    cut = np.minimum(slopes, most)
    factors = np.divide(cut, slopes, out=np.ones_like(cut), where=slopes > 0)
    curvature = np.mean((p * (1 - p) * (chances * factors).sum(axis=0))[:, None] * z**2, axis=0)
    squares = np.mean((chances * cut**2).sum(axis=0)[:, None] * z**2, axis=0)
    noisy, gain = _of_average(settings, rounds, curvature)
    own = np.divide(gain, curvature, out=np.zeros_like(gain), where=curvature > 0)
    return np.asarray(noisy * (rounds.noise / rounds.n_units) ** 2 + own**2 * squares / rounds.n_units)


def _of_average(settings: DirectSettings, rounds: RoundNoise, curvature: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what the mean of the last weights of w → (1 - η h) w + η g makes of noise and of a constant g, times h.

    The first is the sum of squares of what each round's noise counts with in the mean.
    """
    kept = np.maximum(1 - settings.rate * curvature, 0.0)
    last = averaged_rounds(settings, rounds.n_rounds)
    counts, squares = np.zeros_like(kept), np.zeros_like(kept)
    for back in range(rounds.n_rounds):  # from the last round: those after it are in the mean with powers of `kept`
        counts = kept * counts + (back < last)
        squares += counts**2
    powers = [kept ** (rounds.n_rounds - back) for back in range(last)]
    return (settings.rate / last) ** 2 * squares, np.asarray(1 - np.mean(powers, axis=0))


def _bands(blocks: Sequence[int]) -> Iterator[slice]:
    """Cut each block into bands of 8, 10, 13, … coordinates, the last of what is left."""
    start = 0
    for size in blocks:
        end, width = start + size, float(FIRST_BAND)
        while start < end:
            stop = min(start + int(width), end)
            yield slice(start, stop)
            start, width = stop, width * GROWTH
