"""Runs in a folder that read each private cell by itself: by rounds, and by votes for a number.

A row that cannot be used is left out without a word, and no message of such a run depends on a private row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import disk_usage
from time import process_time
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from quorate.ambient import one_thread
from quorate.arguments import count
from quorate.data import PublicPool, take
from quorate.data.file_reading import bytes_of, files_of, format_of
from quorate.data.formats import Table, has_named_columns
from quorate.data.reading import bytes_held
from quorate.data.spool import most_held
from quorate.direct.config import DirectConfig
from quorate.direct.flow import DirectResult
from quorate.direct.method import ROUNDS
from quorate.direct.spool import units_of
from quorate.direct.task import DirectTask
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.findings import Finding, note
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import Evaluation, labelled_rows, of_cells
from quorate.folder.notes import direct_notes, line_breaks_caution, notes_on_ids, numbers_caution
from quorate.folder.prepared import PreparedRun, scheduler_of
from quorate.folder.published import POOL
from quorate.folder.settings import Settings, arguments_of, settings_of
from quorate.folder.table_source import file_of, is_large
from quorate.folder.tables import private_ids, read_pool, read_private_cells, refuse_unknown_drop
from quorate.release.charge import noise_and_key
from quorate.report import Facts, Score
from quorate.report.utility import NumberScore
from quorate.run.cell_task import left_out
from quorate.run.drawn_rows import parquet_of
from quorate.run.expectation import Expected
from quorate.run.look import Look, look_by_cells
from quorate.run.method import Method
from quorate.run.progress import PARTS, duration
from quorate.run.remarks import remarks
from quorate.run.resources import allowed_memory, processes
from quorate.run.scores import score_numbers
from quorate.run.stage_store import FolderStages
from quorate.run.usable_rows import PrivateTable, UsableRows
from quorate.students.prediction_sets import Calibration, Limits, promised
from quorate.types import Secret, Watch
from quorate.voting.models import regressor_of
from quorate.voting.number_method import NUMBER_VOTES
from quorate.voting.numbers import NumberConfig, NumberTask

_OF_A_CELL = 3  # bytes in a file, where no public file of its kind tells
_PLAYED, _ROWS_OF_A_PERSON = 4_096, 4
# Bytes in memory: of libraries and blocks; of a row's class; of a person's row, with ids and places.
_AT_LEAST, _OF_A_ROW, _OF_A_PERSONS_ROW = 4.5e8, 1, 80
_OF_HASHES, _OF_IDS = (24, 8, 8), (24, 16)  # bytes of a row in each store of hashes; of ids and their hashes


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read for a task; `declared`: of the columns, where no public row says it."""

    folder: RunFolder
    settings: Settings
    public: PublicPool | None
    declared: Any
    private: Table
    begin: bool
    watch: Watch | None

    def prepared(self, method: Method[Any], config: Any, *, seeded_key: bool = False, **more: Any) -> Any:
        """Prepare the task of a method; `seeded_key`: whether its key is that of seeded noise, where noise is."""
        noise, key = noise_and_key(self.settings.run.unsafe_noise_seed)
        return method.prepare(
            config,
            self.private.X,
            self.private.y,
            public=self.public,
            groups=private_ids(self.settings.data, self.private),
            fingerprint_key=self.folder.fingerprint_key(begin=self.begin),
            noise=noise,
            key=key if seeded_key and noise.seeded else None,
            terms=self.folder.terms(self.settings.budget.composition),
            **more,
        )


@dataclass(frozen=True, slots=True)
class CellRun(PreparedRun):
    """A run whose private rows are read cell by cell; its task has a schema, records, and a range for a number."""

    @classmethod
    def read(
        cls,
        root: Path,
        *,
        begin: bool = True,
        settings: Settings | None = None,
        watch: Watch | None = None,
        public_alone: bool = False,
        **_: Any,
    ) -> Self:
        """Read a run's settings and files, and fix all that follows from them; no private row decides on a refusal.

        `begin`: whether a run that has no folders yet gets them; where not, nothing is written. `watch`: where the
        private file is large. `public_alone`: whether that file is not opened, and stands for no row.
        """
        folder = RunFolder(root)
        folder.refuse_wrong_ledger()
        settings = settings_of(root) if settings is None else settings
        data = settings.data
        watch = watch if watch is not None and is_large(data.private) else None
        public, declared, private = _read_tables(folder, settings, begin=begin, watch=watch, public_alone=public_alone)
        if begin:
            folder.make()
        task = cls._task(_Read(folder, settings, public, declared, private, begin, watch))
        return cls(folder, settings, task, *labelled_rows(of_cells, data, task))

    @staticmethod
    @abstractmethod
    def _task(read: _Read) -> Any:
        """Prepare the task of the method."""

    @property
    def table_cautions(self) -> tuple[Finding, ...]:
        """What the public tables say by themselves."""
        data, looks = self.settings.data, (line_breaks_caution, numbers_caution)
        findings = [finding for look in looks for finding in remarks(partial(lambda look: [look(data)], look))]
        return tuple(finding for finding in findings if finding.applies)

    def notes(self) -> Iterable[Finding]:
        """Return that the private rows are not looked at, and what there is to say about the public ones."""
        return direct_notes(
            self.settings, self.task.schema.pool, self.folder.root, voted=isinstance(self.task, NumberTask)
        )

    @one_thread()
    def look(self) -> Secret[Look | None]:
        """Look at the private table, whose labels and ids are read again for that: a run holds neither."""
        data = self.settings.data
        _, _, private = _read_tables(self.folder, self.settings, begin=False)
        ids = private_ids(data, private)
        return look_by_cells(self.task, private.y, ids, names=self.names, ids=partial(notes_on_ids, data))

    def score_published(self, model: Any, tell: Callable[[str], None] | None) -> Score | NumberScore | None:
        """Score the model, unless private rows are among those with labels, which its owner alone is told."""
        if self.evaluation is None:
            return None
        if self.task.records.are_in(self.evaluation.table):
            if tell is not None:
                tell(left_out("[data] evaluation"))
            return None
        if (held := self.task.target_range) is not None:
            return score_numbers(held.clipped(model.predict(self.evaluation.X)), self.evaluation.truth)
        return self.score(model, self.evaluation.X, self.evaluation.truth)

    def calibration_notes(self) -> Iterator[Finding]:
        """Yield what prediction sets, or intervals of a number, will promise."""
        if self.task.target_range is None:
            yield from PreparedRun.calibration_notes(self)
        elif self.calibration is not None:
            promise = promised(len(self.calibration.truth), of="intervals")
            yield note("prediction-sets", f"{self.settings.data.calibrates}: {promise}")

    def calibrated(self, model: Any, tell: Callable[[str], None] | None) -> tuple[Any, Calibration | Limits | None]:
        """Return the model as it is calibrated; of a number how far off it is, with the model as it is."""
        held = self.task.target_range
        if held is None:
            return PreparedRun.calibrated(self, model, tell)
        rows = self.rows_to_calibrate(tell)
        if rows is None:
            return model, None
        return model, Limits.of(np.abs(rows.truth - held.clipped(model.predict(rows.X))), width=held.width)

    def rows_to_calibrate(self, tell: Callable[[str], None] | None) -> Evaluation | None:
        """Return them, unless private rows are among them, which its owner alone is told."""
        if self.calibration is None or not self.task.records.are_in(self.calibration.table):
            return self.calibration
        if tell is not None:
            tell(left_out(str(self.settings.data.calibrates), "calibration"))
        return None


@dataclass(frozen=True, slots=True)
class NumberRun(CellRun):
    """A run of votes for a number: teachers predict it on public rows, and their noisy means are released."""

    task: NumberTask
    method: ClassVar[Method[NumberTask]] = NUMBER_VOTES
    nothing_to_ask: ClassVar[str] = (
        "there is nothing to ask: votes for a number keep no answers back. The model is published, and every "
        "prediction is free: quorate predict RUN TABLE --out PATH, or in Python predict(X)"
    )
    no_internal: ClassVar[str] = (
        "there is no internal edition of the report of a number: it shows votes and margins of classes. The public one "
        "says all there is"
    )

    def expected(self) -> NoReturn:
        """Refuse a rehearsal."""
        raise InvalidParameter(
            "--rehearse foretells how many public rows a model labels right, and [data] target is a number; leave it "
            "out. The run itself scores the model on [data] evaluation"
        )

    @staticmethod
    def _task(read: _Read) -> Any:
        config = replace(
            NumberConfig(**arguments_of(read.settings, NumberConfig)),
            teacher=regressor_of(read.settings.teachers.model, folder=read.folder.root),
            n_jobs=processes(read.settings.run.n_jobs),
            scheduler=scheduler_of(read.settings.run, read.folder),
        )
        return read.prepared(NUMBER_VOTES, config, seeded_key=True)


@dataclass(frozen=True, slots=True)
class DirectRun(CellRun):
    """A run of the direct method: noisy gradient rounds on the private rows themselves."""

    task: DirectTask
    method: ClassVar[Method[DirectTask]] = ROUNDS
    nothing_to_ask: ClassVar[str] = (
        "there is nothing to ask: the direct method has no teachers. Its model is published, and every prediction is "
        "free: quorate predict RUN TABLE --out PATH, or in Python predict(X). To ask teachers, begin another run with "
        'by = "votes" under [method] and online_answers = 100 (or another number) under [mechanism]'
    )
    no_internal: ClassVar[str] = (
        "there is no internal edition of this report: the direct method has no votes, margins or teachers to show "
        "there. The public one says all there is"
    )

    def private_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return what the size of the file tells; no other word of a direct run depends on private rows."""
        return Secret(size_notes(self))

    @one_thread()
    def expected(self) -> tuple[Expected | None, float]:
        """Rehearse a run on its labelled public rows, with settings alone: no private row has a part in it."""
        from quorate.folder.planned import expected_of_direct

        return expected_of_direct(self.settings, self.task)

    def files(self, result: DirectResult, facts: Facts) -> Mapping[str, str | bytes]:
        """Return the pool, where one was drawn."""
        return {POOL: parquet_of(self.task.schema.pool)} if self.task.drawn is not None else {}

    @staticmethod
    def _task(read: _Read) -> Any:
        config = replace(
            DirectConfig(**arguments_of(read.settings, DirectConfig)),
            feature_map=_feature_map(read.settings.method.feature_map),
            schema=read.declared,
            scheduler=scheduler_of(read.settings.run, read.folder),
        )
        return read.prepared(ROUNDS, config, stages=FolderStages(read.folder.private), watch=read.watch)


def _read_tables(
    folder: RunFolder,
    settings: Settings,
    *,
    begin: bool,
    watch: Watch | None = None,
    public_alone: bool = False,
) -> tuple[PublicPool | None, Any, Table]:
    """Read the pool, what was declared of columns in its place, and private cells as they are.

    `begin`: whether a place for rows that memory does not hold is made. `watch`: of a large file. `public_alone`:
    whether the private file is not opened, and stands for no row.
    """
    data = settings.data
    refuse_unknown_drop(data)
    public = None if data.public is None else read_pool(data)
    declared, n_features = _declared(settings, public)
    if public_alone:
        assert public is not None  # noqa: S101 - the caller's condition
        nobody: list[str] | None = None if data.unit is None else []
        return public, declared, Table(X=take(public.rows(), np.arange(0)), y=np.empty(0), unit=nobody)
    if watch is not None:
        watch("private rows", 0, PARTS)  # before the labels, which lie in the whole of a text
    place = partial(folder.place_for_rows, begin=begin)
    how: dict[str, Any] = {"folder": place, "declared": tuple(declared or ()), "memory": settings.run.bytes_allowed}
    return public, declared, read_private_cells(data, public, n_features=n_features, **how)


def _declared(settings: Settings, public: PublicPool | None) -> tuple[Any, int]:
    """Return what was declared of a table's columns, if it was, and the public number of columns of sparse rows."""
    if public is not None:
        return None, public.width
    declared: Any = settings.schema
    if has_named_columns(settings.data.private, settings.data.dialect):
        return declared, len(declared)
    if set(declared) != {"columns"}:
        raise InvalidParameter(
            "[schema] of sparse rows, which have no names, is their number of columns alone. Example: columns = 5000"
        )
    return None, count("[schema] columns", declared["columns"], at_least=1)


def _feature_map(given: str | Path) -> Any:
    """Return the name of a feature map, or the fitted transformer that a file holds."""
    if isinstance(given, str):
        return given
    from quorate.deferred import skops

    try:
        return skops.io.load(given)
    except Exception as error:  # noqa: BLE001 - whatever skops raises
        raise PreconditionFailed(
            f"[method] feature_map: {given} is no transformer that skops opens without being told to trust it "
            f"({type(error).__name__}); write a fitted one with skops.io.dump"
        ) from None


def size_notes(run: DirectRun) -> tuple[Finding, ...]:
    """Say which time, memory and disk a large file of private rows will take, by what the file system says of its size.

    The number of rows is guessed from the public file; a part of that is played, to see how fast this machine is. It is
    for the terminal of its owner: the size of a private file is in no JSON, log or report.
    """
    data, task = run.settings.data, run.task
    file = file_of(data.private)
    if file is None or not is_large(data.private):
        return ()
    size = bytes_of(file)
    bytes_each = _OF_A_CELL * max(task.schema.pool.shape[1], 1)
    if isinstance(data.public, Path) and task.has_pool and _suffix(data.public) == _suffix(file):
        bytes_each = bytes_of(data.public) / task.n_public
    rows = size / max(bytes_each, 1.0)
    cpu, kept = _of_a_row(task)
    seconds, stored = rows * cpu, int(rows * kept)
    most = most_held(run.settings.run.bytes_allowed)
    of_hashes = (*_OF_HASHES, *(_OF_IDS if task.grouped else ()))
    hashes = [size * int(rows) for size in of_hashes if size * rows > most // 16]
    disk = (stored if stored > most else 0) + sum(hashes)
    held = bytes_held(data.private)
    memory = _AT_LEAST + (_OF_A_PERSONS_ROW if task.grouped else _OF_A_ROW) * rows + min(stored, most) + held
    place = run.folder.private if run.folder.private.is_dir() else run.folder.root
    free = disk_usage(place).free
    words = (
        f"{file.name} has {_bytes(size)}: expect about {duration(seconds)} of one core, {_bytes(memory)} of "
        f"memory and {_bytes(disk) if disk else 'nothing'} on the disk of private/"
    )
    if disk > free:
        words += f", where {_bytes(free)} are free: make room, or the run is refused before its charge"
    if memory > (machine := 4 * allowed_memory(None)):
        words += f". This machine allows {_bytes(machine)} of memory: take one with more"
        words += ", or save the table as Parquet, which is read in parts" if held else ""
    return (note("size-of-the-run", words),)


def _suffix(table: Path) -> str:
    return format_of(next(iter(files_of(table)), table))


def _of_a_row(task: DirectTask) -> tuple[float, float]:
    """Do with public rows what a run does with private ones; return seconds, and bytes of coordinates, for each."""
    schema, begun = task.schema, process_time()
    table = PrivateTable(schema, take(schema.pool, np.arange(_PLAYED) % schema.pool.shape[0]))
    table.known()
    whose = np.arange(_PLAYED) // _ROWS_OF_A_PERSON if task.grouped else None
    private = UsableRows(table, np.arange(_PLAYED) % task.plan.n_codes, whose, _PLAYED)
    units, read = units_of(task.plan.coordinates, private), process_time() - begun
    begun = process_time()
    with np.errstate(all="ignore"):
        units.summing(task.plan.grid)(task.plan.start + 1.0)
    rounds = task.plan.settings.rounds * (process_time() - begun)
    return (2 * read + rounds) / _PLAYED, units.spool.size / _PLAYED


def _bytes(number: float) -> str:
    return f"{number / 1e9:.2g} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
