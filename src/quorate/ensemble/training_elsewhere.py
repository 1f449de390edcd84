"""Train teachers on the workers of a scheduler: the same teachers, bit for bit, as :func:`train_chunk` trains here."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from quorate.arguments import count
from quorate.data.rows import kind, n_rows, width
from quorate.ensemble.linear.bare import read_voter
from quorate.ensemble.partition import rows_of_shards
from quorate.ensemble.training import (
    Shard,
    check_rows,
    lightest,
    pickled_teacher,
    rows_alone,
    teacher_seed,
    train_batch,
    voter_of,
)
from quorate.ensemble.workers.cluster.elsewhere import TASK, map_elsewhere
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.ensemble.teachers.teacher import Teacher, Voter
    from quorate.ensemble.workers.cluster.scheduler import DaskScheduler
    from quorate.types import IntArray


# A task costs Dask as much as some linear teachers take to solve, so that more of these make one, while it is small.
_MOST_SOLVED, _MOST_CELLS = 4 * TASK, 2**21


def train_elsewhere(
    teacher: Teacher,
    parts: Iterable[tuple[range, Any, IntArray, Secret[IntArray]]],
    *,
    n_teachers: int,
    n_classes: int,
    key: Secret[bytes],
    scheduler: DaskScheduler,
    seeds: Secret[IntArray] | None = None,
) -> Iterator[tuple[int, Secret[Voter]]]:
    """Yield ``(number, voter)`` of each teacher, in the order in which workers are done with them.

    `parts`: the rows of some teachers at a time, ``(numbers, rows, codes, shards)``; a part is asked for when the last
    one was sent. `scheduler`: whose workers train them. All else, and the errors, are those of
    :func:`~quorate.ensemble.train_chunk`; and Interrupted if the scheduler or its workers are gone.
    """
    from cloudpickle import loads  # type: ignore[import-untyped]

    n_teachers, n_classes = count("n_teachers", n_teachers, at_least=1), count("n_classes", n_classes, at_least=1)
    pickled = pickled_teacher(teacher)

    def seed_of(number: int) -> int:
        return teacher_seed(key, number) if seeds is None else int(seeds.reveal()[number])

    def shards() -> Iterator[tuple[int, Shard]]:
        for numbers, X, y_codes, of_rows in parts:
            shard_of = of_rows.reveal()
            check_rows(X, y_codes, shard_of, n_teachers, n_classes)
            rows = rows_of_shards(shard_of, n_teachers, numbers)
            for number in numbers:
                mine = rows[number]
                yield number, Shard(rows_alone(X, mine), y_codes[mine], seed_of(number))

    parts = iter(parts)
    with scheduler.connected():  # before a row is read: perhaps nobody answers
        first = next(parts, None)
        if first is None:
            return
        numbers, X, *_ = first  # the other parts are of the same kind, and their shards of the same size
        sent = lightest(teacher, pickled, X, n_teachers=len(numbers), n_classes=n_classes)
        parts = chain([first], parts)
        size = TASK if sent is pickled else _solved_a_task(X, len(numbers))
        for number, result in map_elsewhere(scheduler, partial(train_batch, sent, None), shards(), size=size):
            yield number, Secret(voter_of(result, partial(read_voter, teacher, seed_of(number), loads)))


def _solved_a_task(X: Any, n_teachers: int) -> int:
    """Return how many linear teachers make a task: one of two sizes, so that the number of tasks tells little of the
    rows.
    """
    cells = X.nnz if kind(X) == "sparse" else n_rows(X) * width(X)
    return _MOST_SOLVED if cells * _MOST_SOLVED <= _MOST_CELLS * n_teachers else TASK
