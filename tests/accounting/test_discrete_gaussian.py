from math import exp, floor, sqrt
from time import process_time

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accounting.slow_prices import approx_pair, delta_of, laplace_pair, noise_pair, response_pair, true_delta

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PureDP,
    Repeated,
    delta,
    discrete_gaussian,
    explain,
    loss,
    spend,
)
from quorate.accounting import discrete_gaussian as lattice
from quorate.accounting.gaussian import log_delta as continuous
from quorate.accounting.loss import LossLaw, on_grid, outer

CASES = [
    (1.0, 1, 1.0),
    (1.0, 3, 2.0),
    (1.0, 3, 9.0),
    (0.5, 2, 5.0),
    (0.5, 4, 0.3),
    (0.3, 2, 20.0),
    (0.2, 3, 30.0),
    (2.5, 3, 0.0),
    (2.5, 3, 3.0),
    (2.0, 2, 6.0),
    (1.5, 3, 0.2),
    (20.0, 1, 0.1),
]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("sigma", "shifts", "epsilon"), CASES)
def test_the_curve_agrees_with_enumeration_and_is_never_below(sigma, shifts, epsilon):
    exact = delta_of([noise_pair(sigma)] * shifts, epsilon)
    assert 1 <= exp(lattice.log_delta(epsilon, sigma, shifts)) / exact < 1 + 1e-9


@pytest.mark.parametrize(("sigma", "epsilon"), [(1.3, 0.7), (2.0, 2.0)])
def test_a_histogram_answer_is_two_unit_shifts(sigma, epsilon):
    exact = delta_of([noise_pair(sigma, 1), noise_pair(sigma, -1)], epsilon)
    assert 1 <= exp(lattice.log_delta(epsilon, sigma, 2)) / exact < 1 + 1e-9


def test_pricing_it_as_a_continuous_gaussian_would_show():
    exact = delta_of([noise_pair(1.0)] * 3, 4.0)
    assert exp(float(continuous(4.0, sqrt(3)))) < 0.97 * exact


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("sigma", "shifts", "epsilon"),
    [(40.0, 100_000, 70.0), (400.0, 10_000, 1.2), (1000.0, 100_000, 1.0), (3000.0, 200_000, 0.7)],
)
def test_the_integral_and_the_lattice_agree(sigma, shifts, epsilon):
    t, tau = lattice._threshold(epsilon, sigma, shifts), sigma * sqrt(shifts)
    by_integral = lattice._by_integral(epsilon, t, tau, sigma, shifts)
    assert by_integral is not None
    assert by_integral == pytest.approx(lattice._by_lattice(epsilon, t, tau, sigma, shifts), abs=2e-10)


def test_the_kink_term_is_worth_having():
    # at this size the plain integral is off by more than the two agree to
    epsilon, sigma, shifts = 1.2, 400.0, 10_000
    plain = float(continuous(epsilon, sqrt(shifts) / sigma))
    assert abs(plain - lattice.log_delta(epsilon, sigma, shifts)) > 1e-9


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("sigma", "shifts"), [(300.0, 1), (100.0, 100), (1000.0, 1000), (30_000.0, 2)])
@pytest.mark.parametrize("deviations", [-100.0, -2.0, -0.3, 0.0, 0.4, 1.5, 2.4])
def test_near_the_centre_the_integral_and_its_bound_are_just_above_the_lattice(sigma, shifts, deviations):
    tau = sigma * sqrt(shifts)
    epsilon = max(shifts / 2 + deviations * tau, 0.0) / sigma**2
    t = lattice._threshold(epsilon, sigma, shifts)
    summed = lattice._by_lattice(epsilon, t, tau, sigma, shifts)
    bound = lattice._by_curvature(epsilon, t, tau, sigma, shifts)
    # what it adds, and how well the Gaussian curve itself is known
    assert summed - lattice._ROUND_OFF <= bound <= summed + 150 / tau**2 + 2.0**-45 * (1 + sigma)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-8, 1e-6, 1e-3])
@pytest.mark.parametrize("sigma", [3e6, 3e7, 1e9])
def test_noise_too_wide_to_be_summed_costs_what_continuous_noise_does(sigma, epsilon):
    ideal = float(continuous(epsilon, 10 / sigma))
    start = process_time()
    over = lattice.log_delta(epsilon, sigma, 100) - ideal
    assert 0 <= over <= (2e-6 if ideal > -400 else -0.01 * ideal)  # far out, the tail of the noise alone
    assert process_time() - start < 0.5


@pytest.mark.parametrize(("sigma", "shifts", "epsilon"), [(2.5, 50, 3.0), (2.5, 50, 10.0), (3.0, 1000, 60.0)])
def test_the_transform_and_the_lattice_agree(sigma, shifts, epsilon):
    t, tau = lattice._threshold(epsilon, sigma, shifts), sigma * sqrt(shifts)
    by_fft = lattice._by_fft(epsilon, sigma, shifts)
    assert by_fft == pytest.approx(lattice._by_lattice(epsilon, t, tau, sigma, shifts), abs=1e-12)


@pytest.mark.heavy
@pytest.mark.parametrize("sigma", [0.8, 1.2, 1.6, 2.0, 3.0])
def test_the_law_of_a_sum_is_gaussian_as_closely_as_is_claimed(sigma):
    shifts = 4
    with mp.workdps(50):
        one = {z: mp.exp(-(mp.mpf(z) ** 2) / (2 * mp.mpf(sigma) ** 2)) for z in range(-40, 41)}
        whole = sum(one.values())
        one = {z: p / whole for z, p in one.items()}
        law = {0: mp.mpf(1)}
        for _ in range(shifts):
            new = {}
            for s, p in law.items():
                for z, q in one.items():
                    new[s + z] = new.get(s + z, mp.mpf(0)) + p * q
            law = new
        tau2 = shifts * mp.mpf(sigma) ** 2
        total = sum(mp.exp(-(mp.mpf(s) ** 2) / (2 * tau2)) for s in range(-400, 401))
        worst = max(
            abs(mp.log(law[s] * total) + mp.mpf(s) ** 2 / (2 * tau2)) for s in range(int(-4 * sigma), int(4 * sigma))
        )
    bound = lattice._merging(sigma, shifts)
    assert worst <= bound
    assert sigma > 1 or worst > bound / 1000  # the bound is of the right size where it can be seen


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("sigma", "shifts"), [(40.0, 977), (0.7, 20), (1.2, 300), (0.3, 5)])
@pytest.mark.parametrize("tilt", [0.0, 3.0, 12.0])
def test_the_listed_law_prices_as_the_curve_does(sigma, shifts, tilt):
    listed = lattice.sum_law(sigma, shifts, tilt)
    assert listed is not None
    losses, log_weights, beyond = listed
    assert np.all(np.diff(losses) > 0)
    epsilon = max(losses[np.argmax(log_weights + tilt * losses)], 0.1)
    if lattice.log_delta(epsilon, sigma, shifts) < -80:
        return  # below any δ, and below what the law's window promises
    above = losses > epsilon
    delta = beyond + float(np.sum(np.exp(log_weights[above]) * -np.expm1(epsilon - losses[above])))
    exact = exp(lattice.log_delta(epsilon, sigma, shifts))
    assert exact * (1 - 1e-11) <= delta <= exact * (1 + 1e-6) + 1e-20


def test_a_thinned_law_costs_a_little_more_and_never_less(monkeypatch):
    fine = lattice.sum_law(150.0, 640, 8.0)
    monkeypatch.setattr(lattice, "_LISTED", 5_000)
    thin = lattice.sum_law(150.0, 640, 8.0)

    def delta(law, epsilon):
        losses, log_weights, _ = law
        above = losses > epsilon
        return float(np.sum(np.exp(log_weights[above]) * -np.expm1(epsilon - losses[above])))

    assert thin[0].size < fine[0].size / 10
    for epsilon in (0.0, 0.05, 0.3, 0.7):
        assert 1 <= delta(thin, epsilon) / delta(fine, epsilon) * (1 + 1e-12) < 1 + 1e-4


def split_one_by_one(s, stride, tau, sigma):
    """The masses of a thinned law in fifty digits: every sum of the lattice is split by itself."""
    with mp.workdps(50):
        sigma2, masses = mp.mpf(sigma) ** 2, [mp.mpf(0)] * (len(s) + 1)
        for k, first in enumerate(s):
            for j in range(stride):
                mass = mp.exp(-(mp.mpf(first + j) ** 2) / (2 * mp.mpf(tau) ** 2))
                lower = mp.expm1(j / sigma2) / mp.expm1(stride / sigma2)
                masses[k] += mass * (1 - lower)
                masses[k + 1] += mass * lower
    return masses[:-1]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("sigma", "tau", "stride"), [(1e7, 1e7, 7), (40.0, 500.0, 3), (60.0, 60.0, 60), (9.0, 30.0, 21)]
)
def test_a_thinned_law_is_what_splitting_each_sum_gives(sigma, tau, stride):
    for centre in (-floor(12 * tau), 0, floor(12 * tau)):
        s = centre + stride * np.arange(-4.0, 5.0)
        exact_masses = split_one_by_one(s, stride, tau, sigma)
        for log_mass, exact in zip(lattice._thinned(s, stride, tau, sigma), exact_masses, strict=True):
            assert abs(mp.mpf(float(log_mass)) - mp.log(exact)) < lattice._ROUND_OFF


@pytest.mark.heavy
def test_hundreds_of_widths_of_large_noise_have_a_price_in_seconds():
    """Losses that need not lie closer than the whole law is wide were once put one noise's width and more apart."""
    sigmas = [1e6 * (1 + i / 1000) for i in range(300)]
    start = process_time()
    price = spend.epsilon(Composed(tuple(DiscreteGaussian(sigma, 1.0) for sigma in sigmas)), 1e-6)
    assert process_time() - start < 10
    assert 1 <= price / spend.epsilon(Composed(tuple(Gaussian(sigma, 1.0) for sigma in sigmas)), 1e-6) < 1 + 1e-3


@pytest.mark.heavy
@given(sigma=st.floats(0.4, 60.0), shifts=st.integers(1, 2000), epsilon=st.floats(0.0, 8.0))
@settings(max_examples=60, deadline=None)
def test_delta_falls_in_epsilon_and_grows_in_shifts(sigma, shifts, epsilon):
    here = lattice.log_delta(epsilon, sigma, shifts)
    assert lattice.log_delta(epsilon * 1.05 + 0.01, sigma, shifts) <= here + 1e-9
    assert lattice.log_delta(epsilon, sigma, shifts + 1) >= here - 1e-9


def test_sums_beyond_the_floats_are_bounded_by_the_tail_of_the_noise():
    value = lattice.log_delta(46.8, 2.1e7, 64)
    assert value == pytest.approx(-((46.8 * 2.1e7) ** 2) / (2 * 64), rel=1e-6)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("l2_sensitivity", "shifts"), [(1, 1), (2**0.5, 2), (3**0.5, 3), (2, None), (1.2, None)])
def test_only_one_two_and_three_unit_shifts_are_determined(l2_sensitivity, shifts):
    assert lattice.unit_shifts(l2_sensitivity) == shifts


@pytest.mark.heavy
@pytest.mark.parametrize("sigma", [1.0, 40.0, 1000.0])
def test_a_hundred_thousand_answers_are_priced_in_a_second(sigma):
    start = process_time()
    spend.epsilon(Repeated(DiscreteGaussian(sigma, 2**0.5), 100_000), 1e-6)
    assert process_time() - start < 1.0


def coin(epsilon):
    p = 1 / (1 + np.exp(-epsilon))
    return LossLaw(losses=np.array([-epsilon, epsilon]), log_weights=np.log([1 - p, p]))


FEW_ATOMS = [
    (Composed((DiscreteGaussian(1.0, 1), DiscreteGaussian(1.7, 1))), [noise_pair(1.0), noise_pair(1.7)]),
    (Composed((DiscreteGaussian(2.0, 1), PureDP(0.4))), [noise_pair(2.0), response_pair(0.4)]),
    (
        Composed((Repeated(DiscreteGaussian(2.0, 1), 2), Repeated(PureDP(0.4), 2), ApproxDP(0.3, 1e-4))),
        [noise_pair(2.0)] * 2 + [response_pair(0.4)] * 2 + [approx_pair(0.3, 1e-4)],
    ),
    (
        Composed((DiscreteGaussian(2.3, 2**0.5), DiscreteLaplace(3.0, 1), ApproxDP(0.2, 0.01))),
        [noise_pair(2.3), noise_pair(2.3), laplace_pair(3.0), approx_pair(0.2, 0.01)],
    ),
]
WIDE = Composed((Repeated(DiscreteGaussian(20.0, 1), 40), DiscreteGaussian(30.0, 1), Repeated(PureDP(0.1), 3)))
EXACT = [
    (Composed((PureDP(0.3), PureDP(0.5), PureDP(0.7))), [response_pair(e) for e in (0.3, 0.5, 0.7)]),
    (Repeated(ApproxDP(0.3, 1e-3), 4), [approx_pair(0.3, 1e-3)] * 4),
    (Repeated(DiscreteLaplace(2.0, 1), 3), [laplace_pair(2.0)] * 3),
]


@pytest.mark.default_cases(6)
@pytest.mark.parametrize(("event", "pairs"), [*FEW_ATOMS, *EXACT])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 1.3])
def test_a_mixture_of_few_atoms_or_with_a_lattice_is_never_below_enumeration_and_exact(event, pairs, epsilon):
    truth = delta_of(pairs, epsilon)
    assert truth <= delta(event, epsilon) <= truth * (1 + 1e-9)
    assert event in [exact for exact, _ in EXACT] or explain(event, 0.02)[1] == "loss distribution"


@pytest.mark.heavy
@pytest.mark.parametrize("epsilon", [1.0, 0.3, 2.0])
def test_a_wide_mixture_on_the_grid_is_never_below_the_product_of_its_laws_and_close_to_it(epsilon, monkeypatch):
    on_the_grid = delta(WIDE, epsilon)
    monkeypatch.setattr(spend, "_ATOMS", 10**8)
    exact = delta(WIDE, epsilon)
    assert on_the_grid != exact
    assert 1 - 1e-12 <= on_the_grid / exact < 1 + 2e-6


def test_gaussian_noise_and_pure_rounds_are_exact():
    parts = [(Gaussian(20.0, 1.0), 100), (PureDP(0.1), 30)]
    event = Composed(tuple(Repeated(*part) for part in parts))
    assert explain(event, 1e-5)[1] == "mixture"
    assert 1 <= delta(event, 1.0) / true_delta(parts, 1.0) < 1 + 1e-9


def test_forgetting_the_delta_of_one_part_would_show():
    event, without = Repeated(ApproxDP(0.1, 1e-4), 5), Repeated(PureDP(0.1), 5)
    exact = delta_of([approx_pair(0.1, 1e-4)] * 5, 0.4)
    assert delta(event, 0.4) >= exact > delta(without, 0.4) + 4e-4


def test_rounding_losses_down_would_show():
    losses = np.array([-0.37, 0.37])
    honest = on_grid([coin(0.37)] * 3, tilt=3.0, mu=0.0).log_delta(0.5)
    shifted = LossLaw(losses=losses - 1e-3, log_weights=coin(0.37).log_weights)
    exact = float(np.log(delta_of([response_pair(0.37)] * 3, 0.5)))
    assert honest >= exact - 1e-13
    assert on_grid([shifted] * 3, tilt=3.0, mu=0.0).log_delta(0.5) < exact - 1e-4


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("mu", [0.0, 0.6])
@pytest.mark.parametrize("tilt", [0.5, 2.0, 6.0])
def test_the_grid_and_the_outer_product_agree(mu, tilt):
    laws = [coin(0.21), coin(0.34), coin(0.05)]
    exact = LossLaw(losses=np.zeros(1), log_weights=np.zeros(1), mu=mu)
    for law in laws:
        exact = outer(exact, law)
    grid = on_grid(laws, tilt=tilt, mu=mu)
    for epsilon in (0.0, 0.1, 0.4, 0.55):
        assert -1e-11 < grid.log_delta(epsilon) - exact.log_delta(epsilon) < 1e-5


def test_a_continuous_part_beside_a_point_is_the_gaussian_curve():
    law = LossLaw(losses=np.zeros(1), log_weights=np.zeros(1), mu=0.9)
    assert law.log_delta(1.0) == pytest.approx(float(continuous(1.0, 0.9)), abs=1e-12)


def test_a_rare_high_loss_beyond_the_window_is_charged_as_infinite():
    spike = LossLaw(losses=np.array([0.0, 500.0]), log_weights=np.log([1 - 1e-45, 1e-45]))
    assert on_grid([spike, coin(0.1)], tilt=1e-3, mu=0.0).log_delta(1.0) >= np.log(1e-45) - 1e-9


def in_fours(sigma, shifts, times, epsilon):
    tilt = epsilon * sigma**2 / (shifts * times) - 0.5  # puts ε in the middle
    step = loss.coarse_step(tilt, times)
    losses, log_weights, beyond = discrete_gaussian.sum_law(sigma, shifts, tilt, step=step)
    law = LossLaw(losses=losses, log_weights=log_weights, beyond=beyond)
    return loss.by_fours([law] * times, tilt, 0.0).log_delta(epsilon)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("sigma", "shifts", "times", "epsilon"),
    [(0.7, 1, 40, 60.0), (3.0, 2, 333, 60.0), (40.0, 1, 500, 3.0), (1000.0, 2, 64, 0.05), (2000.0, 1, 5, 0.006)],
)
def test_a_tree_of_laws_is_above_the_exact_sum_by_little(sigma, shifts, times, epsilon):
    """Against the exact law of the sum of equal noises, which is computed in another file and another way."""
    exact = discrete_gaussian.log_delta(epsilon, sigma, shifts * times)
    levels = 1 + np.log(times) / np.log(4)
    assert 0 <= in_fours(sigma, shifts, times, epsilon) - exact < 2e-4 * levels


@pytest.mark.heavy
def test_a_tree_that_rounds_losses_down_is_found_out(monkeypatch):
    def down(law, tilt, step):
        low = float(law.losses[0])
        moved = low + step * np.floor((law.losses - low) / step)
        return split(LossLaw(losses=moved, log_weights=law.log_weights, beyond=law.beyond), tilt, step)

    split = loss._split
    monkeypatch.setattr(loss, "_split", down)
    assert in_fours(40.0, 1, 500, 3.0) < discrete_gaussian.log_delta(3.0, 40.0, 500) - 0.01


@pytest.mark.heavy
def test_a_thousand_distinct_deviations_are_priced_by_their_laws():
    events = [DiscreteGaussian(40 + i / 10, 1) for i in range(1_000)]
    priced, rule = explain(Composed(tuple(events)), 1e-5)
    # noise of σ ≥ 40 in votes is continuous noise to 10 digits, and that composition has a closed form
    exact, _ = explain(Composed(tuple(Gaussian(each.sigma, 1) for each in events)), 1e-5)
    assert rule == "loss distribution"
    assert 0 <= priced / exact - 1 < 2e-4
