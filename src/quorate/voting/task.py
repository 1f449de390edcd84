"""A task: every open choice filled in, every table checked, no private row used yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from quorate.accounting import Event, Neighbouring
from quorate.accounting.neighbouring import ONE_LABEL, ONE_RECORD
from quorate.data import fingerprint, public_digest
from quorate.data.column_kinds import ColumnKinds
from quorate.data.digests import order_of_rows, pack
from quorate.data.feature_maps.pool_coordinates import UnitCoordinates
from quorate.data.rows import Rows, n_rows
from quorate.ensemble import (
    ClassifierTeacher,
    Partition,
    PriorMatchingTeacher,
    Teacher,
    as_teacher,
    change_of_one_teacher,
)
from quorate.ensemble.linear.equivalent import is_equivalent
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.errors import PreconditionFailed
from quorate.labelling import distinct
from quorate.labelling.active import Strategy
from quorate.noise import NoiseSource
from quorate.release.model_digest import described, described_mechanism
from quorate.run.drawn_pool import ReleasedMarginals
from quorate.run.held_out import HeldOut, SetsPlan
from quorate.run.public_facts import ChosenRelation, PublicFacts
from quorate.run.stage_store import stage_key
from quorate.students import Student
from quorate.types import IntArray, Secret, derive
from quorate.voting.config import RunConfig
from quorate.voting.inputs import Inputs, PrivateRows, Views
from quorate.voting.recipe import Recipe

#: The version of quorate since which shards, seeds and votes are, bit for bit, what they are. The key of a charge is
#: made from it, as votes are: a run that an earlier version began goes on where nothing of this has changed.
VOTES_AS_OF = "0.1.0"


def _nothing_else(**_: bool) -> Iterator[Task]:
    raise PreconditionFailed("the private rows of this fit are gone; give them again")


@dataclass(frozen=True, kw_only=True)
class Task:
    """Everything that a journey is made from, beside its `config`. `n_was_read`, `rows_were_read`: whether the
    number of private units, or of rows, was read off the data, and is therefore treated as public. `key`,
    `fingerprint_key`: the run's, and the one that binds data to a ledger. `earlier`: prepares the task as earlier
    versions did; told whether words are read in another way. `relation`, `released`: of noisy counts, where a pool is
    drawn. `models_on`: of another pool: how models see rows, who votes, the recipe.
    """

    config: RunConfig = field(repr=False)
    inputs: Inputs = field(repr=False)
    views: Views = field(repr=False)
    teacher: Any
    student: Student
    facts: PublicFacts
    recipe: Recipe
    unit: str
    n_was_read: bool
    partition: Partition
    prior_matching: bool
    key: Secret[bytes] = field(repr=False)
    fingerprint_key: Secret[bytes] = field(repr=False)
    noise: NoiseSource
    n_jobs: int
    memory: int
    strategy: Strategy | None = None
    rows_were_read: bool = False
    earlier: Callable[..., Iterator[Task]] = field(default=_nothing_else, repr=False, compare=False)
    relation: ChosenRelation | None = None
    released: ReleasedMarginals | None = field(default=None, repr=False, compare=False)
    models_on: Callable[[Inputs], tuple[Views, Any, Recipe]] | None = field(default=None, repr=False, compare=False)
    sets: SetsPlan | None = None

    def on(self, pool: Rows, released: ReleasedMarginals | None = None) -> Task:
        """Return the task with the pool that was drawn for it."""
        assert self.models_on is not None  # noqa: S101 - the caller's condition
        inputs = self.inputs.on(pool)
        views, teacher, recipe = self.models_on(inputs)
        return replace(self, inputs=inputs, views=views, teacher=teacher, recipe=recipe, released=released)

    @property
    def draws_pool(self) -> bool:
        """Whether there are no public rows, and a pool is drawn from noisy counts."""
        return self.recipe.pool is not None

    @property
    def has_public_pool(self) -> bool:
        """Whether rows were given that are public."""
        return not self.draws_pool

    @property
    def published_table(self) -> tuple[Rows, ColumnKinds]:
        """The pool, public or drawn, and what each column is read as before the student meets it."""
        return self.inputs.public, self.views.student.kinds

    @property
    def leaves_labels(self) -> bool:
        """Whether fewer labels may be asked for than are paid for: the rest may be asked later."""
        return self.strategy is not None or self.draws_pool

    @property
    def why(self) -> tuple[str, ...]:
        """One sentence for each choice, with what it follows from."""
        pool = self.recipe.pool
        if pool is None:
            return (*(() if self.sets is None else (self.sets.why(self.facts.unit),)), *self.recipe.why)
        if self.released is None:
            return pool.pool_in_words(None), *self.recipe.why
        pool_words, n_asked = pool.pool_in_words(self.released, n_rows(self.inputs.public)), len(self.queries)
        if self.strategy is None and n_asked < self.recipe.n_queries:
            pool_words += (
                f"; {n_asked:,} of them differ, and {self.recipe.n_queries - n_asked:,} answers are left for questions"
            )
        return pool_words, *self.recipe.why

    @property
    def n_public(self) -> int:
        """Rows of the public pool; 0 where there is none."""
        return 0 if self.draws_pool else len(self.inputs.digests)

    @property
    def n_records(self) -> int | None:
        """Units that the run is told of, those held out included; None where nobody said how many."""
        return self.facts.n_records if self.sets is None else self.sets.n_units

    @property
    def n_rows(self) -> int | None:
        """Rows that the run is told of, likewise."""
        return self.facts.n_rows if self.sets is None else self.sets.n_rows

    @property
    def n_classes(self) -> int:
        """Number of declared classes."""
        return len(self.inputs.classes)

    @property
    def neighbouring(self) -> Neighbouring:
        """What the guarantee compares."""
        if self.config.labels_only:
            return Neighbouring.of("replace-labels", self.unit)
        if self.relation is not None:
            return self.relation.neighbouring(self.unit, n_was_read=self.n_was_read)
        # Where the number of units was read, it chose K: one unit more could be another number of teachers, and so
        # another noise. What is compared then has as many units, and one of them is replaced.
        read = self.n_was_read or self.rows_were_read
        return Neighbouring.of("replace" if read else change_of_one_teacher(self.partition), self.unit)

    @property
    def by_position(self) -> bool:
        """Whether a unit is known by the position of its row, since no ids were given."""
        return self.unit in (ONE_RECORD, ONE_LABEL)

    @property
    def trainer(self) -> Teacher:
        """How one teacher is trained on its shard, and on public rows where it matches priors."""
        if not self.prior_matching:
            return as_teacher(
                self.teacher,
                preprocessing=self.config.preprocessing,
                batched=self.config.batched,
                classes=self._classes_to_name,
            )
        return PriorMatchingTeacher(self.classifier, self.views.teacher(self.inputs.public))

    @property
    def classifier(self) -> ClassifierTeacher | TinyTeacher:
        """How a classifier is trained on a shard, whatever votes are matched to."""
        if isinstance(self.teacher, TinyTeacher):
            return self.teacher
        teacher = ClassifierTeacher(self.teacher, preprocessing=self.config.preprocessing, batched=self.config.batched)
        return teacher if self._classes_to_name is None else teacher.with_classes(self._classes_to_name)

    @property
    def _classes_to_name(self) -> tuple[Any, ...] | None:
        return None if self.config.classes_by_shard else tuple(self.inputs.classes)

    @property
    def names_classes(self) -> bool:
        """Whether a parameter of the classifier names a class, so that teachers are fitted on the declared labels."""
        teacher = self.classifier if self.prior_matching else self.trainer
        return isinstance(teacher, ClassifierTeacher) and teacher.classes is not None

    @property
    def solves(self) -> bool:
        """Whether its teachers are solved to their optimum here."""
        return self.config.batched and is_equivalent(self.teacher)

    def without_private_rows(self) -> Task:
        """The same task once the private rows are no longer needed."""
        return replace(self, inputs=replace(self.inputs, private=Secret(PrivateRows.none())), earlier=_nothing_else)

    @cached_property
    def fingerprint(self) -> str:
        """Keyed hash of the private data set, to which its ledger is bound."""
        private = self.inputs.private.reveal()
        return fingerprint(private.X, private.codes, private.unit_keys, self.fingerprint_key, digests=private.digests)

    @cached_property
    def stage_inputs(self) -> dict[str, Any]:
        """What stored teachers and votes are a function of: beside :attr:`cache_inputs`, coordinates to the last bit:
        of a machine that rounds otherwise they are made again, so that all of one ensemble see rows alike.
        """
        directions = self.views.teacher.directions
        return {
            **self.cache_inputs,
            **({"coordinates": directions.digest} if isinstance(directions, UnitCoordinates) else {}),
        }

    @cached_property
    def order(self) -> str:
        """Keyed hash of the rows in their order, where a slot is a position; nothing where units have ids."""
        private = self.inputs.private.reveal()
        return order_of_rows(pack(private.digests), private.codes, self.key) if self.by_position else ""

    @cached_property
    def held(self) -> HeldOut | None:
        """The units that are held out for prediction sets, by this task's own key; no teacher is trained on them."""
        private = self.inputs.private.reveal()
        return None if self.sets is None else HeldOut.of(self.sets, private.unit_keys, private.codes, self.key)

    @property
    def event(self) -> Event:
        """What is released, for the change that it is charged for."""
        charged = None if self.relation is None else self.relation.charged
        voted = self.recipe.event if charged is None else self.recipe.event_for(charged)
        return voted if self.sets is None else self.sets.event_with(voted)

    @property
    def also(self) -> tuple[Neighbouring, Event] | None:
        """The other relation and what is released for it, where the two have prices of their own."""
        other = None if self.relation is None else self.relation.other
        return None if other is None else (Neighbouring.of(other, self.unit), self.recipe.event_for(other))

    def paying_for_answers(self, charged: Event) -> Event:
        """Return the part of a charge that pays for answers: all, unless noisy counts or a limit are in it, too."""
        if self.sets is not None and charged == self.event:
            return self.recipe.event
        return self.recipe.answers if self.draws_pool and charged == self.event else charged

    @cached_property
    def respells(self) -> bool:
        """Whether teachers see a word of a table as the public entry that says the same: as secret as the tables."""
        kinds = self.views.teacher.kinds
        if self.draws_pool:  # no run was begun before that has one
            return False
        return kinds.respells(self.inputs.public) or kinds.respells(self.inputs.private.reveal().X)

    @cached_property
    def queries(self) -> IntArray:
        """Rows of the pool whose votes are counted, by a key of their own and public rows alone; equal points are one
        query. Without a strategy, ascending, ``(n_queries,)``; with one, all that may be asked, in the order of the
        stream.
        """
        first, _ = distinct(self.inputs.digests)
        rng = np.random.default_rng(int.from_bytes(derive(self.key, "queries"), "big"))
        stream: IntArray = rng.permutation(first)
        return stream if self.strategy is not None else np.sort(stream[: self.recipe.n_queries])

    @cached_property
    def cache_inputs(self) -> dict[str, Any]:
        """What the votes are a function of, beside the run's key: plain values for a stage's key."""
        return {
            "data": self.fingerprint,
            "order": self.order,
            "public": public_digest(self.inputs.public, digests=self.inputs.digests),
            "classes": [repr(label) for label in self.inputs.classes],
            "teacher": described(self.teacher),
            "encoded": self.views.teacher.encoder is not None,
            "n_teachers": self.recipe.n_teachers,
            "n_queries": self.recipe.n_queries,
            "partition": self.partition,
            "preprocessing": self.config.preprocessing,
            "prior_matching": self.prior_matching,
            "versions": [VOTES_AS_OF, *(version(name) for name in ("scikit-learn", "numpy"))],
            **({} if self.strategy is None else {"strategy": described(self.strategy)}),
            # Nothing where the estimators are fitted by themselves, as version 0.1 always did: its runs go on.
            **({"batched": True} if self.solves else {}),
            **({} if not self.views.teacher.kinds.changed else {"columns": self.views.teacher.kinds.facts()}),
            **({} if not (marks := self.inputs.kinds.dialect.of_cells) else {"dialect": marks}),
            **({"words": "public entries"} if self.respells else {}),
            # Teachers that were given other labels before have other votes.
            **({"labels": "declared"} if self.names_classes else {}),
            **({} if self.sets is None else {"held out": self.sets.facts}),
            **({} if (directions := self.views.teacher.directions) is None else {"directions": directions.described}),
        }

    @cached_property
    def content_key(self) -> str:
        """Keyed hash of all that the charge is for: the votes, the noise, the answers kept back."""
        made_from = {
            **self.charged_inputs,
            "mechanism": described_mechanism(self.recipe.mechanism),
            "event": self.event.to_json(),
            "online": self.recipe.online_answers,
        }
        if self.sets is not None:  # the limit is that of one model
            made_from["student"] = [described(self.student), self.config.declined]
        return stage_key(self.key, "labels", made_from)

    @property
    def charged_inputs(self) -> dict[str, Any]:
        """What the charge is for, as :attr:`cache_inputs`: of a pool that will be drawn, what it is drawn from."""
        inputs, pool = self.cache_inputs, self.recipe.pool
        if pool is None:
            return inputs
        marginals = {"schema": pool.declared.facts, "share": pool.share, "rows": pool.n_rows}
        of_pool = {"directions", *(("teacher", "batched") if self.facts.tiny else ())}  # which coordinates decide
        return {**{key: value for key, value in inputs.items() if key not in of_pool}, "public": marginals}
