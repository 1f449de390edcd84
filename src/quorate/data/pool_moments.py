"""Moments of the features of a public pool, in one block or two, and coordinates in which they are whitened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from quorate.data.canonical import row_digests
from quorate.data.feature_maps.composed import ResidualMap
from quorate.data.feature_maps.coordinates import FeatureMap, Spectrum, dual_eigenpairs, public_features
from quorate.data.feature_maps.pool_coordinates import leading_spectrum
from quorate.data.rows import kind, take
from quorate.deferred import linalg
from quorate.types import FloatArray, IntArray

FOLDS = 10
ALL_DIRECTIONS = 1_500  # sparse public rows, or columns, up to which all directions are computed
ONE_FOLD_FROM = 700  # public rows from which one tenth is held out, once
MOST_OF_RESIDUAL = 250  # dimensions of the residual block
MOST_EIGENPAIRS = 800  # of a block
ENOUGH_DISTINCT = 2 * ALL_DIRECTIONS  # public rows that differ, from which their number bounds no dimension
LEAST_PART = 0.02  # of an effective dimension below which a direction is left out


class Ridges(Protocol):
    """What whitens a pool: κ of its one block or of the linear one, and of the residual block, where there is one."""

    @property
    def ridge(self) -> float:
        """Of the first block."""

    @property
    def residual_ridge(self) -> float | None:
        """Of the second; None where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class PoolMoments:
    """What settings follow from of a pool, at whatever budget. `held`: features that the spectrum was computed without.
    `refitted`: from held-out rows to others' features and theirs. `residual`: moments of a whitened second block, or
    None.
    """

    features: Any = field(repr=False)
    spectrum: Spectrum
    held: Any | None = field(repr=False)
    refitted: Callable[[NDArray[np.bool_]], tuple[Any, Any]] | None = field(default=None, repr=False)
    residual: PoolMoments | None = field(default=None, repr=False)
    _folds: list[Callable[[float], FloatArray]] = field(default_factory=list, repr=False)
    _along: list[FloatArray] = field(default_factory=list, repr=False)
    _distinct: list[int] = field(default_factory=list, repr=False)  # counted once for all budgets of a plan

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
            others = feature_map.fitted_on(take(pool, np.flatnonzero(~held)))
            rest, own = (public_features(others, take(pool, np.flatnonzero(rows)))[:, n:] for rows in (~held, held))
            return rest, own

        linear, residual = (Spectrum.of(part).leading(MOST_EIGENPAIRS) for part in (features[:, :n], features[:, n:]))
        second = cls(features[:, n:], residual, None, refitted)
        return cls(features[:, :n], linear, None, residual=second)

    @property
    def n_distinct(self) -> int:
        """Public rows that differ, as far as dimensions can depend on it: functions of as many as half of all would go
        through each of few repeated rows and swing in between.
        """
        if not self._distinct:
            digests: set[bytes] = set()
            for first in range(0, self.features.shape[0], ENOUGH_DISTINCT):
                digests.update(row_digests(self.features[first : first + ENOUGH_DISTINCT]))
                if len(digests) >= ENOUGH_DISTINCT:
                    break
            self._distinct.append(len(digests))
        return self._distinct[0]

    @property
    def values(self) -> FloatArray:
        """Eigenvalues, of the first block and then of the second."""
        return self.spectrum.values if self.residual is None else np.append(self.spectrum.values, self.residual.values)

    @property
    def directions(self) -> FloatArray:
        """Directions of length one, of the first block and then of the second, ``(n_features, n_values)``."""
        own = self.spectrum.vectors
        return own if self.residual is None else np.asarray(linalg.block_diag(own, self.residual.directions))

    def kept(self, ridges: Ridges) -> NDArray[np.bool_]:
        """Tell which directions a run has: all of one block; of two, those of some effect, one at least of each."""
        if self.residual is None or ridges.residual_ridge is None:
            return np.ones(len(self.values), dtype=np.bool_)
        parts = []
        for values, ridge in ((self.spectrum.values, ridges.ridge), (self.residual.values, ridges.residual_ridge)):
            part = values / (values + ridge) > LEAST_PART
            part[:1] = True
            parts.append(part)
        return np.concatenate(parts)

    def lengths_of_units(self, ridges: Ridges) -> FloatArray:
        """Return what features along each direction are divided by to be coordinates, ``(n_values,)``."""
        own = np.sqrt(self.spectrum.values + ridges.ridge)
        if self.residual is None or ridges.residual_ridge is None:
            return np.asarray(own)
        return np.append(own, np.sqrt(self.residual.values + ridges.residual_ridge))

    def whitening(self, ridges: Ridges) -> FloatArray:
        """Return the matrix from features to the coordinates of a run, ``(n_features, n_coordinates)``."""
        if self.residual is None:
            return self.spectrum.whitening(ridges.ridge)
        kept = self.kept(ridges)
        return np.asarray(self.directions[:, kept] / self.lengths_of_units(ridges)[kept])

    def coordinates(self, ridges: Ridges) -> FloatArray:
        """Return the pool's own rows in the coordinates of a run, ``(n_public, n_coordinates)``."""
        if not self._along:
            blocks = [self] if self.residual is None else [self, self.residual]
            self._along.append(np.hstack([np.asarray(block.features @ block.spectrum.vectors) for block in blocks]))
        kept = self.kept(ridges)
        return np.asarray(self._along[0][:, kept] / self.lengths_of_units(ridges)[kept])

    def block_sizes(self, ridges: Ridges) -> tuple[int, ...]:
        """Return how many coordinates of a run are of each block."""
        kept, n = self.kept(ridges), len(self.spectrum.values)
        return (int(kept.sum()),) if self.residual is None else (int(kept[:n].sum()), int(kept[n:].sum()))

    def effective_dimension(self, ridges: Ridges) -> float:
        """Return d(κ), summed over the blocks."""
        own = self.spectrum.effective_dimension(ridges.ridge)
        if self.residual is None or ridges.residual_ridge is None:
            return own
        return own + self.residual.spectrum.effective_dimension(ridges.residual_ridge)

    def lengths(self, ridge: float) -> FloatArray:
        """Return the lengths of z of public rows, each in coordinates that were fitted without it."""
        if self.held is not None:
            lengths = np.sqrt(self.spectrum.values + ridge)
            held = self.held.astype(self.spectrum.vectors.dtype)
            return np.asarray(np.linalg.norm(np.asarray(held @ self.spectrum.vectors) / lengths, axis=1))
        if not self._folds:
            self._folds.extend(_held_out(self.features, self.refitted))
        return np.concatenate([np.linalg.norm(coordinates(ridge), axis=1) for coordinates in self._folds])


def spectrum_of(features: Any) -> tuple[Spectrum, Any | None]:
    """Return the spectrum of public features, and those of rows that it was computed without, or None: of more than
    1,500 sparse rows nine tenths tell the directions, the rest their lengths.
    """
    if kind(features) != "sparse" or min(features.shape) <= ALL_DIRECTIONS:
        return Spectrum.of(features), None
    held = _folds(features.shape[0]) == 0
    return leading_spectrum(features[~held]), features[held]


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
    return [_coordinates_from(*split(held)) for held in parts if not held.all()]


def _coordinates_from(rest: Any, held: Any) -> Callable[[float], FloatArray]:
    """Return the function from a ridge to the coordinates of public rows that other public rows define."""
    m, width = rest.shape
    if width <= m or kind(rest) != "sparse":
        spectrum = Spectrum.of(rest)
        along = np.asarray(held @ spectrum.vectors)
        return lambda ridge: np.asarray(along / np.sqrt(spectrum.values + ridge))
    values, dual = dual_eigenpairs(rest)  # a direction of thousands of words is not written out for a length
    products = (held @ rest.T).toarray()
    return lambda ridge: np.asarray(products @ (dual / np.sqrt(m * values * (values + ridge))))


def second_largest(shares: FloatArray) -> float:
    """Return the second largest share λ/(λ + κ) of directions: the largest is that of what all rows have in common."""
    return float(np.sort(shares)[-2]) if len(shares) > 1 else 0.0
