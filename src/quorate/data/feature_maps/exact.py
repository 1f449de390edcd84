r"""Arithmetic whose result for a row is the same, bit for bit, whatever other rows are computed with it.

What one unit adds to a private sum must be a function of that unit and public facts alone. A batched product of floats
is not: how a library splits a matrix moves last bits of one row when other rows come or go. Two kinds of operations
are safe, and nothing else is used on private rows:

- a product or a sum of integers (held as floats) whose partial sums all stay below 2⁵³: no rounding takes place, so
  every order of summation agrees;
- addition, multiplication, division, square root and rounding entry by entry, which IEEE 754 rounds correctly, one way.

NumPy's own exponential is neither, since its vectorised and scalar forms may differ: :func:`exp` is put together from
the second kind.
"""

from __future__ import annotations

from functools import cache
from math import frexp, log2
from typing import Any

import numpy as np

from quorate.data.rows import summed_cells
from quorate.deferred import sparse
from quorate.types import FloatArray

MANTISSA_BITS = 53
BLOCK = 2**12  # sparse rows that are scaled at once
_AT_ONCE = 2**14  # exponentials: of fewer, calls take longer than what they do; of more, a core's cache is too small

_LARGEST = 40  # of arguments: 1 + e^-40 is 1, and nothing that is added up here tells e^-40 from less
_PARTS = 64  # of one, in which powers of e are tabled
_TAYLOR = (1.0, 1.0, 1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720)


@cache
def _powers_of_e() -> FloatArray:
    """e^(j/64) for all whole j with |j/64| ≤ 40, rounded once: products of whole numbers that hold 200 bits."""
    one = 1 << 200
    step, term = one, one
    for degree in range(1, 40):
        term //= _PARTS * degree
        step += term
    rising = [one]
    for _ in range(_LARGEST * _PARTS):
        rising.append(rising[-1] * step >> 200)
    return np.array([*(one / power for power in rising[:0:-1]), *(power / one for power in rising)])


def exp(x: FloatArray) -> FloatArray:
    r"""Return :math:`e^x` entry by entry, of x cut to ±40, within 2⁻⁵⁰ relative, by sums, products and roundings alone.

    :math:`x = k/64 + r` with :math:`|r| \le 1/128`, the power of k from a table, and Taylor's sum of seven terms for
    :math:`e^r`, whose remainder is below :math:`2^{-49}/7! < 2^{-60}`.
    """
    result = np.clip(x, -_LARGEST, _LARGEST)
    flat, powers = result.reshape(-1), _powers_of_e()
    for start in range(0, flat.size, _AT_ONCE):
        part = flat[start : start + _AT_ONCE]
        k = np.rint(part * _PARTS)
        part -= k / _PARTS  # exact
        total = part * _TAYLOR[-1]
        for coefficient in _TAYLOR[-2:0:-1]:
            total += coefficient
            total *= part
        total += _TAYLOR[0]
        k += _LARGEST * _PARTS
        np.multiply(total, powers.take(k.astype(np.int64), mode="clip"), out=part)
    return np.asarray(result)


def to_grid(x: Any, bits: int) -> Any:
    """Return each entry as the nearest integer number of steps of ``2**-bits``, held as a float; `bits` may be
    negative.
    """
    if isinstance(x, np.ndarray):
        return np.rint(np.ldexp(x, bits))
    steps = x.copy()
    steps.data = np.rint(np.ldexp(x.data, bits))
    return steps


def squared_lengths(integers: Any) -> FloatArray:
    """Return the squared Euclidean length of each row of integers, held as floats; exact where it is below 2⁵³."""
    if isinstance(integers, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", integers, integers))
    form = sparse.csr_matrix((integers.data * integers.data, integers.indices, integers.indptr), shape=integers.shape)
    return np.asarray(form @ np.ones(integers.shape[1]))


def bits_for(bound: float) -> int:
    """Return the largest b with ``bound * 2**b <= 2**52``: integers below 2⁵³ with room for rounding, for sums below
    `bound`.
    """
    mantissa, exponent = frexp(bound)
    return MANTISSA_BITS - 1 - (exponent - (mantissa == 0.5))


def unit_rows(rows: Any, bits: int) -> Any:
    r"""Scale each row to length one, in whole steps of ``2**-bits``; a row of zeros stays.

    Its length is that of the row rounded to g bits below its largest entry's power of two, with :math:`2 g + \log_2
    (\text{columns}) \le 52`: the sum of squares is exact in any order.
    """
    fine = int((MANTISSA_BITS - 1 - log2(max(rows.shape[1], 2))) // 2)
    if isinstance(rows, np.ndarray):
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        exponents = np.frexp(np.abs(rows).max(axis=1, initial=0.0))[1].astype(np.int64)
        integers = np.rint(np.ldexp(rows, fine - exponents[:, None]))
        lengths = np.sqrt(squared_lengths(integers))
        np.divide(integers, lengths[:, None], out=integers, where=lengths[:, None] > 0)
        return np.rint(np.ldexp(integers, bits))
    rows = summed_cells(rows.astype(np.float64, copy=False))  # a copy
    for start in range(0, rows.shape[0], BLOCK):
        starts = rows.indptr[start : start + BLOCK + 1]
        _to_units(rows.data[starts[0] : starts[-1]], starts - starts[0], fine, bits)
    return rows


def _to_units(data: FloatArray, starts: Any, fine: int, bits: int) -> None:
    """Scale some sparse rows to length one, in place; each begins at one of `starts`, and the last is the end."""
    counts = np.diff(starts)
    counts = counts[counts > 0]
    if not len(counts):
        return
    begins = np.cumsum(counts) - counts
    exponents = np.frexp(np.maximum.reduceat(np.abs(data), begins))[1]
    np.rint(np.ldexp(data, np.repeat(fine - exponents, counts), out=data), out=data)
    lengths = np.sqrt(np.add.reduceat(data * data, begins))  # of integers below 2^53: exact in every order
    lengths[lengths == 0] = 1.0
    np.divide(data, np.repeat(lengths, counts), out=data)
    np.rint(np.ldexp(data, bits, out=data), out=data)
