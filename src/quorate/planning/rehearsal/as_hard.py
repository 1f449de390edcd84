r"""What is expected where a learning curve of one teacher is known: rules that are as hard for a teacher as that.

No pool tells how hard its true labels are; a learning curve does. Rules from easy to hard are played on the pool, and
of each two numbers are kept: how often one teacher is right under it, t, and how often the student of a row is, s. From
rule to rule the second rises with the first, close to a line in log odds,

.. math:: \log\frac{s}{1 - s} = \alpha + \beta \log\frac{t}{1 - t},

which least squares find. It is read off where t is the accuracy that the curve tells. For rows of votes t is the
accuracy of a teacher of the row's shard size. The direct method has no teachers; what it makes of all rows follows the
accuracy of one teacher of :data:`MANY` rows much more closely than that of a teacher of a shard.

The range is that of one more task about the line, by a Student's law of the rules less two, and of its run; what the
curve leaves open is read off the line too. :data:`RULES` and :data:`MANY` were chosen on tables of which no prediction
is reported (``python -m benchmarks.rules curve``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from quorate.deferred import special
from quorate.planning.expected import Expected
from quorate.planning.learning_curve import LearningCurve
from quorate.planning.plan_row import PlanRow
from quorate.planning.public_facts import PublicFacts
from quorate.planning.rehearsal.made_up import Rule
from quorate.planning.rehearsal.rehearsal import Rehearsal
from quorate.planning.rehearsal.votes import Shards
from quorate.types import FloatArray

RULES = tuple(Rule(agreement=agreement, clusters=form) for agreement in (0.55, 0.75, 0.95) for form in (False, True))
MANY = 1_000
_FEWEST = 4  # rules through which a line is laid
_EDGE = 0.005  # log odds of a teacher, or a student, that is never wrong on the rows that were scored


@dataclass(frozen=True, slots=True)
class AsHard:
    """What several rules tell of a task with this learning curve.

    Attributes
    ----------
    rehearsals : sequence of Rehearsal
        One for each rule.
    curve : LearningCurve
        Of one teacher, on the true labels.
    """

    rehearsals: Sequence[Rehearsal]
    curve: LearningCurve

    def __call__(self, facts: PublicFacts, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """Return the rows with what is expected of them."""
        told = [each(facts, rows) for each in self.rehearsals]
        return [self._told(facts, row, [part[at] for part in told]) for at, row in enumerate(rows)]

    def _told(self, facts: PublicFacts, row: PlanRow, told: Sequence[PlanRow]) -> PlanRow:
        n_rows = MANY if row.n_teachers is None else Shards.of(facts, row.n_teachers).rows
        n_rows = min(n_rows, facts.rows or n_rows)
        right, students, answered = [], [], []
        for rehearsal, ruled in zip(self.rehearsals, told, strict=True):
            of_one = rehearsal.right_alone(row.n_teachers, n_rows)
            if ruled.expected is not None and of_one is not None:
                right.append(of_one)
                students.append(ruled.expected)
                answered.append(ruled.answered)
        if len(students) < _FEWEST:
            return row
        known = self.curve(n_rows)
        expected = by_line(right, students, known, doubt=self.curve.doubt(n_rows))
        return replace(
            row, answered=_between(right, answered, known), expected=replace(expected, basis=self.curve.basis)
        )


def by_line(right: Sequence[float], students: Sequence[Expected], known: float, *, doubt: float = 0.0) -> Expected:
    """Return what a student is expected to have where one teacher is right so often.

    Parameters
    ----------
    right : sequence of float
        How often one teacher is right, by rules.
    students : sequence of Expected
        What the student has under each.
    known : float
        How often a teacher is right on the true labels, in (0, 1).
    doubt : float
        How far that may be off.

    Examples
    --------
    >>> students = [Expected(accuracy=a, low=a - 0.01, high=a + 0.01, basis="rules on the pool")
    ...             for a in (0.6, 0.7, 0.8, 0.9)]
    >>> print(by_line([0.55, 0.6, 0.7, 0.8], students, 0.7))
    80.4 % (76.1 to 84.1 %)
    """
    x, y = _log_odds(right), _log_odds([each.accuracy for each in students])
    at, n = float(_log_odds([known])[0]), len(x)
    spread = float(((x - x.mean()) ** 2).sum())
    slope = max(0.0, float((x - x.mean()) @ y) / spread) if spread > 0 else 0.0

    def line(point: float) -> float:
        return float(y.mean()) + slope * (point - float(x.mean()))

    left = float(((y - [line(each) for each in x]) ** 2).sum()) / (n - 2)
    away = (at - float(x.mean())) ** 2 / spread if spread > 0 else 0.0
    off = special.stdtrit(n - 2, 0.95) * math.sqrt(left * (1 + 1 / n + away))
    accuracy = float(special.expit(line(at)))
    within = float(np.mean([((each.high - each.low) / 2) ** 2 for each in students]))
    ends = []
    for sign in (-1, 1):
        reach = [special.expit(line(at) + sign * off), special.expit(line(float(_log_odds([known + sign * doubt])[0])))]
        squares = sum((float(each) - accuracy) ** 2 for each in reach)
        ends.append(accuracy + sign * math.sqrt(squares + within))
    return replace(
        students[0],
        accuracy=accuracy,
        low=max(0.0, ends[0]),
        high=min(1.0, ends[1]),
        rehearsals=min(each.rehearsals for each in students),
    )


def _between(right: Sequence[float], answered: Sequence[float | None], known: float) -> float | None:
    """Return the share of queries that is answered under the rules that are about as hard; within what rules have.

    Examples
    --------
    >>> _between([0.9, 0.5], [0.8, 0.4], 0.7), _between([0.9, 0.5], [0.8, 0.4], 0.99), _between([0.5], [None], 0.7)
    (0.6, 0.8, None)
    """
    shares = [each for each in answered if each is not None]
    if len(shares) < len(answered):
        return None
    order = np.argsort(right)
    return float(np.interp(known, np.asarray(right)[order], np.asarray(shares)[order]))


def _log_odds(shares: Sequence[float]) -> FloatArray:
    return np.asarray(special.logit(np.clip(shares, _EDGE, 1 - _EDGE)), dtype=np.float64)
