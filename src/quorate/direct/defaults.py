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
Where a share p of the rarer of two classes is declared, the bound on d(κ) is 4p(1 - p) of that: the rare class carries
the information, and there is less of it (decision 0073).
η = 4 makes the first step Newton's, for the curvature of the logistic loss is at most 1/4. Beside kernels on a drawn
pool it is 6 for more than two classes and columns that are mostly numbers: private rows differ less along most of its
directions, and the curvature is as much smaller (decision 0101).

Where the map is linear beside the residual of two kernels (:class:`~quorate.data.feature_maps.ResidualMap`), each block
is whitened by itself, and d below is the sum of both effective dimensions:

| setting | two classes, one logit | more classes, one logit each |
|---|---|---|
| κ of the linear block: d(κ) ≤ φ d₀, with d₀ the bound above | φ = 1 | φ = .75 |
| κ of the residual: d(κ) ≤ min(1.5 max(d₀ - d of the linear block, d₀/2), m/2, 250) | | |
| clip B = c × √(the squared median lengths of both blocks) | c = .8 × that above | c = .32 |
| rounds T | .5/r rounded, within [8, 32] | .5/r rounded, within [12, 32] |
| rounds that are averaged, the last | 1/2 | 3/10 |
| weights shrunk afterwards (:func:`.rounds.shrunk`) | yes | no |

Where a number is predicted the settings are those of two classes at half of μ, with a fifth of the clip, 40 rounds and
no shrinkage: residuals are a small part of the range of most targets, so that a tight clip costs little signal and
saves noise, and more rounds make up for the shorter steps. Two rounds more come first, which count targets
(:mod:`quorate.run.located`). Where noise hides the counts, or there are few rounds, no round counts, and the clip is a
tenth, in widths of the whole range.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import hypot, sqrt
from typing import Any

import numpy as np

from quorate.data.pool_moments import MOST_OF_RESIDUAL, PoolMoments
from quorate.run.located import COUNTING, cells_for

FEWEST_ROUNDS = 16  # of a number, of which some count targets
#: How first rounds count in a new fit: by the nearest shares; 1: by noisy shares as they are; 0: they do not.
RULE = 2
RHO = {True: 0.04, False: 0.025}
MOST_DIMENSIONS = 1_500
RATE = 4.0
RATE_OF_DRAWN = 6.0  # where the pool was drawn column by column
OF_LINEAR = {True: 1.0, False: 0.75}  # of the dimensions, those of the linear block beside a residual one
OF_CLIP = 0.8  # the clip where there are two blocks, beside that of one
OF_NUMBER = 0.1  # the clip where a number is predicted, beside that of two classes, in widths of the whole range
OF_LOCATED = 0.2  # the same, in widths of the part where targets were found
ROUNDS_OF_NUMBER = 40
HALF = 0.5  # the share of rounds that is averaged where there is one block
LAST_ROUNDS = {True: HALF, False: 0.3}  # the share of rounds that is averaged there


@dataclass(frozen=True, slots=True)
class DirectSettings:
    """What every round is done with, public: κ, b in the unit of z, t, η and momentum. `residual_ridge`: κ of the
    residual block, if there is one. `averaged`: the share of the last rounds whose weights are averaged. `length`: the
    typical length of z, of a row that the coordinates were not fitted on, where weights are shrunk by it. `counting`:
    how many of the rounds, the first ones, count targets, in so many `cells`; where none does and there are cells, the
    last round counts in them how often the model is right. `nearest`: whether the nearest shares stand in the place of
    noisy ones of targets; not in a run that was begun before they did.
    """

    ridge: float
    clip: float
    rounds: int
    rate: float = RATE
    momentum: float = 0.0
    residual_ridge: float | None = field(default=None, repr=False)  # not in the digests of runs without one
    averaged: float = field(default=HALF, repr=False)
    length: float | None = field(default=None, repr=False)
    counting: int = field(default=0, repr=False)
    cells: int = field(default=0, repr=False)
    nearest: bool = field(default=False, repr=False)

    @property
    def judges(self) -> bool:
        """Whether the last round counts how often the model is right."""
        return self.cells > 0 and not self.counting

    @property
    def in_digest(self) -> tuple[Any, ...]:
        """What a digest adds to the other settings where there are two blocks, or rounds that count."""
        of_blocks = () if self.residual_ridge is None else (self.residual_ridge, self.averaged, self.length)
        counting = (self.counting, self.cells, *(["nearest"] if self.nearest else [])) if self.cells else ()
        return (*of_blocks, *counting)


#: For rows of length one, with a constant 1.
WITHOUT_POOL = DirectSettings(ridge=0.0, clip=1.0, rounds=100, momentum=0.9)


def outputs_of(n_classes: int) -> int:
    """Return how many scores a row has: one for two classes, and for a target that is a number (0 classes)."""
    return n_classes if n_classes > 2 else 1


def settings_for(
    moments: PoolMoments, *, n_classes: int, n_units: int, mu: float, rare: float | None = None
) -> DirectSettings:
    """Return the settings of a run with a public pool; `mu` is what (ε, δ) allows for replacing one unit, > 0. `rare`:
    the declared share of the rarer of two classes.
    """
    if n_classes == 0:  # those of two classes at half of μ
        return settings_for(moments, n_classes=2, n_units=n_units, mu=mu / 2)
    two = n_classes == 2
    n_distinct = moments.n_distinct
    target = wanted_dimension(n_distinct, n_classes, n_units, mu, rare=rare)
    if moments.residual is not None:
        return _of_two_blocks(moments, moments.residual, target, n_distinct, two=two, mu_n=mu * n_units)
    ridge = moments.spectrum.ridge_for(target)
    ratio = moments.spectrum.effective_dimension(ridge) / (mu * n_units)
    length = max(float(np.median(moments.lengths(ridge))), 1e-6)
    share = _clip_share(ratio) if two else 0.4
    return DirectSettings(ridge=ridge, clip=share * length, rounds=rounds_for(ratio, n_classes))


def for_number(
    of_two: DirectSettings, n_numbers: int, *, n_units: int, mu: float, rounds: int | None, locate: int
) -> DirectSettings:
    """Return the settings of a number, from those of two classes. `n_numbers`: that a round releases. `mu`: for
    replacing one unit. `rounds`: in place of the default. `locate`: how the first rounds count targets (:data:`RULE`),
    where there are enough, and noise leaves cells to see.
    """
    n_rounds = rounds or ROUNDS_OF_NUMBER + (COUNTING if locate else 0)
    cells = cells_for(n_numbers, n_units, 2 * sqrt(n_rounds) / mu) if locate and n_rounds >= FEWEST_ROUNDS else 0
    if not cells:
        return replace(of_two, clip=OF_NUMBER * of_two.clip, rounds=n_rounds, length=None)
    clip = OF_LOCATED * of_two.clip
    return replace(of_two, clip=clip, rounds=n_rounds, length=None, counting=COUNTING, cells=cells, nearest=locate > 1)


def wanted_dimension(n_public: int, n_classes: int, n_units: int, mu: float, *, rare: float | None = None) -> float:
    """Return the effective dimension that coordinates should have, where the pool's features have as many. `n_public`:
    public rows that differ, or how many there will be at most. `rare`: p, the declared share of the rarer of two
    classes.
    """
    most = min(RHO[outputs_of(n_classes) == 1] * mu * n_units, most_dimensions(n_units), MOST_DIMENSIONS, n_public / 2)
    return most if rare is None else most * 4 * rare * (1 - rare)


def dimension_of_blocks(wanted: float, n_linear: int, n_public: int, n_classes: int) -> float:
    """Return the effective dimension of a linear block of so many features and the residual one, before any pool."""
    own = min(OF_LINEAR[outputs_of(n_classes) == 1] * wanted, n_linear)
    return own + _of_residual(wanted, own, n_public)


def _of_residual(wanted: float, own: float, n_public: int) -> float:
    return min(1.5 * max(wanted - own, wanted / 2), n_public / 2, MOST_OF_RESIDUAL)


def rounds_for(ratio: float, n_classes: int, *, blocks: bool = False, locate: int = RULE) -> int:
    """Return T for r = d/(M n₀); `blocks`: whether there are two. `n_classes`: 0 for a number. `locate`: how the first
    rounds of a number count targets, 0 where they do not.
    """
    if n_classes == 0:
        return ROUNDS_OF_NUMBER + (COUNTING if locate else 0)
    if n_classes > 2 and not blocks:
        return 12
    return min(max(round(0.5 / ratio), 8 if n_classes == 2 else 12), 32)


def _clip_share(ratio: float) -> float:
    """Return the clip of one logit, in typical lengths of z, where `ratio` is r."""
    return min(max(0.45 * sqrt(0.04 / ratio), 0.45), 1.0)


def _of_two_blocks(
    moments: PoolMoments, residual: PoolMoments, target: float, n_distinct: int, *, two: bool, mu_n: float
) -> DirectSettings:
    ridge = moments.spectrum.ridge_for(OF_LINEAR[two] * target)
    own = moments.spectrum.effective_dimension(ridge)
    residual_ridge = residual.spectrum.ridge_for(_of_residual(target, own, n_distinct))
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
    """Return how many dimensions the sample can tell apart, however little noise there is: max(n₀/48, 2√n₀). Where
    labels are hard to predict, a model of more of them fits the labels that it has seen, so that a run with more
    privacy to spend would be the worse one.
    """
    return max(n_units / 48, 2 * sqrt(n_units))
