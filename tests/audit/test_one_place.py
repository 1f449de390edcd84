"""Faults in one place, which an audit that looks at one kind of votes does not see: they are looked for everywhere."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest

from quorate.accounting import DiscreteGaussian, Repeated
from quorate.audit import ScheduleAudit, audit_schedule
from quorate.audit.cheats.faulty_noise import BareNearUnanimity, ExactAtOneLead, HalvesShareNoise, TurnedByParity
from quorate.audit.cheats.noisy_max import NoisyMax
from quorate.audit.hard_votes import PLACES, leads, votes_cast
from quorate.audit.many_answers import audit_equal_votes, compared
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts, NoisySum
from quorate.noise import SeededNoise, discrete_gaussian
from quorate.release import DrawnBlock

CONFIDENCE = 1 - 1e-6
SIGMA, K, ANSWERS = 20.0, 60, 50
EQUAL, LEAD, CAST = "answers to equal votes", "at every lead", "at every number of votes cast"


def audited(mechanism: Any, *, confidence: float = CONFIDENCE, seed: int = 1, runs: int = 4_000) -> ScheduleAudit:
    event = Repeated(DiscreteGaussian(SIGMA, sqrt(2)), ANSWERS)
    return audit_schedule(
        mechanism, event, n_teachers=K, n_classes=2, delta=1e-5, confidence=confidence, runs=runs, seed=seed
    )


def violated(found: ScheduleAudit) -> str:
    return "; ".join(part.name for part in (*found.attacks, *found.comparisons) if part.violated)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("broken", "seen"),
    [
        (HalvesShareNoise(SIGMA), EQUAL),
        (BareNearUnanimity(SIGMA), LEAD),
        (TurnedByParity(SIGMA), CAST),
        (ExactAtOneLead(SIGMA), LEAD),
        (ExactAtOneLead(SIGMA, lead=34), LEAD),  # where noise turns one answer in nine
    ],
    ids=["halves", "unanimity", "parity", "lead 4", "lead 34"],
)
def test_a_fault_in_one_place_is_seen_by_an_audit_that_is_not_told_where(broken: Any, seen: str) -> None:
    found = audited(broken)
    assert seen in violated(found)
    assert not any(attack.violated for attack in found.attacks if attack.name.endswith("two classes tie"))


@pytest.mark.heavy
@pytest.mark.parametrize("correct", [NoisyMax(SIGMA), NoisyCounts(SIGMA), GaussianNoisyMax(SIGMA)])
def test_what_is_right_everywhere_is_not_flagged(correct: Any) -> None:
    assert not violated(audited(correct))


@pytest.mark.faults
def test_a_correct_mechanism_is_flagged_no_more_often_than_is_said() -> None:
    """At 80 % for everything together: 100 audits flag more than 37 of 100 once in a hundred thousand, if 20 % do."""
    flagged = sum(audited(NoisyMax(SIGMA), confidence=0.8, seed=seed, runs=1_000).violated for seed in range(100))
    assert flagged <= 37


@pytest.mark.heavy
@pytest.mark.heavy_cases(1)
@pytest.mark.parametrize("broken", [BareNearUnanimity(SIGMA), TurnedByParity(SIGMA), ExactAtOneLead(SIGMA, lead=34)])
def test_what_is_said_to_be_seen_is_seen_in_nine_audits_of_ten(broken: Any) -> None:
    found = [audited(broken, confidence=0.95, seed=seed, runs=20_000).violated for seed in range(10)]
    assert sum(found) >= 9


# --- noise that answers share ----------------------------------------------------------------------------------------


class Sharing:
    """Noise of a batch that is handed on to other answers."""

    def __init__(self, share: Callable[[Any], Any]) -> None:
        self._share = share

    def release_many(self, counts: Any, noise: Any) -> Any:
        drawn = discrete_gaussian(SIGMA, counts.shape, noise)
        return (counts + self._share(drawn)).argmax(axis=1)


def one_pair(noise: Any) -> Any:
    return np.concatenate([noise[:-1], noise[2:3]])


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "share",
    [
        lambda noise: np.repeat(noise[::2], 2, axis=0)[: len(noise)],
        lambda noise: np.where(np.arange(len(noise))[:, None] < len(noise) // 2, noise, noise[::-1]),
        lambda noise: np.concatenate([noise[: len(noise) // 2], -noise[len(noise) // 2 - 1 :: -1]])[: len(noise)],
        one_pair,
    ],
    ids=["the next", "mirrored", "turned round", "one pair of a batch"],
)
def test_noise_that_two_answers_share_is_seen_whichever_two(share: Any) -> None:
    counts = np.array([50, 50])
    found = audit_equal_votes(Sharing(share), counts, 48, CONFIDENCE, 300, SeededNoise(1), name="equal votes")
    assert found.violated


@pytest.mark.heavy
def test_noise_that_blocks_share_is_seen_on_the_way_from_the_reservation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mechanism is right; what it is handed is the same for the two blocks of a run."""
    how = (np.array([50, 50]), 48, CONFIDENCE, 300)
    mechanism = GaussianNoisyMax(SIGMA, form="binary")
    assert not audit_equal_votes(mechanism, *how, SeededNoise(1), name="equal votes").violated
    monkeypatch.setattr(DrawnBlock, "noise", lambda self, source: source.at(self.block.purpose, 0))
    assert audit_equal_votes(mechanism, *how, SeededNoise(1), name="equal votes").violated


@pytest.mark.heavy
@pytest.mark.parametrize("p", [0.5, 0.05, 0.0])
def test_independent_answers_are_flagged_as_rarely_as_is_said(p: float) -> None:
    rng = np.random.default_rng(0)
    flagged = [compared(rng.random((80, 20, 2)) < p, 0.8, name="independent").violated for _ in range(200)]
    assert sum(flagged) <= 40 + 4.9 * sqrt(200 * 0.2 * 0.8)


# --- what is scanned -------------------------------------------------------------------------------------------------


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("n_teachers", [1, 2, 250, PLACES, PLACES + 1, 100_000])
def test_the_tie_both_ends_and_every_number_cast_are_scanned(n_teachers: int) -> None:
    pairs = leads(GaussianNoisyMax(SIGMA), n_teachers, 3)
    assert len(pairs) <= PLACES
    assert all(zero.sum() == one.sum() == n_teachers for zero, one in pairs)
    ahead = {int(zero[0] - zero[1]) for zero, _ in pairs}
    assert {n_teachers, n_teachers % 2} <= ahead
    cast = votes_cast(n_teachers, 3)
    assert all((zero - one).tolist() == [1, 0, 0] for zero, one in cast)
    assert all(one.min() >= 0 for _, one in cast)
    if n_teachers <= PLACES:
        assert {int(zero.sum()) for zero, _ in cast} == set(range(2, n_teachers + 1))


def test_sums_are_scanned_in_whole_contributions() -> None:
    (zero, one), *_ = leads(NoisySum(scale=2.0, grid=10, form="shares"), 4, 2)
    assert (zero.tolist(), one.tolist()) == ([40, 0], [30, 10])
