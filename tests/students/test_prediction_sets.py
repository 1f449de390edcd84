"""Prediction sets: the limit at an exact rank, what chance may take of the coverage, and how many rows it needs."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from quorate.errors import InvalidParameter
from quorate.students.prediction_sets import FAILURE, Limits, halves, kept_ranks, promised, sets_of


def below(n_rows: int, rank: int, share: float) -> float:
    """Probability that the score at a rank of n covers less than a share: that many of n uniform numbers lie below."""
    x = Fraction(share)
    return float(sum(comb(n_rows, k) * x**k * (1 - x) ** (n_rows - k) for k in range(rank, n_rows + 1)))


@pytest.mark.parametrize(("n_rows", "coverage", "rank"), [(9, 0.9, 9), (50, 0.9, 46), (199, 0.95, 190), (120, 0.5, 61)])
def test_the_slack_is_exact_by_another_road(n_rows: int, coverage: float, rank: int) -> None:
    promise = promised(n_rows, coverage)
    assert below(n_rows, rank, promise.least) <= FAILURE < below(n_rows, rank, promise.least + 2e-6)
    assert below(n_rows, rank - 1, promise.least) > FAILURE  # twin: a rank too low promises more than it holds


def test_of_many_rows_a_rank_above_is_taken_and_the_promise_is_that_of_the_least() -> None:
    n_rows = 2_500
    ranks = kept_ranks(n_rows)
    assert (len(ranks), ranks[-1], bool(np.all(np.diff(ranks) > 0))) == (1_000, n_rows, True)
    scores = np.random.default_rng(0).random(n_rows)
    for coverage in (0.5, 0.9, 0.9995):
        exact = np.sort(scores)[int(np.ceil(coverage * (n_rows + 1))) - 1]
        limit = Limits.of(scores).limit(coverage)
        assert exact <= limit <= np.sort(scores)[min(int(np.ceil(coverage * (n_rows + 1))) + 1, n_rows - 1)] + 1e-8


@pytest.mark.parametrize("ties", [False, True])
def test_of_any_rows_at_least_the_share_is_within_the_limit_of_the_others(ties: bool) -> None:
    """What exchangeable rows are promised, counted: each of n + 1 rows in turn is the new one."""
    rng = np.random.default_rng(1)
    for n_rows in (9, 19, 60):
        scores = rng.integers(0, 4, n_rows + 1) / 4 if ties else rng.random(n_rows + 1)
        for coverage in (0.5, 0.8, 0.9):
            others = [np.delete(scores, place) for place in range(n_rows + 1)]
            within = [score <= Limits.of(rest).limit(coverage) for score, rest in zip(scores, others, strict=True)]
            assert np.mean(within) >= coverage
            if not ties:  # twin: the next score below
                lower = [np.sort(rest)[int(np.ceil(coverage * (n_rows + 1))) - 2] for rest in others]
                assert np.mean(scores <= lower) < coverage


def test_too_few_rows_are_refused_with_the_number_that_would_do() -> None:
    for coverage, needed in ((0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999), (0.7, 3)):
        with pytest.raises(InvalidParameter, match=f"coverage={coverage} needs {needed} rows that calibrate sets, and"):
            promised(needed - 1, coverage)
        assert 0 < promised(needed, coverage).slack < coverage
    with pytest.raises(InvalidParameter, match=r"one in 2 does; calibrate with 198 .* a coverage of at most 0.98$"):
        promised(50, 0.99, of_each=2)
    for wrong in (0, 1, 1.5, "much"):
        with pytest.raises(InvalidParameter, match="coverage must be"):
            promised(50, wrong)  # type: ignore[arg-type]


def test_halves_are_told_by_places_alone_and_last_bits_move_no_class() -> None:
    fitting, held = halves(101)
    assert (len(fitting), len(held)) == (50, 51)
    assert sorted([*fitting, *held]) == list(range(101))
    assert 10 < np.sum(fitting < 50) < 40  # neither the first rows nor every second one
    probabilities = np.array([[0.25, 0.75], [0.4, 0.6]])
    limit = Limits.of(1 - probabilities[:, 1]).limit(0.5)
    assert sets_of(probabilities * (1 - 1e-12), limit).tolist() == [[False, True], [False, True]]
