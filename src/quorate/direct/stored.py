"""A plan as bytes: what a run was fixed by is kept with it, and never computed again; and where that is found.

Eigenvectors differ in their last bits between machines and versions of a library. Rounds that were stored mean
something in the coordinates that they were computed in alone, so a resumed run reads those back.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, NamedTuple

import numpy as np

from quorate.data.feature_maps import (
    ChainedMap,
    ChiSquaredMap,
    FittedTransformer,
    LinearMap,
    PatchFeatures,
    PoolScale,
    ProductKernelMap,
    RBFMap,
    ResidualMap,
    StackedMap,
    TreeLeaves,
)
from quorate.data.feature_maps.composed import FeatureMapName, default_map
from quorate.data.feature_maps.coordinates import PublicCoordinates
from quorate.direct.config import DirectConfig, plan_key
from quorate.direct.contributions import Grid
from quorate.direct.defaults import DirectSettings
from quorate.direct.plan import DirectPlan
from quorate.release.session import LedgerTerms
from quorate.run.public_facts import BEGUN_BEFORE, ChosenRelation, choose_relation
from quorate.run.schema import Schema
from quorate.run.stage_store import CLASS_SHARES, StageStore, coordinates_stage, shares_stage
from quorate.students.scores import share_of_rarer

FORMAT = 1
_KINDS: Final[Mapping[str, Any]] = {
    "both": StackedMap, "kernels": ResidualMap, "linear": LinearMap, "rbf": RBFMap, "chi2": ChiSquaredMap,
    "chained": ChainedMap, "patches": PatchFeatures, "trees": TreeLeaves, "product": ProductKernelMap,
}  # fmt: skip

Arrays = dict[str, Any]


def dump_plan(plan: DirectPlan, encoder: Any) -> bytes:
    """Write a plan, and the encoder of the pool that it rests on, as a ``.npz`` without pickle. `plan`: any. `encoder`:
    fitted on the pool, of parts that skops writes.
    """
    from quorate.deferred import skops

    coordinates = plan.coordinates
    if coordinates.whitening is None or coordinates.matrix is None:
        raise TypeError("a plan without a pool follows from public facts by arithmetic alone, and is not kept")
    arrays: Arrays = {"matrix": coordinates.matrix.astype(np.int16) if coordinates.factored else coordinates.matrix}
    if not coordinates.factored:  # where it is the matrix in other units
        arrays["whitening"] = coordinates.whitening
    own = encoder if isinstance(encoder, FittedTransformer) else None
    if encoder is not None:
        written = skops.io.dumps(encoder if own is None else own.transformer)
        arrays["encoder"] = np.frombuffer(written, dtype=np.uint8)
    header = {
        "format": FORMAT,
        "map": _header_of(coordinates.feature_map, arrays, "map"),
        "bits": coordinates.bits,
        "matrix_bits": coordinates.matrix_bits.tolist(),
        "factored": coordinates.factored,
        "settings": asdict(plan.settings),
        "grid": asdict(plan.grid),
        "sigma": plan.sigma,
        "n_units": plan.n_units,
        "n_outputs": plan.n_outputs,
        "dimension": plan.dimension,
        **({} if plan.neighbours is None else {"neighbours": plan.neighbours}),
        **({} if plan.most_numbers is None else {"most_numbers": plan.most_numbers}),
        "transformer": None if own is None else [own.n_outputs, own.sparse, own.batched],
    }
    content = io.BytesIO()
    np.savez(content, header=np.array(json.dumps(header)), allow_pickle=False, **arrays)
    return content.getvalue()


def load_plan(content: bytes) -> tuple[DirectPlan, Any]:
    """Read what :func:`dump_plan` wrote: the plan, bit for bit, and the encoder."""
    from quorate.deferred import skops

    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        header = json.loads(archive["header"].item())
        arrays: Arrays = {name: archive[name] for name in archive.files if name != "header"}
    factored, matrix = header.get("factored", False), arrays["matrix"].astype(np.float64)
    matrix_bits = np.array(header["matrix_bits"], dtype=np.int64)
    coordinates = PublicCoordinates(
        _part_of(header["map"], arrays, "map"),
        np.ldexp(matrix, -matrix_bits[None, :]).astype(np.float32) if factored else arrays["whitening"],
        header["bits"],
        matrix,
        matrix_bits,
        factored,
    )
    plan = DirectPlan(
        coordinates=coordinates,
        settings=DirectSettings(**header["settings"]),
        grid=Grid(**header["grid"]),
        sigma=header["sigma"],
        n_units=header["n_units"],
        n_outputs=header["n_outputs"],
        dimension=header["dimension"],
        most_numbers=header.get("most_numbers"),
        neighbours=header.get("neighbours"),  # none where the run was begun before one could be chosen
    )
    encoder = skops.io.loads(arrays["encoder"].tobytes()) if "encoder" in arrays else None
    own = header.get("transformer")
    return plan, encoder if own is None else FittedTransformer(encoder, *own)


def _header_of(part: Any, arrays: Arrays, at: str) -> dict[str, Any]:
    """Put the arrays of a map, or of a part of one, beside the others, under names that begin with `at`; return the
    rest of its fields.
    """
    kind = next((kind for kind, made in _KINDS.items() if type(part) is made), None)
    if kind is None:
        raise TypeError(f"no form for {type(part).__name__}")
    header: dict[str, Any] = {"kind": kind}
    for name in (own.name for own in fields(part)):
        value = getattr(part, name)
        if name == "scale":
            header["scaled"] = value is not None
            arrays |= {} if value is None else {f"{at}.mean": value.mean, f"{at}.scale": value.scale}
        elif name == "cuts":
            header["n_cuts"] = [len(cuts) for cuts in value]
            arrays[f"{at}.cuts"] = np.concatenate([*value, np.empty(0)])
        elif isinstance(value, np.ndarray):
            arrays[f"{at}.{name}"] = value
        else:
            header[name] = _header_of(value, arrays, f"{at}.{name}") if type(value) in _KINDS.values() else value
    return header


def _part_of(header: dict[str, Any], arrays: Arrays, at: str) -> Any:
    """Return what :func:`_header_of` took apart; a field that an earlier version did not write has its default."""
    made, parts = _KINDS[header.get("kind", "product")], dict[str, Any]()
    for name in (own.name for own in fields(made)):
        if name == "scale":
            scaled = header.get("scaled", True)
            parts[name] = PoolScale(arrays[f"{at}.mean"], arrays[f"{at}.scale"]) if scaled else None
        elif name == "cuts":
            ends = np.cumsum(header["n_cuts"], dtype=np.int64)
            parts[name] = tuple(np.split(arrays[f"{at}.cuts"], ends)[: len(ends)])
        elif name == "categories":
            parts[name] = tuple((first, end) for first, end in header[name])
        elif f"{at}.{name}" in arrays:
            parts[name] = arrays[f"{at}.{name}"]
        elif name in header:
            value = header[name]
            parts[name] = _part_of(value, arrays, f"{at}.{name}") if isinstance(value, dict) else value
    return made(**parts)


#: The default that keys call by its name. An open one is of a run that was begun before, or has no other default since.
KEYED_BY_NAME: Final[FeatureMapName] = "kernels"


class FoundPlan(NamedTuple):
    """The key of a plan, the plan where it was kept, the relation, and the schema and choices that it is for."""

    key: str
    kept: bytes | None
    relation: ChosenRelation
    schema: Schema
    config: DirectConfig


@dataclass(frozen=True, slots=True)
class BegunRun:
    """Where a run that was begun earlier would be found: its plan among the stages, its charge on the ledger."""

    config: DirectConfig
    schema: Schema
    facts: dict[str, Any]
    named: Callable[[str], str]
    client: str
    stages: StageStore
    terms: LedgerTerms
    has_pool: bool

    def found(self, *, n_was_read: bool, unit: str) -> FoundPlan:
        """Return the plan of this very run, begun or not. A run that was begun before a relation could be chosen goes
        on so, unless adding and removing is asked for: its noise is that for replacing a unit. One that was begun when
        public entries that say the same were told apart goes on with these, one that left its feature map open goes on
        with the default that there was then, and one with other shares of the classes, or none, goes on with those:
        they may be declared after a run.
        """
        declared, key = self.config.class_shares, self.named(CLASS_SHARES)
        kept = self.stages.load(shares_stage(key), key)
        for shares in [None, *((rare, 1 - rare) for rare in json.loads(kept or b"[]"))]:
            if share_of_rarer(shares) != share_of_rarer(declared):
                run = replace(self, config=replace(self.config, class_shares=shares))
                plan = run._found(n_was_read=n_was_read, unit=unit)
                if self.terms.holds(f"{self.named(plan.key)} ", self.client):  # what was not charged may change
                    return plan
        return self._found(n_was_read=n_was_read, unit=unit)

    def _found(self, *, n_was_read: bool, unit: str) -> FoundPlan:
        """Return the plan with these shares of the classes, begun or not."""
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
        return FoundPlan(key, self.stages.load(coordinates_stage(key), key), relation, schema, config)

    @property
    def _is_open(self) -> bool:
        """Whether the feature map of a public pool is left to the package."""
        return self.has_pool and isinstance(self.config.feature_map, str) and self.config.feature_map == "auto"
