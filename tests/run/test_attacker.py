"""The picture of the best attack is that of the run's own price: never more hopeful than the truth, and near it."""

import numpy as np
import pytest
from scipy.stats import norm

from quorate.accounting import DiscreteGaussian, Gaussian, Guarantee, PureDP, Repeated
from quorate.accounting.attacker import miss_rate
from quorate.run.facts import attack_curve

DELTA = 1e-5


@pytest.mark.parametrize(("sigma", "epsilon"), [(4.0, 1.0), (2.0, 2.0), (16.0, 0.25), (0.4, 12.0)])
def test_of_gaussian_noise_it_is_below_the_exact_curve_and_close_to_it(sigma, epsilon):
    """Exactly: Φ(Φ⁻¹(1 − α) − Δ/σ), Dong, Roth and Su (2022), Definition 2.1."""
    curve = attack_curve(Gaussian(sigma, 1.0), epsilon, DELTA)
    exact = norm.cdf(norm.ppf(1 - np.array(curve.false_alarms)) - 1 / sigma)
    assert (np.array(curve.misses) <= exact + 1e-9).all()
    drawn = np.array(curve.false_alarms) >= 0.003  # to the left of that a picture shows nothing
    assert (np.array(curve.misses) >= exact - 0.02)[drawn].all()
    apart = 1000 * norm.cdf(1 / (2 * sigma))
    assert apart <= curve.told_apart < apart + 1.1


def test_of_pure_noise_it_is_the_two_lines_of_its_one_epsilon():
    curve = attack_curve(PureDP(1.0), 1.0, DELTA)
    assert curve.misses == pytest.approx([miss_rate(1.0, 0.0, each) for each in curve.false_alarms], abs=1e-9)


def test_beside_a_guarantee_of_more_the_pairs_of_worlds_are_not_told():
    """A ledger with another run, or with an estimate: 554 beside its 925 would be read as what all of it leaves."""
    event = Gaussian(3.73, 1.0)
    how = {"unit": "record", "neighbours": "replace one record", "mechanism": "votes", "accounting": "exact"}
    pairs = ((0.999, DELTA), (1.5, DELTA), (1.0, 2 * DELTA))
    of_it, of_more, of_more_delta = (Guarantee(epsilon=epsilon, delta=delta, **how) for epsilon, delta in pairs)
    told = attack_curve(event, 1.0, DELTA, beside=of_it)
    assert (told.told_apart, told.allowed) == (554, 732)
    for more in (of_more, of_more_delta):
        curve = attack_curve(event, 1.0, DELTA, beside=more)
        assert (curve.told_apart, curve.allowed) == (None, None)
        assert curve.misses == told.misses


def test_it_is_of_all_answers_together():
    one, many = DiscreteGaussian(40.0, 1.0), Repeated(DiscreteGaussian(40.0, 1.0), 100)
    assert attack_curve(many, 1.0, DELTA).recognised(0.05) > attack_curve(one, 1.0, DELTA).recognised(0.05)
    assert attack_curve(many, 1.0, DELTA).recognised(0.05) == pytest.approx(
        attack_curve(Gaussian(4.0, 1.0), 1.0, DELTA).recognised(0.05), abs=0.01
    )
