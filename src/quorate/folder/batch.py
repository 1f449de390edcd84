"""A run of votes in a folder: what ``quorate.toml`` names is read, and once it is finished its teachers answer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from quorate.arguments import for_shell
from quorate.data.formats import Table, has_named_columns
from quorate.data.pool import PublicPool
from quorate.data.reading import refuse_uneven_rows
from quorate.data.rows import Rows
from quorate.data.stream import Workspace
from quorate.data.table_reader import unread_in_words
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.choice import nothing_chosen
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import labelled_rows, of_votes
from quorate.folder.loaded import LoadedRun, earlier_configs, has_begun, named_as_begun
from quorate.folder.prepared import publish_facts, scheduler_of
from quorate.folder.published import is_finished, read_facts
from quorate.folder.sections import MechanismSettings
from quorate.folder.settings import DECISION_THRESHOLD, Settings, arguments_of, settings_of
from quorate.folder.tables import (
    private_ids,
    read_pool,
    read_private,
    read_private_cells,
    read_public,
    refuse_unknown_drop,
)
from quorate.labelling.active import Strategy, named
from quorate.ledger import Ledger, Reservation
from quorate.plugins import METHODS
from quorate.release.charge import SEEDED_CLIENT, noise_and_key
from quorate.release.keys import read_or_create_key
from quorate.run.cautions import is_hopeless, refuse_hopeless
from quorate.run.drawn_rows import kept_pool
from quorate.run.resources import allowed_memory
from quorate.run.stage_store import FINISHED, FolderStages
from quorate.students.decision_threshold import require_probabilities
from quorate.types import Watch
from quorate.voting.ask import Asked, OpenEnsemble, open_online, question_rows, reader_of
from quorate.voting.config import RunConfig
from quorate.voting.flow import finished_key, refuse_other_pool
from quorate.voting.kept_votes import teachers
from quorate.voting.method import VOTES, with_later_answers
from quorate.voting.models import mechanism_of, student_of, teacher_of
from quorate.voting.shard_rows import shards_to_train


def load_run(
    root: Path,
    *,
    begin: bool = True,
    settings: Settings | None = None,
    try_models: bool = True,
    watch: Watch | None = None,
) -> LoadedRun:
    """Read a run's settings and files, and check everything that can be checked before anything is fitted. `begin`:
    whether a run that has no key and no folders yet gets them; where not, nothing is written, and keys are made up.
    `try_models`: whether models of the user's own are tried on public rows; those of a charged run were.
    """
    folder = RunFolder(root)
    folder.refuse_wrong_ledger()
    settings = settings_of(root) if settings is None else settings
    if settings.method.by == "auto":
        raise PreconditionFailed(nothing_chosen(root))
    data = settings.data
    config = replace(_config(settings, folder), try_models=try_models)
    private, public = _tables(folder, settings, memory=allowed_memory(config.memory), begin=begin)
    if begin:
        folder.make()
    key_file = folder.private / "run.key"
    stored_key = None
    if settings.run.unsafe_noise_seed is None:
        if not key_file.exists():
            refuse_lost_key(folder)
        if begin or key_file.exists():
            stored_key = read_or_create_key(key_file)
    noise, key = noise_and_key(settings.run.unsafe_noise_seed, stored_key)

    def of(config: RunConfig) -> LoadedRun:
        task = VOTES.prepare(
            config,
            private.X,
            private.y,
            public=public,
            groups=private_ids(data, private),
            key=key,
            fingerprint_key=folder.fingerprint_key(begin=begin),
            noise=noise,
            terms=None if public is not None else folder.terms(settings.budget.composition),
            watch=watch,
        )
        if task.draws_pool and (pool := kept_pool(FolderStages(folder.private), task.content_key)) is not None:
            task = task.on(pool)
        require_probabilities(task.student.learner, settings.student.decision_threshold, name=DECISION_THRESHOLD)
        return LoadedRun(folder, settings, task, *labelled_rows(of_votes, data, task))

    patient = replace(config, allow_hopeless=True)
    run = named_as_begun(of, patient, folder)
    others = earlier_configs(patient, run)
    refused = not settings.run.allow_hopeless and is_hopeless(run.task.recipe.considered)
    if not (others or refused) or has_begun(run):  # the ledger is read where something hangs on it alone
        return run
    for earlier in map(of, others):
        if has_begun(earlier):  # it goes on with the teachers that it has
            return earlier
    if refused:
        refuse_hopeless(run.task.recipe.considered)
    return run


def _tables(folder: RunFolder, settings: Settings, *, memory: int, begin: bool) -> tuple[Table, PublicPool | None]:
    """Read the private and the public table; a private one that takes more than `memory` bytes stays in its file."""
    data = settings.data
    place = partial(folder.place_for_rows, begin=begin)
    workspace = Workspace(place)
    refuse_unknown_drop(data)
    if data.public is None:
        if not has_named_columns(data.private, data.dialect):
            raise InvalidParameter(
                f"{data.private.name}: rows without names of columns need a pool to vote on, and a [schema] names "
                "columns; give [data] public"
            )
        declared = tuple(settings.schema or ())
        return read_private_cells(data, None, n_features=len(declared), folder=place, declared=declared), None
    if not has_named_columns(data.private, data.dialect):
        private = read_private(data, None, memory=memory, workspace=workspace)
        return private, read_pool(data, n_features=private.X.shape[1])
    public = read_pool(data)
    return read_private(data, public, memory=memory, workspace=workspace), public


def _config(settings: Settings, folder: RunFolder) -> RunConfig:
    data, root = settings.data, folder.root
    return replace(
        RunConfig(**arguments_of(settings, RunConfig)),
        teacher=teacher_of(settings.teachers.model, settings.teachers.fields, folder=root),
        student=student_of(
            settings.student.model, method=settings.student.method, shares=settings.student.shares, folder=root
        ),
        queries=queries_of(settings.mechanism),
        mechanism=mechanism_of(settings.mechanism.name, folder=root),
        mechanism_fields=settings.mechanism.fields,
        scheduler=scheduler_of(settings.run, folder),
        built_in=not settings.teachers.fields
        and ":" not in settings.teachers.model
        and ":" not in settings.student.model,
        left_out=data.drop,
        pool_name=data.public_side,
        schema=None if data.public is not None else settings.schema,
        neighbours=settings.method.neighbours if data.public is None else "auto",
        label_name=f"{data.private.name}, column {data.label!r}",
        group_name=f"{data.private.name}, column {data.unit!r}",
        public_name="[data] public",
    )


def queries_of(settings: MechanismSettings) -> int | Literal["auto", "all"] | Strategy:
    """Return what ``[mechanism]`` says of the queries: how many, or what chooses them."""
    if settings.strategy == "random" or isinstance(settings.queries, str):
        return settings.queries
    return named(settings.strategy)(settings.queries)


def refuse_lost_key(folder: RunFolder) -> None:
    """Refuse a run that was charged and whose key is gone: another key would be another partition of the people."""
    finished = read_facts(folder.root) if is_finished(folder) else None
    if finished is not None:
        lost = finished.by == "votes" and not finished.seeded  # no other method needs a key
    elif lost := folder.has_ledger and any(folder.private.glob("*.stage")):
        with folder.look_into_ledger() as ledger:
            others = {method.purpose for name, method in METHODS.items() if name != "votes"}
            of_votes = [charge for charge in ledger.reservations() if others.isdisjoint(charge.purposes)]
        lost = any(charge.client != SEEDED_CLIENT for charge in of_votes)
    if lost:
        raise PreconditionFailed(
            "private/run.key is missing; restore it from a backup. Without it the run's teachers and answers are lost"
        )


def ask(run: LoadedRun, asked: Any, *, watch: Watch | None = None, tell: Callable[[str], None] | None = None) -> Asked:
    """Ask the ensemble of a run about the rows of a file, or of a table; what it leaves out is left out of them.
    `watch`: where teachers that were not kept are trained again, and come out the same. `tell`: takes a line on cells
    that count as missing though something stands in them.
    """
    rows, earlier, unread = _new_rows(run, asked)
    with run.open_ledger(bind=True) as ledger:
        online = open_run(run, ledger, watch)
        before = ledger.head.sequence
        answers = online.ask(rows, earlier)
        if ledger.head.sequence > before:
            publish_answers(run, ledger, online.answers.reservation)
    if unread and tell is not None:
        tell(unread)
    return answers


def open_run(run: LoadedRun, ledger: Ledger, watch: Watch | None = None) -> OpenEnsemble:
    """Open the ensemble of a run; its teachers are read, or trained again where they were not kept: the same ones."""
    task, reservation, stages = run.task, run.charge.find(ledger), FolderStages(run.folder.private)
    if reservation is None and is_finished(run.folder):
        raise PreconditionFailed(
            "the settings or files differ from the finished run's, so its teachers cannot be asked; put them back"
        )
    if not task.leaves_labels or reservation is None:
        finished = reservation is not None and not reservation.remaining("label")
    else:
        finished = stages.load(FINISHED, finished_key(task, run.charge_key)) is not None
    if reservation is None or not finished:
        raise PreconditionFailed(
            f"the labels of this run are not all released yet; first: quorate run {for_shell(run.folder.root)}"
        )
    refuse_other_pool(task, reservation)
    see = watch or (lambda stage, done, total: None)
    return open_online(task, reservation, lambda: teachers(task, stages, see, shards=shards_to_train(task)))


def _new_rows(run: LoadedRun, asked: Any) -> tuple[Rows, Rows, str]:
    """Take the rows that are asked about (:func:`question_rows`), and say which of their cells count as missing."""
    task, data, name = run.task, run.settings.data, "X"
    if isinstance(asked, Path):
        name, file = asked.name, asked
        asked = read_public(data, file, task.inputs.public, drop=data.left_out).X
        refuse_uneven_rows(file, data.dialect)
    rows = question_rows(task, asked, name, left_out=data.left_out)
    unread = {} if task.inputs.declared is not None else reader_of(task.inputs, task.views.teacher).unread(asked)
    return *rows, unread_in_words(unread, name) if unread else ""


def publish_answers(run: LoadedRun, ledger: Ledger, reservation: Reservation) -> None:
    """Have the report say what was answered since. Answers are given out even where somebody has changed the report."""
    if not is_finished(run.folder):
        return
    with suppress(PreconditionFailed):  # said by quorate report and quorate export, which read the same files
        facts = read_facts(run.folder.root)
        publish_facts(run.folder, with_later_answers(facts, run.task, ledger, reservation))
