"""Attacks on a secret bit: a score for each outcome, learned on some runs, and the event "the score is high".

The answers of many runs (classes, ⊥, noisy counts, whole streams) are one matrix of numbers, and a score is one of

=============================================== ====================================================================
likelihood ratio of the whole answer            the strongest where the outcomes are few
linear score of the parts of the answer         many small changes that add up
size of one part, likelihood ratio of one part  what shows in a tail or in single values: noise that is clipped, answers
                                                without noise
remainders of the parts modulo 2                noise that lives on a coarser lattice than the votes
how often consecutive parts agree               one draw of noise that several answers share
=============================================== ====================================================================

Weights, means, spreads and columns are computed on the fitted runs alone, so a score is a fixed function of an outcome
by the time it meets the runs that are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from quorate.arguments import count
from quorate.audit.claims import Claim, Tally
from quorate.data.feature_maps.scale import deviations
from quorate.types import FloatArray, IntArray

#: Stands where a stream has ended before the longest one.
ENDED = -(2.0**53)

DECLINED = -1.0


def as_matrix(blocks: Sequence[Any], n_runs: int) -> FloatArray:
    """Return the outcomes of all runs, ``(n_runs, width)``, from arrays by run, or lists of one outcome a run.

    An outcome is a number, None (declined), a string, or a sequence of such; codes are the same in all blocks.
    """
    coder = _Coder()
    parts = [
        np.asarray(block, dtype=np.float64).reshape(len(block), -1)
        if isinstance(block, np.ndarray) and block.dtype.kind in "biuf"
        else coder.rows(block)
        for block in blocks
    ]
    width = max(part.shape[1] for part in parts)
    matrix = np.full((n_runs, width), ENDED)
    row = 0
    for part in parts:
        matrix[row : row + len(part), : part.shape[1]] = part
        row += len(part)
    return matrix


class _Coder:
    """Numbers stay what they are; anything else is numbered in the order of its first appearance."""

    def __init__(self) -> None:
        self._codes: dict[str, float] = {}

    def rows(self, outcomes: Iterable[Any]) -> FloatArray:
        rows = [list(self._flat(outcome)) for outcome in outcomes]
        width = max((len(row) for row in rows), default=0) or 1
        return np.array([row + [ENDED] * (width - len(row)) for row in rows], dtype=np.float64)

    def _flat(self, outcome: Any) -> Iterable[float]:
        if outcome is None:
            yield DECLINED
        elif isinstance(outcome, (Real, np.generic)) and np.isfinite(float(outcome)):
            yield float(outcome)
        elif isinstance(outcome, np.ndarray) and outcome.dtype.kind in "biuf":
            yield from outcome.astype(np.float64).ravel().tolist()
        elif isinstance(outcome, (list, tuple, np.ndarray)):
            for part in outcome:
                yield from self._flat(part)
        else:
            # Far from any class or count, so that a code is not taken for an answer.
            yield self._codes.setdefault(repr(outcome), -1e9 - len(self._codes))


def categories(matrix: FloatArray) -> tuple[IntArray, int]:
    """Number the distinct rows of `matrix`: ``(n_runs,)`` codes from 0, and a number that is above them all."""
    codes = np.zeros(len(matrix), dtype=np.int64)
    n = 1
    for column in matrix.T:
        digits, base = _digits(column)
        if n * base >= 2**62:
            codes, n = _squeeze(codes)
        codes = codes * base + digits
        n *= base
    return (codes, n) if n <= 4 * len(matrix) else _squeeze(codes)


def _digits(column: FloatArray) -> tuple[IntArray, int]:
    low, high = column.min(), column.max()
    if high - low < 4_096 and np.all(column == np.rint(column)):
        return (column - low).astype(np.int64), int(high - low) + 1
    return _squeeze(column)


def _squeeze(values: Any) -> tuple[IntArray, int]:
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64), distinct.size


_FEW = 16  # a column of at most so many values is taken as classes, one weight each
_MOST_WEIGHTS = 1_024
_MOST_ROWS_FITTED = 20_000
_THRESHOLDS = 64
_MOST_PARTS = 8  # that are looked at one by one


def scores(matrix: FloatArray, bits: IntArray, fitted: slice) -> Iterator[tuple[str, FloatArray]]:
    """Yield ``(name, score of every run)`` of ``(n_runs, width)`` outcomes, by the bits of the `fitted` runs alone."""
    yield "likelihood ratio of the whole answer", _likelihood_ratio(matrix, bits, fitted)
    encoded, lookup = _encoding(matrix, fitted)
    if matrix.shape[1] > 1 or not lookup[0]:
        yield "linear score of the parts of the answer", _linear(encoded, lookup, bits, fitted)
    if matrix.shape[1] > 1:
        for column in matrix.T[:_MOST_PARTS]:
            yield "size of one part of the answer", column
            yield "likelihood ratio of one part of the answer", _likelihood_ratio(column[:, None], bits, fitted)
        yield "how often consecutive parts agree", _likelihood_ratio(_agreements(matrix), bits, fitted)
    wide = [place for place, is_few in enumerate(lookup) if not is_few][:_MOST_PARTS]
    if wide and np.all(np.isfinite(matrix[:, wide])):
        yield "remainders of the parts modulo 2", _likelihood_ratio(np.mod(matrix[:, wide], 2.0), bits, fitted)


def _agreements(matrix: FloatArray) -> FloatArray:
    """Return how often a part equals the next one: from parts 0, 2, 4, … and from parts 1, 3, 5, …, ``(n_runs, 2)``."""
    same = matrix[:, 1:] == matrix[:, :-1]
    return np.stack([same[:, ::2].sum(axis=1), same[:, 1::2].sum(axis=1)], axis=1).astype(np.float64)


def _likelihood_ratio(matrix: FloatArray, bits: IntArray, fitted: slice) -> FloatArray:
    codes, n = categories(matrix)  # numbers rows and looks at no bit
    fitted_codes, their_bits = codes[fitted], bits[fitted]
    ones = np.bincount(fitted_codes[their_bits == 1], minlength=n) + 0.5
    zeros = np.bincount(fitted_codes[their_bits == 0], minlength=n) + 0.5
    n_ones = np.count_nonzero(their_bits == 1)  # not the sums of the smoothed counts: these know how many rows differ
    ratio = np.log(ones / (n_ones + 1)) - np.log(zeros / (len(their_bits) - n_ones + 1))
    ratio[ones + zeros == 1.0] = 0.0  # never seen: no opinion
    return np.asarray(ratio[codes])


def _encoding(matrix: FloatArray, fitted: slice) -> tuple[list[FloatArray], list[bool]]:
    """Return each column as codes of its few values (True), or standardised (False), as the fitted runs have them."""
    columns, few = [], []
    for column in matrix.T:
        values = column[fitted]
        head = np.unique(values[: 4 * _MOST_ROWS_FITTED])
        is_few = head.size <= _FEW and matrix.shape[1] * _FEW <= _MOST_WEIGHTS
        if is_few:
            columns.append(np.minimum(np.searchsorted(head, column), head.size - 1).astype(np.float64))
        else:
            spread = float(deviations(values[:, None])[0])
            columns.append((column - values.mean()) / (spread if spread > 0 else 1.0))
        few.append(is_few)
    return columns, few


def _linear(columns: list[FloatArray], few: list[bool], bits: IntArray, fitted: slice) -> FloatArray:
    """Fit the bit by ridge regression on the parts of the answer; score every run."""
    rows = slice(fitted.start, min(fitted.stop, fitted.start + _MOST_ROWS_FITTED))
    design = []
    for column, is_few in zip(columns, few, strict=True):
        part = column[rows]
        design.append((part[:, None] == np.arange(_FEW)).astype(np.float64) if is_few else part[:, None])
    X = np.hstack(design)
    centred = X - X.mean(axis=0)
    target = bits[rows] - bits[rows].mean()
    gram = centred.T @ centred + 1e-3 * len(X) / _FEW * np.eye(X.shape[1])
    weights = np.linalg.solve(gram, centred.T @ target)
    score = np.zeros(len(bits))
    place = 0
    for column, is_few in zip(columns, few, strict=True):
        if is_few:
            score += weights[place : place + _FEW][column.astype(np.int64)]
            place += _FEW
        else:
            score += weights[place] * column
            place += 1
    return score


@dataclass(frozen=True, slots=True)
class Guess:
    """Say 1 where the score is at least `high`, 0 where it is at most `low`, nothing in between."""

    high: float
    low: float

    def tally(self, score: FloatArray, bits: IntArray) -> Tally:
        """Count what the guess says on runs with these scores and bits."""
        ones, zeros = score[bits == 1], score[bits == 0]
        return Tally(
            *(
                np.array(float(count))
                for count in (
                    np.count_nonzero(ones >= self.high),
                    np.count_nonzero(zeros >= self.high),
                    np.count_nonzero(ones <= self.low),
                    np.count_nonzero(zeros <= self.low),
                    ones.size,
                    zeros.size,
                )
            )
        )


def best_guess(
    claim: Claim, score: FloatArray, bits: IntArray, alpha: float, scale: float
) -> tuple[Guess, tuple[int, float]]:
    """Return the guess that would prove most against `claim` on runs like these, and what it is worth, to be compared.

    How surely it proves anything first (2 after correction for the number of guesses, 1 without it, 0 else), then how
    much, so that no lucky guess stands before a sure one. `scale`: how many times more runs it will be tested on.
    """
    marks = np.unique(np.quantile(score, np.linspace(0, 1, _THRESHOLDS), method="inverted_cdf"))
    distinct = np.unique(score)
    if distinct.size <= 4 * _THRESHOLDS:
        marks = distinct
    else:  # rare events at either end prove most for pure claims: look at these one by one
        marks = np.unique(np.concatenate([marks, distinct[:_THRESHOLDS], distinct[-_THRESHOLDS:]]))
    ones, zeros = np.sort(score[bits == 1]), np.sort(score[bits == 0])
    # One more mark, "never", for guesses that speak on one side only.
    above_1, above_0 = (scale * np.append(x.size - np.searchsorted(x, marks, side="left"), 0.0) for x in (ones, zeros))
    below_1, below_0 = (scale * np.append(np.searchsorted(x, marks, side="right"), 0.0) for x in (ones, zeros))
    high, low = np.append(marks, np.inf), np.append(marks, -np.inf)
    if claim.abstains:
        i, j = (index.ravel() for index in np.indices((high.size, low.size)))
        keep = high[i] > low[j]
        i, j = i[keep], j[keep]
    else:
        # An event for one side or for the other: testing both at once would cost confidence.
        never = high.size - 1
        i = np.concatenate([np.arange(high.size), np.full(low.size, never)])
        j = np.concatenate([np.full(high.size, never), np.arange(low.size)])
    tally = Tally(
        above_1[i], above_0[i], below_1[j], below_0[j], np.array(scale * ones.size), np.array(scale * zeros.size)
    )
    # Of many guesses the luckiest looks best; at a level that holds for all of them at once, luck is not enough. Where
    # nothing can be proved on so few runs at that level, a guess that shows something at a lower one is better.
    surely, proven = 2, claim.lower_bound(tally, alpha / i.size)
    for level in (alpha, max(alpha, 0.5)):
        if proven.max() > 0:
            break
        surely, proven = surely - 1, claim.lower_bound(tally, level)
    best = int(np.argmax(proven))
    return Guess(float(high[i[best]]), float(low[j[best]])), (surely, float(proven[best]))


@dataclass(frozen=True, slots=True, eq=False)
class Reconstruction:
    """What repeated answers tell.

    `mean`: the mean answer, of the shape of one answer: where noise is fresh each time, it tends to the exact votes.
    `standard_error`: its standard error as an attacker would take it. `asked`: how often was asked. `distinct`: how
    many different answers came. With a memo it is 1, and the mean holds the noise of one answer.
    """

    mean: FloatArray
    standard_error: FloatArray
    asked: int
    distinct: int

    @property
    def learned_more(self) -> bool:
        """Whether asking again told anything that the first answer did not."""
        return self.distinct > 1


def reconstruct(ask: Callable[[], Any], times: int) -> Reconstruction:
    """Ask `times` times and average.

    `ask`: asks one and the same question; returns a number or an array of numbers (noisy counts, or a class code).
    `times`: at least 2.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> from quorate.noise import SeededNoise
    >>> votes, noise, mechanism = np.array([170, 60, 20]), SeededNoise(0), NoisyCounts(sigma=40.0)
    >>> found = reconstruct(lambda: mechanism.release(votes, noise), 4_000)  # no memo, and nobody counts
    >>> bool(np.all(np.abs(found.mean - votes) < 4 * found.standard_error)), bool(found.standard_error.max() < 1)
    (True, True)
    >>> first = mechanism.release(votes, noise)
    >>> reconstruct(lambda: first, 4_000).learned_more  # a memo
    False
    """
    answers = np.array([ask() for _ in range(count("times", times, at_least=2))], dtype=np.float64)
    return Reconstruction(
        mean=np.asarray(answers.mean(axis=0)),
        standard_error=np.where(np.ptp(answers, axis=0) > 0, answers.std(axis=0, ddof=1), 0.0) / np.sqrt(len(answers)),
        asked=len(answers),
        distinct=len(np.unique(answers, axis=0)),
    )
