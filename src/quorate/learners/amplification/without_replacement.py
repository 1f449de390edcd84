"""What a random part of the rows does to a price: exact functions of the parameters, rounded up.

**Uniform subsets, orders and draws from a noise source: the secrecy of a sample is what amplifies, so it is exact.** An
integer below b is the remainder of a 64-bit word modulo b, where the words of the last, incomplete block of b are
thrown away and drawn again: every remainder is left with equally many words, and no bias remains to be argued about.
Subsets are partial Fisher-Yates shuffles of such integers. Callers address the source (``noise.at("kept rows", i)``),
so that one use of randomness never reads another's words.
"""

from __future__ import annotations

from math import exp, expm1, log1p

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.learners.amplification.price import SLACK, Price, rounded_up_price
from quorate.noise import NoiseSource
from quorate.types import IntArray


def without_replacement(price: Price, *, n_rows: int, n_kept: int) -> Price:
    r"""Return the price of running an algorithm on `n_kept` of the `n_rows` rows, every subset alike.

    With :math:`r = \mathtt{n\_kept}/\mathtt{n\_rows}`: :math:`(\log(1 + r(e^\varepsilon - 1)),\ r\delta)`.

    `price`: that of the algorithm on the sample. `n_rows`, `n_kept`: 0 <= `n_kept` <= `n_rows`, and `n_rows` >= 1.
    Raises InvalidParameter if a number is out of range. The sample must come in random order if the algorithm looks at
    it, as that of :func:`~quorate.learners.amplification.without_replacement.random_arrangement` does. Tight for every
    ε, δ and r.

    References
    ----------
    Balle, Barthe and Gaboardi (2018), arXiv:1807.01647, Theorem 9. BNS15's Claim 4.3 is weaker.
    """
    n_rows, n_kept = count("n_rows", n_rows, at_least=1), count("n_kept", n_kept)
    if n_kept > n_rows:
        raise InvalidParameter(f"n_kept must be at most n_rows={n_rows}, got {n_kept}")
    if n_kept == n_rows:
        return price
    rate = n_kept / n_rows
    return rounded_up_price(log1p(rate * expm1(price.epsilon)), rate * price.delta)


def bns15_claim_4_3(price: Price, *, epsilon: float, n_rows: int) -> tuple[int, Price]:
    r"""Return how many rows BNS15's Claim 4.3 samples `n_rows` from to bring a price to ε <= 1, and that price.

    :math:`t = \frac{n}{\varepsilon}(3 + e^{\varepsilon^*})` rows give
    :math:`(\varepsilon, \frac{4\varepsilon}{3 + e^{\varepsilon^*}}\delta)`.

    Raises InvalidParameter if ε is not in (0, 1], or `n_rows` below 1.
    """
    epsilon = real("epsilon", epsilon, above=0, at_most=1)
    share = (3 + exp(price.epsilon)) / epsilon
    delta = min(1.0, 4 * price.delta / share * (1 + SLACK))
    return _ceil(count("n_rows", n_rows, at_least=1) * share), Price(epsilon, delta)


def _ceil(number: float) -> int:
    """Round up a count of rows that was computed in floats: never one too few."""
    whole = int(number)
    return whole + (number * (1 + SLACK) > whole)


_LARGEST_BOUND = 2**62
_WORDS = 2**64


def random_integers(bounds: IntArray, noise: NoiseSource) -> IntArray:
    """Draw one uniform integer in ``[0, bound)`` for each of the bounds, exactly.

    `bounds`: each from 1 to 2^62. `noise`: where the words come from: one an integer, and one more for each that is
    rejected. Returns: independent. Raises InvalidParameter if the bounds are not int64 from 1 to 2^62.
    """
    if not (isinstance(bounds, np.ndarray) and bounds.dtype == np.int64 and bounds.ndim == 1):
        raise InvalidParameter("bounds must be a one-dimensional int64 array")
    if not ((bounds >= 1) & (bounds <= _LARGEST_BOUND)).all():
        raise InvalidParameter("bounds must be whole numbers from 1 to 2^62")
    wide = bounds.astype(np.uint64)
    drawn = noise.words(bounds.size).copy()
    # The words from 2^64 − (2^64 mod b) on belong to no complete block of b words.
    incomplete = (np.uint64(_WORDS - 1) % wide + np.uint64(1)) % wide
    last = np.uint64(_WORDS - 1) - incomplete
    rejected: NDArray[np.intp] = np.flatnonzero(drawn > last)
    while rejected.size:
        drawn[rejected] = noise.words(rejected.size)
        rejected = rejected[drawn[rejected] > last[rejected]]
    return (drawn % wide).astype(np.int64)


def random_arrangement(n: int, size: int, noise: NoiseSource) -> IntArray:
    r"""Draw `size` of the `n` indices without replacement, in random order: every arrangement alike.

    `n`: how many there are, >= 0. `size`: how many are drawn, 0 to `n`. `noise`: where the words come from. Returns:
    distinct indices below `n`. Raises InvalidParameter if `n` or `size` is out of range. Partial Fisher-Yates: at step
    i one of the n − i indices that are left is chosen, so each of the :math:`n!/(n-\mathtt{size})!` arrangements has
    exactly one path. Neighbours: where one row of the sample is exchanged for another, the latter takes its place, so
    that rules about samples hold for learners that look at the order too (BNS15, Remark 4.4).
    """
    n = count("n", n)
    size = count("size", size)
    if size > n:
        raise InvalidParameter(f"size must be at most n={n}, got {size}; a subset has no more members than the whole")
    steps = random_integers(np.arange(n, n - size, -1, dtype=np.int64), noise)
    moved: dict[int, int] = {}  # the shuffled array where it differs from 0, 1, 2, …
    chosen = np.empty(size, dtype=np.int64)
    for i, step in enumerate(steps.tolist()):
        place = i + step
        chosen[i] = moved.get(place, place)
        moved[place] = moved.pop(i, i)
    return chosen


def random_draws(n: int, size: int, noise: NoiseSource) -> IntArray:
    """Draw `size` independent, uniform indices below `n`: with replacement, ``(size,)``.

    Raises InvalidParameter if `n` is below 1 or `size` below 0.
    """
    n = count("n", n, at_least=1)
    return random_integers(np.full(count("size", size), n, dtype=np.int64), noise)
