r"""The learning curve of one teacher: its accuracy by the number of rows that it learns from.

For two classes :math:`a(r) = \Phi(m/\sqrt{1 + \tau^2/r})`; what the points are off by, as a normal quantile, is added
in between, in proportion to log r. With C classes the same is said of :math:`\tfrac12(1 + s)`, s the skill beyond a
guess. Whence, and what such a teacher is worth to a student: ``docs/theory/rehearsals.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quorate.deferred import optimize, special
from quorate.errors import InvalidParameter, named
from quorate.run.expected import Basis

_BEYOND = 0.03  # how far it may be off where it is asked for twice as many rows as it was told for, or for half as many


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Accuracy of one teacher by the rows it learns from.

    `points`: at least one. `m`, `tau`: how easy points are, and what few rows add. `off`: what each point is off by.
    `uncertain`: how far the accuracies that were told may be off.
    """

    points: tuple[tuple[float, float], ...]
    m: float
    tau: float
    off: tuple[float, ...]
    n_classes: int = 2
    basis: Basis = "learning curve"
    uncertain: float = 0.0

    @classmethod
    def of(
        cls,
        points: Sequence[tuple[float, float]],
        *,
        n_classes: int = 2,
        basis: Basis = "learning curve",
        uncertain: float = 0.0,
    ) -> LearningCurve:
        """Fit the curve by least squares; at least one point, each number of rows with one accuracy in (0, 1)."""
        pairs = _pairs(points)
        if not pairs or not all(1 <= rows < math.inf and 0 < accuracy < 1 for rows, accuracy in pairs):
            raise InvalidParameter(
                f"{named('learning_curve')} must be pairs of rows >= 1 and accuracy in (0, 1), got {_said(points)}",
                parameter="learning_curve",
                got=points,
                advice="Example: 20:0.72, 100:0.83",
            )
        pairs = tuple(sorted(set(pairs)))
        if len({pair[0] for pair in pairs}) < len(pairs):
            raise InvalidParameter(
                f"{named('learning_curve')} has several accuracies for one number of rows, got "
                f"{_said(points)}; give one for each, their mean perhaps",
                parameter="learning_curve",
                got=points,
            )
        rows = np.log([pair[0] for pair in pairs])
        scores = special.ndtri([min(max(_of_two(pair[1], n_classes), 0.01), 0.999) for pair in pairs])

        def fitted(theta: np.ndarray) -> np.ndarray:
            return np.asarray(theta[0] / np.sqrt(1 + np.exp(theta[1] - rows)))

        def off(theta: np.ndarray) -> np.ndarray:
            return np.append(fitted(theta) - scores, 0.02 * (theta[1] - 3.0))  # one point alone tells no rise: e³ rows

        solution = optimize.least_squares(off, [float(scores.max()), 3.0]).x
        m, tau, left = float(solution[0]), float(np.exp(solution[1] / 2)), (scores - fitted(solution)).tolist()
        return cls(pairs, m, tau, tuple(left), n_classes, basis, uncertain)

    def __call__(self, rows: float) -> float:
        """Return the accuracy of a teacher of so many rows."""
        off = np.interp(math.log(rows), [math.log(point[0]) for point in self.points], self.off)
        of_two = float(special.ndtr(self.m / math.sqrt(1 + self.tau**2 / rows) + off))
        return 1 / self.n_classes + (1 - 1 / self.n_classes) * (2 * of_two - 1)

    def doubt(self, rows: float) -> float:
        """Return how far the accuracy of so many rows may be off: more beyond the rows that were told of."""
        known = [point[0] for point in self.points]
        return self.uncertain + _BEYOND * math.log2(max(rows / max(known), min(known) / rows, 1.0))


def _of_two(accuracy: float, n_classes: int) -> float:
    """Return the accuracy between two classes of the same skill."""
    guess = 1 / n_classes
    return (1 + (accuracy - guess) / (1 - guess)) / 2


def _said(points: object) -> str:
    """Write points as a command takes them, rows:accuracy; what is no such pairs as Python does."""
    pairs = _pairs(points)
    return ", ".join(f"{rows:g}:{accuracy:g}" for rows, accuracy in pairs) if pairs else repr(points)


def _pairs(points: object) -> tuple[tuple[float, float], ...]:
    """Return pairs of numbers; none where these are no pairs of numbers."""
    try:
        return tuple((float(rows), float(accuracy)) for rows, accuracy in points)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return ()
