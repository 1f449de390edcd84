"""Patches that several maps of one public pool share: computed once, and the same bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import quorate
from quorate.data.feature_maps import PatchFeatures, PoolDirections, SharedPatches, patch_map, patches
from quorate.direct.budgets import PlannedBudgets

RNG = np.random.default_rng(0)
IMAGES = (np.kron(RNG.random((300, 5, 5)), np.ones((2, 2))) + 0.2 * RNG.random((300, 10, 10))).reshape(300, -1)
ROWS = RNG.random((90, 100))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images each computed block had."""
    sizes: list[int] = []
    of_block = PatchFeatures.of_block

    def counted(self: PatchFeatures, rows: Any) -> Any:
        sizes.append(len(rows))
        return of_block(self, rows)

    monkeypatch.setattr(PatchFeatures, "of_block", counted)
    return sizes


@pytest.mark.heavy
def test_maps_that_share_patches_are_the_maps_of_a_run() -> None:
    shared = SharedPatches()
    ours, alone = (PoolDirections.of_images(IMAGES, patches=each) for each in (shared, None))
    for rows in (IMAGES, ROWS, ROWS[::-1], ROWS[:1]):
        assert (ours.transform(rows) == alone.transform(rows)).all()
    mapped, plain = (patch_map(IMAGES, patches=each) for each in (shared, None))
    assert (mapped.images(ROWS) == plain.images(ROWS)).all()
    assert mapped.first is ours.coordinates.feature_map.first  # type: ignore[attr-defined]
    task: dict[str, Any] = {"n_classes": 3, "n_units": 2_000, "epsilon": 1.0, "delta": 1e-5, "neighbours": "replace"}
    budgets = [PlannedBudgets(IMAGES, "patches", each) for each in (shared, None)]
    assert budgets[0].outline(**task).settings == budgets[1].outline(**task).settings
    assert (budgets[0].along(ROWS) == budgets[1].along(ROWS)).all()


@pytest.mark.heavy
def test_a_plan_computes_the_patches_of_each_public_image_once(computed: list[int]) -> None:
    quorate.plan(
        IMAGES.reshape(-1, 10, 10), epsilon=1.0, delta=1e-5, n_records=2_000, n_classes=2,
        evaluation=(ROWS, np.arange(90) % 2), n_teachers=[20], mechanisms=["NoisyCounts"],
    )  # fmt: skip
    assert sum(computed) == len(IMAGES) + len(ROWS)


@pytest.mark.heavy
def test_no_more_is_remembered_than_fits(monkeypatch: pytest.MonkeyPatch, computed: list[int]) -> None:
    known = SharedPatches().of(IMAGES)
    n_numbers = known.numbers(ROWS[:1]).size
    monkeypatch.setattr(patches, "MOST_NUMBERS", 128 * n_numbers)  # two blocks of five
    computed.clear()
    first, again = known.numbers(IMAGES), known.numbers(IMAGES)
    assert (first == again).all()
    assert len(IMAGES) < sum(computed) < 2 * len(IMAGES)
