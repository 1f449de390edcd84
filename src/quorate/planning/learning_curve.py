r"""From a learning curve of one teacher to the accuracy of a student, where no row is there to rehearse on.

A teacher of r rows is right at a point with probability :math:`\Phi(t/\tau_r)`, where t says how easy the point is,
:math:`t \sim N(m, 1)` over points, and :math:`\tau_r^2 = \tau^2/r` is what so few rows add. So

.. math:: a(r) = \Phi\!\left(m/\sqrt{1 + \tau^2/r}\right), \qquad a(\infty) = \Phi(m),

and m and τ are fitted to the points of the curve. A student that knows vote shares to a standard deviation s calls the
point rightly where :math:`\Phi(t/\tau_r) + sZ` is above what chance gives a class, so that

.. math:: \mathrm{accuracy} = \mathbf{E}_t\, \Phi\!\left(\frac{\Phi(t/\tau_r) - 1/2}{s}\right).

With more than two classes the truth stands against its nearest rival, and the others are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quorate.deferred import optimize, special
from quorate.errors import InvalidParameter
from quorate.planning.expected import Basis, Expected

_SLACK = 0.03  # how far one model of so few numbers is off, half of a range
_NODES = 4_001


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Accuracy of one teacher by the rows it learns from.

    Attributes
    ----------
    points : tuple of (rows, accuracy)
        At least one; two or more tell how it rises.
    m, tau : float
        The fitted parameters: how easy points are, and what few rows add.
    basis : str
        Where the points are from: typed in, or a paid estimate.
    uncertain : float
        How far the accuracies may be off, beside what one model of so few numbers is.

    Examples
    --------
    >>> curve = LearningCurve.of([(20, 0.72), (50, 0.79), (200, 0.86)])
    >>> round(curve(50), 2), round(curve.limit, 2)
    (0.79, 0.9)
    """

    points: tuple[tuple[float, float], ...]
    m: float
    tau: float
    basis: Basis = "learning curve"
    uncertain: float = 0.0

    @classmethod
    def of(
        cls, points: Sequence[tuple[float, float]], *, basis: Basis = "learning curve", uncertain: float = 0.0
    ) -> LearningCurve:
        """Fit the curve by least squares.

        Raises
        ------
        InvalidParameter
            If it holds no point, a number of rows below 1, or an accuracy outside (0, 1).
        """
        told = _pairs(points)
        if not told or not all(1 <= rows < math.inf and 0 < accuracy < 1 for rows, accuracy in told):
            raise InvalidParameter(
                "learning_curve must be pairs of rows >= 1 and accuracy in (0, 1), got "
                f"{points!r}. Example: [(20, 0.72), (100, 0.83)]"
            )
        rows, scores = np.log([each[0] for each in told]), special.ndtri([each[1] for each in told])

        def off(theta: np.ndarray) -> np.ndarray:
            fitted = theta[0] / np.sqrt(1 + np.exp(theta[1] - rows))
            return np.append(fitted - scores, 0.02 * (theta[1] - 3.0))  # one point alone tells no rise: e³ rows

        found = optimize.least_squares(off, [float(scores.max()), 3.0])
        return cls(told, float(found.x[0]), float(np.exp(found.x[1] / 2)), basis, uncertain)

    def __call__(self, rows: float) -> float:
        """Return the accuracy of a teacher of so many rows."""
        return float(special.ndtr(self.m / math.sqrt(1 + self.tau**2 / rows)))

    @property
    def limit(self) -> float:
        """What more and more rows lead to."""
        return float(special.ndtr(self.m))

    def student(self, rows: float, share_noise: float) -> Expected:
        """Return the accuracy of a student of teachers of so many rows.

        Parameters
        ----------
        rows : float
            Of a teacher, > 0.
        share_noise : float
            Standard deviation of a vote share as the student knows it, ≥ 0.

        Examples
        --------
        >>> curve = LearningCurve.of([(20, 0.72), (50, 0.79), (200, 0.86)])
        >>> round(curve.student(50, 0.05).accuracy, 2), round(curve.student(50, 2.0).accuracy, 2)
        (0.89, 0.56)
        """
        nodes = np.linspace(-8.0, 8.0, _NODES)  # even ones: without noise the integrand is a step
        weights = np.exp(-(nodes**2) / 2)
        lead = special.ndtr((nodes + self.m) * math.sqrt(rows) / max(self.tau, 1e-9)) - 0.5
        right = special.ndtr(lead / share_noise) if share_noise > 0 else lead > 0
        accuracy = float(right @ weights / weights.sum())
        slack = _SLACK * (1 + max(0.0, math.log2(max(self._beyond(rows), 1.0)))) + self.uncertain
        return Expected(
            accuracy=accuracy,
            low=max(0.0, accuracy - slack),
            high=min(1.0, accuracy + slack),
            basis=self.basis,
        )

    def _beyond(self, rows: float) -> float:
        """By which factor a number of rows lies outside the curve that was typed in."""
        told = [each[0] for each in self.points]
        return max(rows / max(told), min(told) / rows)


def _pairs(points: object) -> tuple[tuple[float, float], ...]:
    """Return pairs of numbers; none where these are no pairs of numbers."""
    try:
        return tuple((float(rows), float(accuracy)) for rows, accuracy in points)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return ()
