"""A plan as bytes: what a run was fixed by is kept with it, and never computed again; and where that is found.

Eigenvectors differ in their last bits between machines and versions of a library. Rounds that were stored mean
something in the coordinates that they were computed in alone, so a resumed run reads those back.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
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
from quorate.data.feature_maps.composed import BITS, FeatureMapName, default_map
from quorate.data.feature_maps.coordinates import FeatureMap, PublicCoordinates
from quorate.direct.config import DirectConfig, plan_key
from quorate.direct.contributions import Grid
from quorate.direct.defaults import DirectSettings
from quorate.direct.plan import DirectPlan
from quorate.release.session import LedgerTerms
from quorate.run.chosen_method import BEGUN_BEFORE, ChosenRelation, choose_relation
from quorate.run.schema import Schema
from quorate.run.stage_store import CLASS_SHARES, StageStore, coordinates_stage, shares_stage
from quorate.students.scores import share_of_rarer

FORMAT = 1
_TREE = ("feature", "threshold", "left", "right", "roots")  # arrays of TreeLeaves

Arrays = dict[str, Any]


def dump_plan(plan: DirectPlan, encoder: Any) -> bytes:
    """Write a plan, and the encoder of the pool that it rests on, as a ``.npz`` without pickle.

    `plan`: any. `encoder`: fitted on the pool, of parts that skops writes.
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
        "map": _map_header(coordinates.feature_map, arrays, "map"),
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
        _map_of(header["map"], arrays, "map"),
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


def _map_header(feature_map: FeatureMap, arrays: Arrays, at: str) -> dict[str, Any]:
    """Put the arrays of a map beside the others, each under a name that begins with `at`; return the rest."""
    if isinstance(feature_map, StackedMap):
        parts: dict[str, FeatureMap] = {"linear": feature_map.linear, "rbf": feature_map.rbf}
        return {"kind": "both", **{name: _map_header(part, arrays, f"{at}.{name}") for name, part in parts.items()}}
    if isinstance(feature_map, ResidualMap):
        arrays[f"{at}.regression"] = feature_map.regression
        return {
            "kind": "kernels",
            "linear": _map_header(feature_map.linear, arrays, f"{at}.linear"),
            "gaussian": _map_header(feature_map.gaussian, arrays, f"{at}.gaussian"),
            "product": _product_header(feature_map.product, arrays, f"{at}.product"),
        }
    if isinstance(feature_map, LinearMap):
        if feature_map.scale is not None:
            _put_scale(feature_map.scale, arrays, at)
        return {
            "kind": "linear",
            "n_columns": feature_map.n_columns,
            "scaled": feature_map.scale is not None,
            "rows": feature_map.rows,
            "bits": feature_map.bits,
        }
    if isinstance(feature_map, RBFMap):
        _put_scale(feature_map.scale, arrays, at)
        arrays |= {f"{at}.landmarks": feature_map.landmarks, f"{at}.root": feature_map.root}
        return {"kind": "rbf", "gamma": feature_map.gamma}
    if isinstance(feature_map, ChiSquaredMap):
        arrays |= {f"{at}.landmarks": feature_map.landmarks, f"{at}.root": feature_map.root}
        return {"kind": "chi2"}
    if isinstance(feature_map, ChainedMap):
        first = _first_header(feature_map.first, arrays, f"{at}.first")
        return {"kind": "chained", "first": first, "second": _map_header(feature_map.second, arrays, f"{at}.second")}
    raise TypeError(f"no form for {type(feature_map).__name__}")


def _map_of(header: dict[str, Any], arrays: Arrays, at: str) -> FeatureMap:
    if header["kind"] == "both":
        linear, rbf = (_map_of(header[name], arrays, f"{at}.{name}") for name in ("linear", "rbf"))
        return StackedMap(linear, rbf)  # type: ignore[arg-type]
    if header["kind"] == "kernels":
        linear, gaussian = (_map_of(header[name], arrays, f"{at}.{name}") for name in ("linear", "gaussian"))
        return ResidualMap(
            linear,  # type: ignore[arg-type]
            gaussian,  # type: ignore[arg-type]
            _product_of(header["product"], arrays, f"{at}.product"),
            arrays[f"{at}.regression"],
        )
    if header["kind"] == "linear":
        scale = _scale_of(arrays, at) if header["scaled"] else None
        return LinearMap(header["n_columns"], scale, header.get("rows", "rows"), header.get("bits", BITS))
    if header["kind"] == "chi2":
        return ChiSquaredMap(arrays[f"{at}.landmarks"], arrays[f"{at}.root"])
    if header["kind"] == "chained":
        second = _map_of(header["second"], arrays, f"{at}.second")
        return ChainedMap(_first_of(header["first"], arrays, f"{at}.first"), second)  # type: ignore[arg-type]
    return RBFMap(_scale_of(arrays, at), arrays[f"{at}.landmarks"], header["gamma"], arrays[f"{at}.root"])


def _product_header(product: ProductKernelMap, arrays: Arrays, at: str) -> dict[str, Any]:
    arrays |= {
        f"{at}.numbers": product.numbers,
        f"{at}.cuts": np.concatenate([*product.cuts, np.empty(0)]),
        f"{at}.factors": product.factors,
        f"{at}.root": product.root,
    }
    return {"n_cuts": [len(own) for own in product.cuts], "categories": product.categories}


def _product_of(header: dict[str, Any], arrays: Arrays, at: str) -> ProductKernelMap:
    ends = np.cumsum(header["n_cuts"], dtype=np.int64)
    cuts = tuple(np.split(arrays[f"{at}.cuts"], ends)[: len(ends)])
    numbers, categories = arrays[f"{at}.numbers"], tuple((first, end) for first, end in header["categories"])
    return ProductKernelMap(numbers, cuts, categories, arrays[f"{at}.factors"], arrays[f"{at}.root"])


def _first_header(first: PatchFeatures | TreeLeaves, arrays: Arrays, at: str) -> dict[str, Any]:
    if isinstance(first, PatchFeatures):
        arrays[f"{at}.centroids"] = first.centroids
        return {"kind": "patches", "side": first.side, "low": first.low, "high": first.high}
    for name in _TREE:
        arrays[f"{at}.{name}"] = getattr(first, name)
    return {"kind": "trees", "n_columns": first.n_columns}


def _first_of(header: dict[str, Any], arrays: Arrays, at: str) -> PatchFeatures | TreeLeaves:
    if header["kind"] == "patches":
        return PatchFeatures(header["side"], header["low"], header["high"], arrays[f"{at}.centroids"])
    parts: Any = {name: arrays[f"{at}.{name}"] for name in _TREE}
    return TreeLeaves(**parts, n_columns=header["n_columns"])


def _put_scale(scale: PoolScale, arrays: Arrays, at: str) -> None:
    arrays |= {f"{at}.mean": scale.mean, f"{at}.scale": scale.scale}


def _scale_of(arrays: Arrays, at: str) -> PoolScale:
    return PoolScale(arrays[f"{at}.mean"], arrays[f"{at}.scale"])


#: The default that keys call by its name. An open one is of a run that was begun before, or has no other default since.
KEYED_BY_NAME: Final[FeatureMapName] = "kernels"


class FoundPlan(NamedTuple):
    """The key of a plan, the plan where it was kept, the relation, and the schema and choices that it is for."""

    key: str
    kept: bytes | None
    relation: ChosenRelation
    schema: Schema
    config: DirectConfig


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
        goes on with these, one that left its feature map open goes on with the default that there was then, and one
        with other shares of the classes, or none, goes on with those: they may be declared after a run.
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
