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

Where the map is linear beside the residual of two kernels (:class:`~quorate.data.feature_maps.ResidualMap`), each block
is whitened by itself, and d below is the sum of both effective dimensions:

| setting | two classes, one logit | more classes, one logit each |
|---|---|---|
| κ of the linear block: d(κ) ≤ φ d₀, with d₀ the bound above | φ = 1 | φ = .75 |
| κ of the residual: d(κ) ≤ min(1.5 max(d₀ - d of the linear block, d₀/2), m/2, 250) | | |
| clip B = c × √(the squared median lengths of both blocks) | c = .8 × that above | c = .32 |
| rounds T | .5/r rounded, within [8, 32] | .5/r rounded, within [12, 32] |
| rounds that are averaged, the last | 1/2 | 3/10 |
| weights shrunk afterwards (:mod:`.shrinkage`) | yes | no |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import hypot, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.feature_maps import ResidualMap
from quorate.data.feature_maps.coordinates import FeatureMap, Spectrum, dual_eigenpairs, public_features
from quorate.data.feature_maps.directions import leading_spectrum
from quorate.data.rows import kind, take
from quorate.deferred import linalg
from quorate.types import FloatArray, IntArray

RHO = {True: 0.04, False: 0.025}
MOST_DIMENSIONS = 1_500
RATE = 4.0
FOLDS = 10
ALL_DIRECTIONS = 1_500  # sparse public rows, or columns, up to which all directions are computed
ONE_FOLD_FROM = 700  # public rows from which one tenth is held out, once
OF_LINEAR = {True: 1.0, False: 0.75}  # of the dimensions, those of the linear block beside a residual one
MOST_OF_RESIDUAL = 250  # dimensions of the residual block
MOST_EIGENPAIRS = 800  # of a block
LEAST_PART = 0.02  # of an effective dimension below which a direction is left out
OF_CLIP = 0.8  # the clip where there are two blocks, beside that of one
HALF = 0.5  # the share of rounds that is averaged where there is one block
LAST_ROUNDS = {True: HALF, False: 0.3}  # the share of rounds that is averaged there


@dataclass(frozen=True, slots=True)
class DirectSettings:
    """What every round is done with; public.

    `ridge`: κ. `clip`: b, in the unit of z. `rounds`: t. `rate`, `momentum`: η, and the share of a step that is kept
    for the next. `residual_ridge`: κ of the residual block; None where there is none. `averaged`: the share of the
    rounds, the last ones, whose weights are averaged. `length`: the typical length of z, of a row that the coordinates
    were not fitted on, where weights are shrunk by it; None where they are not.
    """

    ridge: float
    clip: float
    rounds: int
    rate: float = RATE
    momentum: float = 0.0
    residual_ridge: float | None = field(default=None, repr=False)  # not in the digests of runs without one
    averaged: float = field(default=HALF, repr=False)
    length: float | None = field(default=None, repr=False)

    @property
    def of_blocks(self) -> tuple[Any, ...]:
        """What a digest adds to the other settings where there are two blocks."""
        return () if self.residual_ridge is None else (self.residual_ridge, self.averaged, self.length)


WITHOUT_POOL = DirectSettings(
    ridge=0.0, clip=1.0, rounds=100, momentum=0.9
)  #: for rows of length one, with a constant 1


@dataclass(frozen=True, slots=True, eq=False)
class PoolMoments:
    """What settings follow from of a pool, at whatever budget: worked out once where several budgets are compared.

    `features`: of public rows. `spectrum`: of them. `held`: features of public rows that the spectrum was computed
    without, if there are any. `refitted`: from which public rows are held out to the features of the others and
    theirs, where the map is to be fitted without them. `residual`: moments of the second block of features, whitened by
    itself; None where there is one block.
    """

    features: Any = field(repr=False)
    spectrum: Spectrum
    held: Any | None = field(repr=False)
    refitted: Callable[[NDArray[np.bool_]], tuple[Any, Any]] | None = field(default=None, repr=False)
    residual: PoolMoments | None = field(default=None, repr=False)
    _folds: list[Callable[[float], FloatArray]] = field(default_factory=list, repr=False)
    _along: list[FloatArray] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, features: Any) -> PoolMoments:
        """Decompose the second moment of public features ``(n_public, n_features)``, as one block."""
        return cls(features, *spectrum_of(features))

    @classmethod
    def of_map(cls, feature_map: FeatureMap, pool: Any) -> PoolMoments:
        """Decompose the second moment of each block of features of the public pool ``(n_public, n_columns)``."""
        features = public_features(feature_map, pool)
        if not isinstance(feature_map, ResidualMap):
            return cls.of(features)
        n = feature_map.n_linear

        def refitted(held: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
            again = feature_map.fitted_on(take(pool, np.flatnonzero(~held)))
            rest, own = (public_features(again, take(pool, np.flatnonzero(rows)))[:, n:] for rows in (~held, held))
            return rest, own

        linear, residual = (Spectrum.of(part).leading(MOST_EIGENPAIRS) for part in (features[:, :n], features[:, n:]))
        second = cls(features[:, n:], residual, None, refitted)
        return cls(features[:, :n], linear, None, residual=second)

    @property
    def n_public(self) -> int:
        """Public rows."""
        return int(self.features.shape[0])

    @property
    def values(self) -> FloatArray:
        """Eigenvalues, of the first block and then of the second."""
        return self.spectrum.values if self.residual is None else np.append(self.spectrum.values, self.residual.values)

    @property
    def directions(self) -> FloatArray:
        """Directions of length one, of the first block and then of the second, ``(n_features, n_values)``."""
        own = self.spectrum.vectors
        return own if self.residual is None else np.asarray(linalg.block_diag(own, self.residual.directions))

    def kept(self, settings: DirectSettings) -> NDArray[np.bool_]:
        """Tell which directions a run has: all of one block; of two, those of some effect, one at least of each."""
        if self.residual is None or settings.residual_ridge is None:
            return np.ones(len(self.values), dtype=np.bool_)
        parts = []
        for values, ridge in ((self.spectrum.values, settings.ridge), (self.residual.values, settings.residual_ridge)):
            part = values / (values + ridge) > LEAST_PART
            part[:1] = True
            parts.append(part)
        return np.concatenate(parts)

    def lengths_of_units(self, settings: DirectSettings) -> FloatArray:
        """Return what features along each direction are divided by to be coordinates, ``(n_values,)``."""
        own = np.sqrt(self.spectrum.values + settings.ridge)
        if self.residual is None or settings.residual_ridge is None:
            return np.asarray(own)
        return np.append(own, np.sqrt(self.residual.values + settings.residual_ridge))

    def whitening(self, settings: DirectSettings) -> FloatArray:
        """Return the matrix from features to the coordinates of a run, ``(n_features, n_coordinates)``."""
        if self.residual is None:
            return self.spectrum.whitening(settings.ridge)
        kept = self.kept(settings)
        return np.asarray(self.directions[:, kept] / self.lengths_of_units(settings)[kept])

    def coordinates(self, settings: DirectSettings) -> FloatArray:
        """Return the pool's own rows in the coordinates of a run, ``(n_public, n_coordinates)``."""
        if not self._along:
            blocks = [self] if self.residual is None else [self, self.residual]
            self._along.append(np.hstack([np.asarray(block.features @ block.spectrum.vectors) for block in blocks]))
        kept = self.kept(settings)
        return np.asarray(self._along[0][:, kept] / self.lengths_of_units(settings)[kept])

    def block_sizes(self, settings: DirectSettings) -> tuple[int, ...]:
        """Return how many coordinates of a run are of each block."""
        kept, n = self.kept(settings), len(self.spectrum.values)
        return (int(kept.sum()),) if self.residual is None else (int(kept[:n].sum()), int(kept[n:].sum()))

    def effective_dimension(self, settings: DirectSettings) -> float:
        """Return d(κ), summed over the blocks."""
        own = self.spectrum.effective_dimension(settings.ridge)
        if self.residual is None or settings.residual_ridge is None:
            return own
        return own + self.residual.spectrum.effective_dimension(settings.residual_ridge)

    def lengths(self, ridge: float) -> FloatArray:
        """Return the lengths of z of public rows, each in coordinates that were fitted without it."""
        if self.held is not None:
            lengths = np.sqrt(self.spectrum.values + ridge)
            held = self.held.astype(self.spectrum.vectors.dtype)
            return np.asarray(np.linalg.norm(np.asarray(held @ self.spectrum.vectors) / lengths, axis=1))
        if not self._folds:
            self._folds.extend(_held_out(self.features, self.refitted))
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
    target = wanted_dimension(moments.n_public, n_classes, n_units, mu)
    if moments.residual is not None:
        return _of_two_blocks(moments, moments.residual, target, two=two, mu_n=mu * n_units)
    ridge = moments.spectrum.ridge_for(target)
    ratio = moments.spectrum.effective_dimension(ridge) / (mu * n_units)
    length = max(float(np.median(moments.lengths(ridge))), 1e-6)
    share = _clip_share(ratio) if two else 0.4
    return DirectSettings(ridge=ridge, clip=share * length, rounds=rounds_for(ratio, n_classes))


def wanted_dimension(n_public: int, n_classes: int, n_units: int, mu: float) -> float:
    """Return the effective dimension that coordinates should have, where the pool's features have as many."""
    return min(RHO[n_classes == 2] * mu * n_units, most_dimensions(n_units), MOST_DIMENSIONS, n_public / 2)


def dimension_of_blocks(wanted: float, n_linear: int, n_public: int, n_classes: int) -> float:
    """Return the effective dimension of a linear block of so many features and the residual one, before any pool."""
    own = min(OF_LINEAR[n_classes == 2] * wanted, n_linear)
    return own + _of_residual(wanted, own, n_public)


def _of_residual(wanted: float, own: float, n_public: int) -> float:
    return min(1.5 * max(wanted - own, wanted / 2), n_public / 2, MOST_OF_RESIDUAL)


def rounds_for(ratio: float, n_classes: int, *, blocks: bool = False) -> int:
    """Return T for r = d/(M n₀); `blocks`: whether there are two.

    Examples
    --------
    >>> rounds_for(0.04, 2), rounds_for(0.001, 2), rounds_for(0.04, 5)
    (12, 32, 12)
    """
    if n_classes > 2 and not blocks:
        return 12
    return min(max(round(0.5 / ratio), 8 if n_classes == 2 else 12), 32)


def _clip_share(ratio: float) -> float:
    """Return the clip of one logit, in typical lengths of z, where `ratio` is r."""
    return min(max(0.45 * sqrt(0.04 / ratio), 0.45), 1.0)


def _of_two_blocks(
    moments: PoolMoments, residual: PoolMoments, target: float, *, two: bool, mu_n: float
) -> DirectSettings:
    ridge = moments.spectrum.ridge_for(OF_LINEAR[two] * target)
    own = moments.spectrum.effective_dimension(ridge)
    residual_ridge = residual.spectrum.ridge_for(_of_residual(target, own, moments.n_public))
    ratio = (own + residual.spectrum.effective_dimension(residual_ridge)) / mu_n
    middles = (float(np.median(part.lengths(at))) for part, at in ((moments, ridge), (residual, residual_ridge)))
    length = max(hypot(*middles), 1e-6)
    return DirectSettings(
        ridge=ridge,
        clip=OF_CLIP * (_clip_share(ratio) if two else 0.4) * length,
        rounds=rounds_for(ratio, 2 if two else 3, blocks=True),
        residual_ridge=residual_ridge,
        averaged=LAST_ROUNDS[two],
        length=length if two else None,
    )


def most_dimensions(n_units: int) -> float:
    """Return how many dimensions the sample can tell apart, however little noise there is: max(n₀/48, 2√n₀).

    Where labels are hard to predict, a model of more of them fits the labels that it has seen, so that a run with more
    privacy to spend would be the worse one.
    """
    return max(n_units / 48, 2 * sqrt(n_units))


def _folds(m: int) -> IntArray:
    return np.random.default_rng(0).permutation(m) % min(FOLDS, m)


def _held_out(
    features: Any, refitted: Callable[[NDArray[np.bool_]], tuple[Any, Any]] | None
) -> list[Callable[[float], FloatArray]]:
    """Return for each fold of public rows what gives their coordinates, fitted on the others, at a ridge."""
    m = features.shape[0]
    folds = _folds(m)
    parts = [folds == fold for fold in range(1 if m >= ONE_FOLD_FROM else int(folds.max()) + 1)]
    split = refitted or (lambda held: (features[~held], features[held]))
    return [_seen_from(*split(held)) for held in parts if not held.all()]


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
