"""Count votes that are given as class codes: the quickest exact way for the number of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.ensemble.teachers.teacher import ABSTAINED

if TYPE_CHECKING:
    from quorate.types import IntArray

# Up to so many classes, one comparison a class over bytes is quicker than one bincount over 64-bit indices (measured:
# .4 against 2.4 ns a vote at 2 classes, 1.7 against 2.7 at 10, 6 against 3 at 32).
_MOST_COMPARED = 14
_COMPARED_ROWS = 8_192  # at a time, so that a block of bytes stays near the processor
_CELLS = 32_768  # counters that one bincount adds to, for the same reason
GROUP = 255  # voters that a byte can count


def code_type(n_classes: int) -> np.dtype[Any]:
    """Return the smallest type that holds -1..C-1."""
    return np.min_scalar_type(-max(n_classes, 1))


def add_votes(codes: Any, counts: IntArray) -> None:
    """Add one vote for every voter and row in place; `codes` are 0 … C − 1, or ABSTAINED, which adds nothing."""
    n_classes = counts.shape[1]
    if n_classes <= _MOST_COMPARED:
        _by_comparing(codes, counts)
    else:
        _by_bincount(codes, counts, rows=max(64, _CELLS // (n_classes + 1)))


def _by_comparing(codes: Any, counts: IntArray) -> None:
    for start in range(0, len(counts), _COMPARED_ROWS):
        rows = slice(start, start + _COMPARED_ROWS)
        for first in range(0, len(codes), GROUP):
            block = codes[first : first + GROUP, rows]
            for code in range(counts.shape[1]):
                counts[rows, code] += np.add.reduce(block == code, axis=0, dtype=np.uint8)


def _by_bincount(codes: Any, counts: IntArray, *, rows: int) -> None:
    """Count in one place more than there are classes, which is for abstentions and is thrown away."""
    places = counts.shape[1] + 1
    for start in range(0, len(counts), rows):
        block = codes[:, start : start + rows]
        width = block.shape[1]
        cells = np.add(block, places * np.arange(width) - ABSTAINED, dtype=np.int64)
        counted = np.bincount(cells.ravel(), minlength=width * places).reshape(width, places)
        counts[start : start + rows] += counted[:, 1:]
