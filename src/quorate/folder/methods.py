"""What is done with a run, whichever method it has: read, check, execute.

Which method reads a run says the table in :mod:`quorate.plugins`. Nothing else in this room or in the command line
asks which one a run has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.accounting.figures import at_most
from quorate.ambient import one_thread
from quorate.arguments import for_shell, shown
from quorate.errors import InvalidParameter, PreconditionFailed, naming
from quorate.findings import Finding
from quorate.folder.batch import ask as ask_ensemble
from quorate.folder.batch import load_run
from quorate.folder.cell_run import NumberRun
from quorate.folder.choice import keep_choice, nothing_chosen
from quorate.folder.folder import RunFolder
from quorate.folder.loaded import LoadedRun, facts_for_owner
from quorate.folder.prepared import (
    PreparedRun,
    budget_of,
    explain_settings_change,
    publish_run,
    readers_of,
    write_draft,
)
from quorate.folder.published import is_finished, read_facts
from quorate.folder.settings import Settings, keys_of, read_settings, settings_of
from quorate.folder.sites.settings import combines_sites, read_sites_settings
from quorate.folder.student_rows import published_columns, published_text_table, student_file
from quorate.folder.table_source import is_large
from quorate.ledger import Budget
from quorate.ledger.rules import may_be_raised
from quorate.plugins import METHODS, located
from quorate.release.charge import floor_budget
from quorate.report import Facts, InternalFacts, Utility
from quorate.run.facts import RunMetadata
from quorate.run.look import NO_LOOK
from quorate.run.method import CheckResult, check_of
from quorate.run.pool_cautions import calibrates_twice_caution
from quorate.run.progress import PARTS
from quorate.run.resources import return_freed_memory
from quorate.run.scores import with_calibration
from quorate.run.stage_store import FolderStages
from quorate.types import Secret, Watch

if TYPE_CHECKING:
    from quorate.folder.audited import RunAudit
    from quorate.voting.ask import Asked


def read_run(
    root: Path,
    *,
    begin: bool = True,
    settings: Settings | None = None,
    try_models: bool = True,
    watch: Watch | None = None,
) -> PreparedRun:
    """Read settings and files, and check all that may be refused; nothing private is fitted, and nothing charged. A
    model of the user's own is tried on public rows, unless `try_models` is False: for whoever only reads what a run has
    made.
    """
    settings = settings_of(root) if settings is None else settings
    if settings.method.by == "auto":
        raise PreconditionFailed(nothing_chosen(root))
    with naming(keys_of(settings)):
        read = located(METHODS[settings.method.by].read)
        run: PreparedRun = read(root, begin=begin, settings=settings, try_models=try_models, watch=watch)
    if is_large(settings.data.private):
        return_freed_memory()
    return run


def read_votes(root: Path, *, settings: Settings, watch: Watch | None = None, **how: Any) -> PreparedRun:
    """Read a run of votes, for classes or for a number."""
    if settings.data.range is not None:
        return NumberRun.read(root, settings=settings, watch=watch, **how)
    watch = watch if is_large(settings.data.private) else None
    if watch is not None:
        watch("private rows", 0, PARTS)
    return load_run(root, settings=settings, watch=watch, **how)


def cautions_of(run: PreparedRun) -> tuple[Finding, ...]:
    """Return what the owner of a run should hear before the budget is spent, from public facts alone."""
    if run.calibration is None:
        return run.cautions
    pool, kinds = run.task.published_table
    others = {"[data] public": None if run.pool_as_taken() is None else pool}
    if run.evaluation is not None:
        others["[data] evaluation"] = run.evaluation.X
    twice = calibrates_twice_caution(run.calibration.X, others, str(run.settings.data.calibrates), kinds=kinds)
    return *run.cautions, *((twice,) if twice.applies else ())


@one_thread()
def check(run: PreparedRun, *, look: bool = False, done: bool = False) -> CheckResult:
    """Say what a run would do and cost, or be refused for; `look`: at the private table. Nothing is charged."""
    with naming(keys_of(run.settings)):
        run.check_affordable()
        return check_of(
            run.method,
            run.task,
            chosen=run.settings.chosen,
            notes=(*run.notes(), *run.calibration_notes()),
            cautions=cautions_of(run),
            private_notes=run.private_notes(),
            look=run.look() if look else NO_LOOK,
            names=replace(run.names, act="The run") if done else run.names,
        )


def execute(
    run: PreparedRun,
    *,
    command: str,
    watch: Watch | None = None,
    extra: Utility | None = None,
    tell: Callable[[str], None] | None = None,
) -> Facts:
    """Go the whole way, or on from where a killed run stopped, and write the public side. `command`: what the user
    typed. `extra`: figures that the owner reveals beside the model's. `tell`: prints a line on the owner's terminal
    alone.
    """
    method, folder = run.method, run.folder
    metadata = RunMetadata(
        title=shown(folder.root.resolve().name),
        command=command,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        collection=run.settings.data.collection,
        readers=readers_of(run.settings),
    )
    with naming(keys_of(run.settings)), run.open_ledger() as ledger:
        if run.settings.choice is not None:  # before the charge: what goes on later goes on with it
            keep_choice(run.settings.choice, folder.root)
        with explain_settings_change(run, ledger):
            ledger.bind(run.fingerprint)  # first: another data set is not a question of the budget
            charge = run.charge_on(ledger)
            if charge.find(ledger) is None:
                charge.check_affordable(ledger)
                write_draft(folder, *method.draft(run.task, ledger.budget, metadata))
            elif is_finished(folder):  # typed again, its report says the same
                metadata = replace(metadata, started=read_facts(folder.root).provenance.started)
            result = method.go(run.task, ledger, stages=FolderStages(folder.private), watch=watch)
        task = result.task
        run = replace(run, task=task)
        calibrated, calibration = run.calibrated(result.model, tell)
        model = run.published_model(calibrated, run.pool_as_taken())
        metadata = replace(metadata, utility=(extra or Utility()).of_model(run.score_published(model, tell)))
        facts = replace(
            method.facts(task, result, ledger, metadata), audit_command=f"quorate audit {for_shell(metadata.title)}"
        )
    return publish(run, result, model, with_calibration(facts, calibration))


def audit(run: PreparedRun, **how: Any) -> RunAudit:
    """Attack what a finished run released, by public rows alone."""
    from quorate.folder.audits import AuditOptions, audit_run

    return audit_run(run, AuditOptions(**how))


def ask(run: PreparedRun, rows: Any, *, watch: Watch | None = None, tell: Callable[[str], None] | None = None) -> Asked:
    """Ask the ensemble about the rows of a file or a table, where a run has one, as `quorate.folder.batch.ask` does."""
    if run.nothing_to_ask is not None:
        raise PreconditionFailed(run.nothing_to_ask)
    with naming(keys_of(run.settings)):
        return ask_ensemble(_voted(run), rows, watch=watch, tell=tell)


def internal_facts(run: PreparedRun) -> Secret[InternalFacts]:
    """Gather what only the owner may see. Raises PreconditionFailed if a run has no votes, margins or teachers."""
    if run.no_internal is not None:
        raise PreconditionFailed(run.no_internal)
    return facts_for_owner(_voted(run))


def _voted(run: PreparedRun) -> LoadedRun:
    assert isinstance(run, LoadedRun)  # noqa: S101 - others say why they have no answers and no votes
    return run


def publish(run: PreparedRun, result: Any, model: Any, facts: Facts) -> Facts:
    """Write the public side; `result`: what the method made, `model`: the same model as it decides."""
    pool, kinds = run.task.published_table
    rows = student_file(pool, kinds, images=run.settings.data.images is not None)
    columns = published_columns(run.settings, result.model, pool)
    rows = replace(rows, columns=columns, text_table=None if columns is None else published_text_table(run.settings))
    more, seeded = run.files(result, facts), run.task.noise.seeded
    return publish_run(run.folder, model, facts, more, pool=run.pool_as_taken(), rows=rows, seeded=seeded)


def changed_fingerprint(
    root: Path, *, votes: Path | None = None, classes: str | None = None, n_teachers: int | None = None
) -> str:
    """Return the fingerprint of the data as they are now, for ``quorate ledger open``. A run says in its
    ``quorate.toml`` where they are; the owner of votes made elsewhere by `votes`, `classes` (with commas) and
    `n_teachers`.
    """
    from quorate.folder.external_votes import votes_fingerprint
    from quorate.folder.votes_file import read_votes

    if combines_sites(root):
        from quorate.folder.sites.combined import combine

        return votes_fingerprint(combine(root).votes, root)
    if RunFolder(root).settings.exists():
        if votes is not None or classes is not None:
            raise InvalidParameter(f"--votes and --classes are for votes made elsewhere, and {root} has a quorate.toml")
        return read_run(root, try_models=False).fingerprint
    if votes is None or classes is None:
        raise PreconditionFailed(
            f"{root} has no quorate.toml that names its data, as a release of votes made elsewhere has none; name the "
            "changed file with --votes FILE --classes no,yes"
        )
    file = read_votes(votes, classes=[name.strip() for name in classes.split(",")], n_teachers=n_teachers)
    return votes_fingerprint(file, root)


def larger_budget(root: Path, own: Budget, *, epsilon: float | None = None, delta: float | None = None) -> Budget:
    """Return the budget that a ledger is to be raised to: by ``quorate.toml``, or for votes made elsewhere by the
    larger amounts. What is left out stays as it is. `own`: what the ledger has.
    """
    if combines_sites(root):
        budget = read_sites_settings(root).budget
        return Budget(*floor_budget(budget.epsilon, budget.delta), composition=own.composition)
    if RunFolder(root).settings.exists():
        if epsilon is not None or delta is not None:
            raise InvalidParameter(f"the budget of {root} is raised to that of its quorate.toml; edit [budget] there")
        cap = budget_of(read_settings(RunFolder(root).settings))
        if cap.composition == own.composition and (cap.same_as(own) or not may_be_raised(own, cap)):
            has, wants = (f"epsilon = {at_most(a.epsilon)} and delta = {at_most(a.delta)}" for a in (own, cap))
            asks = f"asks for {wants}, and the ledger has {has}"
            if cap.same_as(own):
                asks = f"says what the ledger has already ({has}), so nothing would be raised"
            raise InvalidParameter(
                f"[budget] of {RunFolder(root).settings} {asks}. Write a larger epsilon or delta there, for all runs "
                "together (the next run needs both), and type this again; neither may become smaller"
            )
        return cap
    if epsilon is None and delta is None:
        raise PreconditionFailed(
            f"{root} has no quorate.toml that says the larger budget, as a release of votes made elsewhere has none; "
            "say it with --epsilon and --delta"
        )
    wanted = floor_budget(own.epsilon if epsilon is None else epsilon, own.delta if delta is None else delta)
    return Budget(*wanted, composition=own.composition)
