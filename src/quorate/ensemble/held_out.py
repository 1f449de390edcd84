"""Held-out private rows, and how teachers and a released model do on them, as Secrets.

Units go whole to either side, and each counts once. The errors are those of teachers on their own shards: one changed
unit changes one of the K numbers. Mistakes of the ensemble itself are no such statistic: where votes are close, one
changed teacher may flip the plurality on every private row.

A released model sees one unit at a time, so that what one adds follows from its rows and public facts alone; a person
with a thousand rows weighs what a person with one does.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quorate.arguments import count, real
from quorate.data.rows import n_rows, take, width
from quorate.data.unit_ids import one_row_of_each
from quorate.ensemble.partition import rows_of_shards
from quorate.ensemble.teachers.classifier import ClassifierVoter
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, Teacher, Voter
from quorate.ensemble.training import Progress, rows_alone, train_chunk
from quorate.ensemble.workers.isolation import on_one_thread_each, seed_global_generators
from quorate.ensemble.workers.workers import isolated_map
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.types import Secret, derive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from quorate.types import IntArray


def held_out_rows(unit_keys: Sequence[bytes], share: float, key: Secret[bytes]) -> Secret[NDArray[np.bool_]]:
    """Split rows off for an evaluation, unit by unit, by a keyed hash of the slot alone; True where a row is held out.

    `unit_keys`: canonical bytes of each row's unit, ``(n_rows,)``. `share`: in (0, 1): each unit is held out with this
    probability, independently of its rows and of all other units. `key`: the run's; the split's own is derived from it,
    and is not that of the partition. Privacy: adding, removing or replacing the rows of one slot moves no other slot to
    the other side. How many units are held out is private, as their number is.
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


# --- how a released model does on held-out rows, one contribution a unit: counts, as Secrets -----------------------

_UNITS = 256  # units that one task looks at


def unit_outcomes(
    model: Any,
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    classes: Sequence[Any],
    grid: int = 1,
    by_class: bool = True,
    n_jobs: int = 1,
    cpu_seconds: float | None = None,
) -> Secret[IntArray]:
    """Count how a released model does on private rows, each unit once.

    `model`: ``predict(X)`` gives labels of `classes`. It must be public already: a student, or any model that was
    released. `X`: private rows ``(n_rows, n_features)`` that it was not trained on, with class codes `y_codes` and the
    canonical bytes of their units, `unit_keys`. `grid`: G; with 1 every unit must have one row. `n_jobs`,
    `cpu_seconds`: worker processes, and the CPU time after which a unit's prediction counts as mistaken.

    Returns ``(2C,)`` if `by_class`: right in class 0, wrong in class 0, right in class 1, …; else ``(2,)``: right,
    wrong. Steps of 1/G; each unit adds exactly G, split by the shares of its rows with the largest remainders rounded
    up. Raises InvalidParameter if the model has no ``predict`` or predicts other classes; DataRefused if the tables do
    not match, or G is 1 and a unit has several rows; PreconditionFailed if the model cannot be sent to a worker
    process.

    Privacy: the model sees one unit at a time, in a process whose output leads nowhere. So one unit cannot change what
    is predicted for another, not by rounding in a batch, by an exception, or by a model that looks at all rows of a
    call; what fails is a mistake of that unit alone. One changed unit moves non-negative steps that add up to G.
    """
    grid, n_classes = count("grid", grid, at_least=1), len(classes)
    _refuse_other_tables(model, X, y_codes, unit_keys, n_classes)
    known = _codes_of_labels(model, classes)
    rows_of_unit: dict[bytes, list[int]] = {}
    for row, slot in enumerate(unit_keys):
        rows_of_unit.setdefault(slot, []).append(row)
    units = [np.array(rows, dtype=np.int64) for rows in rows_of_unit.values()]
    if grid == 1 and len(units) != len(unit_keys):
        raise DataRefused("a unit has several rows; choose a grid of many steps, for example grid=1000")
    table = np.zeros(2 * n_classes, dtype=np.int64)
    predict = partial(_predict, model, known)
    for unit, result in _answers_alone(model, predict, X, units, n_jobs=n_jobs, cpu_seconds=cpu_seconds):
        truth = y_codes[units[unit]]
        codes = np.frombuffer(result or b"", dtype=np.int64)
        right = codes == truth if codes.shape == truth.shape else np.zeros(truth.shape, dtype=np.bool_)
        cells = np.bincount(2 * truth + ~right, minlength=2 * n_classes)
        parts: IntArray = cells if by_class else cells.reshape(n_classes, 2).sum(axis=0)
        table += on_grid(parts, grid, table.size)
    return Secret(table if by_class else table[:2])


def unit_places(
    model: Any,
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    classes: Sequence[Any],
    n_places: int,
    key: Secret[bytes],
    n_jobs: int = 1,
    cpu_seconds: float | None = None,
) -> Secret[IntArray]:
    """Count how badly a released model does on private rows, one row a unit: ``(n_places,)`` units by their place.

    The place of a row, from 0, is ⌈s n_places⌉ − 1, for s one less the probability of its class; where the model
    fails on a row it is the last. Of a unit's rows the one counts that
    :func:`~quorate.data.unit_ids.one_row_of_each` chooses by `key`. The other arguments, the errors and what is
    secret are as in :func:`unit_outcomes`: one unit added, removed or replaced changes one count by 1, or two.
    """
    n_places, n_classes = count("n_places", n_places, at_least=2), len(classes)
    _refuse_other_tables(model, X, y_codes, unit_keys, n_classes)
    _codes_of_labels(model, classes)
    if not hasattr(model, "predict_proba"):
        raise InvalidParameter(f"model must have predict_proba(X), got {type(model).__name__}")
    rows = one_row_of_each(unit_keys, key)
    predict = partial(_places, model, list(classes), n_places)
    units = list(rows.reshape(-1, 1))
    counts = np.zeros(n_places, dtype=np.int64)
    for unit, result in _answers_alone(model, predict, X, units, n_jobs=n_jobs, cpu_seconds=cpu_seconds):
        places = np.frombuffer(result or b"", dtype=np.int64)
        counts[places[y_codes[rows[unit]]] if places.shape == (n_classes,) else n_places - 1] += 1
    return Secret(counts)


def _places(model: Any, classes: list[Any], n_places: int, X: Any) -> bytes:
    said = dict(zip(np.asarray(model.classes_).tolist(), np.asarray(model.predict_proba(X))[0].tolist(), strict=True))
    scores = np.array([1.0 - said.get(name, 0.0) for name in classes])
    places = np.ceil(np.nan_to_num(scores, nan=1.0, posinf=1.0, neginf=1.0) * n_places) - 1
    codes: IntArray = np.clip(places, 0, n_places - 1).astype(np.int64)
    return codes.tobytes()


def _answers_alone(
    model: Any,
    predict: Callable[[Any], bytes],
    X: Any,
    units: Sequence[IntArray],
    *,
    n_jobs: int,
    cpu_seconds: float | None,
) -> Iterator[tuple[int, bytes | None]]:
    """Yield what a model says of each unit by itself; None where it fails. `predict`: of its rows."""
    # A ClassifierVoter knows which libraries keep nothing in the process; it is not asked to vote.
    together = ClassifierVoter(model, np.arange(2)).keeps_no_global_state
    work = partial(on_one_thread_each, partial(_said, predict), together, cpu_seconds)

    def rows_of(unit: int) -> Any:
        return None if unit < 0 else rows_alone(X, units[unit])

    if [result for _, result in isolated_map(work, rows_of, [-1], n_jobs=1, batch=1)] != [b""]:
        raise PreconditionFailed(
            f"the model ({type(model).__name__}) cannot be sent to a worker process. Its code must be importable, or "
            "defined in the main script; keep open files, locks and connections out of it"
        )
    yield from isolated_map(work, rows_of, range(len(units)), n_jobs=n_jobs, batch=_UNITS)


def _refuse_other_tables(model: Any, X: Any, y_codes: IntArray, unit_keys: Sequence[bytes], n_classes: int) -> None:
    if not n_rows(X) == len(y_codes) == len(unit_keys):
        raise DataRefused("the private rows, their labels and their units differ in number; pass one of each per row")
    check_codes(y_codes, n_classes)
    if getattr(model, "n_features_in_", width(X)) != width(X):
        raise DataRefused("the private rows have not as many columns as the model was fitted on; give the same columns")


def on_grid(parts: IntArray, grid: int, size: int) -> IntArray:
    """Round the shares ``parts / sum(parts)`` to steps of 1/G that add up to G; none is further than 1/G from its
    share. The steps left over go to the largest remainders, to the first where they tie.
    """
    total = int(parts.sum())
    floors, remainders = np.divmod(parts * grid, total)
    steps = np.zeros(size, dtype=np.int64)
    steps[: parts.size] = floors
    steps[np.argsort(-remainders, kind="stable")[: grid - int(floors.sum())]] += 1
    return steps


def _said(predict: Callable[[Any], bytes], X: Any) -> bytes:
    if X is None:  # the question whether the model travels at all
        return b""
    seed_global_generators(0)
    return predict(X)


def _predict(model: Any, known: Mapping[Any, int], X: Any) -> bytes:
    labels = np.asarray(model.predict(X)).reshape(-1).tolist()
    return np.array([known.get(label, ABSTAINED) for label in labels], dtype=np.int64).tobytes()


def _codes_of_labels(model: Any, classes: Sequence[Any]) -> dict[Any, int]:
    if not hasattr(model, "predict"):
        raise InvalidParameter(f"model must have predict(X), got {type(model).__name__}")
    known = {label: code for code, label in enumerate(classes)}
    theirs = getattr(model, "classes_", None)
    if theirs is not None and not all(label in known for label in np.asarray(theirs).tolist()):
        raise InvalidParameter(
            "the model predicts labels outside the declared classes; give the classes it was fitted for"
        )
    return known
