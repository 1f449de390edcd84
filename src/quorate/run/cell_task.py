"""What noisy rounds, and votes for a number, have in common: private rows that are read cell by cell, from which a
model follows that is linear in features of public rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count as numbers
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from quorate.accounting import Event, Neighbouring
from quorate.ambient import of_arrays
from quorate.data import PrivateRecords, public_digest, take
from quorate.data.column_kinds import ColumnKinds
from quorate.data.digests import SpooledDigests
from quorate.data.feature_maps.coordinates import FeatureMap
from quorate.data.labels import STEPS, Label, TargetRange, codes_of
from quorate.data.rows import Rows
from quorate.ledger import GuaranteeScope, Ledger, Reservation
from quorate.noise import NoiseSource
from quorate.release import Charge
from quorate.run.held_out import HeldOut, plan_sets
from quorate.run.method_config import MethodConfig
from quorate.run.progress import in_parts
from quorate.run.schema import Schema
from quorate.run.usable_rows import PrivateTable, UsableRows, labels_and_slots
from quorate.types import FloatArray, IntArray, Secret, Watch

if TYPE_CHECKING:
    from quorate.ensemble.workers.cluster.scheduler import DaskScheduler


def left_out(name: str, made_of_it: str = "score") -> str:
    """Say, on the owner's terminal alone, why what is published has no score, or is not calibrated."""
    return (
        f"the {made_of_it} was left out: {name} holds private rows, and a {made_of_it} on them would be published "
        "without a charge. What is published has the form of a run without such rows, and gives no reason. Give "
        "public rows with labels, about nobody in the private table. This line is for you alone, and is outside the "
        "guarantee"
    )


@dataclass(frozen=True, slots=True, eq=False)
class CellRows:
    """A private table as it was read; `private`: the rows that learn; `n_units`: likewise, declared where they are."""

    table: PrivateTable
    digests: SpooledDigests
    records: PrivateRecords
    labels: IntArray
    slots: Sequence[bytes]
    private: UsableRows
    held: HeldOut | None
    n_units: int

    @classmethod
    def read(
        cls,
        table: PrivateTable,
        y: Any,
        groups: Any | None,
        *,
        asked: MethodConfig,
        classes: Sequence[Label],
        budget: tuple[float, float],
        n_records: int | None,
        unit: str,
        key: Secret[bytes],
        watch: Watch | None = None,
        place: Mapping[str, Any] | None = None,
    ) -> CellRows:
        """Read each row once; `key`: the run's, which holds units out; `place`: of hashes that memory does not hold."""
        digests, records = table.known(in_parts(watch, "private rows"), **(place or {}))
        held_range = asked.target_range
        last = len(classes) - 1 if held_range is None else STEPS
        codes: Any = partial(codes_of, classes=classes) if held_range is None else held_range.steps_of
        labels, slots = labels_and_slots(y, groups, len(digests), codes=codes, last=last, **(place or {}))
        private, held = UsableRows.of(table, labels, slots, grouped=groups is not None), None
        n_units = n_records or max(private.n_slots, 1)
        plan = plan_sets(asked, n_records=n_records, budget=budget, unit=unit)
        if plan is not None:
            held = HeldOut.of(plan, slots, private.codes, key, digests=None if groups is not None else digests)
            private = replace(private, codes=np.where(held.held.reveal(), -1, private.codes))
            n_units = plan.n_learning
        return cls(table, digests, records, labels, slots, private, held, n_units)

    def fingerprint(self, key: Secret[bytes]) -> str:
        """Return the keyed fingerprint of the table."""
        return self.table.fingerprint(self.digests, self.labels, self.slots, key)

    def read_again(self, schema: Schema, watch: Watch | None, place: Mapping[str, Any]) -> CellRows:
        """Return the same by another schema: what can be scaled follows from its encoder."""
        table = PrivateTable(schema, self.table.X)
        digests, records = table.known(in_parts(watch, "private rows again"), **place)
        return replace(self, table=table, digests=digests, records=records)


@dataclass(frozen=True, kw_only=True)
class CellTask(ABC):
    """Everything that such a run is fixed by before a private row is used, beside rows that are kept secret.
    `n_was_read`: whether the number of units was read off the data, and is therefore public.
    """

    answers: ClassVar[str]  # the purpose of what the model follows from

    schema: Schema = field(repr=False)
    private: Secret[UsableRows] = field(repr=False)
    records: PrivateRecords = field(repr=False)
    classes: tuple[Label, ...] = ()
    target_range: TargetRange | None = None
    unit: str
    grouped: bool
    n_was_read: bool
    epsilon: float
    delta: float
    fingerprint: str = field(repr=False)
    noise: NoiseSource
    scheduler: DaskScheduler | None = field(default=None, repr=False)
    held: HeldOut | None = field(default=None, repr=False)

    @property
    def has_public_pool(self) -> bool:
        """Whether rows were given that are public."""
        return True

    @property
    def published_table(self) -> tuple[Rows, ColumnKinds]:
        """The pool, public or drawn, and what each column is read as before the model meets it."""
        return self.schema.pool, self.schema.kinds

    @property
    @abstractmethod
    def n_declared(self) -> int:
        """Units that the run is told of, those held out included."""

    @property
    @abstractmethod
    def neighbouring(self) -> Neighbouring:
        """What the guarantee compares."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """What is released, for the change that it is charged for."""

    @property
    def also(self) -> tuple[Neighbouring, Event] | None:
        """The other relation and what is released for it, where that is known."""
        return None

    @property
    @abstractmethod
    def scope(self) -> GuaranteeScope:
        """Whose data is protected, against which change."""

    @cached_property
    def public_digest(self) -> str:
        """Content hash of the pool."""
        return public_digest(self.schema.pool)

    def released(self, learning: Event) -> Event:
        """Return what is released of all units, where `learning` is of those that learn."""
        return learning if self.held is None else self.held.plan.event_with(learning)

    @abstractmethod
    def charges(self) -> Iterator[Charge]:
        """What is asked of a ledger, all at once: the first time, and after each attempt that was lost whole."""

    def attempts(
        self, key: str, purposes: dict[str, int], charged_to: dict[str, int] | None = None, *, remedy: str | None = None
    ) -> Iterator[Charge]:
        """Yield a charge for these purposes, and for the limit of what is held out, under one key after the other."""
        if self.held is not None:
            purposes, charged_to = self.held.plan.charged(purposes)
        for attempt in numbers():
            yield Charge(
                event=self.event,
                also=self.also,
                delta=self.delta,
                purposes=purposes,
                charged_to=charged_to,
                key=f"{key} {attempt}",
                scope=self.scope,
                seeded=self.noise.seeded,
                remedy=remedy,
            )

    def charge_on(self, ledger: Ledger) -> Charge:
        """Return the charge that is to be made on a ledger, or that was made and goes on. Where every answer of an
        attempt was drawn and none was stored there is no model, and nothing is drawn again: the next attempt is a
        charge of its own.
        """
        for charge in self.charges():
            if (reservation := charge.find(ledger)) is None:
                self.refuse_recomputed(ledger)
                return charge
            if self.goes_on(reservation):
                return charge
        raise AssertionError("the attempts have no end")  # pragma: no cover

    def refuse_recomputed(self, ledger: Ledger) -> None:
        """Refuse a charge for work that was charged already, and has another key here; by default there is none."""
        del ledger

    def goes_on(self, reservation: Reservation) -> bool:
        """Tell whether a charge has answers left to draw, or some that were stored."""
        if reservation.remaining(self.answers):
            return True
        return any(block.answers is not None for block in reservation.blocks(self.answers))

    def may_score(self, rows: Any) -> bool:
        """Tell whether a score on labelled rows may be published: no more private ones are among them than by chance.
        Privacy: one of the few things that private cells decide; the owner alone is told why a score is left out.
        """
        parsed, usable = self.schema.parsed(rows, "evaluation")
        return not self.records.are_in(take(parsed, np.flatnonzero(usable)))

    def without_private_rows(self) -> Self:
        """The same task once the private rows are no longer needed."""
        nothing = PrivateTable(self.schema, take(self.schema.pool, np.arange(0)))
        private = UsableRows(nothing, np.empty(0, dtype=np.int64), None, 0)
        return replace(self, private=Secret(private), held=self.held and self.held.without_rows())


def behind_features(linear: Any, feature_map: FeatureMap, schema: Schema, *, n_columns: int) -> Any:
    """Return a Pipeline: the encoder (where there is one), the feature map, and a linear model of `n_columns`."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline

    linear.n_features_in_ = n_columns
    encoded = schema.numbers(schema.pool)
    steps: list[tuple[str, Any]] = [("features", FrozenEstimator(feature_map.transformer(encoded))), ("linear", linear)]
    if schema.published_encoder is not None:
        steps.insert(0, ("encoder", FrozenEstimator(schema.published_encoder)))
    return Pipeline([*of_arrays(steps[:-1]), steps[-1]])


def number_model(coefficients: FloatArray, intercept: float, target_range: TargetRange) -> Any:
    """Return what predicts the middle of the range at a score of 0, and a quarter of its width more at a score of 1."""
    from sklearn.linear_model import LinearRegression

    linear = LinearRegression()
    linear.coef_ = np.ascontiguousarray(coefficients * (target_range.width / 4))
    linear.intercept_ = np.float64(target_range.low + target_range.width * (0.5 + intercept / 4))
    return linear
