r"""The settings of a run, from public facts alone: the pool, the number of units, and what (ε, δ) allows.

| setting | two classes, one logit | more classes, one logit each |
|---|---|---|
| κ: smallest with d(κ) ≤ min(ρ μ n₀, max(n₀/48, 2√n₀), 1500, m/2) | ρ = .04 | ρ = .025 |
| clip B = c × median held-out length of z | c = .45 √(.04/r), within [.45, 1] | c = .4 |
| rounds T | .5/r rounded, within [8, 32] | 12 |
| rate η | 4 | 4 |

with :math:`r = d(\kappa)/(\mu n_0)`, and μ that of replacing one unit, for which the constants were found; where (ε, δ)
is for adding or removing one, twice its μ stands here (:func:`quorate.direct.plan.mu_for_settings`). Lengths are
measured on *held-out* rows of the pool, since rows that the coordinates were fitted on mislead by up to 2.3 times.
η = 4 makes the first step Newton's, for the curvature of the logistic loss is at most 1/4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from quorate.data.feature_maps.coordinates import Spectrum, dual_eigenpairs
from quorate.data.feature_maps.leading import leading_spectrum
from quorate.data.rows import kind
from quorate.types import FloatArray, IntArray

RHO = {True: 0.04, False: 0.025}
MOST_DIMENSIONS = 1_500
RATE = 4.0
FOLDS = 10
ALL_DIRECTIONS = 1_500  # sparse public rows, or columns, up to which all directions are computed
ONE_FOLD_FROM = 700  # public rows from which one tenth is held out, once


@dataclass(frozen=True, slots=True)
class DirectSettings:
    """What every round is done with; public.

    `ridge`: κ. `clip`: b, in the unit of z. `rounds`: t. `rate`, `momentum`: η, and the share of a step that is kept
    for the next.
    """

    ridge: float
    clip: float
    rounds: int
    rate: float = RATE
    momentum: float = 0.0


WITHOUT_POOL = DirectSettings(
    ridge=0.0, clip=1.0, rounds=100, momentum=0.9
)  #: for rows of length one, with a constant 1


@dataclass(frozen=True, slots=True, eq=False)
class PoolMoments:
    """What settings follow from of a pool, at whatever budget: worked out once where several budgets are compared.

    `features`: of public rows. `spectrum`: of them. `held`: features of public rows that the spectrum was computed
    without, if there are any.
    """

    features: Any = field(repr=False)
    spectrum: Spectrum
    held: Any | None = field(repr=False)
    _folds: list[Callable[[float], FloatArray]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, features: Any) -> PoolMoments:
        """Decompose the second moment of public features ``(n_public, n_features)``."""
        return cls(features, *spectrum_of(features))

    def lengths(self, ridge: float) -> FloatArray:
        """Return the lengths of z of public rows, each in coordinates that were fitted without it."""
        if self.held is not None:
            lengths = np.sqrt(self.spectrum.values + ridge)
            held = self.held.astype(self.spectrum.vectors.dtype)
            return np.asarray(np.linalg.norm(np.asarray(held @ self.spectrum.vectors) / lengths, axis=1))
        if not self._folds:
            self._folds.extend(_held_out(self.features))
        return np.concatenate([np.linalg.norm(seen(ridge), axis=1) for seen in self._folds])


def spectrum_of(features: Any) -> tuple[Spectrum, Any | None]:
    """Return the spectrum of public features, and those of public rows that it was computed without, or None.

    Of more than 1,500 sparse rows nine tenths tell the leading directions, so that the lengths of the others need no
    second decomposition.
    """
    if kind(features) != "sparse" or min(features.shape) <= ALL_DIRECTIONS:
        return Spectrum.of(features), None
    held = _folds(features.shape[0]) == 0
    return leading_spectrum(features[~held]), features[held]


def settings_for(moments: PoolMoments, *, n_classes: int, n_units: int, mu: float) -> DirectSettings:
    """Return the settings of a run with a public pool.

    `moments`: of the pool. `n_classes`, `n_units`: c ≥ 2, n₀ ≥ 1. `mu`: the Gaussian parameter that (ε, δ) allows for
    replacing one unit, > 0.
    """
    two = n_classes == 2
    target = min(RHO[two] * mu * n_units, most_dimensions(n_units), MOST_DIMENSIONS, moments.features.shape[0] / 2)
    ridge = moments.spectrum.ridge_for(target)
    ratio = moments.spectrum.effective_dimension(ridge) / (mu * n_units)
    length = max(float(np.median(moments.lengths(ridge))), 1e-6)
    share = min(max(0.45 * sqrt(0.04 / ratio), 0.45), 1.0) if two else 0.4
    rounds = min(max(round(0.5 / ratio), 8), 32) if two else 12
    return DirectSettings(ridge=ridge, clip=share * length, rounds=rounds)


def most_dimensions(n_units: int) -> float:
    """Return how many dimensions the sample can tell apart, however little noise there is: max(n₀/48, 2√n₀).

    Where labels are hard to predict, a model of more of them fits the labels that it has seen, so that a run with more
    privacy to spend would be the worse one.
    """
    return max(n_units / 48, 2 * sqrt(n_units))


def _folds(m: int) -> IntArray:
    return np.random.default_rng(0).permutation(m) % min(FOLDS, m)


def _held_out(features: Any) -> list[Callable[[float], FloatArray]]:
    """Return for each fold of public rows what gives their coordinates, fitted on the others, at a ridge."""
    m = features.shape[0]
    folds = _folds(m)
    parts = [folds == fold for fold in range(1 if m >= ONE_FOLD_FROM else int(folds.max()) + 1)]
    return [_seen_from(features[~held], features[held]) for held in parts if not held.all()]


def _seen_from(rest: Any, held: Any) -> Callable[[float], FloatArray]:
    """Return the function from a ridge to the coordinates of public rows that other public rows define."""
    m, width = rest.shape
    if width <= m or kind(rest) != "sparse":
        spectrum = Spectrum.of(rest)
        along = np.asarray(held @ spectrum.vectors)
        return lambda ridge: np.asarray(along / np.sqrt(spectrum.values + ridge))
    values, dual = dual_eigenpairs(rest)  # a direction of thousands of words is not written out for a length
    products = (held @ rest.T).toarray()
    return lambda ridge: np.asarray(products @ (dual / np.sqrt(m * values * (values + ridge))))
