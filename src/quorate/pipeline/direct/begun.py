"""Where a run that was begun earlier is found, and for which change of one unit it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quorate.direct.schema import Schema
from quorate.pipeline.direct.config import DirectConfig, plan_key
from quorate.pipeline.direct.relation import BEGUN_BEFORE, ChosenRelation, choose_relation
from quorate.pipeline.stages import StageStore, coordinates_stage
from quorate.release.session import LedgerTerms


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

    def found(self, *, n_was_read: bool, unit: str) -> tuple[str, bytes | None, ChosenRelation]:
        """Return the key of the plan, the plan that was kept, and the relation.

        A run that was begun before a relation could be chosen goes on so, unless adding and removing is asked for: its
        noise is that for replacing a unit.
        """
        chosen = None
        if self.config.neighbours in ("auto", "replace"):
            chosen = self._begun_before()
        if chosen is not None:
            return (*chosen, BEGUN_BEFORE)
        relation = choose_relation(self.config.neighbours, n_was_read=n_was_read, held=self.terms.relation, unit=unit)
        key = plan_key(self.config, self.schema, neighbours=relation.noise, **self.facts)
        return key, self.stages.load(coordinates_stage(key), key), relation

    def _begun_before(self) -> tuple[str, bytes | None] | None:
        key = plan_key(self.config, self.schema, neighbours=None, **self.facts)
        kept = self.stages.load(coordinates_stage(key), key)
        begun = kept is not None or self.terms.holds(f"{self.named(key)} ", self.client)
        return (key, kept) if begun else None
