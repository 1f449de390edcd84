import lzma
import os
from math import log, sqrt
from pathlib import Path
from time import process_time

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import norm
from tests.mechanisms.conftest import Exact

from quorate.accounting import data_dependent as dd
from quorate.accounting.data_dependent import smooth
from quorate.accounting.data_dependent.noisy_max import gaussian_bound, log_q_gaussian, log_q_laplace
from quorate.accounting.data_dependent.smooth import largest_total, release_rdp
from quorate.errors import InvalidParameter
from quorate.noise import SeededNoise
from quorate.types import Secret

ORDERS = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0])
VOTES = Path(os.environ.get("QUORATE_DATA", "../shared/data")) / "pate_votes"


def theorem_6(q, sigma, order):
    """PATE18 Thm 6 with Prop. 10, written out in fifty digits; the data-independent bound where it does not hold."""
    with mp.workdps(50):
        q, s2, a = mp.mpf(q), mp.mpf(sigma) ** 2, mp.mpf(order)
        worst = a / s2
        mu2 = mp.mpf(sigma) * mp.sqrt(mp.log(1 / q))
        mu1 = mu2 + 1
        if mu2 <= 1 or a > mu1:
            return worst
        e1, e2 = mu1 / s2, mu2 / s2
        if q > mp.exp((mu2 - 1) * e2) / (mu1 / (mu1 - 1) * mu2 / (mu2 - 1)) ** mu2 or q * mp.exp(e2) >= 1:
            return worst
        big_a = (1 - q) / (1 - (q * mp.exp(e2)) ** ((mu2 - 1) / mu2))
        big_b = mp.exp(e1) / q ** (1 / (mu1 - 1))
        return min(worst, mp.log((1 - q) * big_a ** (a - 1) + q * big_b ** (a - 1)) / (a - 1))


@pytest.mark.parametrize("sigma", [2.0, 40.0, 150.0])
def test_the_bound_is_theorem_6(sigma):
    for log_q in (-0.1, -0.9, -2.0, -5.0, -12.0, -40.0, -300.0):
        ours = gaussian_bound(np.array([log_q]), sigma, ORDERS)[0]
        for order, value in zip(ORDERS, ours, strict=True):
            exact = theorem_6(mp.exp(mp.mpf(log_q)), sigma, order)
            assert value >= exact * (1 - mp.mpf(10) ** -15)
            assert value - exact <= 1e-9 * exact + 4e-15 / (order - 1)


def difference_tail(mass, gaps):
    """P(Z − Z' ≥ g) of two noises of one symmetric law, from the lattice."""
    tails = np.cumsum(np.convolve(mass, mass)[::-1])[::-1]
    return tails[mass.size - 1 + gaps]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 3.0, 40.0, 150.0])
def test_half_a_vote_covers_the_ties_of_integer_noise(sigma):
    gaps = np.arange(1, int(6 * sigma) + 2)
    bound = np.exp(log_q_gaussian(gaps[:, None].astype(float), sigma, "discrete"))
    assert np.all(bound >= difference_tail(Exact.gaussian(sigma)[1], gaps) * (1 - 1e-9))
    tie = log_q_gaussian(np.zeros((1, 1)), sigma, "discrete")
    assert tie[0] > -1
    assert np.array_equal(gaussian_bound(tie, sigma, ORDERS)[0], ORDERS / sigma**2)


@pytest.mark.parametrize("sigma", [1.0, 40.0])
def test_the_continuous_formula_would_be_too_small_for_integer_noise(sigma):
    gaps = np.arange(0, int(6 * sigma) + 1)
    plain = np.exp(log_q_gaussian(gaps[:, None].astype(float), sigma, "continuous"))
    assert np.max(difference_tail(Exact.gaussian(sigma)[1], gaps) / plain) > 1.039


@pytest.mark.parametrize("scale", [0.7, 5.0, 40.0])
def test_the_tail_of_two_discrete_laplace_noises_is_exact(scale):
    gaps = np.arange(0, int(10 * scale))
    ours = np.exp(log_q_laplace(gaps[:, None].astype(float), scale, "discrete"))
    assert np.allclose(ours, difference_tail(Exact.laplace(scale)[1], gaps), rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_tail_of_two_laplace_noises_is_that_of_the_paper(scale):
    rng = np.random.default_rng(3)
    difference = rng.laplace(0, scale, 400_000) - rng.laplace(0, scale, 400_000)
    for gap in (0.0, 1.5 * scale, 3 * scale):
        p = float(np.exp(log_q_laplace(np.array([[gap]]), scale, "continuous"))[0])
        assert abs((difference >= gap).mean() - p) < 5 * sqrt(p / 400_000)


def divergence(here, there, order):
    """Rényi divergence of two laws, this one from that one."""
    return float(np.log(np.sum(here**order * there ** (1 - order))) / (order - 1))


def worst_divergence(counts, law, order):
    """Of the winner of these votes from that of any neighbour's, under this noise."""
    here = Exact.wins(counts, *law)
    return max(divergence(here, Exact.wins(other, *law), order) for other in Exact.neighbours(counts))


HISTOGRAMS = [[12, 1, 0], [9, 3, 1], [7, 6, 0], [5, 5, 3], [0, 2, 11], [25, 0, 0], [13, 12], [20, 1]]
BOUNDS = {"gaussian": (dd.gnmax_rdp, Exact.gaussian), "laplace": (dd.laplace_rdp, Exact.laplace)}


@pytest.mark.default_cases(7)
@pytest.mark.parametrize("counts", HISTOGRAMS)
@pytest.mark.parametrize(("noise", "scale"), [("gaussian", 1.5), ("gaussian", 4.0), ("laplace", 1.0), ("laplace", 4.0)])
def test_no_neighbour_is_further_away_than_the_bound_says(counts, noise, scale):
    bound_of, law_of = BOUNDS[noise]
    bound = bound_of(np.array([counts]), scale, ORDERS[:4], noise="discrete").reveal()[0]
    for order, value in zip(ORDERS[:4], bound, strict=True):
        assert worst_divergence(counts, law_of(scale), order) <= value * (1 + 1e-9) + 1e-12


def test_that_test_catches_a_bound_made_for_a_wider_gap():
    counts, sigma, order = [9, 3, 1], 1.5, 4.0
    cheat = dd.gnmax_rdp(np.array([[counts[0] + 4, *counts[1:]]]), sigma, [order]).reveal()[0, 0]
    assert worst_divergence(counts, Exact.gaussian(sigma), order) > cheat


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("noise", ["continuous", "discrete"])
@pytest.mark.parametrize("sigma", [1.0, 6.0])
def test_the_threshold_bit_is_priced_exactly_and_in_both_directions(noise, sigma):
    z = np.arange(-200, 201)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    mass /= mass.sum()

    def coin(largest):
        p = norm.cdf((largest - 20.0) / sigma) if noise == "continuous" else mass[largest + z >= 20].sum()
        return np.array([p, 1 - p])

    for largest in (16, 19, 20, 23):
        bound = dd.threshold_rdp(np.array([[largest, 1]]), 20, sigma, ORDERS[:4], noise=noise).reveal()[0]
        for order, value in zip(ORDERS[:4], bound, strict=True):
            exact = max(
                divergence(*pair, order)
                for step in (-1, 1)
                for pair in [(coin(largest), coin(largest + step)), (coin(largest + step), coin(largest))]
            )
            assert value == pytest.approx(min(exact, order / (2 * sigma**2)), rel=1e-6, abs=1e-13)


def in_fifty_digits(first, second, order):
    a = mp.mpf(order)
    return mp.log(sum(p**a * q ** (1 - a) for p, q in zip(first, second, strict=True))) / (a - 1)


@pytest.mark.parametrize("sigma", [2.0, 40.0, 150.0])
def test_no_direction_of_the_threshold_bit_is_above_its_bound(sigma):
    """In fifty digits, over largest counts on both sides of the threshold; one direction was up to 1.1 % too low."""
    threshold, orders = 120, [1.5, 2.0, 8.0, 20.0, 64.0]
    largest = np.unique(np.clip(threshold + np.round(sigma * np.linspace(-3, 3, 13)), 0, None)).astype(np.int64)
    bounds = dd.threshold_rdp(np.stack([largest, 0 * largest], axis=1), threshold, sigma, orders).reveal()
    exchanged = 0.0
    with mp.workdps(50):
        for count, row in zip(largest.tolist(), bounds.tolist(), strict=True):
            here, *others = ((p, 1 - p) for p in (mp.ncdf((count + s - threshold) / mp.mpf(sigma)) for s in (0, -1, 1)))
            for order, bound in zip(orders, row, strict=True):
                forward = max(in_fifty_digits(here, other, order) for other in others)
                back = max(in_fifty_digits(other, here, order) for other in others)
                assert bound >= max(forward, back)
                exchanged = max(exchanged, float(back / forward))
    assert exchanged > 1.001  # so the second direction is no empty addition


def test_the_bound_of_a_noisy_vote_is_about_one_direction_alone():
    """As the docstrings say: these votes first. The other way round the divergence may be several times the bound."""
    counts, moved, sigma, order = [11, 1, 0], [10, 2, 0], 1.1170884942531099, 2.0
    here, there = (Exact.wins(each, *Exact.gaussian(sigma)) for each in (counts, moved))
    bound = dd.gnmax_rdp(np.array([counts]), sigma, [order], noise="discrete").reveal()[0, 0]
    assert divergence(here, there, order) <= bound
    assert divergence(there, here, order) > 8 * bound


def test_values_are_secret_and_have_one_row_per_query():
    counts = np.array([[200, 30, 20], [90, 80, 80]])
    for bound in (
        dd.gnmax_rdp(Secret(counts), 40.0, ORDERS),
        dd.laplace_rdp(counts, 20.0, ORDERS),
        dd.threshold_rdp(counts, 120, 50.0, ORDERS),
    ):
        assert isinstance(bound, Secret)
        assert bound.reveal().shape == (2, ORDERS.size)
        assert np.all(bound.reveal()[0] <= bound.reveal()[1])


def test_the_order_of_the_classes_does_not_matter_to_the_last_bit():
    rng = np.random.default_rng(5)
    counts = rng.multinomial(250, [0.5, 0.2, 0.1, 0.1, 0.05, 0.05], size=50)
    shuffled = counts[:, rng.permutation(6)]
    for price in (
        lambda c: dd.gnmax_rdp(c, 40.0, ORDERS, noise="discrete"),
        lambda c: dd.laplace_rdp(c, 20.0, ORDERS),
        lambda c: dd.threshold_rdp(c, 120, 50.0, ORDERS),
    ):
        assert np.array_equal(price(counts).reveal(), price(shuffled).reveal())


def test_no_bound_is_above_the_data_independent_one_and_unanimity_is_nearly_free():
    counts = np.array([[0, 0], [125, 125], [250, 0], [10**6, 0]])
    bound = dd.gnmax_rdp(counts, 40.0, ORDERS).reveal()
    assert np.all(bound <= ORDERS / 1600)
    assert np.array_equal(bound[:2], np.tile(ORDERS / 1600, (2, 1)))
    assert np.all(bound[3] < 1e-14)


@pytest.mark.skipif(not VOTES.is_dir(), reason="the larger data sets are not here")
@pytest.mark.parametrize(
    ("name", "first", "threshold", "sigma_1", "answered", "published"),
    [("mnist", 640, 200, 150.0, 293, 2.05), ("adult", 1500, 300, 200.0, 542, 1.69)],
)
def test_real_votes_cost_what_was_published_and_less_with_the_exact_bit(
    name, first, threshold, sigma_1, answered, published
):
    with lzma.open(VOTES / f"{name}_250_teachers.npy.xz") as file:
        counts = np.load(file)[:first].astype(np.int64)
    orders = np.arange(2.0, 40.0)
    x = (threshold - counts.max(axis=1)) / sigma_1
    # in expectation over which queries are answered, scaled to the number that were
    votes = norm.sf(x) @ dd.gnmax_rdp(counts, 40.0, orders).reveal() * (answered / norm.sf(x).sum())
    by_theorem_6 = gaussian_bound(np.minimum(norm.logsf(x), norm.logcdf(x)), sqrt(2) * sigma_1, orders).sum(axis=0)
    exact = dd.threshold_rdp(counts, threshold, sigma_1, orders).reveal().sum(axis=0)

    def converted(total):  # as the published analysis does
        return float(np.min(total - log(1e-5) / (orders - 1)))

    assert converted(votes + by_theorem_6) == pytest.approx(published, abs=0.03)
    assert converted(votes + exact) < published - 0.05


def test_twelve_thousand_queries_at_fifty_orders_take_half_a_second():
    rng = np.random.default_rng(11)
    counts = rng.multinomial(250, [0.6] + [0.4 / 9] * 9, size=12_000)
    orders = np.linspace(1.5, 60, 50)
    dd.gnmax_rdp(counts[:10], 40.0, orders)
    start = process_time()
    dd.gnmax_rdp(counts, 40.0, orders)
    assert process_time() - start < 0.5


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    "counts", [[1, 2], [[1], [2]], [[1.5, 2.0]], [[-1, 3]], [["a", "b"]], [[float("nan"), 1.0]], [[True, False]]]
)
def test_what_is_not_a_table_of_votes_is_refused_without_repeating_it(counts):
    with pytest.raises(InvalidParameter, match=r"^counts must be") as refusal:
        dd.gnmax_rdp(counts, 40.0, ORDERS)
    assert "1.5" not in str(refusal.value)


@pytest.mark.heavy
def test_the_local_change_of_a_whole_stream_is_covered():
    rng = np.random.default_rng(3)
    for _ in range(30):
        counts = rng.multinomial(60, [0.8, 0.15, 0.05], size=6)
        other = counts.copy()
        other[:, 0] -= 1
        other[:, 1] += 1

        def total(votes):
            tests = dd.threshold_rdp(votes, 35, 6.0, [5.0], noise="discrete").reveal().sum()
            return tests + dd.gnmax_rdp(votes, 4.0, [5.0], noise="discrete").reveal().sum()

        bound = dd.smooth_sensitivity(counts, 4.0, 5.0, 0.05, threshold=35, threshold_sigma=6.0).reveal()
        assert abs(total(counts) - total(other)) <= bound * (1 + 1e-9)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("sigma", [0.8, 5.0, 300.0])
@pytest.mark.parametrize("order", [1.2, 12.0, 60.0])
@pytest.mark.parametrize("n_classes", [2, 1000])
def test_the_bound_falls_with_the_gap_at_every_order(sigma, order, n_classes):
    counts = np.zeros((1, n_classes), dtype=np.int64)
    counts[0, 0] = 40
    assert dd.smooth_sensitivity(counts, sigma, order, 0.05).reveal() >= 0  # it refuses where the bound does not fall


@pytest.mark.parametrize("sigma", [2.0, 40.0, 150.0])
def test_the_bound_at_an_order_does_not_depend_on_the_orders_beside_it(sigma):
    log_q = -np.concatenate([np.linspace(1e-3, 30, 700), np.geomspace(1e-6, 1e3, 300)])
    orders = np.linspace(1.5, 60.0, 50)

    together = gaussian_bound(log_q, sigma, orders)

    alone = [gaussian_bound(log_q, sigma, orders[[at]])[:, 0] for at in range(len(orders))]
    assert together.tobytes() == np.ascontiguousarray(np.transpose(alone)).tobytes()
    assert np.any(together[:, -1] < orders[-1] / sigma**2)


def test_only_answered_queries_count_for_the_vote():
    counts = np.array([[30, 10, 5], [20, 18, 7]])
    both = dd.smooth_sensitivity(counts, 4.0, 5.0, 0.05).reveal()
    one = dd.smooth_sensitivity(counts, 4.0, 5.0, 0.05, answered=np.array([True, False])).reveal()
    none = dd.smooth_sensitivity(counts, 4.0, 5.0, 0.05, answered=np.array([False, False])).reveal()
    assert none == 0 < one < both


@pytest.mark.heavy
def test_the_cost_of_the_release_covers_every_ratio_of_scales():
    order, beta, multiplier = 8.0, 0.03, 5.0
    bound = release_rdp(order, beta, multiplier)
    worst = 0.0
    for x in np.exp(np.linspace(-beta, beta, 81)):
        z = np.linspace(-40, 40, 40_001)
        p = norm.logpdf(z, 0, multiplier)
        q = norm.logpdf(z, min(1.0, x), x * multiplier)
        worst = max(worst, float(np.log(np.trapezoid(np.exp(order * p + (1 - order) * q), z)) / (order - 1)))
    assert worst <= bound * (1 + 1e-6)
    assert worst > bound * 0.99
    assert release_rdp(order, 0.2, multiplier) == float("inf")


def test_on_the_integers_it_costs_the_same():
    order, beta, multiplier = 8.0, 0.03, 5.0
    z = np.arange(-300, 301).astype(float)

    def log_law(centre, scale):
        log_mass = -((z - centre) ** 2) / (2 * scale**2)
        return log_mass - np.logaddexp.reduce(log_mass)

    # small scales: a sensitivity of three steps, which may be 2.91 next door; the totals differ by two
    p, q = log_law(0, 3 * multiplier), log_law(2, 3 * multiplier * np.exp(-beta))
    divergence = float(np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1))
    assert divergence <= release_rdp(order, beta, multiplier) * (1 + 1e-9)


def released(rdp, sensitivity, source=None, **changes):
    given = {"order": 10.0, "beta": 0.02, "multiplier": 6.0, "source": source or SeededNoise(1), **changes}
    return dd.release_total(Secret(rdp), Secret(sensitivity), **given).value


@pytest.mark.heavy
def test_a_released_total_is_centred_and_as_noisy_as_it_says():
    source = SeededNoise(20260821)
    totals = [released(np.full((50, 1), 0.01), 0.02, source.at("total", i)) for i in range(400)]
    spread = 6.0 * (0.02 + 1e-4)
    # 5 standard errors: a false alarm less often than once in a million
    assert abs(np.mean(totals) - 0.5) < 5 * spread / 20
    assert abs(np.std(totals) / spread - 1) < 5 / sqrt(2 * 400)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("secret", [0.0, 1.0, 12_345.678, 1e12, 1e300, float("inf"), float("nan"), -5.0])
@pytest.mark.parametrize("step", [1e-4, 1e-15])
def test_no_secret_decides_whether_a_release_is_refused_nor_what_is_said(secret, step):
    """A sensitivity that asks for more noise than there is was refused, by a line that named it."""
    for rdp, sensitivity in ((0.01, secret), (secret, 0.02), (secret, secret)):
        assert abs(released(np.full(5, rdp), sensitivity, step=step)) < 100 * largest_total(6.0, step)


def test_what_is_clipped_is_far_beyond_any_real_total_and_moves_by_no_more_than_the_noise_covers():
    assert largest_total(40.0, 1e-4) > 1e6
    most = largest_total(6.0, 1e-15)
    assert 6.0 * (most / 1e-15 + 1) <= 2.0**40
    beyond = ((most, most), (1e9, 1e9), (most, 1e9))
    assert len({released(np.array([t]), s, step=1e-15) for t, s in beyond}) == 1


@pytest.mark.parametrize("bad", [{"multiplier": 2.0**40}, {"multiplier": 1.0}, {"step": 0.0}, {"beta": 0.5}])
def test_what_is_public_is_still_refused_and_the_line_names_nothing_secret(bad):
    with pytest.raises(InvalidParameter) as refusal:
        released(np.array([7654.321]), 1234.567, **bad)
    assert not any(digits in str(refusal.value) for digits in ("765", "123", "740"))


@pytest.mark.heavy
def test_whether_a_sensitivity_is_refused_does_not_depend_on_the_votes():
    asked = []

    def refuse(*bounds):
        asked.append([bound.tolist() for bound in bounds])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smooth, "_refuse_rising", refuse)
        for counts in ([5, 5, 5], [400, 0, 0], [10**4, 1, 0]):
            dd.smooth_sensitivity(np.array([counts]), 4.0, 5.0, 0.05)
    assert asked[0] == asked[1] == asked[2]


def test_a_release_that_cannot_be_priced_is_refused():
    with pytest.raises(InvalidParameter, match="beta is too large"):
        released(np.zeros(1), 0.1, beta=0.1, multiplier=9.0)
    with pytest.raises(InvalidParameter, match="multiplier"):
        release_rdp(10.0, 0.01, 1.0)
    with pytest.raises(InvalidParameter, match="together"):
        dd.smooth_sensitivity(np.array([[3, 1]]), 4.0, 5.0, 0.05, threshold=3)
    with pytest.raises(InvalidParameter, match="answered"):
        dd.smooth_sensitivity(np.array([[3, 1]]), 4.0, 5.0, 0.05, answered=[1])
