"""The noisy tree: its privacy transcript by transcript, with twins that cheat; its parts against slow versions."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learners.exact import EXACT, exp
from tests.learners.sanitizers.transcripts import Transcripts

from quorate.errors import InvalidParameter
from quorate.learners.concepts import Thresholds
from quorate.learners.sanitizers import Tree, TreePlan, noisy_prefix_counts, tree
from quorate.learners.sanitizers.tree import as_monotone, quantile_points
from quorate.noise import SeededNoise

QUIET = SeededNoise(0)  # where the noise is scripted


# --- transcripts: what is released, and how likely it is ----------------------------------------------------------


class Script:
    """In place of the sampler: noise from a list, level by level; at the end of the list, zeros."""

    def __init__(self, values=()):
        self.values = list(values)

    def __call__(self, scale, size, source):
        n = int(np.prod(size))
        drawn = (self.values[:n] + [0] * n)[:n]
        self.values = self.values[n:]
        return np.array(drawn, dtype=np.int64).reshape(size)


def true_counts(rows, starts, child, fanout):
    """The children's counts, by going through the rows."""
    return [[sum(s + child * j <= x < s + child * (j + 1) for x in rows) for j in range(fanout)] for s in starts]


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


# --- the exact law of one level, and a twin without noise on empty children -------------------------------------------

WIDE, NARROW = 14, 6


def law_of_level(monkeypatch, rows, *, scale, children):
    """P(noisy counts of two children) for noise within ±WIDE, by running the code on every noise."""
    ratio = exp(-1 / Fraction(scale))
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


# --- the plan ------------------------------------------------------------------------------------------------------


def test_a_plan_out_of_range_is_refused():
    nan, good = float("nan"), {"fanouts": (2, 2), "scale": 1.0, "threshold": 1.0}
    wrong = {"fanouts": ((), (3,), (1, 2), (2**32, 2**32)), "scale": (0, nan), "threshold": (-1.0, nan)}
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidParameter):
                TreePlan(**good | {name: value})


# --- the estimates, against slow versions -----------------------------------------------------------------------------


def slow_prefix_counts(rows, plan, noise):
    """{border: estimate}, node by node, with the same noise in the same order; before it is made monotone."""
    noise, n = list(noise), len(rows)
    nodes, cells, child = [(0, float(n))], [], plan.size
    for fanout in plan.fanouts:
        child //= fanout
        drawn = [[noise.pop(0) if noise else 0 for _ in range(fanout)] for _ in nodes]
        opened = []
        for (start, estimate), z in zip(nodes, drawn, strict=True):
            noisy = [a + b for a, b in zip(true_counts(rows, [start], child, fanout)[0], z, strict=True)]
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
