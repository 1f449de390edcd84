"""From what was asked to everything that is fixed before the first round: public facts, beside rows kept secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from quorate.accounting import Event
from quorate.accounting.neighbouring import N_IS_PUBLIC, ONE_RECORD, Neighbouring, Relation
from quorate.ambient import unwarned
from quorate.data import kind
from quorate.data.feature_maps import FittedTransformer
from quorate.data.rows import Rows
from quorate.deferred import sparse
from quorate.direct.before_pool import DrawnPool, plan_on
from quorate.direct.config import charge_beginning
from quorate.direct.joint_moments import Shrinkage, release_pair_sums
from quorate.direct.plan import DirectPlan
from quorate.direct.spool import units_of
from quorate.direct.stored import dump_plan
from quorate.errors import PreconditionFailed, named
from quorate.ledger import GuaranteeScope, Ledger, Reservation
from quorate.ledger.budget import Composition
from quorate.release import Charge
from quorate.release.charge import COORDINATES, GRADIENT_ROUND, MARGINAL_LEVEL, PAIR_SUMS
from quorate.release.guarantee import ALL_OR_NONE, BY_POSITION
from quorate.run.cell_task import CellTask
from quorate.run.drawn_pool import STATEMENTS, state_coordinates, stated_coordinates
from quorate.run.public_facts import ChosenRelation
from quorate.run.schema import LINE_BREAKS_ARE_STATED, POOL_IS_STATED, Schema
from quorate.run.stage_store import CLASS_SHARES, StageStore, shares_stage
from quorate.run.usable_rows import PrivateTable, UsableRows
from quorate.types import Secret, Watching

FITTED_IS_STATED = (
    "the transformer that makes numbers of rows came fitted, and is published with the model: that it was fitted on "
    "public rows is the owner's statement"
)


_MADE_UP = 48  # rows
DRAWN = "drawn pool"  # in a key, where a digest of coordinates stands elsewhere
_RECOMPUTED = (
    "the ledger holds these very rounds in coordinates whose last bits differ, as those of another machine, library or "
    "number of threads do; nothing more was charged. Go on where they began (a run: with its "
    "private/coordinates-*.stage); another release, which is charged, has another ε"
)


@dataclass(frozen=True, kw_only=True)
class DirectTask(CellTask):
    """Everything that rounds are made from: public facts of a run, and its usable rows. `drawn`: what a pool rests on
    that is drawn from marginals; before that, schema and plan are those of rows that are drawn evenly.
    `left_marginals_open`: whether the run goes on without marginals, as it was begun, where nothing was said of them.
    `rare`: the declared share of the rarer of two classes, with which the run began. `most`: bytes of coordinates that
    memory holds.
    """

    answers: ClassVar[str] = GRADIENT_ROUND

    plan: DirectPlan
    relation: ChosenRelation
    stored: bool
    plan_key: str
    composition: Composition = "sum"
    drawn: DrawnPool | None = field(default=None, repr=False)
    left_marginals_open: bool = False
    rare: float | None = field(default=None, repr=False)
    most: int | None = field(default=None, repr=False)

    @property
    def n_units(self) -> int:
        """n₀: units that the run is told of, those held out included."""
        return self.plan.n_units if self.held is None else self.held.plan.n_units

    @property
    def n_declared(self) -> int:
        """The same, by the name that every task read cell by cell has."""
        return self.n_units

    @property
    def n_classes(self) -> int:
        """Number of declared classes; 0 where a number is predicted."""
        return len(self.classes)

    @property
    def n_public(self) -> int:
        """Rows of the public pool; 0 where there is none."""
        return int(self.schema.pool.shape[0]) if self.has_public_pool else 0

    @property
    def has_pool(self) -> bool:
        """Whether a pool told the coordinates, be it public or drawn."""
        return self.plan.coordinates.whitening is not None

    @property
    def has_public_pool(self) -> bool:
        """Whether rows were given that are public."""
        return self.has_pool and self.drawn is None

    @property
    def why(self) -> tuple[str, ...]:
        """One sentence for each setting, with what it follows from."""
        held = () if self.held is None else (self.held.plan.why(self.unit),)
        if self.drawn is None:
            return (*held, *self.plan.why(self.unit))
        released, before = self.drawn.released, self.drawn.before
        if self.stored or released is not None:
            drawn = before.pool_in_words(released, int(self.schema.pool.shape[0]))
        else:
            drawn = (
                f"{before.pool_in_words(None)}; until then the coordinates, the clip and its noise are those of rows "
                "drawn evenly"
            )
        return drawn, *held, *self.plan.why(self.unit, pool="the drawn pool")

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
    def event(self) -> Event:
        """What is released, for the change that it is charged for."""
        return self._event_for(self.relation.charged)

    @property
    def also(self) -> tuple[Neighbouring, Event] | None:
        """The other relation and what is released for it, where that is known."""
        other = self.relation.other
        return None if other is None else (Neighbouring.of(other, self.unit), self._event_for(other))

    def paying_for_rounds(self, charged: Event) -> Event:
        """Return the part of a charge that pays for rounds: all of it, unless marginals or a limit are in it, too."""
        alone = self.drawn is None and self.held is None
        return charged if alone or charged != self.event else self.plan.event_for(self.relation.charged)

    def _event_for(self, neighbours: Relation | None) -> Event:
        return self.released((self.plan if self.drawn is None else self.drawn.before).event_for(neighbours))

    @property
    def scope(self) -> GuaranteeScope:
        """Whose data the rounds protect, against which change."""
        # A sum does not know rows by their position, so deleting one is what removing it is.
        read, fitted = self.n_was_read, isinstance(self.schema.encoder, FittedTransformer)
        whole = self.neighbouring.change == "add-or-remove" and self.unit != ONE_RECORD
        said = (
            (N_IS_PUBLIC, read),
            (ALL_OR_NONE.format(unit=self.unit), whole),
            (BY_POSITION, self.held is not None and not self.grouped),
            (POOL_IS_STATED, self.has_public_pool),
            (FITTED_IS_STATED, fitted),
            (LINE_BREAKS_ARE_STATED, self.schema.kinds.dialect.line_breaks),
        )
        return GuaranteeScope.about(self.neighbouring, caveats=tuple(words for words, applies in said if applies))

    def units(self, *, folder: Path | None = None, watch: Watching | None = None) -> Secret[Any]:
        """The private rows in public coordinates, as integers: here, or on the workers of a scheduler."""
        if self.scheduler is not None:
            from quorate.direct.elsewhere import units_elsewhere  # here: few runs have workers

            private = self.private.reveal()
            return Secret(units_elsewhere(self.scheduler, self.plan, private, self.public_rows, watch=watch))
        where: dict[str, Any] = {"folder": folder, "most": self.most}
        return Secret(units_of(self.plan.coordinates, self.private.reveal(), **where, watch=watch))

    def kept_plan(self) -> bytes:
        """The plan as bytes, to be kept with the rounds that rest on it."""
        return dump_plan(self.plan, self.schema.encoder)

    def charges(self) -> Iterator[Charge]:
        """What the rounds ask of a ledger, all at once: the first time, and after each attempt that was lost whole."""
        purposes = {GRADIENT_ROUND: self.plan.settings.rounds}
        if self.drawn is not None:
            before = self.drawn.before
            of_pairs = {} if before.pairs is None else {PAIR_SUMS: 1}
            purposes = {MARGINAL_LEVEL: before.marginals.n_levels, **of_pairs, COORDINATES: STATEMENTS, **purposes}
        key = f"{self.charge_begins} {DRAWN if self.drawn else self._plan_digest}"
        remedy = (
            f"give a smaller {named('epsilon')}, for which the rounds take more noise; or raise the budget, with a "
            "reason. How many rounds there are changes nothing in the price"
        )
        return self.attempts(key, purposes, remedy=remedy)

    @cached_property
    def _plan_digest(self) -> str:
        return self.plan.digest  # a hash of all coordinates

    @property
    def charge_begins(self) -> str:
        """What every charge for the same rounds begins with, whatever the last bits of their coordinates are."""
        return self._begins(self.plan_key)

    def _begins(self, key: str) -> str:
        named: dict[str, Any] = {"grouped": self.grouped, "n_was_read": self.n_was_read, "classes": self.classes}
        named["order"] = "" if self.held is None else self.held.order
        return charge_beginning(key, self.fingerprint, self.unit, **named)

    def keep_share(self, stages: StageStore) -> None:
        """Keep the share with which the run begins: another may be declared later, and it goes on with this one."""
        if self.rare is not None:
            key = self._begins(CLASS_SHARES)
            known = json.loads(stages.load(shares_stage(key), key) or b"[]")
            stages.save(shares_stage(key), key, json.dumps(sorted({*known, self.rare})).encode())

    def refuse_recomputed(self, ledger: Ledger) -> None:
        """Refuse a second charge for rounds that were charged already, in coordinates that differ by their bits. They
        were computed elsewhere, or with another number of threads, and stored rounds mean nothing in these.
        """
        if self.drawn is not None:  # other coordinates are stated behind the charge
            return
        for reservation in ledger.reservations():
            asked_for_these = reservation.key.startswith(f"{self.charge_begins} ")
            same = reservation.key.startswith(f"{self.charge_begins} {self._plan_digest} ")
            if asked_for_these and not same and self.goes_on(reservation):
                raise PreconditionFailed(_RECOMPUTED)

    @unwarned()  # as an error, a warning would end what is charged by now
    def on(self, pool: Rows, reservation: Reservation, shrinkage: Shrinkage) -> DirectTask:
        """Return the task with the pool that was drawn for it: its columns, coordinates, and rows in them. Sums over
        pairs of columns are released, or read, on the way, and shrunk by this rule.
        """
        assert self.drawn is not None  # noqa: S101 - the caller's condition
        before, private = self.drawn.before, self.private.reveal()
        schema = Schema.of_declared(before.declared, pool, self.schema.kinds.dialect)
        rows = replace(private, table=PrivateTable(schema, private.table.X))
        counted, sums_of = self.drawn.counted.reveal(), None
        # Where coordinates were stated and no sums were drawn, rounds began without them, and none are drawn any more.
        if before.pairs is not None and (reservation.blocks(PAIR_SUMS) or not stated_coordinates(reservation)):
            sums_of = partial(release_pair_sums, before.pairs, rows, counted, reservation, self.noise)
        return self.in_coordinates(schema, plan_on(before, schema, sums_of, shrinkage), private)

    def in_coordinates(self, schema: Schema, plan: DirectPlan, private: UsableRows) -> DirectTask:
        """Return the task with other columns and coordinates."""
        table = PrivateTable(schema, private.table.X)
        return replace(self, schema=schema, plan=plan, private=Secret(replace(private, table=table)))

    def state_coordinates(self, reservation: Reservation) -> None:
        """Write down which coordinates the rounds are in, before the first; or refuse others than were written down. A
        pool is drawn behind the charge, so that no key can name them. Raises PreconditionFailed if they differ.
        """
        state_coordinates(reservation, self._plan_digest, refusal=_RECOMPUTED)

    def rests_on(self, reservation: Reservation) -> bool:
        """Tell whether the coordinates are those that were written down for the rounds of a reservation."""
        return self._plan_digest in stated_coordinates(reservation)

    def without_private_rows(self) -> DirectTask:
        """The same task once the private rows are no longer needed."""
        drawn = None if self.drawn is None else replace(self.drawn, counted=Secret(np.empty(0, dtype=bool)))
        return replace(super().without_private_rows(), drawn=drawn)
