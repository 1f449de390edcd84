"""The noisy tree: its privacy transcript by transcript, with twins that cheat; its parts against slow versions.

The bound on its error: each step against a slow version, and the whole against the errors that occur.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learners import exact
from tests.learners.exact import EXACT
from tests.learners.sanitizers.transcripts import Transcripts

from quorate.audit import DiscreteLaplaceLaw
from quorate.errors import InvalidParameter
from quorate.learners.concepts import Intervals, Thresholds
from quorate.learners.sanitizers import Tree, TreePlan, XorQueries, noisy_prefix_counts, prefix_error, tree
from quorate.learners.sanitizers.tree import (
    _RATES,
    _border_log_mgf,
    _border_moments,
    _interval_moments,
    _levels,
    as_monotone,
    interval_error,
    log_mgf,
    quantile_points,
)
from quorate.noise import SeededNoise

QUIET = SeededNoise(0)  # where the noise is scripted


class Script:
    """In place of the sampler: noise from a list, level by level; at the end of the list, zeros."""

    def __init__(self, values=()):
        self.values = list(values)

    def __call__(self, scale, size, source):
        n = int(np.prod(size))
        drawn = (self.values[:n] + [0] * n)[:n]
        self.values = self.values[n:]
        return np.array(drawn, dtype=np.int64).reshape(size)


def transcripts_of(patch, plan):
    def work(rows):
        noisy_prefix_counts(rows, plan, QUIET)

    return Transcripts(patch, work, (tree, "noisy_children"))


PLANS = [
    TreePlan((2, 2, 2), scale=6.0, threshold=1.5),
    TreePlan((4, 2), scale=4.0, threshold=None),
    TreePlan((2, 4), scale=8.0, threshold=0.5),
]
EPSILON = [Fraction(1), Fraction(1), Fraction(1, 2)]


@st.composite
def neighbours_with_noise(draw):
    rows = draw(st.lists(st.integers(0, 7), min_size=1, max_size=5))
    place = draw(st.integers(0, len(rows) - 1))
    other = draw(st.integers(0, 7))
    neighbour = [*rows[:place], other, *rows[place + 1 :]]
    return (
        rows,
        neighbour,
        draw(st.lists(st.integers(-4, 4), min_size=1, max_size=30)),
        draw(st.sampled_from(range(len(PLANS)))),
    )


@settings(max_examples=150, deadline=None)
@given(case=neighbours_with_noise())
def test_no_transcript_tells_more_than_epsilon_between_neighbours(case):
    rows, neighbour, noise, which = case
    with pytest.MonkeyPatch.context() as patch:
        loss = transcripts_of(patch, PLANS[which]).loss(rows, neighbour, noise)

    assert PLANS[which].epsilon == EPSILON[which]
    assert loss <= EPSILON[which]


def worst_loss(monkeypatch, plan):
    sets = [(0, 0, 7, 7), (0, 0, 0, 7), (0, 7, 7, 7), (0, 0, 0, 0)]
    pairs = [pair for pair in product(sets, repeat=2) if sum(a != b for a, b in zip(*pair, strict=True)) == 1]
    return transcripts_of(monkeypatch, plan).worst_loss(pairs, ([0], [3], [-2]))


@pytest.mark.parametrize(
    ("plan", "epsilon"), [*zip(PLANS, EPSILON, strict=True), (replace(PLANS[0], scale=3.0), 2)], ids=str
)
def test_the_price_is_not_more_than_it_has_to_be(plan, epsilon, monkeypatch):
    """And a tree with noise for one count a level instead of two loses twice as much."""
    assert worst_loss(monkeypatch, plan) == epsilon


def test_that_search_catches_a_tree_that_opens_nodes_by_their_true_counts(monkeypatch):
    shipped = tree.noisy_children

    def skips_empty_nodes(values, starts, child, fanout, scale, noise):
        released = np.zeros((len(starts), fanout), dtype=np.int64)
        for row, start in enumerate(starts.tolist()):
            if ((values >= start) & (values < start + child * fanout)).any():
                noisy = values.size and shipped(values, starts, child, fanout, scale, noise)
                released[row] = noisy[row]
        return released

    plan = TreePlan((2, 2, 2), scale=6.0, threshold=None)
    assert worst_loss(monkeypatch, plan) == 1
    monkeypatch.setattr(tree, "noisy_children", skips_empty_nodes)
    assert worst_loss(monkeypatch, plan) > 10**6


WIDE, NARROW = 14, 6


def law_of_level(monkeypatch, rows, *, scale, children):
    """P(noisy counts of two children) for noise within ±WIDE, by running the code on every noise."""
    ratio = exact.exp(-1 / Fraction(scale))
    mass = {z: (1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-WIDE, WIDE + 1)}
    law = {}
    for noise in product(range(-WIDE, WIDE + 1), repeat=2):
        with monkeypatch.context() as patch:
            patch.setattr(tree, "discrete_laplace", Script(noise))
            released = tuple(children(np.array(rows), np.array([0]), 1, 2, scale, QUIET).ravel().tolist())
        law[released] = law.get(released, 0) + mass[noise[0]] * mass[noise[1]]
    return law


def exact_level_loss(monkeypatch, scale, children):
    """The largest loss over all neighbours of two rows on two points, on releases that every noise window covers."""
    worst = EXACT.mpf(0)
    for rows, neighbour in (((0, 0), (0, 1)), ((0, 1), (1, 1))):
        p, q = (law_of_level(monkeypatch, data, scale=scale, children=children) for data in (rows, neighbour))
        for released in product(range(-NARROW, NARROW + 1), repeat=2):
            a, b = p.get(released, 0), q.get(released, 0)
            if a or b:
                worst = max(worst, EXACT.inf if not (a and b) else abs(EXACT.log(a / b)))
    return worst


def test_a_level_has_the_exact_loss_of_its_noise(monkeypatch):
    assert abs(exact_level_loss(monkeypatch, 4.0, tree.noisy_children) - EXACT.mpf(1) / 2) < 1e-30


def test_that_law_catches_a_tree_without_noise_on_empty_children(monkeypatch):
    def spares_the_empty(values, starts, child, fanout, scale, noise):
        edges = starts[:, np.newaxis] + child * np.arange(fanout + 1)
        counts = np.diff(np.searchsorted(values, edges), axis=1)
        return np.where(counts > 0, counts + tree.discrete_laplace(scale, counts.shape, noise), 0)

    assert exact_level_loss(monkeypatch, 4.0, spares_the_empty) == EXACT.inf


def test_a_plan_out_of_range_is_refused():
    nan, good = float("nan"), {"fanouts": (2, 2), "scale": 1.0, "threshold": 1.0}
    wrong = {"fanouts": ((), (3,), (1, 2), (2**32, 2**32)), "scale": (0, nan), "threshold": (-1.0, nan)}
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidParameter):
                TreePlan(**good | {name: value})


def slow_prefix_counts(rows, plan, noise):
    """{border: estimate}, node by node, with the same noise in the same order; before it is made monotone."""
    noise, n = list(noise), len(rows)
    nodes, cells, child = [(0, float(n))], [], plan.size
    for fanout in plan.fanouts:
        child //= fanout
        drawn = [[noise.pop(0) if noise else 0 for _ in range(fanout)] for _ in nodes]
        opened = []
        for (start, estimate), z in zip(nodes, drawn, strict=True):
            counts = [sum(start + child * j <= x < start + child * (j + 1) for x in rows) for j in range(fanout)]
            noisy = [a + b for a, b in zip(counts, z, strict=True)]
            for j in range(fanout):
                share = noisy[j] + (estimate - sum(noisy)) / fanout
                is_open = child > 1 and (plan.threshold is None or share > plan.threshold)
                (opened if is_open else cells).append((start + j * child, share))
        nodes = opened
    cells.sort()
    below = np.cumsum([0.0, *(share for _, share in cells)])
    return [start for start, _ in cells] + [plan.size], below


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(st.integers(0, 15), min_size=1, max_size=20),
    noise=st.lists(st.integers(-5, 5), max_size=60),
    threshold=st.sampled_from([None, 1.0, 3.5]),
    fanouts=st.sampled_from([(16,), (4, 4), (2, 2, 4), (2, 2, 2, 2)]),
)
def test_prefix_counts_are_those_of_the_slow_version(rows, noise, threshold, fanouts):
    plan = TreePlan(fanouts, scale=3.0, threshold=threshold)
    borders, below = slow_prefix_counts(rows, plan, noise)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "discrete_laplace", Script(noise))
        released = noisy_prefix_counts(np.array(rows), plan, QUIET)

    assert released.borders.tolist() == borders
    np.testing.assert_allclose(released.below, as_monotone(below, len(rows)), atol=1e-9)
    if threshold is not None:  # a cell that is not one point holds at most the threshold
        wide = np.diff(released.borders) > 1
        assert np.all(np.diff(released.below)[wide] <= threshold + 1e-9)


@given(
    steps=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    errors=st.lists(st.integers(-7, 7), min_size=13, max_size=13),
)
def test_making_prefix_counts_monotone_never_moves_them_away(steps, errors):
    true = np.concatenate([[0], np.cumsum(steps)]).astype(float)
    n = int(true[-1])
    noisy = true + np.array(errors[: true.size])
    noisy[0], noisy[-1] = 0, n
    monotone = as_monotone(noisy, n)

    assert np.all(np.diff(monotone) >= 0)
    assert (monotone[0], monotone[-1]) == (0, n)
    assert np.abs(monotone - true).max() <= np.abs(noisy - true).max()


@given(
    cells=st.lists(st.tuples(st.integers(1, 6), st.floats(0, 50)), min_size=1, max_size=10),
    size=st.integers(1, 40),
)
def test_quantiles_keep_every_prefix_to_half_a_point_and_half_a_cell(cells, size):
    cells.append((1, 1.0))  # so that there is something
    borders = np.concatenate([[0], np.cumsum([width for width, _ in cells])])
    below = np.concatenate([[0.0], np.cumsum([rows for _, rows in cells])])
    points = quantile_points(tree.PrefixCounts(borders, below), size)

    assert points.size == size
    fractions = [(points < t).mean() for t in borders]
    np.testing.assert_array_less(np.abs(fractions - below / below[-1]), 1 / (2 * size) + 1e-9)
    for t in range(borders[-1]):
        cell = np.searchsorted(borders, t, side="right") - 1
        if t not in borders:
            middle = (below[cell] + below[cell + 1]) / 2
            assert abs((points < t).mean() - middle / below[-1]) <= 1 / (2 * size) + 1e-9


def test_the_order_of_rows_does_not_matter():
    rows = np.random.default_rng(1).integers(0, 2**32, (500, 1))
    first, second = (Tree().sanitize(each, Thresholds(32), 5.0, SeededNoise(2)) for each in (rows, rows[::-1].copy()))

    assert np.array_equal(first, second)


def test_a_grid_of_four_thousand_million_points_is_not_walked_through():
    rows = np.random.default_rng(1).integers(0, 2**32, (20_000, 1))
    plan = TreePlan.for_budget(bits=32, n=20_000, epsilon=1.0)
    released = noisy_prefix_counts(rows[:, 0], plan, SeededNoise(3))

    assert released.borders.size < 20_000
    assert Tree().sanitize(rows, Thresholds(32), 1.0, SeededNoise(3)).shape == (20_000, 1)


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
