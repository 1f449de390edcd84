"""Tables against 300-digit arithmetic, cell by cell, and word by word at the borders."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scripted_noise import ScriptedNoise

from quorate.noise import TOTAL_VARIATION, SeededNoise, discrete_gaussian
from quorate.noise import discrete_gaussian as _  # noqa: F401  (the function; its module is imported below)
from quorate.noise import discrete_laplace as discrete_laplace_function
from quorate.noise.table import InverseCDF, exp_negative


def modules():
    import importlib

    return [importlib.import_module(f"quorate.noise.{name}") for name in ("discrete_gaussian", "discrete_laplace")]


def total_variation(table, weight, far):
    """Return the distance of a table from the weights summed to `far`, in 300-digit arithmetic."""
    with mpmath.workdps(300):
        borders = [0, *table._borders, 2**256]
        cells = {table._first + i: mpmath.mpf(b - a) / 2**256 for i, (a, b) in enumerate(itertools.pairwise(borders))}
        weights = {x: weight(x) for x in range(-far, far + 1)}
        total = mpmath.fsum(weights.values())
        return mpmath.fsum(abs(cells.get(x, 0) - w / total) for x, w in weights.items()) / 2


@pytest.mark.heavy
@pytest.mark.parametrize("scale", [0.3, 1.0, 7.3])
def test_every_table_is_as_close_to_its_distribution_as_it_says(scale):
    gaussian, laplace = modules()
    with mpmath.workdps(300):
        b = mpmath.mpf(scale)
        far = int(260 * scale) + 40

        assert total_variation(gaussian._table(scale), lambda x: mpmath.exp(-(x**2) / (2 * b**2)), far) < 2.0**-199
        assert total_variation(laplace._table(scale), lambda x: mpmath.exp(-abs(x) / b), far) < 2.0**-199
        assert (
            total_variation(laplace._one_sided_table(scale), lambda x: mpmath.exp(-x / b) if x >= 0 else 0, far)
            < 2.0**-199
        )
    assert TOTAL_VARIATION == 2.0**-190


def test_that_distance_sees_a_weight_that_is_off_by_one_part_in_ten_to_the_fifty():
    gaussian, _laplace = modules()
    weights = gaussian._half(1.0)
    weights = weights[:0:-1] + weights
    weights[len(weights) // 2 + 1] += weights[0] + 2**320 // 10**50
    off = InverseCDF(-(len(weights) // 2), weights)

    with mpmath.workdps(300):
        assert total_variation(off, lambda x: mpmath.exp(-mpmath.mpf(x**2) / 2), 60) > 1e-52


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("exponent", ["0", "1/3", "1", "7/2", "37", "1/1000003", "319", "320", "321", "10000000"])
@pytest.mark.parametrize("bits", [64, 256, 320])
def test_the_exponential_is_within_two_units_of_the_last_place(exponent, bits):
    with mpmath.workdps(300):
        a = Fraction(exponent)
        truth = mpmath.exp(-mpmath.mpf(a.numerator) / a.denominator) * 2**bits

        assert abs(exp_negative(a, bits) - truth) <= 2


class TestAWordThatMeetsABorder:
    """Weights 1, 1, 1: the borders 2^256/3 and 2·2^256/3 begin with the words 0x5555… and 0xaaaa…"""

    thirds = InverseCDF(10, [1, 1, 1])
    low, high = 0x5555555555555555, 0xAAAAAAAAAAAAAAAA

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize(("word", "value"), [(0, 10), (low - 1, 10), (low + 1, 11), (high - 1, 11), (high + 1, 12)])
    def test_is_not_needed_next_to_the_border(self, word, value):
        assert self.thirds.draw(1, ScriptedNoise(word)).tolist() == [value]

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize(
        ("more", "value"),
        [
            ((0, 0, 0), 10),
            ((low, low, low - 1), 10),
            ((low, low, low), 11),  # U equals the border: the cell to its right
            ((low, low, low + 1), 11),
            ((low + 1, 0, 0), 11),
            ((low - 1, 2**64 - 1, 2**64 - 1), 10),
        ],
    )
    def test_is_decided_by_three_more_words(self, more, value):
        source = ScriptedNoise(self.low, *more)

        assert self.thirds.draw(1, source).tolist() == [value]
        assert not source.left

    def test_takes_its_words_after_those_of_the_whole_block(self):
        source = ScriptedNoise(0, self.high, 2**64 - 1, *(self.high, self.high, self.high + 1))

        assert self.thirds.draw(3, source).tolist() == [10, 12, 12]

    def test_can_decide_among_many_cells_that_share_the_word(self):
        weights = [5 * 2**200, 1, 1, 1, 2 * 2**200]  # three cells inside one word
        table = InverseCDF(0, weights)
        borders = table._borders

        assert len({b >> 192 for b in borders}) == 1
        for i, border in enumerate(borders):
            words = [(border >> shift) & (2**64 - 1) for shift in (192, 128, 64, 0)]
            assert table.draw(1, ScriptedNoise(*words)).tolist() == [i + 1]
            words[-1] -= 1
            assert table.draw(1, ScriptedNoise(*words)).tolist() == [i]


def slow_draw(weights, uniform):
    """Return how many borders lie at or below a 256-bit integer, by exact fractions."""
    total = sum(weights)
    return sum(Fraction(sum(weights[: i + 1]) * 2**256, total) // 1 <= uniform for i in range(len(weights) - 1))


@pytest.mark.heavy
@settings(max_examples=200, deadline=None)
@given(
    weights=st.lists(st.integers(0, 2**40) | st.sampled_from([0, 1, 2**256]), min_size=1, max_size=12).filter(any),
    uniform=st.integers(0, 2**256 - 1),
    near=st.integers(0, 11),
    off=st.integers(-2, 2),
)
def test_a_draw_is_the_inverse_cdf_of_its_256_bits(weights, uniform, near, off):
    table = InverseCDF(0, weights)
    at_border = (sum(weights[: near + 1]) * 2**256) // sum(weights) + off
    for u in (uniform, min(max(at_border, 0), 2**256 - 1)):
        words = [(u >> shift) & (2**64 - 1) for shift in (192, 128, 64, 0)]

        assert table.draw(1, ScriptedNoise(*words)).tolist() == [slow_draw(weights, u)]


def test_the_coin_of_a_large_sigma_falls_back_on_exact_bits():
    """A uniform within 2^-40 of the probability is compared in 256 bits; both sides of it are reached."""
    gaussian = modules()[0]
    sigma, base, x = 4096.0, 8192, 8200
    exact = exp_negative(Fraction(x * x - base * base) / (2 * Fraction(sigma) ** 2), bits=256)
    words = [(exact >> shift) & (2**64 - 1) for shift in (192, 128, 64, 0)]
    below, above = list(words), list(words)
    below[-1] -= 1
    above[-1] += 1

    def coin(said):
        return gaussian._coin(np.array([x]), np.array([base]), sigma, ScriptedNoise(*said)).tolist()

    assert coin(below) == [True]
    assert coin(above) == [False]
    assert coin([words[0] - 2**30]) == [True]  # far enough: one word decides
    assert coin([words[0] + 2**30]) == [False]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("scale", "n_digits"), [(1e4, 2), (1e6, 2), (2.0**36, 3), (2.0**40, 4)])
def test_the_digits_of_a_large_geometric_draw_are_put_together_in_base_two_to_the_fifteen(scale, n_digits):
    """One digit at a time is 1, by a word just above P(0) of its table; all others are 0, by the word 0."""
    geometric_module = modules()[1]
    for one in range(n_digits):
        words = [0] * n_digits
        last = one == n_digits - 1
        left = scale / 2.0 ** (15 * one)
        table = geometric_module._one_sided_table(left) if last else geometric_module._digit_table(left)
        words[one] = (table._borders[0] >> 192) + 1
        assert words[one] < table._borders[1] >> 192

        assert geometric_module.geometric(scale, 1, ScriptedNoise(*words)).tolist() == [2 ** (15 * one)]


def test_tables_are_kept_but_not_without_bound():
    gaussian, laplace = modules()
    for table in (gaussian._table, laplace._table, laplace._one_sided_table):
        assert 0 < table.cache_info().maxsize <= 64
    gaussian._table.cache_clear()
    for _i in range(3):
        discrete_gaussian(12.5, 10, SeededNoise(0))
    assert gaussian._table.cache_info().misses == 1
    assert discrete_laplace_function(1.0, 0, SeededNoise(0)).size == 0
