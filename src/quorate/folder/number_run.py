"""A run of votes for a number in a folder: teachers predict it on public rows, and their noisy means are released."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, NoReturn

from quorate.errors import InvalidParameter
from quorate.findings import Finding
from quorate.folder.cell_run import CellRun, read_tables
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import labelled_rows, of_cells
from quorate.folder.notes import direct_notes
from quorate.folder.prepared import scheduler_of
from quorate.folder.settings import Settings, arguments_of
from quorate.folder.table_source import is_large
from quorate.folder.tables import private_ids
from quorate.release.charge import noise_and_key
from quorate.report import Facts
from quorate.run.method import Method
from quorate.run.resources import processes
from quorate.types import Secret, Watch
from quorate.voting.models import regressor_of
from quorate.voting.number_flow import NumberResult
from quorate.voting.number_method import NUMBER_VOTES, cautions_of
from quorate.voting.numbers import NumberConfig, NumberTask

NOTHING_TO_ASK = (
    "there is nothing to ask: votes for a number keep no answers back. The model is published, and every prediction is "
    "free: quorate predict RUN TABLE --out PATH, or in Python predict(X)"
)


@dataclass(frozen=True, slots=True)
class NumberRun(CellRun):
    """A run's folder, what it asks for, and the task that follows from its files."""

    task: NumberTask
    method: ClassVar[Method[NumberTask]] = NUMBER_VOTES
    nothing_to_ask: ClassVar[str] = NOTHING_TO_ASK
    no_internal: ClassVar[str] = (
        "there is no internal edition of the report of a number: it shows votes and margins of classes. The public one "
        "says all there is"
    )

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What its owner should hear before the budget is spent, from public facts alone."""
        data = self.settings.data
        return *self.table_cautions, *cautions_of(self.task, pool_name=data.pool.name, left_out=data.drop)

    def notes(self) -> Iterable[Finding]:
        """Return that the private rows are not looked at, and what there is to say about the public ones."""
        return direct_notes(self.settings, self.task.schema.pool, voted=True)

    def private_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return nothing: no word of such a run depends on private rows."""
        return Secret(())

    def expected(self) -> NoReturn:
        """Refuse a rehearsal."""
        raise InvalidParameter(
            "--rehearse foretells how many public rows a model labels right, and [data] target is a number; leave it "
            "out. The run itself scores the model on [data] evaluation"
        )

    def files(self, result: NumberResult, facts: Facts) -> Mapping[str, str | bytes]:
        """Return nothing beside the model."""
        return {}


def read_numbers(
    root: Path, *, begin: bool, settings: Settings, watch: Watch | None = None, public_alone: bool = False
) -> NumberRun:
    """Read a run's files, and fix everything that the votes follow from.

    The arguments are those of :func:`~quorate.folder.direct_run.read_direct`. Raises PreconditionFailed,
    InvalidParameter, DataRefused what is wrong, in one line; nothing was charged. No private row decides on it.
    """
    folder, data = RunFolder(root), settings.data
    folder.refuse_wrong_ledger()
    watch = watch if watch is not None and is_large(data.private) else None
    public, _, private = read_tables(folder, settings, begin=begin, watch=watch, public_alone=public_alone)
    if begin:
        folder.make()
    noise, seeded_key = noise_and_key(settings.run.unsafe_noise_seed)
    config = replace(
        NumberConfig(**arguments_of(settings, NumberConfig)),
        teacher=regressor_of(settings.teachers.model, folder=root),
        unit=data.whose,
        n_jobs=processes(settings.run.n_jobs),
        scheduler=scheduler_of(settings.run, folder),
    )
    task = NUMBER_VOTES.prepare(
        config,
        private.X,
        private.y,
        public=public,
        groups=private_ids(data, private),
        fingerprint_key=folder.fingerprint_key(begin=begin),
        noise=noise,
        key=seeded_key if noise.seeded else None,
        terms=folder.terms(settings.budget.composition),
    )
    return NumberRun(folder, settings, task, *labelled_rows(of_cells, data, task))
