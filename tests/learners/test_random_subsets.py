"""Uniform integers, subsets, orders and draws: by bijection, word by word, and a biased twin that is caught."""

from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.scripted_noise import ScriptedNoise

from quorate.errors import InvalidParameter
from quorate.learners.amplification import random_arrangement, random_draws, random_integers
from quorate.noise import OSNoise, SeededNoise

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


def arrangements(draw, n, size, bounds):
    """What each of the equally likely sequences of integers below these bounds gives."""
    return Counter(tuple(draw(n, size, ScriptedNoise(*each)).tolist()) for each in product(*map(range, bounds)))


@pytest.mark.parametrize(("n", "size"), [(4, 4), (5, 3), (6, 2), (3, 0)])
def test_every_arrangement_has_exactly_one_path(n, size):
    assert arrangements(random_arrangement, n, size, range(n, n - size, -1)) == Counter(permutations(range(n), size))


def biased_arrangement(n, size, source):
    """The well-known wrong shuffle: exchange with any place instead of one of those that are left."""
    order = np.arange(n)
    for i, place in enumerate(random_draws(n, size, source).tolist()):
        order[[i, place]] = order[[place, i]]
    return order[:size]


def test_that_test_catches_a_shuffle_with_too_many_places():
    assert set(arrangements(biased_arrangement, 3, 3, [3] * 3).values()) == {4, 5}


def test_addresses_separate_uses_of_one_source():
    noise = SeededNoise(5)
    first, second = (random_arrangement(50, 50, noise.at("kept rows", i)).tolist() for i in (0, 1))
    assert first != second
    assert first == random_arrangement(50, 50, noise.at("kept rows", 0)).tolist()


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
