"""The samplers against probabilities summed term by term, and against twins that cheat.

Every statistical test here fails with probability at most FALSE_ALARM on correct code; the seeds are fixed, so a
test that passed stays passed.
"""

from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from quorate.errors import InvalidParameter
from quorate.noise import OSNoise, SeededNoise, discrete_gaussian, discrete_laplace, geometric
from quorate.noise.discrete_gaussian import SWITCH_SIGMA

FALSE_ALARM = 1e-6
N = 200_000

SIGMAS = [0.3, 0.5, 1.0, 3.7, 40.0, 150.0, 1000.0, SWITCH_SIGMA, 2000.0, 10_000.0]
SCALES = [0.2, 1.0, 7.5, 100.0, 600.0, 5000.0]


def gaussian_weight(x, sigma):
    return exp(-(x * x) / (2 * sigma * sigma))


def laplace_weight(x, scale):
    return exp(-abs(x) / scale)


def geometric_weight(x, scale):
    return exp(-x / scale) if x >= 0 else 0.0


def probabilities(weight, scale, reach, *, two_sided=True):
    """Return values and probabilities, by summing every term out to `reach` scales."""
    far = int(reach * scale) + 20
    values = np.arange(-far if two_sided else 0, far + 1)
    weights = np.array([weight(int(x), scale) for x in values])
    return values, weights / weights.sum()


def chi_square_p(draws, values, p):
    """Return the p-value of Pearson's test, neighbouring values pooled to about 200 cells of like weight."""
    least = draws.size / 200
    cell = np.floor((np.cumsum(p) - p / 2) * draws.size / least).astype(int)
    _, cell = np.unique(cell, return_inverse=True)
    expected = np.bincount(cell, weights=p * draws.size)
    observed = np.bincount(cell[np.clip(draws, values[0], values[-1]) - values[0]], minlength=expected.size)
    rare = expected < 25
    if rare.any():
        expected, observed = (np.append(x[~rare], x[rare].sum()) for x in (expected, observed))
    assert expected.size > 1, "nothing to compare: one cell"
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1)


LAWS = [*((discrete_gaussian, gaussian_weight, 9, sigma) for sigma in SIGMAS)]
LAWS += [(discrete_laplace, laplace_weight, 20, scale) for scale in SCALES]
LAWS += [(geometric, geometric_weight, 20, scale) for scale in SCALES]


@pytest.mark.default_cases(7)
@pytest.mark.parametrize(("draw", "weight", "reach", "scale"), LAWS)
@pytest.mark.parametrize("source", [SeededNoise(1), OSNoise()], ids=["seeded", "real"])
def test_draws_have_their_exact_probabilities(draw, weight, reach, scale, source):
    draws = draw(scale, N, source)

    assert draw is not geometric or draws.min() >= 0
    law = probabilities(weight, scale, reach, two_sided=draw is not geometric)
    assert chi_square_p(draws, *law) > FALSE_ALARM


@pytest.mark.heavy
@pytest.mark.parametrize("scale", [1e6, 1e10, 2.0**40])
def test_huge_scales_keep_their_moments_and_their_low_digits(scale):
    for draw, law in ((discrete_gaussian, stats.norm), (discrete_laplace, stats.laplace), (geometric, stats.expon)):
        draws = draw(scale, N, SeededNoise(4))
        # A smooth law of huge scale is uniform modulo a small number.
        assert stats.chisquare(np.bincount(draws % 7, minlength=7)).pvalue > FALSE_ALARM
        assert stats.kstest(draws + 0.5, law(scale=scale).cdf).pvalue > FALSE_ALARM


@pytest.mark.heavy
def test_around_zero_a_split_draw_takes_no_value_twice_or_never():
    """Sign and size are drawn apart beyond the switch: 0 must not be both +0 and -0."""
    sigma, n = 2000.0, 2_000_000
    draws = discrete_gaussian(sigma, n, SeededNoise(14))
    near = np.bincount(draws[np.abs(draws) <= 3] + 3, minlength=7)
    expected = np.full(7, n / (sigma * sqrt(2 * np.pi)))

    assert stats.chi2.sf(((near - expected) ** 2 / expected).sum(), 7) > FALSE_ALARM
    twice = near + np.array([0, 0, 0, near[3], 0, 0, 0])
    assert stats.chi2.sf(((twice - expected) ** 2 / expected).sum(), 7) < FALSE_ALARM


def rounded_normal(sigma):
    return np.rint(np.random.default_rng(8).normal(0, sigma, N)).astype(np.int64)


def laplace_for_gaussian(sigma):
    return discrete_laplace(sigma / sqrt(2), N, SeededNoise(9))


def one_value_never_drawn(sigma):
    draws = discrete_gaussian(sigma, N, SeededNoise(10))
    return np.where(draws == 1, 2, draws)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    ("sigma", "cheat"),
    [
        (0.5, rounded_normal),
        (1.0, rounded_normal),
        (40.0, lambda sigma: discrete_gaussian(sigma * 0.97, N, SeededNoise(7))),
        (40.0, lambda sigma: discrete_gaussian(sigma * 1.03, N, SeededNoise(7))),
        (10_000.0, lambda sigma: discrete_gaussian(sigma * 0.97, N, SeededNoise(7))),
        (40.0, lambda sigma: discrete_gaussian(sqrt(sigma), N, SeededNoise(7))),
        (40.0, laplace_for_gaussian),
        (3.7, one_value_never_drawn),
        (3.7, lambda sigma: np.abs(discrete_gaussian(sigma, N, SeededNoise(7)))),
    ],
)
def test_that_test_catches_gaussian_samplers_that_cheat(sigma, cheat):
    assert chi_square_p(cheat(sigma), *probabilities(gaussian_weight, sigma, 9)) < FALSE_ALARM


def test_that_test_catches_a_laplace_whose_zero_is_drawn_twice_as_often():
    scale = 7.5
    sign = np.where(geometric(1.0, N, SeededNoise(11)) % 2, -1, 1)
    twin = sign * geometric(scale, N, SeededNoise(12))  # a sign in front of |x|, and -0 == +0

    assert chi_square_p(twin, *probabilities(laplace_weight, scale, 20)) < FALSE_ALARM


@pytest.mark.parametrize("sigma", [0.7, 2500.0])
def test_neighbouring_draws_are_independent_within_and_across_calls(sigma):
    """A table of signs and sizes of neighbours: along rows, along columns, and between two calls."""
    source = SeededNoise(13)
    first, second = (discrete_gaussian(sigma, (N // 100, 100), source) for _ in range(2))

    def dependence_p(a, b):
        cut = sigma * 0.67
        left, right = (np.where(np.abs(z) <= cut, 0, np.sign(z)).ravel() + 1 for z in (a, b))
        table = np.bincount(3 * left + right, minlength=9).reshape(3, 3)
        return stats.chi2_contingency(table).pvalue

    assert dependence_p(first[:, :-1], first[:, 1:]) > FALSE_ALARM
    assert dependence_p(first[:-1], first[1:]) > FALSE_ALARM
    assert dependence_p(first, second) > FALSE_ALARM
    assert dependence_p(first, first) < FALSE_ALARM  # noise used twice is seen
    shared = np.broadcast_to(first[:, :1], first.shape)
    assert dependence_p(shared[:, :-1], shared[:, 1:]) < FALSE_ALARM  # noise shared by all classes is seen


class Counted:
    """Real noise that counts the words it gave."""

    seeded = False
    read = 0

    def words(self, n):
        self.read += n
        return OSNoise().words(n)


@pytest.mark.parametrize("draw", [discrete_gaussian, discrete_laplace, geometric])
class TestEverySampler:
    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize(
        ("size", "shape"), [(0, (0,)), (3, (3,)), (np.int64(3), (3,)), ((2, 5), (2, 5)), ((4, 0), (4, 0)), ((), ())]
    )
    @pytest.mark.parametrize("scale", [2.5, 4000.0])
    def test_draws_an_int64_array_of_the_size_asked_for(self, draw, size, shape, scale):
        noise = draw(scale, size, OSNoise())

        assert noise.shape == shape
        assert noise.dtype == np.int64

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize("scale", [1, np.float32(0.5), np.int64(7), np.float64(3.0)])
    def test_takes_every_kind_of_real_number(self, draw, scale):
        assert draw(scale, 4, SeededNoise(0)).tolist() == draw(float(scale), 4, SeededNoise(0)).tolist()

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize(
        "scale", [0, 0.0, -1.0, float("nan"), float("inf"), True, np.True_, "3", None, 2.0**40 + 1, [1.0]]
    )
    def test_refuses_a_scale_that_is_no_positive_number(self, draw, scale):
        with pytest.raises(InvalidParameter, match=r"^(sigma|scale) must be "):
            draw(scale, 4, SeededNoise(0))

    @pytest.mark.default_cases(4)
    @pytest.mark.parametrize("size", [-1, 2.0, True, "3", None, (2, -1), (2, 1.5), [2, 3]])
    def test_refuses_a_size_that_is_no_shape(self, draw, size):
        with pytest.raises(InvalidParameter, match=r"^size must be "):
            draw(3.0, size, SeededNoise(0))

    def test_a_tiny_scale_draws_zeros(self, draw):
        assert not draw(1e-300, 1000, OSNoise()).any()

    def test_draws_one_by_one_are_the_draws_of_one_call(self, draw):
        one, many = SeededNoise(21), SeededNoise(21)

        assert [int(draw(9.0, (), one)) for _ in range(50)] == draw(9.0, 50, many).tolist()

    def test_reads_one_word_a_draw(self, draw):
        source = Counted()
        draw(40.0, 10_000, source)

        assert source.read == 10_000


@pytest.mark.parametrize(
    ("draw", "scale", "words"),
    [
        *((discrete_gaussian, sigma, 1) for sigma in (0.3, 40.0, SWITCH_SIGMA)),
        (discrete_laplace, 20_000.0, 4),
        (geometric, 20_000.0, 2),
    ],
)
def test_no_draw_of_a_single_table_or_of_the_other_samplers_is_rejected(draw, scale, words):
    source = Counted()
    draw(scale, 20_000, source)

    assert source.read == words * 20_000


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("sigma", [1821.0, 2047.0, 2049.0, 1e6, 2.0**40])
def test_of_wide_gaussian_draws_fewer_than_one_percent_are_rejected(sigma):
    """Three words a try: a block, a place in it, and a coin; 1 % of 100,000 is 40 standard deviations above 0.3 %."""
    source, n = Counted(), 100_000
    discrete_gaussian(sigma, n, source)

    assert 3 * n < source.read < 3 * n * 1.01
