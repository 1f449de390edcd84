"""Paid scores on private held-out rows: of a released model, and of the teachers (BTT18, Remark 1).

Of a released model one noisy table of sums is released, from which accuracy, balanced accuracy and how far the noise
may have moved them follow at no cost. The teachers' error is what the cut-off of a sparse vector is set by:
:func:`quorate.theory.cutoff_for_mean_error` takes :attr:`ErrorEstimate.upper`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quorate.accounting import Event
from quorate.accounting.pure import relative_entropy
from quorate.arguments import count, real
from quorate.ensemble import Partition, Teacher, partition_rows, shared_shards, teacher_errors, unit_outcomes
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation
from quorate.mechanisms import NoisySum
from quorate.noise import NoiseSource
from quorate.release import check_covered, release_once
from quorate.release.charge import EVALUATION, TUNING
from quorate.types import FloatArray, IntArray, Secret


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisyScore:
    """What was released about a model's mistakes on private units. All of it may be published.

    Attributes
    ----------
    accuracy : float
        Estimate, in [0, 1], of the accuracy on the held-out units, each unit counted once.
    half_width : float
        With probability at least ``1 - failure`` over the noise, the accuracy on these units is that near.
    balanced_accuracy, balanced_half_width : float or None
        The same for the mean of the classes' recalls; None where classes were not counted apart.
    failure : float
        How often each of the two statements may fail.
    event : Event
        The price.
    seeded : bool
        Whether the noise was seeded: reproducible, therefore not private.
    sums : tuple of int
        The noisy sums themselves, in grid steps.

    Notes
    -----
    The half widths are about noise and rounding alone. The held-out units are a sample: for new units, expect
    an additional error of about ``1/sqrt(n_units)``, at 95 %.
    """

    accuracy: float
    half_width: float
    failure: float
    event: Event
    balanced_accuracy: float | None = None
    balanced_half_width: float | None = None
    seeded: bool = False
    sums: tuple[int, ...] = field(default=(), repr=False)


def noisy_evaluation(
    model: Any,
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    classes: Sequence[Any],
    mechanism: NoisySum,
    reservation: Reservation,
    noise: NoiseSource,
    n_units: int | None = None,
    balanced: bool = True,
    failure: float = 0.05,
    n_jobs: int = 1,
) -> NoisyScore:
    r"""Score a released model on private units, for a price.

    Parameters
    ----------
    model : object
        A student, or any model that is public already; ``predict(X)`` gives labels of `classes`.
    X, y_codes, unit_keys : rows, class codes and unit ids of the held-out part
        Rows that the model was not trained on, split off by slot (:func:`~quorate.ensemble.held_out_rows`).
    classes : sequence
        The declared classes.
    mechanism : NoisySum
        ``form="shares"``: right and wrong are counted apart and the number of units stays private.
        ``form="single"``: one sum of mistakes, divided by `n_units`, which is declared to be public; half the noise.
        Its grid may be 1 where every unit is one row.
    reservation : Reservation
        Pays for the mechanism under the purpose "evaluation".
    noise : NoiseSource
        Where noise comes from.
    n_units : int, optional
        Declared number of held-out units; needed by ``form="single"``, refused by ``form="shares"``.
    balanced : bool, default True
        With ``form="shares"``, whether to count class by class. The price is the same, the accuracy a little noisier.
    failure : float, default 0.05
        How often a printed half width may be passed.
    n_jobs : int, default 1
        Worker processes.

    Returns
    -------
    NoisyScore

    Raises
    ------
    InvalidParameter
        If arguments do not fit together; nothing was drawn.
    DataRefused, PreconditionFailed
        See :func:`~quorate.ensemble.unit_outcomes`; nothing was drawn.
    BudgetExhausted
        If the reservation has no evaluation left.

    Notes
    -----
    Privacy: the sums are those of :func:`~quorate.ensemble.unit_outcomes`, and the price is the mechanism's: add,
    remove or replace the rows of one slot, and non-negative steps that add up to G are put in, taken out or moved.
    The model must not have been chosen by looking at these rows, or its choice be paid for too.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.noise import SeededNoise
    >>> model = DummyClassifier(strategy="constant", constant="no").fit([[0.0], [1.0]], ["no", "yes"])
    >>> mechanism = NoisySum.costing(0.5, grid=1, form="shares")
    >>> ledger = Ledger(budget=Budget(1.0, 1e-6))
    >>> paid = ledger.reserve(mechanism.event, delta=0, purposes={"evaluation": 1}, key="how good is it?")
    >>> score = noisy_evaluation(model, np.zeros((200, 1)), np.arange(200) % 2, [bytes([row]) for row in range(200)],
    ...     classes=["no", "yes"], mechanism=mechanism, reservation=paid, noise=SeededNoise(0))
    >>> abs(score.accuracy - 0.5) < score.half_width
    True
    """
    failure = real("failure", failure, above=0, below=1)
    if (n_units is None) == (mechanism.form == "single"):
        raise InvalidParameter(
            'n_units must be given where mechanism has form="single", and only there: it divides the sum of mistakes'
        )
    check_covered(reservation, EVALUATION, mechanism)
    by_class = balanced and mechanism.form == "shares"
    sums = unit_outcomes(
        model, X, y_codes, unit_keys, classes=classes, grid=mechanism.grid, by_class=by_class, n_jobs=n_jobs
    )
    if mechanism.form == "single":
        sums = Secret(sums.reveal()[1:])
    answer = release_once(sums, mechanism, reservation, noise, purpose=EVALUATION)
    return read_score(answer, mechanism, n_units=n_units, failure=failure, seeded=noise.seeded)


def read_score(
    answer: int | Sequence[int],
    mechanism: NoisySum,
    *,
    n_units: int | None = None,
    failure: float = 0.05,
    seeded: bool = False,
) -> NoisyScore:
    """Compute the score from released sums, for example those that a ledger stored.

    Parameters
    ----------
    answer : int or sequence of int
        What the mechanism released: a sum of mistakes, or pairs (right, wrong), one for each class or one for all.
    mechanism, n_units, failure, seeded
        As in :func:`noisy_evaluation`.

    Notes
    -----
    Accuracy rises with every right sum and falls with every wrong one, so where each sum may be off by t it lies
    between its values with all sums moved by t one way and the other; a sum below 0 is put to 0. The bound on the
    noise is :meth:`~quorate.mechanisms.NoisySum.reach`. On a grid of several steps each unit was rounded, by less
    than one step a cell, and by at most C/2 steps in the right cells together; there are at most as many units as
    the total, moved up by its own noise, allows.

    Examples
    --------
    >>> score = read_score([800, 200], NoisySum(scale=2.0, grid=1, form="shares"))
    >>> score.accuracy, round(score.half_width, 4)
    (0.8, 0.007)
    """
    failure, grid = real("failure", failure, above=0, below=1), mechanism.grid
    sums, balanced, balanced_half_width = np.asarray(answer, dtype=np.int64), None, None
    if mechanism.form == "single":
        if sums.ndim:
            raise InvalidParameter('answer must be one sum of mistakes where mechanism has form="single"')
        steps = count("n_units", n_units, at_least=1) * grid
        rounding = 0.0 if grid == 1 else 0.5 / grid
        accuracy = min(max(1 - int(sums) / steps, 0.0), 1.0)
        half_width = min(mechanism.reach(failure) / steps + rounding, 1.0)
    elif sums.ndim != 1 or sums.size < 2 or sums.size % 2:
        raise InvalidParameter('answer must be pairs (right, wrong) of sums where mechanism has form="shares"')
    else:
        pairs = sums.reshape(-1, 2).astype(np.float64)
        n_classes, failing, rounded = len(pairs), failure / 2, 0.0
        if grid > 1:  # the number of units, from above; a third of the failure probability goes into it
            failing = failure / 3
            total = max(float(pairs.sum()), 0.0) + mechanism.reach(failing, n_terms=2 * n_classes)
            rounded = total / grid
        slack = mechanism.reach(failing, n_terms=n_classes) + rounded * n_classes / 2
        accuracy, half_width = _mean_recall(pairs.sum(axis=0)[np.newaxis], slack)
        if n_classes > 1:
            per_cell = mechanism.reach(2 * failing / (2 * n_classes)) + rounded
            balanced, balanced_half_width = _mean_recall(pairs, per_cell)
    return NoisyScore(
        accuracy=accuracy,
        half_width=half_width,
        failure=failure,
        event=mechanism.event,
        balanced_accuracy=balanced,
        balanced_half_width=balanced_half_width,
        seeded=seeded,
        sums=tuple(sums.reshape(-1).tolist()),
    )


def _mean_recall(pairs: FloatArray, slack: float) -> tuple[float, float]:
    """Return the mean of right/(right + wrong), and how far it may be off where each sum is by at most `slack`."""
    right, wrong = pairs[:, 0], pairs[:, 1]
    middle = _shares(np.maximum(right, 0), np.maximum(wrong, 0))
    # Nothing is known of a class that may be empty.
    low = _shares(np.maximum(right - slack, 0), np.maximum(wrong + slack, 0), empty=0.0)
    high = _shares(np.maximum(right + slack, 0), np.maximum(wrong - slack, 0), empty=1.0)
    value = float(middle.mean())
    return value, min(max(float(high.mean()) - value, value - float(low.mean())) * (1 + 2.0**-40), 1.0)


def _shares(right: FloatArray, wrong: FloatArray, *, empty: float = 0.5) -> FloatArray:
    total = right + wrong
    return np.where(total > 0, right / np.where(total > 0, total, 1.0), empty)


_STEPS = 200  # of a bisection: more than a float can tell apart


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorEstimate:
    """What was released about the teachers' mean error. All of it may be published.

    `error`: estimate of the mean, over the K teachers, of the error on their own held-out units; in [0, 1].
    `half_width`: with probability at least ``1 - failure/2`` over the noise, the mean over these held-out units is that
    near. `upper`: with probability at least ``1 - failure`` over the noise and the draw of the units, independent and
    alike, a teacher's expected error is at most this. `event`: the price. `seeded`: whether the noise was seeded:
    reproducible, therefore not private.
    """

    error: float
    half_width: float
    upper: float
    failure: float
    event: Event
    seeded: bool = False


def estimate_error(
    teacher: Teacher,
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    n_teachers: int,
    n_classes: int,
    key: Secret[bytes],
    mechanism: NoisySum,
    reservation: Reservation,
    noise: NoiseSource,
    partition: Partition = "hash",
    share: float = 0.3,
    failure: float = 0.05,
    n_jobs: int = 1,
    before_draw: Callable[[], None] | None = None,
) -> ErrorEstimate:
    r"""Release the mean held-out error of the teachers (BTT18, Remark 1).

    `teacher`, `X`, `y_codes`, `unit_keys`, `n_teachers`, `n_classes`, `key`, `share`, `n_jobs`: as in
    :func:`~quorate.ensemble.teacher_errors`. `mechanism`: of the form ``"single"``. `reservation`, `noise`, `failure`:
    as in :func:`noisy_evaluation`, but that the purpose is "tuning". `partition`: how units meet teachers.
    `before_draw`: called when the errors are known and nothing is drawn yet; what it raises stops here, and it must
    look at public facts alone. Raises as :func:`noisy_evaluation` and :func:`~quorate.ensemble.teacher_errors`; nothing
    was drawn then.

    Privacy: one changed unit changes one teacher's error, by at most 1: the sum is released by `mechanism` at its
    price. Under ``partition="balanced"`` this holds for replacing a unit only.

    Accuracy: rounding moves each error by at most 1/(2G). The K errors are those of separate units, so for independent
    units (given how many each shard has) their mean x falls so far below its expectation e that
    :math:`K\,\mathrm{kl}(x, e) \ge \log(2/failure)` with probability at most ``failure/2`` (Hoeffding 1963, Theorem 1).
    The bound is the largest e for which it did not, with the released mean and `half_width` for x. A teacher without
    held-out units, or one that fails, counts as always wrong, so the estimate errs upwards.
    """
    failure = real("failure", failure, above=0, below=1)
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    if mechanism.form != "single":
        raise InvalidParameter(f'mechanism must have form="single", got {mechanism.form!r}; one sum is released')
    check_covered(reservation, TUNING, mechanism)
    shared_shards(partition)
    how: dict[str, Any] = {"n_classes": n_classes, "grid": mechanism.grid, "share": share, "n_jobs": n_jobs}
    total = summed_errors(teacher, X, y_codes, unit_keys, n_teachers=n_teachers, partition=partition, key=key, **how)
    if before_draw is not None:
        before_draw()
    answer = release_once(total, mechanism, reservation, noise, purpose=TUNING)
    return read_error(answer, mechanism, n_teachers=n_teachers, failure=failure, seeded=noise.seeded)


def summed_errors(
    teacher: Teacher,
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    n_teachers: int,
    partition: Partition,
    key: Secret[bytes],
    **how: Any,
) -> Secret[IntArray]:
    """Return the sum of the teachers' errors, ``(1,)``; `how`: as in :func:`~quorate.ensemble.teacher_errors`."""
    shards = partition_rows(unit_keys, n_teachers, key, partition=partition)
    errors = teacher_errors(teacher, X, y_codes, unit_keys, shards, n_teachers=n_teachers, key=key, **how)
    return Secret(np.array([errors.reveal().sum()], dtype=np.int64))


def read_error(
    answer: int, mechanism: NoisySum, *, n_teachers: int, failure: float = 0.05, seeded: bool = False
) -> ErrorEstimate:
    """Compute the estimate from the released sum, for example one that a ledger stored.

    Examples
    --------
    >>> read_error(30_000, NoisySum(scale=2.0, grid=1000), n_teachers=250).error
    0.12
    """
    failure = real("failure", failure, above=0, below=1)
    steps = n_teachers * mechanism.grid
    error = min(max(answer / steps, 0.0), 1.0)
    half_width = min((mechanism.reach(failure / 2) / steps + 0.5 / mechanism.grid) * (1 + 2.0**-40), 1.0)
    return ErrorEstimate(
        error=error,
        half_width=half_width,
        upper=_largest_mean(min(error + half_width, 1.0), math.log(2 / failure) / n_teachers),
        failure=failure,
        event=mechanism.event,
        seeded=seeded,
    )


def _largest_mean(x: float, nats: float) -> float:
    """Return the largest e ≥ x with kl(x, e) ≤ `nats`, rounded up."""
    low, high = x, 1.0
    for _ in range(_STEPS):  # kl(x, e) rises in e from 0 at e = x
        middle = (low + high) / 2
        low, high = (middle, high) if relative_entropy(x, middle) <= nats else (low, middle)
    return min(high * (1 + 2.0**-40), 1.0)
