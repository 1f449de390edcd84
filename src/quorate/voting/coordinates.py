r"""Public coordinates for votes: in how many dimensions many tiny teachers can tell shares apart, and which ones.

With :math:`x = \mu n`, the budget in units of the private rows, the coordinates are those of the direct method, with
fewer dimensions: a vote is one bit of its teacher, so that it takes more rows to learn a direction.

| setting | two classes | more classes |
|---|---|---|
| d₀ | min(.75 √x, m/2) | min(1.2 √x, m/2) |
| κ of the only block: d(κ) ≤ d₀, and of two classes at most half of its directions, or 30 | | |
| κ of the linear block: d(κ) ≤ φ d₀ | φ = .75 | φ = .5 |
| κ of the residual: d(κ) ≤ min(1.5 max(d₀ - d of the linear block, d₀/2), m/2, 250) | | |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import pi, sqrt
from typing import Any, Final

import numpy as np

from quorate.data.encoding import indicator_blocks
from quorate.data.feature_maps.composed import default_map, feature_map_for
from quorate.data.feature_maps.coordinates import FeatureMap
from quorate.data.feature_maps.pool_coordinates import UnitCoordinates
from quorate.data.feature_maps.scale import has_spread
from quorate.data.fixed_types import absent_marks
from quorate.data.pool_moments import MOST_OF_RESIDUAL, PoolMoments
from quorate.data.rows import Rows, kind, n_rows, take
from quorate.deferred import special
from quorate.ensemble.linear.tiny import DITHER, PENALTY, TinyTeacher
from quorate.mechanisms import for_runs
from quorate.run.public_facts import PublicFacts
from quorate.students.student import LinearPrior
from quorate.voting.inputs import Views

MOST_ROWS = 8_192  # of the pool that coordinates are read off
FEWEST_ROWS = 20
BENDS_FROM = 30  # rows of a tiny teacher of two classes, whose shares come near 0 and 1
_OF_ROOT: Final = {True: 0.75, False: 1.2}
_OF_LINEAR: Final = {True: 0.75, False: 0.5}
_MOST_DIMENSIONS: Final = 1_500
_LEAST_OF_BLOCK: Final = 30


@dataclass(frozen=True, slots=True)
class _Ridges:
    ridge: float
    residual_ridge: float | None


@dataclass(frozen=True, slots=True, eq=False)
class PoolForVotes:
    """A feature map that is fitted on a public pool, and moments of its features."""

    feature_map: FeatureMap
    moments: PoolMoments = field(repr=False)

    @classmethod
    def of(cls, numbers: Any, encoder: Any) -> PoolForVotes | None:
        """Read a map off the encoded pool ``(n_public, n_columns)``; None where rows are sparse, few, or all equal."""
        if kind(numbers) == "sparse" or n_rows(numbers) < FEWEST_ROWS:
            return None
        if n_rows(numbers) > MOST_ROWS:
            numbers = take(numbers, np.sort(np.random.default_rng(0).permutation(n_rows(numbers))[:MOST_ROWS]))
        numbers = np.asarray(numbers, dtype=np.float64)
        if not has_spread(numbers).any():
            return None
        categories: Sequence[tuple[int, int]] = indicator_blocks(encoder)
        feature_map = feature_map_for(default_map(numbers, categories), numbers, categories=categories)
        return cls(feature_map, PoolMoments.of_map(feature_map, numbers))

    def coordinates(self, *, n_classes: int, mu_n: float, halved: bool = True) -> UnitCoordinates:
        """Return the coordinates of a task; `mu_n`: x above; `halved`: not so in runs begun before."""
        moments, ridges = self.moments, self._ridges(n_classes, mu_n, halved=halved)
        squares = moments.lengths_of_units(ridges)[moments.kept(ridges)] ** 2
        return UnitCoordinates.of(
            self.feature_map, moments.whitening(ridges), moments.values[moments.kept(ridges)] / squares
        )

    def prior(self, coordinates: UnitCoordinates, *, n_classes: int, rows_each: float | None) -> LinearPrior:
        r"""Return what the student knows of the shares; `rows_each`: r of tiny teachers, None where there are others.

        Others vote as they believe: near equal shares the probability is the share. The score of a tiny teacher for a
        class is :math:`r/d` times what a regression on all rows would give it, with noise of about
        :math:`\sqrt{r/(C d)}` for each class and the constant that breaks ties: so its vote follows the probability by
        a slope that is the same everywhere near equal shares.
        """
        if rows_each is None:
            return LinearPrior(coordinates.effects, float(n_classes))
        bends = n_classes == 2 and rows_each >= BENDS_FROM
        dimension = float(coordinates.effects.sum())
        if n_classes == 2:
            return LinearPrior(coordinates.effects, sqrt(2 * pi * dimension / rows_each), bends)
        noise = sqrt((1 + (DITHER * pi) ** 2 / 6) * dimension / (n_classes * rows_each))
        largest = float(special.ndtri((n_classes - 0.375) / (n_classes + 0.25)))  # of C normal numbers, on average
        return LinearPrior(coordinates.effects, n_classes**2 * noise / largest)

    def _ridges(self, n_classes: int, mu_n: float, *, halved: bool) -> _Ridges:
        moments, two = self.moments, n_classes == 2
        half = moments.n_distinct / 2
        wanted = min(_OF_ROOT[two] * sqrt(mu_n), _MOST_DIMENSIONS, half)
        if moments.residual is None:
            if two and halved:
                wanted = min(wanted, max(len(moments.values) / 2, _LEAST_OF_BLOCK))
            return _Ridges(moments.spectrum.ridge_for(wanted), None)
        ridge = moments.spectrum.ridge_for(_OF_LINEAR[two] * wanted)
        own = moments.spectrum.effective_dimension(ridge)
        rest = min(1.5 * max(wanted - own, wanted / 2), half, MOST_OF_RESIDUAL)
        return _Ridges(ridge, moments.residual.spectrum.ridge_for(rest))


def pool_for_votes(pool: Rows, views: Views, mechanism: Any) -> PoolForVotes | None:
    """Return what coordinates of a pool follow from; None where they would not serve: for votes that are not released
    as values, since many small teachers are seldom of one mind, and for images.
    """
    kind = for_runs().get(mechanism) if isinstance(mechanism, str) else mechanism
    values = kind is None or (kind.releases_values and kind.takes == "votes")
    see = views.numbers
    return PoolForVotes.of(see(pool), see.encoder) if values and see.directions is None else None


def in_coordinates(
    pool: PoolForVotes,
    views: Views,
    public: Rows,
    facts: PublicFacts,
    *,
    n_teachers: int,
    n_queries: int,
    share: float = 1.0,
) -> tuple[Views, TinyTeacher | None]:
    """Let the student see coordinates of the pool, and tiny teachers as well, which are returned; `share`: of μ²."""
    rows = facts.rows or n_teachers
    labels = share * n_queries / (n_queries + facts.online_answers)
    coordinates = pool.coordinates(
        n_classes=facts.n_classes,
        mu_n=facts.mu * sqrt(labels) * rows,
        halved=facts.most_tiny > BENDS_FROM,
    )
    see = replace(views.numbers, directions=coordinates)
    rows_each = rows / n_teachers
    prior = pool.prior(coordinates, n_classes=facts.n_classes, rows_each=rows_each if facts.tiny else None)
    views = replace(views, student=see, prior=prior)
    if not facts.tiny:
        return views, None
    penalty = PENALTY * rows_each / float(coordinates.effects.sum())
    marks = absent_marks(see.kinds(public))
    return replace(views, teacher=replace(see, fixed=True, marks=marks)), TinyTeacher(penalty, facts.n_classes)
