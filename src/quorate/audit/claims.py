"""What a mechanism claims about one neighbouring pair, and how far counts of an attack contradict it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from quorate.accounting import Event
from quorate.arguments import real
from quorate.audit.bounds import approx_epsilon_lower, gaussian_mu_lower, pure_epsilon_lower
from quorate.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How often an attack said 1 and 0 on either data set; arrays of one shape, one entry an attack.

    Attributes
    ----------
    said_1_of_1, said_1_of_0 : FloatArray
        Runs on data set 1 and 0 in which the attack said 1.
    said_0_of_1, said_0_of_0 : FloatArray
        The same for 0; where it said neither, it abstained.
    runs_1, runs_0 : FloatArray
        Runs on either data set, abstentions included.
    """

    said_1_of_1: FloatArray
    said_1_of_0: FloatArray
    said_0_of_1: FloatArray
    said_0_of_0: FloatArray
    runs_1: FloatArray
    runs_0: FloatArray


@dataclass(frozen=True, slots=True)
class PureClaim:
    """A claim of ε-DP.

    Parameters
    ----------
    epsilon : float
        In nats, > 0.

    Raises
    ------
    InvalidParameter
        If `epsilon` is not a finite number > 0.

    Examples
    --------
    >>> PureClaim(1)
    PureClaim(epsilon=1.0)
    """

    epsilon: float
    quantity: ClassVar[str] = "ε"
    abstains: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))

    @property
    def bound(self) -> float:
        """The ε that is claimed."""
        return self.epsilon

    def lower_bound(self, tally: Tally, alpha: float) -> FloatArray:
        """Return the ε that `tally` proves at level ``1 − alpha``."""
        correct = tally.said_1_of_1 + tally.said_0_of_0
        return pure_epsilon_lower(correct, correct + tally.said_1_of_0 + tally.said_0_of_1, alpha)


@dataclass(frozen=True, slots=True)
class ApproxClaim:
    """A claim of (ε, δ)-DP.

    Parameters
    ----------
    epsilon : float
        In nats, > 0.
    delta : float
        A probability, > 0 and < 1; for δ = 0 use :class:`PureClaim`.

    Raises
    ------
    InvalidParameter
        If a field is out of range.

    Examples
    --------
    >>> ApproxClaim(1, 1e-5)
    ApproxClaim(epsilon=1.0, delta=1e-05)
    """

    epsilon: float
    delta: float
    quantity: ClassVar[str] = "ε"
    abstains: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", real("epsilon", self.epsilon, above=0))
        object.__setattr__(self, "delta", real("delta", self.delta, above=0, below=1))

    @property
    def bound(self) -> float:
        """The ε that is claimed."""
        return self.epsilon

    def lower_bound(self, tally: Tally, alpha: float) -> FloatArray:
        """Return the ε that `tally` proves at δ, at level ``1 − alpha``."""
        # The attack speaks for one side only (see best_guess), so that the larger of the two is one bound, not two.
        for_1 = approx_epsilon_lower(
            tally.said_1_of_1, tally.runs_1, tally.said_1_of_0, tally.runs_0, self.delta, alpha
        )
        for_0 = approx_epsilon_lower(
            tally.said_0_of_0, tally.runs_0, tally.said_0_of_1, tally.runs_1, self.delta, alpha
        )
        return np.maximum(for_1, for_0)


@dataclass(frozen=True, slots=True)
class GaussianClaim:
    """A claim of μ-GDP: telling the data sets apart is as hard as N(0, 1) from N(μ, 1).

    Parameters
    ----------
    mu : float
        > 0; sensitivity / σ for one answer with continuous Gaussian noise. Discrete Gaussian noise may pass the curve
        by 2e−5 in probability at σ = 10, and by less for wider noise; 100,000 runs tell probabilities apart that differ
        by a hundred times as much. Below σ = 10 claim (ε, δ) instead (:func:`~quorate.audit.claim_of`).

    Raises
    ------
    InvalidParameter
        If `mu` is not a finite number > 0.

    Examples
    --------
    >>> GaussianClaim(0.5)
    GaussianClaim(mu=0.5)
    """

    mu: float
    quantity: ClassVar[str] = "μ"
    abstains: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", real("mu", self.mu, above=0))

    @property
    def bound(self) -> float:
        """The μ that is claimed."""
        return self.mu

    def lower_bound(self, tally: Tally, alpha: float) -> FloatArray:
        """Return the μ that `tally` proves at level ``1 − alpha``."""
        # The attack speaks for one side only (see best_guess), so that the larger of the two is one bound, not two.
        for_1 = gaussian_mu_lower(tally.said_1_of_1, tally.runs_1, tally.said_1_of_0, tally.runs_0, alpha)
        for_0 = gaussian_mu_lower(tally.said_0_of_0, tally.runs_0, tally.said_0_of_1, tally.runs_1, alpha)
        return np.maximum(for_1, for_0)


Claim: TypeAlias = PureClaim | ApproxClaim | GaussianClaim


def claim_of(event: Event, delta: float) -> Claim:
    """Return what an event claims at `delta`: (ε, δ) by the accountant's tightest rule.

    Examples
    --------
    >>> from quorate.accounting import PureDP
    >>> claim_of(PureDP(0.5), 1e-6)
    PureClaim(epsilon=0.5)
    """
    from quorate.accounting import PureDP, epsilon  # the rules are heavier than the events

    if isinstance(event, PureDP) and event.epsilon > 0:
        return PureClaim(event.epsilon)
    return ApproxClaim(float(np.nextafter(epsilon(event, delta), np.inf)), delta)
