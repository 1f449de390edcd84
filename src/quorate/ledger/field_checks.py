"""Checks of the fields of entries: each takes a field's name and value, and returns the value or refuses it."""

from __future__ import annotations

import re
from collections.abc import Callable
from numbers import Integral
from typing import Any

from quorate.errors import InvalidParameter


def text(longest: int) -> Callable[[str, object], str]:
    """Make a check: one line of 1 to ``longest`` printable characters."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
            raise InvalidParameter(f"{name} must be 1 to {longest} printable characters on one line")
        return value

    return check


def whole(smallest: int) -> Callable[[str, object], int]:
    """Make a check: an integer, no boolean, not below ``smallest``; numpy integers are taken."""

    def check(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral) or not smallest <= int(value) < 2**63:
            raise InvalidParameter(f"{name} must be an integer >= {smallest}, got {value!r}")
        return int(value)

    return check


def optional(check: Callable[[str, object], Any]) -> Callable[[str, object], Any]:
    """Make a check that lets None pass."""
    return lambda name, value: None if value is None else check(name, value)


def matching(pattern: re.Pattern[str], what: str) -> Callable[[str, object], str]:
    """Make a check: a text that a pattern matches as a whole, called `what` in a refusal."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise InvalidParameter(f"{name} must be {what}")
        return value

    return check


def instance(kind: type) -> Callable[[str, object], Any]:
    """Make a check: a value of one class."""

    def check(name: str, value: object) -> object:
        if not isinstance(value, kind):
            raise InvalidParameter(f"{name} must be a {kind.__name__}, got {type(value).__name__}")
        return value

    return check
