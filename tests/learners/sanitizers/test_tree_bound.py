"""The tree's bound on its error: each step against a slow version, and the whole against the errors that occur."""

from functools import cache
from itertools import combinations
from math import exp, log

import numpy as np
import pytest

from quorate.audit import DiscreteLaplaceLaw
from quorate.learners.concepts import Intervals, Thresholds
from quorate.learners.sanitizers import Tree, TreePlan, XorQueries, noisy_prefix_counts, prefix_error, tree
from quorate.learners.sanitizers.tree import (
    _RATES,
    _border_log_mgf,
    _border_moments,
    _interval_moments,
    _levels,
    interval_error,
    log_mgf,
)
from quorate.noise import SeededNoise

QUIET = SeededNoise(0)


@pytest.mark.parametrize(("scale", "rate"), [(0.7, 1.0), (4.0, 0.2), (4.0, -0.24), (300.0, 0.003)])
def test_the_moment_generating_function_is_the_sum_over_the_law(scale, rate):
    law = DiscreteLaplaceLaw(scale)
    at = law.support()
    terms = law.log_pmf(at) + rate * at

    assert log_mgf(np.array([rate]), scale)[0] == pytest.approx(np.logaddexp.reduce(terms), rel=1e-9)


def weights_of_noise(plan):
    """``(n_borders, n_noises)``: how much of each noise is in each prefix estimate, by running the tree on units."""
    columns = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "as_monotone", lambda below, n: below)
        sizes, size = [], 1
        for fanout in plan.fanouts:
            size *= fanout
            sizes.append(size)
        for unit in range(sum(sizes)):
            drawn = np.zeros(sum(sizes), dtype=np.int64)
            drawn[unit] = 1000
            parts = iter(np.split(drawn, np.cumsum(sizes)[:-1]))
            patch.setattr(tree, "discrete_laplace", lambda scale, size, source: next(parts).reshape(size))  # noqa: B023
            columns.append(noisy_prefix_counts(np.array([0]), plan, QUIET).below / 1000)
    base = np.ones(plan.size + 1)
    base[0] = 0.0  # the one row, below every border but the first
    return np.array(columns).T - base[:, np.newaxis] / 1000


@pytest.mark.parametrize("fanouts", [(8,), (4, 4), (2, 2, 4), (2, 2, 2, 2)])
def test_no_border_has_a_larger_moment_than_the_bound_takes_for_it(fanouts):
    """Step 1 of the proof: the worst child on every level, at the border of a child."""
    plan = TreePlan(fanouts, scale=5.0)
    weights = weights_of_noise(plan)
    for rate in (0.01, 0.1, 0.19):
        true = log_mgf(rate * weights, plan.scale).sum(axis=1)
        rates = np.array([rate])
        taken = [max(_border_log_mgf(rates, plan.scale, j, k)[0] for j in range(1, k)) for k in fanouts]
        assert true.max() <= sum(taken) + 1e-12
        if len(fanouts) == 1:  # then it is no more than it has to be
            assert true.max() == pytest.approx(sum(taken))


@pytest.mark.parametrize("fanouts", [(8,), (4, 4), (2, 2, 4), (2, 2, 2, 2), (4, 2, 2)])
def test_the_sums_over_borders_and_intervals_are_covered(fanouts):
    """Steps 3 and 4 of the proof on trees that are open everywhere: every border, every pair, both signs."""
    plan = TreePlan(fanouts, scale=5.0)
    weights = weights_of_noise(plan)
    nodes = [int(np.prod(fanouts[:level])) for level in range(len(fanouts))]
    levels = _levels(plan.fanouts, plan.scale)
    for place in (3, 60, 120, 190):
        rate = _RATES[place] / plan.scale
        borders = 2 * sum(exp(log_mgf(rate * row, plan.scale).sum()) for row in weights[1:-1])
        pairs = 2 * sum(
            exp(log_mgf(rate * (weights[t] - weights[s]), plan.scale).sum())
            for s, t in combinations(range(len(weights) - 1), 2)  # up to the end: the complement's error
        )
        taken = [float(np.exp(moments(nodes, levels)[place])) for moments in (_border_moments, _interval_moments)]
        assert borders <= taken[0] * (1 + 1e-9)
        assert pairs <= taken[1] * (1 + 1e-9)
        if len(fanouts) == 1:  # then nothing is given away
            assert [borders, pairs] == pytest.approx(taken)


def test_an_interval_is_bounded_better_than_by_its_two_ends():
    for bits, n in ((4, 1000), (8, 3000), (32, 30_000)):
        plan = TreePlan.for_budget(bits=bits, n=n, epsilon=1.0)
        prefix, interval = (bound(plan, n, 0.1) for bound in (prefix_error, interval_error))
        assert prefix < interval < 1.95 * prefix


def test_a_tree_of_one_level_has_the_bound_of_the_slow_version():
    plan, beta = TreePlan((4,), scale=3.0), 0.05
    best = float("inf")
    for rate in np.linspace(0.01, 0.995, 198) / 3.0:
        total = 0.0
        for j in (1, 2, 3):
            weights = [1 - j / 4] * j + [-j / 4] * (4 - j)
            total += exp(sum(float(log_mgf(np.array([rate * w]), 3.0)[0]) for w in weights))
        best = min(best, log(2 * total / beta) / rate)

    assert prefix_error(plan, 10_000, beta) == pytest.approx(best)


def kuiper(rows, synthetic):
    """The largest error of a difference of two thresholds: over all intervals, by the prefixes at all points."""
    at = np.unique(np.concatenate([rows, synthetic]))
    gap = np.searchsorted(np.sort(rows), at, side="right") / rows.size
    gap = np.append(gap - np.searchsorted(np.sort(synthetic), at, side="right") / synthetic.size, 0.0)
    return gap.max() - gap.min()


def xor_error(concept_class, rows, synthetic):
    """The largest error over C⊕, by brute force over all pairs of concepts on a small domain."""
    queries = xor_queries(concept_class)
    first, second = (queries.counts(queries.histogram(each)) / len(each) for each in (rows, synthetic))
    return float(np.abs(first - second).max())


xor_queries = cache(XorQueries.of)


def test_the_two_ways_to_measure_an_error_agree():
    rng = np.random.default_rng(5)
    rows, synthetic = rng.integers(0, 16, (50, 1)), rng.integers(0, 16, (20, 1))

    assert xor_error(Thresholds(4), rows, synthetic) == pytest.approx(kuiper(rows[:, 0], synthetic[:, 0]))


def hard_rows(bits, n, seed):
    """Clusters at many depths, with much of the mass in a few points: trees are opened far down, unevenly."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2**bits, 12)
    spread = 2.0 ** rng.uniform(0, bits - 1, 12)
    which = rng.integers(0, 12, n)
    return np.clip(centres[which] + rng.normal(0, 1, n) * spread[which], 0, 2**bits - 1).astype(np.int64)


def test_more_rows_more_budget_and_more_risk_make_the_bound_smaller():
    bound = Tree().error_bound

    assert bound(40_000, Thresholds(32), 0.1, 1.0) > bound(80_000, Thresholds(32), 0.1, 1.0)
    assert bound(40_000, Thresholds(32), 0.1, 1.0) > bound(40_000, Thresholds(32), 0.1, 2.0)
    assert bound(40_000, Thresholds(32), 0.01, 1.0) > bound(40_000, Thresholds(32), 0.1, 1.0)
    assert bound(10, Thresholds(32), 0.1, 1.0) == 1.0


def test_rows_needed_grow_with_the_bits_of_the_grid_and_not_with_its_points():
    needed = {bits: Tree().rows_needed(Thresholds(bits), 0.05, 0.1, 1.0) for bits in (8, 16, 32)}

    assert needed[8] < needed[16] < needed[32] < 30_000
    assert needed[32] < 4 * needed[16]


def test_a_difference_of_two_intervals_costs_twice_a_difference_of_two_thresholds():
    first, second = (Tree().error_bound(50_000, kind(16), 0.1, 1.0) for kind in (Thresholds, Intervals))

    assert second == pytest.approx(2 * first)
