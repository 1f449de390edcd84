"""What private rows are labelled with: the code of each label among the declared classes, or a number in a range.

Of a target that is a number its owner declares the range, and one private cell says a step in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite, ulp
from typing import Any, Final, TypeAlias

import numpy as np

from quorate.data.cell_text import (
    as_cell,
    as_list,
    each,
    from_cell,
    is_missing,
    one_column,
    refuse_another_number,
    text_reader,
)
from quorate.data.columns import listed
from quorate.data.digests import AT_ONCE
from quorate.data.notation import has_thousands, number, number_with_comma
from quorate.data.stream import StreamedColumn
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

Label: TypeAlias = str | int | bool

STEPS: Final = 2**16  #: into which a range is cut: a target is a whole number of them
_NO_TARGET: Final = -1
_WORD = {str: "text", int: "whole numbers", bool: "truth values"}


def _plain(value: Any) -> Any:
    """Turn numpy scalars into Python's, members of an enumeration into their value, whole floats into whole numbers."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return str(value) if isinstance(value, str) else value


def check_classes(classes: Any) -> tuple[Label, ...]:
    """Take the declared classes, in the order given: a class's code is its index there, and ties go to the lowest.

    `classes`: a sequence of at least two str, int or bool, distinct and all of one type; InvalidParameter if it is none
    of that, one is missing, or two would be written or read alike. A text that a spreadsheet would run as a formula is
    written with a quote before it (:mod:`~quorate.data.cell_text`).

    Examples
    --------
    >>> check_classes(["<=50K", ">50K"])
    ('<=50K', '>50K')
    >>> check_classes([0, "1"])
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: classes: got whole numbers and text together; give all classes in one type
    """
    name = named("classes")
    if classes is None:
        raise InvalidParameter(
            "classes= is required. Reading the label set from the data can reveal that a rare label is present. "
            'Example: classes=["no", "yes"]'
        )
    if isinstance(classes, (str, bytes, dict)) or not hasattr(classes, "__iter__"):
        raise InvalidParameter(parameter="classes", got=classes, expected="a list of at least two labels")
    if isinstance(classes, (set, frozenset)):
        raise InvalidParameter(f"{name}: a set has no order, and ties go to the first class; give a list")
    labels = tuple(_plain(value) for value in as_list(classes))
    for label in labels:
        if is_missing(label) or type(label) not in _WORD:
            raise InvalidParameter(f"{name}: {label!r} is no label; expected text, whole numbers or truth values")
    if any(type(label) is int and not -(2**63) <= label < 2**63 for label in labels):
        raise InvalidParameter(f"{name}: a whole number is beyond 64 bits; write the classes as text")
    kinds = list(dict.fromkeys(type(label) for label in labels))
    if len(kinds) > 1:
        words = " and ".join(_WORD[form] for form in kinds)
        raise InvalidParameter(f"{name}: got {words} together; give all classes in one type")
    if len(labels) < 2:
        raise InvalidParameter(
            parameter="classes",
            got=list(labels),
            expected="a list of at least two labels",
            advice="one class leaves nothing to tell apart",
        )
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InvalidParameter(f"{name}: {twice!r} is listed twice; list each class once")
    if alike := next((label for label in labels if as_cell(label) != label and as_cell(label) in labels), None):
        raise InvalidParameter(
            f"{name}: {alike!r} and {as_cell(alike)!r} would be one in a file of labels, where a quote keeps a "
            "spreadsheet from running a text as a formula; rename one of them"
        )
    says = text_reader(map(str, labels))
    spoken = [says(label) for label in labels]
    if twice := [label for label, text in zip(labels, spoken, strict=True) if spoken.count(text) > 1]:
        raise InvalidParameter(
            f"{name}: {twice[0]!r} and {twice[1]!r} are one label, as labels are read; rename one of them"
        )
    return labels


def encode_labels(y: Any, classes: Sequence[Any], *, name: str = "y", n_rows: int | None = None) -> IntArray:
    """Turn labels into the codes of the declared classes.

    Parameters
    ----------
    y : (n,) array, series or sequence
        One label per row, of whatever type says the same as a declared class
        (:func:`~quorate.data.cell_text.canonical_text`), or as a file of labels has it. A table of one column will do.
    classes : sequence of str, int or bool
        The declared classes.
    name : str
        Column or argument that the message names.
    n_rows : int, optional
        Of public labels: how many rows they are of. Another number is refused.

    Returns
    -------
    (n,) array of int64
        Codes from 0 to ``len(classes) - 1``.

    Raises
    ------
    DataRefused
        If a label is missing, or is none of the classes. The label may be private and is not shown, unless it differs
        from a declared class only by case or a trailing dot.

    Examples
    --------
    >>> encode_labels([">50K", " <=50K"], ["<=50K", ">50K"]).tolist(), encode_labels(["1", 0.0, True], [0, 1]).tolist()
    ([1, 0], [1, 0, 1])
    >>> encode_labels([2], [0, 1])
    Traceback (most recent call last):
    quorate.errors.DataRefused: y: a label outside classes was found; declared: 0, 1. Add it to classes or drop its rows
    """
    labels = check_classes(classes)
    if not isinstance(y, StreamedColumn):
        y = one_column(y, name)
        if y is None or not (hasattr(y, "__iter__") and hasattr(y, "__len__")):
            # in scikit-learn's words, where y was forgotten
            forgotten = "this classifier requires y to be passed, but the target y is None"
            said = forgotten if y is None else f"got {type(y).__name__}"
            raise DataRefused(f"{name}: {said}; give one label for every row")
    if n_rows is not None:
        refuse_another_number(len(y), n_rows, name)
    codes = codes_of(y, labels)
    if (lost := np.flatnonzero(codes < 0)).size:
        values = as_list(y.series.gather(lost)) if isinstance(y, StreamedColumn) else as_list(y)
        if not isinstance(y, StreamedColumn):
            values = [values[at] for at in lost.tolist()]
        raise _lost(values, labels, name)
    return codes


def codes_of(y: Any, classes: Sequence[Label]) -> IntArray:
    """Return the code of each label, and −1 where it says none of the declared classes: a direct run leaves it out."""
    says = text_reader(map(str, classes))
    known = {says(label): code for code, label in enumerate(classes)}
    known |= {str(label): code for code, label in enumerate(classes) if type(label) is int}  # beyond the floats

    def code(label: Any) -> int:
        text = says(label)
        return known.get(text, known.get(says(from_cell(text)), -1)) if text is not None else -1

    if not isinstance(y, StreamedColumn):
        return np.array(each(code, as_list(y)), dtype=np.int64)
    distinct = y.series.unique()
    table = dict(zip(distinct.to_list(), each(code, as_list(distinct)), strict=True))
    encoded = np.empty(len(y), dtype=np.int64)
    for start in range(0, len(encoded), AT_ONCE):
        part = y.series[start : start + AT_ONCE].to_list()
        encoded[start : start + len(part)] = [table[value] for value in part]
    return encoded


def _lost(values: list[Any], labels: tuple[Label, ...], name: str) -> DataRefused:
    """Return what is said of labels that say none of the classes."""
    if any(is_missing(value) for value in values):
        return DataRefused(f"{name}: a label is missing; every row needs one. Drop the rows without")
    for value in values:
        for label in labels:
            if isinstance(value, str) and _bare(value) == _bare(str(label)):
                return DataRefused(
                    f"{name}: found {value!r} where the declared class is {label!r}; they differ by case or a trailing "
                    "dot. Make them equal"
                )
    if any(isinstance(value, float | np.floating) and float(value) % 1 for value in values):
        return DataRefused(
            f"{name}: labels are numbers with a fraction, and a classifier learns classes. Cut them into classes, such "
            "as y > limit, and declare these; or predict the number itself (docs/how-to/predict-a-number.md)"
        )
    declared = listed([str(label) for label in labels]) if type(labels[0]) is str else ", ".join(map(str, labels[:8]))
    outside = f"a label outside {named('classes')} was found; declared: {declared}"
    return DataRefused(f"{name}: {outside}. Add it to {named('classes')} or drop its rows")


def _bare(label: str) -> str:
    return label.strip().rstrip(".").strip().casefold()


def without_numbers(cells: Iterable[str]) -> str | None:
    """Return one of these public cells where none of them is a number; None where one is, or there are none."""
    texts = sorted(text for text in cells if text.strip())
    any_number = any(isfinite(number_with_comma(text)) or has_thousands(text) for text in texts)
    return None if any_number or not texts else texts[0]


def finite_numbers(targets: Any, *, name: str, n_rows: int | None = None) -> FloatArray:
    """Return public targets as `n_rows` finite numbers, perhaps beyond any range, or refuse them by `name`."""
    column = one_column(targets, name, entry="target")
    if not hasattr(column, "__iter__"):
        raise DataRefused(f"{name}: got {type(column).__name__}, expected one target for every row")
    values = np.array(each(number, as_list(column)), dtype=np.float64)
    if n_rows is not None:
        refuse_another_number(len(values), n_rows, name, entry="target")
    if not np.isfinite(values).all():
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataRefused(f"{name}: row {place} holds no finite number; mend it, or drop its row")
    return values


@stored_as("quorate.data.labels.TargetRange")
@dataclass(frozen=True, slots=True)
class TargetRange:
    """From `low` to `high`, a public statement: what is beyond it is cut off at the nearer end."""

    low: float
    high: float

    @classmethod
    def of(cls, given: Any) -> TargetRange:
        """Take a range as its owner gives it, or refuse: two finite ascending numbers between which floats hold the
        steps.
        """
        if given is None:
            raise InvalidParameter(
                f"{named('target_range')} is required. Reading it off the data can reveal an extreme value. "
                "Example: target_range=(0, 120)",
                parameter="target_range",
            )
        ends = tuple(given) if isinstance(given, tuple | list | np.ndarray) else ()
        plain = len(ends) == 2 and not any(isinstance(end, str | bytes | bool) for end in ends)
        low, high = map(number, ends) if plain else (0.0, 0.0)
        if not (low < high and isfinite(low) and isfinite(high) and isfinite(high - low)):
            raise InvalidParameter(
                parameter="target_range",
                got=given,
                expected="two finite numbers (low, high), low < high",
                advice="give the least and the largest value that the target can have, from public knowledge",
            )
        if ulp(max(-low, high)) * STEPS > high - low:
            raise InvalidParameter(
                parameter="target_range",
                got=given,
                expected="ends that are further apart, for their size",
                advice="subtract a public number from every target, and from both ends",
            )
        return cls(low + 0.0, high + 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high

    @property
    def width(self) -> float:
        """How long the range is, > 0."""
        return self.high - self.low

    def steps_of(self, targets: Sequence[Any]) -> IntArray:
        """Return each target's steps from `low`, 0 … 2¹⁶; −1 for no finite number. A text is read, a truth value is 0
        or 1.
        """
        values = np.array(each(number, targets), dtype=np.float64)
        finite = np.isfinite(values)
        inside = np.clip(np.where(finite, values, self.low), self.low, self.high)
        steps = np.rint((inside - self.low) / self.width * STEPS).astype(np.int64)
        return np.where(finite, np.clip(steps, 0, STEPS), _NO_TARGET)

    def part(self, first: int, last: int) -> TargetRange:
        """Return the part from one number of steps to another."""
        return TargetRange(self.low + self.width * (first / STEPS), self.low + self.width * (last / STEPS))

    def clipped(self, predictions: FloatArray) -> FloatArray:
        """Return predictions, of any shape, cut off at the ends of the range."""
        return np.clip(predictions, self.low, self.high)
