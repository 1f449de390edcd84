"""How teachers do on held-out parts of their own shards, as a Secret.

Each number is an integer on a public grid of steps 1/G. One changed unit changes one shard, so one of the K numbers, by
at most G. Each unit counts once, by the share of its rows.

The mistakes of the ensemble itself are no such statistic. Where votes are close, one changed teacher may flip the
plurality on every private row, and the count of mistakes moves by all of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quorate.arguments import count
from quorate.data.rows import n_rows, take
from quorate.ensemble.held_out import check_codes, held_out_in_shards
from quorate.ensemble.isolation import Lost, in_children, one_thread_each, seed_global_generators
from quorate.ensemble.partition import rows_of_shards
from quorate.ensemble.teachers import AbstainingVoter, Teacher, Voter
from quorate.ensemble.training import Progress, rows_alone, train_chunk
from quorate.ensemble.workers import isolated_map
from quorate.errors import DataRefused
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.types import IntArray

_EXAMS = 16  # teachers examined by one task


def teacher_errors(
    teacher: Teacher,
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    shards: Secret[IntArray],
    *,
    n_teachers: int,
    n_classes: int,
    key: Secret[bytes],
    grid: int = 1000,
    share: float = 0.3,
    n_jobs: int = 1,
    teacher_cpu_seconds: float | None = None,
    progress: Progress | None = None,
) -> Secret[IntArray]:
    """Train each teacher on part of its shard and take its error on the rest, in steps of 1/G.

    Parameters
    ----------
    teacher, X, y_codes, shards, n_teachers, n_classes, key, n_jobs, teacher_cpu_seconds, progress
        As in :func:`~quorate.ensemble.train_chunk`.
    unit_keys : sequence of bytes, (n_rows,)
        Canonical bytes of each row's unit.
    grid : int, default 1000
        G ≥ 1.
    share : float, default 0.3
        Part of each shard's units that is held out.

    Returns
    -------
    Secret[IntArray], (K,)
        Whole numbers 0..G: G times the mean, over the held-out units of the shard, of the share of a unit's rows that
        the teacher gets wrong. An abstention is a mistake. A teacher that has no held-out unit, or fails, has G.

    Raises
    ------
    InvalidParameter, DataRefused, PreconditionFailed
        As :func:`~quorate.ensemble.train_chunk`; nothing about a single row is told.

    Notes
    -----
    Privacy: an entry is a function of one shard, the teacher's number and the run's key. One changed unit changes one
    entry, within 0..G: their sum has sensitivity G. It is a Secret until a mechanism releases it.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from quorate.ensemble import ClassifierTeacher, hash_shards
    >>> key, unit_keys = Secret(bytes(32)), [bytes([row]) for row in range(60)]
    >>> X = np.arange(120.0).reshape(60, 2)
    >>> errors = teacher_errors(ClassifierTeacher(GaussianNB()), X, np.arange(60) // 30, unit_keys,
    ...                         hash_shards(unit_keys, 3, key), n_teachers=3, n_classes=2, key=key)
    >>> errors.reveal().shape
    (3,)
    """
    grid, n_teachers = count("grid", grid, at_least=1), count("n_teachers", n_teachers, at_least=1)
    shard_of = shards.reveal()
    if not len(unit_keys) == len(shard_of) == len(y_codes) == n_rows(X):
        raise DataRefused("the private rows, labels, units and shards differ in number; pass one of each per row")
    held = held_out_in_shards(unit_keys, shards, share, key).reveal()
    learned, kept = np.flatnonzero(~held), np.flatnonzero(held)
    voters = train_chunk(
        teacher,
        take(X, learned),
        y_codes[learned],
        Secret(shard_of[learned]),
        numbers=range(n_teachers),
        n_teachers=n_teachers,
        n_classes=n_classes,
        key=key,
        n_jobs=n_jobs,
        teacher_cpu_seconds=teacher_cpu_seconds,
        progress=progress,
    ).reveal()
    errors = np.full(n_teachers, grid, dtype=np.int64)
    if learned.size == 0 or kept.size == 0:
        return Secret(errors)
    check_codes(y_codes, n_classes)
    rows = rows_of_shards(shard_of[kept], n_teachers, range(n_teachers))
    able = [
        number for number in range(n_teachers) if rows[number].size and not isinstance(voters[number], AbstainingVoter)
    ]

    def exam(number: int) -> _Exam:
        mine = kept[rows[number]]
        units = {slot: unit for unit, slot in enumerate(dict.fromkeys(unit_keys[row] for row in mine))}
        unit_of = np.array([units[unit_keys[row]] for row in mine], dtype=np.int64)
        return _Exam(voters[number], rows_alone(X, mine), y_codes[mine], unit_of)

    together = all(bool(getattr(voters[number], "keeps_no_global_state", False)) for number in able)
    work = partial(_examine_batch, grid, together, teacher_cpu_seconds)
    for number, result in isolated_map(work, exam, able, n_jobs=n_jobs, batch=_EXAMS):
        if result is not None:
            errors[number] = min(max(int.from_bytes(result, "big"), 0), grid)
    return Secret(errors)


class _Exam(NamedTuple):
    """What a worker needs to examine one teacher."""

    voter: Voter
    X: Any
    y: IntArray
    unit_of: IntArray


def _examine_batch(grid: int, together: bool, cpu_seconds: float | None, exams: list[_Exam]) -> list[bytes | Lost]:
    with one_thread_each():
        return in_children(partial(_examine, grid), exams, together=together, cpu_seconds=cpu_seconds)


def _examine(grid: int, exam: _Exam) -> bytes:
    seed_global_generators(0)
    votes = np.asarray(exam.voter.vote(exam.X))
    wrong = votes != exam.y if votes.shape == exam.y.shape else np.ones(exam.y.shape, dtype=np.bool_)
    shares = np.bincount(exam.unit_of, weights=wrong) / np.bincount(exam.unit_of)
    return int(np.rint(grid * shares.mean())).to_bytes(8, "big")
