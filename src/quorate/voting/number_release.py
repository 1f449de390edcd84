"""What votes for a number release: counts of targets, where these show through their noise, and noisy means."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from quorate.accounting import Composed, Event, calibrate_sigma
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.mechanisms import NoisyMean, Schedule
from quorate.mechanisms.fields import least
from quorate.mechanisms.noisy_mean import LENGTH, NoisyMeans, TargetCounts
from quorate.run.located import COUNTING, MOST_CELLS, cells_for

OF_COUNTS = 0.1  # of μ², for counts of targets


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberRelease:
    """What is released: noisy means, after counts of targets where these show through their noise."""

    means: NoisyMean
    counts: TargetCounts | None

    @classmethod
    def calibrated(cls, budget: Schedule, n_units: int, *, at_once: bool = True) -> NumberRelease:
        """Return it with the least noise that fits the budget; counts get their share of μ².

        `at_once`: whether all of a teacher's numbers are one vector of bounded length, as in every new fit.
        """
        kind: type[NoisyMean] = NoisyMeans if at_once else NoisyMean
        values: dict[str, Any] = {"queries": budget.answers, "length": LENGTH} if at_once else {}
        mu = mu_of_gaussian(budget.epsilon, budget.delta) * math.sqrt(OF_COUNTS)
        counts = TargetCounts.within(mu, COUNTING, MOST_CELLS)
        cells = cells_for(MOST_CELLS, n_units, counts.sigma)
        if not cells:
            return cls(means=kind.calibrated(values, budget), counts=None)
        counts = replace(counts, cells=cells)
        times, moved = (1, 2 * LENGTH * math.sqrt(budget.answers)) if at_once else (budget.answers, 2.0)
        start = calibrate_sigma(budget.epsilon, budget.delta, times, moved, noise="continuous")
        return least(
            lambda sigma: cls(means=kind(sigma=sigma, **values), counts=counts),
            start / math.sqrt(1 - OF_COUNTS),
            budget,
        )

    def schedule(self, answers: int) -> Event:
        """Return what so many noisy means, and the counts before them, release."""
        means = self.means.schedule(answers)
        return means if self.counts is None else Composed((self.counts.schedule(COUNTING), means))

    @property
    def why(self) -> tuple[str, ...]:
        """Say whether targets are counted."""
        if self.counts is None:
            return ("noise would hide where targets lie, so none is counted: teachers predict in the whole range",)
        cells, share = self.counts.cells, f"{OF_COUNTS:.0%} of μ²"
        return (f"{COUNTING} noisy counts of targets in {cells} cells, at {share}, choose the part to predict in",)
