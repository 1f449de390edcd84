"""Two forms of Gaussian noise on votes: on every count, or on half the lead of class 1."""

from __future__ import annotations

from typing import Literal, TypeAlias

from quorate.accounting import DiscreteGaussian
from quorate.mechanisms.votes import VOTE_L2_SENSITIVITY, half_lead
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.types import IntArray

#: ``"histogram"`` adds noise to every count, ``"binary"`` to the half-lead of class 1 of two.
Form: TypeAlias = Literal["histogram", "binary"]

FORMS = ("histogram", "binary")


def n_classes_of(form: Form) -> int | None:
    """Return how many classes a form takes; None where any number will do."""
    return 2 if form == "binary" else None


def gaussian_event(sigma: float, form: Form) -> DiscreteGaussian:
    r"""Return the price of one release in this form.

    Notes
    -----
    Neighbours change one teacher. In the histogram two counts move by one (an abstention: one count), so the
    vector has L2 sensitivity √2. The half-lead is one integer of sensitivity 1. Independent discrete Gaussian
    noise on the coordinates of an integer vector of L2 sensitivity Δ is Δ²/(2σ²)-zCDP: CKS20, Proposition 5, summed
    over the coordinates.

    Examples
    --------
    >>> gaussian_event(40.0, "binary")
    DiscreteGaussian(sigma=40.0, l2_sensitivity=1.0)
    """
    return DiscreteGaussian(sigma, 1.0 if form == "binary" else VOTE_L2_SENSITIVITY)


def with_noise(counts: IntArray, sigma: float, form: Form, noise: NoiseSource) -> IntArray:
    """Return the noisy counts ``(n_queries, n_classes)``, or the noisy half-leads ``(n_queries,)``."""
    exact = half_lead(counts) if form == "binary" else counts
    return exact + discrete_gaussian(sigma, exact.shape, noise)
