"""Noisy marginals: σ and price by a second way, which nodes are opened, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quorate.accounting import Composed, DiscreteGaussian, Repeated, epsilon, zcdp
from quorate.errors import InvalidParameter
from quorate.mechanisms import MarginalLevel, NoisyMarginals, Partition
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


def slow_children(nodes: list[int], noisy: list[int], level: int, depth: int, sigma: float) -> list[int]:
    large = [(-n, node) for node, n in zip(nodes, noisy, strict=True) if n >= 3 * sigma and node < 2**level]
    chosen = sorted(node for _, node in sorted(large)[:512]) if level < depth else []
    return [child for node in chosen for child in (2 * node, 2 * node + 1)]


def test_a_level_opens_the_largest_nodes_that_noise_does_not_explain():
    rng = np.random.default_rng(1)
    marginals = NoisyMarginals((Partition.tree(13), Partition(3)), mu=1.0, neighbours="add-or-remove")
    sigma = marginals.sigma(marginals.partitions[0])
    nodes = np.sort(rng.choice(2**12, 1_000, replace=False))
    noisy = np.where(rng.random(1_000) < 0.9, 3 * sigma + rng.integers(0, 40, 1_000), sigma).astype(np.int64)
    level = MarginalLevel(12, (nodes, nodes[:0]))
    below = marginals.after(level, (noisy, nodes[:0]))
    assert below.nodes[0].tolist() == slow_children(nodes.tolist(), noisy.tolist(), 12, 13, sigma)
    assert len(below.nodes[0]) == 2 * 512
    assert below.nodes[1].tolist() == []
    assert marginals.after(below, (np.full(1_024, 10**6), nodes[:0])).is_empty
    first = marginals.first
    assert marginals.after(first, (np.full(3, 10**6), np.full(3, 10**6))).nodes[0].tolist() == [0, 1, 2, 3]
    assert marginals.after(first, marginals.nothing(first)).is_empty


def test_nodes_of_a_level_are_the_cells_below_them():
    tree = Partition.tree(3)
    first, behind = tree.cells_of(np.array([0, 1, 2]), 1)
    assert list(zip(first.tolist(), behind.tolist(), strict=True)) == [(0, 4), (4, 8), (8, 12)]  # 8 is what is missing
    assert [ends.tolist() for ends in tree.cells_of(np.array([5]), 3)] == [[5], [6]]
    assert [ends.tolist() for ends in Partition(9).cells_of(np.array([7]), 1)] == [[7], [8]]


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
