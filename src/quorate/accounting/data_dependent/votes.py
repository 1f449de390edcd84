"""The checks that vote counts pass before they are priced; messages never hold a count."""

from __future__ import annotations

from typing import Literal

import numpy as np

from quorate.errors import InvalidParameter
from quorate.types import FloatArray, IntArray, Secret

Noise = Literal["continuous", "discrete"]


def revealed_counts(counts: object) -> IntArray:
    """Return vote counts ``(n_queries, n_classes)`` as integers, out of their Secret if they are in one.

    Examples
    --------
    >>> revealed_counts(Secret(np.array([[3, 1]])))
    array([[3, 1]])
    """
    array = np.asarray(counts.reveal() if isinstance(counts, Secret) else counts)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind not in "iuf":
        raise InvalidParameter("counts must be whole numbers of shape (n_queries, n_classes) with at least two classes")
    if array.dtype.kind == "f" and not np.array_equal(array, np.floor(array)):
        raise InvalidParameter("counts must be whole numbers, got fractions; pass votes, not shares")
    if np.any(array < 0) or np.any(array > 2**52):
        raise InvalidParameter("counts must be at least 0 and below 2^52; pass votes as they were counted")
    return array.astype(np.int64)


def checked_noise(noise: object) -> Noise:
    """Return `noise` if it is one of the two kinds.

    Examples
    --------
    >>> checked_noise("discrete")
    'discrete'
    """
    if noise == "continuous":
        return "continuous"
    if noise == "discrete":
        return "discrete"
    raise InvalidParameter(f"noise must be 'continuous' or 'discrete', got {noise!r}; releases use 'discrete'")


def gaps_to_the_top(counts: IntArray) -> FloatArray:
    """Return how far every other class is behind the first, ascending, ``(n_queries, n_classes − 1)``.

    Sorted, so that the order of the classes cannot matter, not even to the last bit.

    Examples
    --------
    >>> gaps_to_the_top(np.array([[2, 9, 5]]))
    array([[4., 7.]])
    """
    ascending = np.sort(counts, axis=1)
    return np.subtract(ascending[:, -1:], ascending[:, -2::-1], dtype=np.float64)


def log1mexp(x: FloatArray) -> FloatArray:
    """Return log(1 − e^x) for x < 0.

    Examples
    --------
    >>> log1mexp(np.array([-1e-20, -1.0])).round(3)
    array([-46.052,  -0.459])
    """
    with np.errstate(divide="ignore"):
        return np.where(x > -0.693, np.log(-np.expm1(np.minimum(x, 0.0))), np.log1p(-np.exp(x)))
