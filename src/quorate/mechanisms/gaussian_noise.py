"""Gaussian noise on every count or on half the lead of class 1, and what its data-dependent analysis has to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import DiscreteGaussian, calibrate_sigma
from quorate.accounting.data_dependent import gnmax_rdp, smooth_sensitivity, threshold_rdp
from quorate.deferred import special
from quorate.mechanisms.answer_law import AnswerNoise
from quorate.mechanisms.answers import VOTE_L2_SENSITIVITY, half_lead
from quorate.mechanisms.fields import Schedule
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.types import FloatArray, IntArray, Secret

#: ``"histogram"`` adds noise to every count, ``"binary"`` to the half-lead of class 1 of two.
Form: TypeAlias = Literal["histogram", "binary"]

FORMS = ("histogram", "binary")


def n_classes_of(form: Form) -> int | None:
    """Return how many classes a form takes; None where any number will do."""
    return 2 if form == "binary" else None


def gaussian_event(sigma: float, form: Form) -> DiscreteGaussian:
    """Return the price of one release: Δ = √2 for a histogram, of which one teacher moves two counts; 1 for a
    half-lead. CKS20, Proposition 5, summed over the coordinates.
    """
    return DiscreteGaussian(sigma, 1.0 if form == "binary" else VOTE_L2_SENSITIVITY)


def gaussian_noise(sigma: float, form: Form) -> AnswerNoise:
    """Return the noise in an answer of this form."""
    return AnswerNoise(distribution="gaussian", scale=sigma, on="half-lead" if form == "binary" else "counts")


def least_sigma(form: Form, schedule: Schedule) -> float:
    """Return the least σ for which a whole schedule of Gaussian answers fits."""
    sensitivity = 1.0 if form == "binary" else VOTE_L2_SENSITIVITY
    return calibrate_sigma(schedule.epsilon, schedule.delta, schedule.answers, sensitivity)


def with_noise(counts: IntArray, sigma: float, form: Form, noise: NoiseSource) -> IntArray:
    """Return the noisy counts ``(n_queries, n_classes)``, or the noisy half-leads ``(n_queries,)``."""
    exact = half_lead(counts) if form == "binary" else counts
    return exact + discrete_gaussian(sigma, exact.shape, noise)


@dataclass(frozen=True, slots=True)
class NoisyMaxTerms:
    """The public numbers of a noisy max on counts, and what its answers cost on given votes.

    `sigma`: of the answer's noise; `threshold`, `sigma_threshold`: of the test before it, None without one; in votes.
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
        return smooth_sensitivity(
            counts.reveal(),
            self.sigma,
            order,
            beta,
            answered=None if self.test is None else answered,
            threshold=self.threshold,
            threshold_sigma=self.sigma_threshold,
        )
