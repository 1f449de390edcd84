"""One changed unit changes exactly one teacher, by the own way of preparing and training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.estimators.small_task import POOL, SETTINGS, N, X, Y

from quorate import PublicPool
from quorate.audit import audit_shards
from quorate.noise import OSNoise
from quorate.pipeline.config import RunConfig
from quorate.pipeline.flow import teachers
from quorate.pipeline.prepare import prepare
from quorate.pipeline.stages import NoStages
from quorate.pipeline.task import Task
from quorate.release.described import described
from quorate.types import Secret


def trained(rows: Any, labels: Any, groups: Any, key: bytes, **changes: Any) -> list[str]:
    """The teachers of a fit, by the estimator's own way of preparing and training, each as a text of all it learned."""
    settings = {**SETTINGS, **changes}
    task: Task = prepare(
        RunConfig(teacher=settings.pop("teacher", GaussianNB()), **settings),
        rows,
        labels,
        public=PublicPool(POOL),
        groups=groups,
        key=Secret(key),
        fingerprint_key=Secret(key),
        noise=OSNoise(),
    )
    voters = teachers(task, NoStages(), lambda stage, done, total: None).voters.reveal()
    return [described(voter) for voter in voters]


GROUPS = np.repeat(np.arange(N // 3), 3)


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression(), DecisionTreeClassifier()])
def test_changing_adding_or_removing_a_person_of_several_rows_changes_exactly_one_teacher(model: Any) -> None:
    key = bytes(range(32))
    before = trained(X, Y, GROUPS, key, teacher=model)
    assert before == trained(X, Y, GROUPS, key, teacher=model), "the same rows give the same teachers"
    theirs = GROUPS == 7
    changed, flipped = X.copy(), Y.copy()
    changed[theirs] += 5.0
    flipped[theirs] = 1 - flipped[theirs]
    neighbours = {
        "replaced": (changed, flipped, GROUPS),
        "removed": (X[~theirs], Y[~theirs], GROUPS[~theirs]),
        "added": (np.vstack([X, changed[theirs]]), np.append(Y, flipped[theirs]), np.append(GROUPS, [9_999] * 3)),
    }
    for change, table_ in neighbours.items():
        after = trained(*table_, key, teacher=model)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1, change


def test_a_balanced_partition_keeps_that_promise_for_replacing_only() -> None:
    key = bytes(range(32))
    before = trained(X, Y, GROUPS, key, partition="balanced")
    theirs = GROUPS == 7
    changed = np.where(theirs[:, None], X + 5.0, X)
    after = trained(changed, Y, GROUPS, key, partition="balanced")
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    removed = trained(X[~theirs], Y[~theirs], GROUPS[~theirs], key, partition="balanced")
    assert sum(a != b for a, b in zip(before, removed, strict=True)) > 1


def test_a_row_by_position_is_blanked_in_place_or_appended() -> None:
    key = bytes(range(32))
    before = trained(X, Y, None, key)
    after = trained(np.vstack([X, X[:1] + 3.0]), np.append(Y, 1 - Y[0]), None, key)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    renumbered = trained(X[1:], Y[1:], None, key)
    assert sum(a != b for a, b in zip(before, renumbered, strict=True)) > 1, "not covered, as the guarantee says"


def test_an_encoder_fitted_on_private_rows_would_move_every_teacher(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin of the test above: preprocessing on pooled private rows."""
    from quorate.pipeline import flow

    key = bytes(range(32))
    real = flow.train_chunk

    def scaled_together(teacher: Any, rows: Any, *args: Any, **how: Any) -> Any:
        return real(teacher, StandardScaler().fit_transform(rows), *args, **how)

    monkeypatch.setattr(flow, "train_chunk", scaled_together)
    before = trained(X, Y, GROUPS, key)
    after = trained(np.where((GROUPS == 7)[:, None], X + 5.0, X), Y, GROUPS, key)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == SETTINGS["n_teachers"]


def test_the_shard_audit_agrees() -> None:
    found = audit_shards(GaussianNB(), X, Y, GROUPS, classes=[0, 1], n_teachers=10, units=1, seed=1)
    assert not found.violated
    assert found.worst == 1
