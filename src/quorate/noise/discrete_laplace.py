r"""Discrete Laplace noise: :math:`P(x) \propto e^{-|x|/b}` on the integers."""

from __future__ import annotations

from functools import lru_cache
from math import ceil, log

from quorate.noise.geometric import geometric, powers
from quorate.noise.source import NoiseSource, Size, checked_scale, checked_shape
from quorate.noise.table import MAX_CELLS, TAIL_BITS, InverseCDF
from quorate.types import IntArray

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
