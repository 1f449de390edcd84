"""From public facts to everything that a run is fixed by before it sees a private row: coordinates, settings, price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from math import ceil, inf, log2, sqrt
from typing import Any

import numpy as np

from quorate.accounting import GridGaussian, Repeated, zcdp
from quorate.accounting import epsilon as price
from quorate.accounting.attacker import rounded_up
from quorate.accounting.figures import at_least, plural
from quorate.accounting.gaussian import DISTANCE, lost_delta, mu_of_gaussian
from quorate.accounting.neighbouring import Relation
from quorate.data.feature_maps import LinearMap, ResidualMap
from quorate.data.feature_maps.composed import longest_features
from quorate.data.feature_maps.coordinates import FeatureMap, PublicCoordinates
from quorate.data.labels import STEPS
from quorate.data.pool_moments import PoolMoments, second_largest
from quorate.data.rows import kind
from quorate.direct.contributions import Grid, logits_of
from quorate.direct.defaults import RULE, WITHOUT_POOL, DirectSettings, for_number, outputs_of, settings_for
from quorate.direct.rounds import RoundNoise, shrunk
from quorate.direct.temperature import bins_for, temperature_of
from quorate.errors import InvalidParameter, named
from quorate.types import FloatArray, IntArray

FINEST_K, COARSEST_K = 30, 20  # contributions have a length of at most 2^k
LARGEST_SIGMA = 2.0**40  # that the sampler draws
LEAST_STEPS = 256  # in which a slope of 1 is told
_DOUBLINGS = 44
#: Lengths of a contribution by which the sum moves. Runs begun before a relation could be chosen have none: 2 for ever.
MOVED: Mapping[Relation | None, int] = {"add-or-remove": 1, "replace": 2, None: 2}


def released_by_a_round(sigma: float, k: int, numbers: int, neighbours: Relation | None) -> GridGaussian:
    """Return what one round releases: so many numbers, of contributions no longer than ``2**k`` grid steps."""
    return GridGaussian(sigma, MOVED[neighbours] * 2.0**k, numbers)


def mu_for_settings(mu: float, neighbours: Relation | None) -> float:
    """Return M = μ · 2B/Δ, by which settings are chosen: their constants were found at Δ = 2B. It enters κ, d, T and c
    alone. The noise of a round is Δ √T/μ with μ itself: both at once would be half of it.
    """
    return mu * MOVED["replace"] / MOVED[neighbours]


@dataclass(frozen=True, slots=True)
class FixedRounds:
    """What is paid for before there is a pool, by public facts alone: T rounds with noise of σ grid steps. `k`:
    contributions have at most 2^k grid steps. `numbers`: that a round draws at most. `mu`: of all rounds together.
    """

    rounds: int
    k: int
    sigma: float
    numbers: int
    mu: float

    def event_for(self, neighbours: Relation | None) -> Repeated:
        """What all rounds release, for a change of one unit."""
        return Repeated(released_by_a_round(self.sigma, self.k, self.numbers, neighbours), self.rounds)


class PlannedRounds(ABC):
    """What the rounds of a plan release, or of an outline of one."""

    __slots__ = ()
    settings: DirectSettings
    grid: Grid
    sigma: float
    neighbours: Relation | None
    most_numbers: int | None = None

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers a round releases."""

    @property
    def event(self) -> Repeated:
        """What all rounds release, for the change that the noise is for."""
        return self.event_for(self.neighbours)

    def event_for(self, neighbours: Relation | None) -> Repeated:
        """What all rounds release, for a change of one unit that may be another than that of the noise."""
        one = released_by_a_round(self.sigma, self.grid.k, self.most_numbers or self.numbers, neighbours)
        return Repeated(one, self.settings.rounds)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise on each number of a round, in the unit of the gradient."""
        return self.sigma * self.grid.step


@dataclass(frozen=True, slots=True, eq=False)
class DirectPlan(PlannedRounds):
    """What a run does, public in every part: rows to integers, κ, B, T, η, the grid, and σ in its steps. `dimension`:
    the effective one, d(κ). `neighbours`: the change of one unit that the noise is for; None where the run was begun
    before one could be chosen: then it is replacing one. `most_numbers`: that a round was paid for, where that was
    before its pool was there.
    """

    coordinates: PublicCoordinates = field(repr=False)
    settings: DirectSettings
    grid: Grid
    sigma: float
    n_units: int
    n_outputs: int
    dimension: float
    neighbours: Relation | None
    most_numbers: int | None = None

    @property
    def numbers(self) -> int:
        """How many numbers a round releases."""
        return self.coordinates.n_coordinates * self.n_outputs

    @property
    def n_codes(self) -> int:
        """How many different codes a row's class, or target, can have."""
        return STEPS + 1 if self.grid.link == "range" else max(self.n_outputs, 2)

    @property
    def noise_of_counts(self) -> float:
        """The same of a round that counts, to which one unit adds 1."""
        return self.sigma * 2.0**-self.grid.k

    @property
    def digest(self) -> str:
        """Hash of everything that gives stored rounds their meaning: another pool gives another."""
        hashed = blake2b(digest_size=16)
        fixed: tuple[Any, ...] = (self.settings, self.grid, self.sigma, self.n_units, self.n_outputs)
        fixed += self.settings.in_digest
        if self.neighbours is not None:
            fixed = (*fixed, self.neighbours)
        if self.most_numbers is not None:
            fixed = (*fixed, self.most_numbers)
        if self.grid.link != "classes":
            fixed = (*fixed, self.grid.link)
        hashed.update(repr(fixed).encode())
        hashed.update(self.coordinates.content)
        return hashed.hexdigest()

    def why(self, unit: str, *, pool: str = "the public pool") -> tuple[str, ...]:
        """Return one sentence for each setting, with what it follows from. `unit`: the word for whose data it is.
        `pool`: the rows that define coordinates.
        """
        settings, n, most = self.settings, self.numbers, self.most_numbers
        adds = (
            f"in each round, one {unit} adds to the sum a vector whose length is at most "
            f"{rounded_up(self.grid.clip)}, the clip B"
        )
        steps = (
            f"the model is fitted in {settings.rounds} rounds. Each moves its weights by the noisy sum, times the rate "
            f"{settings.rate:g}, divided by the number of {plural(unit)}, n₀ = {self.n_units:,}"
        )
        noise = (
            f"noise with a standard deviation of {at_least(self.noise)} is added to each of the {n:,} numbers "
            f"of a round{f' (at most {most:,} are paid for)' if most else ''}; it is the least that ε and δ allow"
        )
        counts = (
            f"the first {settings.counting} rounds count the targets in {settings.cells:,} cells of the declared "
            "range, at the same price as the other rounds. Those measure errors in widths of the part of the range in "
            "which most targets lie, and so does B"
        )
        judges = (
            "the last round counts how often the model is right, by how sure it is, at the same price as the other "
            "rounds. The scores of the model are divided by the temperature that follows from these counts"
        )
        shrunk_by = (
            "after the last round the weights are shrunk, since the size of the error that the noise leaves in them is "
            "known; this costs no privacy"
        )
        return (
            *self._basis(pool),
            adds,
            steps,
            noise,
            *((counts,) if settings.counting else ()),
            *((shrunk_by,) if settings.length is not None else ()),
            *((judges,) if settings.judges else ()),
        )

    def _basis(self, pool: str) -> tuple[str, ...]:
        """Say what the model is linear in, and in which coordinates."""
        settings, coordinates = self.settings, self.coordinates
        features = f"the model is linear in {coordinates.feature_map.words}"
        if coordinates.whitening is None:
            return (f"{features}; there is no public pool to define coordinates",)
        ridges = f"κ = {settings.ridge:.4g}"
        if settings.residual_ridge is not None:
            ridges += f", and {settings.residual_ridge:.4g} for the kernels"
        reduced = (
            f"these features are reduced to {coordinates.n_coordinates:,} coordinates, the directions in which rows of "
            f"{pool} differ most. A direction in which they differ little counts in part: together the coordinates "
            f"count as {self.dimension:.4g}, their effective dimension d(κ) at {ridges}"
        )
        return features, reduced

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """How many coordinates are of each block that is whitened by itself."""
        feature_map, whitening = self.coordinates.feature_map, self.coordinates.whitening
        if not isinstance(feature_map, ResidualMap):
            return (self.coordinates.n_coordinates,)
        own = int(np.count_nonzero(whitening[: feature_map.n_linear].any(axis=0)))
        return own, self.coordinates.n_coordinates - own

    @property
    def largest_share(self) -> float | None:
        """What κ leaves of the direction in which public rows differ most; None where no pool tells directions."""
        whitening, settings = self.coordinates.whitening, self.settings
        if whitening is None:
            return None
        of_blocks = [settings.ridge, settings.residual_ridge or 0.0][: len(self.block_sizes)]
        ridges: FloatArray = np.repeat(np.array(of_blocks, dtype=np.float64), self.block_sizes)
        lengths = np.linalg.norm(np.asarray(whitening, dtype=np.float64), axis=0)  # 1/√(λ + κ)
        return second_largest(1 - ridges * lengths**2)

    def shrunk(self, weights: FloatArray, pool: Any, n_rounds: int) -> FloatArray:
        """Return released weights as the settings have them shrunk, by the encoded public pool; post-processing.
        `n_rounds`: rounds that they rest on.
        """
        if self.settings.length is None:
            return weights
        z = self.coordinates(pool) * 2.0**-self.coordinates.bits
        return shrunk(weights, z, self.settings, RoundNoise(self.noise, self.n_units, n_rounds), self.block_sizes)

    def temperature(self, counts: IntArray, weights: FloatArray, pool: Any) -> float:
        """Return the temperature that the last round's noisy sum tells of weights, by the encoded pool."""
        units = counts[: self.settings.cells, 0] * 2.0**-self.grid.k
        logits = logits_of(self.coordinates(pool), weights, self.grid)
        return temperature_of(np.asarray(units), self.noise_of_counts, logits)

    @property
    def grids(self) -> tuple[Grid, ...]:
        """That of rounds that add up gradients; where the first or the last one counts, that of one that does, too."""
        counting = (replace(self.grid, cells=self.settings.cells),) if self.settings.cells else ()
        return self.grid, *counting

    @property
    def start(self) -> FloatArray:
        """The weights before the first round: zeros, ``(n_coordinates, n_outputs)``."""
        return np.zeros((self.coordinates.n_coordinates, self.n_outputs))


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundsAsked:
    """Public facts that rounds follow from, and what was asked for in place of the defaults. `n_classes`: declared
    classes, 2 at least; 0 where the target is a number. `rho`: what it may cost where a ledger adds ρ (zCDP), in place
    of (ε, δ). `neighbours`: the change of one unit; None where the run was begun before one could be chosen. `locate`:
    by which rule the first rounds of a number find out where targets lie (:data:`.defaults.RULE`). `rare`: the declared
    share of the rarer of two classes. `judge`: whether one more round counts how often the model is right. `rate`: η.
    """

    n_classes: int
    n_units: int
    epsilon: float
    delta: float
    rho: float | None = None
    rounds: int | None = None
    clip: float | None = None
    rate: float | None = None
    neighbours: Relation | None = "replace"
    rare: float | None = None
    locate: int = RULE
    judge: bool = False

    @property
    def mu(self) -> float:
        """What all of the run may cost."""
        return mu_of_gaussian(self.epsilon, self.delta) if self.rho is None else sqrt(2 * self.rho)

    def settings(self, moments: PoolMoments, mu: float) -> DirectSettings:
        """Return the default settings with a public pool; `mu`: for settings."""
        return settings_for(moments, n_classes=self.n_classes, n_units=self.n_units, mu=mu, rare=self.rare)

    def noise(self, rounds: int, numbers: int) -> tuple[int, float]:
        """Return (k, σ in grid steps) of so many rounds of so many numbers each."""
        of_all = numbers * rounds
        return noise_for(rounds, of_all, self.epsilon, self.delta, rho=self.rho, neighbours=self.neighbours)

    def plan(
        self, coordinates: PublicCoordinates, settings: DirectSettings, k: int, sigma: float, **more: Any
    ) -> DirectPlan:
        """Return the plan of rounds in these coordinates."""
        return DirectPlan(
            coordinates=coordinates,
            settings=settings,
            grid=Grid(coordinates.bits, settings.clip, k, "classes" if self.n_classes else "range"),
            sigma=sigma,
            n_units=self.n_units,
            n_outputs=outputs_of(self.n_classes),
            neighbours=self.neighbours,
            **more,
        )


def plan_direct(
    feature_map: FeatureMap,
    pool: Any,
    *,
    moments: PoolMoments | None = None,
    fixed: FixedRounds | None = None,
    **asked: Any,
) -> DirectPlan:
    """Fix a run by public facts alone, from an encoded public pool; `asked`: of :class:`RoundsAsked`. `moments`: of the
    pool's features, where they are known already. `fixed`: rounds and noise that were paid for before the pool was
    there. Raises InvalidParameter if the pool has no spread, or (ε, δ) is too small for noise that can be drawn.
    """
    of = RoundsAsked(**asked)
    n_outputs, moments = outputs_of(of.n_classes), moments or PoolMoments.of_map(feature_map, pool)
    for_settings = mu_for_settings(fixed.mu if fixed else of.mu, of.neighbours)
    settings = of.settings(moments, for_settings)
    if of.n_classes == 0:
        paid_for, n_numbers = fixed.rounds if fixed else of.rounds, int(np.count_nonzero(moments.kept(settings)))
        n_numbers = min(n_numbers, fixed.numbers) if fixed else n_numbers
        settings = for_number(
            settings, n_numbers, n_units=of.n_units, mu=for_settings, rounds=paid_for, locate=of.locate
        )
    rounds, clip, rate = of.rounds or settings.rounds, of.clip or settings.clip, of.rate or settings.rate
    settings = replace(settings, rounds=rounds, clip=clip, rate=rate)
    whitening = moments.whitening(settings)
    if of.judge:
        width = min(whitening.shape[1], fixed.numbers // n_outputs) if fixed else whitening.shape[1]
        settings = replace(settings, rounds=settings.rounds + 1, cells=2 * bins_for(width))
    if fixed:
        settings, k, sigma = replace(settings, rounds=fixed.rounds), fixed.k, fixed.sigma
        whitening = whitening[:, : fixed.numbers // n_outputs]  # the smallest eigenvalues are left out first
    else:
        k, sigma = of.noise(settings.rounds, whitening.shape[1] * n_outputs)
    coordinates = _of_words(feature_map, pool, whitening, settings.clip, k)
    coordinates = coordinates or PublicCoordinates.of(
        feature_map, whitening, longest_features=longest_features(feature_map)
    )
    more = {"dimension": moments.effective_dimension(settings), "most_numbers": fixed.numbers if fixed else None}
    return of.plan(coordinates, settings, k, sigma, **more)


def _of_words(
    feature_map: FeatureMap, pool: Any, whitening: FloatArray, clip: float, k: int
) -> PublicCoordinates | None:
    """Return coordinates that need not be written out for each row, where rows are sparse and slopes stay fine."""
    if kind(pool) != "sparse" or not isinstance(feature_map, LinearMap):
        return None
    most_bits = k - log2(clip * LEAST_STEPS)
    return PublicCoordinates.of_words(feature_map.coarse(), whitening, most_bits=most_bits)


def plan_without_pool(n_columns: int, **asked: Any) -> DirectPlan:
    """Fix a run on numeric rows of so many columns for which there is no public pool: rows of length one, as they are.
    `asked`: of :class:`RoundsAsked`.
    """
    of, settings = RoundsAsked(**asked), WITHOUT_POOL
    coordinates = PublicCoordinates.of_features(LinearMap(n_columns, None))
    n_numbers = coordinates.n_coordinates
    if of.n_classes == 0:
        mu, paid_for = mu_for_settings(of.mu, of.neighbours), of.rounds or settings.rounds
        settings = for_number(settings, n_numbers, n_units=of.n_units, mu=mu, rounds=paid_for, locate=of.locate)
    settings = replace(settings, rounds=of.rounds or settings.rounds, clip=of.clip or settings.clip)
    k, sigma = of.noise(settings.rounds, n_numbers * outputs_of(of.n_classes))
    return of.plan(coordinates, settings, k, sigma, dimension=float(n_numbers))


def noise_for(
    rounds: int,
    numbers: int,
    epsilon: float,
    delta: float,
    *,
    rho: float | None = None,
    neighbours: Relation | None = "replace",
) -> tuple[int, float]:
    r"""Return (k, σ in grid steps): the finest grid whose noise can be drawn, and the least noise on it.

    With :math:`\sigma_0 = \Delta\sqrt T/\mu(\varepsilon, \delta)`, the noise is :math:`\Delta\sqrt T/\mu(\varepsilon,
    \delta - (1 + e^\varepsilon) N\tau(\sigma_0))`, rounded up to a whole number of steps: what the grid takes of δ is
    bounded by what it takes at the smaller σ₀.

    With `rho` the rounds are to cost no more than that ρ: :math:`T\Delta^2/(2\sigma^2) \le \rho`. Discrete noise has
    this price exactly (Canonne, Kamath and Steinke 2020, arXiv:2004.00010, Theorem 14), so nothing is taken of δ.
    """
    lengths = MOVED[neighbours]
    if rho is not None:
        return _noise_for_rho(rounds, rho, lengths)
    mu = mu_of_gaussian(epsilon, delta)
    _refuse_no_price(numbers, mu / (lengths * 2.0**FINEST_K * sqrt(rounds)), epsilon, delta)
    for k in range(FINEST_K, COARSEST_K - 1, -1):
        moved = lengths * 2.0**k * sqrt(rounds)
        if not mu > 0 or moved / mu > LARGEST_SIGMA:
            continue
        rest = delta - _delta_of_grid(numbers, mu / moved, epsilon)
        sigma = float(ceil(moved / mu_of_gaussian(epsilon, rest))) if rest > 0 else inf
        for doubling in range(_DOUBLINGS):  # a price is rounded up, and by more where it is tiny
            if sigma > LARGEST_SIGMA:
                break
            event = Repeated(released_by_a_round(sigma, k, max(numbers // rounds, 1), neighbours), rounds)
            if price(event, delta) <= epsilon:
                return k, sigma
            sigma = float(ceil(sigma * (1 + 2.0 ** (doubling - 44))))
    raise too_much_noise(epsilon, delta)


def too_much_noise(epsilon: float, delta: float) -> InvalidParameter:
    """Return the refusal of a budget whose noise cannot be drawn."""
    return InvalidParameter(
        f"{named('epsilon', epsilon)} at {named('delta', delta)} asks for more noise than can be drawn on a grid that "
        f"is fine enough; give a larger {named('epsilon')}",
        parameter="epsilon",
        got=epsilon,
    )


def _delta_of_grid(numbers: int, precision: float, epsilon: float) -> float:
    """Return what a grid takes of δ, where `precision` is one by the noise in its steps."""
    return lost_delta(numbers * (DISTANCE * precision**2 + 2.0**-190), epsilon)


def _refuse_no_price(numbers: int, precision: float, epsilon: float, delta: float) -> None:
    """Refuse an ε and a δ of which even the finest grid, which takes the least, leaves nothing for the noise."""
    if _delta_of_grid(numbers, precision, epsilon) >= delta:
        raise InvalidParameter(
            f"{named('epsilon', epsilon)} is too large for {named('delta', delta)}: rounding the noise to a grid takes "
            "a part of δ that grows as e^ε, and here this part alone is above δ. "
            f"Lower {named('epsilon')}, or raise {named('delta')}",
            parameter="epsilon",
            got=epsilon,
        )


def _noise_for_rho(rounds: int, rho: float, lengths: int) -> tuple[int, float]:
    """Return (k, σ in grid steps) for rounds that together cost no more than ρ."""
    for k in range(FINEST_K, COARSEST_K - 1, -1):
        sigma = float(ceil(lengths * 2.0**k * sqrt(rounds / (2 * rho)))) if rho > 0 else inf
        for doubling in range(_DOUBLINGS):  # a price is rounded up
            if sigma > LARGEST_SIGMA:
                break
            if zcdp(Repeated(GridGaussian(sigma, lengths * 2.0**k, 1), rounds)) <= rho:
                return k, sigma
            sigma = float(ceil(sigma * (1 + 2.0 ** (doubling - 44))))
    raise InvalidParameter(
        f"rho={rho:g}, which (epsilon, delta) is worth where a ledger adds rho, asks for more noise than can be drawn "
        f"on a grid that is fine enough; give a larger {named('epsilon')}"
    )
