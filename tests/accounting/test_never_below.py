"""No price lies below the truth, not by the last digit: every rule against its definition in a hundred digits.

Points where rounding shows are named; sweeps look beside atoms of the loss, in far tails and at negative ε. Truth is
computed from the exact values of the floats that an event holds.
"""

from fractions import Fraction
from itertools import product
from math import inf, isnan, nextafter

import mpmath as mp
import numpy as np
import pytest
from tests.accounting.slow_prices import composed, delta_of_law, gaussian_delta, lattice, rounds, true_delta

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Filter,
    Gaussian,
    PureDP,
    Repeated,
    delta,
    epsilon,
    rdp,
    sampler_delta,
    zcdp,
)
from quorate.accounting.gaussian import log_delta
from quorate.accounting.loss import LossLaw, on_grid
from quorate.accounting.outward import product_up, quotient_up, sum_up
from quorate.accounting.pure import randomized_response_law
from quorate.accounting.renyi import delta_of_curve, epsilon_of_curve
from quorate.errors import QuorateError

SEEN = mp.mpf(10) ** -45  # smaller probabilities are below what the rules resolve, and above by far


def beside(atom, rng):
    """A float at an atom of the loss, one step next to it, or a little below."""
    near = float(atom)
    return max(0.0, float(rng.choice([near, np.nextafter(near, 0), np.nextafter(near, inf), near * (1 - 1e-9)])))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("scale", [3.0, 7.0, 0.7, 49.0, 1e-3, 12345.678])
def test_a_quotient_is_not_rounded_below_itself(scale):
    assert Fraction(epsilon(DiscreteLaplace(scale, 1.0), 0.0)) >= 1 / Fraction(scale)
    assert Fraction(epsilon(Repeated(DiscreteLaplace(scale, 1.0), 7), 0.0)) >= 7 / Fraction(scale)
    assert epsilon(DiscreteLaplace(scale, 1.0), 0.0) <= nextafter(1 / scale, inf)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("epsilon_0", "times"), [(0.3, 3), (0.1, 10), (0.42, 29), (0.7, 14), (2.8842657457728214, 14)])
def test_delta_beside_every_atom_of_a_pure_composition(epsilon_0, times):
    for i, step in product(range(times // 2 + 1, times + 1), (0.0, 1e-15, 1e-12, 1e-9)):
        at = (2 * i - times) * epsilon_0 * (1 - step)
        truth = true_delta([(PureDP(epsilon_0), times)], at)
        assert mp.mpf(delta(Repeated(PureDP(epsilon_0), times), at)) >= truth


@pytest.mark.parametrize(
    ("at", "mu"),
    [
        (-0.0017347844111405464, 0.00010707884831034063),
        (-3.1774037673653656e-06, 1.8582034498300673e-07),
        (-2.3083813117815233e-06, 1.0078659286605604e-07),  # beyond twenty standard deviations
        (-0.5, 0.02),
    ],
)
def test_the_gaussian_curve_at_negative_epsilon(at, mu):
    with mp.workdps(100):
        assert mp.mpf(float(log_delta(at, mu))) >= mp.log(gaussian_delta(mp.mpf(at), mp.mpf(mu)))


def test_delta_of_integer_noise_beside_an_atom():
    for sigma, shifts, at in ((0.23625628793456319, 3, 80.62055094446158), (0.555797611710543, 1, 14.567303255117627)):
        with mp.workdps(100):
            truth = delta_of_law(lattice(sigma, shifts), mp.mpf(at))
        assert mp.mpf(delta(Repeated(DiscreteGaussian(sigma, 1.0), shifts), at)) >= truth


def random_leaf(rng):
    match rng.integers(4):
        case 0:
            return PureDP(round(float(rng.uniform(0.01, 2)), 2)), int(rng.integers(1, 6))
        case 1:
            return ApproxDP(float(rng.uniform(0.01, 1)), 1e-9), int(rng.integers(1, 4))
        case 2:
            return DiscreteLaplace(round(float(rng.uniform(0.5, 9)), 1), 1.0), int(rng.integers(1, 6))
        case _:
            return DiscreteGaussian(float(rng.uniform(0.3, 1.5)), 2**0.5 if rng.integers(2) else 1.0), 1


def atoms_of(parts, rng):
    """One attainable loss of the parts together."""
    total = mp.mpf(0)
    for event, times in parts:
        if isinstance(event, DiscreteGaussian):
            law = lattice(event.sigma, times * round(event.l2_sensitivity**2))
            total += law[int(rng.integers(len(law) // 3, 2 * len(law) // 3))][0]
        else:
            one = 1 / mp.mpf(event.scale) if isinstance(event, DiscreteLaplace) else mp.mpf(event.epsilon)
            total += (2 * int(rng.integers(times + 1)) - times) * one
    return abs(total)


@pytest.mark.heavy
@pytest.mark.heavy_cases(4)
@pytest.mark.parametrize("seed", range(8))
def test_random_compositions_beside_atoms_and_elsewhere(seed):
    rng = np.random.default_rng(20261122 + seed)
    seen = 0
    for _ in range(12):
        parts = [random_leaf(rng) for _ in range(rng.integers(1, 4))]
        if np.prod([60 * event.sigma if isinstance(event, DiscreteGaussian) else n + 1 for event, n in parts]) > 2_000:
            continue
        event = Composed(tuple(Repeated(leaf, times) for leaf, times in parts))
        with mp.workdps(60):
            points = [beside(atoms_of(parts, rng), rng), beside(atoms_of(parts, rng), rng), float(rng.uniform(0, 3))]
        for at in points:
            truth = true_delta(parts, at)
            if truth > SEEN:
                assert mp.mpf(delta(event, at)) >= truth, (parts, at)
                seen += 1
        budget = float(10 ** -rng.uniform(1, 8))
        if (price := epsilon(event, budget)) < inf:
            assert true_delta(parts, price) <= mp.mpf(budget), (parts, budget)
    assert seen > 10


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_mixtures_with_continuous_noise(seed):
    rng = np.random.default_rng(20261122 + seed)
    for _ in range(4):
        parts = [random_leaf(rng)]
        if isinstance(parts[0][0], DiscreteGaussian) and parts[0][0].sigma > 1:
            continue
        parts.append((Gaussian(float(rng.uniform(0.5, 9)), 1.0), int(rng.integers(1, 9))))
        event = Composed(tuple(Repeated(leaf, times) for leaf, times in parts))
        at = float(rng.uniform(0, 4))
        truth = true_delta(parts, at)
        assert truth <= SEEN or mp.mpf(delta(event, at)) >= truth, (parts, at)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(4))
def test_many_shifts_of_integer_noise(seed):
    rng = np.random.default_rng(20261122 + seed)
    for _ in range(6):
        sigma, shifts = float(10 ** rng.uniform(-0.7, 0.7)), int(rng.integers(1, 9))
        with mp.workdps(60):
            law = lattice(sigma, shifts)
            reach = int(4 * sigma * shifts**0.5) + 2
            for _ in range(5):
                atom = (shifts - 2 * int(rng.integers(-reach, shifts // 2 + 1))) / (2 * mp.mpf(sigma) ** 2)
                at = beside(atom, rng)
                truth = delta_of_law(law, mp.mpf(at))
                ours = delta(Repeated(DiscreteGaussian(sigma, 1.0), shifts), at)
                assert truth <= SEEN or mp.mpf(ours) >= truth, (sigma, shifts, at)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(3))
def test_laws_on_a_grid(seed):
    rng = np.random.default_rng(20261122 + seed)
    for _ in range(4):
        tilt = float(10 ** rng.uniform(-1, 1.5))
        leaves = [(float(round(10 ** rng.uniform(-2, 0.4), 3)), int(rng.integers(1, 7))) for _ in range(3)]
        laws = []
        for epsilon_0, times in leaves:
            losses, log_weights, beyond = randomized_response_law(epsilon_0, times, tilt)
            laws.append(LossLaw(losses=losses, log_weights=log_weights, beyond=beyond))
        grid = on_grid(laws, tilt, 0.0)
        with mp.workdps(60):
            exact = composed([rounds(mp.mpf(epsilon_0), times) for epsilon_0, times in leaves])
            for _ in range(6):
                at = beside(abs(exact[int(rng.integers(len(exact)))][0]), rng)
                truth = delta_of_law(exact, mp.mpf(at))
                assert truth <= SEEN or mp.mpf(grid.log_delta(at)) >= mp.log(truth), (leaves, tilt, at)


@pytest.mark.heavy
def test_the_gaussian_curve_of_either_sign_everywhere():
    rng = np.random.default_rng(20261122)
    mu = 10 ** rng.uniform(-7, 2.5, 1500)
    x = np.where(rng.integers(2, size=mu.size), rng.uniform(-45, 30, mu.size), rng.uniform(-1, 1, mu.size))
    with mp.workdps(100):
        for at, one_mu in zip((mu * (x + mu / 2)).tolist(), mu.tolist(), strict=True):
            truth = gaussian_delta(mp.mpf(at), mp.mpf(one_mu))
            assert truth == 1 or mp.mpf(float(log_delta(at, one_mu))) >= mp.log(truth), (at, one_mu)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("budget", [1e-18, 1e-9, 1e-5, 0.3])
@pytest.mark.parametrize(
    ("leaf", "times"),
    [
        (DiscreteGaussian(1.3, 1.0), 3),
        (DiscreteGaussian(9.0, 2**0.5), 1),
        (DiscreteLaplace(5.0, 1.0), 8),
        (DiscreteLaplace(0.3, 1.0), 1),
    ],
)
def test_the_price_at_a_positive_delta_leaves_room_for_the_sampler(leaf, times, budget):
    """What the docstring of `sampler_delta` says: 2^-51 of δ is left, more than the distance of 2^60 draws."""
    price = epsilon(Repeated(leaf, times), budget)
    room = mp.mpf(budget) * mp.mpf(2) ** -51
    assert true_delta([(leaf, times)], price) <= mp.mpf(budget) - room
    assert sampler_delta(2**60, min(price, 5.0)) <= room


def test_at_delta_zero_there_is_no_room_and_what_is_missing_is_as_small_as_said():
    assert true_delta([(DiscreteLaplace(4.0, 1.0), 3)], epsilon(Repeated(DiscreteLaplace(4.0, 1.0), 3), 0.0)) == 0
    assert 0 < sampler_delta(10**9, 18.0) < 1e-40


def test_that_these_tests_see_a_part_in_ten_to_the_fourteenth():
    event, at = Repeated(PureDP(0.09), 3), 0.2
    assert mp.mpf(delta(event, at) * (1 - 1e-12)) < true_delta([(PureDP(0.09), 3)], at)


def converted(curve, order, at):
    """ε at δ by one Rényi order (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    a = mp.mpf(order)
    return curve(a) + mp.log(1 - 1 / a) - (mp.log(mp.mpf(at)) + mp.log(a)) / (a - 1)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("rho", [1e-30, 1e-6, 0.003, 0.5, 400.0])
@pytest.mark.parametrize("at", [1e-12, 1e-3, 0.4, 0.7, 0.99, 0.999999])
def test_the_conversion_of_a_curve_is_not_below_itself_at_its_own_order(rho, at):
    price, order = epsilon_of_curve(lambda a: a * rho, at)
    with mp.workdps(60):
        assert mp.mpf(price) >= converted(lambda a: a * mp.mpf(rho), order, at)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("height", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("share", [0.5, 0.999, 1 - 1e-9])
def test_delta_of_a_flat_curve_is_not_below_itself_at_its_own_order(height, share):
    """The Rényi curve of a pure mechanism: the best order is very large, and the terms nearly cancel."""
    at = height * share
    price, order = delta_of_curve(lambda a: np.full(np.shape(a), height), at)
    with mp.workdps(60):
        a = mp.mpf(order)
        truth = mp.exp((a - 1) * (mp.mpf(height) - mp.mpf(at) + mp.log(1 - 1 / a)) - mp.log(a))
        assert mp.mpf(price) >= min(truth, 1)


SIZES = [5e-324, 1e-300, 1e-160, 1e-20, 1e-8, 1.0, 1e8, 1e20, 1e160, 1e300, 1.7e308]


def extreme_events():
    for a, b in product(SIZES[::2], SIZES):
        yield from (Gaussian(a, b), DiscreteGaussian(a, b), DiscreteLaplace(a, b))
    for a in SIZES:
        yield from (PureDP(a), ApproxDP(a, 0.0), ApproxDP(a, 1e-9), ApproxDP(a, 5e-324))


@pytest.mark.heavy
@pytest.mark.filterwarnings("error")
def test_no_event_is_free_and_none_is_beyond_pricing():
    for leaf in extreme_events():
        for event in (leaf, Repeated(leaf, 3), Composed((leaf, PureDP(0.5)))):
            prices = {
                "pure": epsilon(event, 0.0),
                "delta": delta(event, 0.0),
                "approximate": epsilon(event, 1e-5),
                "renyi": float(rdp(event, [2.0])[0]),
            }
            assert not any(isnan(price) or price < 0 for price in prices.values()), event
            assert min(prices["pure"], prices["delta"], prices["renyi"]) > 0, event
            if not isinstance(leaf, ApproxDP) or leaf.delta == 0:
                assert zcdp(event) > 0, event
                assert Filter(limit=1e300, order=3.0).cost(event) > 0, event


def test_noise_beyond_every_square_is_priced_like_less_noise_and_not_as_no_release():
    huge = Gaussian(1e200, 1e-3)
    assert epsilon(huge, 0.0) == inf
    assert 0 < delta(huge, 0.0) < 1e-14
    assert 0 < zcdp(huge) < 1e-300


def test_an_event_that_hides_nothing_costs_everything_but_pure_parts():
    assert epsilon(DiscreteGaussian(1e-200, 1.0), 0.5) == inf
    assert delta(DiscreteGaussian(1e-200, 1.0), 3.0) == 1.0
    assert epsilon(PureDP(1e300), 1e-5) == 1e300
    with pytest.raises(QuorateError):
        epsilon(PureDP(inf), 1e-5)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(3))
def test_sums_products_and_quotients_are_the_least_floats_at_or_above(seed):
    rng = np.random.default_rng(seed)
    numbers = 10 ** rng.uniform(-9, 9, 200) * rng.choice([-1, 1], 200)
    whole = rng.integers(-(2**31), 2**31, 200).astype(float)
    for one in numbers[:20].tolist():
        for a, ours in zip(whole.tolist(), product_up(whole, one).tolist(), strict=True):
            exact = Fraction(a) * Fraction(one)
            assert Fraction(nextafter(ours, -inf)) < exact <= Fraction(ours)
        for a, ours in zip(numbers.tolist(), sum_up(numbers, np.full(200, one)).tolist(), strict=True):
            exact = Fraction(a) + Fraction(one)
            assert Fraction(nextafter(ours, -inf)) < exact <= Fraction(ours)
        for a in np.abs(numbers[:50]).tolist():
            exact = Fraction(a) / Fraction(abs(one))
            assert Fraction(nextafter(quotient_up(a, abs(one)), -inf)) < exact <= Fraction(quotient_up(a, abs(one)))


def test_what_is_exact_stays_what_it_is():
    assert product_up(np.array([3.0, 0.0, -5.0]), 0.5).tolist() == [1.5, 0.0, -2.5]
    assert sum_up(np.array([0.5]), np.array([0.25])).tolist() == [0.75]
    assert quotient_up(1.0, 8.0) == 0.125
