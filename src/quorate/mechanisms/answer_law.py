r"""How an answer is distributed, given the votes, and what K teachers can get answered at best.

The law of an answer is an exact sum over the noise on the integers. The largest of C noisy counts is class c with
probability

.. math:: \sum_z p(z) \prod_{c' \ne c} F(n_c + z - n_{c'} - [c' < c]),

p being the noise's probability of an integer and F its distribution function: ties go to the lowest index. Where the
noise is wide, the outer sum takes every k-th integer: k is at most a sixteenth of σ, which for a function as smooth as
the Gaussian's changes nothing in the first twelve digits, and a 64th of a Laplace's scale, which has corners, and
changes nothing in the first four. F is summed over all integers.

At best all teachers vote for one class: no votes are more in favour of an answer than unanimous ones, and no lead is
longer. So the probability that such a query is answered, with the class that all voted for, bounds what any query can
hope for; it is made of public numbers alone, and says before anything is charged whether a run can answer anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, floor
from typing import Literal, TypeAlias

import numpy as np

from quorate.deferred import special
from quorate.mechanisms.answers import distance_to_instability, half_lead
from quorate.types import FloatArray, IntArray

#: What a test compares with its threshold. A distance d takes a lead of 2d + 1 votes.
Statistic: TypeAlias = Literal["largest count", "distance to instability"]
Distribution: TypeAlias = Literal["gaussian", "laplace", "gumbel"]

HOPELESS = 0.5  # below this probability no single query is more likely answered than not


@dataclass(frozen=True, kw_only=True, slots=True)
class AgreementTest:
    """A noisy test of how far the teachers agree, that an answer has to pass.

    `statistic`: what is compared. `threshold`: in votes: where the test is passed about half of the time.
    """

    statistic: Statistic
    threshold: float

    def of(self, counts: IntArray) -> IntArray:
        """Return the statistic of each row of ``(n_queries, n_classes)`` counts, ``(n_queries,)``."""
        if self.statistic == "largest count":
            largest: IntArray = counts.max(axis=1)
            return largest
        return distance_to_instability(counts)

    def largest(self, n_teachers: int) -> int:
        r"""Return the statistic of K unanimous teachers: K votes, or a distance of :math:`\lceil K/2 \rceil - 1`."""
        return n_teachers if self.statistic == "largest count" else max(0, -(-n_teachers // 2) - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerNoise:
    """The noise in an answer: on each count, or on half the lead of class 1; the largest noisy count is answered.

    `distribution`: Gumbel noise is that of the exponential mechanism, whose answers it has. `scale`: σ, b, or Gumbel's
    scale, in votes.
    """

    distribution: Distribution
    scale: float
    on: Literal["counts", "half-lead"] = "counts"

    @np.errstate(all="ignore")
    def right(self, n_teachers: int, n_classes: int) -> float:
        r"""Return the probability that a unanimous vote of K teachers is answered by its class.

        On a half-lead: :math:`\Phi(K/2\sigma)`. On counts: :math:`\mathbf{E}[F(K + T)^{C-1}]` over the noise T of the
        class itself, F being the noise's distribution function; the lattice is left out.
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

    `probability`: that a query on which all teachers agree is answered, with the class that they voted for. `test`:
    what it has to pass; None where every query is answered. `largest`: the statistic where all agree; a threshold above
    it is out of reach. `noise`: None where an answer is exact.
    """

    probability: float
    test: AgreementTest | None = None
    largest: int | None = None
    noise: AnswerNoise | None = None

    @property
    def hopeless(self) -> bool:
        """Whether no query at all is more likely answered rightly than not."""
        return self.probability < HOPELESS


def _log_laplace(x: np.ndarray) -> np.ndarray:
    """Return log F of the Laplace distribution of scale 1."""
    return np.asarray(np.where(x < 0, x - math.log(2), np.log1p(-0.5 * np.exp(-np.abs(x)))))


_WIDTH = {"gaussian": 12.0, "laplace": 30.0}  # in scales: what lies beyond has a probability below 1e-12
_WIDEST = 20_000.0  # a scale beyond which integers are so close that the law is continuous to ten digits
_FINENESS = {"gaussian": 16, "laplace": 64}


@dataclass(frozen=True, slots=True, eq=False)
class NoiseLaw:
    """Probabilities of integer noise, symmetric about 0: ``mass[i]`` is that of ``i - reach``."""

    mass: FloatArray
    below: FloatArray  # cumulated: P(Z <= i - reach)

    @property
    def reach(self) -> int:
        """The largest noise that is listed."""
        return len(self.mass) // 2

    def at_most(self, z: IntArray) -> FloatArray:
        """Return P(Z ≤ z)."""
        place = np.clip(z + self.reach, -1, len(self.mass) - 1)
        return np.where(place < 0, 0.0, self.below[place])

    def at_least(self, z: IntArray) -> FloatArray:
        """Return P(Z ≥ z)."""
        return self.at_most(-z)


@lru_cache(maxsize=32)
def noise_law(distribution: Literal["gaussian", "laplace"], scale: float) -> NoiseLaw:
    """Return the law of discrete Gaussian or Laplace noise of a scale in votes."""
    reach = ceil(_WIDTH[distribution] * scale) + 1
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = np.exp(-0.5 * (z / scale) ** 2) if distribution == "gaussian" else np.exp(-np.abs(z) / scale)
    mass = weight / weight.sum()
    return NoiseLaw(mass, np.minimum(np.cumsum(mass), 1.0))


def chosen_classes(noise: AnswerNoise, counts: IntArray, only: int | None = None) -> FloatArray:
    """Return each class's probability to be largest after noise, ``(n_queries, n_classes)``; ``(n_queries, 1)`` of
    `only`.
    """
    classes = range(counts.shape[1]) if only is None else (only,)
    if noise.distribution == "gumbel":
        return np.asarray(special.softmax(counts / noise.scale, axis=1))[:, list(classes)]
    if noise.on == "half-lead":
        lead = half_lead(counts)  # either tail by itself: one less the other would lose what is small
        return np.column_stack([_tail(noise, lead), _tail(noise, 1 - lead)])[:, list(classes)]
    if noise.scale > _WIDEST:  # the same on a coarser lattice, of which no probability depends to ten digits
        counts = np.rint(counts * (_WIDEST / noise.scale)).astype(np.int64)
        noise = AnswerNoise(distribution=noise.distribution, scale=_WIDEST, on=noise.on)
    law = noise_law(noise.distribution, noise.scale)
    places = np.arange(0, len(law.mass), max(1, floor(noise.scale / _FINENESS[noise.distribution])))
    z, mass = places - law.reach, law.mass[places] / law.mass[places].sum()
    shares = []
    for c in classes:
        product = np.ones((len(counts), len(z)))
        for other in range(counts.shape[1]):
            if other != c:
                product *= law.at_most(counts[:, [c]] - counts[:, [other]] + z - (other < c))
        shares.append(product @ mass)
    return np.column_stack(shares)


def passes(distribution: Literal["gaussian", "laplace"], scale: float, needed: int) -> float:
    """Return the probability that integer noise is at least `needed`."""
    if distribution == "laplace":  # a closed form, however wide it is
        tail = exp(-abs(needed) / scale) / (1 + exp(-1 / scale))
        return tail if needed > 0 else 1 - tail * exp(-1 / scale)
    return float(_tail(AnswerNoise(distribution=distribution, scale=scale), np.array([needed]))[0])


def _tail(noise: AnswerNoise, needed: IntArray) -> FloatArray:
    """Return P(Z ≥ needed) of Gaussian noise, or of any on a half-lead."""
    if noise.scale > _WIDEST:
        return np.asarray(special.ndtr((0.5 - needed) / noise.scale))
    return noise_law("laplace" if noise.distribution == "laplace" else "gaussian", noise.scale).at_least(needed)
