"""From what was asked to a task of the direct method: all that may be refused is, and a begun run is found."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from quorate.ambient import one_thread
from quorate.arguments import count, real
from quorate.data import check_classes
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.feature_maps.composed import default_map_before, feature_map_for
from quorate.data.rows import without_columns
from quorate.data.spool import most_held
from quorate.data.unit_ids import counted_rows
from quorate.direct.before_pool import BeforePool, DrawnPool, before_pool, feature_map_of, plan_on
from quorate.direct.config import DirectConfig, as_asked, charge_beginning, draws_pool, rate_of, rho_of, schema_of
from quorate.direct.defaults import RATE
from quorate.direct.joint_moments import compares_pairs, lists_of_few
from quorate.direct.plan import DirectPlan, plan_direct, plan_without_pool
from quorate.direct.stored import BegunRun, load_plan
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter, PreconditionFailed, QuorateError, named
from quorate.noise import NoiseSource
from quorate.release.charge import client_of, floor_budget
from quorate.release.session import LedgerTerms
from quorate.run.cell_task import CellRows
from quorate.run.drawn_rows import kept_pool
from quorate.run.public_facts import unit_of
from quorate.run.schema import Schema, refuse_forms
from quorate.run.stage_store import NoStages, StageStore
from quorate.run.usable_rows import PrivateTable
from quorate.students.scores import share_of_rarer
from quorate.types import Secret, Watch


@one_thread()
def prepare_direct(
    config: DirectConfig,
    X: Any,
    y: Any,
    *,
    public: Any,
    groups: Any | None,
    fingerprint_key: Secret[bytes],
    noise: NoiseSource,
    stages: StageStore | None = None,
    terms: LedgerTerms | None = None,
    key: Secret[bytes] | None = None,
    watch: Watch | None = None,
) -> DirectTask:
    """Check all that may be refused, which are public facts alone, and fix everything before the first round. A run
    that was begun when a default was another one goes on as it was charged.

    `stages`, `terms`: where the plan of an earlier process may be found; those of the ledger to charge, by default of a
    new one. `key`: the run's, where it is another than that of the fingerprint. `watch`: of each pass over the private
    rows. Raises InvalidParameter, DataRefused if an argument, the pool or the columns are wrong. No private value
    decides on it; PreconditionFailed if the ledger's earlier charges are for a change of one unit that this run cannot
    be for.
    """
    config, terms = as_asked(config, public), terms or LedgerTerms()
    arguments: dict[str, Any] = {"public": public, "groups": groups, "fingerprint_key": fingerprint_key, "noise": noise}
    prepare = partial(_prepare, X=X, y=y, **arguments, stages=stages or NoStages(), terms=terms, key=key)
    if not terms.charged:
        return prepare(config=config, watch=watch)
    task: DirectTask | None = None
    refusal: QuorateError | None = None
    try:
        task = prepare(config=config, watch=watch)
    except (InvalidParameter, PreconditionFailed) as refused:
        refusal = refused
    if task is not None and _is_charged(task, terms):
        return task
    for other in _earlier(config, public, task):
        with suppress(InvalidParameter, PreconditionFailed):  # a schema that could not be declared then
            begun = prepare(config=other, watch=None)
            if _is_charged(begun, terms):
                return replace(begun, left_marginals_open=other.marginals == 0)
    if refusal is not None:
        raise refusal
    assert task is not None  # noqa: S101 - else it was refused
    return task


def _prepare(
    config: DirectConfig,
    *,
    X: Any,
    y: Any,
    public: Any,
    groups: Any | None,
    fingerprint_key: Secret[bytes],
    noise: NoiseSource,
    stages: StageStore,
    terms: LedgerTerms,
    key: Secret[bytes] | None,
    watch: Watch | None,
) -> DirectTask:
    """Prepare a task by one configuration, whatever was charged by others."""
    budget: dict[str, Any] = dict(zip(("epsilon", "delta"), floor_budget(config.epsilon, config.delta), strict=True))
    classes = check_classes(config.classes) if config.target_range is None else ()
    declared = None if config.n_records is None else count("n_records", config.n_records, at_least=1)
    unit = unit_of(config.unit, grouped=groups is not None)
    schema = schema_of(config, X, public)
    refuse_forms(X, y, groups, public)
    config, drawn = _with_default_named(config, public)
    table = PrivateTable.of(schema, X if drawn is None else without_columns(X, drawn.dropped))
    most = most_held(config.memory)
    place = {"folder": stages.private, "most": most // 16}  # hashes of rows take less memory than coordinates
    run_key = fingerprint_key if key is None else key
    how: dict[str, Any] = {"asked": config, "classes": classes, "budget": tuple(budget.values()), "unit": unit}
    rows = CellRows.read(table, y, groups, **how, n_records=declared, key=run_key, watch=watch, place=place)
    facts: dict[str, Any] = {"n_classes": len(classes), "n_units": rows.n_units, **budget}
    named = dict[str, Any](unit=unit, classes=classes, grouped=groups is not None, n_was_read=declared is None)
    data = rows.fingerprint(fingerprint_key)
    begins = partial(charge_beginning, fingerprint=data, order=rows.held.order if rows.held else "", **named)
    begun = BegunRun(config, schema, facts, begins, client_of(seeded=noise.seeded), stages, terms, public is not None)
    plan_key, kept, relation, schema, config = begun.found(n_was_read=declared is None, unit=unit)
    facts |= {"neighbours": relation.noise, "rho": rho_of(**budget, composition=config.composition)}
    plan, schema, before = _planned(config, schema, public, drawn, kept, facts)
    if kept is not None and public is not None:
        rows = rows.read_again(schema, watch, place)
        data = rows.fingerprint(fingerprint_key)
    named |= {"noise": noise, "rare": share_of_rarer(config.class_shares), "most": most}
    task = DirectTask(
        schema=schema,
        plan=plan,
        private=Secret(replace(rows.private, table=replace(rows.table, schema=schema))),
        **named,
        relation=relation,
        **budget,
        fingerprint=data,
        stored=kept is not None,
        plan_key=plan_key,
        records=rows.records,
        **{name: getattr(config, name) for name in ("composition", "target_range", "scheduler")},
        drawn=_drawn_pool(before, rows, run_key),
        held=rows.held,
    )
    return task if kept is None or drawn is None else _with_kept_pool(task, drawn, kept, stages)


def _drawn_pool(before: BeforePool | None, rows: CellRows, key: Secret[bytes]) -> DrawnPool | None:
    """Return what a pool is drawn from; in its marginals one row of each unit that learns counts."""
    if before is None:
        return None
    counted = counted_rows(rows.slots, key)
    return DrawnPool(before, Secret(counted if rows.held is None else counted & ~rows.held.held.reveal()), key)


def _with_kept_pool(task: DirectTask, declared: DeclaredSchema, kept: bytes, stages: StageStore) -> DirectTask:
    """Return the task with the pool and the coordinates of an earlier process."""
    if (pool := kept_pool(stages, task.plan_key)) is None:
        return replace(task, stored=False)
    plan, encoder = load_plan(kept)
    schema = replace(Schema.of_declared(declared, pool, task.schema.kinds.dialect), encoder=encoder)
    return task.in_coordinates(schema, plan, task.private.reveal())


def _with_default_named(config: DirectConfig, public: Any) -> tuple[DirectConfig, DeclaredSchema | None]:
    """Return the schema whose pool is to be drawn, if one is; the key names the default map then, which may change.
    Without any pool shares of the classes decide nothing, and are no part of the key.
    """
    drawn = DeclaredSchema.of(config.schema) if draws_pool(config, public) else None
    if drawn is None and public is None:
        config = replace(config, class_shares=None)
    if drawn is not None and isinstance(config.feature_map, str):
        config = replace(config, feature_map=feature_map_of(config.feature_map, drawn))
    return config, drawn


def _earlier(config: DirectConfig, public: Any, task: DirectTask | None) -> list[DirectConfig]:
    """Return what the same wishes meant by earlier defaults, the newest first. The share of marginals went by single
    counts, few units' lists had that of numbers, a drawn pool had the rate of others, before that no sums over pairs,
    and a schema no marginals; no round of a number counted targets once, and then they counted by another rule. `task`:
    by today's defaults, where it is no refusal.
    """
    rules = range(config.located, -1, -1) if config.target_range is not None else [config.located]
    if not draws_pool(config, public):
        return [replace(config, located=rule) for rule in rules[1:]]
    of_drawn: list[dict[str, Any]] = [{}]
    drawn = None if task is None else task.drawn
    of_lists = drawn is None or lists_of_few(drawn.before.declared, drawn.before.n_units)
    by_one: dict[str, Any] = {"averaged": False} if config.marginals is None else {}
    if by_one and (drawn is None or not of_lists):
        of_drawn.append(by_one)
    if drawn is None or task is None or compares_pairs(drawn.before.declared, task.n_classes, None):
        if task is None or task.n_classes > 2:  # the rate of two is the same
            of_drawn.append({**by_one, "rate_of_drawn": RATE})
        of_drawn.append({**by_one, "rate_of_drawn": RATE, "paired": False})
    if config.marginals is None:
        if of_lists:
            of_drawn.append({**by_one, "listed": False})
        of_drawn.append({"marginals": 0})
    return [replace(config, located=rule, **then) for then in of_drawn for rule in rules][1:]


def _is_charged(task: DirectTask, terms: LedgerTerms) -> bool:
    return terms.holds(f"{task.charge_begins} ", client_of(seeded=task.noise.seeded))


def _planned(
    config: DirectConfig,
    schema: Schema,
    public: Any,
    drawn: DeclaredSchema | None,
    kept: bytes | None,
    facts: Mapping[str, Any],
) -> tuple[DirectPlan, Schema, BeforePool | None]:
    """Return the plan, the schema with the encoder that it rests on, and what is paid for before a pool is drawn."""
    if config.private_temperature and (config.target_range is not None or (drawn is None and public is None)):
        raise InvalidParameter(
            f"{named('private_temperature')} is for probabilities of classes, and needs public rows, or a schema that "
            "rows are drawn from; leave it out"
        )
    rounds = None if config.rounds is None else count("rounds", config.rounds, at_least=1)
    clip = None if config.clip is None else real("clip", config.clip, above=0)
    how: dict[str, Any] = {**facts, "rounds": rounds, "clip": clip, "locate": config.located}
    if public is not None or drawn is not None:
        how["judge"] = config.private_temperature
    rare = share_of_rarer(config.class_shares)
    if drawn is not None:
        share = None if config.marginals is None else real("marginals", config.marginals, above=0, below=1)
        how |= {"rare": rare, "rate": rate_of(config, facts["n_classes"])}
        before = before_pool(
            drawn,
            config.feature_map,
            share=share,
            paired=config.paired,
            listed=config.listed,
            averaged=config.averaged,
            **how,
        )
        return plan_on(before, schema), schema, before
    if public is None:
        return plan_without_pool(int(schema.numbers(schema.pool).shape[1]), **how), schema, None
    if kept is not None:
        plan, encoder = load_plan(kept)
        return plan, replace(schema, encoder=encoder), None
    encoded, name = schema.numbers(schema.pool), config.feature_map if isinstance(config.feature_map, str) else "linear"
    if name == "auto":  # a later default has its name in the key, and here
        name = default_map_before(encoded)
    feature_map = feature_map_for(name, encoded, rows=schema.words, categories=schema.indicator_blocks)  # type: ignore[arg-type]
    return plan_direct(feature_map, encoded, rare=rare, **how), schema, None
