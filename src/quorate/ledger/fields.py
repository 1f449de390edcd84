"""Fields of entries: checks that return a value or refuse it, and JSON values with one text that cannot be changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final

from quorate.errors import InvalidParameter


def text(longest: int) -> Callable[[str, object], str]:
    """Make a check: one line of 1 to ``longest`` printable characters."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
            raise InvalidParameter(parameter=name, expected=f"1 to {longest} printable characters on one line")
        return value

    return check


LARGEST: Final = 2**63 - 1


def whole(smallest: int) -> Callable[[str, object], int]:
    """Make a check: an integer, no boolean, not below ``smallest``; numpy integers are taken."""

    def check(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, Integral) or not smallest <= int(value) <= LARGEST:
            expected = f"an integer from {smallest} to {LARGEST}"
            raise InvalidParameter(parameter=name, got=value, expected=expected)
        return int(value)

    return check


def optional(check: Callable[[str, object], Any]) -> Callable[[str, object], Any]:
    """Make a check that lets None pass."""
    return lambda name, value: None if value is None else check(name, value)


def matching(pattern: re.Pattern[str], what: str) -> Callable[[str, object], str]:
    """Make a check: a text that a pattern matches as a whole, called `what` in a refusal."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise InvalidParameter(parameter=name, expected=what)
        return value

    return check


def instance(kind: type) -> Callable[[str, object], Any]:
    """Make a check: a value of one class."""

    def check(name: str, value: object) -> object:
        if not isinstance(value, kind):
            raise InvalidParameter(f"{name} must be a {kind.__name__}, got {type(value).__name__}")
        return value

    return check


DEEPEST: Final = 100  # nesting of a JSON value, and
LONGEST: Final = 2**26  # characters of its text: both far within what every reader of the chain can take


def canonical(value: object) -> str:
    r"""Return the one JSON text of ``value``: sorted keys, no spaces, ASCII, shortest floats, nothing infinite."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON value kept as its canonical text, so that it cannot be changed once it is in an entry."""

    text: str

    @classmethod
    def of(cls, value: object, name: str = "value") -> Json:
        """Take any JSON value; numpy arrays and scalars are taken as the lists and numbers they hold."""
        try:
            text = canonical(_plain(value, DEEPEST))
        except (TypeError, ValueError):
            # The message names the kind only: what was handed in may be private.
            raise InvalidParameter(f"{name} must be made of JSON values, got {type(value).__name__}") from None
        if len(text) > LONGEST:
            raise InvalidParameter(f"{name} must be at most {LONGEST} characters of JSON; store it in smaller blocks")
        return cls(text)

    @property
    def value(self) -> Any:
        """The value, fresh at each call."""
        return json.loads(self.text)


_ATOMS = frozenset({str, int, float, bool, type(None)})


def _plain(value: object, depth: int) -> object:
    if depth < 0 or (isinstance(value, Mapping) and not all(isinstance(name, str) for name in value)):
        raise TypeError
    if isinstance(value, Mapping):
        return {name: _plain(item, depth - 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        if _ATOMS.issuperset(map(type, value)):  # thousands of numbers, and nothing to look into
            return value
        return [_plain(item, depth - 1) for item in value]
    if not isinstance(value, (str, int, float, bool, type(None))) and hasattr(value, "tolist"):
        return value.tolist()
    return value
