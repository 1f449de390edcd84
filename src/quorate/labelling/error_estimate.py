r"""A paid estimate of the teachers' error, from held-out parts of their own shards (BTT18, Remark 1).

It is what the cut-off of a sparse vector is set by: :func:`quorate.theory.cutoff_for_mean_error` takes
:attr:`ErrorEstimate.upper`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.accounting import Event
from quorate.accounting.relative_entropy import relative_entropy
from quorate.arguments import count, real
from quorate.ensemble import Partition, Teacher, partition_rows, shared_shards, teacher_errors
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation
from quorate.mechanisms import NoisySum
from quorate.noise import NoiseSource
from quorate.release import check_covered, release_once
from quorate.release.charge import TUNING
from quorate.types import IntArray, Secret

_STEPS = 200  # of a bisection: more than a float can tell apart


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorEstimate:
    """What was released about the teachers' mean error. All of it may be published.

    Attributes
    ----------
    error : float
        Estimate of the mean, over the K teachers, of the error on their own held-out units; in [0, 1].
    half_width : float
        With probability at least ``1 - failure/2`` over the noise, the mean over these held-out units is that near.
    upper : float
        With probability at least ``1 - failure`` over the noise and the draw of the units, independent and alike, a
        teacher's expected error is at most this.
    failure : float
        See `half_width` and `upper`.
    event : Event
        The price.
    seeded : bool
        Whether the noise was seeded: reproducible, therefore not private.
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
    r"""Release the mean held-out error of the teachers.

    Parameters
    ----------
    teacher, X, y_codes, unit_keys, n_teachers, n_classes, key, share, n_jobs
        As in :func:`~quorate.ensemble.teacher_errors`.
    mechanism : NoisySum
        Of the form ``"single"``.
    reservation : Reservation
        Pays for the mechanism under the purpose "tuning".
    noise : NoiseSource
        Where noise comes from.
    partition : {"hash", "balanced"}
        How units meet teachers.
    failure : float, default 0.05
        How often the bound may be passed.
    before_draw : callable, optional
        Called when the errors are known and nothing is drawn yet; what it raises stops here. It must look at public
        facts alone.

    Returns
    -------
    ErrorEstimate

    Raises
    ------
    InvalidParameter
        If arguments do not fit together; nothing was drawn.
    DataRefused, PreconditionFailed
        See :func:`~quorate.ensemble.teacher_errors`; nothing was drawn.
    BudgetExhausted
        If the reservation has no tuning step left.

    Notes
    -----
    Privacy: one changed unit changes one teacher's error, by at most 1: the sum is released by `mechanism` at its
    price. Under ``partition="balanced"`` this holds for replacing a unit only.

    Accuracy: rounding moves each error by at most 1/(2G). The K errors are those of separate units, so for
    independent units (given how many each shard has) their mean x falls so far below its expectation e that
    :math:`K\,\mathrm{kl}(x, e) \ge \log(2/failure)` with probability at most ``failure/2`` (Hoeffding 1963, Theorem 1).
    The bound is the largest e for which it did not, with the released mean and `half_width` for x.

    A teacher without held-out units, or one that fails, counts as always wrong, so the estimate errs upwards.

    References
    ----------
    BTT18 (Bassily, Thakkar, Thakurta 2018), Remark 1.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from quorate.ensemble import ClassifierTeacher
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.noise import SeededNoise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> mechanism = NoisySum.costing(0.5)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-6))
    >>> paid = ledger.reserve(mechanism.event, delta=0, purposes={"tuning": 1}, key="teachers' error")
    >>> estimate = estimate_error(ClassifierTeacher(GaussianNB()), X, (X[:, 0] > 0).astype(int),
    ...     [row.to_bytes(2, "big") for row in range(600)], n_teachers=20, n_classes=2, key=Secret(bytes(32)),
    ...     mechanism=mechanism, reservation=paid, noise=SeededNoise(1))
    >>> 0 <= estimate.error < estimate.upper <= 1
    True
    """
    failure = real("failure", failure, above=0, below=1)
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    if mechanism.form != "single":
        raise InvalidParameter(f'mechanism must have form="single", got {mechanism.form!r}; one sum is released')
    check_covered(reservation, TUNING, mechanism)
    shared_shards(partition)
    shards = partition_rows(unit_keys, n_teachers, key, partition=partition)
    errors = teacher_errors(
        teacher,
        X,
        y_codes,
        unit_keys,
        shards,
        n_teachers=n_teachers,
        n_classes=n_classes,
        key=key,
        grid=mechanism.grid,
        share=share,
        n_jobs=n_jobs,
    )
    total = Secret(np.array([errors.reveal().sum()], dtype=np.int64))
    if before_draw is not None:
        before_draw()
    answer = release_once(total, mechanism, reservation, noise, purpose=TUNING)
    return read_error(answer, mechanism, n_teachers=n_teachers, failure=failure, seeded=noise.seeded)


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
