r"""Exponentials of rationals as big integers, with an error bound in units of the last place.

A real :math:`v \in [0, 1]` is held as the integer nearest below :math:`2^{p} v`; one unit of the last place
(ulp) is :math:`2^{-p}`.
"""

from __future__ import annotations

from fractions import Fraction

#: Bits after the point in every weight.
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
