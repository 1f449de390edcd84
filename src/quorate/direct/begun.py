"""Where a run that was begun earlier is found, and for which change of one unit it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from quorate.direct.config import DirectConfig, plan_key
from quorate.direct.relation import BEGUN_BEFORE, ChosenRelation, choose_relation
from quorate.release.session import LedgerTerms
from quorate.run.schema import Schema
from quorate.run.stage_store import StageStore, coordinates_stage


class FoundPlan(NamedTuple):
    """The key of a plan, the plan where it was kept, the relation, and what a row must look like for it."""

    key: str
    kept: bytes | None
    relation: ChosenRelation
    schema: Schema


@dataclass(frozen=True, kw_only=True, slots=True)
class BegunRun:
    """Where a run that was begun earlier would be found: its plan among the stages, its charge on the ledger."""

    config: DirectConfig
    schema: Schema
    stages: StageStore
    facts: dict[str, Any]
    terms: LedgerTerms
    client: str
    named: Callable[[str], str]

    def found(self, *, n_was_read: bool, unit: str) -> FoundPlan:
        """Return the plan of this very run, begun or not.

        A run that was begun before a relation could be chosen goes on so, unless adding and removing is asked for: its
        noise is that for replacing a unit. One that was begun when public entries that say the same were told apart
        goes on with these.
        """
        schemas = [self.schema]
        if self.schema.kinds.respells(self.schema.pool):
            schemas.append(self.schema.with_words_as_written())
        if self.config.neighbours in ("auto", "replace") and (plan := self._begun(schemas, BEGUN_BEFORE)):
            return plan
        relation = choose_relation(self.config.neighbours, n_was_read=n_was_read, held=self.terms.relation, unit=unit)
        return self._begun(schemas, relation) or self._plan(self.schema, relation)

    def _begun(self, schemas: Sequence[Schema], relation: ChosenRelation) -> FoundPlan | None:
        for schema in schemas:
            plan = self._plan(schema, relation)
            if plan.kept is not None or self.terms.holds(f"{self.named(plan.key)} ", self.client):
                return plan
        return None

    def _plan(self, schema: Schema, relation: ChosenRelation) -> FoundPlan:
        key = plan_key(self.config, schema, neighbours=relation.noise, **self.facts)
        return FoundPlan(key, self.stages.load(coordinates_stage(key), key), relation, schema)
