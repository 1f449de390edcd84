"""The mean of the numbers that teachers predict: their sum on a grid, after discrete Gaussian noise, divided by K.

A number counts from the middle of a public range, -G … G; who has none adds 0: how many have one stays secret. Before
it, noisy counts of the units' targets say where most of them lie, so that the range may be a smaller part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nextafter, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from quorate.accounting import GridGaussian, calibrate_sigma
from quorate.accounting.events import LEAST_GRID_SIGMA
from quorate.arguments import count, real
from quorate.errors import InvalidParameter, named
from quorate.mechanisms.answers import VOTE_L2_SENSITIVITY, in_blocks, many_queries
from quorate.mechanisms.fields import NOISE, Schedule, least
from quorate.mechanisms.mechanism import QueryMechanism, Takes, unlisted
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import MAX_SCALE, checked_scale
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

GRID = 2**15  # steps from the middle of a range to an end
LENGTH = 0.5  # of what a teacher predicts on all queries, in root mean squares of halves of the range
_TRIES, _SHORTER = 8, 1 - 2.0**-40  # to bring a vector of integers below its length
_UNIT = 2**20  # steps of a count, for one unit


@stored_as("quorate.mechanisms.noisy_mean.NoisyMean")
@unlisted
@dataclass(frozen=True, slots=True)
class NoisyMean(QueryMechanism):
    r"""Release the sum of the numbers of K teachers with Gaussian noise: :math:`s + Z`, in steps of a grid.

    `sigma`: the σ of the noise, in votes: 1 is one teacher's number moved by half the range, so that the mean has noise
    of :math:`\sigma/K` halves of the range. At least 2¹⁰ steps. `grid`: G ≥ 1, the steps from the middle of the range
    to an end.

    Notes
    -----
    Privacy: neighbours change one teacher. On each query its number is anywhere from −G to G steps, so the sum moves by
    at most 2G. That covers a unit that is added, removed or replaced, whose teacher is trained on other rows. A teacher
    that abstains adds 0, so that an abstention in the place of a number moves the sum by G at most. The divisor is K, a
    public number. The noise is priced as the continuous Gaussian noise that it is next to on this grid
    (:class:`~quorate.accounting.GridGaussian`, with its proof), which is exact for every change of at most 2G.

    The promise is about sums of :meth:`steps`, one row a teacher.

    References
    ----------
    Balle and Wang (2018), arXiv:1805.06530, for the price; CKS20 (Canonne, Kamath, Steinke, arXiv:2004.00010) for the
    noise.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> mechanism = NoisyMean(sigma=0.5, grid=10_000)
    >>> places = np.array([[20_000, 10_000], [15_000, -1]])  # two teachers, two queries; one abstention
    >>> sums = mechanism.steps(places).sum(axis=0)
    >>> sums.tolist(), mechanism.event
    ([15000, 0], GridGaussian(sigma=5000.0, l2_sensitivity=20000.0, numbers=1))
    >>> noisy = mechanism.release_many(sums[:, None], SeededNoise(0))
    >>> np.round(mechanism.means(noisy, n_teachers=2), 2).tolist()
    [0.4, 0.22]
    """

    takes: ClassVar[Takes] = "sums"

    sigma: float = field(metadata=NOISE)
    grid: int = GRID

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", count("grid", self.grid, at_least=1))
        object.__setattr__(self, "sigma", _checked_sigma(self.sigma, self.grid))
        if self.sigma * self.grid > MAX_SCALE:
            raise InvalidParameter(f"grid must be at most 2^40 / sigma steps, got {self.grid}; use a coarser grid")

    @property
    def event(self) -> GridGaussian:
        """Price of one release."""
        return GridGaussian(self.sigma * self.grid, 2.0 * self.grid, 1)

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least σ for which a whole schedule fits its budget."""
        start = calibrate_sigma(schedule.epsilon, schedule.delta, schedule.answers, 2.0, noise="continuous")
        lowest = LEAST_GRID_SIGMA / values.get("grid", GRID)
        return least(lambda sigma: cls(sigma=sigma, **values), max(start, lowest), schedule)

    def steps(self, places: IntArray) -> IntArray:
        """Return what teachers add, -G … G, by what they predict: places in the range, 0 … 2G; any other adds 0."""
        counted = (places >= 0) & (places <= 2 * self.grid)
        return np.where(counted, places.astype(np.int64) - self.grid, 0)

    def means(self, answers: IntArray, n_teachers: int) -> FloatArray:
        """Return the noisy means of K teachers' numbers: 0 in the middle of the range, -1 and 1 at its ends."""
        return np.asarray(answers / (self.grid * float(n_teachers)))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Release each row of ``(n_queries, 1)`` sums in steps: noisy sums ``(n_queries,)``."""
        sums = _one_column(counts)
        noisy = np.empty(len(sums), dtype=np.int64)
        for rows, block in in_blocks(sums):
            noisy[rows] = block[:, 0] + discrete_gaussian(self.sigma * self.grid, len(block), noise)
        return noisy


@stored_as("quorate.mechanisms.noisy_mean.NoisyMeans")
@unlisted
@dataclass(frozen=True, slots=True)
class NoisyMeans(NoisyMean):
    r"""Release the sums of all queries at once, of teachers whose numbers on all of them make a short vector.

    `sigma`, `grid`: as of :class:`NoisyMean`. `queries`: ℓ ≥ 1: all of them, on which a teacher's numbers are one
    vector. `length`: c in (0, 1]: the root mean square of a teacher's numbers, in halves of the range from its middle,
    is at most that: a longer vector is shrunk, so that its numbers keep their proportions.

    Privacy: neighbours change one teacher, whose vector has ℓ numbers from −G to G and at most the length
    :math:`cG\sqrt{\ell}`. So the vector of sums moves by at most :math:`2cG\sqrt{\ell}`, c times as far as numbers that
    are only cut off may; all ℓ together are priced so, and one alone, or some, at no less. How a vector is shrunk
    follows from it alone, in integers that are checked.

    Examples
    --------
    >>> mechanism = NoisyMeans(sigma=0.5, queries=4)
    >>> mechanism.steps(np.array([65_536, 0, 32_768, -1])).tolist()  # at both ends, in the middle, and an abstention
    [23170, -23170, 0, 0]
    >>> round(mechanism.event.l2_sensitivity / (2 * 0.5 * 32_768 * 2), 9), mechanism.event.numbers
    (1.0, 4)
    """

    queries: int = 1
    length: float = LENGTH

    def __post_init__(self) -> None:
        NoisyMean.__post_init__(self)
        object.__setattr__(self, "queries", count("queries", self.queries, at_least=1))
        object.__setattr__(self, "length", real("length", self.length, at_least=1 / self.grid, at_most=1))
        if self.queries * self.grid**2 >= 2**63:
            raise InvalidParameter(
                f"queries={self.queries:,} numbers of grid={self.grid:,} are too many; lower {named('queries')}"
            )

    @property
    def longest(self) -> int:
        """The square of the length of a vector, in steps, at most."""
        return int((self.length * self.grid) ** 2 * self.queries)

    @property
    def event(self) -> GridGaussian:
        """Price of all answers together."""
        return GridGaussian(self.sigma * self.grid, nextafter(2 * sqrt(self.longest), inf), self.queries)

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return it with the least σ for which all of a schedule's answers together fit its budget."""
        values = {"queries": schedule.answers, **values}
        moved = 2.0 * values.get("length", LENGTH) * sqrt(values["queries"])
        start = calibrate_sigma(schedule.epsilon, schedule.delta, 1, moved, noise="continuous")
        lowest = LEAST_GRID_SIGMA / values.get("grid", GRID)
        return least(lambda sigma: cls(sigma=sigma, **values), max(start, lowest), schedule)

    def schedule(self, answers: int) -> GridGaussian:
        """Return the price of all answers; of fewer it is no less, since a teacher's vector may lie in these."""
        del answers
        return self.event

    def steps(self, places: IntArray) -> IntArray:
        """Return what teachers add, by what they predict on all queries, the last axis: each vector by itself."""
        vectors = NoisyMean.steps(self, places)
        if vectors.shape[-1] > self.queries:
            raise InvalidParameter(f"a teacher has {self.queries:,} numbers, of which {vectors.shape[-1]:,} were given")
        flat = vectors.reshape(-1, vectors.shape[-1])
        short: IntArray = np.array([self._short(vector) for vector in flat], dtype=np.int64)
        return np.asarray(short.reshape(vectors.shape))

    def _short(self, vector: IntArray) -> IntArray:
        """Return a vector of integers as it is, or shrunk toward zero to its length."""
        square = int(vector @ vector)
        if square <= self.longest:
            return vector
        factor = sqrt(self.longest / square)
        for _ in range(_TRIES):
            short: IntArray = np.trunc(vector * factor).astype(np.int64)
            if int(short @ short) <= self.longest:
                return short
            factor *= _SHORTER
        return np.zeros_like(vector)


@stored_as("quorate.mechanisms.noisy_mean.TargetCounts")
@unlisted
@dataclass(frozen=True, slots=True)
class TargetCounts(QueryMechanism):
    """Release how many units' targets lie in each of `cells` ≥ 2 cells of a range, with noise `sigma` ≥ 2⁻¹⁰, in units.

    Privacy: a unit is in one cell, or in none. Replaced, it moves two counts by 1: Δ = √2, the price for each of the
    three changes. Written in 2²⁰ steps of a unit and priced as :class:`~quorate.accounting.GridGaussian`.
    """

    takes: ClassVar[Takes] = "sums"

    sigma: float = field(metadata=NOISE)
    cells: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", count("cells", self.cells, at_least=2))
        object.__setattr__(self, "sigma", _checked_sigma(self.sigma, _UNIT))
        if self.sigma * _UNIT > MAX_SCALE:
            raise InvalidParameter(f"sigma must be at most 2^20 units, got {self.sigma}; raise {named('epsilon')}")

    @property
    def event(self) -> GridGaussian:
        """Price of one release."""
        return GridGaussian(self.sigma * _UNIT, VOTE_L2_SENSITIVITY * _UNIT, self.cells)

    @classmethod
    def within(cls, mu: float, times: int, cells: int) -> Self:
        """Return the one of which so many releases are one Gaussian mechanism of μ."""
        return cls(sigma=VOTE_L2_SENSITIVITY * sqrt(times) / mu, cells=cells)

    def counts_of(self, targets: IntArray, low: int, high: int) -> IntArray:
        """Count units by the cell of their target between two steps, ``(n_cells,)``; a negative target counts nowhere,
        and one beyond the part in the cell at the nearer end.
        """
        steps = targets[targets >= 0].astype(np.int64)
        places = np.clip((steps - low) * self.cells // (high - low), 0, self.cells - 1)
        return np.bincount(places, minlength=self.cells).astype(np.int64)

    def shares(self, answer: IntArray, n_units: int) -> FloatArray:
        """Return the noisy shares of all units, ``(n_cells,)``, that an answer says."""
        return np.asarray(answer / (float(_UNIT) * n_units))

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Release each row of ``(n_queries, n_cells)`` counts, in steps: of the same shape."""
        checked = many_queries(counts, n_classes=self.cells)
        noisy = np.empty(checked.shape, dtype=np.int64)
        for rows, block in in_blocks(checked):
            noisy[rows] = block * _UNIT + discrete_gaussian(self.sigma * _UNIT, block.shape, noise)
        return noisy


def _checked_sigma(sigma: float, grid: int) -> float:
    return real("sigma", checked_scale("sigma", sigma), at_least=LEAST_GRID_SIGMA / grid)


def _one_column(counts: IntArray) -> IntArray:
    """Return ``(n_queries, 1)`` sums, which may be negative, checked; the message tells no sum."""
    if not isinstance(counts, np.ndarray) or counts.ndim != 2 or counts.shape[1] != 1 or counts.dtype != np.int64:
        raise InvalidParameter("counts must be an int64 array (n_queries, 1); pass one sum of steps a query")
    if counts.size and (counts.min() < -MAX_SCALE or counts.max() > MAX_SCALE):
        raise InvalidParameter("counts must be sums of steps, at most 2^40; take fewer teachers")
    return counts
