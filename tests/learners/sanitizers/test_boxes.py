"""Boxes: its privacy transcript by transcript on tiny grids, with twins that cheat; its bounds on hard shapes."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.learners.sanitizers.transcripts import Transcripts

from quorate.learners import GenericLearner
from quorate.learners.concepts import Rectangles
from quorate.learners.sanitizers import Boxes, BoxPlan, boxes, tree
from quorate.noise import SeededNoise

TINY = Rectangles((2, 1), 2)  # 4 × 2 points
CUT = Boxes(candidates=10)  # two values a column: the first is cut, the second has no more
EPSILON = 1.0
POINTS = list(product(range(4), range(2)))


def worst_loss(patch, *, until=None):
    """Over data sets of two rows of the tiny grid, all their neighbours, and two patterns of noise."""

    def work(rows):
        return CUT.sanitize(rows, TINY, EPSILON, SeededNoise(0))

    transcripts = Transcripts(patch, work, (tree, "noisy_children"), (boxes, "noisy_boxes"))
    pairs = [
        ([mine, rest], [other, rest])
        for rest in ((0, 0), (1, 1), (3, 0))
        for mine, other in product(POINTS, repeat=2)
        if mine != other
    ]
    return transcripts.worst_loss(pairs, ([0], [2, -1, 0, 1]), until=until)


def test_no_transcript_tells_more_than_epsilon_and_some_tell_as_much(monkeypatch):
    plan = BoxPlan.for_budget(bits=(2, 1), n=2, epsilon=EPSILON, candidates=10)
    assert plan.trees[0] is not None
    assert plan.trees[1] is None
    assert worst_loss(monkeypatch) == plan.epsilon
    assert Fraction(EPSILON) * (1 - Fraction(1, 2**40)) < plan.epsilon <= Fraction(EPSILON)


@pytest.mark.parametrize(
    "saving",
    [
        lambda plan: replace(plan, scale=plan.scale / 2),
        lambda plan: replace(plan, trees=tuple(each and replace(each, scale=each.scale * 0.75) for each in plan.trees)),
    ],
    ids=["a replaced row is taken to change one box", "a column takes the whole budget"],
)
def test_a_plan_that_saves_noise_is_caught(saving, monkeypatch):
    honest = BoxPlan.for_budget
    monkeypatch.setattr(BoxPlan, "for_budget", lambda **given: saving(honest(**given)))
    assert worst_loss(monkeypatch, until=EPSILON) > Fraction(EPSILON)


def test_cuts_at_values_of_the_rows_are_caught(monkeypatch):
    """A twin that cuts where rows are, and not where a release says so."""
    honest = tree.noisy_prefix_counts

    def peeking(values, plan, noise):
        released = honest(values, plan, noise)
        return replace(released, below=3.0 * np.searchsorted(np.sort(values), released.borders))

    monkeypatch.setattr(boxes, "noisy_prefix_counts", peeking)
    assert worst_loss(monkeypatch, until=EPSILON) > Fraction(EPSILON)


GRID = Rectangles(5, 2)
SIDE, N = 32, 20_000
COARSE = Boxes(candidates=100_000)


def shapes():
    random = np.random.default_rng(0)
    x = random.integers(0, SIDE, N)
    return {
        "one point": np.full((N, 2), 16),
        "diagonal": np.column_stack([x, x]),
        "beside a line": np.column_stack([15 + x % 2, random.integers(0, SIDE, N)]),
        "corners": np.column_stack([31 * (x % 2), 31 * (x // 2 % 2)]),
        "spread": random.integers(0, SIDE, (N, 2)),
        "comb": np.column_stack([x, (x % 2) * 31]),
    }


def worst_rectangle(rows, synthetic):
    """The largest difference of fractions over all rectangles, by sums over all pairs of sides."""

    def table(points):
        counts = np.zeros((SIDE + 1, SIDE + 1))
        np.add.at(counts, (points[:, 0] + 1, points[:, 1] + 1), 1 / len(points))
        return counts.cumsum(axis=0).cumsum(axis=1)

    off = table(rows) - table(synthetic)
    bands = off[:, np.newaxis, :] - off[np.newaxis, :, :]  # between two sides of the first column
    return float((bands.max(axis=2) - bands.min(axis=2)).max())


@pytest.mark.parametrize("shape", shapes())
def test_the_errors_stay_below_their_bounds_on_hard_shapes(shape):
    rows = shapes()[shape]
    bound, agree = (each(N, GRID, 0.1, 2.0) for each in (COARSE.error_bound, COARSE.agreement_bound))
    for seed in range(6):
        synthetic = COARSE.sanitize(rows, GRID, 2.0, SeededNoise(seed))
        assert worst_rectangle(rows, synthetic) <= bound
        assert 4 * widest_gap(rows, synthetic) <= agree


def widest_gap(rows, synthetic):
    """The largest share of rows strictly between neighbouring released values of a column."""
    found = 0.0
    for j in range(rows.shape[1]):
        values = np.unique(synthetic[:, j])
        between = ~np.isin(rows[:, j], values)
        found = max(found, np.bincount(np.searchsorted(values, rows[between, j]), minlength=1).max() / len(rows))
    return found


def test_cuts_that_ignore_the_rows_break_the_bound(monkeypatch):
    monkeypatch.setattr(boxes, "cut_values", lambda tree, gap, most: np.array([7, 15, 23, 31]))
    synthetic = COARSE.sanitize(np.full((N, 2), 18), GRID, 2.0, SeededNoise(0))
    assert 4 * widest_gap(np.full((N, 2), 18), synthetic) > COARSE.agreement_bound(N, GRID, 0.1, 2.0)


def test_rectangles_that_agree_on_the_points_agree_on_nearly_all_rows():
    """The statement that GenericLearner rests on, over every rectangle of the grid."""
    rows = shapes()["spread"]
    synthetic = np.unique(COARSE.sanitize(rows, GRID, 2.0, SeededNoise(1)), axis=0)
    random, bound = np.random.default_rng(2), COARSE.agreement_bound(N, GRID, 0.1, 2.0)
    net = COARSE.most_dichotomies(GRID)
    hypotheses = GRID.dichotomies(synthetic)
    assert len(hypotheses) <= net
    on_points = {row.tobytes(): i for i, row in enumerate(hypotheses.labels(synthetic))}
    for _ in range(400):
        low = random.integers(0, SIDE, 2)
        high = np.minimum(low + random.integers(0, SIDE, 2), SIDE - 1)
        inside = ((synthetic >= low) & (synthetic <= high)).all(axis=1).astype(np.uint8)
        chosen = hypotheses[on_points[inside.tobytes()]]
        truth = ((rows >= low) & (rows <= high)).all(axis=1)
        assert np.mean(chosen.labels(rows) != truth) <= bound


def test_all_released_points_are_a_product_and_each_is_there():
    synthetic = Boxes().sanitize(shapes()["one point"], GRID, 0.5, SeededNoise(0))
    distinct = np.unique(synthetic, axis=0)
    assert len(distinct) == len(np.unique(distinct[:, 0])) * len(np.unique(distinct[:, 1]))
    assert distinct.max(axis=0).tolist() == [SIDE - 1, SIDE - 1]


def test_absolute_noise_is_above_its_bound_no_more_often_than_promised():
    drawn = np.random.default_rng(0).geometric(1 - np.exp(-1 / 8.0), (2, 4_000, 50))
    sums = np.abs(drawn[0] - drawn[1]).sum(axis=1)
    z = boxes.absolute_noise(50, 8.0, 0.1)
    assert np.mean(sums > z) <= 0.1
    assert np.mean(sums > z * 0.8) > 0.1  # and it is not idle


@pytest.mark.parametrize("n_features", [1, 2, 3])
def test_a_fine_grid_of_several_columns_is_learned(n_features):
    random = np.random.default_rng(n_features)
    X = random.integers(0, 2**16, (12_000, n_features))
    inside = ((X >= 9_000) & (X <= 60_000)).all(axis=1)
    y = np.where(np.arange(len(X)) < 2_000, inside, -1)
    learner = GenericLearner(
        concepts=Rectangles(16, n_features), sanitizer=Boxes(100_000), epsilon=2.0, unsafe_noise_seed=0
    )
    assert learner.fit(X, y).score(X, inside) > max(inside.mean(), 1 - inside.mean()) + 0.1
