r"""From rehearsals to an expected accuracy: what too few rows and teachers cost is taken out again, to first order.

Let a(s) be the accuracy of a student of an ensemble of size s, in independent teachers. What teachers have in common
adds a variance in proportion to 1/s to the shares, so :math:`a(s) \approx a(\infty) - c/s`, and from the accuracies of
the whole and of its halves

.. math:: a(K) \approx a(s) + \left(1 - \tfrac{s}{K}\right) \left(a(s) - a(s/2)\right).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from quorate.planning.expected import Basis, Expected

QUANTILE = 1.645  # of the normal law: nine in ten lie within
UNKNOWN = 0.004  # a standard deviation for what no rehearsal shows: the partition, rows that are no random sample
HALF = 0.5  # of the correction is taken for its own error
OF_A_RUN = 0.012  # how far runs differ by their noise, where too few were played to tell


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """One rehearsal of one row.

    Attributes
    ----------
    whole, halves : float
        Accuracy with the whole ensemble, and the mean of those with one half.
    fold : int
        Which rows were held out.
    n_scored : int
        How many.
    size : float
        Of the whole, as a share of the true size; at least 1 where nothing has to be corrected.
    answered : float
        Share of the queries that was answered.
    """

    whole: float
    halves: float
    fold: int
    n_scored: int
    size: float
    answered: float = 1.0


def estimate(played: list[Played], basis: Basis) -> Expected:
    """Return what one run is expected to have, from rehearsals of it.

    Examples
    --------
    >>> runs = [Played(whole=0.90, halves=0.88, fold=0, n_scored=1_000, size=0.25)] * 2
    >>> print(estimate(runs, "labelled public rows"))
    91.5 % (89.2 to 93.8 %)
    """
    correction = float(np.mean([(1 - min(each.size, 1.0)) * (each.whole - each.halves) for each in played]))
    whole = float(np.mean([each.whole for each in played]))
    accuracy = min(1.0, max(0.0, whole + correction))
    by_fold: dict[int, list[float]] = {}
    scored: dict[int, int] = {}
    for each in played:
        by_fold.setdefault(each.fold, []).append(each.whole)
        scored[each.fold] = each.n_scored
    within = [np.var(runs, ddof=1) for runs in by_fold.values() if len(runs) > 1]
    of_a_run = float(np.mean(within)) * (1 + 1 / len(played)) if within else OF_A_RUN**2
    of_scoring = accuracy * (1 - accuracy) / sum(scored.values())
    spread = QUANTILE * math.sqrt(of_a_run + of_scoring + UNKNOWN**2) + HALF * abs(correction)
    return Expected(accuracy=accuracy, low=max(0.0, accuracy - spread), high=min(1.0, accuracy + spread), basis=basis)
