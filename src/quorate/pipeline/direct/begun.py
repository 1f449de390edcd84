"""Where a direct run that was begun earlier is found again: its plan among the stages, its charge on the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from quorate.data.labels import Label
from quorate.direct.schema import Schema
from quorate.ledger import Reservation
from quorate.pipeline.direct.config import DirectConfig, plan_key, schema_before_rules
from quorate.pipeline.direct.relation import BEGUN_BEFORE, ChosenRelation, choose_relation
from quorate.pipeline.stages import StageStore, coordinates_stage
from quorate.release.purposes import GRADIENT_ROUND
from quorate.release.session import LedgerTerms


def beginning(
    plan_key: str, fingerprint: str, unit: str, *, grouped: bool, n_was_read: bool, classes: tuple[Label, ...]
) -> str:
    """Return what every charge for the same rounds begins with, whatever the last bits of their coordinates are."""
    cache_inputs = (plan_key, fingerprint, unit, grouped, n_was_read, [repr(each) for each in classes])
    return f"direct {blake2b(repr(cache_inputs).encode(), digest_size=16).hexdigest()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BegunRuns:
    """Where a run that was begun earlier would be found: its plan among the stages, its charge on the ledger."""

    config: DirectConfig
    schema: Schema
    public: Any
    stages: StageStore
    facts: dict[str, Any]
    terms: LedgerTerms
    client: str
    named: Callable[[str], str]

    def found(self, *, n_was_read: bool, unit: str) -> tuple[Schema, str, bytes | None, ChosenRelation]:
        """Return the schema, the key of the plan, the plan that was kept, and the relation.

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
        return self.schema, key, self.stages.load(coordinates_stage(key), key), relation

    def _begun_before(self) -> tuple[Schema, str, bytes | None] | None:
        key = plan_key(self.config, self.schema, neighbours=None, **self.facts)
        kept = self.stages.load(coordinates_stage(key), key)
        if kept is not None or self.terms.holds(f"{self.named(key)} ", self.client):
            return self.schema, key, kept
        if (earlier := schema_before_rules(self.config, self.schema, self.public)) is None:
            return None
        key = plan_key(self.config, earlier, neighbours=None, **self.facts)
        kept = self.stages.load(coordinates_stage(key), key)
        return None if kept is None else (earlier, key, kept)


def goes_on(reservation: Reservation) -> bool:
    """Whether a charge has rounds left to draw, or some that were stored."""
    if reservation.remaining(GRADIENT_ROUND):
        return True
    return any(block.answers is not None for block in reservation.blocks(GRADIENT_ROUND))
