r"""Labels and rows that are made up, where nobody has labelled public rows: a guess about another task.

Rules are a sample of tasks from easy to hard, along the leading directions of the pool or by its clusters; where a
learning curve tells how hard the labels are, what each row's student has is read off a line through them. Formulas:
``docs/theory/rehearsals.md``. Constants were chosen on tables of which no prediction is reported
(``benchmarks/rules.py``).

The learning curve of one teacher is its accuracy by the number of rows that it learns from. For two classes
:math:`a(r) = \Phi(m/\sqrt{1 + \tau^2/r})`; what the points are off by, as a normal quantile, is added in between, in
proportion to log r. With C classes the same is said of :math:`\tfrac12(1 + s)`, s the skill beyond a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.deferred import optimize, special
from quorate.errors import InvalidParameter, named
from quorate.planning.plan_row import PlanRow
from quorate.planning.rehearsal.rehearsal import Rehearsal
from quorate.planning.rehearsal.votes import Shards
from quorate.run.expectation import Basis, Expected
from quorate.run.public_facts import PublicFacts
from quorate.types import FloatArray, IntArray

_BEYOND = 0.03  # how far it may be off where it is asked for twice as many rows as it was told for, or for half as many


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Accuracy of one teacher by its rows. `m`, `tau`: how easy points are, what few rows add. `off`: of each point."""

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
        of_two = [(1 + (pair[1] - 1 / n_classes) / (1 - 1 / n_classes)) / 2 for pair in pairs]  # classes, of this skill
        scores = special.ndtri(np.clip(of_two, 0.01, 0.999))

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


RULES = 6
HARDEST, EASIEST = 0.68, 1.0  # agreements
BY_CLUSTERS = (True, False, False, True, True, False)  # of the rules in order: neither form is the harder one
UNEVEN = 0.5  # how far scores of classes lie apart, where a typical score is 1
MOST_RULED = 3_000  # rows that are labelled by one rule
MOST_SYNTHETIC = 4_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """How labels are drawn. `agreement`: of the signs of two scores, with and without noise; `clusters`: not lines."""

    agreement: float
    clusters: bool = False
    commonest: float | None = None

    @property
    def noise(self) -> float:
        """Standard deviation ν of a score's noise, where a typical score is 1."""
        return max(0.0, math.tan(math.pi * (1 - self.agreement)))


def rule_of(number: int) -> Rule:
    """Return the rule of this number: agreements evenly from hard to easy, either form as often."""
    at = number % RULES
    return Rule(agreement=HARDEST + (at + 0.5) / RULES * (EASIEST - HARDEST), clusters=BY_CLUSTERS[at])


def ruled_labels(
    points: Any, n_classes: int, n_rows: int, rule: Rule, seed: int, *, one_unit: bool = False
) -> tuple[IntArray, IntArray]:
    """Return which public point each of `n_rows` rows repeats, and its label: both ``(n_rows,)``."""
    rng = np.random.default_rng(seed)
    u, variances = _principal(points, one_unit=one_unit)
    at = np.concatenate([rng.permutation(len(u)) for _ in range(-(-n_rows // len(u)))])[:n_rows]

    if rule.clusters:
        scores = _nearness(u, n_classes, rng)
    else:
        raw = (u * variances**0.5) @ rng.normal(size=(u.shape[1], n_classes))
        scores = np.asarray((raw - raw.mean(axis=0)) / np.maximum(raw.std(axis=0), 1e-12))
        scores += UNEVEN * math.hypot(1.0, rule.noise) * rng.normal(size=n_classes)
    noisy = scores[at] + rule.noise * rng.normal(size=(n_rows, n_classes))
    if rule.commonest is not None:
        most = int(np.bincount(noisy.argmax(axis=1), minlength=n_classes).argmax())
        behind = np.delete(noisy, most, axis=1).max(axis=1) - noisy[:, most]
        noisy[:, most] += np.quantile(behind, rule.commonest)
    return at.astype(np.int64), np.asarray(noisy.argmax(axis=1), dtype=np.int64)


def _nearness(u: FloatArray, n_classes: int, rng: np.random.Generator) -> FloatArray:
    """Return how near the centre of each class is, ``(n, n_classes)``, as much spread as normal scores are."""
    from sklearn.cluster import KMeans

    if len(np.unique(u, axis=0)) < n_classes:
        return np.zeros((len(u), n_classes))
    near: FloatArray = -KMeans(n_classes, n_init=1, random_state=int(rng.integers(2**31))).fit(u).transform(u)
    near -= near.mean(axis=1, keepdims=True)
    return np.asarray(near * math.sqrt(1 - 1 / n_classes) / max(float(near.std()), 1e-12))


def _principal(points: Any, *, one_unit: bool) -> tuple[FloatArray, FloatArray]:
    """Return points along the principal directions of the pool, and the variances of these."""
    measured: Any = PoolCoordinates.of(points, one_unit=one_unit).measured(points)
    z: FloatArray = np.asarray(measured.toarray() if hasattr(measured, "toarray") else measured, dtype=np.float64)
    z = z - z.mean(axis=0)
    variances, directions = np.linalg.eigh(z.T @ z / len(z))
    kept = variances > 1e-9 * max(float(variances.max(initial=0.0)), 1e-300)
    if not kept.any():  # a pool without variance: nothing tells its rows apart
        return np.zeros((len(z), 1)), np.ones(1)
    return z @ directions[:, kept], variances[kept]


def synthetic_rows(n: int, width: int, seed: int) -> FloatArray:
    """Return made-up rows ``(n, width)``: normal numbers of which the first directions vary most."""
    rng = np.random.default_rng(seed)
    spread = 1 / np.sqrt(1 + np.arange(width))
    return np.asarray((rng.normal(size=(n, width)) * spread) @ np.linalg.qr(rng.normal(size=(width, width)))[0])


@dataclass(frozen=True, slots=True)
class MeanOf:
    """What several rehearsals expect, each of another rule: their mean, and a range for one more such task."""

    rehearsals: Sequence[Callable[[PublicFacts, Sequence[PlanRow]], Sequence[PlanRow]]]

    def __call__(self, facts: PublicFacts, rows: Sequence[PlanRow]) -> list[PlanRow]:
        """Return the rows with what is expected of them."""
        by_rule = [rehearsal(facts, rows) for rehearsal in self.rehearsals]
        return [_together(row, [part[at] for part in by_rule], facts.n_classes) for at, row in enumerate(rows)]


def _together(row: PlanRow, by_rule: Sequence[PlanRow], n_classes: int) -> PlanRow:
    expected = [row_of_rule.expected for row_of_rule in by_rule if row_of_rule.expected is not None]
    if len(expected) < len(by_rule):
        return row
    shares = [row_of_rule.answered for row_of_rule in by_rule if row_of_rule.answered is not None]
    answered = float(np.mean(shares)) if len(shares) == len(by_rule) else None
    return replace(row, answered=answered, expected=over_rules(expected, chance=1 / n_classes))


def over_rules(expected: Sequence[Expected], *, chance: float) -> Expected:
    r"""Return the mean over R rules, and a range that is to hold nine in ten tasks like them, and harder ones: up to
    :math:`\sqrt{1 + 1/R}` times the standard deviation of tasks, by a Student's law, and of runs; down to what a guess
    has, 1/C, since labels may follow nothing that the pool shows.
    """
    accuracies = np.array([of_rule.accuracy for of_rule in expected])
    n = len(accuracies)
    within = float(np.mean([((of_rule.high - of_rule.low) / 2) ** 2 for of_rule in expected]))
    between = 0.0 if n < 2 else special.stdtrit(n - 1, 0.95) ** 2 * (1 + 1 / n) * float(accuracies.var(ddof=1))
    accuracy, spread = float(accuracies.mean()), math.sqrt(within + between)
    return replace(
        expected[0],
        accuracy=accuracy,
        low=max(0.0, min(chance, accuracy - spread)),
        high=min(1.0, accuracy + spread),
        rehearsals=min(of_rule.rehearsals for of_rule in expected),
    )


AS_HARD = tuple(Rule(agreement=agreement, clusters=form) for agreement in (0.55, 0.75, 0.95) for form in (False, True))
MANY = 1_000
_FEWEST = 4  # rules through which a line is laid
_LEAST = 1e-6  # of a variance in log odds, where single plays happen to have none
_EDGE = 0.005  # log odds of a teacher, or a student, that is never wrong on the rows that were scored


@dataclass(frozen=True, slots=True)
class AsHard:
    """What rehearsals, one for each of several rules, tell of a task with this learning curve of one teacher."""

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

    def _line(self, facts: PublicFacts, row: PlanRow, by_rule: Sequence[PlanRow]) -> Line | None:
        n_rows = MANY if row.n_teachers is None else Shards.of(facts, row.n_teachers).rows
        n_rows = min(n_rows, facts.rows or n_rows)
        right, students, answered = [], [], []
        for rehearsal, ruled in zip(self.rehearsals, by_rule, strict=True):
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
    """The line through the rules, in log odds, and what it tells at the accuracy of a teacher that is known, and may be
    off by `doubt`. `right`, `students`, `shares`: of a teacher, of a row's student, and of the queries answered, by
    rule. `left`: what students are off by. `leverage`: variance at `known`, where that of a student is 1.
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
    """Return by how much each of several rows is expected too well, since the best of several is. What rows are off
    their lines by, less what the middle one is under the same rule, is luck. With :math:`V_i` its variance and T that
    of rows beyond it (DerSimonian and Laird 1986), a row keeps :math:`T/(T + V_i)` of its distance from the mean.
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
