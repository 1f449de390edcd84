"""Labels as codes: the declared classes, and the index of each label among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from quorate.data.columns import listed
from quorate.data.identity import as_list, is_missing
from quorate.data.packed import AT_ONCE
from quorate.data.spreadsheets import as_cell, from_cell
from quorate.data.streamed import StreamedColumn
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import IntArray

Label: TypeAlias = str | int | bool

_WORD = {str: "text", int: "whole numbers", bool: "truth values"}


def _plain(value: Any) -> Any:
    """Turn numpy scalars into Python's, and floats without a fraction into whole numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return str(value) if isinstance(value, str) else value


def check_classes(classes: Any) -> tuple[Label, ...]:
    """Take the declared classes, in the order given.

    Parameters
    ----------
    classes : sequence of at least two str, int or bool
        Distinct and all of one type. A class's code is its index here, and ties go to the lowest. A text that a
        spreadsheet would run as a formula is written with a quote before it (:mod:`~quorate.data.spreadsheets`).

    Returns
    -------
    tuple of str, int or bool

    Raises
    ------
    InvalidParameter
        If there are fewer than two, one is there twice or missing, or their types differ or are none of these; or two
        would be written alike.

    Examples
    --------
    >>> check_classes(["<=50K", ">50K"])
    ('<=50K', '>50K')
    >>> check_classes([0, "1"])
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: classes: got whole numbers and text together; give all classes in one type
    """
    if classes is None or isinstance(classes, (str, bytes, dict)) or not hasattr(classes, "__iter__"):
        raise InvalidParameter(f"classes: got {classes!r}; expected a list of at least two labels")
    if isinstance(classes, (set, frozenset)):
        raise InvalidParameter("classes: a set has no order, and ties go to the first class; give a list")
    labels = tuple(_plain(value) for value in as_list(classes))
    for label in labels:
        if is_missing(label) or type(label) not in _WORD:
            raise InvalidParameter(f"classes: {label!r} is no label; expected text, whole numbers or truth values")
    if any(type(label) is int and not -(2**63) <= label < 2**63 for label in labels):
        raise InvalidParameter("classes: a whole number is beyond 64 bits; write the classes as text")
    kinds = list(dict.fromkeys(type(label) for label in labels))
    if len(kinds) > 1:
        words = " and ".join(_WORD[found] for found in kinds)
        raise InvalidParameter(f"classes: got {words} together; give all classes in one type")
    if len(labels) < 2:
        raise InvalidParameter(
            f"classes: got {len(labels)} {'class' if len(labels) == 1 else 'classes'}; expected at least two"
        )
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InvalidParameter(f"classes: {twice!r} is listed twice; list each class once")
    if alike := next((label for label in labels if as_cell(label) != label and as_cell(label) in labels), None):
        raise InvalidParameter(
            f"classes: {alike!r} and {as_cell(alike)!r} would be one in a file of labels, where a quote keeps a "
            "spreadsheet from running a text as a formula; rename one of them"
        )
    return labels


def encode_labels(y: Any, classes: Sequence[Any], *, name: str = "y") -> IntArray:
    """Turn private labels into the codes of the declared classes.

    Parameters
    ----------
    y : (n,) array, series or sequence
        One label per row, as declared or as a file of labels has it.
    classes : sequence of str, int or bool
        The declared classes.
    name : str
        Column or argument that the message names.

    Returns
    -------
    (n,) array of int64
        Codes from 0 to ``len(classes) - 1``.

    Raises
    ------
    DataRefused
        If a label is missing, is of another type than the classes, or is none of them. The label is private and
        is not shown, unless it differs from a declared class only by spaces, case or a trailing dot.

    Examples
    --------
    >>> encode_labels([">50K", "<=50K"], ["<=50K", ">50K"]).tolist()
    [1, 0]
    >>> encode_labels(["1", "0"], [0, 1])
    Traceback (most recent call last):
    quorate.errors.DataRefused: y holds text, but classes are whole numbers; convert one of them (1 and '1' are not the same label); classes without quotes are numbers
    """  # noqa: E501  a doctest's message is one line
    if isinstance(y, StreamedColumn):
        return _codes_of_column(y, classes, name)
    labels = check_classes(classes)
    codes = {label: code for code, label in enumerate(labels)}
    if getattr(y, "ndim", 1) != 1:
        raise DataRefused(f"{name}: expected one label per row, got a table with columns; give one column")
    if y is None or not hasattr(y, "__iter__"):  # in scikit-learn's words, where y was forgotten
        forgotten = "this classifier requires y to be passed, but the target y is None"
        said = forgotten if y is None else f"got {type(y).__name__}"
        raise DataRefused(f"{name}: {said}; give one label for every row")
    values = as_list(y)
    if any(is_missing(value) for value in values):
        raise DataRefused(f"{name}: a label is missing; every private row needs one. Drop the rows without")
    table: dict[tuple[type, Any], int] = {}
    encoded = np.empty(len(values), dtype=np.int64)
    for position, value in enumerate(values):
        try:
            code = table.get((type(value), value))
        except TypeError:
            raise DataRefused(f"{name} holds something else than labels; expected {_WORD[type(labels[0])]}") from None
        if code is None:
            code = table[(type(value), value)] = _code(_plain(value), codes, name)
        encoded[position] = code
    return encoded


def _codes_of_column(y: StreamedColumn, classes: Sequence[Any], name: str) -> IntArray:
    """Read each distinct label once, in the order in which they occur: the first that is refused is the same one."""
    distinct = y.series.unique(maintain_order=True)
    codes = encode_labels(distinct.to_numpy(), classes, name=name)
    table = dict(zip(distinct.to_list(), codes.tolist(), strict=True))
    encoded = np.empty(len(y), dtype=np.int64)
    for start in range(0, len(encoded), AT_ONCE):
        part = y.series[start : start + AT_ONCE].to_list()
        encoded[start : start + len(part)] = [table[value] for value in part]
    return encoded


def _code(value: Any, codes: dict[Label, int], name: str) -> int:
    declared = type(next(iter(codes)))
    if type(value) is not declared:
        found = _WORD.get(type(value), "something else")
        fix = (
            "write classes = [false, true]"
            if type(value) is bool
            else "convert one of them (1 and '1' are not the same label); classes without quotes are numbers"
        )
        raise DataRefused(f"{name} holds {found}, but classes are {_WORD[declared]}; {fix}")
    if value in codes:
        return codes[value]
    if isinstance(value, str) and from_cell(value) in codes:  # as it stands in a file of labels
        return codes[from_cell(value)]
    if isinstance(value, str):
        for label in codes:
            if _bare(value) == _bare(str(label)):
                raise DataRefused(
                    f"{name}: found {value!r} where the declared class is {label!r}; "
                    "they differ by spaces, case or a trailing dot. Make them equal"
                )
    shown = listed([str(label) for label in codes]) if declared is str else ", ".join(map(str, list(codes)[:8]))
    raise DataRefused(f"{name}: a label outside classes was found; declared: {shown}. Declare it, or drop its rows")


def _bare(label: str) -> str:
    return label.strip().rstrip(".").strip().casefold()
