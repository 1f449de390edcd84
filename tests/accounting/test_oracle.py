"""Our prices between the two bounds of dp-accounting (an upper and a lower one) on random compositions."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from quorate.accounting import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GridGaussian,
    PureDP,
    Repeated,
    delta,
    epsilon,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters

STEP = 5e-4


def oracle(leaf, pessimistic):
    grid = {"value_discretization_interval": STEP, "pessimistic_estimate": pessimistic}
    match leaf:
        case Gaussian():
            return pld.from_gaussian_mechanism(leaf.sigma / leaf.l2_sensitivity, use_connect_dots=pessimistic, **grid)
        case DiscreteGaussian():
            one = pld.from_discrete_gaussian_mechanism(leaf.sigma, use_connect_dots=pessimistic, **grid)
            return one.self_compose(round(leaf.l2_sensitivity**2))
        case DiscreteLaplace():
            return pld.from_discrete_laplace_mechanism(1 / leaf.scale, use_connect_dots=pessimistic, **grid)
        case PureDP():
            parameters = DifferentialPrivacyParameters(leaf.epsilon, 0)
        case _:
            parameters = DifferentialPrivacyParameters(leaf.epsilon, leaf.delta)
    return pld.from_privacy_parameters(parameters, value_discretization_interval=STEP)


def composed_oracle(parts, pessimistic):
    total = None
    for leaf, times in parts:
        part = oracle(leaf, pessimistic).self_compose(times)
        total = part if total is None else total.compose(part)
    return total


def random_parts(rng):
    def leaf():
        match rng.integers(5):
            case 0:
                return Gaussian(rng.uniform(2, 60), rng.choice([1, 2**0.5, 1.7]))
            case 1:
                return DiscreteGaussian(rng.uniform(1, 40), rng.choice([1, 2**0.5]))
            case 2:
                return DiscreteLaplace(float(rng.integers(4, 40)), 1.0)
            case 3:
                return PureDP(round(rng.uniform(0.02, 0.4), 3))
            case _:
                return ApproxDP(round(rng.uniform(0.02, 0.4), 3), 1e-9)

    return [(leaf(), int(rng.integers(1, 20))) for _ in range(rng.integers(1, 4))]


@pytest.mark.heavy
@pytest.mark.heavy_cases(8)
@pytest.mark.parametrize("seed", range(20))
def test_ten_random_compositions_lie_at_or_below_the_upper_bound_of_the_oracle(seed):
    rng = np.random.default_rng(20260821 + seed)
    for _ in range(10):
        parts = random_parts(rng)
        event = Composed(tuple(Repeated(*part) for part in parts))
        at = 10.0 ** -rng.uniform(2, 7)
        ours, upper = epsilon(event, at), composed_oracle(parts, True).get_epsilon_for_delta(at)
        answers = sum(times for _, times in parts)
        assert ours <= upper + 1e-9, parts
        # the oracle rounds each answer up by at most a step, ours by nothing that shows
        assert ours >= upper - STEP * (answers + 2), parts


NOISE = [
    [(Gaussian(20.0, 1.0), 40)],
    [(DiscreteGaussian(5.0, 1.0), 10)],
    [(DiscreteGaussian(30.0, 1.0), 20), (DiscreteGaussian(12.0, 2**0.5), 5)],
    [(DiscreteLaplace(10.0, 1.0), 20)],
    [(Gaussian(10.0, 1.0), 10), (DiscreteGaussian(8.0, 1.0), 5), (DiscreteLaplace(20.0, 1.0), 5)],
]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("parts", NOISE)
@pytest.mark.parametrize("at", [1e-6, 1e-3])
def test_no_price_is_below_the_lower_bound_of_the_oracle(parts, at):
    event = Composed(tuple(Repeated(*part) for part in parts))
    lower = composed_oracle(parts, False)
    assert epsilon(event, at) >= lower.get_epsilon_for_delta(at) * (1 - 1e-9)  # the oracle has round-off too
    assert delta(event, 1.0) >= lower.get_delta_for_epsilon(1.0) * (1 - 1e-9)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("parts", NOISE)
def test_that_test_catches_a_rule_that_forgets_the_root_of_two(parts):
    scales = {Gaussian: "sigma", DiscreteGaussian: "sigma", DiscreteLaplace: "scale"}
    weak = [(replace(leaf, **{name: getattr(leaf, name) * 2**0.5}), times)
            for leaf, times in parts for name in (scales[type(leaf)],)]  # fmt: skip
    cheat = Composed(tuple(Repeated(*part) for part in weak))
    assert epsilon(cheat, 1e-6) < composed_oracle(parts, False).get_epsilon_for_delta(1e-6)


def bounds_of_rounds(one, rounds, at):
    """A lower and an upper bound of ε for rounds of the law that `one` makes."""
    how = {"value_discretization_interval": 1e-4}
    return [
        one(pessimistic_estimate=pessimistic, **how).self_compose(rounds).get_epsilon_for_delta(at)
        for pessimistic in (False, True)
    ]


@pytest.mark.heavy
@pytest.mark.parametrize(("shift", "rounds"), [(256, 8), (64, 16), (30, 12)])
def test_rounds_of_grid_noise_cost_no_less_than_the_discrete_law_that_is_drawn(shift, rounds):
    lower, upper = bounds_of_rounds(
        lambda **how: pld.from_discrete_gaussian_mechanism(2.0**10, sensitivity=shift, **how), rounds, 1e-5
    )
    ours = epsilon(Repeated(GridGaussian(2.0**10, float(shift), 1), rounds), 1e-5)
    assert lower <= ours <= upper * 1.03  # on so coarse a grid its term is a hundredth; on that of runs a millionth


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_rounds_on_the_grid_of_runs_lie_between_the_bounds_of_the_gaussian(share):
    lower, upper = bounds_of_rounds(lambda **how: pld.from_gaussian_mechanism(1 / share, **how), 16, 1e-5)
    assert lower <= epsilon(Repeated(GridGaussian(2.0**31 / share, 2.0**31, 4_000), 16), 1e-5) <= upper
