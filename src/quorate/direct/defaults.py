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

import numpy as np

from quorate.data.feature_maps.coordinates import FeatureMap, Spectrum, public_features
from quorate.types import FloatArray

RHO = {True: 0.04, False: 0.025}
MOST_DIMENSIONS = 1_500
RATE = 4.0
FOLDS = 10
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


def settings_for(
    feature_map: FeatureMap, pool: object, spectrum: Spectrum, *, n_classes: int, n_units: int, mu: float
) -> DirectSettings:
    """Return the settings of a run with a public pool.

    Parameters
    ----------
    feature_map : FeatureMap
        Rows to features.
    pool : rows
        Public, encoded.
    spectrum : Spectrum
        Of the pool's features.
    n_classes, n_units : int
        C ≥ 2, n₀ ≥ 1.
    mu : float
        The Gaussian parameter that (ε, δ) allows, > 0.
    """
    features = public_features(feature_map, pool)
    two = n_classes == 2
    target = min(RHO[two] * mu * n_units, MOST_DIMENSIONS, features.shape[0] / 2)
    ridge = spectrum.ridge_for(target)
    ratio = spectrum.effective_dimension(ridge) / (mu * n_units)
    length = max(float(np.median(held_out_lengths(features, ridge))), 1e-6)
    share = min(max(0.45 * sqrt(0.04 / ratio), 0.45), 1.0) if two else 0.4
    rounds = min(max(round(0.5 / ratio), 8), 32) if two else 12
    return DirectSettings(ridge=ridge, clip=share * length, rounds=rounds)


def held_out_lengths(features: object, ridge: float) -> FloatArray:
    """Return the lengths of z of public rows, each in coordinates that were fitted without it."""
    m = features.shape[0]  # type: ignore[attr-defined]
    folds = np.random.default_rng(0).permutation(m) % min(FOLDS, m)
    lengths = []
    for fold in range(1 if m >= ONE_FOLD_FROM else int(folds.max()) + 1):
        held = folds == fold
        if held.all():
            continue
        spectrum = Spectrum.of(features[~held])  # type: ignore[index]
        z = np.asarray(features[held] @ spectrum.whitening(ridge))  # type: ignore[index]
        lengths.append(np.linalg.norm(z, axis=1))
    return np.concatenate(lengths)
