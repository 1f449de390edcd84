r"""What a run without public rows pays for before there is a pool: marginals, sums over pairs of columns,
and rounds, in one reservation.

All of it follows from public facts: the schema, n₀, the number of classes, (ε, δ) and the relation. With
:math:`\mu(\varepsilon, \delta)` of the whole, marginals get the share s of :math:`\mu^2`, a tenth by default, and up to
.3 where units are few for many columns: the least with :math:`q = n_0 \sqrt{D/2}/(3\sigma_t) \ge 6`; a tenth again of
columns that are mostly lists where units are fewer than 2,000. Sums over pairs get .05 to .1 where the noise leaves
something to see. The rounds' noise is then the least for which the whole costs no more than ε;
`tests/direct/test_joint_moments.py` adds it up by another road, in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import ceil, inf, sqrt
from typing import Any, Final, TypeAlias

from quorate.accounting import Composed, zcdp
from quorate.accounting import epsilon as price
from quorate.accounting.figures import at_least, several
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.accounting.neighbouring import Relation
from quorate.data.declared_schema import CategoryColumn, NumberColumn, Schema
from quorate.data.feature_maps import LinearMap, ResidualMap
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.feature_maps.nystroem import LANDMARKS, MOST_VALUES, columns_of
from quorate.data.feature_maps.scale import has_spread
from quorate.data.pool_moments import MOST_EIGENPAIRS, PoolMoments
from quorate.data.schema_encoder import encoded_width
from quorate.direct.defaults import dimension_of_blocks, outputs_of, rounds_for, wanted_dimension
from quorate.direct.joint_moments import SHRINKAGES, PairColumns, Shrinkage, lists_of_few, pairs_of, with_moment
from quorate.direct.plan import (
    COARSEST_K,
    LARGEST_SIGMA,
    DirectPlan,
    FixedRounds,
    RoundsAsked,
    mu_for_settings,
    noise_for,
    plan_direct,
    too_much_noise,
)
from quorate.ledger import Reservation
from quorate.mechanisms.pair_sums import LENGTH, NoisyPairSums
from quorate.release.charge import PAIR_SUMS
from quorate.report import Part
from quorate.report.notation import percent
from quorate.report.spending import part_of
from quorate.run.drawn_pool import LEAST_SHARE, N_ROWS, SHORT_LIST, PoolPlan, ReleasedMarginals, plan_pool
from quorate.run.schema import Schema as ReadSchema
from quorate.types import BoolArray, IntArray, Secret

_STEPS: Final = 60
_MOST_COUNTED: Final = 0.8  # share of marginals beside which there is room for pairs

#: Gives noisy sums over pairs of columns, or None where they were lost.
SumsOver: TypeAlias = Callable[[PairColumns], IntArray | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class BeforePool(PoolPlan):
    """What is paid for, and what follows for the pool. `feature_map`: its name, by the schema alone. `fixed`: the
    rounds. `settings`: what they follow from. `pairs`: sums over pairs of columns, with the share `of_pairs`;
    None where none are released.
    """

    feature_map: str
    fixed: FixedRounds
    settings: RoundsAsked
    pairs: NoisyPairSums | None = None
    of_pairs: float = 0.0

    def event_for(self, neighbours: Relation | None) -> Composed:
        """What marginals, sums over pairs and rounds release together, for a change of one unit."""
        relation = neighbours or "replace"
        counted = self.marginals.event_for(relation).events
        pairs = () if self.pairs is None else (self.pairs.event_for(relation),)
        return Composed((*counted, *pairs, self.fixed.event_for(relation)))

    @property
    def released_in_words(self) -> str:
        """What is released before the rounds, in words."""
        counts = super(BeforePool, self).released_in_words
        if self.pairs is None:
            return counts
        return (
            f"{counts}, and noisy sums of products of at most {several(self.pairs.n_pairs, 'pair')} of columns, "
            f"noise of {at_least(self.noise_of_pairs)} on each where a row has a length of at most 1"
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What is released before the rounds, in plain values."""
        facts = super(BeforePool, self).facts
        if self.pairs is None:
            return facts
        pairs = {"pairs": self.pairs.n_pairs, "noise": self.noise_of_pairs, "share": self.of_pairs}
        return {**facts, "sums_over_pairs": pairs}

    @property
    def step(self) -> tuple[str, str]:
        """The line of a check about the pool that will be drawn."""
        name, counts = super(BeforePool, self).step
        return (name, counts) if self.pairs is None else (name, f"{counts}. {self._pairs_in_words}")

    def pool_in_words(self, released: ReleasedMarginals | None, n_rows: int | None = None) -> str:
        """Say what the pool is, and what tells how columns go together."""
        counts = super(BeforePool, self).pool_in_words(released, n_rows)
        return counts if self.pairs is None else f"{counts}. {self._pairs_in_words}"

    def parts(self, reservation: Reservation) -> list[Part]:
        """What became of what is released before the rounds, and the shares of the charge."""
        counts = [self.part(reservation)]
        if self.pairs is None:
            return counts
        how = {"mechanism": "discrete Gaussian noise on sums of products", "share": self.of_pairs}
        return [*counts, part_of(reservation, PAIR_SUMS, **how, reserved=1, sigma=self.noise_of_pairs)]

    @property
    def noise_of_pairs(self) -> float:
        """σ of the noise on each sum over a pair of columns, where a row has a length of at most 1."""
        assert self.pairs is not None  # noqa: S101 - the caller's condition
        return self.pairs.sigma / LENGTH**2

    @property
    def _pairs_in_words(self) -> str:
        return (
            f"Noisy sums over pairs of columns take another {percent(self.of_pairs)}: where they show which columns go "
            "together, coordinates follow from that"
        )

    @property
    def of_rounds(self) -> float:
        """The share of μ² that is left for the rounds."""
        return 1 - self.share - self.of_pairs


@dataclass(frozen=True, slots=True)
class DrawnPool:
    """What a pool is drawn from: what is paid before it, rows that count in marginals, the run's key, and marginals."""

    before: BeforePool
    counted: Secret[BoolArray]
    key: Secret[bytes]
    released: ReleasedMarginals | None = None


def before_pool(
    declared: Schema,
    feature_map: str,
    *,
    share: float | None = None,
    paired: bool = True,
    listed: bool = True,
    averaged: bool = True,
    **settings: Any,
) -> BeforePool:
    """Fix what a run pays for, by public facts alone; `settings`: of :class:`~quorate.direct.plan.RoundsAsked`.
    `share`: s in (0, 1), in place of the default. `paired`: whether sums over pairs are released where they can tell
    something. `listed`: whether columns of few units that are mostly lists get the least share by default. `averaged`:
    how the default share is told, as :func:`plan_pool` says. Raises InvalidParameter if (ε, δ) is too small for noise
    to be drawn.
    """
    of = RoundsAsked(**settings)
    n_units, n_classes, relation = of.n_units, of.n_classes, of.neighbours or "replace"
    if share is None and listed and lists_of_few(declared, n_units):
        share = LEAST_SHARE
    pool = plan_pool(declared, of.mu, n_units=n_units, neighbours=relation, share=share, averaged=averaged)
    pairs, of_pairs = None, 0.0
    if paired and feature_map == "kernels" and pool.share <= _MOST_COUNTED:
        facts: dict[str, Any] = {"n_classes": n_classes, "n_units": n_units, "rare": of.rare}
        pairs, of_pairs = pairs_of(declared, of.mu, neighbours=relation, **facts)
    left = of.mu * sqrt(1 - pool.share - of_pairs)
    for_settings = mu_for_settings(left, of.neighbours)
    n_rows = N_ROWS + sum(len(held.values) for held in _short_lists(declared))
    linear = 1 + encoded_width(declared)
    wanted = wanted_dimension(N_ROWS, n_classes, n_units, for_settings, rare=of.rare)
    if feature_map == "kernels":
        most = min(linear, MOST_EIGENPAIRS, n_rows) + min(MOST_EIGENPAIRS, n_rows)
        dimension = dimension_of_blocks(wanted, linear, N_ROWS, n_classes)
    else:
        n_features = linear if feature_map == "linear" else linear + min(n_rows, LANDMARKS)
        most, dimension = min(n_features, n_rows), min(wanted, n_features)
    numbers = most * outputs_of(n_classes)
    rounds = of.rounds or rounds_for(
        dimension / (for_settings * n_units), n_classes, blocks=feature_map == "kernels", locate=of.locate
    )
    rounds += of.judge
    beside = pool.marginals.event if pairs is None else Composed((*pool.marginals.event.events, pairs.event))
    k, sigma = _noise(beside, relation, rounds, numbers, left, of.epsilon, of.delta, rho=of.rho)
    return BeforePool(
        declared=declared,
        share=pool.share,
        marginals=pool.marginals,
        n_units=n_units,
        feature_map=feature_map,
        fixed=FixedRounds(rounds, k, sigma, numbers, left),
        settings=of,
        pairs=pairs,
        of_pairs=of_pairs,
    )


def feature_map_of(name: str, declared: Schema) -> str:
    """Return the map that "auto" is: by the schema alone, never by the rows that are drawn from it."""
    if name != "auto":
        return name
    compared = (isinstance(held, NumberColumn) or held.missing <= MOST_VALUES for held in declared.columns.values())
    return "kernels" if any(compared) else "linear"


def _short_lists(declared: Schema) -> list[CategoryColumn]:
    lists = (held for held in declared.columns.values() if isinstance(held, CategoryColumn))
    return [held for held in lists if len(held.values) <= SHORT_LIST]


@lru_cache(maxsize=64, typed=True)  # a check and the fit after it, or a run and its guarantee, are of the same facts
def _noise(
    beside: Composed,
    relation: Relation,
    rounds: int,
    numbers: int,
    mu: float,
    epsilon: float,
    delta: float,
    *,
    rho: float | None,
) -> tuple[int, float]:
    """Return (k, σ in grid steps) of the rounds: the least noise for which they and what is beside them cost at most
    ε.
    """
    if rho is not None:
        return noise_for(rounds, numbers * rounds, epsilon, delta, rho=rho - zcdp(beside), neighbours=relation)
    k, sigma = noise_for(rounds, numbers * rounds, epsilon, delta, neighbours=relation)  # where there is nothing beside
    sigma = float(ceil(sigma * mu_of_gaussian(epsilon, delta) / mu))
    while sigma > LARGEST_SIGMA and k > COARSEST_K:  # beside others rounds take more noise: on a coarser grid
        k, sigma = k - 1, float(ceil(sigma / 2))

    def cost(steps: float) -> float:
        of_rounds = FixedRounds(rounds, k, steps, numbers, mu).event_for(relation)
        return price(Composed((*beside.events, of_rounds)), delta)

    for step in range(_STEPS):
        over = cost(sigma) / epsilon - 1 if sigma <= LARGEST_SIGMA else inf
        if over <= 0:
            return k, sigma
        if over == inf:
            break
        sigma = float(ceil(sigma * (1 + over + 2.0 ** (step - 40))))
    raise too_much_noise(epsilon, delta)


def plan_on(
    before: BeforePool,
    schema: ReadSchema,
    sums_of: SumsOver | None = None,
    shrinkage: Shrinkage = SHRINKAGES[0],
) -> DirectPlan:
    """Fix a run's coordinates by the pool that was drawn for it; rounds and noise are those that were paid for.
    `schema`: of the pool. `sums_of`: gives noisy sums over pairs of columns, or None. `shrinkage`: what is made of
    these. Nothing is refused: of rows that are all equal a linear map needs nothing.
    """
    encoded, categories = schema.numbers(schema.pool), schema.indicator_blocks
    name = before.feature_map if has_spread(encoded).any() else "linear"
    if name == "kernels" and not any(len(places) for places in columns_of(encoded, categories)):
        name = "linear"  # nothing that is compared varies
    feature_map = LinearMap.fit(encoded) if name == "linear" else feature_map_for(name, encoded, categories=categories)  # type: ignore[arg-type]
    moments = None
    if isinstance(feature_map, ResidualMap) and before.pairs is not None and sums_of is not None:
        columns = PairColumns.of(feature_map.linear, encoded, before.pairs.n_columns - 1)
        if (sums := sums_of(columns)) is not None:
            moments = PoolMoments.of_map(feature_map, encoded)
            recoloured = columns.recoloured(moments.features, sums, before.pairs, before.n_units, shrinkage)
            moments = with_moment(moments, recoloured)
    return plan_direct(feature_map, encoded, moments=moments, fixed=before.fixed, **asdict(before.settings))
