"""Noisy gradient rounds with one flaw each, beside the correct ones on the same units.

Units are rows of integer gradients, ``(n_units, 2)``. The correct rounds cut each off at a length, add them up, and
add noise that is made for replacing one unit: it moves the sum by twice the length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from quorate.audit.cheats.noisy_max import Case
from quorate.audit.claims import GaussianClaim
from quorate.audit.sampled import ByStream
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.types import FloatArray, IntArray

CLIP = 1_000  # the length that a unit is cut off at
ROUNDS = 10
MU = 1.0  # what all rounds together are claimed to be
SIGMA = 2 * CLIP * sqrt(ROUNDS) / MU
LONG = 3_000  # entries of the unit that is replaced: three times longer than the clip, and on a diagonal


@dataclass(frozen=True, slots=True)
class GradientRounds(ByStream):
    """Correct rounds on units ``(n_units, 2)``; told are all noisy sums, one after another."""

    sigma: float = SIGMA

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Go all rounds on each of ``(n_tables, n_units, 2)``."""
        sums = np.trunc(self._clipped(counts.astype(np.float64))).astype(np.int64).sum(axis=1)
        return np.asarray(self._noisy(np.repeat(sums[:, None], ROUNDS, axis=1), noise).reshape(len(counts), -1))

    def _clipped(self, gradients: FloatArray) -> FloatArray:
        """Cut each unit off at the clip."""
        lengths = np.linalg.norm(gradients, axis=2, keepdims=True)
        return np.asarray(gradients * np.minimum(1.0, CLIP / np.maximum(lengths, 1.0)))

    def _noisy(self, sums: IntArray, noise: NoiseSource) -> IntArray:
        return np.asarray(sums + discrete_gaussian(self.sigma, sums.shape, noise))


class NoClip(GradientRounds):
    """The clip is computed and not applied."""

    def _clipped(self, gradients: FloatArray) -> FloatArray:
        return gradients


class WrongAxis(GradientRounds):
    """Each coordinate is cut off by itself: the length is taken along the axis that holds one number."""

    def _clipped(self, gradients: FloatArray) -> FloatArray:
        return np.asarray(np.clip(gradients, -CLIP, CLIP))


class DrawnTwice(GradientRounds):
    """A round that is resumed gets its noise anew, and both noisy sums are seen."""

    def _noisy(self, sums: IntArray, noise: NoiseSource) -> IntArray:
        twice = np.repeat(sums, 2, axis=1)
        return np.asarray(twice + discrete_gaussian(self.sigma, twice.shape, noise))


_UNITS = np.array([[400, -100], [-300, 500], [0, 800]])

_CORRECT = Case(
    name="noisy gradient rounds",
    source="Each unit is cut off, and the noise is made for replacing one.",
    mechanism=GradientRounds(),
    neighbours=(np.vstack([_UNITS, [[LONG, LONG]]]), np.vstack([_UNITS, [[-LONG, -LONG]]])),
    claimed=GaussianClaim(MU),
    runs=20_000,
)

CHEATS = (
    _CORRECT.broken(
        "a clip that does not clip", "Gradients are summed as they are, so nothing bounds one unit.", NoClip()
    ),
    _CORRECT.broken(
        "a norm by the wrong axis",
        "Each coordinate is cut off by itself, so that a unit of d coordinates is √d times too long.",
        WrongAxis(),
    ),
    _CORRECT.broken(
        "a round drawn twice", "A resumed round draws its noise again, and both sums are seen.", DrawnTwice()
    ),
    _CORRECT.broken(
        "neighbouring sums half as far apart",
        "The noise is made for a unit that comes or goes, and a unit may be replaced.",
        GradientRounds(SIGMA / 2),
    ),
)

HONEST = (_CORRECT,)
