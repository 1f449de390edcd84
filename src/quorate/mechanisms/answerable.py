r"""What a mechanism can answer with K teachers, at best: where all of them vote for one class.

No votes are more in favour of an answer than unanimous ones, and no lead is longer. So the probability that such a
query is answered, with the class that all voted for, bounds what any query can hope for; it is made of public numbers
alone, and says before anything is charged whether a run can answer anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from quorate.deferred import special
from quorate.mechanisms.votes import distance_to_instability
from quorate.types import IntArray

#: What a test compares with its threshold. A distance d takes a lead of 2d + 1 votes.
Statistic: TypeAlias = Literal["largest count", "distance to instability"]
Distribution: TypeAlias = Literal["gaussian", "laplace", "gumbel"]

HOPELESS = 0.5  # below this probability no single query is more likely answered than not


@dataclass(frozen=True, kw_only=True, slots=True)
class AgreementTest:
    """A noisy test of how far the teachers agree, that an answer has to pass.

    Attributes
    ----------
    statistic : {"largest count", "distance to instability"}
        What is compared.
    threshold : float
        In votes: where the test is passed about half of the time.
    """

    statistic: Statistic
    threshold: float

    def of(self, counts: IntArray) -> IntArray:
        """Return the statistic of each row of ``(n_queries, n_classes)`` counts, ``(n_queries,)``.

        Examples
        --------
        >>> votes = np.array([[9, 1, 0], [5, 3, 2]])
        >>> AgreementTest(statistic="distance to instability", threshold=3.0).of(votes).tolist()
        [3, 0]
        """
        if self.statistic == "largest count":
            largest: IntArray = counts.max(axis=1)
            return largest
        return distance_to_instability(counts)

    def largest(self, n_teachers: int) -> int:
        r"""Return the statistic of K unanimous teachers: K votes, or a distance of :math:`\lceil K/2 \rceil - 1`.

        Examples
        --------
        >>> AgreementTest(statistic="distance to instability", threshold=343.0).largest(250)
        124
        """
        return n_teachers if self.statistic == "largest count" else max(0, -(-n_teachers // 2) - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerNoise:
    """The noise in an answer: on each count, or on half the lead of class 1; the largest noisy count is answered.

    Attributes
    ----------
    distribution : {"gaussian", "laplace", "gumbel"}
        Gumbel noise is that of the exponential mechanism, whose answers it has.
    scale : float
        σ, b, or Gumbel's scale, in votes.
    on : {"counts", "half-lead"}
        Where it is added.
    """

    distribution: Distribution
    scale: float
    on: Literal["counts", "half-lead"] = "counts"

    def right(self, n_teachers: int, n_classes: int) -> float:
        r"""Return the probability that a unanimous vote of K teachers is answered by its class.

        On a half-lead: :math:`\Phi(K/2\sigma)`. On counts: :math:`\mathbf{E}[F(K + T)^{C-1}]` over the noise T of the
        class itself, F being the noise's distribution function; the lattice is left out.

        Examples
        --------
        >>> round(AnswerNoise(distribution="gaussian", scale=121.0, on="half-lead").right(178, 2), 3)
        0.769
        >>> round(AnswerNoise(distribution="gumbel", scale=10.0).right(20, 3), 3)
        0.787
        """
        lead = n_teachers / self.scale
        if self.on == "half-lead":
            return float(special.ndtr(lead / 2))
        if self.distribution == "gumbel":
            return 1 / (1 + (n_classes - 1) * math.exp(-lead))
        own = np.linspace(-40.0, 40.0, 8_001)
        if self.distribution == "gaussian":
            log_density, log_below = -0.5 * own**2, special.log_ndtr(lead + own)
        else:
            log_density, log_below = -np.abs(own), _log_laplace(lead + own)
        weights = np.exp(log_density)
        return float(np.average(np.exp((n_classes - 1) * log_below), weights=weights))


@dataclass(frozen=True, kw_only=True, slots=True)
class Answerable:
    """What K teachers can get answered, at best.

    Attributes
    ----------
    probability : float
        That a query on which all teachers agree is answered, with the class that they voted for.
    test : AgreementTest or None
        What such a query has to pass; None where every query is answered.
    largest : int or None
        The statistic of that test where all agree; a threshold above it is out of reach.
    noise : AnswerNoise or None
        The noise in an answer; None where an answer is exact.
    """

    probability: float
    test: AgreementTest | None = None
    largest: int | None = None
    noise: AnswerNoise | None = None

    @property
    def hopeless(self) -> bool:
        """Whether no query at all is more likely answered rightly than not.

        Examples
        --------
        >>> Answerable(probability=0.2).hopeless
        True
        """
        return self.probability < HOPELESS


def _log_laplace(x: np.ndarray) -> np.ndarray:
    """Return log F of the Laplace distribution of scale 1."""
    return np.asarray(np.where(x < 0, x - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(x)))))
