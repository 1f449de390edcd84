import mpmath as mp
import numpy as np
import pytest
from enumeration import approx_pair, delta_of, laplace_pair, noise_pair, response_pair

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
from quorate.accounting.gaussian import log_delta as gaussian_log_delta
from quorate.accounting.loss import LossLaw, on_grid, outer


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


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("event", "pairs"), FEW_ATOMS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.3])
def test_a_mixture_with_a_lattice_is_never_below_enumeration_and_exact(event, pairs, epsilon):
    ratio = delta(event, epsilon) / delta_of(pairs, epsilon)
    assert 1 <= ratio < 1 + 1e-9
    assert explain(event, 0.02)[1] == "loss distribution"


@pytest.mark.heavy
@pytest.mark.parametrize("epsilon", [1.0, 0.3, 2.0])
def test_a_wide_mixture_on_the_grid_is_never_below_the_product_of_its_laws_and_close_to_it(epsilon, monkeypatch):
    on_the_grid = delta(WIDE, epsilon)
    monkeypatch.setattr(spend, "_ATOMS", 10**8)
    exact = delta(WIDE, epsilon)
    assert on_the_grid != exact
    assert 1 - 1e-12 <= on_the_grid / exact < 1 + 2e-6


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("event", "pairs"), EXACT)
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_a_mixture_of_few_atoms_is_exact(event, pairs, epsilon):
    ratio = delta(event, epsilon) / delta_of(pairs, epsilon)
    assert 1 <= ratio < 1 + 1e-9


def test_gaussian_noise_and_pure_rounds_are_exact():
    event = Composed((Repeated(Gaussian(20.0, 1.0), 100), Repeated(PureDP(0.1), 30)))
    with mp.workdps(50):
        mu, e0, total = mp.mpf(1) / 2, mp.mpf("0.1"), mp.mpf(0)
        p = 1 / (1 + mp.exp(-e0))
        for i in range(31):
            gap = 1 - (2 * i - 30) * e0
            curve = mp.ncdf(mu / 2 - gap / mu) - mp.exp(gap) * mp.ncdf(-mu / 2 - gap / mu)
            total += mp.binomial(30, i) * p**i * (1 - p) ** (30 - i) * curve
    assert explain(event, 1e-5)[1] == "mixture"
    assert 1 <= delta(event, 1.0) / total < 1 + 1e-9


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
    assert law.log_delta(1.0) == pytest.approx(float(gaussian_log_delta(1.0, 0.9)), abs=1e-12)


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
