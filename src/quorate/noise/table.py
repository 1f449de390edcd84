r"""Inverse-CDF tables: one 64-bit word a draw, more bits only at a cell border, and no draw rejected.

A table holds integer weights :math:`w_0, …, w_{n-1}` for the values :math:`a, a+1, …`, as 256-bit borders
:math:`c_i = \lfloor 2^{256} (w_0 + … + w_i) / \sum w \rfloor`. A draw is the number of borders at or below a
uniform 256-bit integer :math:`U`. All but one word in about :math:`2^{64}/n` decide this by themselves: only
where the first word equals the first word of a border are the other 192 bits of :math:`U` drawn. The answer is
the one that all 256 bits would give, always, so the short cut is exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from quorate.noise.source import NoiseSource, words_of
from quorate.types import IntArray, WordArray

TOTAL_VARIATION = 2.0**-190
r"""How far, in total variation, a draw may be from its stated distribution.

For δ that is :math:`1 + e^\varepsilon` times as much a draw: see :func:`quorate.accounting.sampler_delta`.

Proof. (1) *Tail.* A table leaves out values of total probability at most :math:`2^{-200}`, and so is within
:math:`2^{-200}` of the distribution. (2) *Weights.* A weight is off by less than :math:`2^{33}` ulp of
:math:`2^{-320}` (shown where weights are made), they sum to at least 1, and there are at most :math:`2^{17}` of
them: normalising moves at most :math:`2 \cdot 2^{33+17-320} = 2^{-269}`. (3) *Borders.* Flooring moves a border by
less than :math:`2^{-256}`, and a cell is the difference of two borders: at most :math:`2^{17-256}` in all.
(4) *Draws.* A draw from the table is the exact function of 256 uniform bits. So one table is within
:math:`2^{-199}`. (5) At most 8 draws from tables are added up to one draw: :math:`2^{-196}`. The discrete Gaussian
of large σ conditions a table draw on a coin (off by :math:`2^{-254}`) that keeps at least half: the error at
most doubles twice, :math:`2^{-197}`. All are below :math:`2^{-190}`.
"""

#: A table has at most so many cells; beyond that the samplers split the draw instead.
MAX_CELLS = 2**16

#: A table leaves out tails of probability at most ``2**-TAIL_BITS``.
TAIL_BITS = 200

_BORDER_BITS = 256
_BLOCK = 2**15  # draws at once: the working set stays in the cache
_MIXED = np.int32(-(2**31))


class InverseCDF:
    """A distribution on consecutive integers, ready to be drawn from.

    `first`: the value of the first cell. `weights`: not normalised, at least 0, positive in sum; at most ``2 *
    MAX_CELLS + 1`` of them.
    """

    __slots__ = ("_borders", "_first", "_guide", "_shift", "_tops")

    def __init__(self, first: int, weights: Sequence[int]) -> None:
        total = sum(weights)
        # The last border is 2^256 itself, which no U reaches: it is left out.
        self._borders = [(s << _BORDER_BITS) // total for s in accumulate(weights[:-1])]
        self._first = first
        while self._borders and self._borders[-1] >> _BORDER_BITS:  # the last weights were 0
            self._borders.pop()
        self._tops: WordArray = np.array([b >> (_BORDER_BITS - 64) for b in self._borders], dtype=np.uint64)
        self._guide, self._shift = self._make_guide()

    def _make_guide(self) -> tuple[NDArray[np.int32], np.uint64]:
        """Map a word's top bits to its draw, or to ``_MIXED`` where a border's first word has the same top bits."""
        bits = min(18, max(12, len(self._borders).bit_length() + 4))
        shift = np.uint64(64 - bits)
        starts = np.arange(2**bits, dtype=np.uint64) << shift
        guide = self._first + np.searchsorted(self._tops, starts, side="right").astype(np.int64)
        guide[self._tops >> shift] = _MIXED
        return guide.astype(np.int32), shift

    @property
    def n_cells(self) -> int:
        """How many values can be drawn."""
        return len(self._borders) + 1

    def draw(self, n: int, source: NoiseSource) -> IntArray:
        """Return `n` independent draws, ``(n,)`` int64."""
        draws = np.empty(n, dtype=np.int64)
        for start in range(0, n, _BLOCK):
            block = draws[start : start + _BLOCK]
            self._fill(block, words_of(source, block.size), source)
        return draws

    def _fill(self, draws: IntArray, words: WordArray, source: NoiseSource) -> None:
        draws[:] = self._guide[(words >> self._shift).view(np.int64)]
        mixed = np.flatnonzero(draws == _MIXED)
        if not mixed.size:
            return
        left = words[mixed]
        cell = np.searchsorted(self._tops, left, side="right")
        draws[mixed] = cell + self._first
        # A word that equals a border's first word lies just left of `cell`; the rest of U has to decide.
        for i in np.flatnonzero((cell > 0) & (self._tops[cell - 1] == left)):
            draws[mixed[i]] = self._first + bisect_right(self._borders, extend_word(int(left[i]), source))


def extend_word(word: int, source: NoiseSource) -> int:
    """Return the 256-bit integer that starts with `word` and goes on with three fresh words."""
    for more in source.words(3).tolist():
        word = (word << 64) | more
    return word


#: Bits after the point in every weight: a real v in [0, 1] is held as the integer nearest below 2^bits v, and one unit
#: of the last place (ulp) is 2^-bits.
WEIGHT_BITS = 320

_GUARD_BITS = 64


def exp_negative(exponent: Fraction, bits: int = WEIGHT_BITS) -> int:
    r"""Return :math:`2^{\mathtt{bits}} e^{-\mathtt{exponent}}` as an integer, within 2 ulp.

    `exponent`: at least 0; exact. `bits`: bits after the point, from 32 to 1024. Error bound. Let :math:`p =
    \mathtt{bits} + 64` and count in ulps of :math:`2^{-p}`. Where the exponent passes ``bits`` the value is below
    :math:`2^{-1.44\,\mathtt{bits}}` and 0 is within 1 ulp of the result. Else halve it :math:`h \le 11` times until it
    is at most ½ (its floor is off by 1 ulp); the alternating Taylor sum stops at a term that is 0, after fewer than
    :math:`p \le 1088` terms, each off by at most 2 ulp, and what is left out is below 2 ulp: the sum is off by less
    than :math:`2^{12}` ulp. A squaring of a value in :math:`[0, 1]` turns an error :math:`e` into at most :math:`2e +
    2`: after :math:`h` of them it is below :math:`2^{24}` ulp of :math:`2^{-p}`, a fraction of :math:`2^{-40}` of an
    ulp of the result, whose own floor adds 1.
    """
    if exponent > bits:
        return 0
    p = bits + _GUARD_BITS
    one = 1 << p
    halvings = max(0, (2 * exponent.numerator // exponent.denominator).bit_length())
    y = (exponent.numerator << p) // (exponent.denominator << halvings)
    total, term, n = one, one, 0
    while term:
        n += 1
        term = ((term * y) >> p) // n
        total += -term if n % 2 else term
    for _ in range(halvings):
        total = (total * total) >> p
    return min(total, one) >> _GUARD_BITS
