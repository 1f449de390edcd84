"""The private rows of a fit: points of the domain, and labels of 0, 1 or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.data import fingerprint
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.concepts.protocol import ConceptClass, Points
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


def read_sample(concepts: ConceptClass, X: Any, y: Any) -> Sample:
    """Check a table against a class's domain, and its labels.

    Raises
    ------
    InvalidParameter, DataRefused
        If a row lies outside the domain, a label is another one, or there are not as many of them as rows.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> read_sample(Thresholds(bits=3), [[1], [7]], [1, UNLABELLED]).n_labelled
    1
    """
    points, labels = concepts.check(X), coded_labels(y)
    if len(points) != len(labels):
        raise DataRefused("X and y differ in length; give 0, 1 or -1 (unlabelled) for every row")
    n_labelled = int((labels != UNLABELLED).sum())
    return Sample(
        points=Secret(points), labels=Secret(labels), n_labelled=n_labelled, n_unlabelled=len(labels) - n_labelled
    )


def refuse_groups(name: str, groups: Any | None) -> None:
    """Refuse groups of rows, for a learner of that name: what is proven of it is proven for one row.

    Raises
    ------
    InvalidParameter
        If there are groups.
    """
    if groups is not None:
        raise InvalidParameter(
            f"{name} protects one record, not everything of one person: its proof replaces one row. "
            "Leave out groups=, and give one row per person"
        )
