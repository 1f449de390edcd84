"""A private quantile of whole numbers: the exponential mechanism over every value of a public range."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, log

import numpy as np
from numpy.typing import ArrayLike

from quorate.accounting import PureDP
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.learners.base.grid_choice import LARGEST_GRID, GridChoice
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.types import IntArray


@stored_as("quorate.learners.base.noisy_quantile.NoisyQuantile")
@dataclass(frozen=True, kw_only=True, slots=True)
class NoisyQuantile:
    r"""Choose a whole number t of [low, high] that about a share q of the values lie below.

    Parameters
    ----------
    quantile : float
        q in [0, 1]; 0.5 for the median.
    low, high : int
        The public range; at most 2^62 values. Values outside count as the nearer end.
    epsilon : float
        ε of one quantile; must be > 0.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the values are not finite whole numbers.

    Notes
    -----
    With :math:`k = \lfloor qn + 1/2 \rfloor`, the score of t is minus the distance from k to the interval
    :math:`[\#\{x < t\}, \#\{x \le t\}]`: 0 where t is a quantile, values that occur often included.

    Privacy: for one replaced value, n public (so that k is): both ends of the interval move by at most 1, so the
    sensitivity is 1, and the choice is ε-DP.

    Rank error: with probability 1 − β the distance is at most
    :math:`(2/\varepsilon)(\log N + \log 1/\beta)`, where N is the number of values in the range (:meth:`rank_error`).

    References
    ----------
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> ages = np.random.default_rng(0).integers(18, 95, 20_000)
    >>> NoisyQuantile(quantile=0.5, low=0, high=120, epsilon=1.0).release(ages, SeededNoise(0))
    56
    """

    quantile: float
    low: int
    high: int
    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantile", real("quantile", self.quantile, at_least=0, at_most=1))
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
                raise InvalidParameter(f"{name} must be a whole number, got {value!r}")
            object.__setattr__(self, name, int(value))
        if not -(2**62) <= self.low <= self.high < 2**62 or self.n_values > LARGEST_GRID:
            raise InvalidParameter(
                f"low and high must span 1 to 2^62 whole numbers between -2^62 and 2^62, got {self.low} and {self.high}"
            )
        object.__setattr__(self, "epsilon", self._choice.epsilon)

    @property
    def _choice(self) -> GridChoice:
        return GridChoice(self.epsilon)

    @property
    def n_values(self) -> int:
        """N, the number of values that may be chosen."""
        return self.high - self.low + 1

    @property
    def event(self) -> PureDP:
        """Price of one quantile."""
        return self._choice.event

    def rank_error(self, beta: float) -> float:
        """Return how far the chosen value's rank is from k, at most, with probability 1 − `beta`."""
        return 2 / self.epsilon * (log(self.n_values) - log(real("beta", beta, above=0, below=1)))

    def release(self, values: ArrayLike, noise: NoiseSource) -> int:
        """Choose for ``(n,)`` whole numbers."""
        data = np.asarray(values)
        if data.ndim != 1 or data.dtype.kind not in "iu" or not data.size:
            raise InvalidParameter("values must be one column of whole numbers, one at least")
        return self.low + self._choice.release(*self._runs(data), noise)

    def _runs(self, values: ArrayLike) -> tuple[IntArray, IntArray]:
        """Scores and sizes of the runs: a value that occurs, the gap before it, …, the gap after the last."""
        data = np.clip(np.asarray(values), self.low, self.high).astype(np.int64)
        target = floor(Fraction(repr(self.quantile)) * data.size + Fraction(1, 2))
        found, times = np.unique(data, return_counts=True)
        at_most = np.cumsum(times)
        below = at_most - times
        scores = np.empty(2 * found.size + 1, dtype=np.int64)
        sizes = np.ones_like(scores)
        scores[1::2] = -np.maximum(0, np.maximum(target - at_most, below - target))
        scores[0:-1:2] = -np.abs(below - target)
        scores[-1] = -abs(data.size - target)
        sizes[0::2] = np.diff(found, prepend=self.low - 1, append=self.high + 1) - 1
        return scores, sizes
