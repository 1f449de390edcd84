r"""Noisy gradient rounds in public coordinates.

From :math:`w_0 = 0`, for :math:`t = 1, \dots, T`: the integers of all units are summed, noise is added to the sum, the
noisy sum is stored, and

.. math:: w_t = w_{t-1} + v_t, \qquad v_t = \beta v_{t-1} + \eta\, \frac{B}{2^k} \frac{\tilde S_t}{n_0}.

A round that was drawn but not stored, because the process ended in between, is skipped and never drawn again. The
result is the mean of w over the last of the stored rounds, half of them where nothing else is set. No stopping rule
looks at private rows.

References
----------
Song, Chaudhuri and Sarwate (2013); Bassily, Smith and Thakurta (2014), arXiv:1405.7085, for noisy gradient rounds;
Dong, Roth and Su (2022), arXiv:1905.02383, Corollary 3.3, for their composition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Protocol

import numpy as np

from quorate.direct.contributions import Grid, lengths_of, of_groups, of_records
from quorate.direct.defaults import DirectSettings
from quorate.types import FloatArray, IntArray


class SummedUnits(Protocol):
    """The private side of the rounds: all that is asked of it is a sum of integers."""

    def summing(self, grid: Grid) -> Callable[[FloatArray], IntArray]:
        """Return the function from weights to the sum of the units' integers, ``(n_coordinates, n_outputs)``."""


@dataclass(frozen=True, slots=True, eq=False)
class PrivateUnits:
    """What the private side brings to every round: integer coordinates, codes, and where each unit begins.

    `z`: integer coordinates of usable rows, those of one unit together and in their own order. `codes`: classes.
    `starts`: where each unit begins; None where every row is a unit.
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
    """The weights as they follow from the rounds that were stored: public, and the same after every restart."""

    settings: DirectSettings
    grid: Grid
    n_units: int
    weights: FloatArray
    _velocity: FloatArray = field(init=False)
    _path: list[FloatArray] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._velocity = np.zeros_like(self.weights)

    def take(self, noisy_sum: IntArray) -> None:
        """Go one step on, by the noisy sum ``(n_coordinates, n_outputs)`` of a stored round."""
        step = self.settings.rate * self.grid.step / self.n_units
        self._velocity = self.settings.momentum * self._velocity + step * noisy_sum
        self.weights = self.weights + self._velocity
        self._path.append(self.weights)

    def replay(self, stored: Iterable[IntArray]) -> None:
        """Go the steps of rounds that an earlier process stored."""
        for noisy_sum in stored:
            self.take(noisy_sum)

    @property
    def n_rounds(self) -> int:
        """Rounds that were taken."""
        return len(self._path)

    def result(self) -> FloatArray:
        """Return the mean of the weights over the last rounds; those of no round are zero."""
        if not self._path:
            return self.weights
        return np.asarray(np.mean(self._path[-averaged_rounds(self.settings, self.n_rounds) :], axis=0))


def averaged_rounds(settings: DirectSettings, n_rounds: int) -> int:
    """Return over how many of the stored rounds, the last ones, weights are averaged: a share rounded up."""
    return ceil(settings.averaged * n_rounds - 1e-9)
