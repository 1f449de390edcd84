"""Uniform integers, subsets, orders and draws: by bijection, by exact statistics, and a biased twin that is caught."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare
from tests.scripted_noise import ScriptedNoise

from quorate.errors import InvalidParameter
from quorate.learners.amplification import random_arrangement, random_draws, random_integers
from quorate.noise import OSNoise, SeededNoise
from quorate.types import IntArray

FALSE_ALARM = 1e-6


def test_each_word_of_the_complete_blocks_gives_its_remainder():
    assert random_integers(np.array([10, 3, 1]), ScriptedNoise(*[27, 2**64 - 2, 5])).tolist() == [7, (2**64 - 2) % 3, 0]


@pytest.mark.parametrize("bound", [3, 10, 2**61 + 1, 2**62])
def test_words_of_the_incomplete_block_are_drawn_again(bound):
    first_incomplete = 2**64 - 2**64 % bound  # 2^64 itself where there is none
    told = [first_incomplete - 1]
    if first_incomplete < 2**64:
        told = [first_incomplete, 2**64 - 1, *told]
    source = ScriptedNoise(*told)
    assert random_integers(np.array([bound]), source).tolist() == [bound - 1]
    assert source.left == []


@pytest.mark.parametrize(("n", "size"), [(4, 4), (5, 3), (6, 2), (3, 0)])
def test_every_arrangement_has_exactly_one_path(n, size):
    """Of the n(n−1)… equally likely sequences of integers each gives another arrangement."""
    steps = product(*(range(n - i) for i in range(size)))
    found = Counter(tuple(random_arrangement(n, size, ScriptedNoise(*list(each))).tolist()) for each in steps)
    assert found == Counter(permutations(range(n), size))
    assert len(found) == factorial(n) // factorial(n - size)


@given(n=st.integers(0, 60), seed=st.integers(0, 2**32), data=st.data())
def test_an_arrangement_is_distinct_and_in_range(n, seed, data):
    size = data.draw(st.integers(0, n))
    arranged = random_arrangement(n, size, SeededNoise(seed))
    assert len(arranged) == len(set(arranged.tolist())) == size
    assert ((arranged >= 0) & (arranged < max(n, 1))).all()


def test_addresses_separate_uses_of_one_source():
    noise = SeededNoise(5)
    first, second = (random_arrangement(50, 50, noise.at("kept rows", i)).tolist() for i in (0, 1))
    assert first != second
    assert first == random_arrangement(50, 50, noise.at("kept rows", 0)).tolist()


def p_of_arrangements(n: int, size: int, draw: object, runs: int = 12_000) -> float:
    assert callable(draw)
    source = SeededNoise(20261120)
    found = Counter(tuple(draw(n, size, source).tolist()) for _ in range(runs))
    cells = prod(range(n - size + 1, n + 1))
    counts = [*found.values(), *[0] * (cells - len(found))]
    return float(chisquare(counts).pvalue)


def biased_arrangement(n: int, size: int, source: SeededNoise) -> IntArray:
    """The well-known wrong shuffle: exchange with any place instead of one of those that are left."""
    order = np.arange(n)
    for i, place in enumerate(random_draws(n, size, source).tolist()):
        order[[i, place]] = order[[place, i]]
    return order[:size]


def test_arrangements_are_uniform():
    assert p_of_arrangements(5, 3, random_arrangement) > FALSE_ALARM


def test_that_test_catches_a_shuffle_with_too_many_places():
    assert p_of_arrangements(5, 3, biased_arrangement) < FALSE_ALARM


def p_of_upper_half(draw: object, bound: int, runs: int = 20_000) -> float:
    """Of integers below 3·2^61 a third lies in each third; modulo bias puts half of them into the first two."""
    assert callable(draw)
    drawn: NDArray[np.int64] = draw(np.full(runs, bound, dtype=np.int64), SeededNoise(7))
    thirds = np.bincount(drawn // (bound // 3), minlength=3)
    return float(chisquare(thirds).pvalue)


def by_remainder(bounds: IntArray, source: SeededNoise) -> IntArray:
    return (source.words(bounds.size) % bounds.astype(np.uint64)).astype(np.int64)


def test_large_bounds_have_no_modulo_bias():
    assert p_of_upper_half(random_integers, 3 * 2**60) > FALSE_ALARM


def test_that_test_catches_modulo_bias():
    assert p_of_upper_half(by_remainder, 3 * 2**60) < FALSE_ALARM


def test_draws_with_replacement_repeat_as_often_as_they_should():
    """Four draws of 4: the number of distinct ones has 4, 84, 144 and 24 of the 256 sequences."""
    source = SeededNoise(11)
    found = np.bincount([len(set(random_draws(4, 4, source).tolist())) for _ in range(8_000)], minlength=5)[1:]
    assert chisquare(found, np.array([4, 84, 144, 24]) / 256 * 8_000).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: random_arrangement(3, 4, OSNoise()),
        lambda: random_arrangement(-1, 0, OSNoise()),
        lambda: random_arrangement(3, True, OSNoise()),
        lambda: random_draws(0, 1, OSNoise()),
        lambda: random_integers(np.array([0]), OSNoise()),
        lambda: random_integers(np.array([2**62 + 1]), OSNoise()),
        lambda: random_integers(np.array([2.0]), OSNoise()),  # type: ignore[arg-type]
    ],
)
def test_sizes_out_of_range_are_refused(wrong):
    assert callable(wrong)
    with pytest.raises(InvalidParameter):
        wrong()
