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
from quorate.planning.learning_curve import LearningCurve
from quorate.planning.plan_row import PlanRow
from quorate.planning.rehearsal.made_up import Rule
from quorate.planning.rehearsal.rehearsal import Rehearsal
from quorate.planning.rehearsal.votes import Shards
from quorate.run.expected import Expected
from quorate.run.public_facts import PublicFacts
from quorate.types import FloatArray

RULES = tuple(Rule(agreement=agreement, clusters=form) for agreement in (0.55, 0.75, 0.95) for form in (False, True))
MANY = 1_000
_FEWEST = 4  # rules through which a line is laid
_LEAST = 1e-6  # of a variance in log odds, where single plays happen to have none
_EDGE = 0.005  # log odds of a teacher, or a student, that is never wrong on the rows that were scored


@dataclass(frozen=True, slots=True)
class AsHard:
    """What several rules tell of a task with this learning curve.

    `rehearsals`: one for each rule. `curve`: of one teacher, on the true labels.
    """

    rehearsals: Sequence[Rehearsal]
    curve: LearningCurve

    def __call__(self, facts: PublicFacts, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """Return the rows with what is expected of them."""
        by_rule = [rehearsal(facts, rows) for rehearsal in self.rehearsals]
        lines = [self._line(facts, row, [part[at] for part in by_rule]) for at, row in enumerate(rows)]
        votes = [line for row, line in zip(rows, lines, strict=True) if row.way == "votes" and line is not None]
        luck = dict(zip(map(id, votes), lucky(votes), strict=True))
        return [
            row if line is None else self._with_expectation(row, line, luck.get(id(line), 0.0))
            for row, line in zip(rows, lines, strict=True)
        ]

    def _line(self, facts: PublicFacts, row: PlanRow, told: Sequence[PlanRow]) -> Line | None:
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
            return None
        return Line(right, students, answered, self.curve(n_rows), self.curve.doubt(n_rows))

    def _with_expectation(self, row: PlanRow, line: Line, luck: float) -> PlanRow:
        return replace(
            row, expected=replace(line.expected.moved(-luck), basis=self.curve.basis), answered=line.answered
        )


class Line:
    """The line through the rules, in log odds, and what it tells at the accuracy that is known.

    `right`: how often one teacher is right, by rules. `students`: what the student of a row has under each. `shares`:
    which share of the queries was answered under each; None of a row without queries. `known`: how often a teacher is
    right on the true labels, in (0, 1). `doubt`: how far that may be off. `left`: what the students are off the line
    by. `leverage`: variance of the line at `known`, where that of a student about it is 1.
    """

    def __init__(
        self,
        right: Sequence[float],
        students: Sequence[Expected],
        shares: Sequence[float | None],
        known: float,
        doubt: float = 0.0,
    ) -> None:
        self.right, self.students, self.shares, self.known, self.doubt = right, students, shares, known, doubt
        x, y = _log_odds(right), _log_odds([student.accuracy for student in students])
        off = x - x.mean()
        spread = float((off**2).sum()) if x.max() > x.min() else 0.0  # the mean of equal numbers is rounded
        slope = max(0.0, float(off @ y) / spread) if spread > 0 else 0.0
        self._through, self._slope = (float(x.mean()), float(y.mean())), slope
        self.left: FloatArray = y - (y.mean() + slope * off)
        away = float(_log_odds([known])[0]) - float(x.mean())
        self.leverage = 1 / len(x) + (away**2 / spread if spread > 0 else 0.0)

    def at(self, accuracy: float) -> float:
        """Return the log odds of the student where one teacher is right so often."""
        return self._through[1] + self._slope * (float(_log_odds([accuracy])[0]) - self._through[0])

    @property
    def expected(self) -> Expected:
        """What is expected of the student."""
        freedom = len(self.left) - 2
        off = special.stdtrit(freedom, 0.95) * math.sqrt(float(self.left @ self.left) / freedom * (1 + self.leverage))
        middle = self.at(self.known)
        accuracy = float(special.expit(middle))
        within = float(np.mean([((student.high - student.low) / 2) ** 2 for student in self.students]))
        ends = []
        for sign in (-1, 1):
            reach = special.expit([middle + sign * off, self.at(self.known + sign * self.doubt)]) - accuracy
            ends.append(accuracy + sign * math.sqrt(float(reach @ reach) + within))
        return replace(
            self.students[0],
            accuracy=accuracy,
            low=max(0.0, ends[0]),
            high=min(1.0, ends[1]),
            rehearsals=min(student.rehearsals for student in self.students),
        )

    @property
    def answered(self) -> float | None:
        """Which share of the queries is answered, between the rules that are next in how hard they are."""
        known = [(right, share) for right, share in zip(self.right, self.shares, strict=True) if share is not None]
        if len(known) < len(self.shares):
            return None
        return float(np.interp(self.known, *np.array(sorted(known)).T))


def lucky(lines: Sequence[Line]) -> list[float]:
    r"""Return by how much each of several rows is expected too well, since the best of several is.

    What rows are off their lines by, less what the middle one is under the same rule, is the luck of single plays. With
    :math:`V_i` the variance that its own luck gives the line of a row, and T the variance of rows beyond that, by
    the moments of DerSimonian and Laird (1986), the best linear prediction of a row keeps :math:`T/(T + V_i)` of its
    distance from the mean, in which a row counts as :math:`1/(T + V_i)`.

    `lines`: of rows that are played under the same rules.
    """
    if len(lines) < 2 or len({len(line.left) for line in lines}) > 1:
        return [0.0] * len(lines)  # a row that could not be played under every rule is compared with none
    left = np.stack([line.left for line in lines])
    own = left - np.median(left, axis=0)
    variances = (own**2).sum(axis=1) / (left.shape[1] - 2) * [line.leverage for line in lines] + _LEAST
    middles = np.array([line.at(line.known) for line in lines])
    weights = 1 / variances
    spread = float(weights @ (middles - np.average(middles, weights=weights)) ** 2)
    freedom = float(weights.sum() - (weights**2).sum() / weights.sum())
    between = max(0.0, (spread - (len(lines) - 1)) / freedom)
    mean = np.average(middles, weights=1 / (between + variances))
    moved = mean + between / (between + variances) * (middles - mean)
    return [float(shrunk) for shrunk in special.expit(middles) - special.expit(moved)]


def _log_odds(shares: Sequence[float]) -> FloatArray:
    return np.asarray(special.logit(np.clip(shares, _EDGE, 1 - _EDGE)), dtype=np.float64)
