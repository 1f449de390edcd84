"""The audit of the direct method's rounds: correct ones pass close to their claim, each broken one is caught."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from quorate.audit import ScheduleAudit, audit_rounds
from quorate.audit import rounds as module
from quorate.direct import contributions
from quorate.direct.plan import DirectPlan, feature_map_for, plan_direct
from quorate.types import FloatArray, IntArray

POOL = np.random.default_rng(2).normal(size=(80, 5)) * [3.0, 1.0, 1.0, 0.3, 0.1]
CONFIDENCE = 1 - 1e-6
EPSILON = 8.0  # at which few runs tell much


def planned(n_classes: int = 2) -> DirectPlan:
    feature_map = feature_map_for("linear", POOL)
    return plan_direct(feature_map, POOL, n_classes=n_classes, n_units=2_000, epsilon=EPSILON, delta=1e-5, rounds=8)


def audited(plan: DirectPlan, **changes: Any) -> ScheduleAudit:
    how: dict[str, Any] = {"delta": 1e-5, "confidence": CONFIDENCE, "runs": 40_000, "seed": 3, **changes}
    return audit_rounds(plan, plan.event, POOL, **how)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_correct_rounds_are_not_flagged_and_the_attack_is_not_blind(n_classes: int) -> None:
    found = audited(planned(n_classes))
    assert not found.violated
    assert [attack.name.split(":")[0] for attack in found.attacks] == ["one round", "all 8 rounds"]
    assert found.attacks[1].proved > 0.5 * found.attacks[1].claimed


def test_noise_for_a_unit_that_comes_or_goes_is_caught_where_one_is_replaced() -> None:
    plan = planned()
    assert (
        audit_rounds(
            replace(plan, sigma=plan.sigma / 2),
            plan.event,
            POOL,
            delta=1e-5,
            confidence=CONFIDENCE,
            runs=40_000,
            seed=3,
        )
        .attacks[1]
        .proved
        > 1.0
    )


def unclipped(z: FloatArray, lengths: FloatArray, codes: IntArray, weights: FloatArray, grid: Any) -> IntArray:
    scaled = contributions.slopes(z, codes, weights, grid.bits) * (2.0 ** (grid.k - grid.bits) / grid.clip)
    return np.asarray(z.T @ np.trunc(scaled)).astype(np.int64)


def by_the_wrong_axis(z: FloatArray, lengths: FloatArray, codes: IntArray, weights: FloatArray, grid: Any) -> IntArray:
    """Each coordinate is cut off by itself."""
    scaled = contributions.slopes(z, codes, weights, grid.bits) * (2.0 ** (grid.k - grid.bits) / grid.clip)
    each = z[:, :, None] * scaled[:, None, :]
    return np.asarray(np.trunc(np.clip(each, -(2.0**grid.k), 2.0**grid.k)).sum(axis=0)).astype(np.int64)


@pytest.mark.parametrize("broken", [unclipped, by_the_wrong_axis])
def test_a_contribution_that_is_too_long_is_caught(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    tight = replace(plan, grid=replace(plan.grid, clip=plan.grid.clip / 4))
    assert not audited(tight).violated
    monkeypatch.setattr(module, "of_records", broken)
    assert audited(tight).violated


def test_a_round_drawn_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.discrete_gaussian

    def mean_of_two(sigma: float, shape: Any, source: Any) -> FloatArray:
        both = real(sigma, (2, *shape), source)
        return np.asarray(both.mean(axis=0))

    monkeypatch.setattr(module, "discrete_gaussian", mean_of_two)
    plan = planned()
    assert audited(replace(plan, grid=replace(plan.grid, clip=plan.grid.clip / 4))).violated
