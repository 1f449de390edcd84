"""The nearest vote shares to a row of numbers."""

from __future__ import annotations

import numpy as np

from quorate.types import FloatArray


def onto_simplex(rows: FloatArray) -> FloatArray:
    r"""Project each row ``(n, n_classes)`` onto the shares: at least 0, of sum one, at the least Euclidean distance.

    Notes
    -----
    The projection is :math:`\max(y_c - t, 0)` with the one t for which it sums to one. So what a row lacks of one is
    shared equally.

    References
    ----------
    Duchi, Shalev-Shwartz, Singer and Chandra (2008), Figure 1.

    Examples
    --------
    >>> onto_simplex(np.array([[0.5, 0.3, 0.0], [1.4, -0.2, 0.1]])).round(4).tolist()
    [[0.5667, 0.3667, 0.0667], [1.0, 0.0, 0.0]]
    """
    descending = -np.sort(-rows, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    kept = np.sum(descending > excess, axis=1)
    shift = np.take_along_axis(excess, kept[:, None] - 1, axis=1)
    projected: FloatArray = np.maximum(rows - shift, 0.0)
    return projected
