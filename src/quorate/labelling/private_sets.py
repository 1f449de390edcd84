"""A limit for prediction sets from private held-out units, at a price: where no public rows have labels.

The limit is a place on a public grid that a share of units is at or below, chosen by
:class:`~quorate.mechanisms.PrivateQuantile`. What it promises is worked out before, from public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import Event
from quorate.arguments import count, real
from quorate.deferred import special, stats
from quorate.ensemble import unit_places
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation
from quorate.mechanisms import PrivateQuantile
from quorate.noise import NoiseSource
from quorate.release import check_covered, release_once
from quorate.release.charge import TUNING
from quorate.types import FloatArray, IntArray, Secret

PLACES: Final = 200  #: of the grid on which a limit lies
_OF_MECHANISM = 0.2  # part of the failure probability that the choice takes, the rest is for which units were held out
_WITHIN = 1e-9  # so far the last bits of a probability differ between machines
_REACH = 8.0  # standard deviations of the number of held-out units that are gone through; the rest counts as failing
_STEPS = 60  # of a bisection


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivateLimit:
    """What was released for prediction sets. All of it may be published.

    `limit`: a class is in the set of a row where one less its probability is at most that. `coverage`: the share of
    units that was asked for. `slack`: but with probability `failure`, the share of units whose row has its class in the
    set is at least `coverage` − `slack`; None where no number of units was declared. `event`: the price. `seeded`:
    whether the noise was seeded: reproducible, therefore not private.
    """

    limit: float
    coverage: float
    slack: float | None
    failure: float
    event: Event
    seeded: bool = False

    def sets(self, probabilities: FloatArray) -> NDArray[np.bool_]:
        """Return which classes are in the set of each row, both ``(n_rows, n_classes)``."""
        return np.asarray(1 - np.asarray(probabilities) <= self.limit)


def private_slack(
    mechanism: PrivateQuantile, n_units: int, *, share: float, failure: float = 0.05, n_places: int = PLACES
) -> float:
    r"""Return how far below its coverage a private limit may be: before anything is paid, from public numbers.

    Parameters
    ----------
    mechanism : PrivateQuantile
        What will choose; its share is the coverage.
    n_units : int
        Declared number of private units, those that learn included.
    share : float
        Which share of them :func:`~quorate.ensemble.held_out_rows` holds out, in (0, 1).
    failure : float, default 0.05
        How often it may be passed, over the units, the key that holds some out, and the noise.
    n_places : int, default 200
        Of the grid that the limit lies on.

    Raises
    ------
    InvalidParameter
        If an argument is out of range, or the units are so few that nothing is promised.

    Notes
    -----
    Of n units held out, at least :math:`k = \lceil an - g \rceil` are at or below the place, but with the part of
    `failure` for which :meth:`~quorate.mechanisms.PrivateQuantile.missing` gives g. A place that covers less than c has
    no more units at or below it than Bin(n, c), whichever place that is: so :math:`P(\mathrm{Bin}(n, c) \ge k)` bounds
    the rest, exactly, in the mean over n, which is Bin(N, share).

    Examples
    --------
    >>> round(private_slack(PrivateQuantile(epsilon=1.0, share=0.9), 20_000, share=0.2), 3)
    0.014
    """
    n_units, share = count("n_units", n_units, at_least=1), real("share", share, above=0, below=1)
    failure = real("failure", failure, above=0, below=1)
    spread = _REACH * math.sqrt(n_units * share * (1 - share)) + _REACH
    ns = np.arange(max(0, math.floor(n_units * share - spread)), min(n_units, math.ceil(n_units * share + spread)) + 1)
    weights = stats.binom.pmf(ns, n_units, share)
    missing = mechanism.missing(n_places, _OF_MECHANISM * failure)
    p, q = mechanism.as_fraction.as_integer_ratio()
    least = np.ceil(p * ns / q - missing).astype(np.int64)
    left = (1 - _OF_MECHANISM) * failure - max(0.0, 1 - float(weights.sum())) - float(weights[least < 1].sum())
    ns, weights, least = ns[least >= 1], weights[least >= 1], least[least >= 1]
    if left <= 0:
        raise InvalidParameter(
            f"n_units={n_units:,}: at ε={mechanism.epsilon:g} the noise hides more than the {n_units * share:,.0f} "
            "units that are held out, and nothing would be promised; hold more out, or spend more"
        )
    low, high = 0.0, mechanism.share
    for _ in range(_STEPS):  # what fails rises with the coverage
        middle = (low + high) / 2
        fails = float(weights @ special.betainc(least, ns - least + 1, middle))
        low, high = (middle, high) if fails <= left else (low, middle)
    return mechanism.share - low


def private_limit(
    model: Any,
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    classes: Sequence[Any],
    mechanism: PrivateQuantile,
    reservation: Reservation,
    noise: NoiseSource,
    key: Secret[bytes],
    n_units: int | None = None,
    share: float | None = None,
    failure: float = 0.05,
    n_jobs: int = 1,
) -> PrivateLimit:
    """Choose the limit of prediction sets on private units that were held out.

    Parameters
    ----------
    model : object
        A model that is public already and has ``predict_proba``; it was not fitted on these rows.
    X, y_codes, unit_keys, classes, noise, n_jobs
        As in :func:`~quorate.labelling.noisy_evaluation`. Of each unit one row counts.
    mechanism : PrivateQuantile
        Its share is the coverage.
    reservation : Reservation
        Pays for the mechanism under the purpose "tuning".
    key : Secret[bytes]
        By which one row of each unit is chosen.
    n_units, share, failure
        As in :func:`private_slack`; without the first two no slack is told.

    Raises
    ------
    InvalidParameter, DataRefused, PreconditionFailed
        See :func:`~quorate.ensemble.unit_places`, :func:`private_slack`; nothing was drawn.
    BudgetExhausted
        If the reservation has no tuning step left.

    Notes
    -----
    Privacy: the counts by place are those of :func:`~quorate.ensemble.unit_places`, and the price is the mechanism's,
    for a unit added, removed or replaced.

    References
    ----------
    Angelopoulos, Bates, Zrnic, Jordan (2021), arXiv:2102.06202.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.noise import SeededNoise
    >>> model = DummyClassifier(strategy="prior").fit(np.zeros((4, 1)), ["no", "no", "no", "yes"])
    >>> mechanism = PrivateQuantile(epsilon=1.0, share=0.7)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-6))
    >>> paid = ledger.reserve(mechanism.event, delta=0, purposes={"tuning": 1}, key="limit of sets")
    >>> limit = private_limit(model, np.zeros((400, 1)), np.arange(400) // 320, [b"%d" % row for row in range(400)],
    ...     classes=["no", "yes"], mechanism=mechanism, reservation=paid, noise=SeededNoise(0), key=Secret(bytes(32)))
    >>> limit.sets(np.array([[0.75, 0.25]])).tolist()
    [[True, False]]
    """
    failure = real("failure", failure, above=0, below=1)
    if not isinstance(mechanism, PrivateQuantile):
        raise InvalidParameter(f"mechanism must be a PrivateQuantile, got {type(mechanism).__name__}")
    if (n_units is None) != (share is None):
        raise InvalidParameter("n_units and share make a slack together; give both, or neither")
    slack = None
    if n_units is not None and share is not None:
        slack = private_slack(mechanism, n_units, share=share, failure=failure)
    check_covered(reservation, TUNING, mechanism)
    counts = unit_places(model, X, y_codes, unit_keys, classes=classes, n_places=PLACES, key=key, n_jobs=n_jobs)
    place = release_once(counts, mechanism, reservation, noise, purpose=TUNING)
    return PrivateLimit(
        limit=limit_at(int(place)),
        coverage=mechanism.share,
        slack=slack,
        failure=failure,
        event=mechanism.event,
        seeded=noise.seeded,
    )


def limit_at(place: int) -> float:
    """Return the limit that a released place stands for, from 0."""
    return (place + 1) / PLACES + _WITHIN
