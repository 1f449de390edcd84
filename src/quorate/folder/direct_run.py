"""A run of the direct method in a folder: read what ``quorate.toml`` names, go the rounds, write what may leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import disk_usage
from time import process_time
from typing import Any, ClassVar

import numpy as np

from quorate.ambient import one_thread
from quorate.arguments import count
from quorate.data import PublicPool, encode_labels, take
from quorate.data.column_kinds import ColumnKinds
from quorate.data.file_reading import bytes_of, files_of, format_of
from quorate.data.reading import bytes_held, has_named_columns
from quorate.data.rows import Rows
from quorate.data.spool import IN_MEMORY
from quorate.direct.config import DirectConfig
from quorate.direct.flow import DirectResult
from quorate.direct.look import look_at_rounds
from quorate.direct.method import ROUNDS, cautions_of
from quorate.direct.spool import units_of
from quorate.direct.task import DirectTask, left_out
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.findings import Finding, note
from quorate.folder.data_settings import DataSettings
from quorate.folder.folder import RunFolder
from quorate.folder.notes import direct_notes, line_breaks_caution, notes_on_ids, numbers_caution
from quorate.folder.prepared import (
    Evaluation,
    PreparedRun,
    scheduler_of,
)
from quorate.folder.published import POOL
from quorate.folder.settings import Settings, arguments_of, settings_of
from quorate.folder.stages import FolderStages
from quorate.folder.table_source import file_of, is_large, same_source
from quorate.folder.tables import (
    pool_of,
    private_ids,
    read_pool,
    read_private_cells,
    read_public,
    refuse_other_columns,
    refuse_unknown_drop,
)
from quorate.release.keys import fingerprint_key
from quorate.release.target import noise_and_key
from quorate.report import Facts, Score
from quorate.report.utility import NumberScore
from quorate.run.drawn_rows import parquet_of
from quorate.run.expected import Expected
from quorate.run.look import Look, Names
from quorate.run.method import Method
from quorate.run.progress import PARTS, duration
from quorate.run.remarks import remarks
from quorate.run.resources import allowed_memory
from quorate.run.scores import score_numbers
from quorate.run.usable_rows import PrivateTable, UsableRows
from quorate.students.temperature import require_rows
from quorate.types import Secret, Watch

NOTHING_TO_ASK = (
    "there is nothing to ask: the direct method has no teachers. Its model is published, and every prediction is free: "
    "quorate predict RUN TABLE --out PATH, or in Python predict(X). A run whose teachers can be asked has "
    "online_answers = 100, or another number, under [mechanism] before it begins"
)
_OF_A_CELL = 3  # bytes in a file, where no public file of its kind tells
_PLAYED, _ROWS_OF_A_PERSON = 4_096, 4
_AT_LEAST, _OF_A_ROW = 6e8, 250  # bytes in memory: libraries and blocks; labels, numbers of units and digests of a row


@dataclass(frozen=True, slots=True)
class DirectRun(PreparedRun):
    """A run's folder, what it asks for, and the task that follows from its files."""

    task: DirectTask
    method: ClassVar[Method[DirectTask]] = ROUNDS

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What its owner should hear before the budget is spent, from public facts alone."""
        data = self.settings.data
        name = "the public rows" if data.public is None else data.public.name
        looks = (line_breaks_caution, numbers_caution)
        of_tables = [finding for look in looks for finding in remarks(partial(lambda look: [look(data)], look))]
        cautions = cautions_of(self.task, pool_name=name, left_out=data.drop)
        return (*[finding for finding in of_tables if finding.applies], *cautions)

    def notes(self) -> Iterable[Finding]:
        """Return that the private rows are not looked at, and what there is to say about the public ones."""
        return direct_notes(self.settings.data, self.task.schema.pool)

    def private_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return what the size of the file tells; no other word of a direct run depends on private rows."""
        return Secret(size_notes(self))

    @one_thread()
    def look(self) -> Secret[Look | None]:
        """Look at the private table, whose labels and ids are read again for that: a run holds neither."""
        data = self.settings.data
        public = None if data.public is None else pool_of(data, read_pool(data))
        declared, n_features = _declared(self.settings, public)
        place = partial(self.folder.place_for_rows, begin=False)
        private = read_private_cells(data, public, n_features=n_features, folder=place, declared=tuple(declared or ()))
        names = Names(data.private.name, data.public_side)
        return look_at_rounds(
            self.task, private.y, private_ids(data, private), names=names, ids=lambda ids: notes_on_ids(data, ids)
        )

    @one_thread()
    def expected(self) -> tuple[Expected | None, float]:
        """Rehearse a run on its labelled public rows, with settings alone: no private row has a part in it."""
        from quorate.folder.planned import expected_of_direct

        return expected_of_direct(self.folder.root, self.settings, n_records=self.task.plan.n_units)

    @property
    def published_table(self) -> tuple[Rows, ColumnKinds]:
        """The pool, public or drawn, as the model reads it."""
        return self.task.schema.pool, self.task.schema.kinds

    def pool_as_taken(self) -> Any:
        """Return the public rows as the model takes them; None where there are none of which labels are alike."""
        return self.task.schema.kinds(self.task.schema.pool) if self.task.has_public_pool else None

    def score_published(self, model: Any, tell: Callable[[str], None] | None) -> Score | NumberScore | None:
        """Score the model, unless private rows are among those with labels, which its owner alone is told."""
        if self.evaluation is None:
            return None
        if self.task.records.are_in(self.evaluation.X):
            if tell is not None:
                tell(left_out("[data] evaluation"))
            return None
        if (held := self.task.target_range) is not None:
            return score_numbers(held.clipped(model.predict(self.evaluation.X)), self.evaluation.truth)
        return self.score(model, self.evaluation.X, self.evaluation.truth)

    def rows_to_calibrate(self, tell: Callable[[str], None] | None) -> Evaluation | None:
        """Return them, unless private rows are among them, which its owner alone is told."""
        if self.calibration is None or not self.task.records.are_in(self.calibration.X):
            return self.calibration
        if tell is not None:
            tell(left_out("[data] calibration", "calibration"))
        return None

    def files(self, result: DirectResult, facts: Facts) -> Mapping[str, str | bytes]:
        """Return the pool, where one was drawn."""
        return {POOL: parquet_of(self.task.schema.pool)} if self.task.drawn is not None else {}


def read_direct(
    root: Path, *, begin: bool = True, settings: Settings | None = None, watch: Watch | None = None
) -> DirectRun:
    """Read a run's settings and files, and fix everything that the rounds follow from.

    `root`: the run's folder. `begin`: whether a run that has no folders yet gets them; where not, nothing is written.
    `settings`: what :func:`~quorate.folder.settings.settings_of` has read for this folder; read here where it is not
    given. `watch`: ``watch(stage, done, total)``, where the private file is large. Raises PreconditionFailed,
    InvalidParameter, DataRefused what is wrong, in one line; nothing was charged. No private row decides on it.
    """
    folder = RunFolder(root)
    folder.refuse_wrong_ledger()
    settings = settings_of(root) if settings is None else settings
    data = settings.data
    refuse_unknown_drop(data)
    public = None if data.public is None else pool_of(data, read_pool(data))
    declared, n_features = _declared(settings, public)
    watch = watch if is_large(data.private) else None
    if watch is not None:
        watch("private rows", 0, PARTS)  # before the labels, which lie in the whole of a text
    place = partial(folder.place_for_rows, begin=begin)
    private = read_private_cells(data, public, n_features=n_features, folder=place, declared=tuple(declared or ()))
    if begin:
        folder.make()
    noise, _ = noise_and_key(settings.run.unsafe_noise_seed)
    ledger_key = folder.ledger.with_name(f"{folder.ledger.name}.key")
    task = ROUNDS.prepare(
        replace(
            DirectConfig(**arguments_of(settings, DirectConfig)),
            feature_map=_feature_map(settings.method.feature_map),
            schema=declared,
            unit=data.whose,
            dialect=data.dialect,
            scheduler=scheduler_of(settings.run, folder),
        ),
        private.X,
        private.y,
        public=public,
        groups=private_ids(data, private),
        fingerprint_key=fingerprint_key(folder.ledger if begin or folder.has_ledger or ledger_key.exists() else None),
        noise=noise,
        stages=FolderStages(folder.private),
        terms=folder.terms(settings.budget.composition),
        watch=watch,
    )
    return DirectRun(
        folder, settings, task, _labelled_rows(data, task, "evaluation"), _labelled_rows(data, task, "calibration")
    )


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


def _labelled_rows(data: DataSettings, task: DirectTask, key: str) -> Evaluation | None:
    """Read public rows with labels, by their key; whether private ones are among them is asked after the rounds.

    Raises DataRefused if they do not fit the pool, or are the private file.
    """
    source = data.tables.get(key)
    if source is None:
        return None
    name = f"[data] {key}"
    if same_source(source, data.private):
        raise DataRefused(
            f"{name} is the private file again; what is made of it would be published without a charge. Give public "
            "rows with labels, about nobody in the private table, or leave it out"
        )
    drop = [*([data.unit] if data.unit else []), *data.drop]
    table = read_public(data, source, task.schema.pool, label=data.label, drop=drop)
    refuse_other_columns(data, table.X, source, task.schema.pool)
    rows, usable = task.schema.parsed(table.X, source.name)
    if not usable.all():
        raise DataRefused(
            f"{name}, {source.name}: a cell is none of what its column holds in the public pool; mend it, or drop its "
            "row"
        )
    name_of_column = f"{source.name}, column {data.label!r}"
    if task.target_range is not None:
        return Evaluation(task.schema.kinds(rows), task.target_range.public_numbers(table.y, name=name_of_column))
    codes = encode_labels(table.y, task.classes, name=name_of_column)
    if key == "calibration":
        require_rows(len(codes), name=name)
    return Evaluation(task.schema.kinds(rows), np.asarray(list(task.classes))[codes])


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
    disk = stored if stored > IN_MEMORY else 0
    held = bytes_held(data.private)
    memory = _AT_LEAST + _OF_A_ROW * rows + min(stored, IN_MEMORY) + held
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
