"""A run in a folder: read what ``quorate.toml`` names, go the main way stage by stage, write what may leave."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from quorate.data.formats import Table
from quorate.data.reading import has_named_columns
from quorate.data.stream import Workspace
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.folder.choice import NOTHING_CHOSEN
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import labelled_rows, of_votes
from quorate.folder.loaded import LoadedRun, earlier_configs, has_begun, named_as_begun
from quorate.folder.prepared import scheduler_of
from quorate.folder.published import is_finished, read_facts
from quorate.folder.sections import MechanismSettings
from quorate.folder.settings import DECISION_THRESHOLD, Settings, arguments_of, settings_of
from quorate.folder.tables import (
    pool_of,
    private_ids,
    read_pool,
    read_private,
    read_private_cells,
    refuse_unknown_drop,
)
from quorate.labelling.active import Strategy, named
from quorate.release.charge import SEEDED_CLIENT, noise_and_key
from quorate.release.keys import read_or_create_key
from quorate.run.expected import is_hopeless, refuse_hopeless
from quorate.run.resources import allowed_memory
from quorate.run.stage_store import FolderStages
from quorate.students.decision_threshold import require_probabilities
from quorate.types import Watch
from quorate.voting.config import RunConfig
from quorate.voting.method import VOTES
from quorate.voting.models import mechanism_of, student_of, teacher_of
from quorate.voting.task import Task


def load_run(
    root: Path,
    *,
    begin: bool = True,
    settings: Settings | None = None,
    try_models: bool = True,
    watch: Watch | None = None,
) -> LoadedRun:
    """Read a run's settings and files, and check everything that can be checked before anything is fitted.

    `begin`: whether a run that has no key and no folders yet gets them; where not, nothing is written, and keys are
    made up. `try_models`: whether models of the user's own are tried on public rows; those of a run that was charged
    were tried before. `watch`: ``watch("private rows", done, total)``, in parts of the private table.
    Raises PreconditionFailed, InvalidParameter, DataRefused what is wrong, in one line; nothing was charged.
    """
    folder = RunFolder(root)
    folder.refuse_wrong_ledger()
    settings = settings_of(root) if settings is None else settings
    if settings.method.by == "auto":
        raise PreconditionFailed(NOTHING_CHOSEN)
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
            public=None if public is None else pool_of(data, public),
            groups=private_ids(data, private),
            key=key,
            fingerprint_key=folder.fingerprint_key(begin=begin),
            noise=noise,
            terms=None if public is not None else folder.terms(settings.budget.composition),
            watch=watch,
        )
        task = on_kept_pool(task, folder)
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


def on_kept_pool(task: Task, folder: RunFolder) -> Task:
    """Return the task on the pool that was drawn for it, where it was and is kept."""
    pool = task.kept_pool(FolderStages(folder.private)) if task.draws_pool else None
    return task if pool is None else task.on(pool)


def _tables(folder: RunFolder, settings: Settings, *, memory: int, begin: bool) -> tuple[Table, Table | None]:
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
        unit=data.whose,
        memory=settings.run.bytes_allowed,
        scheduler=scheduler_of(settings.run, folder),
        built_in=not settings.teachers.fields
        and ":" not in settings.teachers.model
        and ":" not in settings.student.model,
        left_out=data.drop,
        pool_name=data.public_side,
        schema=None if data.public is not None else settings.schema,
        neighbours=settings.method.neighbours if data.public is None else "auto",
        dialect=data.dialect,
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
    """Refuse a run that was charged and whose key is gone: another key would mean another partition of the people.

    Raises PreconditionFailed if a finished run, or teachers of a charged one, lie in the folder. A seeded run never had
    a key.
    """
    lost = is_finished(folder) and not read_facts(folder.root).seeded
    if not lost and folder.has_ledger and any(folder.private.glob("*.stage")):
        with folder.look_into_ledger() as ledger:
            lost = any(reservation.client != SEEDED_CLIENT for reservation in ledger.reservations())
    if lost:
        raise PreconditionFailed(
            "private/run.key is missing; restore it from a backup. Without it the run's teachers and answers are lost"
        )
