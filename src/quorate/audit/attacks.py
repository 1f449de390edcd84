"""Attacks on a secret bit: a score for each outcome, learned on some runs, and the event "the score is high"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quorate.audit.claims import Claim, Tally
from quorate.audit.outcomes import categories
from quorate.types import FloatArray, IntArray

_FEW = 16  # a column of at most so many values is taken as classes, one weight each
_MOST_WEIGHTS = 1_024
_MOST_ROWS_FITTED = 20_000
_THRESHOLDS = 64


def scores(matrix: FloatArray, bits: IntArray, fitted: slice) -> Iterator[tuple[str, FloatArray]]:
    """Yield ``(name, score of every run)``; scores are learned on the `fitted` runs alone.

    Parameters
    ----------
    matrix : FloatArray
        Outcomes ``(n_runs, width)``.
    bits : IntArray
        The secret bit of every run.
    fitted : slice
        The runs whose bits may be looked at.
    """
    codes, n = categories(matrix)
    yield "likelihood ratio of the whole answer", _likelihood_ratio(codes, n, bits, fitted)
    encoded, lookup = _encoding(matrix)
    if matrix.shape[1] > 1 or not lookup[0]:
        yield "linear score of the parts of the answer", _linear(encoded, lookup, bits, fitted)


def _likelihood_ratio(codes: IntArray, n: int, bits: IntArray, fitted: slice) -> FloatArray:
    seen, their_bits = codes[fitted], bits[fitted]
    ones = np.bincount(seen[their_bits == 1], minlength=n) + 0.5
    zeros = np.bincount(seen[their_bits == 0], minlength=n) + 0.5
    ratio = np.log(ones / ones.sum()) - np.log(zeros / zeros.sum())
    ratio[ones + zeros == 1.0] = 0.0  # never seen: no opinion
    return np.asarray(ratio[codes])


def _encoding(matrix: FloatArray) -> tuple[list[FloatArray], list[bool]]:
    """Return each column as codes of its few values (True), or standardised (False)."""
    columns, few = [], []
    for column in matrix.T:
        head = np.unique(column[: 4 * _MOST_ROWS_FITTED])
        is_few = head.size <= _FEW and matrix.shape[1] * _FEW <= _MOST_WEIGHTS
        if is_few:
            columns.append(np.minimum(np.searchsorted(head, column), head.size - 1).astype(np.float64))
        else:
            spread = column.std()
            columns.append((column - column.mean()) / (spread if spread > 0 else 1.0))
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


def best_guess(claim: Claim, score: FloatArray, bits: IntArray, alpha: float, scale: float) -> tuple[Guess, float]:
    """Return the guess that would prove most against `claim` on runs like these, and how much.

    `scale` is how many times more runs the guess will be tested on: a rare event that is not worth its uncertainty
    there is not chosen.
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
        i, j = (each.ravel() for each in np.indices((high.size, low.size)))
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
    proven = np.zeros(i.size)
    for level in (alpha / i.size, alpha, max(alpha, 0.5)):
        proven = claim.lower_bound(tally, level)
        if proven.max() > 0:
            break
    best = int(np.argmax(proven))
    return Guess(float(high[i[best]]), float(low[j[best]])), float(proven[best])
