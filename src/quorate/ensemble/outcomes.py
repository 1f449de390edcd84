"""How a released model does on private held-out rows, one contribution a unit: counts, as Secrets.

A person with a thousand rows weighs what a person with one does. The model sees one unit at a time, so that what one
adds follows from its rows and public facts alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.arguments import count
from quorate.data.rows import n_rows, width
from quorate.data.unit_ids import one_row_of_each
from quorate.ensemble.held_out import check_codes
from quorate.ensemble.teachers.classifier import ClassifierVoter
from quorate.ensemble.teachers.teacher import ABSTAINED
from quorate.ensemble.training import rows_alone
from quorate.ensemble.workers.isolation import on_one_thread_each, seed_global_generators
from quorate.ensemble.workers.workers import isolated_map
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from quorate.types import IntArray

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
    for unit, result in _asked_alone(model, predict, X, units, n_jobs=n_jobs, cpu_seconds=cpu_seconds):
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

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="prior").fit(np.zeros((4, 1)), ["no", "no", "no", "yes"])
    >>> unit_places(model, np.zeros((3, 1)), np.array([0, 0, 1]), [b"ann", b"bob", b"cleo"], classes=["no", "yes"],
    ...             n_places=4, key=Secret(bytes(32))).reveal().tolist()
    [2, 0, 1, 0]
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
    for unit, result in _asked_alone(model, predict, X, units, n_jobs=n_jobs, cpu_seconds=cpu_seconds):
        places = np.frombuffer(result or b"", dtype=np.int64)
        counts[places[y_codes[rows[unit]]] if places.shape == (n_classes,) else n_places - 1] += 1
    return Secret(counts)


def _places(model: Any, classes: list[Any], n_places: int, X: Any) -> bytes:
    said = dict(zip(np.asarray(model.classes_).tolist(), np.asarray(model.predict_proba(X))[0].tolist(), strict=True))
    scores = np.array([1.0 - said.get(name, 0.0) for name in classes])
    places = np.ceil(np.nan_to_num(scores, nan=1.0, posinf=1.0, neginf=1.0) * n_places) - 1
    codes: IntArray = np.clip(places, 0, n_places - 1).astype(np.int64)
    return codes.tobytes()


def _asked_alone(
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
