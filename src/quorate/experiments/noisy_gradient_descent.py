r"""The direct competitor: logistic regression by noisy gradient descent on the private rows themselves.

Steps of clipped gradients with Gaussian noise compose into one Gaussian mechanism, :math:`\mu = \Delta\sqrt T/\sigma`,
exactly (Dong, Roth and Su 2022, arXiv:1905.02383, Corollary 3.3); they have momentum, and the mean of the second half
of the iterates is returned. Song, Chaudhuri and Sarwate (2013); Bassily, Smith and Thakurta (2014), arXiv:1405.7085.

It is a yardstick for accuracy, and no tool: its noise is floating point, from a seeded generator. Beside it stands the
shipped direct method, which has the public pool (:func:`public_coordinates`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from quorate.accounting.gaussian import mu_of_gaussian
from quorate.arguments import count, one_of, real
from quorate.data import PublicPool
from quorate.deferred import special
from quorate.estimators import PrivateLogisticRegression
from quorate.experiments.measurement import Scored, scored
from quorate.experiments.sources import Split
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

STEPS, RATE, MOMENTUM, CLIP = 100, 4.0, 0.9, 1.0
_MOVED = {"replace": 2.0, "add or remove": 1.0}  # lengths of c by which one changed row moves the sum of gradients


@stored_as("quorate.experiments.noisy_gradient_descent.LinearRule")
@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """The class with the largest ``x·weights + intercept``, rows scaled to length one; of two by one score."""

    weights: FloatArray = field(repr=False)
    intercept: Any

    def predict(self, X: Any) -> IntArray:
        """Return ``(n_rows,)`` codes."""
        scores = np.asarray(unit_rows(X) @ self.weights + self.intercept)
        return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)


def noisy_gradient_descent(
    X: Any,
    codes: IntArray,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    neighbours: Literal["replace", "add or remove"] = "replace",
    steps: int = STEPS,
    n_classes: int = 2,
    groups: Any | None = None,
) -> LinearRule:
    """Fit a linear rule to rows, scaled to length one, with (ε, δ)-differential privacy for a record or a group.

    `codes`: ``(n_rows,)``, from 0. `neighbours`: replacing a unit moves the sum of clipped gradients by up to 2c,
    adding or removing one by c; their number is public. `n_classes`: one logit for two, else softmax. `groups`: whose
    row it is: the unit is a person, whose gradient is the mean over their rows. Raises InvalidParameter if a number is
    out of range.
    """
    mu = mu_of_gaussian(real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1))
    steps = count("steps", steps, at_least=1)
    sigma = _MOVED[one_of("neighbours", neighbours, _MOVED)] * CLIP * np.sqrt(steps) / mu
    rows = unit_rows(X)
    people = None if groups is None else _rows_of(groups)
    n = len(codes) if people is None else len(people)
    n_outputs = 1 if n_classes == 2 else n_classes
    point = velocity = np.zeros((rows.shape[1] + 1, n_outputs))
    mean = np.zeros_like(point)
    for step in range(steps):
        slopes = _slopes(np.asarray(rows @ point[:-1] + point[-1]), codes)
        gradient = sum_of_clipped(rows, slopes, people)
        gradient = gradient + np.reshape(rng.normal(0, sigma, gradient.size), gradient.shape)
        velocity = MOMENTUM * velocity + gradient / n
        point = point - RATE * velocity
        if step >= steps // 2:
            mean += point / (steps - steps // 2)
    return LinearRule(mean[:-1, 0], float(mean[-1, 0])) if n_outputs == 1 else LinearRule(mean[:-1], mean[-1])


def _slopes(logits: FloatArray, codes: IntArray) -> FloatArray:
    """Return the derivative of the loss in the logits, ``(n_rows, n_outputs)``."""
    if logits.shape[1] == 1:
        return np.asarray(special.expit(logits) - codes[:, None])
    return np.asarray(special.softmax(logits, axis=1) - np.eye(logits.shape[1])[codes])


def sum_of_clipped(rows: Any, slopes: FloatArray, people: list[IntArray] | None) -> FloatArray:
    """Return the sum of the units' gradients, each cut off at the clip, ``(n_features + 1, n_outputs)``.

    `rows`: of length one; the constant 1 comes on top. `slopes`: of the loss in the logits. `people`: rows of each
    person.
    """
    if people is None:
        lengths = np.sqrt(2) * np.sqrt((slopes**2).sum(axis=1))
        cut = slopes * np.minimum(1.0, CLIP / np.maximum(lengths, 1e-12))[:, None]
        return np.vstack([np.asarray(rows.T @ cut), cut.sum(axis=0)])
    total = np.zeros((rows.shape[1] + 1, slopes.shape[1]))
    for own in people:
        gradient = np.vstack([np.asarray(rows[own].T @ slopes[own]), slopes[own].sum(axis=0)]) / len(own)
        total += gradient * min(1.0, CLIP / max(float(np.linalg.norm(gradient)), 1e-12))
    return total


def _rows_of(groups: Any) -> list[IntArray]:
    _, whose = np.unique(np.asarray(groups), return_inverse=True)
    order = np.argsort(whose, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(whose[order])) + 1)


def unit_rows(X: Any) -> Any:
    """Divide every row by its own Euclidean length; a row of zeros stays."""
    from sklearn.preprocessing import normalize

    return normalize(X)


PUBLIC, PLAIN = "public coordinates, direct", "noisy gradient descent, direct"


def public_coordinates(
    parts: Split, epsilon: float, seed: int, *, classes: Sequence[int] = (0, 1), **more: Any
) -> Scored:
    """Fit the shipped direct method by its defaults, ε for replacing one unit as :func:`plain` has it, and score it.

    δ is one by the number of private rows; `more` are arguments of the estimator.
    """
    n, begun = len(parts.y_private), time.process_time()
    arguments = {"delta": 1 / n, "n_records": n, "neighbours": "replace", **more}  # as the yardstick beside it
    groups = arguments.pop("groups", None)
    model = PrivateLogisticRegression(classes=list(classes), epsilon=epsilon, unsafe_noise_seed=seed, **arguments)
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
