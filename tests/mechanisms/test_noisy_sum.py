"""Noisy sums: exact laws, the sensitivity of every pair of contributions, and how far the noise reaches."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.accounting import DiscreteGaussian, DiscreteLaplace, Repeated, delta, epsilon, zcdp
from quorate.errors import InvalidParameter
from quorate.ledger.budget import units_down
from quorate.ledger.pricing import price
from quorate.mechanisms import NoisySum
from quorate.noise import OSNoise, SeededNoise

N = 60_000
KINDS = ["laplace", "gaussian"]
every_kind = pytest.mark.parametrize("noise", KINDS)


def law_of(exact, noise, steps):
    return exact.laplace(steps) if noise == "laplace" else exact.gaussian(steps)


def contributions(n_cells, grid):
    """Every vector of non-negative steps that add up to at most the grid."""
    return [np.array(c) for c in product(range(grid + 1), repeat=n_cells) if sum(c) <= grid]


def p_value(exact, answers, expected_steps, noise):
    z, p = law_of(exact, noise, expected_steps)
    inside = np.clip(answers, z[0], z[-1]) - z[0]
    return exact.fit(inside, p)


@every_kind
@pytest.mark.parametrize("form", ["single", "shares"])
def test_the_noise_has_its_exact_law_in_grid_steps(exact, noise, form):
    mechanism = NoisySum(scale=0.7, grid=5, form=form, noise=noise)
    sums = np.full((N, 1 if form == "single" else 2), 40, dtype=np.int64)
    answers = mechanism.release_many(sums, SeededNoise(1)).ravel() - 40

    assert p_value(exact, answers, 3.5, noise) > exact.FALSE_ALARM


@every_kind
def test_that_test_catches_noise_in_whole_contributions_or_a_little_less_of_it(exact, noise):
    """A cheat that forgets the grid draws noise of 0.7 steps where 3.5 are due."""
    sums = np.full((N, 1), 40, dtype=np.int64)
    for scale in (0.7 / 5, 0.66):
        answers = NoisySum(scale=scale, grid=5, noise=noise).release_many(sums, SeededNoise(2)) - 40
        assert p_value(exact, answers, 3.5, noise) < exact.FALSE_ALARM


def test_cells_of_one_release_have_noise_of_their_own():
    noisy = NoisySum(scale=2.0, grid=10, form="shares").release_many(np.zeros((20_000, 2), np.int64), SeededNoise(3))

    assert abs(np.corrcoef(noisy.T)[0, 1]) < 5 / np.sqrt(20_000)  # false alarm 6e-7


@pytest.mark.parametrize("grid", [1, 3, 1000])
def test_events_say_what_was_drawn(grid):
    steps = 2.5 * grid
    assert NoisySum(2.5, grid).event == DiscreteLaplace(steps, grid)
    assert NoisySum(2.5, grid, "shares").event == Repeated(DiscreteLaplace(steps, grid), 2)
    assert NoisySum(2.5, grid, noise="gaussian").event == DiscreteGaussian(steps, grid)
    assert epsilon(NoisySum(2.5, grid).event, 0) == pytest.approx(1 / 2.5)
    assert epsilon(NoisySum(2.5, grid, "shares").event, 0) == pytest.approx(2 / 2.5)
    assert zcdp(NoisySum(2.5, grid, noise="gaussian").event) == pytest.approx(1 / (2 * 2.5**2))
    assert zcdp(NoisySum(2.5, grid, "shares", "gaussian").event) == pytest.approx(1 / 2.5**2)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(("n_cells", "grid"), [(1, 3), (2, 3), (3, 2), (4, 1)])
@pytest.mark.parametrize("noise", KINDS)
def test_no_pair_of_contributions_loses_more_than_the_event_says(exact, n_cells, grid, noise):
    """Every hockey-stick divergence of the exact law, for every pair of contributions, against the priced δ(ε)."""
    mechanism = NoisySum(0.8, grid, "single" if n_cells == 1 else "shares", noise)
    z, p = law_of(exact, noise, 0.8 * grid)
    with np.errstate(divide="ignore"):
        logs = np.log(p)
    shifts = {abs(a - b) for a in range(grid + 1) for b in range(grid + 1)}
    losses = {}  # of one cell that moves by d: pairs (loss, probability); the laws are symmetric
    for d in shifts:
        there = np.full(len(z), -np.inf)
        there[d:] = logs[: len(z) - d]
        losses[d] = (logs - there, p)
    worst = {}
    for a, b in product(contributions(n_cells, grid), repeat=2):
        moves = tuple(sorted(int(d) for d in np.abs(a - b) if d))
        worst.setdefault(moves, None)
    for at in (0.3, 1.0, 2.0):
        priced = delta(mechanism.event, at)
        reached = max(hockey_stick([losses[d] for d in moves], at) for moves in worst)
        assert reached <= priced + 1e-9
        assert reached > 0.3 * priced or priced == 0


def hockey_stick(cells, at):
    loss, mass = np.zeros(1), np.ones(1)
    for other, p in cells:
        keep = p > 1e-13
        loss = np.add.outer(loss, other[keep]).ravel()
        mass = np.multiply.outer(mass, p[keep]).ravel()
        loss, back = np.unique(np.round(loss, 9), return_inverse=True)
        mass = np.bincount(back, weights=mass)
    gain = np.where(loss > at, -np.expm1(at - loss), 0.0)
    return float((gain * mass).sum())


@pytest.mark.parametrize("twin", ["twice the contribution", "half the noise"])
def test_that_test_catches_a_contribution_outside_the_grid_and_too_little_noise(exact, twin):
    steps, move = (0.8 * 3, 6) if twin == "twice the contribution" else (0.4 * 3, 3)
    z, p = exact.laplace(steps)
    logs = np.log(p)
    there = np.full(len(z), -np.inf)
    there[move:] = logs[:-move]

    assert hockey_stick([(logs - there, p)], 1.0) > delta(NoisySum(0.8, 3).event, 1.0) + 1e-3


@pytest.mark.parametrize(("n_cells", "grid"), [(2, 4), (3, 3)])
def test_shares_of_two_neighbours_are_never_further_apart_than_the_event_says(n_cells, grid):
    far = [
        (int(np.abs(a - b).sum()), int(((a - b) ** 2).sum()))
        for a, b in product(contributions(n_cells, grid), repeat=2)
    ]

    assert max(l1 for l1, _ in far) == 2 * grid
    assert max(l2 for _, l2 in far) == 2 * grid**2
    assert NoisySum(1.0, grid, "shares", "gaussian").event.l2_sensitivity ** 2 >= 2 * grid**2


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-3, 1e-9])
@pytest.mark.parametrize("steps", [0.3, 1.0, 7.5, 60.0])
@every_kind
def test_reach_holds_with_the_stated_probability(exact, noise, steps, failure):
    z, p = law_of(exact, noise, steps)
    reach = NoisySum(scale=steps, grid=1, noise=noise).reach(failure)

    assert p[np.abs(z) > reach].sum() <= failure
    if noise == "laplace" and reach:
        assert p[np.abs(z) > reach - 1].sum() > failure * (1 - 1e-6)  # the least such bound
    if noise == "gaussian":
        assert p[np.abs(z) > reach - 2].sum() > failure * (1 - 1e-6) or reach <= 2


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("n_terms", [2, 3, 10])
@pytest.mark.parametrize("failure", [0.05, 1e-4])
@every_kind
def test_reach_of_several_terms_holds_and_beats_adding_them_up(exact, noise, n_terms, failure):
    mechanism = NoisySum(scale=4.0, grid=1, noise=noise)
    z, p = law_of(exact, noise, 4.0)
    total = np.array([1.0])
    for _ in range(n_terms):
        total = np.convolve(total, p)
    values = np.arange(len(total)) + n_terms * z[0]
    reach = mechanism.reach(failure, n_terms=n_terms)

    assert total[np.abs(values) > reach].sum() <= failure
    assert reach < n_terms * mechanism.reach(failure / n_terms)


@given(eps=st.floats(1e-6, 20), form=st.sampled_from(["single", "shares"]), grid=st.sampled_from([1, 7, 1000]))
def test_what_costs_epsilon_is_charged_at_most_epsilon_and_nearly_all_of_it(eps, form, grid):
    mechanism = NoisySum.costing(eps, grid=grid, form=form)
    charged = price(mechanism.event, composition="sum", delta=0.0).epsilon_e9

    assert units_down(eps, 9) - 1 <= charged <= units_down(eps, 9)


def test_an_unrounded_scale_would_be_charged_a_unit_too_much_somewhere():
    """Why the scale is a hair above 2/ε: without it some budgets are overrun by a billionth."""
    over = [
        eps
        for eps in (k / 100 for k in range(1, 100))
        if price(NoisySum(2 / eps, 1, "shares").event, composition="sum", delta=0.0).epsilon_e9 > units_down(eps, 9)
    ]
    assert over


def test_a_price_that_is_none_and_a_failure_probability_outside_0_and_1_are_refused():
    for act, name, wrong in (
        (NoisySum.costing, "epsilon", (0, -1, 1e-10, float("inf"))),
        (NoisySum(1.0).reach, "failure", (0, 1, -0.1, 1.5)),
    ):
        for bad in (*wrong, float("nan"), True, "0.1", None):
            with pytest.raises(InvalidParameter, match=f"^{name} must be "):
                act(bad)


def test_a_single_sum_is_one_column_of_whole_numbers_and_alone_an_int():
    of_another_kind = (np.array([[each]]) for each in (-1, 0.5, 2**41, True))
    for sums in (*of_another_kind, np.array([[3, 4]]), np.array([[3]], dtype=np.int32), np.array([3]), [[3]], None):
        with pytest.raises(InvalidParameter, match=r"^counts must "):
            NoisySum(1.0).release_many(sums, OSNoise())
    with pytest.raises(InvalidParameter, match=r"^counts must "):
        NoisySum(2.0, 10).release(np.array([[3]]), OSNoise())
    assert type(NoisySum(2.0, 10).release(np.array([3]), OSNoise())) is int


def test_a_noise_too_wide_for_integers_is_refused():
    with pytest.raises(InvalidParameter, match=r"^grid must be at most 2\^40 / scale"):
        NoisySum(scale=2.0**30, grid=2**20)
