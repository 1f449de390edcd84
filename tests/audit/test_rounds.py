"""The audit of the direct method's rounds: correct ones pass close to their claim, each broken one is caught."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quorate.accounting import Repeated
from quorate.audit import ScheduleAudit, audit_rounds
from quorate.audit import rounds as module
from quorate.data.feature_maps.composed import feature_map_for
from quorate.direct import contributions, descend
from quorate.direct.plan import DirectPlan, plan_direct
from quorate.types import FloatArray, IntArray

POOL = np.random.default_rng(2).normal(size=(80, 5)) * [3.0, 1.0, 1.0, 0.3, 0.1]
CONFIDENCE = 1 - 1e-6
EPSILON = 8.0  # at which few runs tell much


@pytest.fixture(autouse=True)
def few_runs(monkeypatch):
    """Enough for the faults below."""
    monkeypatch.setattr(module, "_LEAST_NUMBERS", 1_000)
    monkeypatch.setattr(module, "_MOST_RUNS", 20)


def planned(n_classes: int = 2) -> DirectPlan:
    feature_map = feature_map_for("linear", POOL)
    return plan_direct(feature_map, POOL, n_classes=n_classes, n_units=2_000, epsilon=EPSILON, delta=1e-5, rounds=8)


def audited(plan: DirectPlan, **changes: Any) -> ScheduleAudit:
    how: dict[str, Any] = {"delta": 1e-5, "confidence": CONFIDENCE, "runs": 40_000, "seed": 3, **changes}
    return audit_rounds(plan, plan.event, POOL, **how)


@pytest.mark.heavy
@pytest.mark.parametrize("n_classes", [2, 4])
def test_correct_rounds_are_not_flagged_and_the_attack_is_not_blind(n_classes):
    found = audited(planned(n_classes))
    assert not found.violated
    assert [attack.name.split(":")[0] for attack in found.attacks] == ["one round", "all 8 rounds"]
    assert found.attacks[1].proved > 0.5 * found.attacks[1].claimed
    assert len(found.comparisons) == 4


@pytest.mark.heavy
def test_a_unit_that_is_there_or_not_moves_the_sum_by_half_of_one_that_is_replaced():
    plan = planned()
    at_half = replace(plan, sigma=plan.sigma / 2)  # the noise for adding or removing
    tight = replace(at_half, grid=replace(plan.grid, clip=plan.grid.clip / 4))
    there_or_not, replaced = (
        audited(tight, neighbours=relation).attacks[1].proved for relation in ("add-or-remove", "replace")
    )
    assert 4.0 < there_or_not <= EPSILON < replaced


@pytest.mark.heavy
@pytest.mark.parametrize("times", [1, 7, 9])
def test_another_event_than_that_of_the_plan_is_a_violation(times):
    plan = planned()
    found = audit_rounds(plan, Repeated(plan.event.event, times), POOL, delta=1e-5, confidence=CONFIDENCE, runs=400)
    assert found.charge is not None
    assert found.charge.violated
    assert found.violated
    assert "charged for something else" in found.charge.verdict


def unclipped(z: FloatArray, lengths: FloatArray, codes: IntArray, weights: FloatArray, grid: Any) -> IntArray:
    scaled = contributions.slopes(z, codes, weights, grid) * (2.0 ** (grid.k - grid.bits) / grid.clip)
    return np.asarray(z.T @ np.trunc(scaled)).astype(np.int64)


def by_the_wrong_axis(z: FloatArray, lengths: FloatArray, codes: IntArray, weights: FloatArray, grid: Any) -> IntArray:
    """Each coordinate is cut off by itself."""
    scaled = contributions.slopes(z, codes, weights, grid) * (2.0 ** (grid.k - grid.bits) / grid.clip)
    each = z[:, :, None] * scaled[:, None, :]
    return np.asarray(np.trunc(np.clip(each, -(2.0**grid.k), 2.0**grid.k)).sum(axis=0)).astype(np.int64)


@pytest.mark.heavy
@pytest.mark.parametrize("broken", [unclipped, by_the_wrong_axis])
def test_a_contribution_that_is_too_long_is_caught(broken, monkeypatch):
    plan = planned()
    tight = replace(plan, grid=replace(plan.grid, clip=plan.grid.clip / 4))
    assert not audited(tight).violated
    monkeypatch.setattr(module, "of_records", broken)
    assert audited(tight).violated


@pytest.mark.heavy
def test_a_round_drawn_twice_is_caught(monkeypatch):
    real = descend.discrete_gaussian

    def mean_of_two(sigma: float, shape: Any, source: Any) -> FloatArray:
        both = real(sigma, (2, *shape), source)
        return np.rint(both.mean(axis=0)).astype(np.int64)

    monkeypatch.setattr(descend, "discrete_gaussian", mean_of_two)
    plan = planned()
    assert audited(replace(plan, grid=replace(plan.grid, clip=plan.grid.clip / 4))).violated


def faulty(change: Any) -> Any:
    """One call a round, as runs make it; the attacks draw many rounds at once, and are left alone."""
    real, rounds = descend.discrete_gaussian, itertools.count()

    def draw(sigma: float, shape: Any, source: Any) -> Any:
        noise = real(sigma, shape, source)
        return change(noise, next(rounds)) if noise.ndim == 2 else noise

    return draw


kept: list[Any] = []


def every_second_is_the_one_before(noise: Any, number: int) -> Any:
    kept[:] = [noise] if number % 2 == 0 else kept
    return kept[0]


def size_of_the_one_before(noise: Any, number: int) -> Any:
    kept[:] = [np.abs(noise)] if number % 2 == 0 else kept
    return np.where(noise < 0, -1, 1) * kept[0]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda noise, number: noise * (number % 8 != 3), "each round"),
        (lambda noise, number: (0.8 * noise).astype(np.int64), "size"),
        (every_second_is_the_one_before, "one round and another"),
        (size_of_the_one_before, "one round and another"),
        (lambda noise, number: np.tile(noise[:1], (len(noise), 1)), "the numbers of a round"),
    ],
    ids=[
        "one round in eight without noise",
        "a fifth less",
        "two rounds share it",
        "two share its size",
        "all numbers share it",
    ],
)
def test_noise_that_is_wrong_in_the_rounds_of_a_run_is_seen(change, seen, monkeypatch):
    monkeypatch.setattr(descend, "discrete_gaussian", faulty(change))
    found = audited(planned(), runs=400)
    assert seen in {each.name.split(": ")[1] for each in found.comparisons if each.violated}
    assert not any(attack.violated for attack in found.attacks)
