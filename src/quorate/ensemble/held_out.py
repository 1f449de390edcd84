"""Held-out private rows, and the errors of teachers on them, as Secrets.

Units go whole to either side, and each counts once. The errors are those of teachers on their own shards: one changed
unit changes one of the K numbers. Mistakes of the ensemble itself are no such statistic: where votes are close, one
changed teacher may flip the plurality on every private row.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quorate.arguments import count, real
from quorate.data.rows import n_rows, take
from quorate.ensemble.partition import rows_of_shards
from quorate.ensemble.teachers.teacher import AbstainingVoter, Teacher, Voter
from quorate.ensemble.training import Progress, rows_alone, train_chunk
from quorate.ensemble.workers.isolation import on_one_thread_each, seed_global_generators
from quorate.ensemble.workers.workers import isolated_map
from quorate.errors import DataRefused
from quorate.types import Secret, derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from quorate.types import IntArray


def held_out_rows(unit_keys: Sequence[bytes], share: float, key: Secret[bytes]) -> Secret[NDArray[np.bool_]]:
    """Split rows off for an evaluation, unit by unit, by a keyed hash of the slot alone.

    Parameters
    ----------
    unit_keys : sequence of bytes, (n_rows,)
        Canonical bytes of each row's unit.
    share : float
        In (0, 1): each unit is held out with this probability, independently of its rows and of all other units.
    key : Secret[bytes]
        The run's key; the split's own key is derived from it, and is not that of the partition.

    Returns
    -------
    Secret[NDArray[np.bool_]], (n_rows,)
        True where the row is held out. Train on the others.

    Notes
    -----
    Privacy: adding, removing or replacing the rows of one slot moves no other slot to the other side. How many units
    are held out is private, as their number is.

    Examples
    --------
    >>> held = held_out_rows([b"ann", b"bob", b"ann"], 0.5, Secret(bytes(32))).reveal()
    >>> held[0] == held[2]
    np.True_
    """
    share = real("share", share, above=0, below=1)
    border = round(share * 2**64) << 192
    ranks = _ranks(unit_keys, key)
    return Secret(np.fromiter((ranks[slot] < border for slot in unit_keys), dtype=np.bool_, count=len(unit_keys)))


def held_out_in_shards(
    unit_keys: Sequence[bytes], shards: Secret[IntArray], share: float, key: Secret[bytes]
) -> Secret[NDArray[np.bool_]]:
    """Let every shard hold out `share` of its own units, at least one where it has two; True where a row is held out.

    As :func:`held_out_rows`, but `share` is met as nearly as whole units allow: a split may count the units of its own
    shard (`shards`, ``(n_rows,)``), since they are one teacher's business.
    """
    share = real("share", share, above=0, below=1)
    ranks = _ranks(unit_keys, key)
    of_shard: dict[int, dict[bytes, None]] = {}
    for slot, shard in zip(unit_keys, shards.reveal().tolist(), strict=True):
        of_shard.setdefault(shard, {})[slot] = None
    held: set[tuple[int, bytes]] = set()
    for shard, units in of_shard.items():
        n_held = min(max(round(share * len(units)), 1), len(units) - 1)
        held.update((shard, unit) for unit in sorted(units, key=lambda unit: (ranks[unit], unit))[:n_held])
    pairs = zip(shards.reveal().tolist(), unit_keys, strict=True)
    return Secret(np.fromiter((pair in held for pair in pairs), dtype=np.bool_, count=len(unit_keys)))


def check_codes(y_codes: IntArray, n_classes: int) -> None:
    """Refuse labels that are not codes of the declared classes."""
    codes = np.asarray(y_codes)
    if codes.dtype.kind not in "iu" or (codes.size and not (codes.min() >= 0 and codes.max() < n_classes)):
        raise DataRefused("the private labels must be class codes (integers 0..C-1); encode them by classes first")


def _ranks(unit_keys: Sequence[bytes], key: Secret[bytes]) -> dict[bytes, int]:
    """Return a 256-bit keyed hash of every distinct slot."""
    split_key = derive(key, "held out")
    return {
        slot: int.from_bytes(blake2b(slot, key=split_key, digest_size=32).digest(), "big")
        for slot in dict.fromkeys(unit_keys)
    }


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
    """Train each teacher on part of its shard and take its error on the rest, in steps of 1/G: ``(K,)`` from 0 to G.

    An error is G times the mean, over the shard's held-out units, of the share of a unit's rows that the teacher gets
    wrong. An abstention is a mistake. A teacher that has no held-out unit, or fails, has G. `unit_keys`: canonical
    bytes of each row's unit. `grid`: G ≥ 1. `share`: of each shard's units that is held out. Other arguments and errors
    are those of :func:`~quorate.ensemble.train_chunk`; nothing about a single row is told.

    Privacy: an entry is a function of one shard, the teacher's number and the run's key. One changed unit changes one
    entry, within 0..G: their sum has sensitivity G. It is a Secret until a mechanism releases it.
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
    work = partial(on_one_thread_each, partial(_examine, grid), together, teacher_cpu_seconds)
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


def _examine(grid: int, exam: _Exam) -> bytes:
    seed_global_generators(0)
    votes = np.asarray(exam.voter.vote(exam.X))
    wrong = votes != exam.y if votes.shape == exam.y.shape else np.ones(exam.y.shape, dtype=np.bool_)
    shares = np.bincount(exam.unit_of, weights=wrong) / np.bincount(exam.unit_of)
    return int(np.rint(grid * shares.mean())).to_bytes(8, "big")
