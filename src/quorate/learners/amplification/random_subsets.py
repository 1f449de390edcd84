"""Uniform subsets, orders and draws from a noise source: the secrecy of a sample is what amplifies, so it is exact.

An integer below b is the remainder of a 64-bit word modulo b, where the words of the last, incomplete block of b are
thrown away and drawn again: every remainder is left with equally many words, and no bias remains to be argued about.
Subsets are partial Fisher-Yates shuffles of such integers. Callers address the source (``noise.at("kept rows", i)``),
so that one use of randomness never reads another's words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.noise import NoiseSource
from quorate.types import IntArray

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
