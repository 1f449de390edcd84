r"""The disagreement coefficient θ(α), on which the labels of an active learner depend (Hanneke 2014; LZCW21)."""

from __future__ import annotations

from typing import Any

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter


def disagreement_coefficient(labellings: Any, best: int, alpha: float, weights: Any = None) -> float:
    r"""Return :math:`\theta(\alpha) = \sup_{r > \alpha} P(DIS(B(h^*, r)))/r`, or 1 where that is smaller.

    B(h*, r) are the hypotheses that differ from h* with probability at most r, and DIS of them the points on which two
    of them differ. It is exact, for a finite list of hypotheses on a finite list of points.

    Parameters
    ----------
    labellings : array-like ``(n_hypotheses, n_points)`` of 0 and 1
        What each hypothesis says of each point.
    best : int
        Which of them is h*.
    alpha : float
        α in [0, 1).
    weights : array-like ``(n_points,)``, optional
        Probability of each point; equal by default.

    Raises
    ------
    InvalidParameter
        If an argument is out of range, or the shapes do not fit.

    Notes
    -----
    The region grows only where r reaches a distance of some hypothesis, so that the supremum is over these distances,
    and over r just above α. With one hypothesis, or α ≥ every distance, it is at most 1/α.

    References
    ----------
    Hanneke (2014), Definition 7.1; the θ(·) of LZCW21, Theorem 22.

    Examples
    --------
    >>> thresholds = np.triu(np.ones((101, 100), dtype=int))  # on 100 points
    >>> round(disagreement_coefficient(thresholds, best=50, alpha=0.05), 9)
    2.0
    >>> single_points = np.vstack([np.zeros(100, dtype=int), np.eye(100, dtype=int)])
    >>> round(disagreement_coefficient(single_points, best=0, alpha=0.05), 9)
    20.0
    """
    table = np.asarray(labellings)
    if table.ndim != 2 or table.size == 0 or not np.isin(table, (0, 1)).all():
        raise InvalidParameter("labellings must be a table of 0 and 1 with a row and a column, got another one")
    best, alpha = count("best", best), real("alpha", alpha, at_least=0, below=1)
    if best >= len(table):
        raise InvalidParameter(f"best must be below the number of hypotheses, {len(table)}, got {best}")
    mass = np.full(table.shape[1], 1 / table.shape[1]) if weights is None else np.asarray(weights, dtype=float)
    if mass.shape != table.shape[1:] or not (mass >= 0).all() or not abs(mass.sum() - 1) < 1e-9:
        raise InvalidParameter("weights must be one probability for each point, which sum to 1, got others")
    differs = table != table[best]
    distances = differs @ mass
    order = np.argsort(distances, kind="stable")
    # a point is in DIS(B(h*, r)) if some hypothesis of the ball differs from h* there: h* is in every ball
    region = np.logical_or.accumulate(differs[order], axis=0) @ mass
    ordered = distances[order]
    inside = np.searchsorted(ordered, alpha, side="right")
    ratios = [1.0, *(region[inside:] / ordered[inside:])]  # within equal distances the last is the largest
    if alpha > 0:
        ratios.append(region[inside - 1] / alpha)  # h* itself is at distance 0
    return float(max(ratios))
