"""From what the user asked for to a task: each step refuses what can be known to be wrong by then.

arguments → tables → how models see them → a rehearsal on public rows → public facts → the recipe → the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from quorate.accounting.figures import plural, several
from quorate.accounting.neighbouring import LABELS_OF, ONE_RECORD
from quorate.ambient import one_thread
from quorate.arguments import count, one_of, truth
from quorate.data import check_classes, n_rows
from quorate.data.declared_schema import Schema as DeclaredSchema
from quorate.data.feature_maps import PoolDirections
from quorate.data.unit_keys import count_units
from quorate.ensemble import (
    ChatTeacher,
    ClassifierTeacher,
    Partition,
    PriorMatchingTeacher,
    Teacher,
    as_teacher,
    check_unfitted,
    with_classes,
)
from quorate.ensemble.teachers.unfitted import may_have
from quorate.ensemble.workers.pool import refuse_daemon
from quorate.errors import DataRefused, InvalidParameter, named, naming
from quorate.labelling.active import Strategy
from quorate.mechanisms import Mechanism, check_declared, check_own, for_runs, is_own
from quorate.mechanisms.schedule import check_mechanism
from quorate.noise import NoiseSource
from quorate.release.session import LedgerTerms
from quorate.release.target import floor_budget
from quorate.run.cautions import constant_teachers_caution, rows_caution
from quorate.run.hopeless import refuse_hopeless
from quorate.run.pool_cautions import coarse_marginals_caution, few_rows_caution, pool_cautions, unit_caution
from quorate.run.public_facts import PublicFacts
from quorate.run.resources import allowed_memory, processes
from quorate.run.unit import unit_of
from quorate.students import Student, as_student
from quorate.students.student import EstimatorStudent
from quorate.types import Secret
from quorate.voting.config import RunConfig, check_declared_rows
from quorate.voting.dry_run import (
    refuse_plain_student,
    rehearse_strategy,
    rehearse_student,
    rehearse_teacher,
    says_one_class,
)
from quorate.voting.inputs import Inputs, Views, check_inputs, directions_of_images, look
from quorate.voting.models import default_teacher, is_linear, scores_asked_for
from quorate.voting.recipe import Recipe, recipe
from quorate.voting.recipe_notes import with_directions_told, with_requests_told
from quorate.voting.task import Task
from quorate.voting.without_pool import declared_inputs, n_public_of, refuse_of_drawn_pools, relation_of, share_of


@dataclass(frozen=True, kw_only=True, slots=True)
class _Arguments:
    """What the arguments alone say, read and checked; None where a choice is left open."""

    epsilon: float
    delta: float
    teacher: Any
    student: Student
    mechanism: Mechanism | type[Mechanism] | str | None
    n_teachers: int | None
    online_answers: int
    unit: str
    strategy: Strategy | None


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
) -> Task:
    """Check everything that can be wrong before any private row is used, and fill in what was left open.

    `terms`: of the ledger to charge, where a pool is drawn; by default of a new one.

    Raises InvalidParameter if an argument is of the wrong kind or out of range, or a model of the user's own fails on
    public rows; DataRefused if a table is wrong as a whole.
    """
    before = replace(config, words_as_written=True, rehearse=False)  # its models were tried when it was begun
    how: dict[str, Any] = {"public": public, "groups": groups, "key": key, "fingerprint_key": fingerprint_key}
    grouped = groups is not None
    images = directions_of_images(public)
    asked = _read(config := _with_classes_named(config), grouped=grouped, images=images is not None)
    inputs = _inputs(config, asked, X, y, public=public, groups=groups)
    views = _rehearsed(config, asked, inputs, _views(config, asked, inputs, images))
    facts = _public_facts(config, asked, inputs, views, grouped=grouped)
    made, partition = _recipe(config, asked, inputs, views, facts, grouped=grouped)
    return Task(
        inputs=inputs,
        views=views,
        teacher=asked.teacher,
        student=asked.student,
        facts=facts,
        recipe=made,
        unit=asked.unit,
        n_was_read=_reads_units(config, asked),
        rows_were_read=_reads_rows(config, asked, grouped=grouped),
        partition=partition,
        declined=config.declined,
        preprocessing=config.preprocessing,
        prior_matching=_prior_matching(config.prior_matching, asked.teacher, n_classes=len(inputs.classes)),
        batched=config.batched,
        classes_by_shard=config.classes_by_shard,
        labels_only=config.labels_only,
        classes_were_read=config.classes_were_read,
        caveats=config.caveats,
        key=key,
        fingerprint_key=fingerprint_key,
        noise=noise,
        n_jobs=processes(config.n_jobs),
        memory=allowed_memory(config.memory),
        scheduler=config.scheduler,
        strategy=asked.strategy,
        as_written=partial(prepare, before, X, y, noise=noise, **how),
        relation=relation_of(config, partition, terms, n_was_read=_reads_units(config, asked), unit=asked.unit),
        seen=partial(_views, config, asked, images=None),
    )


def _inputs(config: RunConfig, asked: _Arguments, X: Any, y: Any, *, public: Any, groups: Any) -> Inputs:
    """Check the tables against each other; or the private one against the schema that was declared for it."""
    if config.schema is not None:
        return declared_inputs(config, X, y, teacher=asked.teacher, public=public, groups=groups)
    refuse_of_drawn_pools(config)
    return check_inputs(
        X,
        y,
        public=public,
        classes=config.classes,
        groups=groups,
        **config.names,
        labels_only=config.labels_only,
        words_as_written=config.words_as_written,
    )


def _reads_units(config: RunConfig, asked: _Arguments) -> bool:
    """Whether the number of units is read: it chooses K, and the noise of counts from which a pool is drawn."""
    return config.n_records is None and (asked.n_teachers is None or config.schema is not None)


def _recipe(
    config: RunConfig, asked: _Arguments, inputs: Inputs, views: Views, facts: PublicFacts, *, grouped: bool
) -> tuple[Recipe, Partition]:
    """Fill in what was left open, try the student, and refuse what can answer nothing; return the partition as well."""
    made = _fill_in(config, asked, facts, declared=inputs.declared, grouped=grouped)
    made = _with_tried_student(config, asked, made, inputs, views)
    partition = _partition(config, made, facts, grouped=grouped)
    if partition != "unit":
        _refuse_too_many_teachers(made, inputs, config.n_records, facts)
    made = _with_shards_looked_at(config, with_directions_told(made, views), inputs, views, facts)
    made = with_requests_told(asked.teacher, _with_pool_looked_at(config, made, inputs, views, facts), facts)
    refuse_hopeless(() if config.allow_hopeless else made.considered)
    return made, partition


def _with_classes_named(config: RunConfig) -> RunConfig:
    """Tell a teacher that asks for it, such as a prompt or a function, what the classes are called."""
    return replace(config, teacher=with_classes(config.teacher, config.classes, preprocessing=config.preprocessing))


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
    teacher = default_teacher(images=images) if config.teacher is None else config.teacher
    student = as_student(config.student)
    with naming({"model": named("teacher")}):
        as_teacher(teacher, preprocessing=config.preprocessing)  # refuses what cannot be one
    truth("batched", config.batched)
    with naming({"model": named("student")}):
        check_unfitted(student.learner, preprocessing=config.preprocessing)
    refuse_plain_student(student.learner)
    if config.classes is None:
        raise InvalidParameter(
            "classes= is required. Reading the label set from the data can reveal that a rare label is present. "
            'Example: classes=["no", "yes"]'
        )
    return _Arguments(
        epsilon=epsilon,
        delta=delta,
        teacher=teacher,
        student=student,
        mechanism=_mechanism(config.mechanism, config.mechanism_fields, n_classes=len(check_classes(config.classes))),
        online_answers=count("online_answers", config.online_answers),
        n_teachers=None
        if config.n_teachers == "auto"
        else count("n_teachers", config.n_teachers, at_least=1, hint='"auto" chooses it'),
        unit=unit_of(config.unit, grouped=grouped, labels_only=config.labels_only),
        strategy=config.queries if isinstance(config.queries, Strategy) else None,
    )


def _views(config: RunConfig, asked: _Arguments, inputs: Inputs, images: PoolDirections | None) -> Views:
    """Look at the pool for how models are to see rows; quorate's own linear teachers see directions of a wide one."""
    built_in = config.built_in or config.teacher is None
    directed = built_in and is_linear(asked.teacher)
    return look(
        inputs, teacher=asked.teacher, student=asked.student, built_in=built_in, directed=directed, images=images
    )


def _rehearsed(config: RunConfig, asked: _Arguments, inputs: Inputs, views: Views) -> Views:
    """Try what is the user's own on public rows; the models of quorate need no trial.

    Where teachers are fitted in children of this process, it must be one that may have any.
    """
    if config.rehearse and config.scheduler is None and not isinstance(asked.teacher, ChatTeacher):
        refuse_daemon()
    if config.rehearse and config.teacher is not None and not config.built_in:
        teacher = _teacher(config, asked.teacher, inputs)
        scores = scores_asked_for(asked.mechanism, prior_matching=config.prior_matching)
        rehearse_teacher(teacher, inputs, views, scores=scores)
    if asked.strategy is not None:
        asked.strategy.check(n_points=n_public_of(config, inputs), n_classes=len(inputs.classes))
        if config.rehearse:
            rehearse_strategy(asked.strategy, inputs, views)
    return views


def _teacher(config: RunConfig, model: Any, inputs: Inputs) -> Teacher:
    classes = None if config.classes_by_shard else inputs.classes
    return as_teacher(model, preprocessing=config.preprocessing, classes=classes)


def _with_tried_student(config: RunConfig, asked: _Arguments, made: Recipe, inputs: Inputs, views: Views) -> Recipe:
    """Try a student that teaches a classifier of the user's, or that is the user's own, on answers like the run's."""
    student = asked.student
    of_quorate = config.built_in or (isinstance(student, EstimatorStudent) and student.estimator is None)
    if config.rehearse and not of_quorate:
        rehearse_student(student, made.mechanism, inputs, views, n_teachers=made.n_teachers, declined=config.declined)
    return made


def _public_facts(config: RunConfig, asked: _Arguments, inputs: Inputs, views: Views, *, grouped: bool) -> PublicFacts:
    """Gather all that the recipe may depend on."""
    return PublicFacts(
        n_records=_n_records(config.n_records, inputs, needed=_reads_units(config, asked)),
        n_public=n_public_of(config, inputs),
        n_classes=len(inputs.classes),
        width=views.width,
        epsilon=asked.epsilon,
        delta=asked.delta,
        online_answers=asked.online_answers,
        n_rows=len(inputs.private.reveal().unit_keys) if _reads_rows(config, asked, grouped=grouped) else config.n_rows,
        unit=asked.unit.removesuffix(LABELS_OF.format("")),
        neighbours=config.neighbours,
    )


def _fill_in(
    config: RunConfig, asked: _Arguments, facts: PublicFacts, *, declared: DeclaredSchema | None, grouped: bool
) -> Recipe:
    """Choose what was left open, and refuse a mechanism that does not go with the student or the strategy."""
    strategy, student = asked.strategy, asked.student
    made = recipe(
        facts,
        n_teachers=facts.n_records if config.partition == "unit" else asked.n_teachers,
        n_queries=_n_queries(config.queries, facts.n_public) if strategy is None else strategy.n,
        mechanism=asked.mechanism,
        fields=config.mechanism_fields,
        declared=declared,
        share=share_of(config),
    )
    if config.partition == "unit":
        made = replace(made, why=(*made.why, f"{several(made.n_teachers, 'teacher')}, one for each {facts.unit}"))
    answers = made.n_queries + made.online_answers
    check_own(made.mechanism, n_teachers=made.n_teachers, n_classes=facts.n_classes, answers=answers)
    student.check(made.mechanism)
    informed = made.mechanism.takes == "votes and predictions"
    if informed and not may_have(student.learner, "predict_proba"):
        raise InvalidParameter(
            f"{type(made.mechanism).__name__} asks the student how sure it is, and {type(student.learner).__name__} "
            "has no predict_proba; choose another student, or ConfidentNoisyMax"
        )
    if grouped and asked.n_teachers is None:
        made = replace(made, considered=(*made.considered, rows_caution(facts)))
    return made if strategy is None else _told_of(strategy, made, width=facts.width)


def _partition(config: RunConfig, made: Recipe, facts: PublicFacts, *, grouped: bool) -> Partition:
    """A unit of several rows that is a shard by itself stays one; a hash would leave a third of the shards empty."""
    if config.partition != "auto":
        return config.partition
    alone = grouped and not config.labels_only and made.n_teachers == facts.n_records
    return "unit" if alone else "hash"


def _with_shards_looked_at(config: RunConfig, made: Recipe, inputs: Inputs, views: Views, facts: PublicFacts) -> Recipe:
    """Add whether shards of this size teach a given model anything; the default model learns from any."""
    if config.teacher is None or not config.rehearse or inputs.declared is not None:
        return made
    teacher = _teacher(config, config.teacher, inputs)
    rows = None if facts.rows is None else round(facts.rows / made.n_teachers)
    constant = None if rows is None else says_one_class(teacher, inputs, views, n_rows_each=rows)
    return replace(made, considered=(*made.considered, constant_teachers_caution(constant, n_rows_each=rows)))


def _with_pool_looked_at(config: RunConfig, made: Recipe, inputs: Inputs, views: Views, facts: PublicFacts) -> Recipe:
    """Add how many public rows there are, and of which columns the encoder makes nothing, where a model is given it."""
    made = _with_public_rows_counted(config, made, inputs, facts)
    if facts.unit == ONE_RECORD and not config.labels_only:
        likely = unit_caution(inputs.public, left_out=config.left_out)
        made = replace(made, considered=(*made.considered, likely))
    if made.pool is not None:
        coarse = coarse_marginals_caution(made.pool.resolution, len(made.pool.marginals.partitions))
        return replace(made, considered=(*made.considered, coarse))
    if views.teacher.encoder is None and views.student.encoder is None:
        return made
    return replace(
        made, considered=(*made.considered, *pool_cautions(inputs.public, config.pool_name, kinds=inputs.kinds))
    )


def _with_public_rows_counted(config: RunConfig, made: Recipe, inputs: Inputs, facts: PublicFacts) -> Recipe:
    """Say how many public rows repeat others, and whether there are too few of them; a pool of its own is meant."""
    if config.labels_only or inputs.declared is not None:
        return made
    few = few_rows_caution(facts.n_public, facts.n_classes, learns="the student learns from their noisy answers alone")
    made = replace(made, considered=(*made.considered, few))
    repeats = n_rows(inputs.public) - facts.n_public
    if not repeats:
        return made
    told = (
        f"{repeats:,} of {several(n_rows(inputs.public), 'public row')} {'repeat' if repeats > 1 else 'repeats'} "
        f"others and {'are' if repeats > 1 else 'is'} left out: {several(facts.n_public, 'different row')}"
    )
    return replace(made, why=(*made.why, told))


def _refuse_too_many_teachers(made: Recipe, inputs: Inputs, declared: Any, facts: PublicFacts) -> None:
    if made.n_teachers > count_units(inputs.private.reveal().unit_keys):
        unit, said = facts.unit, ""
        auto = named("n_teachers", "auto")
        remedy = f"Take {auto}, which reads the number of {plural(unit)}, or far fewer teachers"
        if declared is not None:  # and larger than the number there is, which is not told
            said = f", for which {named('n_records', declared)} was declared"
            remedy = f"Declare the true number of {plural(unit)}, and take {auto}"
        raise DataRefused(
            f"too many teachers: {named('n_teachers', made.n_teachers)} is more than there are {plural(unit)} in the "
            f"private table{said}, so some could only abstain. {remedy}"
        )


def _told_of(strategy: Strategy, made: Recipe, *, width: int) -> Recipe:
    """Add to a recipe what is to be said of a strategy; refuse a mechanism that needs its queries beforehand."""
    if made.mechanism.takes == "votes and predictions":
        raise InvalidParameter(
            f"{type(made.mechanism).__name__} asks a student about queries that are fixed beforehand; "
            f"give a number of {named('queries')}, or take ConfidentNoisyMax"
        )
    name = type(strategy).__name__
    why = f"{name} chooses the queries from released answers, and may stop early: noise and price are those of its cap"
    if not strategy.learns:
        why = f"{name} chooses at most {strategy.n:,} queries from public rows alone"
    return replace(made, why=(*made.why, why), considered=(*made.considered, *strategy.cautions(width=width)))


def _mechanism(wish: Any, given: Mapping[str, Any], *, n_classes: int) -> Mechanism | type[Mechanism] | str | None:
    """A mechanism as it is; the name or the class of one; or None where the recipe is to choose."""
    if isinstance(wish, type) and issubclass(wish, Mechanism):
        return check_declared(wish) if is_own(wish) else one_of("mechanism", wish.__name__, for_runs())
    if isinstance(wish, Mechanism) and wish.takes != "sums":
        if is_own(wish):
            check_declared(type(wish))
        check_mechanism(wish, n_classes=n_classes)
        return wish
    name = one_of("mechanism", wish, ("auto", *for_runs()), hint="A mechanism of quorate.mechanisms is taken too")
    if name != "auto":
        return name
    return "NoisyCounts" if given else None


def _prior_matching(wish: Any, teacher: Any, *, n_classes: int) -> bool:
    matching = truth("prior_matching", wish)
    if matching and n_classes != 2:
        raise InvalidParameter(
            f"{named('prior_matching')} is for two classes, and there are {n_classes}; leave it out",
            parameter="prior_matching",
            got=matching,
        )
    if matching:
        PriorMatchingTeacher(ClassifierTeacher(teacher), np.zeros((1, 1)))  # refuses a teacher without scores
    return matching


def _n_records(declared: int | None, inputs: Inputs, *, needed: bool) -> int | None:
    if declared is not None:
        return count("n_records", declared, at_least=1)
    return count_units(inputs.private.reveal().unit_keys) if needed else None


def _reads_rows(config: RunConfig, asked: _Arguments, *, grouped: bool) -> bool:
    """Whether the number of rows is read: where the number of units is read too, and neither was declared."""
    declared = config.n_records is not None or config.n_rows is not None
    return grouped and asked.n_teachers is None and not declared


def _n_queries(wish: Any, n_public: int) -> int | None:
    if wish in ("auto", "all"):
        return None if wish == "auto" else n_public
    asked = count("queries", wish, at_least=1, hint='A number, "all", "auto", or a strategy such as Margin(300)')
    if asked > n_public:
        raise InvalidParameter(
            f"{named('queries', asked)} but the pool has {n_public:,} distinct points; ask at most that many",
            parameter="queries",
            got=asked,
        )
    return asked
