"""Smooth sensitivity: never below brute force over all neighbours, smooth, and as tight as a published analysis."""

from functools import cache
from math import exp, sqrt

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from quorate.accounting import data_dependent as dd
from quorate.accounting.data_dependent import smooth
from quorate.accounting.data_dependent.noisy_max import gaussian_bound

# teachers, classes, sigma, order, beta: from a bound that is nowhere below the worst case to one that mostly is
SMALL = [(14, 3, 1.2, 3.0, 0.15), (18, 2, 1.5, 2.0, 0.05), (12, 3, 0.9, 4.0, 0.3), (30, 2, 3.0, 2.5, 0.1)]


@cache
def histograms(most, n_classes):
    """All votes of at most so many teachers, ``(n, n_classes)``."""
    grid = np.indices((most + 1,) * n_classes).reshape(n_classes, -1).T
    return grid[grid.sum(axis=1) <= most]


@cache
def local_sensitivities(most, n_classes, sigma, order, noise):
    """For each histogram the largest change of the bound by one vote that is moved, added or removed."""
    points = histograms(most, n_classes)
    price = dict(zip(map(tuple, points), dd.gnmax_rdp(points, sigma, [order], noise=noise).reveal()[:, 0], strict=True))
    steps = np.vstack([np.eye(n_classes), np.zeros((1, n_classes))]).astype(int)
    moves = [tuple(a - b) for a in steps for b in steps if (a != b).any()]
    found = []
    for point in price:
        near = (tuple(np.add(point, move)) for move in moves)
        found.append(max(abs(price[point] - price[other]) for other in near if other in price))
    return np.array(found)


def by_brute_force(queries, most, sigma, order, beta, noise):
    """The smooth sensitivity of a total over queries, from its definition: every histogram at every distance."""
    points, local = (
        histograms(most, queries.shape[1]), local_sensitivities(most, queries.shape[1], sigma, order, noise),
    )  # fmt: skip
    total = np.zeros(most + 1)
    for counts in queries:
        difference = points - counts
        steps = np.maximum(difference.clip(min=0).sum(axis=1), (-difference).clip(min=0).sum(axis=1))
        total += [local[steps <= d].max() for d in range(most + 1)]
    return float(np.max(total * np.exp(-beta * np.arange(most + 1))))


def shortfalls(case, noise, *, samples=18):
    """How much of the brute-force value is covered, over many queries alone and some together; below 1 is a fault."""
    most, n_classes, sigma, order, beta = case
    points = histograms(most, n_classes)
    rng = np.random.default_rng(0)
    tried = [points[[at]] for at in range(0, len(points), max(1, len(points) // samples))]
    tried += [points[rng.integers(0, len(points), 5)] for _ in range(samples // 6)]
    covered = []
    for queries in tried:
        exact = by_brute_force(queries, most, sigma, order, beta, noise)
        ours = dd.smooth_sensitivity(queries, sigma, order, beta, noise=noise).reveal()
        covered.append(ours / exact if exact > 1e-12 else 1.0)
    return np.array(covered)


@pytest.mark.heavy
@pytest.mark.parametrize("noise", ["discrete", "continuous"])
@pytest.mark.parametrize("case", SMALL)
def test_it_covers_brute_force_over_all_neighbours(case, noise):
    covered = shortfalls(case, noise)
    assert covered.min() >= 1 - 1e-9
    assert np.median(covered) < 2  # and is of the right size


def stays(gaps, left):
    """A twin that thinks that the first class cannot gain votes."""


def only_adds(gaps, left):
    """A twin that thinks that a vote can be added to the first class, and none taken from another."""
    gaps += 1


@pytest.mark.heavy
@pytest.mark.parametrize("twin", [stays, only_adds])
def test_a_twin_that_moves_too_little_is_caught(twin, monkeypatch):
    monkeypatch.setattr(smooth, "_move_ahead", twin)
    assert shortfalls(SMALL[0], "discrete", samples=12).min() < 1 - 1e-3


def test_a_twin_that_thinks_a_changed_vote_moves_one_count_alone_is_caught(monkeypatch):
    monkeypatch.setattr(smooth, "sqrt", lambda value: sqrt(value) / 2)
    assert shortfalls(SMALL[0], "discrete", samples=12).min() < 1 - 1e-3


@pytest.mark.heavy
@pytest.mark.parametrize(
    "options",
    [{"noise": "discrete"}, {"noise": "continuous"}, {"threshold": 25, "threshold_sigma": 5.0}],
    ids=["discrete", "continuous", "tested"],
)
def test_it_is_smooth_between_adversarial_neighbours(options):
    """One teacher changes its vote in every query at once, by moving, adding or removing it, where it hurts most."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        n_classes, sigma, order, beta = int(rng.integers(2, 6)), float(rng.uniform(2, 8)), 5.0, 0.05
        counts = np.array([rng.multinomial(60, rng.dirichlet(np.full(n_classes, 0.4))) for _ in range(5)])
        here = dd.smooth_sensitivity(counts, sigma, order, beta, **options).reveal()
        for of_first, of_second in ((-1, 1), (1, -1), (-1, 0), (1, 0)):  # moved down or up, removed, added
            other = counts.copy()
            for row in other:
                first, second = np.argsort(-row, kind="stable")[:2]
                row[first] += of_first
                row[second] = max(row[second] + of_second, 0)
            there = dd.smooth_sensitivity(other, sigma, order, beta, **options).reveal()
            assert abs(np.log(here) - np.log(there)) <= beta * (1 + 1e-6), (of_first, of_second)


def as_published(counts, sigma, order, beta):
    """PATE18 App. B as its loop over queries has it: votes of a fixed number of teachers, moved one by one.

    From each query towards where one step changes the bound most: below it votes are moved from the first class to the
    second, above it from the nearest class to the first; once it is reached, the largest change of all stands.
    """
    n_classes, step = counts.shape[1], sqrt(2) / sigma
    orders = np.array([order])

    def bound(gap):
        return gaussian_bound(np.atleast_1d(np.log(n_classes - 1) + log_ndtr(-np.asarray(gap))), sigma, orders)[:, 0]

    def change(gap):
        return np.maximum(bound(gap - step) - bound(gap), bound(gap) - bound(gap + step))

    def gap_of(row):
        ordered = -np.sort(-row)
        log_q = logsumexp(log_ndtr(-(ordered[0] - ordered[1:]) / (sqrt(2) * sigma)))
        return float(-ndtri_exp(min(log_q - np.log(n_classes - 1), -1e-12)))

    fine = np.arange(-8.0, 30.0, step / 400)
    changes = change(fine)
    peak, plateau = fine[changes.argmax()], changes.max()
    curves = []
    for start in counts:
        row, curve = -np.sort(-start), []
        below = gap_of(row) < peak
        while len(curve) < 1000:
            gap = gap_of(row)
            if (gap >= peak) == below and curve:
                curve.append(plateau)
                break
            curve.append(float(change(gap)[0]))
            if below:
                nearest = 1 + int(np.argmax(row[1:]))
                if not row[nearest]:
                    break
                row[0] += 1
                row[nearest] -= 1
            else:
                row[0] -= 1
                row[1] += 1
            row = -np.sort(-row)
        curves.append(curve)
    longest = max(map(len, curves))
    total = sum(np.array(curve + [curve[-1]] * (longest - len(curve))) for curve in curves)
    return max(value * exp(-beta * d) for d, value in enumerate(total))


# Each consensus and each task is in the default selection, which has a query on either side of the peak.
CELLS = [(0.35, 10, 0.02), (0.65, 2, 0.02), (0.95, 10, 0.004)]
CELLS += sorted(
    {(c, *task) for c in (0.35, 0.5, 0.65, 0.8, 0.95) for task in ((2, 0.02), (10, 0.02), (10, 0.004))} - {*CELLS}
)


@pytest.mark.heavy
@pytest.mark.heavy_cases(5)
@pytest.mark.parametrize(("consensus", "n_classes", "beta"), CELLS)
def test_it_is_as_tight_as_the_published_analysis_on_the_same_votes(consensus, n_classes, beta):
    rng = np.random.default_rng(int(100 * consensus) + n_classes)
    sigma, order = 20.0, 14.0
    shares = [consensus, *[(1 - consensus) / (n_classes - 1)] * (n_classes - 1)]
    counts = rng.multinomial(250, shares, size=6)
    ours = dd.smooth_sensitivity(counts, sigma, order, beta, noise="continuous").reveal()
    assert ours <= as_published(counts, sigma, order, beta) * 1.01
