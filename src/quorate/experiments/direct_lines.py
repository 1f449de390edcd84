"""The lines of the direct methods: a linear model of the private rows, with the public pool and without."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from quorate.data import PublicPool
from quorate.estimators import PrivateLogisticRegression
from quorate.experiments.measured import Scored, scored
from quorate.experiments.noisy_gradient_descent import noisy_gradient_descent
from quorate.experiments.sources import Split

PUBLIC, PLAIN = "public coordinates, direct", "noisy gradient descent, direct"


def public_coordinates(
    parts: Split, epsilon: float, seed: int, *, classes: Sequence[int] = (0, 1), **more: Any
) -> Scored:
    """Fit the shipped direct method by its defaults, and score it; `more` are arguments of the estimator.

    ε is for replacing one unit, as that of :func:`plain` is, which it stands beside.

    Parameters
    ----------
    parts : Split
        Rows in their roles; δ is one by the number of private rows, unless `more` has another.
    epsilon : float
        The budget.
    seed : int
        Of the noise.
    classes : sequence of int
        The declared classes.
    """
    n, begun = len(parts.y_private), time.process_time()
    asked = {"delta": 1 / n, "n_records": n, "neighbours": "replace", **more}  # as the yardstick beside it
    groups = asked.pop("groups", None)
    model = PrivateLogisticRegression(classes=list(classes), epsilon=epsilon, unsafe_noise_seed=seed, **asked)
    model.fit(parts.X_private, parts.y_private, public=PublicPool(parts.X_public), groups=groups)
    spent = time.process_time() - begun
    return scored(model.predict(parts.X_test), parts.y_test, cpu_seconds=spent, dimension=model.plan_.dimension)


def plain(
    parts: Split,
    epsilon: float,
    seed: int,
    *,
    classes: Sequence[int] = (0, 1),
    delta: float | None = None,
    groups: Any = None,
) -> Scored:
    """Fit the yardstick without public rows, whose clip was fixed beforehand, and score it."""
    begun = time.process_time()
    rule = noisy_gradient_descent(
        parts.X_private,
        parts.y_private,
        epsilon=epsilon,
        delta=1 / len(parts.y_private) if delta is None else delta,
        rng=np.random.default_rng(seed),
        n_classes=len(classes),
        groups=groups,
    )
    return scored(rule.predict(parts.X_test), parts.y_test, cpu_seconds=time.process_time() - begun)
