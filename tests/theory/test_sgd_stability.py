"""Stability of gradient descent: exact for linear losses, by simulation for logistic ones, and the printed numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from quorate import theory
from quorate.errors import InvalidParameter

few = settings(max_examples=25)


def one_pass(rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Logistic loss log(1 + e^(−w·z)), |z| ≤ 1, one step a row in the given order; any number of tables at once."""
    w = np.zeros((*rows.shape[:-2], rows.shape[-1]))
    for t, step in enumerate(steps):
        z = rows[..., t, :]
        w = w + step * z / (1 + np.exp((w * z).sum(axis=-1)))[..., None]
    return w


def average_change(n: int, steps: np.ndarray, trials: int, rng: np.random.Generator) -> np.ndarray:
    """For each trial by how much a replaced random row moves the parameters of one pass."""
    rows = rng.normal(size=(trials, n, 3))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    other = rows.copy()
    fresh = rng.normal(size=(trials, 3))
    other[np.arange(trials), rng.integers(n, size=trials)] = fresh / np.linalg.norm(fresh, axis=-1, keepdims=True)
    return np.linalg.norm(one_pass(rows, steps) - one_pass(other, steps), axis=-1)


@pytest.mark.parametrize("falling", [False, True])
def test_one_pass_without_any_coin_is_on_average_stable(falling: bool) -> None:
    n = 40
    steps = 2.0 / np.arange(1, n + 1) if falling else np.full(n, 0.5)  # at most 2/β = 8
    bound = theory.btt18a_theorem_2(theory.hrs16_convex_parameters(1.0, 0.25, steps, n))
    change = average_change(n, steps, 4_000, np.random.default_rng(1))
    assert change.mean() + 6 * change.std() / math.sqrt(4_000) <= bound
    assert change.mean() > bound / 8, "and the bound is not far off"


def test_without_shuffling_it_is_not_uniformly_stable_by_the_same_number() -> None:
    """Linear losses w·z, z = ±1: row 1 moves w by 2α₁, the rows on average by α_t; by hand."""
    n = 50
    steps = 1 / np.arange(1, n + 1)
    bound = theory.btt18a_theorem_2(theory.hrs16_convex_parameters(1.0, 0.0, steps, n))
    assert 2 * steps[0] > 10 * bound, "the first row alone"
    assert steps.mean() == pytest.approx(bound / 2), "E|z − z'| = 1 in the mean over rows, exactly"


def test_a_claim_of_less_than_that_is_caught() -> None:
    rng = np.random.default_rng(2)
    n = 20
    steps = np.full(n, 0.5)
    rows, fresh = rng.choice([-1, 1], size=(2_000, n)), rng.choice([-1, 1], size=2_000)
    place = rng.integers(n, size=2_000)
    change = steps[place] * np.abs(rows[np.arange(2_000), place] - fresh)
    claimed = 0.8 * theory.hrs16_convex_parameters(1.0, 0.0, steps, n) / 2
    assert stats.ttest_1samp(change, claimed, alternative="greater").pvalue < 1e-6


def test_the_numbers_of_the_convex_theorem_and_its_condition() -> None:
    assert theory.hrs16_convex_parameters(3.0, 4.0, [0.5, 0.25], 30) == pytest.approx(2 * 3 * 0.75 / 30)
    assert theory.hrs16_convex(3.0, 4.0, [0.5, 0.25], 30) == pytest.approx(2 * 9 * 0.75 / 30)
    assert theory.hrs16_convex(3.0, 0.0, [100.0], 30) == pytest.approx(60)
    with pytest.raises(InvalidParameter, match=r"^steps must be a number > 0 and <= 0\.5"):
        theory.hrs16_convex(3.0, 4.0, [0.6], 30)


@few
@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0.1, 3), st.integers(1, 10_000), st.integers(2, 10_000))
def test_the_non_convex_bound_is_the_best_step_at_which_the_changed_row_may_be_met(
    lipschitz: float, smoothness: float, c: float, steps: int, n: int
) -> None:
    """min over t₀ of t₀/(n−1) + 2L²/(β(n−1)) (T/t₀)^(βc), which the printed form solves."""
    power = smoothness * c

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        return (t + 2 * lipschitz**2 / smoothness * (steps / t) ** power) / (n - 1)

    found = optimize.minimize_scalar(bound, bounds=(-30, 30), method="bounded", options={"xatol": 1e-9})
    assert theory.hrs16_non_convex(lipschitz, smoothness, c, steps, n) == pytest.approx(found.fun, rel=1e-6)


def test_more_steps_and_fewer_rows_are_less_stable() -> None:
    values = [theory.hrs16_non_convex(1.0, 1.0, 0.5, steps, n) for steps, n in ((10, 1_000), (100, 1_000), (100, 100))]
    assert values == sorted(values)
