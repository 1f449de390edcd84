r"""What a mechanism claims about one neighbouring pair, and how far counts of an attack contradict it.

Each bound here exceeds the true loss with probability at most α: :math:`\underline p(k, n, \alpha)` and
:math:`\overline p(k, n, \alpha)` are the Clopper–Pearson bounds of a binomial proportion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from quorate.accounting import Event
from quorate.arguments import real
from quorate.deferred import special
from quorate.types import FloatArray


def proportion_lower(successes: ArrayLike, trials: ArrayLike, alpha: float) -> FloatArray:
    """Return the Clopper–Pearson lower bound of a proportion, at level ``1 − alpha``; 0 where nothing was tried."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = special.betaincinv(np.maximum(k, 1e-300), n - k + 1, alpha)
    return np.where(k > 0, bound, 0.0)


def proportion_upper(successes: ArrayLike, trials: ArrayLike, alpha: float) -> FloatArray:
    """Return the Clopper–Pearson upper bound of a proportion, at level ``1 − alpha``; 1 where nothing was tried."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = special.betainccinv(k + 1, np.maximum(n - k, 1e-300), alpha)
    return np.where(k < n, bound, 1.0)


def pure_epsilon_lower(correct: ArrayLike, guesses: ArrayLike, alpha: float) -> FloatArray:
    r"""Bound ε from below by the right guesses of a uniform secret bit: :math:`\mathrm{logit}\,\underline p`.

    Under ε-DP a guess is right with probability at most :math:`e^\varepsilon/(1+e^\varepsilon)`; abstentions do not
    count.
    """
    return np.maximum(0.0, special.logit(np.maximum(proportion_lower(correct, guesses, alpha), 0.5)))


def approx_epsilon_lower(
    hits_1: ArrayLike, runs_1: ArrayLike, hits_0: ArrayLike, runs_0: ArrayLike, delta: float, alpha: float
) -> FloatArray:
    r"""Bound ε of an (ε, δ) claim from below: :math:`\ln((\underline p_1 - \delta)/\overline p_0)`, each at α/2.

    `hits_1` of `runs_1` runs on one data set and `hits_0` of `runs_0` on its neighbour gave the event.
    """
    above = proportion_lower(hits_1, runs_1, alpha / 2) - delta
    below = proportion_upper(hits_0, runs_0, alpha / 2)
    return np.where(above > below, np.log(np.maximum(above, 1e-300) / below), 0.0)


def gaussian_mu_lower(
    hits_1: ArrayLike, runs_1: ArrayLike, hits_0: ArrayLike, runs_0: ArrayLike, alpha: float
) -> FloatArray:
    r"""Bound a Gaussian trade-off μ from below: :math:`\Phi^{-1}(1-\overline{FNR})-\Phi^{-1}(\overline{FPR})`."""
    true_positives = proportion_lower(hits_1, runs_1, alpha / 2)
    false_positives = proportion_upper(hits_0, runs_0, alpha / 2)
    with np.errstate(invalid="ignore"):  # -inf minus inf where nothing was counted
        return np.maximum(
            0.0, np.nan_to_num(special.ndtri(true_positives) - special.ndtri(false_positives), nan=0.0, neginf=0.0)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How often an attack said 1 and 0 on either data set; arrays of one shape, one entry an attack.

    Where it said neither, it abstained; `runs_1` and `runs_0` count abstentions too.
    """

    said_1_of_1: FloatArray
    said_1_of_0: FloatArray
    said_0_of_1: FloatArray
    said_0_of_0: FloatArray
    runs_1: FloatArray
    runs_0: FloatArray

    def of_the_side_it_speaks_for(self, lower: Callable[..., FloatArray], *how: float) -> FloatArray:
        """Return the larger bound: an attack speaks for one side only (see best_guess), so that it is one, not two."""
        for_1 = lower(self.said_1_of_1, self.runs_1, self.said_1_of_0, self.runs_0, *how)
        return np.maximum(for_1, lower(self.said_0_of_0, self.runs_0, self.said_0_of_1, self.runs_1, *how))


@dataclass(frozen=True, slots=True)
class PureClaim:
    """A claim of ε-DP.

    `epsilon`: in nats, > 0. Raises InvalidParameter if `epsilon` is not a finite number > 0.

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

    `epsilon`: in nats, > 0. `delta`: a probability, > 0 and < 1; for δ = 0 use :class:`PureClaim`. Raises
    InvalidParameter if a field is out of range.

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
        return tally.of_the_side_it_speaks_for(approx_epsilon_lower, self.delta, alpha)


@dataclass(frozen=True, slots=True)
class GaussianClaim:
    """A claim of μ-GDP: telling the data sets apart is as hard as N(0, 1) from N(μ, 1).

    `mu`: > 0; sensitivity / σ for one answer with continuous Gaussian noise. Discrete Gaussian noise may pass the curve
    by 2e−5 in probability at σ = 10, and by less for wider noise; 100,000 runs tell probabilities apart that differ by
    a hundred times as much. Below σ = 10 claim (ε, δ) instead (:func:`~quorate.audit.claim_of`). Raises
    InvalidParameter if `mu` is not a finite number > 0.

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
        return tally.of_the_side_it_speaks_for(gaussian_mu_lower, alpha)


Claim: TypeAlias = PureClaim | ApproxClaim | GaussianClaim


def claim_of(event: Event, delta: float) -> Claim:
    """Return what an event claims at `delta`: (ε, δ) by the accountant's tightest rule."""
    from quorate.accounting import PureDP, epsilon  # the rules are heavier than the events

    if isinstance(event, PureDP) and event.epsilon > 0:
        return PureClaim(event.epsilon)
    return ApproxClaim(float(np.nextafter(epsilon(event, delta), np.inf)), delta)
