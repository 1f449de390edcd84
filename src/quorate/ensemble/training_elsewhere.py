"""Train teachers on the workers of a scheduler: the same teachers, bit for bit, as :func:`train_chunk` trains here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from quorate.arguments import count
from quorate.ensemble.elsewhere import map_elsewhere
from quorate.ensemble.partition import rows_of_shards
from quorate.ensemble.training import (
    Shard,
    check_rows,
    pickled_teacher,
    rows_alone,
    teacher_seed,
    train_batch,
    voter_of,
)
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.ensemble.scheduler import DaskScheduler
    from quorate.ensemble.teachers import Teacher, Voter
    from quorate.types import IntArray


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

    Parameters
    ----------
    teacher : Teacher
        How one voter is trained on one shard.
    parts : iterable of (range, rows, codes, shards)
        The rows of some teachers at a time, as :func:`~quorate.ensemble.train_chunk` takes them. A part is asked for
        when the last one was sent.
    n_teachers, n_classes : int
        K and C.
    key : Secret[bytes]
        The run's key.
    scheduler : DaskScheduler
        Whose workers train them.
    seeds : Secret[IntArray], (n_teachers,), optional
        As for :func:`~quorate.ensemble.train_chunk`.

    Raises
    ------
    InvalidParameter, DataRefused
        As :func:`~quorate.ensemble.train_chunk` does.
    Interrupted
        If the scheduler or its workers are gone.
    PreconditionFailed
        If a worker is not set up as this machine is.
    """
    from cloudpickle import loads  # type: ignore[import-untyped]

    n_teachers, n_classes = count("n_teachers", n_teachers, at_least=1), count("n_classes", n_classes, at_least=1)
    work = partial(train_batch, pickled_teacher(teacher), None)

    def shards() -> Iterator[tuple[int, Shard]]:
        for numbers, X, y_codes, of_rows in parts:
            shard_of = of_rows.reveal()
            check_rows(X, y_codes, shard_of, n_teachers, n_classes)
            rows = rows_of_shards(shard_of, n_teachers, numbers)
            for number in numbers:
                mine = rows[number]
                seed = teacher_seed(key, number) if seeds is None else int(seeds.reveal()[number])
                yield number, Shard(rows_alone(X, mine), y_codes[mine], seed)

    for number, result in map_elsewhere(scheduler, work, shards()):
        yield number, Secret(voter_of(result, loads))
