r"""The settings of a run, from public facts alone: the pool, the number of units, and what (ε, δ) allows.

| setting | two classes, one logit | more classes, one logit each |
|---|---|---|
| κ: smallest with d(κ) ≤ min(ρ μ n₀, 1500, m/2) | ρ = .04 | ρ = .025 |
| clip B = c × median held-out length of z | c = .45 √(.04/r), within [.45, 1] | c = .4 |
| rounds T | .5/r rounded, within [8, 32] | 12 |
| rate η | 4 | 4 |

with :math:`r = d(\kappa)/(\mu n_0)`. Lengths are measured on *held-out* rows of the pool, since rows that the
coordinates were fitted on mislead by up to 2.3 times. η = 4 makes the first step Newton's, for the curvature of the
logistic loss is at most 1/4.
"""

from __future__ import annotations

from dataclasses import dataclass
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

    Attributes
    ----------
    ridge : float
        κ.
    clip : float
        B, in the unit of z.
    rounds : int
        T.
    rate, momentum : float
        η, and the share of a step that is kept for the next.
    """

    ridge: float
    clip: float
    rounds: int
    rate: float = RATE
    momentum: float = 0.0


WITHOUT_POOL = DirectSettings(
    ridge=0.0, clip=1.0, rounds=100, momentum=0.9
)  #: for rows of length one, with a constant 1


def spectrum_of(features: Any) -> tuple[Spectrum, Any | None]:
    """Return the spectrum of public features, and those of public rows that it was computed without, or None.

    Of more than 1,500 sparse rows nine tenths tell the leading directions, so that the lengths of the others need no
    second decomposition.
    """
    if kind(features) != "sparse" or min(features.shape) <= ALL_DIRECTIONS:
        return Spectrum.of(features), None
    held = _folds(features.shape[0]) == 0
    return leading_spectrum(features[~held]), features[held]


def settings_for(
    features: Any, spectrum: Spectrum, held: Any | None, *, n_classes: int, n_units: int, mu: float
) -> DirectSettings:
    """Return the settings of a run with a public pool.

    Parameters
    ----------
    features : (n_public, n_features)
        Of public rows.
    spectrum : Spectrum
        Of them.
    held : (n_held, n_features) or None
        Features of public rows that the spectrum was computed without, if there are any.
    n_classes, n_units : int
        C ≥ 2, n₀ ≥ 1.
    mu : float
        The Gaussian parameter that (ε, δ) allows, > 0.
    """
    two = n_classes == 2
    target = min(RHO[two] * mu * n_units, MOST_DIMENSIONS, features.shape[0] / 2)
    ridge = spectrum.ridge_for(target)
    ratio = spectrum.effective_dimension(ridge) / (mu * n_units)
    if held is None:
        lengths = held_out_lengths(features, ridge)
    else:
        lengths = np.linalg.norm(np.asarray(held @ spectrum.vectors) / np.sqrt(spectrum.values + ridge), axis=1)
    length = max(float(np.median(lengths)), 1e-6)
    share = min(max(0.45 * sqrt(0.04 / ratio), 0.45), 1.0) if two else 0.4
    rounds = min(max(round(0.5 / ratio), 8), 32) if two else 12
    return DirectSettings(ridge=ridge, clip=share * length, rounds=rounds)


def _folds(m: int) -> IntArray:
    return np.random.default_rng(0).permutation(m) % min(FOLDS, m)


def held_out_lengths(features: Any, ridge: float) -> FloatArray:
    """Return the lengths of z of public rows, each in coordinates that were fitted without it."""
    m = features.shape[0]
    folds = _folds(m)
    lengths = []
    for fold in range(1 if m >= ONE_FOLD_FROM else int(folds.max()) + 1):
        held = folds == fold
        if held.all():
            continue
        z = _seen_from(features[~held], features[held], ridge)
        lengths.append(np.linalg.norm(z, axis=1))
    return np.concatenate(lengths)


def _seen_from(rest: Any, held: Any, ridge: float) -> FloatArray:
    """Return the coordinates of public rows that other public rows define."""
    m, width = rest.shape
    if width <= m or kind(rest) != "sparse":
        return np.asarray(held @ Spectrum.of(rest).whitening(ridge))
    values, dual = dual_eigenpairs(rest)  # a direction of thousands of words is not written out for a length
    return np.asarray((held @ rest.T).toarray() @ (dual / np.sqrt(m * values * (values + ridge))))
