"""The noisy mean of teachers' numbers: what one teacher moves, what that costs, and twins that an audit catches."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.gaussian import gaussian_epsilon

from quorate.accounting import Composed, Repeated, epsilon
from quorate.audit import GaussianClaim, audit_mechanism
from quorate.audit.cheats.noisy_max import ByRow
from quorate.audit.rounds import audit_means
from quorate.errors import InvalidParameter
from quorate.mechanisms import NoisyMean, Schedule
from quorate.mechanisms.noisy_mean import NoisyMeans, TargetCounts
from quorate.noise import NoiseSource, SeededNoise
from quorate.types import FloatArray, IntArray

G = 2**15
TOP, ABSTAINS = 2 * G, -1


def test_teachers_without_a_number_add_the_middle_and_count_in_the_divisor():
    mechanism = NoisyMean(sigma=1.0)
    places = np.array([0, G, TOP, ABSTAINS, TOP + 1, -(2**62), 2**62])
    assert mechanism.steps(places).tolist() == [-G, 0, G, 0, 0, 0, 0]
    assert mechanism.means(np.array([3 * G]), 4).tolist() == [0.75]


def test_one_teacher_moves_a_sum_by_the_sensitivity_and_no_more():
    mechanism = NoisyMean(sigma=1.0)
    added = mechanism.steps(np.array([ABSTAINS, 0, 1, G, TOP - 1, TOP]))
    assert np.ptp(added) == 2 * G == mechanism.event.l2_sensitivity
    assert np.abs(added - added[0]).max() == G  # in the place of an abstention


@pytest.mark.parametrize(("sigma", "answers"), [(40.0, 1), (300.0, 250), (90.0, 40)])
def test_the_price_is_that_of_gaussian_noise_on_a_vector_of_this_length(sigma, answers):
    mechanism, delta = NoisyMean(sigma), 1e-6
    length = sqrt(answers * (2 * G) ** 2)  # one teacher moves every query from one end to the other
    by_hand = gaussian_epsilon(length / (sigma * G), delta)
    assert by_hand <= epsilon(mechanism.schedule(answers), delta) <= by_hand * (1 + 1e-5)


def test_a_budget_buys_the_least_noise():
    schedule = Schedule(answers=100, epsilon=1.0, delta=1e-5)
    mechanism = NoisyMean.calibrated({}, schedule)
    by_hand = brentq(lambda sigma: gaussian_epsilon(2 * sqrt(100) / sigma, 1e-5) - 1.0, 10, 200)
    assert mechanism.sigma == pytest.approx(by_hand, rel=1e-5)
    assert schedule.fits(mechanism)
    assert not schedule.fits(NoisyMean(mechanism.sigma * 0.999))


@pytest.mark.parametrize(
    "counts", [np.zeros((3, 2), dtype=np.int64), np.zeros((3, 1)), np.zeros(3, dtype=np.int64), [[1]]]
)
def test_other_sums_are_refused(counts):
    with pytest.raises(InvalidParameter, match=r"^counts must be an int64 array \(n_queries, 1\)"):
        NoisyMean(sigma=1.0).release_many(counts, SeededNoise(0))


def test_noise_that_is_too_fine_for_its_grid_is_refused():
    with pytest.raises(InvalidParameter, match=r"^sigma"):
        NoisyMean(sigma=2.0**-6)


def test_a_unit_is_in_one_cell_of_a_part_and_without_a_number_in_none():
    counts = TargetCounts(sigma=1.0, cells=4)
    targets = np.array([-1, 0, 99, 100, 199, 200, 399, 500, 2**16])
    assert counts.counts_of(targets, 100, 500).tolist() == [4, 1, 1, 2]
    for place in range(len(targets)):
        alone = counts.counts_of(targets[place : place + 1], 100, 500)
        assert alone.sum() == (targets[place] >= 0)
    assert counts.event.l2_sensitivity == pytest.approx(sqrt(2) * 2**20)


class InTwoCells(TargetCounts):
    """A unit counts in its cell, and once more in it."""

    __slots__ = ()

    def counts_of(self, targets: IntArray, low: int, high: int) -> IntArray:
        return 2 * TargetCounts.counts_of(self, targets, low, high)


class Quieter(TargetCounts):
    """Half of the noise that is paid for."""

    __slots__ = ()

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        return TargetCounts.release_many(TargetCounts(self.sigma / 2, self.cells), counts, noise)


@pytest.mark.parametrize(("kind", "caught"), [(TargetCounts, False), (InTwoCells, True), (Quieter, True)])
def test_an_audit_attacks_counts_of_targets_and_catches_a_twin(kind, caught):
    means, paid = NoisyMean(sigma=20.0), TargetCounts(sigma=2.0, cells=5)
    event = Composed((Repeated(paid.event, 2), means.schedule(3)))
    how: Any = {"queries": 3, "delta": 1e-5, "runs": 20_000, "seed": 1, "confidence": 1 - 1e-6}
    audit = audit_means(means, event, counts=kind(sigma=2.0, cells=5), **how)
    assert [attack.violated for attack in audit.attacks] == [False, False, caught]
    assert audit.attacks[2].proved > 1.0
    assert not audit_means(means, means.schedule(3), **how).violated
    assert audit_means(means, Composed((paid.event, means.schedule(3))), counts=paid, **how).violated  # one was paid


class FromZero(NoisyMean):
    """A number is counted from the low end: who abstains in its place moves the sum by twice as much."""

    __slots__ = ()

    def steps(self, places: IntArray) -> IntArray:
        return np.where((places >= 0) & (places <= 2 * self.grid), places, 0)


class ByVoters(NoisyMean):
    """The divisor is how many had a number, and not K."""

    __slots__ = ()

    def means(self, answers: IntArray, n_teachers: int) -> FloatArray:
        return np.asarray(answers / (self.grid * float(max(n_teachers - 1, 1))))


@dataclass(frozen=True, slots=True)
class Released(ByRow):
    """Tables ``(n_tables, n_teachers)`` of places in; noisy means out, as whole numbers of a fine grid."""

    mechanism: NoisyMean
    takes_streams = True

    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        sums = self.mechanism.steps(counts).sum(axis=1)
        noisy = self.mechanism.release_many(sums[:, None], noise)
        voters = (counts >= 0).sum(axis=1)
        means = np.empty(len(counts))
        for n_voters in np.unique(voters):
            rows = voters == n_voters
            own = type(self.mechanism) is ByVoters
            means[rows] = self.mechanism.means(noisy[rows], int(n_voters) + 1 if own else counts.shape[1])
        return np.rint(means * 2**20).astype(np.int64)


PRESENT, ABSENT = np.array([TOP, G, G]), np.array([ABSTAINS, G, G])
OTHER_END = np.array([0, G, G])
SIGMA = 4.0


def violated(mechanism: NoisyMean, pair: tuple[IntArray, IntArray], mu: float) -> bool:
    return audit_mechanism(Released(mechanism), pair, GaussianClaim(mu), 1 - 1e-6, 60_000, seed=20_261_128).violated


@pytest.mark.parametrize(
    ("kind", "other", "moved", "caught"),
    [
        (NoisyMean, ABSENT, 1, False),
        (NoisyMean, OTHER_END, 2, False),
        (NoisyMean, OTHER_END, 1, True),  # half the sensitivity
        (FromZero, ABSENT, 1, True),
        (ByVoters, ABSENT, 1, True),
    ],
)
def test_the_audit_finds_nothing_in_the_release_and_catches_its_twins(kind, other, moved, caught):
    assert violated(kind(SIGMA), (PRESENT, other), moved / SIGMA) is caught


def test_what_one_teacher_moves_on_all_queries_is_no_longer_than_the_price_says():
    rng, mechanism = np.random.default_rng(0), NoisyMeans(sigma=1.0, queries=300)
    kinds = [rng.integers(-1, TOP + 2, (40, 300)), np.full((1, 300), TOP), np.zeros((1, 300), dtype=np.int64)]
    added = mechanism.steps(np.concatenate(kinds))
    squares = np.sum(added**2, axis=1)
    assert max(squares.tolist()) <= 300 * G**2 // 4
    assert min(squares.tolist()) > 0.9999 * 300 * G**2 / 4  # all of these are longer as they come
    assert max(np.linalg.norm(added[:, None] - added[None], axis=2).ravel()) <= mechanism.event.l2_sensitivity
    for place, vector in zip(kinds[0], added, strict=False):
        alone = NoisyMean(sigma=1.0).steps(place)
        assert np.allclose(vector / np.linalg.norm(vector), alone / np.linalg.norm(alone), atol=1e-4)
    short = np.full(300, G + G // 4)
    assert mechanism.steps(short).tolist() == [G // 4] * 300
    assert not mechanism.steps(np.full(300, ABSTAINS)).any()


@pytest.mark.parametrize("queries", [1, 400])
def test_the_price_of_short_vectors_by_another_road(queries):
    mechanism = NoisyMeans.calibrated({}, Schedule(answers=queries, epsilon=0.7, delta=1e-6))
    by_hand = gaussian_epsilon(2 * 0.5 * sqrt(queries) / mechanism.sigma, 1e-6)
    assert 0.999 * 0.7 < by_hand <= epsilon(mechanism.schedule(queries), 1e-6) <= 0.7


class Longer(NoisyMeans):
    """Charged for short vectors, and adds whole ones."""

    def _short(self, vector: IntArray) -> IntArray:
        return vector


@pytest.mark.parametrize(("kind", "caught"), [(NoisyMeans, False), (Longer, True)])
def test_an_audit_attacks_all_means_at_once_and_catches_whole_vectors(kind, caught):
    mechanism = kind(sigma=sqrt(200) / 2, queries=200)  # μ = 2
    how: dict[str, Any] = {"queries": 200, "delta": 1e-5, "runs": 4_000, "seed": 1, "confidence": 1 - 1e-6}
    assert audit_means(mechanism, NoisyMeans(mechanism.sigma, queries=200).event, **how).violated is caught
