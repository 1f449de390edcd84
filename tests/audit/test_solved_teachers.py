"""The shard audit on teachers solved to their optimum: one unit moves one of them, and what is shared shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quorate.audit import audit_shards
from quorate.ensemble.linear.equivalent import is_equivalent
from quorate.ensemble.linear.newton import InColumns, minimise

K, N = 4, 160


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N)
    return rng.normal(size=(N, 5)) + 0.7 * y[:, None], y


TEACHERS = {
    "columns": (LogisticRegression(C=100), lambda X: X),
    "rows": (LogisticRegression(), lambda X: np.hstack([X, np.sin(np.outer(X[:, 0], np.arange(1, 61)))])),
    "sparse": (LogisticRegression(), csr_matrix),
    "ridge": (RidgeClassifier(), lambda X: X),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), lambda X: X),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", TEACHERS)
def test_one_unit_moves_one_solved_teacher(name: str) -> None:
    X, y = table(1)
    model, rows = TEACHERS[name]
    assert is_equivalent(model)
    found = audit_shards(model, rows(X), y, classes=[0, 1], n_teachers=K, units=2, seed=3)

    assert {probe.moved for probe in found.probes} == {1}


def shards(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> list[InColumns]:
    signs = np.where(y == 1, 1.0, -1.0)
    return [InColumns(X[groups % K == k], signs[groups % K == k], 1.0, intercept=True) for k in range(K)]


def coefficients(objectives: Sequence[InColumns]) -> list[dict[str, np.ndarray]]:
    return [dict(zip(("coef", "intercept"), objective.solution(), strict=True)) for objective in objectives]


def each_by_itself(X: Any, y: Any, groups: Any) -> list[Any]:
    objectives = shards(X, y, groups)
    for objective in objectives:
        assert minimise(objective, objective.value)
    return coefficients(objectives)


def pooled_scaler(X: Any, y: Any, groups: Any) -> list[Any]:
    return each_by_itself((X - X.mean(axis=0)) / X.std(axis=0), y, groups)


def shared_stopping_rule(X: Any, y: Any, groups: Any) -> list[Any]:
    """All go on until the decrements of all together are small."""
    objectives = shards(X, y, groups)
    for _ in range(20):
        steps = [objective.step() for objective in objectives]
        if sum(step.squared_decrement for step in steps if step) < 1e-4:
            break
        for objective in objectives:
            objective.after(1.0)
            objective.move()
    return coefficients(objectives)


def shared_damping(X: Any, y: Any, groups: Any) -> list[Any]:
    """All take the same share of their steps: what the most restless of them can bear."""
    objectives = shards(X, y, groups)
    for _ in range(12):
        steps = [objective.step() for objective in objectives]
        share = 1 / (1 + max(step.largest for step in steps if step))
        for objective in objectives:
            objective.after(share)
            objective.move()
    return coefficients(objectives)


def shared_hessian(X: Any, y: Any, groups: Any) -> list[Any]:
    """Steps by the second derivatives of all rows together, to each teacher's own optimum all but the last bits."""
    Z = np.column_stack([X, np.ones(len(X))])
    bound = np.linalg.inv(Z.T @ Z / 4 + np.diag([1.0] * X.shape[1] + [0.0]))
    models = []
    for k in range(K):
        rows, labels, w = Z[groups % K == k], y[groups % K == k], np.zeros(Z.shape[1])
        for _ in range(400):
            wrong = labels - 1 / (1 + np.exp(-rows @ w))
            w = w + bound @ (rows.T @ wrong - np.append(w[:-1], 0.0))
        models.append({"coef": w})
    return models


def test_the_twins_pattern_is_not_flagged_where_nothing_is_shared() -> None:
    X, y = table(1)
    found = audit_shards(each_by_itself, X, y, classes=[0, 1], units=4, seed=3)
    assert {probe.moved for probe in found.probes} == {1}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("twin", [pooled_scaler, shared_hessian, shared_damping, shared_stopping_rule])
def test_a_solver_that_shares_something_is_caught(twin: Callable[..., Any]) -> None:
    X, y = table(1)
    units = 12 if twin is shared_stopping_rule else 1  # a rule shows where one more step is taken, all else at once
    found = audit_shards(twin, X, y, classes=[0, 1], units=units, seed=3)
    assert found.violated
    assert found.worst > 1
