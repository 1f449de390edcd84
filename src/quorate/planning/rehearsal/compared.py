r"""Rows of a plan beside each other: the best of several is expected too well, and by how much can be told.

All rows are played on the same divisions of the labelled rows, with teachers of the same sample where their number is
the same. Let row i have :math:`a_{ij}` in division j. What all rows share in a division is no difference between them,
and what is left, :math:`a_{ij} - \bar a_{i\cdot} - \bar a_{\cdot j} + \bar a`, is the luck of single plays. With
mean squares :math:`M_R` of rows and :math:`M_E` of what is left, the share :math:`1 - M_E/M_R` of the variance
between rows is theirs, and the rest is luck. The best linear prediction of a row keeps that share of its distance from
the mean of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from quorate.planning.plan_row import PlanRow
from quorate.planning.rehearsal.estimate import Played
from quorate.types import FloatArray


def without_luck(rows: Sequence[PlanRow], plays: Mapping[str, Sequence[Played]]) -> list[PlanRow]:
    """Return the rows with the differences between those that `plays` holds shrunk to what is no luck."""
    expected = {row.key: row.expected for row in rows if row.expected is not None and row.key in plays}
    if not expected or len({tuple(play.fold for play in plays[key]) for key in expected}) > 1:
        return list(rows)  # a row that could not be played in every division is compared with none
    luck = 1 - kept(np.array([_in_divisions(plays[key], [play.whole for play in plays[key]]) for key in expected]))
    mean = float(np.mean([expectation.accuracy for expectation in expected.values()]))
    moved = {key: expectation.moved(luck * (mean - expectation.accuracy)) for key, expectation in expected.items()}
    scored = {key: expectation.scored for key, expectation in expected.items() if expectation.scored is not None}
    if len(scored) == len(expected):
        values = [_in_divisions(plays[key], [play.values[0] for play in plays[key]]) for key in expected]
        luck, mean = 1 - kept(np.array(values)), float(np.mean([score.value for score in scored.values()]))
        moved = {
            key: expectation.moved(0.0, scored_by=luck * (mean - scored[key].value))
            for key, expectation in moved.items()
        }
    return [replace(row, expected=moved[row.key]) if row.key in moved else row for row in rows]


def _in_divisions(played: Sequence[Played], values: Sequence[float]) -> list[float]:
    folds = np.array([play.fold for play in played])
    return [float(np.mean(np.asarray(values)[folds == fold])) for fold in np.unique(folds)]


def kept(accuracies: FloatArray) -> float:
    """Return which share of the differences between rows is no luck, in [0, 1].

    `accuracies`: of each row in each division.
    """
    n_rows, n_divisions = accuracies.shape
    if n_rows < 2 or n_divisions < 2:
        return 1.0
    own = accuracies - accuracies.mean(axis=0)
    of_rows = own.mean(axis=1)
    left = float(((own - of_rows[:, None]) ** 2).sum() / ((n_rows - 1) * (n_divisions - 1)))
    between = float(n_divisions * (of_rows**2).sum() / (n_rows - 1))
    return 1 - left / between if left < between else 0.0
