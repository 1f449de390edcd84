"""Private rows on their way to the teachers: those of some teachers at a time, as the teachers see them.

As teachers see them, rows take many times what the table takes, so they are made for few teachers at a time: for as
many as the allowed memory holds, and no more than keep the workers busy. A table that stays in its file is put aside
once, one part for each such group of teachers, and a part is deleted when it was read. Which rows a teacher gets, and
in which order, is the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from quorate.ambient import unwarned
from quorate.data import kind, n_rows, take, width
from quorate.data.file_reading import polars_path
from quorate.data.fixed_types import absent_marks, fixed_types
from quorate.data.stream import StreamedFrame, cannot_hold
from quorate.ensemble import Partition, check_partition, partition_rows, seeds_of_units, unit_places
from quorate.errors import InvalidParameter, PreconditionFailed, named
from quorate.labelling import PrivateLimit
from quorate.labelling.private_sets import PLACES
from quorate.ledger import Reservation
from quorate.run.held_out import SetsPlan, plan_sets, refuse_without_probabilities
from quorate.run.public_facts import PublicFacts
from quorate.students import Student
from quorate.types import IntArray, Secret
from quorate.voting.config import RunConfig
from quorate.voting.inputs import View
from quorate.voting.task import Task

_SHARE = 8  # of the allowed memory, for one group: on their way to the workers the same rows are there several times
_CELL = 8  # bytes
# Bytes of one group, and as many for each two workers; more are no quicker. Teachers of which each has a process of its
# own anyway lose nothing by a smaller one, and their libraries take memory. A table in a file is cut into few parts.
_AT_ONCE, _AT_ONCE_APART = 1 << 26, 1 << 24


class ShardRows(NamedTuple):
    """The rows of some teachers: features as these see them, class codes, shard numbers."""

    numbers: range
    X: Any
    codes: IntArray
    shards: Secret[IntArray]

    def __repr__(self) -> str:
        return "ShardRows(…)"


@dataclass(frozen=True, slots=True, repr=False)
class TaughtShards:
    """The shard of each row, how many there are, and the seeds of their teachers; None where their numbers give them.
    All of it is as secret as the shards.
    """

    of_row: Secret[IntArray]
    number: int
    seeds: Secret[IntArray] | None


def shards_to_train(task: Task) -> TaughtShards:
    """Return the shards as teachers are trained on them: looked at, and without units that are held out."""
    shards = shards_of(task)
    check_shards(task, shards)
    shards = learning(task, shards)
    return TaughtShards(shards, number_of_shards(task, shards), seeds_of(task, shards))


def shards_of(task: Task) -> Secret[IntArray]:
    """Which teacher gets which private row, ``(n_rows,)``: a function of units' identities and the run's key."""
    unit_keys = task.inputs.private.reveal().unit_keys
    return partition_rows(unit_keys, task.recipe.n_teachers, task.key, partition=task.partition)


def check_shards(task: Task, assigned: Secret[IntArray]) -> None:
    """Look at the partition that the teachers are about to get. Raises PreconditionFailed if a unit could change two
    teachers: nothing may be fitted then.
    """
    private = task.inputs.private.reveal()
    n_shards = number_of_shards(task, assigned)
    faults = check_partition(private.unit_keys, assigned, n_shards, task.key, partition=task.partition)
    if faults:
        raise PreconditionFailed(
            f"the shards are not those of a {task.partition} partition: {'; '.join(sorted(faults))}. A {task.unit} "
            "could change more than one teacher, so nothing was fitted. This is a fault of quorate; please report it"
        )


def learning(task: Task, shards: Secret[IntArray]) -> Secret[IntArray]:
    """Return the shard of each row, with one behind the last teacher for rows of units that are held out."""
    if task.held is None:
        return shards
    return Secret(np.where(task.held.held.reveal(), task.recipe.n_teachers, shards.reveal()))


def number_of_shards(task: Task, shards: Secret[IntArray]) -> int:
    """K; or, where every unit has a shard of its own, their number if that is larger: as secret as the shards."""
    if task.partition != "unit":
        return task.recipe.n_teachers
    return max(task.recipe.n_teachers, int(shards.reveal().max(initial=-1)) + 1)


def seeds_of(task: Task, shards: Secret[IntArray]) -> Secret[IntArray] | None:
    """Return the seeds of teachers that have one unit each; None where a shard's number gives its teacher's seed."""
    if task.partition != "unit":
        return None
    seeds = seeds_of_units(task.inputs.private.reveal().unit_keys, shards, task.key).reveal()
    return Secret(np.concatenate([seeds, np.zeros(number_of_shards(task, shards) - len(seeds), dtype=np.int64)]))


def rows_by_teacher(task: Task, shards: Secret[IntArray], wanted: list[range]) -> Iterator[ShardRows]:
    """Yield the rows of the teachers in `wanted`, ascending, in parts that memory holds, one or several of a range."""
    private, shard_of = task.inputs.private.reveal(), shards.reveal()
    sizes = np.bincount(shard_of, minlength=max(numbers.stop for numbers in wanted))
    together = isinstance(private.X, StreamedFrame) or getattr(task.trainer, "keeps_no_global_state", False)
    at_once = _AT_ONCE if together else _AT_ONCE_APART
    row = task.views.teacher(take(task.inputs.public, np.arange(1)))  # while it is read, and as the teachers see it
    most_columns = max(task.views.width, row.shape[1] if isinstance(row, np.ndarray) else 0)
    of_a_row = _CELL * (2 * width(private.X) + most_columns)
    most = max(1, min(task.memory // _SHARE, at_once * (1 + task.n_jobs // 2)) // of_a_row)
    if kind(private.X) == "pandas" and not task.views.teacher.makes_numbers:
        most = len(shard_of)  # the types of a column may hang on all of its values
    groups = _groups([part for numbers in wanted for part in _cut(numbers, sizes, most)], sizes, most)
    order = np.argsort(shard_of, kind="stable")
    edges = np.concatenate([[0], np.cumsum(sizes)])

    def rows_of(first: range, last: range) -> IntArray:
        return np.sort(order[edges[first.start] : edges[last.stop]])

    group_rows = [rows_of(parts[0], parts[-1]) for parts in groups]
    for rows, parts, X in zip(group_rows, groups, _each_group(private.X, task, group_rows), strict=True):
        for numbers in parts:
            mine = rows_of(numbers, numbers)
            table = X if len(parts) == 1 else take(X, np.searchsorted(rows, mine))
            yield ShardRows(numbers, table, private.codes[mine], Secret(shard_of[mine]))


def _cut(numbers: range, sizes: IntArray, most: int) -> Iterator[range]:
    """Cut a range of teachers into ranges of at most so many rows, or of one teacher."""
    start = numbers.start
    for stop in range(numbers.start + 1, numbers.stop + 1):
        if stop == numbers.stop or sizes[start : stop + 1].sum() > most:
            yield range(start, stop)
            start = stop


def _groups(parts: list[range], sizes: IntArray, most: int) -> list[list[range]]:
    """Put neighbouring ranges together that have at most so many rows in all."""
    groups: list[list[range]] = []
    for part in parts:
        last = groups[-1] if groups else []
        if last and last[-1].stop == part.start and sizes[last[0].start : part.stop].sum() <= most:
            last.append(part)
        else:
            groups.append([part])
    return groups


def rows_of_student(task: Task, rows: IntArray) -> Any:
    """Return some private rows, by their places, as the student sees them, in fixed types as for teachers."""
    student = task.views.student
    view = replace(student, fixed=True, marks=absent_marks(student.kinds(task.inputs.public)))
    [rows_seen] = _each_group(task.inputs.private.reveal().X, task, [rows], view)
    return rows_seen


def _each_group(X: Any, task: Task, group_rows: list[IntArray], view: View | None = None) -> Iterator[Any]:
    """Yield the rows of each group as the teachers see them, or as another view has them."""
    view = task.views.teacher if view is None else view
    if not isinstance(X, StreamedFrame):
        if kind(X) == "pandas" and len(group_rows) > 1:
            X = fixed_types(view.kinds(X), view.marks)  # of all of its values, before it is cut
        for rows in group_rows:
            if len(rows):
                yield view(X) if len(rows) == n_rows(X) else view(take(X, rows))
            else:
                yield _no_rows(task, view)
        return
    files = _put_aside(X, group_rows)
    for parts in files:
        import polars as pl

        yield view(pl.concat([pl.read_ipc(polars_path(part)) for part in parts])) if parts else _no_rows(task, view)
        for part in parts:
            part.unlink()


def _no_rows(task: Task, view: View) -> Any:
    """Return no row as a view has rows: an encoder takes one or more."""
    return take(view(take(task.inputs.public, np.arange(1))), np.arange(0))


def _put_aside(X: StreamedFrame, group_rows: list[IntArray]) -> list[list[Any]]:
    """Write the rows of each group into files of their own, in the order of the table; return the files."""
    files: list[list[Any]] = [[] for _ in group_rows]
    start = 0
    for number, block in enumerate(X.blocks()):
        fixed = fixed_types(block)
        for group, rows in enumerate(group_rows):
            inside = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + block.height)] - start
            if not len(inside):
                continue
            path = X.workspace.path / f"{group:05d}-{number:06d}.arrow"
            try:
                fixed[inside].write_ipc(polars_path(path), compression="lz4")
            except OSError as error:
                raise cannot_hold(path.parent, error) from None
            files[group].append(path)
        start += block.height
    return files


def facts_with_sets(config: RunConfig, facts: PublicFacts, student: Student) -> tuple[PublicFacts, SetsPlan | None]:
    """Return the facts of the units that learn, and what is held out, or refuse that; None where nothing is."""
    n_records = None if config.n_records is None else facts.n_records
    plan = plan_sets(config, n_records=n_records, budget=(facts.epsilon, facts.delta), unit=facts.unit)
    if plan is None:
        return facts, None
    if config.schema is not None:
        raise InvalidParameter(
            f"{named('calibration_share')} of a run by votes needs public rows, and here a pool is drawn; leave it "
            "out, or take the direct method"
        )
    refuse_without_probabilities(student.learner)
    rows = None if facts.n_rows is None else max(1, round(facts.n_rows * (1 - plan.share)))
    return replace(facts, n_records=plan.n_learning, n_rows=rows), replace(plan, n_rows=facts.n_rows)


def refuse_counted_shards(plan: SetsPlan | None, partition: Partition) -> None:
    """Refuse a partition that counts units where some are held out; raises InvalidParameter."""
    if plan is not None and partition != "hash":
        raise InvalidParameter(
            f"{named('calibration_share')} needs shards by a keyed hash of the unit, and those of this run are "
            f"{named('partition', partition)}; give {named('partition', 'hash')} and a number of teachers"
        )


def limit_of(task: Task, student: Any, reservation: Reservation) -> PrivateLimit | None:
    """Return the limit of prediction sets; None where no units were held out, or it was lost."""
    if task.sets is None:
        return None
    plan = task.sets
    with unwarned():  # as an error, a warning would end what is charged by now
        return plan.limit_of(reservation, task.noise, lambda: held_out_places(task, student))


def held_out_places(task: Task, student: Any) -> Secret[IntArray]:
    """Count how badly the published student does on the units that are held out: ``(PLACES,)`` units by their place."""
    assert task.held is not None  # noqa: S101 - the caller's condition
    codes = task.held.codes.reveal()
    rows = np.flatnonzero(codes >= 0)
    return unit_places(
        task.views.student.unwrapped(student),
        rows_of_student(task, rows),
        codes[rows],
        [row.to_bytes(8, "big") for row in rows.tolist()],
        classes=task.inputs.classes,
        n_places=PLACES,
        key=task.key,  # each row is a unit of its own here
        n_jobs=task.n_jobs,
    )
