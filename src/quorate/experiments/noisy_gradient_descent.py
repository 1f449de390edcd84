r"""The direct competitor: logistic regression by noisy gradient descent on the private rows themselves.

Every step takes the gradient of the loss over all rows, each row's part clipped to length c, and adds Gaussian noise;
T steps of noise :math:`\sigma` compose into one Gaussian mechanism of parameter :math:`\mu = \Delta\sqrt T/\sigma`,
exactly. Steps have momentum, and what is returned is the mean of the second half of the iterates.

It is a yardstick for accuracy, and no tool: its noise is floating point, from a seeded generator. Use a maintained
library to train such a model on data that are private.

References
----------
Song, Chaudhuri and Sarwate (2013); Bassily, Smith and Thakurta (2014), arXiv:1405.7085; Dong, Roth and Su (2022),
arXiv:1905.02383, Corollary 3.3, for the composition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from quorate.accounting.gaussian import mu_of_gaussian
from quorate.arguments import count, one_of, real
from quorate.deferred import special
from quorate.types import FloatArray, IntArray

STEPS, RATE, MOMENTUM, CLIP = 100, 4.0, 0.9, 1.0
_MOVED = {"replace": 2.0, "add or remove": 1.0}  # lengths of c by which one changed row moves the sum of gradients


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """Class 1 where ``x·weights + intercept > 0``, for rows scaled to length one.

    Examples
    --------
    >>> LinearRule(np.array([1.0, -1.0]), 0.0).predict(np.array([[2.0, 1.0], [1.0, 2.0]])).tolist()
    [1, 0]
    """

    weights: FloatArray = field(repr=False)
    intercept: float

    def predict(self, X: Any) -> IntArray:
        """Return ``(n_rows,)`` codes, 0 or 1."""
        return np.asarray(unit_rows(X) @ self.weights + self.intercept > 0).astype(np.int64)


def noisy_gradient_descent(
    X: Any,
    codes: IntArray,
    *,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    neighbours: Literal["replace", "add or remove"] = "replace",
    steps: int = STEPS,
) -> LinearRule:
    r"""Fit a linear rule to labelled rows with (ε, δ)-differential privacy for a record.

    Parameters
    ----------
    X : (n_rows, n_features) array or sparse matrix
        Each row is divided by its own length.
    codes : IntArray
        ``(n_rows,)``, 0 or 1.
    epsilon, delta : float
        ε > 0, 0 < δ < 1.
    rng : numpy.random.Generator
        Of the noise.
    neighbours : {"replace", "add or remove"}
        What changes; the number of rows is public either way. Replacing one row moves the sum of clipped gradients by
        up to 2c, adding or removing one by c.
    steps : int
        T ≥ 1.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4_000, 2))
    >>> rule = noisy_gradient_descent(X, (X[:, 0] > 0).astype(int), epsilon=1.0, delta=1e-5, rng=rng)
    >>> bool(np.mean(rule.predict(X) == (X[:, 0] > 0)) > 0.95)
    True
    """
    mu = mu_of_gaussian(real("epsilon", epsilon, above=0), real("delta", delta, above=0, below=1))
    steps = count("steps", steps, at_least=1)
    sigma = _MOVED[one_of("neighbours", neighbours, _MOVED)] * CLIP * np.sqrt(steps) / mu
    rows, n = unit_rows(X), len(codes)
    point = velocity = np.zeros(rows.shape[1] + 1)
    mean = np.zeros_like(point)
    for step in range(steps):
        slopes = special.expit(rows @ point[:-1] + point[-1]) - codes
        # A row of length one and the constant 1 make a gradient of length sqrt 2 times the slope.
        slopes *= np.minimum(1.0, CLIP / np.maximum(np.sqrt(2) * np.abs(slopes), 1e-12))
        gradient = np.append(rows.T @ slopes, slopes.sum()) + rng.normal(0, sigma, len(point))
        velocity = MOMENTUM * velocity + gradient / n
        point = point - RATE * velocity
        if step >= steps // 2:
            mean += point / (steps - steps // 2)
    return LinearRule(mean[:-1], float(mean[-1]))


def unit_rows(X: Any) -> Any:
    """Divide every row by its own Euclidean length; a row of zeros stays."""
    from sklearn.preprocessing import normalize

    return normalize(X)
