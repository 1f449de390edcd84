r"""Noisy gradient rounds in public coordinates, and released weights shrunk towards 0 by what is known of their error.

From :math:`w_0 = 0`, for :math:`t = 1, \dots, T`: the integers of all units are summed, noise is added to the sum, the
noisy sum is stored, and

.. math:: w_t = w_{t-1} + v_t, \qquad v_t = \beta v_{t-1} + \eta\, \frac{B}{2^k} \frac{\tilde S_t}{n_0}.

A round that was drawn but not stored, because the process ended in between, is skipped and never drawn again. The
result is the mean of w over the last of the stored rounds, half of them where nothing else is set. No stopping rule
looks at private rows.

After the rounds of one logit each weight is :math:`w_j + e_j`, and how large the error :math:`e_j` is on average is
known: the noise of the rounds, and the units' own randomness under the model's probabilities. Weights along directions
of about equal size are taken together, some at a time, and multiplied by part of what James and Stein's estimator takes
away: :math:`\max(0, 1 - (1 - 2 \bar p (1 - \bar p)) \frac{q - 2}{q} \sum V / \sum w^2)` for q of them, where
:math:`\bar p` is the mean probability over the public rows: half of it where both classes are as frequent, nearly all
where one is rare and rounds tell little beside their noise. That is public, and free.

References
----------
Song, Chaudhuri and Sarwate (2013); Bassily, Smith and Thakurta (2014), arXiv:1405.7085, for noisy gradient rounds;
Dong, Roth and Su (2022), arXiv:1905.02383, Corollary 3.3, for their composition. James and Stein (1961), Estimation
with quadratic loss; in bands, as Cavalier and Tsybakov (2001).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, Protocol

import numpy as np

from quorate.direct.contributions import Grid, lengths_of, of_groups, of_records
from quorate.direct.defaults import DirectSettings
from quorate.run.located import narrowed_part
from quorate.types import FloatArray, IntArray


class SummedUnits(Protocol):
    """The private side of the rounds: all that is asked of it is a sum of integers."""

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""


@dataclass(frozen=True, slots=True, eq=False)
class PrivateUnits:
    """What the private side brings to every round: integer coordinates, codes, and where each unit begins. Rows of one
    unit stand together, in their own order; without `starts` every row is a unit.
    """

    z: Any = field(repr=False)
    codes: IntArray = field(repr=False)
    starts: IntArray | None = field(repr=False)

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""
        if self.starts is not None:
            starts = self.starts
            return lambda weights: of_groups(self.z, self.codes, starts, weights, grid)
        lengths = lengths_of(self.z)
        return lambda weights: of_records(self.z, lengths, self.codes, weights, grid)


@dataclass(slots=True)
class Descent:
    """The weights as they follow from the rounds that were stored: public, and the same after every restart. `grid`,
    `weights`: of the next round. The first rounds of a number count targets, and the last one of classes how often the
    result is right, if the settings say so: then `counts` is its noisy sum. `finish`: makes the result of the mean
    weights and the number of rounds that they rest on.
    """

    settings: DirectSettings
    grid: Grid
    n_units: int
    weights: FloatArray
    finish: Callable[[FloatArray, int], FloatArray] | None = None
    counts: IntArray | None = field(init=False, default=None)
    _velocity: FloatArray = field(init=False)
    _path: list[FloatArray] = field(init=False, default_factory=list)
    _counting: int = field(init=False)
    _before_judging: int | None = field(init=False, default=None)  # rounds

    def __post_init__(self) -> None:
        self._velocity = np.zeros_like(self.weights)
        self._counting = self.settings.counting
        self.grid = replace(self.grid, cells=self.settings.cells if self._counting else 0)
        if self.settings.judges:
            self._before_judging = self.settings.rounds - 1

    def take(self, noisy_sum: IntArray | None) -> None:
        """Go one step on, by the noisy sum ``(n_coordinates, n_outputs)`` of a round; None for one that was lost."""
        if self._counting:
            self._counting -= 1
            if noisy_sum is not None:
                nearest = self.settings.nearest
                self.grid = narrowed(self.grid, noisy_sum, self.n_units, last=not self._counting, nearest=nearest)
            if not self._counting:
                self.grid = replace(self.grid, cells=0)
            return
        if self._before_judging is None:
            self._step(noisy_sum)
        elif self._before_judging == 0:
            self.counts = noisy_sum
        else:
            self._step(noisy_sum)
            self._before_judging -= 1
            if not self._before_judging:
                self.weights, self.grid = self.result(), replace(self.grid, cells=self.settings.cells)

    def _step(self, noisy_sum: IntArray | None) -> None:
        if noisy_sum is None:
            return
        step = self.settings.rate * self.grid.step / self.n_units
        self._velocity = self.settings.momentum * self._velocity + step * noisy_sum
        self.weights = self.weights + self._velocity
        self._path.append(self.weights)

    def replay(self, stored: Iterable[IntArray | None]) -> None:
        """Go the steps of rounds that an earlier process drew; None for one that it did not store."""
        for noisy_sum in stored:
            self.take(noisy_sum)

    @property
    def n_rounds(self) -> int:
        """Rounds that weights rest on."""
        return len(self._path)

    def result(self) -> FloatArray:
        """Return the mean of the weights over the last rounds, finished; those of no round are zero."""
        if not self._path:
            return self.weights
        mean = np.asarray(np.mean(self._path[-averaged_rounds(self.settings, self.n_rounds) :], axis=0))
        return mean if self.finish is None else self.finish(mean, self.n_rounds)


def narrowed(grid: Grid, noisy: IntArray, n_units: int, *, last: bool, nearest: bool) -> Grid:
    """Return the grid of the part that noisy counts of targets point to. `grid`: of the round that counted. `noisy`:
    its sum, in steps. `last`: whether the next round adds up gradients. `nearest`: whether the nearest shares stand in
    the place of noisy ones.
    """
    shares = noisy.ravel()[: grid.cells] / (2.0**grid.k * n_units)
    low, high = narrowed_part(grid.low, grid.high, shares, last=last, nearest=nearest)
    return replace(grid, low=low, high=high)


def averaged_rounds(settings: DirectSettings, n_rounds: int) -> int:
    """Return over how many of the stored rounds, the last ones, weights are averaged: a share rounded up."""
    return ceil(settings.averaged * n_rounds - 1e-9)


FIRST_BAND = 8
GROWTH = 1.3  # of the next band


@dataclass(frozen=True, slots=True)
class RoundNoise:
    """What the error of released weights follows from; `noise` is in the unit of the gradient."""

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
    mean = float(np.mean(_probabilities(_of_length(z, settings), weights[:, 0])))
    strength = 1 - 2 * mean * (1 - mean)
    result = weights[:, 0].copy()
    for band in _bands(blocks):
        q, size = len(result[band]), float(np.sum(result[band] ** 2))
        if q > 2 and size > 0:
            result[band] *= max(0.0, 1 - strength * (q - 2) / q * float(np.sum(variances[band])) / size)
    return result[:, None]


def error_variances(weights: FloatArray, z: FloatArray, settings: DirectSettings, rounds: RoundNoise) -> FloatArray:
    """Return the variance of each averaged weight, ``(n_coordinates,)``, to first order about the weights."""
    z = _of_length(z, settings)
    lengths, p = np.linalg.norm(z, axis=1), _probabilities(z, weights)
    most = settings.clip / np.maximum(lengths, 1e-300)  # of a slope
    slopes, chances = np.stack([1 - p, p]), np.stack([p, 1 - p])
    cut = np.minimum(slopes, most)
    factors = np.divide(cut, slopes, out=np.ones_like(cut), where=slopes > 0)
    curvature = np.mean((p * (1 - p) * (chances * factors).sum(axis=0))[:, None] * z**2, axis=0)
    squares = np.mean((chances * cut**2).sum(axis=0)[:, None] * z**2, axis=0)
    noisy, gain = _of_average(settings, rounds, curvature)
    own = np.divide(gain, curvature, out=np.zeros_like(gain), where=curvature > 0)
    return np.asarray(noisy * (rounds.noise / rounds.n_units) ** 2 + own**2 * squares / rounds.n_units)


def _of_length(z: FloatArray, settings: DirectSettings) -> FloatArray:
    """Return coordinates at the length of other rows: those that they were fitted on are shorter."""
    middle = float(np.median(np.linalg.norm(z, axis=1)))
    return z * ((settings.length or 0.0) / middle if middle > 0 else 1.0)


def _probabilities(z: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(z @ weights, -500.0, 500.0))))


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
