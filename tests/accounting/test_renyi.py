from math import exp, inf, log

import numpy as np
import pytest
from enumeration import laplace_pair, noise_pair, response_pair
from scipy.optimize import minimize_scalar

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PureDP,
    Repeated,
    delta_of_zcdp,
    epsilon_of_zcdp,
    rdp,
    zcdp,
)
from quorate.accounting.gaussian import epsilon_of_gaussian, log_delta
from quorate.accounting.renyi import delta_of_curve, epsilon_of_curve
from quorate.errors import InvalidParameter, UnsupportedEvent

ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 40.0])


def divergence(pair, order):
    p, q = pair
    both = (p > 0) & (q > 0)
    return float(np.log(np.sum(p[both] ** order * q[both] ** (1 - order))) / (order - 1))


@pytest.mark.parametrize(
    ("event", "pair", "exact"),
    [
        (PureDP(0.7), response_pair(0.7), True),
        (DiscreteLaplace(3.0, 1.0), laplace_pair(3.0), True),
        (DiscreteGaussian(2.0, 1.0), noise_pair(2.0), False),
        (DiscreteGaussian(0.6, 1.0), noise_pair(0.6), False),
    ],
)
def test_the_curve_covers_the_divergence_and_meets_it_where_exact(event, pair, exact):
    for order, bound in zip(ORDERS[:4], rdp(event, ORDERS[:4]), strict=True):
        truth = divergence(pair, order)
        assert bound >= truth * (1 - 1e-9)
        assert not exact or bound == pytest.approx(truth, rel=1e-9)


def test_curves_add():
    parts = (Gaussian(3, 1), DiscreteGaussian(4, 2**0.5), DiscreteLaplace(5, 1), PureDP(0.2))
    total = sum(rdp(part, ORDERS) for part in parts)
    assert np.allclose(rdp(Composed(parts), ORDERS), total, rtol=1e-14)
    assert np.allclose(rdp(Repeated(Composed(parts), 7), ORDERS), 7 * total, rtol=1e-14)
    assert np.array_equal(rdp(Composed(()), ORDERS), np.zeros(5))
    assert np.array_equal(rdp(Repeated(ApproxDP(1, 0.1), 0), ORDERS), np.zeros(5))


def test_rho_covers_the_curve_and_adds():
    parts = (Gaussian(3, 1), DiscreteGaussian(4, 2**0.5), DiscreteLaplace(5, 1), PureDP(0.2), ApproxDP(0.3, 0.0))
    assert np.all(rdp(Composed(parts), ORDERS) <= ORDERS * zcdp(Composed(parts)))
    assert zcdp(Repeated(Composed(parts), 3)) == pytest.approx(3 * sum(zcdp(part) for part in parts), rel=1e-14)
    assert zcdp(Composed(())) == zcdp(Repeated(ApproxDP(1, 0.1), 0)) == 0.0
    assert zcdp(DiscreteGaussian(10, 1)) == pytest.approx(1 / 200, rel=1e-12)


def test_an_approximate_event_has_no_rho_and_an_infinite_curve():
    with pytest.raises(UnsupportedEvent, match="no zCDP bound"):
        zcdp(Composed((PureDP(1), ApproxDP(0.1, 1e-9))))
    assert np.all(rdp(ApproxDP(0.1, 1e-9), ORDERS) == inf)
    assert np.array_equal(rdp(ApproxDP(0.1, 0), ORDERS), rdp(PureDP(0.1), ORDERS))


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_the_best_order_is_found_continuously(rho, delta):
    def at(log_order_less_one):
        a = 1 + exp(log_order_less_one)
        return a * rho + log(1 - 1 / a) - log(delta * a) / (a - 1)

    best = min(minimize_scalar(at, bracket=(x, x + 1)).fun for x in range(-6, 12))
    assert epsilon_of_zcdp(rho, delta) == pytest.approx(max(best, 0.0), rel=1e-9, abs=1e-12)
    on_a_grid = min(at(log(a - 1)) for a in range(2, 40))
    assert epsilon_of_zcdp(rho, delta) <= max(on_a_grid, 0) * (1 + 1e-12)


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5])
def test_zcdp_converts_both_ways(rho):
    assert delta_of_zcdp(rho, epsilon_of_zcdp(rho, 1e-6)) == pytest.approx(1e-6, rel=1e-6)
    assert epsilon_of_zcdp(0.0, 1e-6) == delta_of_zcdp(0.0, 1.0) == 0.0
    assert epsilon_of_zcdp(rho, 0.0) == inf


def test_the_conversion_covers_a_mechanism_whose_price_is_known():
    for mu in (0.1, 1.0, 3.0):
        rho = mu * mu / 2
        assert epsilon_of_zcdp(rho, 1e-5) > epsilon_of_gaussian(1e-5, mu)
        assert delta_of_zcdp(rho, 2.0) > exp(log_delta(2.0, mu))
    assert epsilon_of_curve(lambda a: a * 0, 1e-5)[0] == 0.0
    assert delta_of_curve(lambda a: a * 0, 1.0)[0] < 1e-100


def test_half_the_rho_would_show():
    from quorate.accounting.gaussian import epsilon_of_gaussian

    assert epsilon_of_zcdp(0.25, 1e-5) < epsilon_of_gaussian(1e-5, 1.0)


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("bad", [[1.0], [0.5, 2.0], [float("nan")], [float("inf")], 2.0, [[2.0]], ["2"], [True]])
def test_orders_must_be_a_row_of_numbers_above_one(bad):
    with pytest.raises(InvalidParameter, match="orders must"):
        rdp(PureDP(1), bad)
