"""A run of the direct method in a folder: read what ``quorate.toml`` names, go the rounds, write what may leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import disk_usage
from time import process_time
from typing import Any, ClassVar

import numpy as np

from quorate.ambient import one_thread
from quorate.data import take
from quorate.data.file_reading import bytes_of, files_of, format_of
from quorate.data.reading import bytes_held
from quorate.data.spool import most_held
from quorate.direct.config import DirectConfig
from quorate.direct.flow import DirectResult
from quorate.direct.method import ROUNDS, cautions_of
from quorate.direct.spool import units_of
from quorate.direct.task import DirectTask
from quorate.errors import PreconditionFailed
from quorate.findings import Finding, note
from quorate.folder.cell_run import CellRun, read_tables
from quorate.folder.folder import RunFolder
from quorate.folder.labelled_rows import labelled_rows, of_cells
from quorate.folder.prepared import scheduler_of
from quorate.folder.published import POOL
from quorate.folder.settings import Settings, arguments_of, settings_of
from quorate.folder.table_source import file_of, is_large
from quorate.folder.tables import private_ids
from quorate.release.charge import noise_and_key
from quorate.report import Facts
from quorate.run.drawn_rows import parquet_of
from quorate.run.expected import Expected
from quorate.run.method import Method
from quorate.run.progress import duration
from quorate.run.resources import allowed_memory
from quorate.run.stage_store import FolderStages
from quorate.run.usable_rows import PrivateTable, UsableRows
from quorate.types import Secret, Watch

NOTHING_TO_ASK = (
    "there is nothing to ask: the direct method has no teachers. Its model is published, and every prediction is free: "
    "quorate predict RUN TABLE --out PATH, or in Python predict(X). A run whose teachers can be asked has "
    "online_answers = 100, or another number, under [mechanism] before it begins"
)
_OF_A_CELL = 3  # bytes in a file, where no public file of its kind tells
_PLAYED, _ROWS_OF_A_PERSON = 4_096, 4
# Bytes in memory: of libraries and blocks; of a row's class; of a person's row, with ids and places.
_AT_LEAST, _OF_A_ROW, _OF_A_PERSONS_ROW = 4.5e8, 1, 200
_OF_HASHES = (24, 8, 8)  # bytes of a row in each store of hashes


@dataclass(frozen=True, slots=True)
class DirectRun(CellRun):
    """A run's folder, what it asks for, and the task that follows from its files."""

    task: DirectTask
    method: ClassVar[Method[DirectTask]] = ROUNDS
    nothing_to_ask: ClassVar[str] = NOTHING_TO_ASK
    no_internal: ClassVar[str] = (
        "there is no internal edition of this report: the direct method has no votes, margins or teachers to show "
        "there. The public one says all there is"
    )

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What its owner should hear before the budget is spent, from public facts alone."""
        data = self.settings.data
        name = "the public rows" if data.public is None else data.public.name
        return *self.table_cautions, *cautions_of(self.task, pool_name=name, left_out=data.drop)

    def private_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return what the size of the file tells; no other word of a direct run depends on private rows."""
        return Secret(size_notes(self))

    @one_thread()
    def expected(self) -> tuple[Expected | None, float]:
        """Rehearse a run on its labelled public rows, with settings alone: no private row has a part in it."""
        from quorate.folder.planned import expected_of_direct

        return expected_of_direct(self.folder.root, self.settings, n_records=self.task.plan.n_units)

    def files(self, result: DirectResult, facts: Facts) -> Mapping[str, str | bytes]:
        """Return the pool, where one was drawn."""
        return {POOL: parquet_of(self.task.schema.pool)} if self.task.drawn is not None else {}


def read_direct(
    root: Path,
    *,
    begin: bool = True,
    settings: Settings | None = None,
    watch: Watch | None = None,
    public_alone: bool = False,
) -> DirectRun:
    """Read a run's settings and files, and fix everything that the rounds follow from.

    `begin`: whether a run that has no folders yet gets them; where not, nothing is written. `watch`: where the private
    file is large. `public_alone`: whether that file is not opened, and stands for no row. Raises PreconditionFailed,
    InvalidParameter, DataRefused what is wrong, in one line; nothing was charged. No private row decides on it.
    """
    folder = RunFolder(root)
    folder.refuse_wrong_ledger()
    settings = settings_of(root) if settings is None else settings
    data = settings.data
    watch = watch if watch is not None and is_large(data.private) else None
    public, declared, private = read_tables(folder, settings, begin=begin, watch=watch, public_alone=public_alone)
    if begin:
        folder.make()
    noise, _ = noise_and_key(settings.run.unsafe_noise_seed)
    task = ROUNDS.prepare(
        replace(
            DirectConfig(**arguments_of(settings, DirectConfig)),
            feature_map=_feature_map(settings.method.feature_map),
            schema=declared,
            unit=data.whose,
            dialect=data.dialect,
            scheduler=scheduler_of(settings.run, folder),
            memory=settings.run.bytes_allowed,
        ),
        private.X,
        private.y,
        public=public,
        groups=private_ids(data, private),
        fingerprint_key=folder.fingerprint_key(begin=begin),
        noise=noise,
        stages=FolderStages(folder.private),
        terms=folder.terms(settings.budget.composition),
        watch=watch,
    )
    return DirectRun(folder, settings, task, *labelled_rows(of_cells, data, task))


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
    hashes = [size * int(rows) for size in _OF_HASHES if size * rows > most // 16]
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
