"""Teachers of some ranges, trained on this machine or on the workers of a scheduler: the same ones."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.ensemble import Voter, train_chunk, train_elsewhere
from quorate.run.stage_store import CHUNK
from quorate.types import IntArray, Secret, Watch
from quorate.voting.shard_rows import rows_by_teacher
from quorate.voting.task import Task

_CELLS = 2**24  # of linear teachers that one process solves in about three seconds


def trained(
    task: Task, shards: Secret[IntArray], wanted: list[range], *, seeds: Secret[IntArray] | None, see: Watch
) -> Iterator[tuple[range, Secret[tuple[Voter, ...]]]]:
    """Yield the teachers of each range, in one part or in several.

    `task`: with its private rows. `shards`: shard of each row. `wanted`: teachers, ascending; each range begins where a
    stage of :data:`~quorate.run.stage_store.CHUNK` does. The parts of one range come in their order, and ranges in the
    order in which they are done. `seeds`: seeds by shard number, as for :func:`~quorate.ensemble.train_chunk`. `see`:
    ``see("teachers", done, total)``; no private number.
    """
    if not wanted:
        return iter(())
    return (_here if task.scheduler is None else _elsewhere)(task, shards, wanted, seeds, see)


def _here(
    task: Task, shards: Secret[IntArray], wanted: list[range], seeds: Secret[IntArray] | None, see: Watch
) -> Iterator[tuple[range, Secret[tuple[Voter, ...]]]]:
    n_teachers, n_jobs = task.recipe.n_teachers, _processes(task, len(shards.reveal()))
    for part in rows_by_teacher(task, shards, wanted):
        start = part.numbers.start // CHUNK * CHUNK
        # Where else a chunk is cut hangs on private shard sizes, and that there are more shards on the number of units.
        if part.numbers.start == start < n_teachers:
            see("teachers", start, n_teachers)
        voters = train_chunk(
            task.trainer,
            part.X,
            part.codes,
            part.shards,
            numbers=part.numbers,
            n_teachers=task.number_of_shards(shards),
            n_classes=task.n_classes,
            key=task.key,
            seeds=seeds,
            n_jobs=n_jobs,
        )
        yield part.numbers, voters


def _processes(task: Task, n_rows: int) -> int:
    """Return how many processes are worth their start: a matter of speed, which no teacher can tell.

    One that solves linear teachers takes longer to load scikit-learn than to solve hundreds of small ones.
    """
    return min(task.n_jobs, 1 + n_rows * task.views.width // _CELLS) if task.solves else task.n_jobs


def _elsewhere(
    task: Task, shards: Secret[IntArray], wanted: list[range], seeds: Secret[IntArray] | None, see: Watch
) -> Iterator[tuple[range, Secret[tuple[Voter, ...]]]]:
    assert task.scheduler is not None  # noqa: S101 - the caller's condition
    n_teachers = task.recipe.n_teachers
    ranges = {numbers.start: numbers for numbers in wanted}
    trained: dict[int, dict[int, Voter]] = {start: {} for start in ranges}
    done = n_teachers - sum(min(numbers.stop, n_teachers) - min(numbers.start, n_teachers) for numbers in wanted)
    see("teachers", done, n_teachers)
    voters = train_elsewhere(
        task.trainer,
        rows_by_teacher(task, shards, wanted),
        n_teachers=task.number_of_shards(shards),
        n_classes=task.n_classes,
        key=task.key,
        seeds=seeds,
        scheduler=task.scheduler,
    )
    for number, voter in voters:
        start = number // CHUNK * CHUNK
        trained[start][number] = voter.reveal()
        if len(trained[start]) < len(ranges[start]):
            continue
        if start < n_teachers:
            done += min(ranges[start].stop, n_teachers) - start
            see("teachers", done, n_teachers)
        whole = trained.pop(start)
        yield ranges[start], Secret(tuple(whole[number] for number in ranges[start]))
