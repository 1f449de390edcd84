"""Where a run that was begun earlier is found, and for which change of one unit it goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from quorate.data.feature_maps.named import FeatureMapName, default_map
from quorate.direct.config import DirectConfig, plan_key
from quorate.release.session import LedgerTerms
from quorate.run.relation import BEGUN_BEFORE, ChosenRelation, choose_relation
from quorate.run.schema import Schema
from quorate.run.stage_store import StageStore, coordinates_stage

#: The default that keys call by its name. An open one is of a run that was begun before, or has no other default since.
KEYED_BY_NAME: Final[FeatureMapName] = "kernels"


class FoundPlan(NamedTuple):
    """The key of a plan, the plan where it was kept, the relation, and the schema and feature map that it is for."""

    key: str
    kept: bytes | None
    relation: ChosenRelation
    schema: Schema
    feature_map: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class BegunRun:
    """Where a run that was begun earlier would be found: its plan among the stages, its charge on the ledger."""

    config: DirectConfig
    schema: Schema
    stages: StageStore
    facts: dict[str, Any]
    terms: LedgerTerms
    client: str
    has_pool: bool
    named: Callable[[str], str]

    def found(self, *, n_was_read: bool, unit: str) -> FoundPlan:
        """Return the plan of this very run, begun or not.

        A run that was begun before a relation could be chosen goes on so, unless adding and removing is asked for: its
        noise is that for replacing a unit. One that was begun when public entries that say the same were told apart
        goes on with these, and one that left its feature map open goes on with the default that there was then.
        """
        schemas = [self.schema]
        if self.schema.kinds.respells(self.schema.pool):
            schemas.append(self.schema.with_words_as_written())
        if self.config.neighbours in ("auto", "replace") and (plan := self._begun(schemas, BEGUN_BEFORE)):
            return plan
        relation = choose_relation(self.config.neighbours, n_was_read=n_was_read, held=self.terms.relation, unit=unit)
        if plan := self._begun(schemas, relation):
            return plan
        if not self._is_open:
            return self._plan(self.schema, relation)
        default = default_map(self.schema.numbers(self.schema.pool), self.schema.indicator_blocks)
        keyed = KEYED_BY_NAME if default == KEYED_BY_NAME else None
        return self._begun(schemas, relation, keyed) or self._plan(self.schema, relation, keyed)

    def _begun(
        self, schemas: Sequence[Schema], relation: ChosenRelation, keyed: FeatureMapName | None = None
    ) -> FoundPlan | None:
        for schema in schemas:
            plan = self._plan(schema, relation, keyed)
            if plan.kept is not None or self.terms.holds(f"{self.named(plan.key)} ", self.client):
                return plan
        return None

    def _plan(self, schema: Schema, relation: ChosenRelation, keyed: FeatureMapName | None = None) -> FoundPlan:
        """Return a plan under the key of the feature map that was asked for, or of a default that keys name."""
        config = self.config if keyed is None else replace(self.config, feature_map=keyed)
        key = plan_key(config, schema, neighbours=relation.noise, **self.facts)
        return FoundPlan(key, self.stages.load(coordinates_stage(key), key), relation, schema, config.feature_map)

    @property
    def _is_open(self) -> bool:
        """Whether the feature map of a public pool is left to the package."""
        return self.has_pool and isinstance(self.config.feature_map, str) and self.config.feature_map == "auto"
