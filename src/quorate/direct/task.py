"""From what was asked to everything that is fixed before the first round: public facts, beside rows kept secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count as numbers
from pathlib import Path
from typing import Any

import numpy as np

from quorate.accounting import Event, Repeated
from quorate.accounting.neighbouring import N_IS_PUBLIC, ONE_RECORD, Neighbouring
from quorate.ambient import one_thread
from quorate.arguments import count, real
from quorate.data import PrivateRecords, PublicPool, check_classes, kind, public_digest, take
from quorate.data.feature_maps import FittedTransformer
from quorate.data.identity import as_column, is_same_object
from quorate.data.labels import Label, codes_of
from quorate.data.unit_ids import refuse_floating_ids
from quorate.deferred import sparse
from quorate.direct.begun import BegunRun
from quorate.direct.config import DirectConfig, charge_beginning, schema_of, with_images
from quorate.direct.plan import DirectPlan, default_map_before, feature_map_for, plan_direct, plan_without_pool
from quorate.direct.relation import ChosenRelation
from quorate.direct.spool import units_of
from quorate.direct.statements import FITTED_IS_STATED, POOL_IS_STATED, REMEDY
from quorate.direct.stored import dump_plan, load_plan
from quorate.errors import DataRefused, PreconditionFailed
from quorate.ledger import GuaranteeScope, Ledger, Reservation
from quorate.ledger.budget import EPSILON_DIGITS, Composition, float_down, largest_rho
from quorate.noise import NoiseSource
from quorate.release import Charge
from quorate.release.guarantee import ALL_OR_NONE
from quorate.release.session import LedgerTerms
from quorate.release.target import GRADIENT_ROUND, client_of, floor_budget
from quorate.run.progress import in_parts
from quorate.run.schema import Schema
from quorate.run.stage_store import NoStages, StageStore
from quorate.run.unit import unit_of
from quorate.run.usable_rows import PrivateTable, UsableRows, Watching, labels_and_slots
from quorate.types import Secret, Watch

_MADE_UP = 48  # rows


@dataclass(frozen=True, kw_only=True)
class DirectTask:
    """Everything that rounds are made from.

    `schema`: columns and encoder of the pool.
    `plan`: coordinates, settings and noise: public facts.
    `private`: the rows that can be used, as numbers.
    `classes`: the declared classes.
    `unit`: the word for whose data one contribution is.
    `grouped`: whether units have ids.
    `n_was_read`: whether the number of units was read off the data, and is therefore treated as public.
    `relation`: for which change of one unit the noise is, and the charge.
    `epsilon`, `delta`: what the rounds may cost.
    `fingerprint`: keyed hash of the private data, to which the ledger is bound.
    `noise`: where privacy noise comes from.
    `stored`: whether an earlier process kept the plan.
    `plan_key`: what the plan is kept under.
    `records`: by which usable private rows are known again, whatever their labels are.
    """

    schema: Schema = field(repr=False)
    plan: DirectPlan
    private: Secret[UsableRows] = field(repr=False)
    classes: tuple[Label, ...]
    unit: str
    grouped: bool
    n_was_read: bool
    relation: ChosenRelation
    epsilon: float
    delta: float
    fingerprint: str = field(repr=False)
    noise: NoiseSource
    stored: bool
    plan_key: str
    records: PrivateRecords = field(repr=False)
    composition: Composition = "sum"

    @property
    def n_classes(self) -> int:
        """Number of declared classes."""
        return len(self.classes)

    @property
    def n_public(self) -> int:
        """Rows of the public pool; 0 where there is none."""
        return int(self.schema.pool.shape[0]) if self.has_pool else 0

    @property
    def has_pool(self) -> bool:
        """Whether a public pool told the coordinates."""
        return self.plan.coordinates.whitening is not None

    @property
    def public_rows(self) -> Any:
        """Encoded public rows to look at contributions with; without a pool, made-up numbers."""
        if self.has_pool:
            return self.schema.numbers(self.schema.pool)
        made_up = np.random.default_rng(0).normal(size=(_MADE_UP, self.schema.numbers(self.schema.pool).shape[1]))
        return sparse.csr_matrix(made_up * (made_up > 0)) if kind(self.schema.pool) == "sparse" else made_up

    @property
    def neighbouring(self) -> Neighbouring:
        """What the guarantee compares."""
        return self.relation.neighbouring(self.unit, n_was_read=self.n_was_read)

    @property
    def event(self) -> Repeated:
        """What the rounds release, for the change that they are charged for."""
        return self.plan.event_for(self.relation.charged)

    @property
    def also(self) -> tuple[Neighbouring, Event] | None:
        """The other relation and what the rounds release for it, where that is known."""
        other = self.relation.other
        return None if other is None else (Neighbouring.of(other, self.unit), self.plan.event_for(other))

    @property
    def scope(self) -> GuaranteeScope:
        """Whose data the rounds protect, against which change."""
        # A sum does not know rows by their position, so deleting one is what removing it is.
        read, fitted = self.n_was_read, isinstance(self.schema.encoder, FittedTransformer)
        whole = self.neighbouring.change == "add-or-remove" and self.unit != ONE_RECORD
        said = (
            (N_IS_PUBLIC, read),
            (ALL_OR_NONE.format(unit=self.unit), whole),
            (POOL_IS_STATED, self.has_pool),
            (FITTED_IS_STATED, fitted),
        )
        return GuaranteeScope.about(self.neighbouring, caveats=tuple(words for words, applies in said if applies))

    def units(self, *, folder: Path | None = None, watch: Watching | None = None) -> Secret[Any]:
        """The private rows in public coordinates, as integers: what :func:`~quorate.direct.spool.units_of` returns."""
        return Secret(units_of(self.plan.coordinates, self.private.reveal(), folder=folder, watch=watch))

    @cached_property
    def public_digest(self) -> str:
        """Content hash of the pool."""
        return public_digest(self.schema.pool)

    def kept_plan(self) -> bytes:
        """The plan as bytes, to be kept with the rounds that rest on it."""
        return dump_plan(self.plan, self.schema.encoder)

    def charges(self) -> Iterator[Charge]:
        """What the rounds ask of a ledger, all at once: the first time, and after each attempt that was lost whole."""
        key = f"{self._asked} {self._plan_digest}"
        for attempt in numbers():
            yield Charge(
                event=self.event,
                also=self.also,
                delta=self.delta,
                purposes={GRADIENT_ROUND: self.plan.settings.rounds},
                key=f"{key} {attempt}",
                scope=self.scope,
                seeded=self.noise.seeded,
                remedy=REMEDY,
            )

    @cached_property
    def _plan_digest(self) -> str:
        return self.plan.digest  # a hash of all coordinates

    @property
    def _asked(self) -> str:
        """What every charge for the same rounds begins with, whatever the last bits of their coordinates are."""
        return charge_beginning(
            self.plan_key,
            self.fingerprint,
            self.unit,
            grouped=self.grouped,
            n_was_read=self.n_was_read,
            classes=self.classes,
        )

    def charge_on(self, ledger: Ledger) -> Charge:
        """Return the charge that is to be made on a ledger, or that was made and goes on.

        Raises PreconditionFailed if the ledger holds the same rounds in coordinates of other bits: they were computed
        elsewhere, or with another number of threads, and stored rounds mean nothing in these. Where every round of an
        attempt was drawn and none was stored there is no model, and nothing may be drawn again: the next attempt is a
        charge of its own.
        """
        for charge in self.charges():
            reservation = charge.find(ledger)
            if reservation is None:
                self._refuse_recomputed(ledger)
                return charge
            if _goes_on(reservation):
                return charge
        raise AssertionError("the attempts have no end")  # pragma: no cover

    def _refuse_recomputed(self, ledger: Ledger) -> None:
        """Refuse a second charge for rounds that were charged already, in coordinates that differ by their bits."""
        for reservation in ledger.reservations():
            asked_for_these = reservation.key.startswith(f"{self._asked} ")
            same = reservation.key.startswith(f"{self._asked} {self._plan_digest} ")
            if asked_for_these and not same and _goes_on(reservation):
                raise PreconditionFailed(
                    "the ledger holds these very rounds in coordinates whose last bits differ, as those of another "
                    "machine, library or number of threads do; nothing more was charged. Go on where they began (a "
                    "run: with its private/coordinates-*.stage); another release, which is charged, has another ε"
                )

    def may_score(self, rows: Any) -> bool:
        """Tell whether a score on labelled rows may be published: no more private ones are among them than by chance.

        `rows`: as :meth:`~quorate.run.schema.Schema.parsed` takes them. Privacy: one of the three things that
        private cells decide in the direct method, asked once the rounds are over. Where the answer is no the score is
        left out; the owner alone is told why.
        """
        parsed, usable = self.schema.parsed(rows, "evaluation")
        return not self.records.are_in(take(parsed, np.flatnonzero(usable)))

    def without_private_rows(self) -> DirectTask:
        """The same task once the private rows are no longer needed."""
        nothing = PrivateTable(self.schema, take(self.schema.pool, np.arange(0)))
        return replace(self, private=Secret(UsableRows(nothing, np.empty(0, dtype=np.int64), None, 0)))


@one_thread()
def prepare_direct(
    config: DirectConfig,
    X: Any,
    y: Any,
    *,
    public: Any,
    groups: Any | None,
    fingerprint_key: Secret[bytes],
    noise: NoiseSource,
    stages: StageStore | None = None,
    terms: LedgerTerms | None = None,
    watch: Watch | None = None,
) -> DirectTask:
    """Check all that may be refused, which are public facts alone, and fix everything before the first round.

    `config`: what was asked.
    `X`, `y`, `groups`: as for :meth:`quorate.PrivateLogisticRegression.fit`.
    `public`: the pool; rows are numbers where there is none.
    `fingerprint_key`: by which data are bound to a ledger.
    `noise`: where privacy noise comes from.
    `stages`, `terms`: where the plan of an earlier process may be found; those of the ledger to charge, by default of a
        new one.
    `watch`: ``watch(stage, done, total)``, of each pass over the private rows.

    Raises InvalidParameter, DataRefused if an argument, the pool or the columns are wrong. No private value decides on
    it; PreconditionFailed if the ledger's earlier charges are for a change of one unit that this run cannot be for.
    """
    epsilon, delta = floor_budget((config := with_images(config, public)).epsilon, config.delta)
    classes = check_classes(config.classes)
    declared = None if config.n_records is None else count("n_records", config.n_records, at_least=1)
    unit = unit_of(config.unit, grouped=groups is not None)
    schema = schema_of(config, X, public)
    _refuse_forms(X, y, groups, public)
    table = PrivateTable.of(schema, X)
    digests, records = table.known(in_parts(watch, "private rows"))
    labels, slots = labels_and_slots(y, groups, len(digests), codes=lambda part: codes_of(part, classes))
    private = UsableRows.of(table, labels, slots, grouped=groups is not None)
    n_units = declared or max(private.n_slots, 1)
    facts: dict[str, Any] = {"n_classes": len(classes), "n_units": n_units, "epsilon": epsilon, "delta": delta}
    named: dict[str, Any] = {"grouped": groups is not None, "n_was_read": declared is None, "classes": classes}
    data = table.fingerprint(digests, labels, slots, fingerprint_key)
    begun = BegunRun(
        config=config,
        schema=schema,
        stages=stages or NoStages(),
        facts=facts,
        terms=terms or LedgerTerms(),
        client=client_of(seeded=noise.seeded),
        has_pool=public is not None,
        named=lambda key: charge_beginning(key, data, unit, **named),
    )
    key, kept, relation, schema, feature_map = begun.found(n_was_read=declared is None, unit=unit)
    facts |= {"neighbours": relation.noise, "rho": rho_of(epsilon, delta, config.composition)}
    plan, schema = _planned(replace(config, feature_map=feature_map), schema, public, kept, facts)
    if kept is not None and public is not None:
        table = PrivateTable(schema, table.X)
        again = in_parts(watch, "private rows again")
        digests, records = table.known(again)  # again: what can be scaled follows from the encoder that was kept
        data = table.fingerprint(digests, labels, slots, fingerprint_key)
    return DirectTask(
        schema=schema,
        plan=plan,
        private=Secret(replace(private, table=replace(table, schema=schema))),
        unit=unit,
        **named,
        relation=relation,
        epsilon=epsilon,
        delta=delta,
        fingerprint=data,
        noise=noise,
        stored=kept is not None,
        plan_key=key,
        records=records,
        composition=config.composition,
    )


def _planned(
    config: DirectConfig, schema: Schema, public: Any, kept: bytes | None, facts: Mapping[str, Any]
) -> tuple[DirectPlan, Schema]:
    """Return the plan, and the schema with the encoder that it rests on."""
    rounds = None if config.rounds is None else count("rounds", config.rounds, at_least=1)
    clip = None if config.clip is None else real("clip", config.clip, above=0)
    how: dict[str, Any] = {**facts, "rounds": rounds, "clip": clip}
    if public is None:
        return plan_without_pool(int(schema.numbers(schema.pool).shape[1]), **how), schema
    if kept is not None:
        plan, encoder = load_plan(kept)
        return plan, replace(schema, encoder=encoder)
    encoded, name = schema.numbers(schema.pool), config.feature_map if isinstance(config.feature_map, str) else "linear"
    if name == "auto":  # a later default has its name in the key, and here
        name = default_map_before(encoded)
    feature_map = feature_map_for(name, encoded, rows=schema.words, categories=schema.indicator_blocks)  # type: ignore[arg-type]
    return plan_direct(feature_map, encoded, **how), schema


def rho_of(epsilon: float, delta: float, composition: Composition) -> float | None:
    """Return the ρ that (ε, δ) is worth where a ledger adds ρ; None where it adds ε and δ.

    Examples
    --------
    >>> rho_of(1.0, 1e-5, "zcdp"), rho_of(1.0, 1e-5, "sum")
    (0.030556595, None)
    """
    return float_down(largest_rho(epsilon, delta), EPSILON_DIGITS) if composition == "zcdp" else None


def _refuse_forms(X: Any, y: Any, groups: Any, public: PublicPool | None) -> None:
    """Refuse what the objects themselves tell, whatever they hold."""
    if public is not None and is_same_object(X, public.rows()):
        raise DataRefused(
            "the public pool is the private table itself or a part of it, and the pool is published, in effect. Give "
            "public rows, about nobody in the private table"
        )
    if y is None or not hasattr(y, "__iter__"):
        requires = "this classifier requires y to be passed, but the target y is None" if y is None else f"got {y!r}"
        raise DataRefused(f"y: {requires}; give one label for every row")
    for name, given in (("y", y), ("groups", groups)):
        if (dimensions := getattr(as_column(given), "ndim", 1)) != 1:
            raise DataRefused(f"{name} has {dimensions} dimensions; give one column, one entry for every row")
    refuse_floating_ids(groups)


def _goes_on(reservation: Reservation) -> bool:
    """Whether a charge has rounds left to draw, or some that were stored."""
    if reservation.remaining(GRADIENT_ROUND):
        return True
    return any(block.answers is not None for block in reservation.blocks(GRADIENT_ROUND))
