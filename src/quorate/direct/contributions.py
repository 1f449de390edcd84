r"""What each unit adds to a round's sum: integers of length at most :math:`2^k`, a function of that unit alone.

For a unit with the rows R (one record, or all rows of a person) the gradient is the mean over R of
:math:`z \otimes (e_y - p(z))`, clipped to Euclidean length B. In steps of :math:`B/2^k` this is the integer vector that
:func:`of_records` and :func:`of_groups` return the sum of.

Exactness, step by step: logits are products of integers whose absolute values sum to less than 2⁵³; probabilities are
computed entry by entry; a record's contribution is the *outer product of two integer vectors*, its coordinates and its
slopes, so that the sum over records is one matrix product of integers, exact in every order and block size; a group's
slopes are put on a fixed grid first, so that the sum over its rows is exact too, and everything after that happens
within the group. Nothing here refuses, stops or branches on what another unit holds.

A round may count instead (:func:`counted`): a unit adds the share of its rows in each cell. Cells are of a range, or
of how sure the weights are of a row's class, and whether they are right (:func:`.temperature.sureness`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, log2
from typing import Any, Literal, TypeAlias

import numpy as np

from quorate.data.feature_maps.coordinates import LENGTH_BITS, FactoredRows
from quorate.data.feature_maps.exact import MANTISSA_BITS, exp, squared_lengths
from quorate.data.labels import STEPS
from quorate.deferred import sparse
from quorate.direct.temperature import sureness
from quorate.types import FloatArray, IntArray

#: What a score predicts: classes by the logistic function, or a place in a range by :func:`places_of`.
Link: TypeAlias = Literal["classes", "range"]

BLOCK = 2**16  # records a block: with contributions below 2^30 a block's sums stay below 2^46
SLOPE_BITS = 16  # slopes of a group's rows are multiples of 2^-16
GROUP_ROWS = 2**10  # rows of one group that are summed at once: 2^(10 + 16 + 26) stays below 2^53
NUMBERS = 2**19  # that are held for groups which are summed at once: what stays near a core
_SHRINK = 1 - 2.0**-40
_TRIES = 8
_CLEARLY = 1 - 2.0**-40  # of the longest length: a product of floats is off by less
_NORMAL = 1_000  # a power of two below 2^1000 and its inverse are normal numbers
_LEAST_EXPONENT = -900  # a vector of smaller numbers becomes 0 whatever it is scaled by


@dataclass(frozen=True, slots=True)
class Grid:
    """The integers of one run: steps of ``2**-bits`` for coordinates, and ``2**k`` steps for the length `clip`.

    `link`: how a score becomes what is predicted: the probability of a class, or a place in the range of a target.
    `low`, `high`: the part of that range, in its steps, that residuals are measured by. `cells`: in how many cells a
    round counts, of that part or of how sure the weights are; 0 where it adds up gradients.
    """

    bits: int
    clip: float
    k: int
    link: Link = field(default="classes", repr=False)  # not in the digests of runs with classes
    low: int = field(default=0, repr=False)
    high: int = field(default=STEPS, repr=False)
    cells: int = field(default=0, repr=False)

    @property
    def step(self) -> float:
        """What one step of the sum is worth, in the unit of the gradient."""
        return self.clip * 2.0**-self.k


def slopes(z: Any, codes: IntArray, weights: FloatArray, grid: Grid) -> FloatArray:
    """Return how each row would move its scores: ``(n_rows, 1)``, or ``(n_rows, n_classes)`` for more than two classes.

    None is larger than 1. `z`: integer coordinates in steps of ``2**-grid.bits``, of length at most 2²⁶. `codes`:
    classes, or targets in steps of their range.
    """
    logits = logits_of(z, weights, grid)
    if grid.link == "range":
        places = ((codes - grid.low) / (grid.high - grid.low))[:, None]
        return np.asarray(np.clip(places - places_of(logits, grid), -1.0, 1.0))
    if logits.shape[1] == 1:
        chances = exp(np.negative(logits, out=logits))
        chances += 1.0
        np.divide(1.0, chances, out=chances)
        return np.asarray(np.subtract((codes == 1)[:, None], chances, out=chances))
    raised = exp(logits - logits.max(axis=1, keepdims=True))
    total = raised[:, 0].copy()
    for column in range(1, raised.shape[1]):  # in the order of the classes, whatever the number of rows
        total += raised[:, column]
    result = -raised / total[:, None]
    result[np.arange(len(codes)), codes] += 1.0
    return result


def logits_of(z: Any, weights: FloatArray, grid: Grid) -> FloatArray:
    """Return the scores of rows, ``(n_rows, n_outputs)``: an exact product, then one rounding an entry."""
    largest = float(np.linalg.norm(weights, axis=0).max(initial=0.0))
    weight_bits = MANTISSA_BITS - 2 - LENGTH_BITS - ceil(log2(largest * 1.001)) if largest > 0 else 0
    integers = np.rint(np.ldexp(weights, weight_bits))
    return _times_power(z @ integers, -weight_bits - grid.bits)


def _times_power(x: FloatArray, exponent: int) -> FloatArray:
    """Return ``x * 2**exponent``, in place where that power is a normal number: the same one rounding, and faster."""
    if abs(exponent) < _NORMAL:
        x *= 2.0**exponent
        return x
    return np.asarray(np.ldexp(x, exponent))


def places_of(scores: FloatArray, grid: Grid) -> FloatArray:
    """Return the place in the part [low, high] of a range that each score predicts; it is ½ at a score of 0.

    The sigmoid's tangent there, cut off at both ends of the whole range: no steeper than 1/4, so that one rate suits
    both links.
    """
    width = grid.high - grid.low
    return np.asarray(np.clip(0.5 + scores / 4, -grid.low / width, (STEPS - grid.low) / width))


def cells_of(z: Any, codes: IntArray, weights: FloatArray, grid: Grid) -> IntArray:
    """Return the cell of each row, ``(n_rows,)``: of its target, or of how sure the weights are and whether rightly.

    A target beyond the part of a range is in the first or the last cell of it.
    """
    if grid.link == "range":
        cells = (codes.astype(np.int64) - grid.low) * grid.cells // (grid.high - grid.low)
        return np.asarray(np.clip(cells, 0, grid.cells - 1))
    cells = np.empty(len(codes), dtype=np.int64)
    for start in range(0, len(codes), BLOCK):
        rows = slice(start, start + BLOCK)
        own, _ = without_wild_rows(z[rows], lengths_of(z[rows]))
        cells[rows] = sureness(slopes(own, codes[rows], weights, grid), codes[rows], grid.cells)
    return cells


def counted(cells: IntArray, starts: IntArray | None, shape: tuple[int, int], grid: Grid) -> IntArray:
    """Return the sum over units of the share of a unit's rows in each cell, in steps of ``2**-k``, in a first column.

    `cells`: of each row. `starts`: where each unit begins, and the end; None where every row is a unit. `shape`: of a
    round's sum. A unit's shares are whole numbers of steps that sum to 2^k at most, so that its vector is no longer.
    They follow from its rows alone.
    """
    total = np.zeros(shape, dtype=np.int64)
    if starts is None:
        total[: grid.cells, 0] = np.bincount(cells, minlength=grid.cells) << grid.k
        return total
    sizes = np.diff(starts)
    own, times = np.unique(np.repeat(np.arange(len(sizes)), sizes) * grid.cells + cells, return_counts=True)
    np.add.at(total[:, 0], own % grid.cells, (times << grid.k) // sizes[own // grid.cells])
    return total


def of_records(
    z: Any, lengths: FloatArray, codes: IntArray, weights: FloatArray, grid: Grid, *, block: int = BLOCK
) -> IntArray:
    """Return the sum of the records' contributions, ``(n_coordinates, n_outputs)`` integers, whatever `block` is.

    `lengths`: of the integer coordinates `z`, as :func:`lengths_of` gives them.
    """
    if grid.cells:
        return counted(cells_of(z, codes, weights, grid), None, (z.shape[1], weights.shape[1]), grid)
    total = np.zeros((z.shape[1], weights.shape[1]), dtype=np.int64)
    for start in range(0, z.shape[0], block):
        rows = slice(start, start + block)
        own, sizes = without_wild_rows(z[rows], lengths[rows])
        factors = record_factors(slopes(own, codes[rows], weights, grid), sizes, grid)
        product = _summed(own, factors, sizes, grid)
        total += np.where(np.abs(product) <= len(sizes) * 2.0**grid.k, product, 0.0).astype(np.int64)
    return total


def _summed(own: Any, factors: FloatArray, sizes: FloatArray, grid: Grid) -> Any:
    """Return the sum over rows of coordinates times factors."""
    if not isinstance(own, FactoredRows):
        return own.T @ factors
    # An integer vector is 0 or at least 1 long, so that a factor is at most 2^k; and a slope is at most 1.
    largest = max(1.0, min(2.0**grid.k, 2.0 ** (grid.k - grid.bits) / grid.clip))
    return own.summed(np.where(sizes[:, None] > 0, factors, 0.0), largest)


def without_wild_rows(z: Any, lengths: FloatArray) -> tuple[Any, FloatArray]:
    """Return coordinates and lengths with 0 for each row whose length is no number or more than 2²⁶.

    No row that went through the feature map has such a length, unless it held what is not finite. Its entries times a
    factor of 0 would be no number, and so would the sum over all records.
    """
    sound = lengths <= 2.0**LENGTH_BITS  # false for NaN
    if isinstance(z, FactoredRows) or sound.all():  # the former have none
        return z, lengths
    if isinstance(z, np.ndarray):
        return np.where(sound[:, None], z, 0.0), np.where(sound, lengths, 0.0)
    cleared = z.copy()
    cleared.data = np.where(np.repeat(sound, np.diff(z.indptr)), z.data, 0.0)
    return cleared, np.where(sound, lengths, 0.0)


def lengths_of(z: Any) -> FloatArray:
    """Return the Euclidean length of each row of integer coordinates: an exact sum, one rounding."""
    return z.lengths if isinstance(z, FactoredRows) else np.sqrt(squared_lengths(z))


def record_factors(slope: FloatArray, lengths: FloatArray, grid: Grid) -> FloatArray:
    r"""Return the integers s with which a record's contribution is :math:`z \otimes s`, of length at most ``2**k``.

    Slopes are scaled to steps of ``clip / 2**k``, cut off where the contribution would be longer, and truncated toward
    zero. The squared length :math:`\|z\|^2 \|s\|^2` is then checked in integers; where rounding passed ``4**k`` the
    slopes are shrunk by :math:`1 - 2^{-40}` and truncated again, at most eight times, and are 0 after that.
    """
    scaled = slope * (2.0 ** (grid.k - grid.bits) / grid.clip)
    sizes = _norms(scaled)
    sizes *= lengths
    np.maximum(sizes, 1.0, out=sizes)
    np.divide(2.0**grid.k, sizes, out=sizes)
    scaled *= np.minimum(1.0, sizes, out=sizes)[:, None]
    factors = np.trunc(scaled)
    near = _norms(factors)
    near *= lengths
    close = np.flatnonzero(~(near <= 2.0**grid.k * _CLEARLY))  # what is not near the bound is within it
    if len(close):
        squares = np.rint(lengths[close] * lengths[close]).astype(np.int64)
        factors[close] = _within(factors[close], scaled[close], squares, grid.k)
    return factors


def _norms(rows: FloatArray) -> FloatArray:
    """Return the Euclidean length of each row, its squares summed from the first entry on."""
    if rows.shape[1] == 1:
        return np.abs(rows[:, 0])  # the square root of a rounded square: no other number, unless both are far below 1
    sizes = rows[:, 0] * rows[:, 0]
    for column in rows.T[1:]:
        sizes += column * column
    return np.asarray(np.sqrt(sizes, out=sizes))


def _within(factors: FloatArray, scaled: FloatArray, squares: IntArray, k: int) -> FloatArray:
    """Shrink the factors of rows whose contribution is longer than ``2**k``, then drop those that still are."""
    for _ in range(_TRIES):
        long = too_long(factors, squares, k)
        if not long.any():
            return factors
        scaled = np.where(long[:, None], scaled * _SHRINK, scaled)
        factors = np.where(long[:, None], np.trunc(scaled), factors)
    return np.where(too_long(factors, squares, k)[:, None], 0.0, factors)


def too_long(factors: FloatArray, squares: IntArray, k: int) -> np.ndarray:
    """Tell for which rows ``squares * |factors|**2`` passes ``4**k``, or is not a number; in integers."""
    largest = np.abs(factors).max(axis=1)
    wild = ~(largest <= 2.0**k) | ~(largest * np.sqrt(squares) <= 2.0 ** (k + 0.5))
    integers = np.where(wild[:, None], 0.0, factors).astype(np.int64)
    own = np.zeros(len(factors), dtype=np.int64)
    for column in integers.T:
        own += column * column
    wild |= own.astype(np.float64) * squares > 2.0 * 4.0**k  # so that nothing wraps below
    return np.asarray(wild | (np.where(wild, 0, own) * squares > 4**k))


def of_groups(
    z: Any, codes: IntArray, starts: IntArray, weights: FloatArray, grid: Grid, *, block: int = BLOCK
) -> IntArray:
    """Return the sum of the groups' contributions, ``(n_coordinates, n_outputs)`` integers, whatever `block` is.

    Group g has the rows ``starts[g]`` to ``starts[g + 1] - 1``, one at least, in their own order. A group's slopes are
    integers of at most 2¹⁶ and its coordinates of at most 2²⁶, so the sum over 1,024 of its rows is exact. Longer
    groups are summed in stretches of 1,024 counted from the group's first row, one after another.
    """
    if grid.cells:
        return counted(cells_of(z, codes, weights, grid), starts, (z.shape[1], weights.shape[1]), grid)
    total = np.zeros((z.shape[1], weights.shape[1]), dtype=np.int64)
    together = max(1, min(block, NUMBERS // total.size)) if isinstance(z, np.ndarray) else block
    group = 0
    while group < len(starts) - 1:
        stop = max(int(np.searchsorted(starts, starts[group] + together, side="right")) - 1, group + 1)
        first, last = int(starts[group]), int(starts[stop])
        slope = np.empty((last - first, weights.shape[1]))
        for at in range(first, last, block):  # one long group alone may pass a block
            rows = slice(at, min(at + block, last))
            slope[rows.start - first : rows.stop - first] = slopes(z[rows], codes[rows], weights, grid)
        slope = np.rint(slope * 2.0**SLOPE_BITS)
        total += _of_some_groups(z[first:last], slope, starts[group : stop + 1] - first, grid)
        group = stop
    return total


def _of_some_groups(z: Any, slope: FloatArray, starts: IntArray, grid: Grid) -> IntArray:
    """Return the sum of the integers of groups, all at once where rows are dense and no group has very many.

    Which way is taken changes no integer: a group's sums are exact in either, and each is clipped by itself.
    """
    sizes, total = np.diff(starts), np.zeros((z.shape[1], slope.shape[1]), dtype=np.int64)
    if isinstance(z, np.ndarray) and int(sizes.max(initial=0)) <= GROUP_ROWS:
        gradients = np.empty((len(sizes), *total.shape))
        for output, own in enumerate(slope.T):
            shape = (len(sizes), len(z))
            gradients[:, :, output] = sparse.csr_array((own, np.arange(len(z)), starts), shape=shape) @ z
        gradients *= (_scale(grid) / sizes)[:, None, None]
        return np.asarray(clipped_rows(gradients.reshape(len(sizes), -1), grid.k).sum(axis=0).reshape(total.shape))
    for start, end in pairwise(starts.tolist()):
        total += group_contribution(z[start:end], slope[start:end], grid)
    return total


def group_contribution(z: Any, slope: FloatArray, grid: Grid) -> IntArray:
    """Return one group's integers, of Euclidean length at most ``2**k``; `slope` is in steps of 2⁻¹⁶."""
    starts = range(0, z.shape[0], GROUP_ROWS)
    stretches = ((z[start : start + GROUP_ROWS], slope[start : start + GROUP_ROWS]) for start in starts)
    return of_stretches(stretches, z.shape[0], (z.shape[1], slope.shape[1]), grid)


def of_stretches(
    stretches: Iterable[tuple[Any, FloatArray]], n_own: int, shape: tuple[int, int], grid: Grid
) -> IntArray:
    """Return one group's integers from its rows and slopes, 1,024 at once counted from its first row."""
    gradient = np.zeros(shape)
    for z, slope in stretches:
        gradient += z.T @ slope
    return clipped(gradient * (_scale(grid) / n_own), grid.k)


def _scale(grid: Grid) -> float:
    return 2.0 ** (grid.k - grid.bits - SLOPE_BITS) / grid.clip


def clipped(vector: FloatArray, k: int) -> IntArray:
    """Cut a vector off at the length ``2**k`` and truncate it to integers whose length is checked."""
    return clipped_rows(np.ascontiguousarray(vector).reshape(1, -1), k).reshape(vector.shape)


def clipped_rows(vectors: FloatArray, k: int) -> IntArray:
    """Cut each row off at the length ``2**k`` and truncate it to integers whose length is checked, each by itself.

    What is not finite becomes 0. Where rounding passed ``4**k`` the scaled vector is shrunk by :math:`1 - 2^{-40}` and
    truncated again, at most eight times, and becomes 0 after that.
    """
    finite = np.asarray(np.isfinite(vectors).all(axis=1))
    flat = vectors if finite.all() else np.where(finite[:, None], vectors, 0.0)
    largest = np.maximum(flat.max(axis=1, initial=0.0), -flat.min(axis=1, initial=0.0))
    exponents = np.maximum(np.frexp(largest)[1], _LEAST_EXPONENT).astype(np.int64)
    bits = (MANTISSA_BITS - 1 - flat.shape[1].bit_length()) // 2  # so that squares of integers sum exactly
    room = flat * np.ldexp(1.0, bits - exponents)[:, None]  # a power of two: exact
    np.rint(room, out=room)
    longest = np.sqrt(squared_lengths(room)) + np.sqrt(flat.shape[1])  # an entry was rounded by half a step at most
    length = np.ldexp(longest, exponents - bits)
    scaled = np.multiply(flat, np.minimum(1.0, 2.0**k / length)[:, None], out=room)
    integers, open_ = np.zeros(flat.shape, dtype=np.int64), np.flatnonzero(finite)
    scaled = scaled if finite.all() else scaled[open_]
    for _ in range(_TRIES):
        whole, sound = _truncated(scaled, k)
        integers[open_[sound]] = whole[sound]
        open_, scaled = open_[~sound], scaled[~sound] * _SHRINK
        if not len(open_):
            break
    return integers


def _truncated(vectors: FloatArray, k: int) -> tuple[IntArray, np.ndarray]:
    """Return vectors as integers, cut toward zero, and which of them are at most ``2**k`` long; the others may be 0."""
    whole = np.trunc(vectors, out=np.empty_like(vectors))
    sound = squared_lengths(whole) <= 2.0 * 4.0**k  # so that nothing wraps below
    if not sound.all():
        whole[~sound] = 0.0
    integers = whole.astype(np.int64)
    return integers, sound & (np.einsum("ij,ij->i", integers, integers) <= 4**k)
