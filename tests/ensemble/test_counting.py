"""Votes given as codes are counted as a plain loop counts them, by either way, whatever the order and the blocks."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.ensemble import ABSTAINED, votes
from quorate.ensemble.votes import add_votes, code_type


def looped(codes: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.zeros((codes.shape[1], n_classes), dtype=np.int64)
    for voter in codes:
        for row, code in enumerate(voter):
            if code != ABSTAINED:
                counts[row, code] += 1
    return counts


def counted(codes: np.ndarray, n_classes: int) -> np.ndarray:
    counts = np.zeros((codes.shape[1], n_classes), dtype=np.int64)
    add_votes(codes, counts)
    return counts


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("n_classes", [1, 2, 14, 15, 127, 128, 129, 300])
def test_each_vote_is_counted_once(n_classes: int) -> None:
    """More voters than a byte holds, the lowest and the highest code, and abstentions."""
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(ABSTAINED, n_classes, size=(257, 70)).astype(code_type(n_classes))
    codes[:, 0], codes[:, 1], codes[:, 2] = 0, n_classes - 1, ABSTAINED
    assert np.array_equal(counted(codes, n_classes), looped(codes, n_classes))
    assert np.array_equal(counted(codes[::-1], n_classes), counted(codes, n_classes))


@pytest.mark.parametrize("n_classes", [3, 40])
def test_rows_are_counted_alike_at_the_seams_of_blocks(n_classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(votes, "_COMPARED_ROWS", 7)
    monkeypatch.setattr(votes, "_CELLS", 1)
    codes = np.random.default_rng(0).integers(ABSTAINED, n_classes, size=(5, 200))
    assert np.array_equal(counted(codes, n_classes), looped(codes, n_classes))


def test_a_byte_of_voters_that_agree_does_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin that lets 256 voters into a byte loses all their votes."""
    codes = np.zeros((512, 3), dtype=np.int8)
    assert (counted(codes, 2)[:, 0] == 512).all()
    monkeypatch.setattr(votes, "GROUP", 256)
    assert (counted(codes, 2)[:, 0] == 0).all()
