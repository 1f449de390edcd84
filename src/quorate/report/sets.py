"""What sets of classes, and intervals of a number, rest on: public rows with labels, or private units held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

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
