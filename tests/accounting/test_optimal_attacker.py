"""The curve of an optimal attacker: against the Gaussian's closed form, and never above what the guarantee leaves."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from scipy.stats import norm

from quorate.accounting import DiscreteGaussian, Gaussian, PureDP, Repeated, miss_rate, trade_off, trade_off_of
from quorate.accounting.optimal_attacker import FALSE_ALARMS
from quorate.errors import InvalidParameter


@pytest.mark.parametrize("mu", [0.1, 0.3, 1.0, 2.0])
def test_that_of_a_gaussian_is_the_closed_form_from_below(mu: float) -> None:
    truth = norm.cdf(norm.ppf(1 - np.asarray(FALSE_ALARMS)) - mu)
    drawn = np.asarray(trade_off(Gaussian(1 / mu, 1.0)).misses)
    assert np.all(drawn <= truth + 1e-9)
    assert np.max(truth - drawn) < 0.02  # as close as the grid of ε draws it


def test_a_curve_that_promises_more_than_the_truth_is_caught() -> None:
    truth = norm.cdf(norm.ppf(1 - np.asarray(FALSE_ALARMS)) - 1.0)
    assert not np.all(np.asarray(trade_off(Gaussian(1.1, 1.0)).misses) <= truth + 1e-9)


def test_many_answers_are_one_gaussian() -> None:
    one, many = Gaussian(2.0, 1.0), Repeated(DiscreteGaussian(40.0, 1.0), 400)  # 40/√400 = 2
    np.testing.assert_allclose(trade_off(one).misses, trade_off(many).misses, atol=1e-3)


def test_randomized_response_is_two_lines() -> None:
    drawn = trade_off(PureDP(1.0), (0.0, 0.1, 1 / (1 + exp(1)), 0.9))
    np.testing.assert_allclose(drawn.misses, [1.0, 1 - 0.1 * exp(1), 1 / (1 + exp(1)), exp(-1) * 0.1], atol=1e-9)


def test_one_guarantee_is_its_own_rate_of_misses_and_more_points_never_leave_the_attacker_more() -> None:
    alone = trade_off_of([(1.0, 1e-5)], FALSE_ALARMS)
    assert alone.misses == tuple(miss_rate(1.0, 1e-5, alpha) for alpha in FALSE_ALARMS)
    more = trade_off_of([(1.0, 1e-5), (0.1, 0.05)], FALSE_ALARMS)
    assert all(a <= b for a, b in zip(alone.misses, more.misses, strict=True))
    assert more.advantage <= alone.advantage


def test_no_prices_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least one"):
        trade_off_of([])
