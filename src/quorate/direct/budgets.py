"""What the direct method would do at several budgets: the feature map and the pool's moments are worked out once."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any

import numpy as np

from quorate.accounting.neighbouring import Relation
from quorate.data.feature_maps.composed import FeatureMapName, feature_map_for, longest_features
from quorate.data.feature_maps.coordinates import FINEST, LENGTH_BITS, FeatureMap, public_features
from quorate.data.feature_maps.exact import squared_lengths
from quorate.data.feature_maps.first_maps import SharedPatches
from quorate.data.pool_moments import PoolMoments, second_largest
from quorate.data.rows import take
from quorate.direct.contributions import Grid
from quorate.direct.defaults import DirectSettings, outputs_of
from quorate.direct.plan import PlannedRounds, RoundsAsked, mu_for_settings
from quorate.direct.rounds import RoundNoise, shrunk
from quorate.run.public_facts import PublicFacts
from quorate.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Outline(PlannedRounds):
    """A run's settings and noise at one budget, for rows that are public: coordinates come from known products."""

    settings: DirectSettings
    grid: Grid
    sigma: float
    n_units: int
    n_outputs: int
    moments: PoolMoments = field(repr=False)
    neighbours: Relation | None

    @property
    def numbers(self) -> int:
        """How many numbers a round releases."""
        return int(self.moments.kept(self.settings).sum()) * self.n_outputs

    @property
    def dimension(self) -> float:
        """The effective dimension d(κ)."""
        return self.moments.effective_dimension(self.settings)

    @property
    def largest_share(self) -> float:
        """What κ leaves of the direction in which public rows differ most."""
        shares = self.moments.values / self.moments.lengths_of_units(self.settings) ** 2
        return second_largest(shares[self.moments.kept(self.settings)])

    def shrunk(self, weights: FloatArray, n_units: int, n_rounds: int) -> FloatArray:
        """Return weights of rounds that some units were in, shrunk as a run does."""
        if self.settings.length is None:
            return weights
        z, sizes = self.moments.coordinates(self.settings), self.moments.block_sizes(self.settings)
        # Noise is that of a run for each of its units: so many units have less of it.
        rounds = RoundNoise(self.noise * n_units / self.n_units, n_units, n_rounds)
        return shrunk(weights, z, self.settings, rounds, sizes)

    def integers(self, along: FloatArray) -> FloatArray:
        """Return coordinates as integer numbers of steps, from features times the pool's directions, ``(n, n_kept)``.
        Those of a run are the same but for rounding.
        """
        kept, units = self.moments.kept(self.settings), self.moments.lengths_of_units(self.settings)
        z = np.rint(np.ldexp(along[:, kept] / units[kept], self.grid.bits))
        z[squared_lengths(z) > 4.0 ** (LENGTH_BITS - 1)] = 0.0
        return np.asarray(z)


@dataclass(slots=True, eq=False)
class PlannedBudgets:
    """Plans for one encoded public pool; whatever they share is worked out once. `categories`: first and one past the
    last column of the indicators of each category.
    """

    pool: Any = field(repr=False)
    name: FeatureMapName = "auto"
    patches: SharedPatches | None = field(default=None, repr=False)
    categories: tuple[tuple[int, int], ...] = ()
    _feature_map: FeatureMap | None = field(default=None, repr=False)
    _moments: PoolMoments | None = field(default=None, repr=False)
    _known: dict[int, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def feature_map(self) -> FeatureMap:
        """The map, fitted on the pool."""
        if self._feature_map is None:
            self._feature_map = feature_map_for(self.name, self.pool, categories=self.categories, patches=self.patches)
        return self._feature_map

    @property
    def moments(self) -> PoolMoments:
        """Those of the pool's features."""
        if self._moments is None:
            self._moments = PoolMoments.of_map(self.feature_map, self.pool)
        return self._moments

    def outline(self, **asked: Any) -> Outline:
        """Return settings and noise alone, without the matrix for private rows, as :func:`plan_direct` fixes them."""
        of, moments = RoundsAsked(**asked), self.moments
        n_outputs = outputs_of(of.n_classes)
        settings = of.settings(moments, mu_for_settings(of.mu, of.neighbours))
        kept = moments.kept(settings)
        k, sigma = of.noise(settings.rounds, int(kept.sum()) * n_outputs)
        longest = longest_features(self.feature_map) / float(moments.lengths_of_units(settings)[kept].min())
        grid = Grid(min(LENGTH_BITS - 1 - ceil(log2(longest)), FINEST), settings.clip, k)
        return Outline(settings, grid, sigma, of.n_units, n_outputs, moments, of.neighbours)

    def outline_of(self, facts: PublicFacts) -> Outline:
        """Return the same of a task with these facts."""
        return self.outline(
            n_classes=facts.n_classes,
            n_units=facts.n_records or 1,
            epsilon=facts.epsilon,
            delta=facts.delta,
            neighbours=facts.relation,
            rare=facts.rare,
        )

    def along(self, rows: Any) -> FloatArray:
        """Return features of public rows ``(n, n_columns)`` times the pool's directions, ``(n, n_kept)``."""
        with np.errstate(all="ignore"):
            along = np.asarray(public_features(self.feature_map, rows) @ self.moments.directions)
        return np.where(np.isfinite(along), along, 0.0).astype(np.float64)

    def along_in_pool(self, at: IntArray) -> FloatArray:
        """Return the same of rows of the pool, by number, ``(n,)``; no row is worked out twice."""
        new = np.setdiff1d(at, list(self._known))
        if len(new):
            self._known.update(zip(new.tolist(), self.along(take(self.pool, new)), strict=True))
        return np.stack([self._known[place] for place in at.tolist()])
