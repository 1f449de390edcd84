"""The answers of many runs as one matrix of numbers: classes, ⊥, noisy counts, whole streams of answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from quorate.types import FloatArray, IntArray

#: Stands where a stream has ended before the longest one.
ENDED = -(2.0**53)

DECLINED = -1.0


def as_matrix(blocks: Sequence[Any], n_runs: int) -> FloatArray:
    """Return the outcomes of all runs, ``(n_runs, width)``.

    Each block is an array whose first axis is the run, or a list with one outcome a run: a number, None (declined),
    a string, or a sequence of such. What is not a number gets a code, the same in all blocks.

    Examples
    --------
    >>> as_matrix([[0, None], [[1, 2]]], 3)[:, 0].tolist()
    [0.0, -1.0, 1.0]
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
            for each in outcome:
                yield from self._flat(each)
        else:
            # Far from any class or count, so that a code is not taken for an answer.
            yield self._codes.setdefault(repr(outcome), -1e9 - len(self._codes))


def categories(matrix: FloatArray) -> tuple[IntArray, int]:
    """Number the distinct rows of `matrix`: ``(n_runs,)`` codes from 0, and a number that is above them all.

    Examples
    --------
    >>> codes, above = categories(np.array([[2.0, 1.0], [0.0, 1.0], [2.0, 1.0]]))
    >>> bool(codes[0] == codes[2] != codes[1]), bool(codes.max() < above)
    (True, True)
    """
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
