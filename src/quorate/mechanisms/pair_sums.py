r"""Noisy sums of products: for each pair of columns, the sum over units of the product of their entries.

One-way marginals say what each column holds, and nothing of how columns go together. The second moment of rows says
that, for all pairs at once, and each unit moves it by the square of its row's length alone, however many pairs there
are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from quorate.accounting import GridGaussian
from quorate.accounting.calibration import rounded_up_sigma
from quorate.accounting.events import LEAST_GRID_SIGMA
from quorate.accounting.neighbouring import Relation
from quorate.arguments import count, one_of, real
from quorate.errors import InvalidParameter
from quorate.mechanisms.marginals import SENSITIVITY
from quorate.noise import NoiseSource, discrete_gaussian
from quorate.noise.source import checked_scale
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

ROW_BITS: Final = 13  # a row is a vector of integers no longer than 2^13: sums of 2^27 rows are exact
LENGTH: Final = 2.0**ROW_BITS


@stored_as("quorate.mechanisms.pair_sums.NoisyPairSums")
@dataclass(frozen=True, slots=True)
class NoisyPairSums:
    r"""Release :math:`\sum_u x_{ui} x_{uj}` for each pair of columns i < j, with discrete Gaussian noise on each.

    `n_columns`: of the rows, at least 2. `mu`: :math:`\mu > 0` of the release, but for the difference between discrete
    and continuous noise, which its event knows. `neighbours` ("add-or-remove", "replace"): for which change of one unit
    the noise is.

    Raises InvalidParameter if a field is out of range; on release, if there are not as many sums as pairs.

    Notes
    -----
    Privacy: a unit has one row x of integers, :math:`\|x\| \le b = 2^{13}`. What it adds, :math:`v = (x_i x_j)_{i<j}`,
    has :math:`\|v\|^2 = (\|x\|^4 - \sum_i x_i^4)/2 \le b^4/2`, so that adding or removing it moves the sums by
    :math:`b^2/\sqrt2` at most. Replacing x by y moves them by
    :math:`\|v - w\|^2 \le \|xx^T - yy^T\|_F^2/2 \le (\|x\|^4 + \|y\|^4)/2 \le b^4`, since
    :math:`\langle xx^T, yy^T\rangle = (x^Ty)^2 \ge 0`: by :math:`\sqrt2` times as much, not twice.

    References
    ----------
    Dwork, Talwar, Thakurta and Zhang (2014), "Analyze Gauss", Algorithm 1, with the noise of CKS20 in place of
    continuous noise.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> pairs = NoisyPairSums(3, mu=0.1, neighbours="add-or-remove")
    >>> pairs.n_pairs, round(pairs.sigma * 2 ** -26, 2)
    (3, 7.07)
    >>> rows = np.array([[8_000, 0, 100], [0, 5_000, 5_000]])
    >>> pair_sums(rows).tolist()
    [0, 800000, 25000000]
    >>> pairs.release(pair_sums(rows), SeededNoise(0)).shape
    (3,)
    """

    n_columns: int
    mu: float
    neighbours: Relation

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_columns", count("n_columns", self.n_columns, at_least=2))
        object.__setattr__(self, "mu", real("mu", self.mu, above=0))
        one_of("neighbours", self.neighbours, tuple(SENSITIVITY))
        checked_scale("2 ** 26 / mu", self.sigma)

    @property
    def n_pairs(self) -> int:
        """How many sums there are."""
        return self.n_columns * (self.n_columns - 1) // 2

    @property
    def sigma(self) -> float:
        """The σ of the noise on each sum, rounded up."""
        return max(rounded_up_sigma(moved_by(self.neighbours) / self.mu), LEAST_GRID_SIGMA)

    @property
    def event(self) -> GridGaussian:
        """Price of all sums together, for the change that the noise is for."""
        return self.event_for(self.neighbours)

    def event_for(self, neighbours: Relation) -> GridGaussian:
        """Return what the sums release, for a change of one unit that may be another than that of the noise."""
        return GridGaussian(self.sigma, moved_by(neighbours), self.n_pairs)

    def release(self, sums: IntArray, noise: NoiseSource) -> IntArray:
        """Return the sums with noise on each; fewer are none of these columns'."""
        if np.shape(sums) != (self.n_pairs,):
            raise InvalidParameter("sums must hold one number for each pair of columns")
        return sums + discrete_gaussian(self.sigma, (self.n_pairs,), noise)


def moved_by(neighbours: Relation) -> float:
    """Return how far one unit moves all sums together, rounded up."""
    return float(np.nextafter(SENSITIVITY[neighbours] * LENGTH**2 * 0.5**0.5, np.inf))


def bounded(steps: FloatArray, lengths: FloatArray, longest: float) -> FloatArray:
    """Return rows as integers no longer than 2^13, rounded towards 0, each a function of that row alone.

    `steps`: rows of whole numbers ``(n_rows, n_columns)``. `lengths`: theirs, ``(n_rows,)``. `longest`: the length that
    becomes 2^13; rows that are longer are shortened to it.
    """
    return np.trunc(steps * (LENGTH / np.maximum(lengths, longest))[:, None])


def pair_sums(rows: FloatArray | IntArray) -> IntArray:
    """Return the sums of products of rows of integers, ``(n_pairs,)``, exactly: (0, 1), (0, 2), … then (1, 2), …."""
    whole = np.asarray(rows, dtype=np.float64)
    return (whole.T @ whole)[np.triu_indices(whole.shape[1], 1)].astype(np.int64)
