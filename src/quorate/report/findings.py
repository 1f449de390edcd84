"""What was found out: what the student and its prediction sets are, what another ε would buy, what an audit proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from quorate.accounting.attacker import PAIRS
from quorate.report.plain import Plain, require
from quorate.students.prediction_sets import CoveragePromise, Kind, Limits, OneLimit, kept_ranks, promised

_ROUNDED: Final = 2e-6  # of a slack


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionIntervals(Plain):
    """What makes an interval for each row that holds its number in a share of rows: by public rows with targets.

    It ends as far from the prediction as the limit, to either side.

    `n_rows`: rows that the limits were read off.
    `scores`: limits, ascending, at the ranks of :func:`quorate.students.prediction_sets.kept_ranks`. For a coverage c
    it is that at the least rank of ``c * (n_rows + 1)`` or more.
    `coverage`, `slack`, `failure`: what the report tells: but with probability `failure`, intervals of
    `coverage` hold the truth in a share of at least `coverage` − `slack` of rows that are drawn as these were.
    """

    n_rows: int
    scores: tuple[float, ...]
    coverage: float
    slack: float
    failure: float

    KIND: ClassVar[Kind] = "intervals"

    @property
    def limits(self) -> Limits:
        """What the interval, or the set, of a new row is made by."""
        return Limits(n_rows=self.n_rows, scores=self.scores, kind=self.KIND)

    def _check(self) -> None:
        require(self.n_rows >= 1, "intervals and prediction sets are calibrated on rows")
        require(len(self.scores) == len(kept_ranks(self.n_rows)), "scores are those at the ranks that are kept")
        require(list(self.scores) == sorted(self.scores), "scores ascend")
        promise = promised(self.n_rows, self.coverage)
        same = self.failure == promise.failure and abs(self.slack - promise.slack) < _ROUNDED
        require(same, "slack and failure are those that follow from the number of rows")


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionSets(PredictionIntervals):
    """What makes a set of classes for each row that holds its class in a share of rows: by labelled public rows.

    A class is in the set of a row where one less its probability is at most the limit. `mean_size`, `empty`: classes in
    a set of `coverage` on average, and the share of sets without any, on those rows.
    """

    mean_size: float
    empty: float

    KIND: ClassVar[Kind] = "sets"

    def _check(self) -> None:
        PredictionIntervals._check(self)  # a class with slots has no argument-less super
        require(self.mean_size >= 0 and 0 <= self.empty <= 1, "a mean size is >= 0, and a share in [0, 1]")


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivateSets(Plain):
    """The limit of prediction sets that was chosen on private units which nothing learned from.

    `limit`: a class is in the set of a row where one less its probability is at most that.
    `coverage`, `slack`, `failure`: but with probability `failure`, the share of units whose row has its class in
    the set is at least `coverage` − `slack`.
    `share`: of the units, which was held out.
    `epsilon`: at which the limit was chosen. It is part of the run's charge, and not beside it.
    """

    limit: float
    coverage: float
    slack: float
    failure: float
    share: float
    epsilon: float

    KIND: ClassVar[Kind] = "sets"

    @property
    def limits(self) -> OneLimit:
        """What the set, or the interval, of a new row is made by."""
        return OneLimit(
            score=self.limit,
            promise=CoveragePromise(
                coverage=self.coverage, slack=self.slack, failure=self.failure, n_rows=None, of=self.KIND
            ),
        )

    def _check(self) -> None:
        shares = (self.coverage, self.failure, self.share)
        require(all(0 < share < 1 for share in shares) and 0 <= self.slack <= self.coverage, "shares are in (0, 1)")
        require(self.limit >= 0 and self.epsilon > 0, "a limit is >= 0, and an epsilon > 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivateIntervals(PrivateSets):
    """The same for intervals of a number, which end as far as `limit` from the prediction, to either side."""

    KIND: ClassVar[Kind] = "intervals"


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnImportance(Plain):
    """How much probability moves to other classes where a column's entries change places among public rows."""

    column: str
    moved: float

    def _check(self) -> None:
        require(0 <= self.moved <= 1, f"moved must be in [0, 1], got {self.moved!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted(Plain):
    """What came of the student.

    `name`: class name of the fitted model, or those of its steps; the public encoder is not among them.
    `constant`: whether it gives every row the same class, since fewer than two classes were released.
    `threshold`: where a decision threshold was chosen: the probability of `threshold_class` from which on it is
    predicted.
    `threshold_class`: that class.
    `importances`: of the columns that matter most, the first first; None where they were not worked out.
    `temperature`: what the model's scores were divided by, so that its probabilities fit labelled public rows, or noisy
    counts of private units: by the product, where both were.
    `paid_temperature`: the part of it that follows from such counts.
    `calibration_rows`: how many labelled public rows there were.
    `prediction_sets`: what other labelled public rows made, for sets of classes.
    `private_sets`: what private units that were held out made, for sets of classes.
    `intervals`: what public rows with targets made, where a number is predicted.
    `private_intervals`: what private units that were held out made, where a number is predicted.
    """

    name: str
    constant: bool = False
    threshold: float | None = None
    threshold_class: str | None = None
    importances: tuple[ColumnImportance, ...] | None = None
    temperature: float | None = None
    paid_temperature: float | None = None
    calibration_rows: int | None = None
    prediction_sets: PredictionSets | None = None
    private_sets: PrivateSets | None = None
    intervals: PredictionIntervals | None = None
    private_intervals: PrivateIntervals | None = None

    LEFT_OUT: ClassVar = (
        "threshold", "threshold_class", "importances", "temperature", "paid_temperature", "calibration_rows",
        "prediction_sets", "private_sets", "intervals", "private_intervals",
    )  # fmt: skip

    def _check(self) -> None:
        require(self.temperature is None or self.temperature > 0, "a temperature is > 0")
        parts = (self.paid_temperature, self.calibration_rows)
        require((self.temperature is None) == (parts == (None, None)), "a temperature is of counts, or of rows")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice(Plain):
    """What another ε would have bought, at the same δ."""

    epsilon: float
    sigma: float | None
    n_answers: int | None
    expected_accuracy: float | None = None
    chosen: bool = False

    def _check(self) -> None:
        require(self.epsilon > 0, f"epsilon must be > 0, got {self.epsilon!r}")
        require(self.sigma is None or self.sigma > 0, f"sigma must be > 0 votes, got {self.sigma!r}")
        require((self.n_answers or 0) >= 0, f"n_answers must be >= 0, got {self.n_answers!r}")
        expected = self.expected_accuracy
        require(expected is None or 0 <= expected <= 1, f"expected_accuracy must be in [0, 1], got {expected!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class AttackCurve(Plain):
    """What the best attacker can do who sees the release, by its exact price: the trade-off curve.

    `false_alarms`: rates in [0, 1], rising: *in the data* is said of a unit that is not. `misses`: the least possible
    rate of units in the data of which it is not said, at each of them. `told_apart`, `allowed`: of 1,000 equally likely
    pairs of worlds, how many it names rightly on average, at most: by the exact price, and by ε and δ of the run alone.
    Earlier versions did not write them.
    """

    false_alarms: tuple[float, ...]
    misses: tuple[float, ...]
    told_apart: int | None = None
    allowed: int | None = None

    LEFT_OUT: ClassVar = ("told_apart", "allowed")

    def recognised(self, false_alarms: float) -> float:
        """Return the largest share of units in the data that are recognised, at one of the rates of false alarms."""
        return round(1 - self.misses[self.false_alarms.index(false_alarms)], 12)

    def _check(self) -> None:
        same = len(self.false_alarms) == len(self.misses) > 1
        require(same, "a curve has as many misses as false alarms, two at least")
        shares = all(0 <= share <= 1 for share in (*self.false_alarms, *self.misses))
        require(shares, "false alarms and misses are rates in [0, 1]")
        require(list(self.false_alarms) == sorted(self.false_alarms), "false alarms rise")
        for right in (self.told_apart, self.allowed):
            require(right is None or PAIRS // 2 <= right <= PAIRS, f"of pairs 500 to 1,000 are named, got {right!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditLine(Plain):
    """One attack on the release, and the ε that it proves from below."""

    attack: str
    claimed_epsilon: float
    lower_bound: float
    confidence: float
    trials: int

    @property
    def violated(self) -> bool:
        """Whether the attack proves more than was claimed."""
        return self.lower_bound > self.claimed_epsilon

    def _check(self) -> None:
        require(self.claimed_epsilon >= 0 and self.lower_bound >= 0, "an audit compares two epsilons >= 0")
        require(0 < self.confidence < 1, f"confidence must be in (0, 1), got {self.confidence!r}")
        require(self.trials >= 1, f"trials must be >= 1, got {self.trials}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison(Plain):
    """A mechanism's answers to one stream, beside the distribution that its price assumes.

    `name`: what the stream looks at. `event`: the answers that were counted. `observed`, `expected`: their share among
    the runs, and the largest probability that they should have. `violated`: whether the two differ by more than chance
    explains. `confidence`: in (0, 1). `trials`: runs that were counted.
    """

    name: str
    event: str
    observed: float
    expected: float
    violated: bool
    confidence: float
    trials: int

    def _check(self) -> None:
        shares = 0 <= self.observed <= 1 and 0 <= self.expected <= 1
        require(shares, "a comparison compares two probabilities")
        require(0 < self.confidence < 1, f"confidence must be in (0, 1), got {self.confidence!r}")
        require(self.trials >= 1, f"trials must be >= 1, got {self.trials}")


@dataclass(frozen=True, kw_only=True, slots=True)
class StageLine(Plain):
    """What one sparse-vector stage was charged, and the privacy loss that an exact sum finds for it."""

    claimed_epsilon: float
    exact_epsilon: float

    @property
    def violated(self) -> bool:
        """Whether a stage loses more than was charged."""
        return self.exact_epsilon > self.claimed_epsilon

    def _check(self) -> None:
        require(self.claimed_epsilon >= 0 and self.exact_epsilon >= 0, "a stage compares two epsilons >= 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChargeLine(Plain):
    """What a ledger was charged, beside the price of what the code that releases declares."""

    charged_epsilon: float
    released_epsilon: float
    violated: bool

    def _check(self) -> None:
        require(self.charged_epsilon >= 0 and self.released_epsilon >= 0, "a charge compares two epsilons >= 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultSize(Plain):
    """A fault that an audit finds, as small as it was measured to find it.

    `fault`: in words: ``"noise smaller by 12 %"``. `attack`: which attack finds it. `probability`: it is found with
    this probability or more. `found`: false where not even this fault, the grossest that was tried, is found with that
    probability.
    """

    fault: str
    attack: str
    probability: float
    found: bool = True

    def _check(self) -> None:
        require(0 < self.probability < 1, f"probability must be in (0, 1), got {self.probability!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultSizes(Plain):
    """What is known of the faults that an audit would have found.

    `faults`: one for each kind; empty where none was measured for the mechanism. `certainty`: with which each of them
    was measured. `elsewhere`: the setting at which they were measured, where it is not that of the audit; None where it
    is.
    """

    faults: tuple[FaultSize, ...] = ()
    certainty: float | None = None
    elsewhere: str | None = None

    def _check(self) -> None:
        certain = self.certainty is not None and 0 < self.certainty < 1
        require(certain or not self.faults, "sizes that were measured have a certainty in (0, 1)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit(Plain):
    """What an audit measured.

    `lines`: attacks. `comparisons`: of answers with their distribution. `charge`: what was charged beside what is
    released; None where that was not compared. `sees`, `does_not_see`: kinds of fault that it looked for, each with its
    size, and kinds that it did not. `stage`: the exact loss of one of its stages. `sizes`: how small a fault it would
    have found; None where an earlier version wrote the facts.
    """

    lines: tuple[AuditLine, ...]
    comparisons: tuple[Comparison, ...] = ()
    stage: StageLine | None = None
    sizes: FaultSizes | None = None
    charge: ChargeLine | None = None
    sees: tuple[str, ...] = ()
    does_not_see: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Whether anything that was measured contradicts what was claimed."""
        stage, charge = (self.stage,) if self.stage else (), (self.charge,) if self.charge else ()
        parts = (*self.lines, *self.comparisons, *stage, *charge)
        return any(part.violated for part in parts)

    def _check(self) -> None:
        require(len(self.lines) >= 1, "an audit has at least one attack; use audit=None where there was none")
