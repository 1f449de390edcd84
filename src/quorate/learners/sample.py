"""The private rows of a fit: points of the domain, and labels of 0, 1 or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.data.cell_text import as_list, is_missing
from quorate.data.columns import listed
from quorate.data.labels import Label, check_classes, encode_labels
from quorate.data.rows import with_text_names
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.learners.concepts.protocol import ConceptClass, Points
from quorate.stored_names import stored_as
from quorate.types import Secret, derive

#: What stands in ``y`` for a row without a label.
UNLABELLED: Final = -1

CodedLabels = NDArray[np.int8]  # (n_rows,): 0, 1 or UNLABELLED


@stored_as("quorate.learners.sample.Sample")
@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """The private rows of one fit, checked; how many have a label (0 or 1), and have none, is public."""

    points: Secret[Points] = field(repr=False)
    labels: Secret[CodedLabels] = field(repr=False)
    n_labelled: int
    n_unlabelled: int

    def fingerprint(self, key: Secret[bytes]) -> str:
        """Return the hash under `key` that binds a ledger to these rows, the same for every order of them."""
        points, labels = self.points.reveal(), self.labels.reveal()
        if points.dtype.kind == "f":
            points = points + 0.0  # -0.0 and 0.0 are one
        order = np.lexsort((labels, *points.T[::-1]))
        keyed = blake2b(key=derive(key, "fingerprint of sorted rows"), digest_size=32)
        keyed.update(f"{points.dtype.str} {points.shape} ".encode())
        keyed.update(np.ascontiguousarray(points[order]).tobytes())
        keyed.update(np.ascontiguousarray(labels[order]).tobytes())
        return f"sorted rows: {keyed.hexdigest()}"


def two_classes(classes: Any) -> tuple[Label, Label]:
    """Take the two labels of a learner, the one that a concept calls 0 first.

    Raises InvalidParameter if there are not two, or they are no labels.
    """
    labels = check_classes(classes)
    if len(labels) != 2:
        advice = "a concept tells one from the other"
        raise InvalidParameter(parameter="classes", got=len(labels), expected="two labels", advice=advice)
    return labels[0], labels[1]


def coded_labels(y: Any, classes: Any | None = None) -> CodedLabels:
    """Take ``(n_rows,)`` labels, or refuse them as a whole: int8, 0, 1 or ``UNLABELLED``.

    `y`: 0, 1 or −1; with `classes`, those, and a row without a label is missing (None, NaN, NaT) or −1. Raises
    DataRefused if they are no column of labels, or one is none of these; the message holds no label.
    """
    if classes is not None:
        return _codes_of(y, two_classes(classes))
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise DataRefused("y must be one label per row, got a table with columns; give one column")
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1, UNLABELLED)).all():  # NaN is none of them
        raise DataRefused(
            "y must hold the numbers 0, 1 and -1 (unlabelled), got something else; name the two labels: classes=[…]"
        )
    return labels.astype(np.int8)


def _codes_of(y: Any, classes: tuple[Label, Label]) -> CodedLabels:
    if getattr(y, "ndim", 1) != 1:
        raise DataRefused("y must be one label per row, got a table with columns; give one column")
    values = as_list(y)
    no_label = UNLABELLED not in classes

    def has_label(value: Any) -> bool:
        return not (is_missing(value) or (no_label and type(value) in (int, float) and value == UNLABELLED))

    known = np.fromiter(map(has_label, values), dtype=np.bool_, count=len(values))
    codes = np.full(len(values), UNLABELLED, dtype=np.int8)
    labelled = [value for value, has in zip(values, known.tolist(), strict=True) if has]
    if labelled and type(classes[0]) is int:
        # A column of whole numbers with missing ones among them comes as floats, and NaN for those.
        labelled = [int(label) if type(label) is float and label.is_integer() else label for label in labelled]
    codes[known] = encode_labels(labelled, classes, name=named("y"))
    return codes


def read_sample(concepts: ConceptClass, X: Any, y: Any, classes: Any | None = None) -> Sample:
    """Check a table against a class's domain, and its labels; both are refused as a whole."""
    points, labels = concepts.check(X), coded_labels(y, classes)
    if len(points) != len(labels):
        raise DataRefused("X and y differ in length; give a label, or what says that there is none, for every row")
    n_labelled = int((labels != UNLABELLED).sum())
    return Sample(
        points=Secret(points), labels=Secret(labels), n_labelled=n_labelled, n_unlabelled=len(labels) - n_labelled
    )


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame, as texts; None where there are no names."""
    if isinstance(X, np.ndarray) or len(getattr(X, "shape", ())) != 2 or not hasattr(X, "columns"):
        return None
    return tuple(with_text_names(X).columns)


def refuse_other_columns(X: Any, expected: Any | None) -> None:
    """Refuse a frame whose columns are others than those of the fit, or in another order; an array has no names."""
    names = column_names(X)
    if names is None or expected is None or names == tuple(expected):
        return
    raise DataRefused(
        f"X has the columns {listed(list(names))}, and the learner was fitted on {listed(list(expected))}; give the "
        "same columns in the same order"
    )


def refuse_groups(name: str, groups: Any | None) -> None:
    """Refuse groups of rows, for a learner of that name: what is proven of it is proven for one row."""
    if groups is not None:
        raise InvalidParameter(
            f"{name} protects one record, not everything of one person: its proof replaces one row. "
            "Leave out groups=, and give one row per person"
        )
