"""A fit is charged under a digest of its class, arguments and plan: a ledger that was begun knows the same fit again.

The digests were written down once. Where one of them changes, whoever fits again pays twice: give a class that moves
its old name by :func:`quorate.stored_names.stored_as`, and leave what a plan says as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from quorate.learners import (
    AgnosticLearner,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    PrivateLearner,
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.concepts import Intervals, PointFunctions, Rectangles, Stumps, Thresholds
from quorate.learners.fit_charge import charge_of
from quorate.learners.sample import read_sample
from quorate.learners.sanitizers import BLR, MWEM, Boxes, Medians, Tree
from quorate.types import Secret

GRID = Thresholds(bits=4)
LINE = Rectangles(bits=4, n_features=1)
COLUMN = np.arange(16.0)[:, None]
EMPIRICAL = EmpiricalLearner(base=NoisyThreshold(concepts=GRID, epsilon=1.0), concepts=GRID, epsilon=1.0)
AROUND: dict[str, Any] = {
    "concepts": GRID, "base": ExponentialLearner(concepts=GRID, epsilon=1.0), "epsilon": 0.5,
}  # fmt: skip
KEYS: dict[str, PrivateLearner] = {
    "9277c996257ee42d7db9dc69c92e0d91": ExponentialLearner(concepts=GRID, epsilon=0.5),
    "615f40cd1698af1f9a7d8196df0cdac9": ExponentialLearner(concepts=GRID, epsilon=0.5, selection="exponential"),
    "fd5038d1d21dfa9416656b1cecd6eb89": ExponentialLearner(concepts=Stumps(1), epsilon=0.5, domain=COLUMN),
    "ba8ccaebd60c69ffa148e6a80ef53628": ExponentialLearner(concepts=PointFunctions(bits=4), epsilon=0.5),
    "9ba057550e65a6a4c560639f6ca1b0c6": ExponentialLearner(concepts=Intervals(bits=4), epsilon=0.5),
    "de6278cd96ba013b5f739a1aa13f3a07": ExponentialLearner(concepts=LINE, epsilon=0.5),
    "528c7bb07ed6f904cf158611e757b498": NoisyThreshold(concepts=GRID, epsilon=0.5),
    "31d45c467b812c89665492cda7a68082": GenericLearner(concepts=GRID, sanitizer=Tree(), epsilon=0.5),
    "efc0b14707b020459b1c3c8971b3602f": GenericLearner(concepts=GRID, sanitizer=MWEM(), epsilon=0.5),
    "d1945580e310298d6818c960f9c89919": GenericLearner(concepts=GRID, sanitizer=BLR(size=2), epsilon=0.5),
    "8c2e989f9d7884fec40a1bc95131f3ca": GenericLearner(concepts=LINE, sanitizer=Boxes(), epsilon=0.5),
    "d74ff060378304b3c46e7591deaae068": GenericLearner(concepts=GRID, sanitizer=Medians(delta=1e-6), epsilon=0.5),
    "8e0111e4cda662d07d0353abf2e5d3c2":
        GenericLearner(concepts=GRID, sanitizer=Medians(delta=1e-6), epsilon=0.5, delta=1e-7),
    "1cb9da3d84d5a0f4a129aedbdf912f9d": GenericLearner(concepts=Stumps(1), sanitizer=MWEM(domain=COLUMN), epsilon=0.5),
    "5e6dd2aac06396709d53433b427c0d99": LabelBoost(**AROUND),
    "4678fa8c6e927c2fa966492285834f23": LabelBoost(**AROUND | {"delta": 1e-6}, constants="paper"),
    "b12fb5953b0ca084ee1387d2442aa0ab": SubSampling(**AROUND),
    "0c0dc715460efcae8fb8ade5f1bf041f": SubSampling(**AROUND, labelled="first"),
    "5520f02017267d2c9541ba149fc5fa22": EmpiricalLearner(**AROUND),
    "097b334f9d305438ddecb14cf6b40339": AgnosticLearner(**AROUND),
    "d07712c333e4c044b95abd2de4f7ae44": AgnosticLearner(**AROUND | {"base": EMPIRICAL}),
    "16432f9c7481c3f7824e3d921c1865e7": SubsampledAgnostic(**AROUND),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_ledger_that_was_begun_knows_the_fit_again(key):
    learner = KEYS[key]
    n_unlabelled = 0 if isinstance(learner, SubSampling) else 4_000
    plan, _ = learner._planned(8_000 - n_unlabelled, n_unlabelled, *learner._target())
    assert charge_of(learner, plan, "rows", seeded=False).key == f"learner {key}"


def test_what_is_no_argument_of_the_fit_changes_no_key_and_every_argument_does():
    learner = ExponentialLearner(concepts=GRID, epsilon=0.5)
    plan, _ = learner._planned(40, 0, *learner._target())
    keys = {
        name: charge_of(learner.__class__(**learner.get_params() | {name: value}), plan, "rows", seeded=False).key
        for name, value in {"alpha": 0.1, "ledger": "a.db", "classes": ["no", "yes"], "beta": 0.2, "limit": 9}.items()
    }
    assert keys["alpha"] == keys["ledger"] == keys["classes"]
    assert len(set(keys.values())) == 3


def test_a_ledger_that_was_begun_knows_the_rows_again_in_any_order():
    X, y, key = np.array([[3], [1], [2], [1]]), np.array([1, 0, -1, -1]), Secret(b"k" * 32)
    digests = {
        "7dcdfb2416df4f1d1dcfefe9ba836a921701bf89291a4ed5d9e9b6cddec8ed2b": (GRID, X),
        "2b57208f2f6e0ba9bd314a67254f06d89cc42b80d6e065635afa7e8ab7df2174": (Stumps(1), X * 1.0),
    }
    for digest, (concepts, points) in digests.items():
        assert read_sample(concepts, points, y).fingerprint(key) == f"sorted rows: {digest}"
        assert read_sample(concepts, points[::-1], y[::-1]).fingerprint(key) == f"sorted rows: {digest}"
