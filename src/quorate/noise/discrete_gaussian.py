r"""Discrete Gaussian noise: :math:`P(x) \propto e^{-x^2/(2\sigma^2)}` on the integers."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, frexp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from quorate.noise.source import NoiseSource, Size, checked_scale, checked_shape
from quorate.noise.table import MAX_CELLS, TAIL_BITS, WEIGHT_BITS, InverseCDF, exp_negative, extend_word
from quorate.types import FloatArray, IntArray, WordArray

# P(|x| > n) <= 2 exp(-(n+1)²/(2σ²)) <= 2^-200 from n + 1 = sqrt(402 log 2) σ on.
_CELLS_PER_SIGMA = sqrt(2 * (TAIL_BITS + 1) * log(2))

#: From here on a draw is split into a block and a place in it; below it one table holds the distribution.
SWITCH_SIGMA = float(MAX_CELLS // (2 * ceil(_CELLS_PER_SIGMA + 1)))

_BLOCK_SIGMA_BITS = 9  # a block is so wide that σ lies between 2^8 and 2^9 blocks
_DRAWS_AT_ONCE = 2**15
_UNSURE = 2.0**-40  # float error of a uniform, or of an acceptance probability, is below 2^-45


def discrete_gaussian(sigma: float, size: Size, source: NoiseSource) -> IntArray:
    r"""Draw discrete Gaussian integers, exactly.

    Parameters
    ----------
    sigma : float
        In votes, in ``(0, 2**40]``; the float is taken as the exact rational that it is. The standard deviation
        is at most σ, and for σ ≥ 2 equal to it in floats.
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
        If `sigma` or `size` is out of range.

    Notes
    -----
    Up to σ = 1820 one table holds the distribution, and a draw costs one word. The cut tail:
    :math:`P(X \ge t) \le e^{-t^2/(2\sigma^2)}`, by Chernoff from :math:`E\, e^{sX} = e^{s^2\sigma^2/2}\,
    g(s\sigma^2)/g(0) \le e^{s^2\sigma^2/2}`, where :math:`g(\mu) = \sum_x e^{-(x-\mu)^2/(2\sigma^2)}` is
    largest at 0 because its Fourier coefficients are positive (Poisson summation).

    Weights: :math:`w_{x+1} = w_x s_x`, :math:`s_{x+1} = s_x r` with :math:`s_0 = e^{-1/(2\sigma^2)}`,
    :math:`r = e^{-1/\sigma^2}`. In ulps of :math:`2^{-320}`, ``s`` is off by at most :math:`2 + 3x`, and ``w`` by
    at most :math:`\sum_x (3 + 3x) < 2^{32}` for :math:`x < 2^{15}`.

    Beyond, :math:`|x|` is drawn as :math:`M q + j`, where M is a power of two below σ/256: ``q ≥ 0`` from
    the table of weights :math:`e^{-(Mq)^2/(2\sigma^2)}` (half a discrete Gaussian of scale σ/M, exact in floats), ``j``
    uniform below M and a fair sign ``s``. The value is :math:`x = Mq + j`, or :math:`-1 - (Mq + j)` where the sign
    says so, and is kept with probability :math:`e^{-(x^2 - (Mq)^2)/(2\sigma^2)} \le 1`, else drawn anew: what is
    kept has the weights :math:`e^{-x^2/(2\sigma^2)}`. More than 99 % are kept. The coin compares 256 uniform bits with
    the exponential of a rational; floats decide it only where they are further apart than 32 times their error.

    References
    ----------
    Canonne, Kamath, Steinke (2020), arXiv:2004.00010: the distribution. The sampler is not theirs, which rejects and
    draws again (decision 0001).

    Examples
    --------
    >>> from quorate.noise import SeededNoise
    >>> discrete_gaussian(3.0, 8, SeededNoise(0)).tolist()
    [3, 1, 1, -1, 4, -1, 7, 5]
    """
    sigma = checked_scale("sigma", sigma)
    shape, n = checked_shape(size)
    if sigma <= SWITCH_SIGMA:
        return _table(sigma).draw(n, source).reshape(shape)
    draws = np.empty(n, dtype=np.int64)
    for start in range(0, n, _DRAWS_AT_ONCE):
        part = draws[start : start + _DRAWS_AT_ONCE]
        part[:] = _draw_split(sigma, part.size, source)
    return draws.reshape(shape)


def _half(sigma: float) -> list[int]:
    """Return the weights of 0, 1, 2, … in fixed point, up to where the tails are below 2^-200."""
    variance = Fraction(sigma) ** 2
    step, ratio = exp_negative(1 / (2 * variance)), exp_negative(1 / variance)
    weights = [1 << WEIGHT_BITS]
    for _ in range(ceil(sigma * _CELLS_PER_SIGMA) + 1):
        weights.append((weights[-1] * step) >> WEIGHT_BITS)
        step = (step * ratio) >> WEIGHT_BITS
    return weights


@lru_cache(maxsize=32)
def _table(sigma: float) -> InverseCDF:
    half = _half(sigma)
    return InverseCDF(1 - len(half), half[:0:-1] + half)


@lru_cache(maxsize=8)
def _half_table(sigma: float) -> InverseCDF:
    return InverseCDF(0, _half(sigma))


def _draw_split(sigma: float, n: int, source: NoiseSource) -> IntArray:
    width_bits = frexp(sigma)[1] - _BLOCK_SIGMA_BITS
    blocks = _half_table(sigma / 2.0**width_bits)
    draws = np.empty(n, dtype=np.int64)
    todo = np.arange(n)
    while todo.size:
        base = blocks.draw(todo.size, source) << width_bits
        places = source.words(todo.size)
        x = base + (places & np.uint64(2**width_bits - 1)).view(np.int64)
        x = np.where(places >> np.uint64(63), ~x, x)
        kept = _coin(x, base, sigma, source)
        draws[todo[kept]] = x[kept]
        todo = todo[~kept]
    return draws


def _coin(x: IntArray, base: IntArray, sigma: float, source: NoiseSource) -> NDArray[np.bool_]:
    r"""Flip one coin each of probability :math:`e^{-(x^2 - base^2)/(2\sigma^2)}`."""
    size = np.abs(x)
    # Both factors are integers below 2^53, so four roundings: relative error of γ below 2^-50, and γ < 2^5.
    gamma: FloatArray = (size - base) * ((size + base) / (2 * sigma) / sigma)
    probability = np.exp(-gamma)
    words: WordArray = source.words(x.size)
    uniform = words * 2.0**-64
    heads = uniform < probability
    for i in np.flatnonzero(np.abs(uniform - probability) < _UNSURE):
        exponent = Fraction(int(size[i]) ** 2 - int(base[i]) ** 2) / (2 * Fraction(sigma) ** 2)
        heads[i] = extend_word(int(words[i]), source) < exp_negative(exponent, bits=256)
    return heads
