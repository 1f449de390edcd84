"""What a data-dependent analysis has to know of a Gaussian noisy max, with or without a test before it (PATE18)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.data_dependent import gnmax_rdp, smooth_sensitivity, threshold_rdp
from quorate.deferred import special
from quorate.types import FloatArray, IntArray, Secret


@dataclass(frozen=True, slots=True)
class NoisyMaxTerms:
    """The public numbers of a noisy max on counts, and what its answers cost on given votes.

    Attributes
    ----------
    sigma : float
        σ of the answer's noise, in votes.
    threshold, sigma_threshold : float or None
        Of the test before it, in votes; None where every query is answered.
    """

    sigma: float
    threshold: float | None = None
    sigma_threshold: float | None = None

    @property
    def test(self) -> tuple[float, float] | None:
        """Threshold and σ of the test, if there is one."""
        if self.threshold is None or self.sigma_threshold is None:
            return None
        return self.threshold, self.sigma_threshold

    def answers_rdp(self, counts: Secret[IntArray], orders: object) -> Secret[FloatArray]:
        """Return what each query costs if it is answered, ``(n_queries, n_orders)``."""
        return gnmax_rdp(counts, self.sigma, orders, noise="discrete")

    def tests_rdp(self, counts: Secret[IntArray], orders: object) -> Secret[FloatArray] | None:
        """Return what each query's test costs, ``(n_queries, n_orders)``; None without a test."""
        return None if self.test is None else threshold_rdp(counts, *self.test, orders, noise="discrete")

    def answered(self, counts: Secret[IntArray]) -> Secret[FloatArray]:
        """Return the probability that each query is answered, ``(n_queries,)``."""
        largest = counts.reveal().max(axis=1)
        if self.test is None:
            return Secret(np.ones(largest.shape))
        threshold, sigma = self.test
        return Secret(special.ndtr((largest - threshold) / sigma))

    def smooth_sensitivity(
        self, counts: Secret[IntArray], order: float, beta: float, answered: NDArray[np.bool_] | None
    ) -> Secret[float]:
        """Return the smooth sensitivity of the total, given which queries were answered."""
        if self.test is None:
            return smooth_sensitivity(counts.reveal(), self.sigma, order, beta)
        threshold, sigma = self.test
        return smooth_sensitivity(
            counts.reveal(),
            self.sigma,
            order,
            beta,
            answered=answered,
            threshold=threshold,
            threshold_sigma=sigma,
        )
