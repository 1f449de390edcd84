"""A released concept as a JSON value: what a ledger keeps of a fit, and reads back when the fit is asked for again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from quorate.learners.concepts.finite import FiniteClass, Member
from quorate.learners.concepts.protocol import Concept, ConceptClass

_KIND, _FIELDS, _WHOLE = "concept", "fields", "whole"
_LARGEST = 2**53  # whole numbers beyond it are written as text: other readers of JSON take them for floats


def to_stored(concept: Concept) -> Any:
    """Return a JSON value that tells a concept, whole where it is a plain value of this package.

    A classifier of a finite class is told by its place in the list. Any other concept is told by its type alone: it
    cannot be read back.
    """
    try:
        return _written(concept)
    except TypeError:
        return {_KIND: type(concept).__name__}


def from_stored(value: Any, concepts: ConceptClass) -> Concept | None:
    """Return the concept that :func:`to_stored` wrote; None where it was not written whole.

    `value`: what a ledger holds. `concepts`: the class that it is of.
    """
    if not isinstance(value, dict) or _KIND not in value:
        return None
    try:
        return _read(value, concepts)  # type: ignore[no-any-return]
    except (TypeError, ValueError, KeyError, IndexError):
        return None


@cache
def _kinds() -> dict[str, type]:
    """The concepts of this package by their names: a ledger names no module, so reading one imports nothing."""
    from quorate.learners import concepts

    found = {name: getattr(concepts, name) for name in concepts.__all__}
    return {name: kind for name, kind in found.items() if isinstance(kind, type) and is_dataclass(kind)}


def _written(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) is float:
        return value
    if isinstance(value, np.generic):
        return _written(value.item())
    if type(value) is int:
        return value if abs(value) <= _LARGEST else {_WHOLE: str(value)}
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, Member):
        return {_KIND: Member.__name__, _FIELDS: {"index": value.index}}
    if is_dataclass(value) and _kinds().get(type(value).__name__) is type(value):
        return {
            _KIND: type(value).__name__,
            _FIELDS: {part.name: _written(getattr(value, part.name)) for part in fields(value) if part.init},
        }
    raise TypeError(type(value).__name__)


def _read(value: Any, concepts: ConceptClass) -> Any:
    if isinstance(value, list):
        return tuple(_read(each, concepts) for each in value)
    if not isinstance(value, dict):
        return value
    if _WHOLE in value:
        return int(value[_WHOLE])
    kind = _kinds()[value[_KIND]]
    told = {name: _read(each, concepts) for name, each in value[_FIELDS].items()}
    if kind is Member:
        if not isinstance(concepts, FiniteClass):
            raise TypeError(_KIND)
        return Member(told["index"], concepts.classifiers[told["index"]])
    return kind(**told)
