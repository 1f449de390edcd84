r"""Votes for a number: what was asked, checked, with every open choice filled in; no private row used yet.

Teachers predict a number in a declared range on public rows; what is released of a row is their noisy mean. What is
linear in public coordinates z of a row, :math:`f = \gamma^\top z` in halves of the range from its middle, many tiny
ridge regressions on shards A (rows of length one) say only in part: of what they predict at a row a, on average,

.. math:: a^\top M \gamma, \qquad M = E\big[(A^\top A + \lambda I)^{-1} A^\top Z\big],

where M is that of shards drawn from the public rows, and costs nothing. The student is fitted through it.

A teacher of r rows keeps about r/d of what its shard tells of d directions, and there are n/r of them: the noise of the
student is the same for every r up to d, and grows beyond.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, Literal

import numpy as np

from quorate.accounting import Composed, Event, Neighbouring, calibrate_sigma
from quorate.accounting.figures import plural, several
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.accounting.neighbouring import N_IS_PUBLIC
from quorate.arguments import count
from quorate.data import row_digests, take
from quorate.data.digests import order_of_rows
from quorate.data.feature_maps.pool_coordinates import UnitCoordinates
from quorate.data.labels import TargetRange
from quorate.data.rows import kind, n_rows
from quorate.ensemble import RegressorTeacher, change_of_one_teacher, not_looked_into
from quorate.ensemble.linear.tiny import TinyRegressor
from quorate.errors import DataRefused, InvalidParameter, named, naming
from quorate.labelling import distinct
from quorate.ledger import GuaranteeScope
from quorate.mechanisms import NoisyMean, Schedule
from quorate.mechanisms.fields import least
from quorate.mechanisms.noisy_mean import GRID, LENGTH, NoisyMeans, TargetCounts
from quorate.noise import NoiseSource
from quorate.release import Charge
from quorate.release.charge import LABEL, TARGET_COUNT, client_of
from quorate.release.guarantee import BY_POSITION
from quorate.release.model_digest import described
from quorate.release.session import LedgerTerms
from quorate.run.cell_task import CellRows, CellTask
from quorate.run.facts import name_of
from quorate.run.located import COUNTING, MOST_CELLS, cells_for
from quorate.run.method_config import MethodConfig
from quorate.run.public_facts import PublicFacts, unit_of
from quorate.run.schema import LINE_BREAKS_ARE_STATED, POOL_IS_STATED, Schema, check_pool, refuse_forms
from quorate.run.usable_rows import PrivateTable
from quorate.types import IntArray, Secret, derive
from quorate.voting.config import queries_asked_for
from quorate.voting.coordinates import PoolForVotes
from quorate.voting.recipe import MOST_TEACHERS, QUERY_CAP, WIDTH_CAP, rows_per_teacher
from quorate.voting.scope import HELD_IS_STATED, scope_about

OF_COUNTS = 0.1  # of μ², for counts of targets


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberRelease:
    """What is released: noisy means, after counts of targets where these show through their noise."""

    means: NoisyMean
    counts: TargetCounts | None

    @classmethod
    def calibrated(cls, budget: Schedule, n_units: int, *, at_once: bool = True) -> NumberRelease:
        """Return it with the least noise that fits; `at_once`: all of a teacher's numbers are one bounded vector."""
        kind: type[NoisyMean] = NoisyMeans if at_once else NoisyMean
        values: dict[str, Any] = {"queries": budget.answers, "length": LENGTH} if at_once else {}
        mu = mu_of_gaussian(budget.epsilon, budget.delta) * math.sqrt(OF_COUNTS)
        counts = TargetCounts.within(mu, COUNTING, MOST_CELLS)
        cells = cells_for(MOST_CELLS, n_units, counts.sigma)
        if not cells:
            return cls(means=kind.calibrated(values, budget), counts=None)
        counts = replace(counts, cells=cells)
        times, moved = (1, 2 * LENGTH * math.sqrt(budget.answers)) if at_once else (budget.answers, 2.0)
        start = calibrate_sigma(budget.epsilon, budget.delta, times, moved, noise="continuous")
        return least(
            lambda sigma: cls(means=kind(sigma=sigma, **values), counts=counts),
            start / math.sqrt(1 - OF_COUNTS),
            budget,
        )

    def schedule(self, answers: int) -> Event:
        """Return what so many noisy means, and the counts before them, release."""
        means = self.means.schedule(answers)
        return means if self.counts is None else Composed((self.counts.schedule(COUNTING), means))

    @property
    def why(self) -> tuple[str, ...]:
        """Say whether targets are counted."""
        if self.counts is None:
            why = "targets are not counted, since noise would hide where they lie: teachers predict in the whole range"
            return (why,)
        counted = (
            f"targets are counted {COUNTING} times in {self.counts.cells} cells of the range; these noisy counts take "
            f"{OF_COUNTS:.0%} of the budget (of μ², in which prices of Gaussian noise add up), and choose the part of "
            "the range in which teachers predict"
        )
        return (counted,)


PARTITION: Literal["hash"] = "hash"
PENALTY = 0.3  # of a tiny teacher, in rows of its shard for each dimension
TINY_ROWS = 0.5  # rows of a tiny teacher for each dimension of the coordinates
FEWEST_ROWS, FEWEST_UNITS = 3, 2
SHARE = 0.05  # d(κ) is (SHARE μ n)^⅔: where the noise of the student is as large whatever μ n is
GAIN = 2.0  # of what tiny teachers say beside their mean
NO_COORDINATES = (
    "votes for a number need a pool of at least 20 public rows that differ, a dense table of at most 1,000 columns "
    "once it is encoded: the student is linear in its coordinates. Take {direct}, or leave columns of text out"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberConfig(MethodConfig):
    """What was asked for; names and meanings are those of :class:`quorate.PrivateRegressor`."""

    target_range: TargetRange
    teacher: Any = None
    n_teachers: int | Literal["auto"] = "auto"
    queries: int | Literal["auto", "all"] = "auto"
    n_jobs: int = 1


@dataclass(frozen=True, kw_only=True)
class NumberTask(CellTask):
    """Everything that the votes are made from. `coordinates`: as tiny teachers see rows; the student is linear in the
    ones behind them. `slots`: whose row each is. `order`: a keyed hash of the order of rows that have no ids. `counts`:
    of targets, None where noise would hide them.
    """

    answers: ClassVar[str] = LABEL

    coordinates: UnitCoordinates = field(repr=False)
    teacher: TinyRegressor | RegressorTeacher
    mechanism: NoisyMean
    counts: TargetCounts | None
    n_teachers: int
    n_queries: int
    rows_each: float
    slots: Secret[Any] = field(repr=False)
    target_range: TargetRange
    n_units: int
    order: str = field(repr=False)
    key: Secret[bytes] = field(repr=False)
    why: tuple[str, ...]
    n_jobs: int

    @property
    def n_public(self) -> int:
        """Rows of the public pool."""
        return int(n_rows(self.schema.pool))

    @property
    def tiny(self) -> bool:
        """Whether teachers are quorate's own, and see coordinates."""
        return isinstance(self.teacher, TinyRegressor)

    @property
    def teacher_name(self) -> str:
        """What teachers are, in words."""
        return name_of(self.teacher if isinstance(self.teacher, TinyRegressor) else self.teacher.estimator)

    @property
    def n_declared(self) -> int:
        """Units that the run is told of, those held out included."""
        return self.n_units if self.held is None else self.held.plan.n_units

    @property
    def event(self) -> Event:
        """What is released."""
        return self.released(self.learning)

    @property
    def learning(self) -> Event:
        """What is released of units that learn."""
        return NumberRelease(means=self.mechanism, counts=self.counts).schedule(self.n_queries)

    @property
    def noise_sd(self) -> float:
        """The standard deviation of the noise of a mean, in halves of the part of the range that is voted in."""
        return self.mechanism.sigma / self.n_teachers

    @property
    def neighbouring(self) -> Neighbouring:
        """What the guarantee compares. Where the number of units was read, it chose the noise."""
        return Neighbouring.of("replace" if self.n_was_read else change_of_one_teacher(PARTITION), self.unit)

    @property
    def scope(self) -> GuaranteeScope:
        """Whose data is protected, against which change."""
        held = None if isinstance(self.teacher, TinyRegressor) else not_looked_into(self.teacher.estimator)
        read = (N_IS_PUBLIC,) if self.n_was_read else ()
        rests_on = (POOL_IS_STATED,) if held is None else (POOL_IS_STATED, HELD_IS_STATED.format(held=held))
        broken = (LINE_BREAKS_ARE_STATED,) if self.schema.kinds.dialect.line_breaks else ()
        placed = (BY_POSITION,) if self.held is not None and not self.grouped else ()
        return scope_about(self.neighbouring, caveats=(*read, *placed, *rests_on, *broken))

    @cached_property
    def queries(self) -> IntArray:
        """Rows of the pool whose means are released, ``(n_queries,)``, ascending: drawn from public rows alone."""
        first, _ = distinct(row_digests(self.schema.pool))
        rng = np.random.default_rng(int.from_bytes(derive(self.key, "queries"), "big"))
        return np.asarray(np.sort(rng.permutation(first)[: self.n_queries]))

    def charges(self) -> Iterator[Charge]:
        """What the votes ask of a ledger: the first time, and after each attempt that was lost whole."""
        if self.counts is None:
            return self.attempts(self.charge_begins, {LABEL: self.n_queries})
        purposes = {TARGET_COUNT: COUNTING, LABEL: self.n_queries}
        return self.attempts(self.charge_begins, purposes, {TARGET_COUNT: 0, LABEL: 1})

    @property
    def charge_begins(self) -> str:
        """What every charge for the same fit begins with."""
        teacher = described(getattr(self.teacher, "estimator", self.teacher))
        counts = () if self.counts is None else (repr(self.counts), COUNTING)
        made_from = (
            self.fingerprint, self.order, self.unit, self.grouped, self.n_was_read, self.n_units, self.epsilon,
            self.delta, self.public_digest, self.target_range.ends,
            self.n_teachers, self.n_queries, repr(self.mechanism), teacher, self.coordinates.described,
            sorted(self.schema.kinds.facts().items()), sorted(self.schema.kinds.dialect.of_cells.items()),
            *counts, *(() if self.held is None else ("held out", sorted(self.held.plan.facts.items()))),
        )  # fmt: skip
        return f"votes for a number {blake2b(repr(made_from).encode(), digest_size=16).hexdigest()}"

    def as_begun(self, terms: LedgerTerms) -> NumberTask:
        """Return the task as a ledger was charged for it: with a sum for each query, or without counts of targets."""
        if not terms.charged:
            return self
        budget = Schedule(answers=self.n_queries, epsilon=self.epsilon, delta=self.delta)
        client = client_of(seeded=self.noise.seeded)
        earlier = NumberRelease.calibrated(budget, self.n_units, at_once=False)
        uncounted = NumberRelease(means=NoisyMean.calibrated({}, budget), counts=None)
        for release in (earlier, uncounted):
            before = replace(self, counts=release.counts, mechanism=release.means)
            if terms.holds(f"{before.charge_begins} ", client):
                return before
        return self

    def without_private_rows(self) -> NumberTask:
        """The same task once the private rows are no longer needed."""
        return replace(super().without_private_rows(), slots=Secret([]))


def prepare_numbers(
    config: NumberConfig,
    X: Any,
    y: Any,
    *,
    public: Any,
    groups: Any | None,
    fingerprint_key: Secret[bytes],
    noise: NoiseSource,
    key: Secret[bytes] | None = None,
    terms: LedgerTerms | None = None,
) -> NumberTask:
    """Check all that may be refused, and fix everything before a private row is used, of which no cell decides on it.
    `fingerprint_key`: binds data to the ledger, and is the run's key where no other is given.
    """
    if public is None:
        raise InvalidParameter(
            'method="votes" needs public rows, on which the teachers predict; give public=PublicPool(X_public), or '
            'take method="direct"'
        )
    unit, pool = unit_of(config.unit, grouped=groups is not None), check_pool(public)
    schema = _with_dense_rows(Schema.of(pool.rows(), given=pool.given))
    refuse_forms(X, y, groups, public)
    pool_for_votes = PoolForVotes.of(schema.numbers(schema.pool), schema.encoder)
    if pool_for_votes is None:
        raise DataRefused(NO_COORDINATES.format(direct=named("method", "direct")))
    table = PrivateTable.of(schema, X)
    declared = None if config.n_records is None else count("n_records", config.n_records, at_least=1)
    run_key = fingerprint_key if key is None else key
    how: dict[str, Any] = {"asked": config, "classes": (), "budget": (config.epsilon, config.delta), "unit": unit}
    rows = CellRows.read(table, y, groups, **how, n_records=declared, key=run_key)
    task = NumberTask(
        schema=schema,
        **_planned(config, schema, pool_for_votes, rows.n_units, unit, grouped=groups is not None),
        held=rows.held,
        private=Secret(rows.private),
        slots=Secret(rows.slots),
        records=rows.records,
        target_range=config.target_range,
        n_units=rows.n_units,
        n_was_read=declared is None,
        unit=unit,
        grouped=groups is not None,
        epsilon=config.epsilon,
        delta=config.delta,
        fingerprint=rows.fingerprint(fingerprint_key),
        order="" if groups is not None else order_of_rows(rows.digests, rows.labels, fingerprint_key),
        key=run_key,
        noise=noise,
        n_jobs=config.n_jobs,
        scheduler=config.scheduler,
    )
    return task if terms is None else task.as_begun(terms)


def _with_dense_rows(schema: Schema) -> Schema:
    """Return the schema whose encoder gives dense rows where a table of many categories is no wider than a student."""
    from sklearn.compose import ColumnTransformer

    row = schema.numbers(take(schema.pool, np.arange(1)))
    if not isinstance(schema.encoder, ColumnTransformer) or kind(row) != "sparse" or row.shape[1] > WIDTH_CAP:
        return schema
    encoder = copy(schema.encoder)
    encoder.sparse_threshold, encoder.sparse_output_ = 0.0, False
    return replace(schema, encoder=encoder)


def _planned(
    config: NumberConfig, schema: Schema, pool: PoolForVotes, n_units: int, unit: str, *, grouped: bool
) -> dict[str, Any]:
    """Fill in what was left open: coordinates, teachers, queries and noise, from public facts alone."""
    facts = PublicFacts(
        n_records=n_units,
        n_public=len(set(row_digests(schema.pool))),
        n_classes=2,
        width=int(schema.numbers(take(schema.pool, np.arange(1))).shape[1]),
        epsilon=config.epsilon,
        delta=config.delta,
        unit=unit,
    )
    n_queries = queries_asked_for(config.queries, facts.n_public, strategies=False) or min(facts.n_public, QUERY_CAP)
    mu_n = mu_of_gaussian(config.epsilon, config.delta) * n_units
    coordinates = pool.coordinates(n_classes=2, mu_n=((SHARE * mu_n) ** (2 / 3) / 0.75) ** 2)  # fewer than for classes
    dimension = float(coordinates.effects.sum())
    n_teachers, size = _teachers(config, facts, dimension, grouped=grouped)
    rows_each = n_units / n_teachers
    budget = Schedule(answers=n_queries, epsilon=config.epsilon, delta=config.delta)
    released = NumberRelease.calibrated(budget, n_units)
    return {
        "coordinates": coordinates,
        "teacher": _teacher(config, penalty=PENALTY * max(rows_each, 1.0) / dimension),
        "mechanism": released.means,
        "counts": released.counts,
        "n_teachers": n_teachers,
        "n_queries": n_queries,
        "rows_each": rows_each,
        "why": (
            *released.why,
            size,
            f"{several(n_queries, 'query')}: a student of noisy means loses nothing by asking more",
            f"the noise of the means is the least that {several(n_queries, 'answer')} at this budget allow",
        ),
    }


def _teacher(config: NumberConfig, *, penalty: float) -> TinyRegressor | RegressorTeacher:
    """Return who predicts, or refuse a teacher that is no regressor, is fitted, or cannot be copied."""
    if config.teacher is None:
        return TinyRegressor(penalty, GRID, GAIN)
    estimator = config.teacher
    tags = getattr(estimator, "__sklearn_tags__", None)
    if getattr(estimator, "_estimator_type", None) == "classifier" or (
        tags is not None and not isinstance(estimator, type) and tags().estimator_type == "classifier"
    ):
        raise InvalidParameter(
            f"{named('teacher')} must predict a number, got the classifier {type(estimator).__name__}; give a "
            "regressor, such as Ridge()",
            parameter="teacher",
            got=type(estimator).__name__,
        )
    teacher = RegressorTeacher(estimator, config.target_range, GRID)
    with naming({"model": named("teacher")}):
        _ = teacher.copies  # which refuses
    return teacher


def _teachers(config: NumberConfig, facts: PublicFacts, dimension: float, *, grouped: bool) -> tuple[int, str]:
    """K, and why."""
    units = facts.n_records or 1
    if config.n_teachers != "auto":
        n_teachers = count("n_teachers", config.n_teachers, at_least=1, hint='A number, or "auto"')
        if n_teachers > units:
            raise InvalidParameter(
                parameter="n_teachers",
                got=n_teachers,
                expected=f"at most {units:,}, the number of {plural(facts.unit)}",
                advice="ask for fewer",
            )
        return n_teachers, f"{several(n_teachers, 'teacher')}, as asked for"
    if config.teacher is None and grouped:  # how many rows each has is not known
        rows, reason = max(FEWEST_UNITS, units / MOST_TEACHERS), f"with all rows of each {facts.unit}"
    elif config.teacher is None:
        rows = max(TINY_ROWS * dimension, FEWEST_ROWS, units / MOST_TEACHERS)
        reason = "no more than they need for the dimensions of the coordinates"
    else:
        rows, reason = rows_per_teacher(facts), "chosen to balance the noise against the error of small teachers"
    n_teachers = max(1, min(units, math.floor(units / rows)))
    size = several(round(units / n_teachers), facts.unit)
    return n_teachers, f"{several(n_teachers, 'teacher')} of about {size} each, {reason}"
