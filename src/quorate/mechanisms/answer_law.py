r"""How an answer is distributed, given the votes: exact sums over the noise on the integers.

The largest of C noisy counts is class c with probability

.. math:: \sum_z p(z) \prod_{c' \ne c} F(n_c + z - n_{c'} - [c' < c]),

p being the noise's probability of an integer and F its distribution function: ties go to the lowest index. Where the
noise is wide, the outer sum takes every k-th integer: k is at most a sixteenth of σ, which for a function as smooth as
the Gaussian's changes nothing in the first twelve digits, and a 64th of a Laplace's scale, which has corners, and
changes nothing in the first four. F is summed over all integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, floor
from typing import Literal

import numpy as np

from quorate.deferred import special
from quorate.mechanisms.answerable import AnswerNoise
from quorate.mechanisms.votes import half_lead
from quorate.types import FloatArray, IntArray

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
    """Return the probability of each class to be the largest after noise, ``(n_queries, n_classes)``.

    `noise`: on the counts, or on half the lead of class 1. `counts`: votes. `only`: the one class that is asked for:
    then ``(n_queries, 1)``.

    Examples
    --------
    >>> noise = AnswerNoise(distribution="gaussian", scale=20.0)
    >>> chosen_classes(noise, np.array([[60, 40], [50, 50]])).round(3).tolist()
    [[0.766, 0.234], [0.507, 0.493]]
    """
    asked = range(counts.shape[1]) if only is None else (only,)
    if noise.distribution == "gumbel":
        return np.asarray(special.softmax(counts / noise.scale, axis=1))[:, list(asked)]
    if noise.on == "half-lead":
        lead = half_lead(counts)  # either tail by itself: one less the other would lose what is small
        return np.column_stack([_tail(noise, lead), _tail(noise, 1 - lead)])[:, list(asked)]
    if noise.scale > _WIDEST:  # the same on a coarser lattice, of which no probability depends to ten digits
        counts = np.rint(counts * (_WIDEST / noise.scale)).astype(np.int64)
        noise = AnswerNoise(distribution=noise.distribution, scale=_WIDEST, on=noise.on)
    law = noise_law(noise.distribution, noise.scale)
    places = np.arange(0, len(law.mass), max(1, floor(noise.scale / _FINENESS[noise.distribution])))
    z, mass = places - law.reach, law.mass[places] / law.mass[places].sum()
    found = []
    for c in asked:
        product = np.ones((len(counts), len(z)))
        for other in range(counts.shape[1]):
            if other != c:
                product *= law.at_most(counts[:, [c]] - counts[:, [other]] + z - (other < c))
        found.append(product @ mass)
    return np.column_stack(found)


def passes(distribution: Literal["gaussian", "laplace"], scale: float, needed: int) -> float:
    """Return the probability that integer noise is at least `needed`.

    Examples
    --------
    >>> round(passes("laplace", 2.0, 1), 4), round(passes("laplace", 2.0, 0), 4)
    (0.3775, 0.6225)
    """
    if distribution == "laplace":  # a closed form, however wide it is
        tail = exp(-abs(needed) / scale) / (1 + exp(-1 / scale))
        return tail if needed > 0 else 1 - tail * exp(-1 / scale)
    return float(_tail(AnswerNoise(distribution=distribution, scale=scale), np.array([needed]))[0])


def _tail(noise: AnswerNoise, needed: IntArray) -> FloatArray:
    """Return P(Z ≥ needed) of Gaussian noise, or of any on a half-lead."""
    if noise.scale > _WIDEST:
        return np.asarray(special.ndtr((0.5 - needed) / noise.scale))
    return noise_law("laplace" if noise.distribution == "laplace" else "gaussian", noise.scale).at_least(needed)
