import mpmath as mp
import numpy as np
import pytest

from quorate.accounting.gaussian import delta_of_gaussian, epsilon_of_gaussian, log_delta, mu_of_gaussian


def exact_delta(epsilon, mu):
    with mp.workdps(60):
        epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


GRID = [(e, m) for m in (0.001, 0.03, 0.28, 1.0, 4.0, 30.0) for e in (-3.0, -0.01, 0.0, 1e-3, 0.3, 1.0, 5.0, 60.0)]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("epsilon", "mu"), GRID)
def test_the_curve_agrees_with_sixty_digits_and_is_never_below(epsilon, mu):
    exact = exact_delta(epsilon, mu)
    if exact < mp.mpf(10) ** -280:
        assert float(log_delta(epsilon, mu)) >= float(mp.log(exact)) - 1e-6
        return
    ratio = mp.exp(mp.mpf(float(log_delta(epsilon, mu)))) / exact
    assert ratio >= 1 or (epsilon < 0 and ratio >= 1 - mp.mpf(10) ** -15)
    assert ratio - 1 < 1e-9


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("mu", [0.01, 0.28, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.01, 0.3])
def test_epsilon_is_the_least_that_holds(mu, delta):
    epsilon = epsilon_of_gaussian(delta, mu)
    if epsilon == 0:
        assert exact_delta(0, mu) <= delta
        return
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon * (1 - 1e-9), mu) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1 / 39073), (0.1, 1e-9), (8.0, 1e-5), (1e-3, 1e-9)])
def test_mu_is_the_largest_that_holds(epsilon, delta):
    mu = mu_of_gaussian(epsilon, delta)
    assert exact_delta(epsilon, mu) <= delta
    assert exact_delta(epsilon, mu * (1 + 1e-9)) > delta


def test_the_published_figures():
    assert round(epsilon_of_gaussian(1 / 39073, 977**0.5 / 40), 2) == 3.12
    assert round(epsilon_of_gaussian(1 / 39073, (2 * 977) ** 0.5 / 40), 2) == 4.67
    assert round(977**0.5 / mu_of_gaussian(1.0, 1 / 39073), 3) == 109.872


def test_forgetting_the_root_of_two_would_show():
    mu = (2 * 977) ** 0.5 / 40
    cheat = epsilon_of_gaussian(1 / 39073, 977**0.5 / 40)
    assert exact_delta(cheat, mu) > 10 / 39073


def test_an_array_gives_what_its_members_give():
    epsilons = np.array([-30.0, -1.0, 0.0, 2.0, 50.0])
    one_by_one = [float(log_delta(e, 0.7)) for e in epsilons]
    assert np.array_equal(log_delta(epsilons, 0.7), one_by_one)


def test_no_delta_and_no_noise_are_told_apart():
    assert epsilon_of_gaussian(0.0, 1.0) == float("inf")
    assert epsilon_of_gaussian(1e-5, 0.0) == 0.0
    assert delta_of_gaussian(1.0, 0.0) == 0.0
