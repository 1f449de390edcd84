r"""Geometric noise on the integers: one-sided, and two-sided, discrete Laplace: :math:`P(x) \propto e^{-|x|/b}`."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, log

import numpy as np

from quorate.noise.source import NoiseSource, Size, checked_scale, checked_shape
from quorate.noise.table import MAX_CELLS, TAIL_BITS, WEIGHT_BITS, InverseCDF, exp_negative
from quorate.types import IntArray

# P(k >= n) = exp(-n/λ) <= 2^-200 from n = 200 log(2) λ on.
_CELLS_ONE_SIDED = TAIL_BITS * log(2)
_DIGIT = MAX_CELLS // 2

#: From here on a geometric draw is made of digits; below it one table holds the whole distribution.
GEOMETRIC_SWITCH_SCALE = float(MAX_CELLS // ceil(_CELLS_ONE_SIDED + 1))


def geometric(scale: float, size: Size, source: NoiseSource) -> IntArray:
    r"""Draw one-sided geometric integers, exactly.

    Parameters
    ----------
    scale : float
        λ in votes, in ``(0, 2**40]``; the float is taken as the exact rational that it is. The mean is
        :math:`1/(e^{1/\lambda} - 1)`, a little under λ.
    size : int or tuple of int
        Shape of the result.
    source : NoiseSource
        Where the bits come from.

    Returns
    -------
    IntArray
        Of shape `size`, values ≥ 0.

    Raises
    ------
    InvalidParameter
        If `scale` or `size` is out of range.

    Notes
    -----
    Up to λ = 468 one table holds the distribution. Beyond, the digits of ``k`` in base :math:`M = 2^{15}` are
    drawn: with :math:`k = r + M q`, :math:`P(k) \propto e^{-r/\lambda} e^{-q/(\lambda/M)}` is a product, so
    ``r`` (a table of M cells) and ``q`` (geometric of scale λ/M) are independent; ``q`` is split again while
    it needs to be. This is exact: no rejection, and no table of more than :math:`2^{16}` cells. At most 4
    draws from tables make one draw, each within :math:`2^{-199}`.

    Weights: the powers :math:`r^k`, each by one product from the last. In ulps of :math:`2^{-320}`, a product of two
    numbers in [0, 1] with errors ``e`` and 2 is off by at most ``e + 3``: below :math:`2^{18}` after
    :math:`2^{16}` steps.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> geometric(3.0, 8, SeededNoise(0)).tolist()
    [5, 2, 3, 1, 7, 1, 13, 8]
    """
    scale = checked_scale("scale", scale)
    shape, n = checked_shape(size)
    draws = np.zeros(n, dtype=np.int64)
    place = 1
    while scale > GEOMETRIC_SWITCH_SCALE:
        draws += place * _digit_table(scale).draw(n, source)
        place *= _DIGIT
        scale /= _DIGIT  # exact: a power of two
    draws += place * _one_sided_table(scale).draw(n, source)
    return draws.reshape(shape)


@lru_cache(maxsize=32)
def _one_sided_table(scale: float) -> InverseCDF:
    return InverseCDF(0, powers(scale, ceil(scale * _CELLS_ONE_SIDED) + 2))


@lru_cache(maxsize=8)
def _digit_table(scale: float) -> InverseCDF:
    return InverseCDF(0, powers(scale, _DIGIT))


def powers(scale: float, n: int) -> list[int]:
    r"""Return :math:`e^{-k/\mathtt{scale}}` for ``k = 0, …, n − 1``, in fixed point."""
    ratio = exp_negative(1 / Fraction(scale))
    weights = [1 << WEIGHT_BITS]
    for _ in range(n - 1):
        weights.append((weights[-1] * ratio) >> WEIGHT_BITS)
    return weights


# P(|x| > n) = 2 e^{-(n+1)/b} / (1 + e^{-1/b}) < 2 e^{-(n+1)/b} <= 2^-200 from n + 1 = 201 log(2) b on.
_CELLS_PER_SCALE = (TAIL_BITS + 1) * log(2)

#: From here on a draw is the difference of two geometric draws; below it one table holds the distribution.
SWITCH_SCALE = float(MAX_CELLS // (2 * ceil(_CELLS_PER_SCALE + 1)))


def discrete_laplace(scale: float, size: Size, source: NoiseSource) -> IntArray:
    r"""Draw discrete Laplace integers, exactly.

    Parameters
    ----------
    scale : float
        b in votes, in ``(0, 2**40]``; the float is taken as the exact rational that it is. Added to an integer
        of sensitivity Δ the noise gives Δ/b-differential privacy.
    size : int or tuple of int
        Shape of the result.
    source : NoiseSource
        Where the bits come from.

    Returns
    -------
    IntArray
        Of shape `size`.

    Raises
    ------
    InvalidParameter
        If `scale` or `size` is out of range.

    Notes
    -----
    Up to b = 232 one table holds the distribution. Beyond, the draw is the difference of two independent
    geometric draws of the same scale: with :math:`r = e^{-1/b}`,
    :math:`\sum_k r^{k+|x|} r^{k} \propto r^{|x|}`. At most 8 draws from tables make one draw.

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> discrete_laplace(3.0, (2, 4), SeededNoise(0)).tolist()
    [[3, 1, 1, -1], [6, -1, 12, 7]]
    """
    scale = checked_scale("scale", scale)
    shape, n = checked_shape(size)
    if scale > SWITCH_SCALE:
        return geometric(scale, shape, source) - geometric(scale, shape, source)
    return _table(scale).draw(n, source).reshape(shape)


@lru_cache(maxsize=32)
def _table(scale: float) -> InverseCDF:
    half = powers(scale, ceil(scale * _CELLS_PER_SCALE) + 2)
    return InverseCDF(1 - len(half), half[:0:-1] + half)
