"""What the labels and the student are good for: scores on public rows with labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from quorate.report.plain import Plain, require


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenScore(Plain):
    """The score that a run is judged by, where that is not accuracy.

    `scoring`: scikit-learn's name of it. `value`: what it is on the scored rows. `low`, `high`: a 95 % interval.
    `baseline`: what it is for always saying the commonest class.
    """

    scoring: str
    value: float
    low: float
    high: float
    baseline: float

    def _check(self) -> None:
        require(self.scoring != "", "a chosen score has a name")
        require(self.low <= self.high, "an interval has its lower end first")


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatingPoint(Plain):
    """What a two-class model does at one threshold of the probability of the rarer class.

    `threshold`: rows with at least this probability are flagged: called the rarer class. `flagged`: share of all rows
    that are flagged. `precision`: share of the flagged rows that are of the class. `recall`: share of the rows of the
    class that are flagged. `false_alarms`: share of the other rows that are flagged.
    """

    threshold: float
    flagged: float
    precision: float
    recall: float
    false_alarms: float

    def _check(self) -> None:
        shares = (self.flagged, self.precision, self.recall, self.false_alarms)
        require(all(0 <= share <= 1 for share in shares), "shares at a threshold are in [0, 1]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking(Plain):
    """How a two-class model orders rows, by its probability of the rarer class.

    `positive`: that class, by its place in ``Setup.classes``. `roc_auc`, `average_precision`: scikit-learn's, in [0,
    1]. `share`: share of the scored rows that are of the class. `curve`: points from the strictest threshold to the
    loosest. `thresholds`: a few of all thresholds, for a table. `in_use`: what ``predict`` does.
    """

    positive: int
    roc_auc: float
    average_precision: float
    share: float
    curve: tuple[OperatingPoint, ...]
    thresholds: tuple[OperatingPoint, ...]
    in_use: OperatingPoint

    def _check(self) -> None:
        require(self.positive in (0, 1), "of two classes one is called positive: 0 or 1")
        for share in (self.roc_auc, self.average_precision, self.share):
            require(0 <= share <= 1, f"areas and shares must be in [0, 1], got {share!r}")
        require(len(self.curve) >= 1, "a curve has one point at least")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReliabilityGroup(Plain):
    """Rows of about the same probability. `probability`: their mean one. `share`: of them that are right."""

    probability: float
    share: float
    n_rows: int

    def _check(self) -> None:
        require(0 <= self.probability <= 1 and 0 <= self.share <= 1, "probabilities and shares are in [0, 1]")
        require(self.n_rows >= 1, "a group has rows")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reliability(Plain):
    """How far probabilities mean what they say: groups of rows that are about as likely, and how often they are right.

    `positive`: of two classes, the place of the one whose probability it is; None where it is that of the predicted
    class. `groups`: as many rows in each, the least likely first. `by_chance`: the expected calibration error that
    right probabilities have, on average, on so many rows.
    """

    positive: int | None
    groups: tuple[ReliabilityGroup, ...]
    by_chance: float

    @property
    def error(self) -> float:
        """The expected calibration error: how far shares are from probabilities, in the mean over all rows."""
        total = sum(group.n_rows for group in self.groups)
        return sum(abs(group.share - group.probability) * group.n_rows for group in self.groups) / total

    def _check(self) -> None:
        require(len(self.groups) >= 1, "a reliability diagram has one group at least")
        require(self.by_chance >= 0, "an error is >= 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Score(Plain):
    """How often labels were right, on public rows with labels.

    `n_rows`: rows it was measured on, at least 1.
    `accuracy`, `balanced_accuracy`: in [0, 1].
    `recall`: per class, in the order of ``Setup.classes``; None where no row has the class. Empty if not measured.
    `class_rows`: rows of each class among the public ones, in that order. Empty if not told.
    `commonest`: share of the commonest class among them: the accuracy of always saying it. It follows from
    `class_rows`, and is None where these are not told.
    `chosen`: the score that the run is judged by; None where that is accuracy.
    `ranking`: how rows are ordered; None where there are more than two classes, or the model has no probabilities.
    `reliability`: how far probabilities mean what they say; None where the model has none, or rows are fewer than 20.
    """

    n_rows: int
    accuracy: float
    balanced_accuracy: float | None = None
    recall: tuple[float | None, ...] = ()
    class_rows: tuple[int, ...] = ()
    commonest: float | None = None
    chosen: ChosenScore | None = None
    ranking: Ranking | None = None
    reliability: Reliability | None = None

    LEFT_OUT: ClassVar = ("chosen", "ranking", "reliability")

    def _check(self) -> None:
        require(self.n_rows >= 1, f"n_rows must be >= 1, got {self.n_rows}")
        for share in (self.accuracy, self.balanced_accuracy, *self.recall):
            require(share is None or 0 <= share <= 1, f"accuracies and recalls must be in [0, 1], got {share!r}")
        fits = not self.class_rows or (len(self.class_rows) == len(self.recall) and min(self.class_rows) >= 0)
        require(fits, "class_rows needs one count >= 0 for each recall, or none at all")
        known = max(self.class_rows) / sum(self.class_rows) if any(self.class_rows) else None
        require(self.commonest in (None, known), "commonest is the largest share of class_rows, and nothing without")
        object.__setattr__(self, "commonest", known)  # an earlier version did not write it


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedScore(Plain):
    """Which accuracy was expected of the student before anything was spent: by a rehearsal on public rows.

    `accuracy`, `low`, `high`: what was expected, and the range for nine runs in ten; in [0, 1]. `basis`: on what it
    rests, in words. `chosen`: what was expected of the score that the run is judged by; None where that is accuracy.
    """

    accuracy: float
    low: float
    high: float
    basis: str
    chosen: ChosenScore | None = None

    LEFT_OUT: ClassVar = ("chosen",)

    def _check(self) -> None:
        require(0 <= self.low <= self.accuracy <= self.high <= 1, "an expected accuracy lies in its range in [0, 1]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Residuals(Plain):
    """How far predictions are off where about the same is predicted.

    `predicted`: the mean of a part of the rows. `low`, `median`, `high`: the number less the predicted one: tenth
    percentile, median and ninetieth.
    """

    predicted: float
    low: float
    median: float
    high: float

    def _check(self) -> None:
        require(self.low <= self.median <= self.high, "percentiles of residuals are in order")


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberScore(Plain):
    """How near predicted numbers are, on public rows.

    `n_rows`: rows it was measured on, at least 1. `mean_absolute_error`: in the unit of the target, >= 0. `r_squared`:
    at most 1; None where all rows have the same number. `residuals`: in the order of what is predicted.
    """

    n_rows: int
    mean_absolute_error: float
    r_squared: float | None = None
    residuals: tuple[Residuals, ...] = ()

    def _check(self) -> None:
        require(self.n_rows >= 1, f"n_rows must be >= 1, got {self.n_rows}")
        require(self.mean_absolute_error >= 0, "a mean absolute error is at least 0")
        require(self.r_squared is None or self.r_squared <= 1, "R² is at most 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Utility(Plain):
    """What the labels and the student are good for.

    `student`, `ensemble`: against public labels; the ensemble's is that of its released answers. `non_private`: only
    where the owner reveals it: it is not covered by the guarantee. `expected`: what was expected of the student, where
    the run was rehearsed. `number`: in place of `student`, where a number is predicted.
    """

    student: Score | None = None
    ensemble: Score | None = None
    non_private: Score | None = None
    expected: ExpectedScore | None = None
    number: NumberScore | None = None

    LEFT_OUT: ClassVar = ("number",)

    def of_model(self, score: Score | NumberScore | None) -> Utility:
        """Return the same with what the published model was scored."""
        if score is None:
            return self
        return replace(self, number=score) if isinstance(score, NumberScore) else replace(self, student=score)

    @property
    def is_scored(self) -> bool:
        """Whether the published model was scored."""
        return self.student is not None or self.number is not None
