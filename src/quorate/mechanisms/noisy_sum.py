r"""Noisy sums: an integer sum of clipped contributions, after discrete noise; the building block of paid estimates.

A contribution is what one teacher or one unit adds: a number in [0, 1], or a vector of shares that add up to at
most 1. It is rounded to a public grid of steps 1/G before it is summed, so that the sum is an integer and the noise
is drawn exactly. Errors of teachers, mistakes of units and shares of a class all fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from quorate.accounting import DiscreteGaussian, DiscreteLaplace, Repeated
from quorate.accounting.calibration import EPSILON_STEP
from quorate.arguments import count, one_of, real
from quorate.deferred import special
from quorate.errors import InvalidParameter
from quorate.mechanisms.answers import VOTE_L2_SENSITIVITY, in_blocks, many_queries
from quorate.mechanisms.fields import NOISE
from quorate.mechanisms.mechanism import QueryMechanism, Takes, register
from quorate.noise import NoiseSource, discrete_gaussian, discrete_laplace
from quorate.noise.source import MAX_SCALE, checked_scale
from quorate.stored_names import stored_as
from quorate.types import IntArray

#: ``"single"``: one sum of numbers in [0, 1]. ``"shares"``: one sum for each cell, of shares that add up to at most 1.
SumForm: TypeAlias = Literal["single", "shares"]
NoiseKind: TypeAlias = Literal["laplace", "gaussian"]

_UPWARD = 1 + 2.0**-40  # more than a few roundings of a bound can be off by


@stored_as("quorate.mechanisms.noisy_sum.NoisySum")
@register
@dataclass(frozen=True, slots=True)
class NoisySum(QueryMechanism):
    r"""Release sums of contributions on a public grid: :math:`s + Z`, in grid steps.

    Parameters
    ----------
    scale : float
        The noise in units of one whole contribution, > 0: the scale b of Laplace noise, or the σ of Gaussian noise.
        The integers drawn have ``scale * grid``.
    grid : int, default 1000
        G ≥ 1. A contribution is a whole number of steps 1/G. Records that are right or wrong need G = 1.
    form : {"single", "shares"}, default "single"
        ``"single"``: one sum, to which each teacher or unit contributes 0..G steps. ``"shares"``: at least two sums,
        over which each contributes at most G steps in all, none of them negative.
    noise : {"laplace", "gaussian"}, default "laplace"
        Laplace noise costs pure ε; Gaussian noise is the better one for a table of many sums.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if the sums are not int64, negative, or not as many as the form takes.

    Notes
    -----
    Privacy: neighbours change what one teacher or unit contributes, or add or remove it.

    - *single*: the sum moves by at most G. Laplace noise of scale bG: ε = 1/b. Gaussian: :math:`\rho = 1/(2\sigma^2)`.
    - *shares*: let a, a' ≥ 0 be the two contributions, with :math:`|a|_1, |a'|_1 \le G`. The cells that rise do so
      by at most :math:`|a'|_1 \le G` in all, and those that fall by at most :math:`|a|_1 \le G`. The two groups have
      independent noise, and each is a 1/b-pure release: the price is that of two, as for a vote that moves from one
      class to another. For Gaussian noise :math:`|a - a'|_2^2 \le |a|_2^2 + |a'|_2^2 \le 2G^2` (no product
      :math:`a_i a'_i` is negative), so :math:`\rho = 1/\sigma^2`.

    The promise is about sums whose contributions keep these bounds; :mod:`quorate.ensemble.held_out`
    makes them so.

    References
    ----------
    CKS20 (Canonne, Kamath, Steinke, arXiv:2004.00010), Propositions 5 and 25; BTT18 (Bassily, Thakkar, Thakurta
    2018), Remark 1.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.noise import SeededNoise
    >>> mechanism = NoisySum.costing(0.5, grid=100)
    >>> mechanism.release(np.array([1_250]), SeededNoise(0))  # 12.5 mistakes
    1482
    >>> mechanism.reach(0.05)  # with probability 0.95 the noise is at most so many steps
    599
    """

    takes: ClassVar[Takes] = "sums"

    scale: float = field(metadata=NOISE)
    grid: int = 1000
    form: SumForm = "single"
    noise: NoiseKind = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked_scale("scale", self.scale))
        object.__setattr__(self, "grid", count("grid", self.grid, at_least=1))
        one_of("form", self.form, get_args(SumForm))
        one_of("noise", self.noise, get_args(NoiseKind))
        if self.grid > MAX_SCALE or self.scale * self.grid > MAX_SCALE:
            raise InvalidParameter(f"grid must be at most 2^40 / scale steps, got {self.grid}; use a coarser grid")

    @classmethod
    def costing(cls, epsilon: float, *, grid: int = 1000, form: SumForm = "single") -> NoisySum:
        """Return the noisy sum with the least Laplace noise that costs at most `epsilon`, also in a ledger's units.

        `epsilon`: ε of one release, at least 1e-9. `grid`, `form`: as for the class.
        """
        wanted = Fraction(repr(real("epsilon", epsilon, above=0)))
        floored = wanted // EPSILON_STEP * EPSILON_STEP
        if not floored > 0:
            raise InvalidParameter(parameter="epsilon", got=epsilon, expected="at least 1e-9", advice="raise it")
        return cls((1 if form == "single" else 2) / float(floored) * _UPWARD, grid=grid, form=form)

    @property
    def event(self) -> DiscreteLaplace | DiscreteGaussian | Repeated:
        """Price of one release."""
        if self.noise == "laplace":
            one = DiscreteLaplace(self._steps, float(self.grid))
            return one if self.form == "single" else Repeated(one, 2)
        if self.form == "single":
            return DiscreteGaussian(self._steps, float(self.grid))
        # √2 as a float is above √2, but its product with G may be rounded down.
        l2 = VOTE_L2_SENSITIVITY if self.grid == 1 else math.nextafter(VOTE_L2_SENSITIVITY * self.grid, math.inf)
        return DiscreteGaussian(self._steps, l2)

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Release each row of ``(n_queries, n_sums)``: noisy sums, or ``(n_queries,)`` of the form ``"single"``."""
        sums = _one_column(counts) if self.form == "single" else many_queries(counts)
        draw = discrete_laplace if self.noise == "laplace" else discrete_gaussian
        noisy = np.empty(sums.shape, dtype=np.int64)
        for rows, block in in_blocks(sums):
            noisy[rows] = block + draw(self._steps, block.shape, noise)
        return noisy[:, 0] if self.form == "single" else noisy

    def reach(self, failure: float, *, n_terms: int = 1) -> int:
        r"""Return a bound on the noise: :math:`P(|Z_1 + … + Z_n| > t) \le` `failure`, in grid steps.

        `failure`: in (0, 1). For several bounds that shall hold together, give each its part. `n_terms`: how many sums
        of one release are added up.

        Notes
        -----
        One Laplace draw: :math:`P(|Z| > t) = 2r^{t+1}/(1+r)`, :math:`r = e^{-1/b}`, exactly. One Gaussian draw:
        :math:`P(Z \ge t+1) \le P(N(0, \sigma^2) \ge t)` (CKS20, Proposition 25). Several: Chernoff's bound,
        :math:`t = \min_s (n \log M(s) + \log(2/failure))/s`, with :math:`\log M(s) = s^2\sigma^2/2` (an upper
        bound) or :math:`M(s) = (1-r)^2/((1-re^s)(1-re^{-s}))`.
        """
        failure = real("failure", failure, above=0, below=1)
        n_terms = count("n_terms", n_terms, at_least=1)
        b = self._steps
        if self.noise == "gaussian":
            if n_terms == 1:
                return math.ceil(max(-float(special.ndtri(failure / 2)), 0.0) * b * _UPWARD)
            return math.ceil(b * math.sqrt(2 * n_terms * math.log(2 / failure)) * _UPWARD)
        if n_terms == 1:
            return max(0, math.ceil(b * math.log(2 / (failure * (1 + math.exp(-1 / b)))) * _UPWARD) - 1)
        u = np.arange(1, 1000) / 1000  # s = u/b
        log_moment = 2 * math.log(-math.expm1(-1 / b)) - np.log(np.expm1((u - 1) / b) * np.expm1((-u - 1) / b))
        return math.ceil(float(((n_terms * log_moment + math.log(2 / failure)) * b / u).min()) * _UPWARD)

    @property
    def _steps(self) -> float:
        """Noise parameter in grid steps: the number that is both drawn with and priced."""
        return self.scale * self.grid


def _one_column(counts: IntArray) -> IntArray:
    """Check ``(n_queries, 1)`` sums as votes are checked; they have no second column."""
    if not isinstance(counts, np.ndarray) or counts.ndim != 2 or counts.shape[1] != 1:
        raise InvalidParameter(
            'counts must be an int64 array (n_queries, 1); pass one sum a query, or take form="shares"'
        )
    many_queries(np.repeat(counts, 2, axis=1))
    return counts
