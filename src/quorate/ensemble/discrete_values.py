"""One canonical text for each value of a discrete range, so that equal values can be counted whoever computed them.

A value is a string, an integer, a truth value, or a tuple or frozenset of values. Each is written with its type:
``1``, ``True`` and ``"1"`` are three values. A float is none of them: two shards would hardly ever agree on one. Round
it to an integer first.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np

DiscreteValue: TypeAlias = "str | int | bool | tuple[Any, ...] | frozenset[Any]"

LONGEST = 65_536  # characters of the canonical text
DEEPEST = 16  # tuples within tuples


def encode_value(value: object) -> str:
    """Return the canonical text of a value.

    `value`: numpy's integers, truth values and strings are taken as Python's. Returns: ASCII; equal for equal values of
    the same type, and different otherwise. Raises TypeError if the value is of no discrete type: a float, a list, None,
    …; ValueError if it is nested too deeply, or its text is longer than ``LONGEST`` characters.
    """
    text = json.dumps(_told(value, DEEPEST), separators=(",", ":"), ensure_ascii=True)
    if len(text) > LONGEST:
        raise ValueError("the value is too long to be counted")
    return text


def decode_value(text: str) -> DiscreteValue:
    """Return the value that a canonical text stands for.

    Raises ValueError if the text is not one that :func:`encode_value` writes.
    """
    try:
        value = _read(json.loads(text), DEEPEST)
    except (TypeError, KeyError, RecursionError):
        raise ValueError("not the canonical text of a value") from None
    if encode_value(value) != text:
        raise ValueError("not the canonical text of a value")
    return value


def _told(value: object, depth: int) -> list[Any]:
    if depth < 0:
        raise ValueError("the value is nested too deeply to be counted")
    match value:
        case bool() | np.bool_():
            return ["bool", bool(value)]
        case int() | np.integer():
            return ["int", hex(int(value))]  # decimal digits of a huge integer take Python quadratic time
        case str():
            return ["str", str.__str__(value)]
        case tuple():
            return ["tuple", [_told(each, depth - 1) for each in value]]
        case frozenset():
            return ["frozenset", sorted((_told(each, depth - 1) for each in value), key=json.dumps)]
        case _:
            raise TypeError(f"{type(value).__name__} is no discrete type")


def _read(told: Any, depth: int) -> DiscreteValue:
    if depth < 0 or not isinstance(told, list) or len(told) != 2:
        raise ValueError("not the canonical text of a value")
    match told:
        case ["bool", bool(value)]:
            return value
        case ["int", str(digits)]:
            return int(digits, 16)
        case ["str", str(text)]:
            return text
        case ["tuple", list(parts)]:
            return tuple(_read(each, depth - 1) for each in parts)
        case ["frozenset", list(parts)]:
            return frozenset(_read(each, depth - 1) for each in parts)
        case _:
            raise ValueError("not the canonical text of a value")
