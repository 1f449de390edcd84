"""From rehearsals to an expected accuracy: what too few rows and teachers cost is added again.

The correction, the parts of the range, and the law of the whole, the halves and the quarters (a forced choice among
alternatives, Green and Swets 1966): ``docs/theory/rehearsals.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from quorate.deferred import special
from quorate.run.expectation import Basis, Expected, ExpectedValue
from quorate.types import BoolArray, FloatArray

SHARES = 1 - (1 - (np.arange(50) + 0.5) / 50) ** (1 / 4)  # ρ: each of them as likely, before anything is seen
LARGEST = 8.0  # sensitivity beyond which nothing is ever wrong
NODES = 80


@cache
def _forced_choice(n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Return sensitivities from 0 on, and how often a choice among so many classes is right with each."""
    sensitivities = np.linspace(0.0, LARGEST, 801)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    beaten = special.ndtr(nodes[:, None] + np.sqrt(2) * sensitivities) ** (n_classes - 1)
    return sensitivities, np.asarray(weights @ beaten / weights.sum())


def accuracy_of(sensitivity: FloatArray, n_classes: int) -> FloatArray:
    """Return how often a choice among classes is right."""
    return np.interp(sensitivity, *_forced_choice(n_classes))


def sensitivity_of(accuracy: float, n_classes: int) -> float:
    """Return the sensitivity of a choice that is right so often; 0 where a guess is as good."""
    sensitivities, right = _forced_choice(n_classes)
    return float(np.interp(accuracy, right, sensitivities))


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """What the true size adds to an accuracy: its mean, and what few scored rows leave open of it."""

    mean: float
    variance: float


def growth(losses: FloatArray, whole: float, *, size: float, n_classes: int) -> Growth:
    """Return what the true size adds to the accuracy of the whole; `losses`: of each row, of a half, a quarter."""
    n = len(losses)
    sensitivity = sensitivity_of((whole * n + 0.5) / (n + 1), n_classes)  # all right of n is no proof
    variances = np.array([1.0, 2.0, 4.0, min(size, 1.0)])  # of the whole, halves, quarters and all rows, where v/s is 1
    lengths = np.sqrt(1 - SHARES[:, None] + SHARES[:, None] * variances)
    right = accuracy_of(sensitivity / lengths, n_classes)
    apart = losses.mean(axis=0) - (right[:, :1] - right[:, 1:-1])
    unsure = np.cov(losses.T) / n + np.eye(2) / n**2
    fits = np.einsum("ij,jk,ik->i", apart, np.linalg.inv(unsure), apart)
    weights = np.exp(-(fits - fits.min()) / 2)
    weights /= weights.sum()
    added = right[:, -1] - right[:, 0]
    mean = float(weights @ added)
    return Growth(mean=mean, variance=float(weights @ (added - mean) ** 2))


UPPER = 0.95  # quantile at both ends: nine in ten lie within
UNKNOWN = 0.004  # a standard deviation for what no rehearsal shows: rows that are no random sample
OF_PERSONS = 0.015  # likewise: how far rows of one person resemble each other, where nothing tells whose rows are
FIRST_ORDER = 0.6  # of the correction of votes: a standard deviation, for an exponent of its law between 1/2 and 2
LAW = 0.35  # of the correction of the direct method: how far it was off
OF_A_RUN = 0.012  # how far runs differ by their noise, where too few were played to tell
OF_A_VALUE = 0.03  # likewise of a score that is not accuracy
FEWEST_DEGREES = 2.0
HALVES = 3  # of a play: the whole and two halves


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Played:
    """One rehearsal of one row. `hits`: which held-out rows were right: with the whole, each half and, for rounds, each
    quarter. `size`: of the whole, as a share of the true size. `values`: the chosen score of each, if not accuracy.
    """

    hits: BoolArray = field(repr=False)
    fold: int
    size: float
    answered: float = 1.0
    values: tuple[float, ...] = ()

    @property
    def whole(self) -> float:
        """Accuracy with the whole ensemble."""
        return float(self.hits[0].mean())

    @property
    def n_scored(self) -> int:
        """Rows that were held out."""
        return int(self.hits.shape[1])

    @property
    def missing(self) -> float:
        """What the true size lacks here, as a share."""
        return 1 - min(self.size, 1.0)

    @property
    def first_order(self) -> float:
        """What the true size would add, in proportion to one over the size."""
        return self.missing * (self.whole - float(self.hits[1:3].mean()))

    @property
    def lost(self) -> FloatArray:
        """How much more often a row was right with the whole than with a half, and a quarter, ``(n_scored, 2)``."""
        return np.stack([self.hits[0] - part.mean(axis=0) for part in (self.hits[1:3], self.hits[3:])], axis=1)


def estimate(played: list[Played], basis: Basis, *, n_classes: int, mixed: bool = False) -> Expected:
    """Return what one run is expected to have; `mixed`: teachers of persons had rows of anybody."""
    observed = float(np.mean([play.whole for play in played]))
    added, of_added = _correction(played, observed, n_classes)
    accuracy = min(1.0, max(0.0, observed + added))
    n = sum({play.fold: play.n_scored for play in played}.values())
    right = (observed * n + 0.5) / (n + 1)
    variance, degrees = _together(
        [
            *_of_noise(played),
            (right * (1 - right) / n, math.inf),  # of scoring
            _of_rows(played),
            *of_added,
            (UNKNOWN**2 + (OF_PERSONS**2 if mixed else 0.0), math.inf),
        ]
    )
    spread = _quantile(degrees) * math.sqrt(variance)
    return Expected(accuracy=accuracy, low=max(0.0, accuracy - spread), high=min(1.0, accuracy + spread), basis=basis)


def estimate_value(played: list[Played], scoring: str, baseline: float) -> ExpectedValue:
    """Return what one run is expected to have of the chosen score, corrected to first order as votes are."""
    values = np.array([play.values[0] for play in played])
    added = [play.missing * (play.values[0] - float(np.mean(play.values[1:HALVES]))) for play in played]
    mean, correction = float(values.mean()), float(np.mean(added))
    of_a_run = float(values.var(ddof=1)) if len(values) > 1 else OF_A_VALUE**2
    variance = of_a_run * (1 + 1 / len(values)) + (FIRST_ORDER * correction) ** 2 + UNKNOWN**2
    spread = _quantile(max(FEWEST_DEGREES, len(values) - 1.0)) * math.sqrt(variance)
    exact = ExpectedValue(scoring=scoring, value=mean, low=mean - spread, high=mean + spread, baseline=baseline)
    return exact.moved(correction)


def _correction(played: list[Played], observed: float, n_classes: int) -> tuple[float, list[tuple[float, float]]]:
    """Return what the true size adds, and the variances of that."""
    if all(len(play.hits) > HALVES for play in played):
        losses = np.concatenate([np.mean([play.lost for play in part], axis=0) for part in _by_fold(played)])
        growing = growth(losses, observed, size=_size(played), n_classes=n_classes)
        return growing.mean, [(growing.variance + (LAW * growing.mean) ** 2, math.inf)]
    means = [float(np.mean([play.first_order for play in part])) for part in _by_fold(played)]
    mean = float(np.mean([play.first_order for play in played]))
    of_law = (FIRST_ORDER * mean) ** 2, math.inf
    return mean, [of_law] if len(means) < 2 else [of_law, (float(np.var(means, ddof=1)) / len(means), len(means) - 1)]


def _size(played: list[Played]) -> float:
    return float(np.mean([1 - play.missing for play in played]))


# --- variances, each with its degrees of freedom ---------------------------------------------------------------------


def _of_noise(played: list[Played]) -> list[tuple[float, float]]:
    """Variance of one run by its noise, and of the estimate by theirs."""
    observed = _within(played, [play.whole for play in played])
    corrected = observed
    if all(len(play.hits) == HALVES for play in played):
        corrected = _within(played, [play.whole + play.first_order for play in played])
    if observed is None or corrected is None:
        return [(OF_A_RUN**2 * (1 + 1 / len(played)), math.inf)]
    by_few_rows = []
    for part in _by_fold(played):
        if len(part) > 1:
            hits = np.array([play.hits[0] for play in part], dtype=float)
            of_a_row, of_the_mean = hits.var(axis=0, ddof=1).mean(), hits.mean(axis=1).var(ddof=1)
            by_few_rows.append((of_a_row - of_the_mean) / max(part[0].n_scored - 1, 1))
    of_a_run = max(0.0, observed[0] - float(np.mean(by_few_rows)))
    return [(of_a_run, observed[1]), (corrected[0] / len(played), corrected[1])]


def _of_rows(played: list[Played]) -> tuple[float, float]:
    """Variance of the estimate, and of the run, by the rows that teachers learn from."""
    squared = []
    parts = _by_fold(played)
    for part in parts:
        apart = np.mean([play.hits[1].astype(float) - play.hits[2] for play in part], axis=0)
        squared.append(apart.mean() ** 2 - apart.var() / max(len(apart) - 1, 1))
    variance = max(0.0, float(np.mean(squared))) / 4
    return variance * (1 + _size(played)), len(parts)


def _by_fold(played: list[Played]) -> list[list[Played]]:
    return [[play for play in played if play.fold == fold] for fold in sorted({play.fold for play in played})]


def _within(played: list[Played], values: list[float]) -> tuple[float, float] | None:
    """Variance over draws of the noise with the same rows; None where there was one draw each."""
    folds = np.array([play.fold for play in played])
    parts: list[FloatArray] = [np.array(values)[folds == fold] for fold in np.unique(folds)]
    degrees = sum(len(part) - 1 for part in parts)
    return (sum(float(((part - part.mean()) ** 2).sum()) for part in parts) / degrees, degrees) if degrees else None


def _together(parts: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the sum of variances and its degrees of freedom, after Welch and Satterthwaite."""
    total = sum(variance for variance, _ in parts)
    unsure = sum(variance**2 / degrees for variance, degrees in parts)
    return total, max(FEWEST_DEGREES, total**2 / unsure) if unsure else math.inf


def _quantile(degrees: float) -> float:
    return float(special.ndtri(UPPER) if math.isinf(degrees) else special.stdtrit(degrees, UPPER))
