"""A run whose files were read: what it asks for, whether it was begun before, and by which version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.findings import Finding
from quorate.folder.folder import RunFolder
from quorate.folder.prepared import Evaluation, PreparedRun
from quorate.folder.stages import FolderStages
from quorate.ledger import Ledger
from quorate.release import Charge
from quorate.run.stage_store import FIRST_TEACHERS, stage_key
from quorate.voting.config import RunConfig
from quorate.voting.flow import schedule
from quorate.voting.models import EARLIER_TEACHER, teacher_named
from quorate.voting.task import Task


@dataclass(frozen=True, slots=True)
class LoadedRun(PreparedRun):
    """A run's folder, what it asks for, and the task that follows from its files."""

    task: Task
    evaluation: Evaluation | None

    @property
    def charge_key(self) -> str:
        """Idempotency key of the charge: the same work is charged once, however often it is resumed."""
        return self.task.content_key

    @property
    def charge(self) -> Charge:
        """What the run asks of its ledger."""
        return schedule(self.task, self.charge_key)

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What its owner should hear before the budget is spent, from public facts alone."""
        return self.task.recipe.cautions

    @property
    def fingerprint(self) -> str:
        """Keyed hash of the private data, to which the ledger is bound."""
        return self.task.fingerprint

    def charge_on(self, ledger: Ledger) -> Charge:
        """Return what the run asks of any ledger."""
        return self.charge


def earlier_configs(config: RunConfig, run: LoadedRun) -> list[RunConfig]:
    """Return what earlier versions made of the same settings, where something was begun in the folder.

    Then a weight could not name a class, an entry with blanks around it was another category, and the teachers that
    votes had by default were others.
    """
    if not _may_have_begun(run.folder):
        return []
    configs = [config, *([_by_shard(config)] if run.task.names_classes else [])]
    configs += [_with_earlier_defaults(each) for each in configs]
    if run.task.respells:
        configs += [replace(each, words_as_written=True, rehearse=False) for each in configs]
    return configs[1:]


def named_as_begun(of: Callable[[RunConfig], LoadedRun], config: RunConfig, folder: RunFolder) -> LoadedRun:
    """Make a run of settings, with weights for numbers in a shard only where it was begun when these meant that."""
    try:
        run = of(config)
        bool(run.task.names_classes)  # refuses what is none of the classes, where no rehearsal did
    except InvalidParameter:
        if not _may_have_begun(folder) or not has_begun(run := of(_by_shard(config))):
            raise
    return run


def has_begun(run: LoadedRun) -> bool:
    """Whether the folder holds teachers of this very run, or its charge: their keys are made of all settings."""
    key = stage_key(run.task.key, FIRST_TEACHERS, run.task.stage_inputs)
    if FolderStages(run.folder.private).load(FIRST_TEACHERS, key) is not None:
        return True
    if not run.folder.may_have_begun:
        return False
    try:
        with run.folder.look_into_ledger() as ledger:
            return run.charge.find(ledger) is not None
    except PreconditionFailed:  # it was killed before the first entry; whatever else it is, the run itself will meet
        return False


def _may_have_begun(folder: RunFolder) -> bool:
    return folder.may_have_begun or any(folder.private.glob("*.stage"))


def _with_earlier_defaults(config: RunConfig) -> RunConfig:
    teacher = teacher_named(EARLIER_TEACHER) if config.teacher is None else config.teacher
    return replace(config, earlier_defaults=True, teacher=teacher, rehearse=False)


def _by_shard(config: RunConfig) -> RunConfig:
    return replace(config, classes_by_shard=True, rehearse=False)  # its models were tried when it was begun
