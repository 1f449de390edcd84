"""JSON as RFC 8259 has it and no more: no NaN, no second value under one name, no depth that nobody needs."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

from quorate.service.problems import Problem

DEEPEST: Final = 4  # {"rows": [{"age": 1}]} is three deep

_LONGEST_WHOLE = 18  # digits that fit 64 bits whatever they are
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


def read_json(body: bytes) -> Any:
    """Read a body strictly.

    `body`: UTF-8, without a byte order mark. Returns: numbers are finite; whole ones of more than 18 digits come as
    floats. Raises Problem whatever is wrong; no word of it is of the body.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise Problem("invalid-utf-8") from None
    _refuse_deep(text)
    try:
        return _READER.decode(text)
    except (ValueError, RecursionError):  # its message may quote the body
        raise Problem("malformed-json") from None


def _refuse_deep(text: str) -> None:
    """Count brackets outside of strings, before anything is built of them."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for bracket in _BRACKETS.finditer(_STRINGS.sub("", text)):
        depth += 1 if bracket.group() in "[{" else -1
        if depth > DEEPEST:
            raise Problem("too-deep", f"at most {DEEPEST} levels are read")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem("duplicate-name")
    return found


def _whole(text: str) -> int | float:
    return int(text) if len(text) <= _LONGEST_WHOLE else _real(text)


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Problem("not-a-finite-number")
    return value


def _constant(_: str) -> NoReturn:
    raise Problem("not-a-finite-number")


_READER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_float=_real, parse_constant=_constant)
