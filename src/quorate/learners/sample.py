"""The private rows of a fit: points of the domain, and labels of 0, 1 or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.data import fingerprint
from quorate.errors import DataRefused
from quorate.learners.concepts.protocol import Points
from quorate.types import Secret

#: What stands in ``y`` for a row without a label.
UNLABELLED: Final = -1

CodedLabels = NDArray[np.int8]  # (n_rows,): 0, 1 or UNLABELLED


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The private rows of one fit, checked.

    Parameters
    ----------
    points : Secret of (n_rows, n_features) array
        As the concept class checked them.
    labels : Secret of (n_rows,) int8
        0, 1 or ``UNLABELLED``.
    n_labelled, n_unlabelled : int
        How many rows have a label, and have none; public.
    """

    points: Secret[Points] = field(repr=False)
    labels: Secret[CodedLabels] = field(repr=False)
    n_labelled: int
    n_unlabelled: int

    def fingerprint(self, key: Secret[bytes]) -> str:
        """Return the keyed hash that binds a ledger to these rows."""
        points = self.points.reveal()
        if points.dtype.kind == "i":  # a fingerprint sees doubles, which would merge points of a fine grid
            points = np.hstack([points >> 32, points & (2**32 - 1)])
        return fingerprint(points, self.labels.reveal(), None, key)


def coded_labels(y: Any) -> CodedLabels:
    """Take ``(n_rows,)`` labels, or refuse them as a whole: int8, 0, 1 or ``UNLABELLED``.

    Raises
    ------
    DataRefused
        If they are no column of numbers, or one is neither 0, 1 nor −1. The message holds no label.

    Examples
    --------
    >>> coded_labels([1, 0, -1.0]).tolist()
    [1, 0, -1]
    >>> coded_labels(["yes", "no"])
    Traceback (most recent call last):
    quorate.errors.DataRefused: y must hold the numbers 0, 1 and -1 (unlabelled), got something else; convert the labels
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataRefused("y must be one label per row, got a table with columns; give one column")
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1, UNLABELLED)).all():  # NaN is none of them
        raise DataRefused("y must hold the numbers 0, 1 and -1 (unlabelled), got something else; convert the labels")
    return labels.astype(np.int8)
