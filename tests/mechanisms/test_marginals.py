"""Noisy marginals: σ, price and estimates by a second way, which parts are halved, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quorate.accounting import Composed, DiscreteGaussian, Repeated, epsilon, zcdp
from quorate.errors import InvalidParameter
from quorate.mechanisms import MarginalLevel, NoisyMarginals, Partition
from quorate.mechanisms.marginals import estimated_counts
from quorate.noise import SeededNoise

MIXED = (Partition(4), Partition.tree(5), Partition(11), Partition.tree(3), Partition.tree(5))


def noisy_sum_law(sigma: float, shifts: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of so many discrete Gaussian draws: its values and their probabilities, by plain convolution."""
    reach = math.ceil(9 * sigma)
    z = np.arange(-reach, reach + 1)
    one = np.exp(-(z**2) / (2 * sigma**2))
    law = np.ones(1)
    for _ in range(shifts):
        law = np.convolve(law, one / one.sum())
    return np.arange(len(law)) - len(law) // 2, law


def slow_delta(parts: list[tuple[float, int]], eps: float) -> float:
    """δ of two kinds of unit shifts at ε: the sum over both noises of what their loss exceeds ε by."""
    losses, probabilities = np.zeros(1), np.ones(1)
    for sigma, shifts in parts:
        values, law = noisy_sum_law(sigma, shifts)
        loss = (shifts - 2 * values) / (2 * sigma**2)
        losses = (losses[:, None] + loss).ravel()
        probabilities = (probabilities[:, None] * law).ravel()
    above = losses > eps
    return math.fsum(probabilities[above] * -np.expm1(eps - losses[above]))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("neighbours", "shifts"), [("add-or-remove", 1), ("replace", 2)])
def test_the_price_is_that_of_the_exact_law_to_a_billionth(neighbours, shifts):
    marginals = NoisyMarginals((Partition(3), Partition.tree(4)), mu=0.7, neighbours=neighbours)  # type: ignore[arg-type]
    delta = 1e-5
    priced = epsilon(marginals.event, delta)
    parts = [(marginals.sigma(Partition(3)), shifts), (marginals.sigma(Partition.tree(4)), 4 * shifts)]
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slow_delta(parts, middle) > delta else (low, middle)
    assert high <= priced <= high + 1e-8
    assert priced == pytest.approx(high, abs=5e-9)


@pytest.mark.parametrize("neighbours", ["add-or-remove", "replace"])
def test_every_column_has_the_same_share_whatever_its_kind(neighbours):
    marginals = NoisyMarginals(MIXED, mu=0.3, neighbours=neighbours)  # type: ignore[arg-type]
    length = 1.0 if neighbours == "add-or-remove" else math.sqrt(2)
    shares = [max(part.depth, 1) * length**2 / marginals.sigma(part) ** 2 for part in MIXED]
    assert np.allclose(shares, 0.3**2 / 5, rtol=1e-8)
    assert sum(shares) <= 0.3**2
    assert 0.3**2 / 2 * (1 - 1e-8) < zcdp(marginals.event) <= 0.3**2 / 2 * (1 + 1e-12)
    assert marginals.event == Composed(
        (
            Repeated(DiscreteGaussian(marginals.sigma(Partition(4)), length), 2),
            Repeated(DiscreteGaussian(marginals.sigma(Partition.tree(3)), length), 3),
            Repeated(DiscreteGaussian(marginals.sigma(Partition.tree(5)), length), 10),
        )
    )


def test_the_same_noise_has_another_price_for_the_other_relation():
    marginals = NoisyMarginals(MIXED, mu=0.3, neighbours="add-or-remove")
    assert zcdp(marginals.event_for("replace")) == pytest.approx(2 * zcdp(marginals.event), rel=1e-12)
    assert marginals.event_for("add-or-remove") == marginals.event


def counted(rng, depth, n_levels):
    """Levels of one tree as they might have been released: each halves some parts of the one before."""
    nodes, levels = np.array([0, 4, 5, 6, 7]), []
    for number in range(1, n_levels + 1):
        levels.append((MarginalLevel(number, (nodes,)), (rng.integers(-50, 900, len(nodes)),)))
        halved = nodes[(rng.random(len(nodes)) < 0.4) & (nodes > 0) & (nodes < 2**depth)]
        nodes = np.sort(np.concatenate([np.setdiff1d(nodes, halved), 2 * halved, 2 * halved + 1]))
    return levels


@pytest.mark.parametrize("n_levels", [1, 2, 7])
def test_counts_of_parts_are_the_least_squares_estimate_by_every_count(n_levels):
    levels = counted(np.random.default_rng(n_levels), 6, n_levels)
    parts, counts, errors = estimated_counts(0, levels)
    cells = Partition.tree(6).cells_of(parts)
    every = [(*ends, count) for level, noisy in levels for *ends, count in zip(*ranges(level), noisy[0], strict=True)]
    sums = np.array([[(low <= cells[0]) & (cells[1] <= high)] for low, high, _ in every], dtype=float)[:, 0]
    expected, *_ = np.linalg.lstsq(sums, np.array([count for *_, count in every], dtype=float), rcond=None)
    assert counts == pytest.approx(expected, abs=1e-8)
    assert errors**2 == pytest.approx(np.diag(np.linalg.inv(sums.T @ sums)), rel=1e-9)


def ranges(level):
    return Partition.tree(6).cells_of(level.nodes[0])


def test_a_level_halves_what_noise_does_not_explain_and_the_levels_left_can_tell_apart():
    marginals = NoisyMarginals((Partition.tree(13), Partition(3)), mu=0.01, neighbours="add-or-remove")
    sigma = marginals.sigma(marginals.partitions[0])
    first = marginals.level(1)
    assert [nodes.tolist() for nodes in first.nodes] == [[0, 4, 5, 6, 7], [0, 1, 2]]

    def below(number, *counts):
        levels = [
            (MarginalLevel(at, first.nodes), ((sigma * np.array(of)).astype(int), np.full(3, 10**6)))
            for at, of in enumerate(counts, start=1)
        ]
        return marginals.level(number, levels).nodes[0].tolist()

    assert below(2, [9, 2.9, 3.1, 0, -4]) == sorted([0, 4, 6, 7, 10, 11])
    assert below(3, [9, 2.9, 3.1, 0, -4], [9, 2.5, 2.5, 0, -4]) == sorted([0, 6, 7, 8, 9, 10, 11])  # counted twice
    assert below(13, [9, 5.9, 6.1, 0, -4]) == sorted([0, 4, 6, 7, 10, 11])  # each half has the last level alone
    assert below(14, [9, 9, 9, 9, 9]) == []
    assert marginals.level(2, [(first, (np.full(5, 10**6), np.full(3, 10**6)))]).nodes[1].tolist() == []


def test_of_many_parts_the_largest_are_halved():
    marginals = NoisyMarginals((Partition.tree(13),), mu=1.0, neighbours="add-or-remove")
    nodes = np.concatenate([[0], np.arange(2**8, 2**8 + 256)])
    counts = np.random.default_rng(1).permutation(np.arange(257) + 10_000)
    below = marginals.level(9, [(MarginalLevel(8, (nodes,)), (counts,))]).nodes[0]
    assert len(below) == 512
    kept = np.intersect1d(nodes[1:], below)
    assert len(kept) == 1
    assert counts[nodes == kept].item() == counts[1:].min()
    ends = marginals.partitions[0].cells_of(below)
    assert int((ends[1] - ends[0]).sum()) == 2**13 + 1


def test_nodes_are_the_cells_below_them():
    tree = Partition.tree(3)
    first, behind = tree.cells_of(np.array([0, 1, 2, 3, 13]))
    ends = list(zip(first.tolist(), behind.tolist(), strict=True))
    assert ends == [(8, 9), (0, 8), (0, 4), (4, 8), (5, 6)]
    largest = Partition.tree(40)
    assert [ends.tolist() for ends in largest.cells_of(np.array([2**41 - 1]))] == [[2**40 - 1], [2**40]]
    assert [ends.tolist() for ends in Partition(9).cells_of(np.array([7]))] == [[7], [8]]


def test_noise_has_the_scale_of_its_column():
    marginals = NoisyMarginals((Partition(40_000), Partition.tree(9)), mu=0.5, neighbours="replace")
    level = MarginalLevel(5, (np.arange(40_000), np.arange(32)))
    noisy = marginals.release_level(level, (np.full(40_000, 7), np.zeros(32, dtype=np.int64)), SeededNoise(3))
    sigma = marginals.sigma(marginals.partitions[0])
    assert abs(noisy[0].mean() - 7) < 5 * sigma / 200  # five standard errors
    assert noisy[0].std() == pytest.approx(sigma, rel=5 / math.sqrt(80_000))
    assert noisy[1].std() == pytest.approx(marginals.sigma(marginals.partitions[1]), rel=5 / math.sqrt(64))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: NoisyMarginals((), 1.0, "replace"),
        lambda: NoisyMarginals(("age",), 1.0, "replace"),  # type: ignore[arg-type]
        lambda: NoisyMarginals(MIXED, 0.0, "replace"),
        lambda: NoisyMarginals(MIXED, 1e-13, "replace"),
        lambda: NoisyMarginals(MIXED, 1.0, "both"),  # type: ignore[arg-type]
        lambda: Partition(0),
        lambda: Partition(8, 3),
        lambda: Partition.tree(41),
        lambda: NoisyMarginals(MIXED[:1], 1.0, "replace").release_level(
            MarginalLevel(1, (np.arange(4),)), (np.zeros(3, dtype=np.int64),), SeededNoise(0)
        ),
    ],
)
def test_what_has_no_meaning_is_refused(wrong):
    with pytest.raises(InvalidParameter) as refusal:
        wrong()  # type: ignore[operator]
    assert "\n" not in str(refusal.value)
