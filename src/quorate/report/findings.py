"""What was found out: what the student is, what another ε would buy, what an audit proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quorate.accounting.attacker import PAIRS
from quorate.report.plain import Plain, require
from quorate.report.sets import PredictionIntervals, PredictionSets, PrivateIntervals, PrivateSets


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnImportance(Plain):
    """How much probability moves to other classes where a column's entries change places among public rows.

    Examples
    --------
    >>> ColumnImportance(column="age", moved=0.12).moved
    0.12
    """

    column: str
    moved: float

    def _check(self) -> None:
        require(0 <= self.moved <= 1, f"moved must be in [0, 1], got {self.moved!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted(Plain):
    """What came of the student.

    Parameters
    ----------
    name : str
        Class name of the fitted model, or those of its steps; the public encoder is not among them.
    constant : bool
        Whether it gives every row the same class, since fewer than two classes were released.
    threshold : float or None
        Where a decision threshold was chosen: the probability of `threshold_class` from which on it is predicted.
    threshold_class : str or None
        That class.
    importances : tuple of ColumnImportance or None
        Of the columns that matter most, the first first; None where they were not worked out.
    temperature : float or None
        What the model's scores were divided by, so that its probabilities fit labelled public rows, or noisy counts of
        private units: by the product, where both were.
    paid_temperature : float or None
        The part of it that follows from such counts.
    calibration_rows : int or None
        How many labelled public rows there were.
    prediction_sets : PredictionSets or None
        What other labelled public rows made, for sets of classes.
    private_sets : PrivateSets or None
        What private units that were held out made, for sets of classes.
    intervals : PredictionIntervals or None
        What public rows with targets made, where a number is predicted.
    private_intervals : PrivateIntervals or None
        What private units that were held out made, where a number is predicted.

    Examples
    --------
    >>> Fitted(name="StandardScaler → LogisticRegression").constant
    False
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
    """What another ε would have bought, at the same δ.

    Examples
    --------
    >>> Choice(epsilon=2, sigma=24.5, n_answers=1000, expected_accuracy=0.85).chosen
    False
    """

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

    Parameters
    ----------
    false_alarms : tuple of float
        Rates in [0, 1], rising: *in the data* is said of a unit that is not.
    misses : tuple of float
        The least possible rate of units in the data of which it is not said, at each of them.
    told_apart, allowed : int, optional
        Of 1,000 equally likely pairs of worlds, how many it names rightly on average, at most: by the exact price, and
        by ε and δ of the run alone. Earlier versions did not write them.

    Examples
    --------
    >>> AttackCurve(false_alarms=[0, 0.05, 1], misses=[1, 0.9, 0]).recognised(0.05)
    0.1
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
    """One attack on the release, and the ε that it proves from below.

    Examples
    --------
    >>> AuditLine(attack="one vote moved", claimed_epsilon=1, lower_bound=0.62, confidence=0.95, trials=10000).violated
    False
    """

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

    Parameters
    ----------
    name : str
        What the stream looks at.
    event : str
        The answers that were counted.
    observed, expected : float
        Their share among the runs, and the largest probability that they should have.
    violated : bool
        Whether the two differ by more than chance explains.
    confidence : float
        In (0, 1).
    trials : int
        Runs that were counted.

    Examples
    --------
    >>> Comparison(name="answers about the threshold", event="query 2 answered", observed=0.51, expected=0.5,
    ...            violated=False, confidence=0.99, trials=10000).observed
    0.51
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
    """What one sparse-vector stage was charged, and the privacy loss that an exact sum finds for it.

    Examples
    --------
    >>> StageLine(claimed_epsilon=0.1, exact_epsilon=0.0999).violated
    False
    """

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
    """What a ledger was charged, beside the price of what the code that releases declares.

    Examples
    --------
    >>> ChargeLine(charged_epsilon=1.0, released_epsilon=1.0, violated=False).violated
    False
    """

    charged_epsilon: float
    released_epsilon: float
    violated: bool

    def _check(self) -> None:
        require(self.charged_epsilon >= 0 and self.released_epsilon >= 0, "a charge compares two epsilons >= 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultSize(Plain):
    """A fault that an audit finds, as small as it was measured to find it.

    Parameters
    ----------
    fault : str
        In words: ``"noise smaller by 12 %"``.
    attack : str
        Which attack finds it.
    probability : float
        It is found with this probability or more.
    found : bool
        False where not even this fault, the grossest that was tried, is found with that probability.

    Examples
    --------
    >>> FaultSize(fault="noise smaller by 12 %", attack="all 50 answers", probability=0.9).found
    True
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

    Parameters
    ----------
    faults : tuple of FaultSize
        One for each kind; empty where none was measured for the mechanism.
    certainty : float or None
        With which each of them was measured.
    elsewhere : str or None
        The setting at which they were measured, where it is not that of the audit; None where it is.

    Examples
    --------
    >>> FaultSizes().faults
    ()
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

    Parameters
    ----------
    lines : tuple of AuditLine
        Attacks.
    comparisons : tuple of Comparison
        Of answers with their distribution.
    charge : ChargeLine or None
        What was charged beside what is released; None where that was not compared.
    sees, does_not_see : tuple of str
        Kinds of fault that it looked for, each with its size, and kinds that it did not.
    stage : StageLine or None
        The exact loss of one of its stages.
    sizes : FaultSizes or None
        How small a fault it would have found; None where an earlier version wrote the facts.

    Examples
    --------
    >>> Audit(lines=[AuditLine(attack="a", claimed_epsilon=1, lower_bound=2, confidence=0.95, trials=9)]).violated
    True
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
