"""From what the user asked for to a task: each step refuses what can be known to be wrong by then.

arguments → tables → how models see them → a rehearsal on public rows → public facts → the recipe → the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from quorate.accounting.figures import several
from quorate.accounting.neighbouring import LABELS_OF, ONE_RECORD
from quorate.ambient import one_thread
from quorate.arguments import count, one_of, truth
from quorate.data import check_classes
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.feature_maps import PoolDirections
from quorate.data.unit_ids import count_units
from quorate.ensemble import ChatTeacher, Partition, Teacher, as_teacher, check_unfitted, with_classes
from quorate.ensemble.teachers.unfitted import may_have
from quorate.ensemble.workers.pool import refuse_daemon
from quorate.errors import InvalidParameter, named, naming
from quorate.labelling.active import Strategy
from quorate.mechanisms import Mechanism, check_own
from quorate.noise import NoiseSource
from quorate.release.charge import floor_budget
from quorate.release.session import LedgerTerms
from quorate.run.cautions import constant_teachers_caution, refuse_hopeless, rows_caution
from quorate.run.pool_cautions import (
    bounds_as_texts_caution,
    coarse_marginals_caution,
    pool_cautions,
    unit_caution,
)
from quorate.run.public_facts import PublicFacts, unit_of
from quorate.run.resources import allowed_memory, processes
from quorate.students import AutoStudent, Student, as_student
from quorate.students.student import EstimatorStudent
from quorate.types import Secret, Watch
from quorate.voting.claims import with_directions_told, with_public_rows_counted, with_requests_told, with_strategy_told
from quorate.voting.config import RunConfig, check_declared_rows, matches_priors, mechanism_asked_for, queries_asked_for
from quorate.voting.coordinates import PoolForVotes, in_coordinates, pool_for_votes
from quorate.voting.dry_run import (
    refuse_plain_student,
    refuse_too_many_teachers,
    says_one_class,
    try_strategy,
    try_student,
    try_teacher,
)
from quorate.voting.inputs import Inputs, Views, check_inputs, directions_of_images, look
from quorate.voting.models import default_teacher, is_linear, scores_asked_for
from quorate.voting.recipe import FEW_ROWS, MOST_TEACHERS, Recipe, recipe
from quorate.voting.shard_rows import facts_with_sets, refuse_counted_shards
from quorate.voting.task import Task
from quorate.voting.without_pool import declared_inputs, n_public_of, refuse_of_drawn_pools, relation_of, share_of


@dataclass(frozen=True, kw_only=True, slots=True)
class _Arguments:
    """What the arguments alone say, read and checked; None where a choice is left open. `grouped`: units have ids."""

    config: RunConfig
    grouped: bool
    epsilon: float
    delta: float
    teacher: Any
    student: Student
    mechanism: Mechanism | type[Mechanism] | str | None
    n_teachers: int | None
    online_answers: int
    unit: str
    strategy: Strategy | None

    @property
    def reads_units(self) -> bool:
        """Whether the number of units is read: it chooses K, and the noise of counts from which a pool is drawn."""
        return self.config.n_records is None and (self.n_teachers is None or self.config.schema is not None)

    @property
    def reads_rows(self) -> bool:
        """Whether the number of rows is read: where the number of units is read too, and neither was declared."""
        declared = self.config.n_records is not None or self.config.n_rows is not None
        return self.grouped and self.n_teachers is None and not declared


@one_thread()
def prepare(
    config: RunConfig,
    X: Any,
    y: Any,
    *,
    public: Any,
    groups: Any | None,
    key: Secret[bytes],
    fingerprint_key: Secret[bytes],
    noise: NoiseSource,
    terms: LedgerTerms | None = None,
    watch: Watch | None = None,
) -> Task:
    """Check everything that can be wrong before any private row is used, and fill in what was left open; `terms`: of
    the ledger to charge, where a pool is drawn.
    """
    how: dict[str, Any] = {"public": public, "groups": groups, "key": key, "fingerprint_key": fingerprint_key}
    images = directions_of_images(public)
    # A teacher that asks for it, such as a prompt or a function, is told what the classes are called.
    named_teacher = with_classes(config.teacher, config.classes, preprocessing=config.preprocessing)
    config = replace(config, teacher=named_teacher)
    args = _read(config, grouped=groups is not None, images=images is not None)
    inputs = _inputs(args, X, y, public=public, groups=groups, watch=watch)
    views = _views(args, inputs, images)
    _try_models(args, inputs, views)
    facts, sets = facts_with_sets(config, _public_facts(args, inputs, views), args.student)
    pool = None if images is not None else _pool_for_votes(args, inputs, views, facts)
    tiny = pool is not None and config.teacher is None
    facts = replace(facts, tiny=tiny, most_tiny=config.most_tiny)
    recipe, partition = _recipe(args, inputs, views, facts)
    refuse_counted_shards(sets, partition)
    on_pool = partial(_on_pool, args, facts, recipe)
    if pool is not None:
        args, views, recipe = _in_coordinates(args, views, recipe, facts, pool, inputs)
    return Task(
        config=config,
        inputs=inputs,
        views=views,
        teacher=args.teacher,
        student=args.student,
        facts=facts,
        recipe=recipe,
        unit=args.unit,
        n_was_read=args.reads_units,
        rows_were_read=args.reads_rows,
        partition=partition,
        prior_matching=matches_priors(config.prior_matching, args.teacher, n_classes=len(inputs.classes)),
        key=key,
        fingerprint_key=fingerprint_key,
        noise=noise,
        n_jobs=processes(config.n_jobs),
        memory=allowed_memory(config.memory),
        strategy=args.strategy,
        earlier=partial(_earlier, config, X, y, noise=noise, **how),
        relation=relation_of(config, partition, terms, n_was_read=args.reads_units, unit=args.unit),
        models_on=on_pool,
        sets=sets,
    )


def _on_pool(args: _Arguments, facts: PublicFacts, recipe: Recipe, inputs: Inputs) -> tuple[Views, Any, Recipe]:
    """Return how models see rows of a pool that was drawn, who votes, and the recipe; nothing is refused by then."""
    views = _views(args, inputs, None)
    pool = _pool_for_votes(args, inputs, views, facts)
    if pool is None:
        return views, args.teacher, recipe
    args, views, recipe = _in_coordinates(args, views, recipe, facts, pool, inputs)
    return views, args.teacher, recipe


def _earlier(config: RunConfig, X: Any, y: Any, *, respells: bool, **how: Any) -> Iterator[Task]:
    """Yield the task as earlier versions prepared it, in which a fit may have been begun."""
    before = replace(config, try_models=False)  # its models were tried when it was begun
    for words in (False, True) if respells else (False,):
        for defaults in ({}, {"most_tiny": FEW_ROWS}, {"earlier_defaults": True}):
            if words or defaults:
                yield prepare(replace(before, words_as_written=words, **defaults), X, y, **how)


def _pool_for_votes(args: _Arguments, inputs: Inputs, views: Views, facts: PublicFacts) -> PoolForVotes | None:
    """Return what coordinates of the pool follow from; None where models see rows in another way."""
    open_ = args.config.student is None or args.student == AutoStudent()
    if args.config.earlier_defaults or not open_ or args.strategy is not None or facts.rows is None:
        return None
    return pool_for_votes(inputs.public, views, args.mechanism)


def _in_coordinates(
    args: _Arguments, views: Views, recipe: Recipe, facts: PublicFacts, pool: PoolForVotes, inputs: Inputs
) -> tuple[_Arguments, Views, Recipe]:
    """Let the student see coordinates of the pool, and tiny teachers as well."""
    views, teacher = in_coordinates(
        pool,
        views,
        inputs.public,
        facts,
        n_teachers=recipe.n_teachers,
        n_queries=recipe.n_queries,
        share=1.0 if recipe.pool is None else 1 - recipe.pool.share,
    )
    views.student.wrapped(None, inputs.public)  # what is published would fail after the charge otherwise
    args = replace(args, teacher=args.teacher if teacher is None else teacher, student=AutoStudent())
    return args, views, with_directions_told(recipe, views)


def _inputs(args: _Arguments, X: Any, y: Any, **sides: Any) -> Inputs:
    """Check the tables against each other; or the private one against the schema that was declared for it."""
    config = args.config
    if config.schema is not None:
        return declared_inputs(config, X, y, teacher=args.teacher, **sides)
    refuse_of_drawn_pools(config)
    return check_inputs(
        X,
        y,
        **sides,
        classes=config.classes,
        **config.names,
        labels_only=config.labels_only,
        words_as_written=config.words_as_written,
    )


def _recipe(args: _Arguments, inputs: Inputs, views: Views, facts: PublicFacts) -> tuple[Recipe, Partition]:
    """Fill in what was left open, try the student, and refuse what can answer nothing; return the partition as well."""
    recipe = _fill_in(args, facts, declared=inputs.declared)
    _try_student(args, recipe, inputs, views)
    partition = _partition(args, recipe, facts)
    if partition != "unit":
        refuse_too_many_teachers(recipe.n_teachers, inputs, args.config.n_records, facts.unit)
    recipe = recipe if facts.tiny else with_directions_told(recipe, views)
    recipe = _with_shards_looked_at(args.config, recipe, inputs, views, facts)
    recipe = with_requests_told(args.teacher, _with_pool_looked_at(args.config, recipe, inputs, views, facts), facts)
    refuse_hopeless(() if args.config.allow_hopeless else recipe.considered)
    return recipe, partition


def _read(config: RunConfig, *, grouped: bool, images: bool) -> _Arguments:
    """Check each argument by itself, before any table is looked at."""
    epsilon, delta = floor_budget(config.epsilon, config.delta)
    one_of("declined", config.declined, ("drop", "random"))
    one_of("partition", config.partition, ("auto", "hash", "balanced", "unit"))
    if config.partition == "unit" and config.n_teachers != "auto":
        raise InvalidParameter(
            f"{named('n_teachers', config.n_teachers)} says how many teachers there are, and "
            f"{named('partition', 'unit')} gives each unit one; leave out one of the two",
            parameter="n_teachers",
            got=config.n_teachers,
        )
    one_of("preprocessing", config.preprocessing, ("inside", "public"))
    check_declared_rows(config, grouped=grouped)
    chosen = config.default_teacher if config.teacher is None else config.teacher
    teacher = default_teacher(images=images) if chosen is None else chosen
    student = as_student(config.default_student if config.student is None else config.student)
    with naming({"model": named("teacher")}):
        as_teacher(teacher, preprocessing=config.preprocessing)  # refuses what cannot be one
    truth("batched", config.batched)
    with naming({"model": named("student")}):
        check_unfitted(student.learner, preprocessing=config.preprocessing)
    refuse_plain_student(student.learner)
    n_classes = len(check_classes(config.classes))
    return _Arguments(
        config=config,
        grouped=grouped,
        epsilon=epsilon,
        delta=delta,
        teacher=teacher,
        student=student,
        mechanism=mechanism_asked_for(config.mechanism, config.mechanism_fields, n_classes=n_classes),
        online_answers=count("online_answers", config.online_answers),
        n_teachers=None
        if config.n_teachers == "auto"
        else count("n_teachers", config.n_teachers, at_least=1, hint='"auto" chooses it'),
        unit=unit_of(config.unit, grouped=grouped, labels_only=config.labels_only),
        strategy=config.queries if isinstance(config.queries, Strategy) else None,
    )


def _views(args: _Arguments, inputs: Inputs, images: PoolDirections | None) -> Views:
    """Look at the pool for how models are to see rows; quorate's own linear teachers see directions of a wide one."""
    config = args.config
    built_in = config.built_in or (config.teacher is None and config.default_teacher is None)
    directed = built_in and is_linear(args.teacher)
    return look(inputs, teacher=args.teacher, student=args.student, built_in=built_in, directed=directed, images=images)


def _try_models(args: _Arguments, inputs: Inputs, views: Views) -> None:
    """Try what is the user's own on public rows; teachers are fitted by a process that may have children."""
    config = args.config
    if config.try_models and config.scheduler is None and not isinstance(args.teacher, ChatTeacher):
        refuse_daemon()
    if config.try_models and config.teacher is not None and not config.built_in:
        teacher = _teacher(config, args.teacher, inputs)
        scores = scores_asked_for(args.mechanism, prior_matching=config.prior_matching)
        try_teacher(teacher, inputs, views, scores=scores)
    if args.strategy is not None:
        args.strategy.check(n_points=n_public_of(config, inputs), n_classes=len(inputs.classes))
        if config.try_models:
            try_strategy(args.strategy, inputs, views)


def _teacher(config: RunConfig, model: Any, inputs: Inputs) -> Teacher:
    classes = None if config.classes_by_shard else inputs.classes
    return as_teacher(model, preprocessing=config.preprocessing, classes=classes)


def _try_student(args: _Arguments, recipe: Recipe, inputs: Inputs, views: Views) -> None:
    """Try a student that teaches a classifier of the user's, or that is the user's own, on answers like the run's."""
    config, student = args.config, args.student
    left_open = config.student is None or (isinstance(student, EstimatorStudent) and student.estimator is None)
    if config.try_models and not (config.built_in or left_open):
        try_student(
            student,
            recipe.mechanism,
            inputs,
            views,
            n_teachers=recipe.n_teachers,
            declined=config.declined,
            chooses_limit=config.calibration_share is not None,
        )


def _public_facts(args: _Arguments, inputs: Inputs, views: Views) -> PublicFacts:
    """Gather all that the recipe may depend on: numbers of units and rows as declared, or, where it reads them, those
    that are there.
    """
    config, keys = args.config, inputs.private.reveal().unit_keys
    units = None if config.n_records is None else count("n_records", config.n_records, at_least=1)
    return PublicFacts(
        n_records=count_units(keys) if args.reads_units else units,
        n_public=n_public_of(config, inputs),
        n_classes=len(inputs.classes),
        width=views.width,
        epsilon=args.epsilon,
        delta=args.delta,
        online_answers=args.online_answers,
        n_rows=len(keys) if args.reads_rows else config.n_rows,
        unit=args.unit.removesuffix(LABELS_OF.format("")),
        neighbours=config.neighbours,
    )


def _fill_in(args: _Arguments, facts: PublicFacts, *, declared: DeclaredSchema | None) -> Recipe:
    """Choose what was left open, and refuse a mechanism that does not go with the student or the strategy."""
    config, strategy, student = args.config, args.strategy, args.student
    # Where nothing is known of how many rows a unit has, each unit is to have a teacher, if all can.
    unknown = args.grouped and args.n_teachers is None and facts.n_rows is None and config.partition == "auto"
    alone = unknown and not config.earlier_defaults and (facts.n_records or 0) <= MOST_TEACHERS
    each_unit = config.partition == "unit" or alone
    recipe_ = recipe(
        facts,
        n_teachers=facts.n_records if each_unit else args.n_teachers,
        n_queries=queries_asked_for(config.queries, facts.n_public) if strategy is None else strategy.n,
        mechanism=args.mechanism,
        fields=config.mechanism_fields,
        declared=declared,
        share=share_of(config),
    )
    if each_unit:
        recipe_ = recipe_.saying(f"{several(recipe_.n_teachers, 'teacher')}, one for each {facts.unit}")
    answers = recipe_.n_queries + recipe_.online_answers
    check_own(recipe_.mechanism, n_teachers=recipe_.n_teachers, n_classes=facts.n_classes, answers=answers)
    student.check(recipe_.mechanism)
    informed = recipe_.mechanism.takes == "votes and predictions"
    if informed and not may_have(student.learner, "predict_proba"):
        raise InvalidParameter(
            f"{type(recipe_.mechanism).__name__} asks the student how sure it is, and {type(student.learner).__name__} "
            "has no predict_proba; choose another student, or ConfidentNoisyMax"
        )
    if args.grouped and args.n_teachers is None:
        recipe_ = recipe_.saying(considered=[rows_caution(facts)])
    return recipe_ if strategy is None else with_strategy_told(strategy, recipe_, width=facts.width)


def _partition(args: _Arguments, recipe: Recipe, facts: PublicFacts) -> Partition:
    """A unit of several rows that is a shard by itself stays one; a hash would leave a third of the shards empty."""
    if args.config.partition != "auto":
        return args.config.partition
    alone = args.grouped and not args.config.labels_only and recipe.n_teachers == facts.n_records
    return "unit" if alone else "hash"


def _with_shards_looked_at(
    config: RunConfig, recipe: Recipe, inputs: Inputs, views: Views, facts: PublicFacts
) -> Recipe:
    """Add whether shards of this size teach a given model anything; the default model learns from any."""
    if config.teacher is None or not config.try_models or inputs.declared is not None:
        return recipe
    teacher = _teacher(config, config.teacher, inputs)
    rows = None if facts.rows is None else round(facts.rows / recipe.n_teachers)
    constant = None if rows is None else says_one_class(teacher, inputs, views, n_rows_each=rows)
    return recipe.saying(considered=[constant_teachers_caution(constant, n_rows_each=rows)])


def _with_pool_looked_at(config: RunConfig, recipe: Recipe, inputs: Inputs, views: Views, facts: PublicFacts) -> Recipe:
    """Add how many public rows there are, and of which columns the encoder makes nothing, where a model is given it."""
    if not (config.labels_only or inputs.declared is not None):
        recipe = with_public_rows_counted(recipe, inputs.public, facts)
    if facts.unit == ONE_RECORD and not config.labels_only:
        recipe = recipe.saying(considered=[unit_caution(inputs.public, left_out=config.left_out)])
    if recipe.pool is not None:
        coarse = coarse_marginals_caution(recipe.pool.resolution, len(recipe.pool.marginals.partitions))
        return recipe.saying(considered=[coarse, bounds_as_texts_caution(recipe.pool.declared.declared)])
    if views.teacher.encoder is None and views.student.encoder is None:
        return recipe
    return recipe.saying(considered=pool_cautions(inputs.public, config.pool_name, kinds=inputs.kinds))
