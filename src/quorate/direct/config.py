"""What the user asked of the direct method, and what a row must look like for it: public facts alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from quorate.accounting.neighbouring import Relation
from quorate.arguments import one_of
from quorate.data import PublicPool, public_digest
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.feature_maps.composed import FeatureMapName
from quorate.data.feature_maps.first_maps import has_patches
from quorate.data.labels import Label
from quorate.direct.defaults import RATE, RATE_OF_DRAWN, RULE
from quorate.direct.joint_moments import compares_pairs, lists_of_few
from quorate.errors import InvalidParameter, named
from quorate.ledger.budget import EPSILON_DIGITS, Composition, float_down, largest_rho
from quorate.run.drawn_pool import N_ROWS, refuse_both
from quorate.run.drawn_rows import EVENLY, draw_rows
from quorate.run.method_config import MethodConfig
from quorate.run.schema import Schema, check_pool
from quorate.students.scores import share_of_rarer


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectConfig(MethodConfig):
    """What the user asked for; names and meanings are those of :class:`quorate.PrivateLogisticRegression`.
    `target_range`: in place of `classes`, where a number is predicted. `located`: how its first rounds count targets
    (:data:`.defaults.RULE`), by an earlier rule where a run was begun by it. `class_shares`: in the order of the
    classes. `marginals`: the share of μ² that noisy marginals get; None for the default, 0 for none: then rows are
    taken as they are, without a pool. `paired`: whether sums over pairs of columns are released beside them; not where
    a run was begun before there were any. `listed`: whether that default is the least share where columns of few
    units are mostly lists, and `averaged`: whether it is told by counts that half of a tree's levels repeat; neither
    where a run was begun by an earlier one. `rate_of_drawn`: η on a drawn pool
    (:func:`rate_of`), by an earlier default where a run was begun by it.
    """

    classes: Any = None
    class_shares: tuple[float | None, ...] | None = None
    located: int = RULE
    feature_map: Any = "auto"
    text: Sequence[str] = ()
    schema: Any = None
    marginals: float | None = None
    paired: bool = True
    listed: bool = True
    averaged: bool = True
    rate_of_drawn: float = RATE_OF_DRAWN
    rounds: int | None = None
    clip: float | None = None
    neighbours: Any = "auto"
    memory: int | None = None  # bytes that private rows may take; beyond half of it coordinates lie in a file
    dialect: Dialect = PLAIN  # of numbers and dates where there is no pool, whose description has it
    private_temperature: bool = False  # whether one more round counts how often the model is right


@dataclass(eq=False, repr=False, kw_only=True)
class RoundArguments:
    """The arguments of an estimator that are this method's own, as its docstring explains them."""

    feature_map: Any = "auto"
    text: Sequence[str] = ()
    rounds: int | None = None
    clip: float | None = None


def as_asked(config: DirectConfig, public: Any) -> DirectConfig:
    """Take features of patches where nothing was said and the pool is one of grey images that are large enough; and the
    schema as a mapping, whichever way it was given.
    """
    schema = config.schema.declared if isinstance(config.schema, DeclaredSchema) else config.schema
    feature_map = feature_map_of(public) if config.feature_map == "auto" else config.feature_map
    return replace(config, schema=schema, feature_map=feature_map)


def feature_map_of(public: Any) -> FeatureMapName:
    """Return the feature map of a pool of which nothing was said: "patches" of images, else "auto"."""
    shape = public.image_shape if isinstance(public, PublicPool) else None
    return "auto" if shape is None or not has_patches(shape) else "patches"


def schema_of(config: DirectConfig, X: Any, public: Any) -> Schema:
    """Read off the public side what a row must look like, or refuse what needs a public side and has none."""
    by_name = isinstance(config.feature_map, str)
    if public is not None and config.schema is not None:
        refuse_both()
    if public is not None:
        transformer = None if by_name else config.feature_map
        pool = check_pool(public)
        return Schema.of(pool.rows(), transformer=transformer, text=config.text, given=pool.given)
    if not by_name or config.text:
        what = named("text") if by_name else f"{named('feature_map')} of the class {type(config.feature_map).__name__}"
        raise InvalidParameter(f"{what} needs a public pool to tell directions; give public=PublicPool(X_public)")
    if draws_pool(config, public):
        maps = ("auto", "linear", "rbf", "both", "kernels")
        one_of(
            "feature_map", config.feature_map, maps, hint="Of rows that are drawn column by column there is no other"
        )
        declared = DeclaredSchema.of(config.schema)
        return Schema.of_declared(declared, draw_rows(declared, None, N_ROWS, EVENLY), config.dialect)
    one_of("feature_map", config.feature_map, ("auto", "linear"), hint="Without a public pool there is no other")
    return Schema.without_pool(X, config.schema, config.dialect)


def draws_pool(config: DirectConfig, public: Any) -> bool:
    """Tell whether a pool is drawn from noisy marginals: a schema stands in the place of public rows."""
    return public is None and config.schema is not None and config.marginals != 0


def rate_of(config: DirectConfig, n_classes: int) -> float:
    """Return η of a run on a drawn pool: beside kernels it is one of its own for more than two classes, where pairs of
    columns are compared.
    """
    longer = config.feature_map == "kernels" and n_classes > 2 and _compares_pairs(config, n_classes)
    return config.rate_of_drawn if longer else RATE


def _compares_pairs(config: DirectConfig, n_classes: int) -> bool:
    return compares_pairs(DeclaredSchema.of(config.schema), n_classes, share_of_rarer(config.class_shares))


def plan_key(
    config: DirectConfig,
    schema: Schema,
    *,
    n_classes: int,
    n_units: int,
    epsilon: float,
    delta: float,
    neighbours: Relation | None,
) -> str:
    """Hash of the public facts that a plan follows from; the versions of libraries are not among them on purpose. A
    transformer counts by what it makes of the pool. `neighbours` is None for runs that were begun before a relation
    could be chosen.
    """
    feature_map: Any = config.feature_map
    if not isinstance(feature_map, str):
        feature_map = (schema.words, public_digest(schema.numbers(schema.pool)))
    drawn = config.schema is not None and config.marginals != 0
    cache_inputs: tuple[Any, ...] = (
        json.dumps([DeclaredSchema.of(config.schema).facts, config.marginals]) if drawn else public_digest(schema.pool),
        n_classes,
        n_units,
        epsilon,
        delta,
        feature_map,
        config.rounds,
        config.clip,
    )
    if drawn and config.paired and _compares_pairs(config, n_classes):
        cache_inputs = (*cache_inputs, "pairs")
    if drawn and config.listed and config.marginals is None and lists_of_few(DeclaredSchema.of(config.schema), n_units):
        cache_inputs = (*cache_inputs, "lists")
    elif drawn and config.averaged and config.marginals is None:
        cache_inputs = (*cache_inputs, "averaged")
    if drawn and (rate := rate_of(config, n_classes)) != RATE:
        cache_inputs = (*cache_inputs, "rate", rate)
    if config.composition != "sum":
        cache_inputs = (*cache_inputs, config.composition)
    if schema.kinds.respells(schema.pool):  # else the pool reads the same as before words were public entries
        cache_inputs = (*cache_inputs, "words")
    if config.text:
        cache_inputs = (*cache_inputs, tuple(config.text))
    kinds = schema.kinds.facts().items()  # those that follow neither from their types nor from `text`
    if ruled := sorted((name, as_kind) for name, as_kind in kinds if as_kind != "text" or name not in config.text):
        cache_inputs = (*cache_inputs, ruled)
    if marks := schema.kinds.dialect.of_cells:
        cache_inputs = (*cache_inputs, sorted(marks.items()))
    if config.schema is not None and not drawn:
        cache_inputs = (*cache_inputs, sorted((name, list(held)) for name, held in config.schema.items()))
    if neighbours is not None:
        cache_inputs = (*cache_inputs, neighbours)
    if config.target_range is not None:
        rule: tuple[Any, ...] = ((), ("located",), ("located", 2))[config.located]
        cache_inputs = (*cache_inputs, config.target_range, *rule)
    if config.calibration_share is not None:
        cache_inputs = (*cache_inputs, "held out", float(config.calibration_share), float(config.coverage))
    if config.private_temperature:
        cache_inputs = (*cache_inputs, "judged")
    if (rare := share_of_rarer(config.class_shares)) is not None:
        cache_inputs = (*cache_inputs, "rare", rare)
    return blake2b(repr(cache_inputs).encode(), digest_size=16).hexdigest()


def charge_beginning(
    plan_key: str,
    fingerprint: str,
    unit: str,
    *,
    grouped: bool,
    n_was_read: bool,
    classes: tuple[Label, ...],
    order: str = "",
) -> str:
    """Return what every charge for the same rounds begins with, whatever the last bits of their coordinates are.
    `order`: that of the rows, where units that are known by their places are held out.
    """
    cache_inputs: tuple[Any, ...] = (plan_key, fingerprint, unit, grouped, n_was_read, [repr(name) for name in classes])
    if order:
        cache_inputs = (*cache_inputs, order)
    return f"direct {blake2b(repr(cache_inputs).encode(), digest_size=16).hexdigest()}"


def rho_of(epsilon: float, delta: float, composition: Composition) -> float | None:
    """Return the ρ that (ε, δ) is worth where a ledger adds ρ; None where it adds ε and δ."""
    return float_down(largest_rho(epsilon, delta), EPSILON_DIGITS) if composition == "zcdp" else None
