"""What a number given by a user must be, and how a path of theirs is written: one line per refusal, in one place.

Integers, floats and numpy scalars are taken; NaN, booleans and strings are not, since each of them would pass a
careless comparison (``nan <= 0`` is false, ``True == 1``) and end as a guarantee that nobody asked for.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from difflib import get_close_matches
from numbers import Integral, Real
from typing import TYPE_CHECKING

from quorate.errors import InvalidParameter, as_typed, named

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import PurePath


def shown(path: str | PurePath) -> str:
    r"""Write a path as text; a byte that is no UTF-8, as old file shares have it in names, is shown as U+FFFD.

    Examples
    --------
    >>> shown(os.fsdecode(b"caf\xe9"))
    'caf\ufffd'
    """
    return os.fsencode(path).decode("utf-8", "replace")


def for_shell(path: str | PurePath) -> str:
    """Write a path as it is typed in a command that somebody may paste: quoted where a shell would read it otherwise.

    Examples
    --------
    >>> for_shell("runs/ward-3"), for_shell("my runs"), for_shell("-run")
    ('runs/ward-3', "'my runs'", './-run')
    """
    text = shown(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def real(
    name: str,
    value: object,
    *,
    above: float | None = None,
    below: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    hint: str = "",
) -> float:
    """Return `value` as a finite float inside the bounds; those of `above` and `below` are outside.

    Raises InvalidParameter if it is not a number, not finite, or out of bounds.
    """
    signs = ((">", above), (">=", at_least), ("<", below), ("<=", at_most))
    bounds = " and ".join(f"{sign} {bound:g}" for sign, bound in signs if bound is not None)
    expected = f"a number {bounds}" if bounds else "a finite number"
    if not isinstance(value, bool) and isinstance(value, Real):
        try:
            number = float(value)
        except OverflowError:  # an integer beyond every float
            number = math.inf
        # Written as "is inside", so that NaN, which is inside nothing, is refused too.
        if (
            math.isfinite(number)
            and (above is None or number > above)
            and (below is None or number < below)
            and (at_least is None or number >= at_least)
            and (at_most is None or number <= at_most)
        ):
            return number + 0.0  # −0.0 becomes 0.0: equal values are written alike
    raise InvalidParameter(parameter=name, got=value, expected=expected, advice=hint or _how_to_write(value))


def truth(name: str, value: object) -> bool:
    """Check a truth value.

    Raises InvalidParameter if it is anything but True or False.

    Examples
    --------
    >>> truth("allow_hopeless", False)
    False
    """
    if not isinstance(value, bool):
        raise InvalidParameter(parameter=name, got=value, expected="True or False")
    return value


def count(name: str, value: object, *, at_least: int = 0, at_most: int | None = None, hint: str = "") -> int:
    """Return `value` as an int inside the bounds; integral floats and booleans are refused."""
    if (
        not isinstance(value, bool)
        and isinstance(value, Integral)
        and int(value) >= at_least
        and (at_most is None or int(value) <= at_most)
    ):
        return int(value)
    advice = hint or _how_to_write(value, whole=True)
    bounds = f">= {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    raise InvalidParameter(parameter=name, got=value, expected=f"a whole number {bounds}", advice=advice)


def _how_to_write(value: object, *, whole: bool = False) -> str:
    """Say how a number is written that is given as text, or as thousands are written elsewhere.

    Examples
    --------
    >>> _how_to_write("1.0"), _how_to_write("1,5"), _how_to_write("one"), _how_to_write(1.0)
    ('write it without quotes', 'write 1.5, with a point and without quotes', '', '')
    >>> _how_to_write("3.000", whole=True), _how_to_write(3.0, whole=True)
    ('write 3000, without quotes', 'a point is the decimal mark; write a whole number without one, such as 3000')
    """
    if whole and isinstance(value, float):
        return "a point is the decimal mark; write a whole number without one, such as 3000"
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if whole and re.fullmatch(r"[1-9]\d{0,2}(?:[., ']\d{3})+", text, re.ASCII):
        return f"write {re.sub('[^0-9]', '', text)}, without quotes"
    if not whole and re.fullmatch(r"[+-]?\d+,\d+", text, re.ASCII):
        return f"write {text.replace(',', '.')}, with a point and without quotes"
    try:
        float(value)
    except ValueError:
        return ""
    return "write it without quotes"


def one_of(name: str, value: object, allowed: Iterable[str], *, hint: str = "") -> str:
    """Return `value` if it is one of the strings in `allowed`; else name the nearest.

    Examples
    --------
    >>> one_of("partition", "hsh", ["hash", "balanced"])
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: partition must be one of "hash", "balanced", got 'hsh'; did you mean "hash"?
    """
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    listed = ", ".join(f'"{name_}"' for name_ in names)
    meant = nearest(value, names).removeprefix("; ")
    advice = f"{meant} {hint}".strip()
    raise InvalidParameter(parameter=name, got=value, expected=f"one of {listed}", advice=advice)


def column_names(name: str, value: object) -> tuple[str, ...]:
    """Return names of columns, of which a list or one is given.

    Examples
    --------
    >>> column_names("text", "review"), column_names("text", ["title", "review"])
    (('review',), ('title', 'review'))
    """
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(column, str) and column for column in listed):
        problem = f'{named(name)} must name columns (["review"]), got {as_typed(value)}'
        raise InvalidParameter(problem, parameter=name, got=value)
    return tuple(listed)


def nearest(value: object, names: Iterable[str]) -> str:
    """Return ``'; did you mean "…"?'`` for the nearest name, or nothing."""
    close = get_close_matches(str(value), list(names), n=1, cutoff=0.5)
    return f'; did you mean "{close[0]}"?' if close else ""


def is_this_machine(host: str) -> bool:
    """Tell whether a host is this machine's loopback, by its address or as ``localhost``; any other name may lead away.

    Examples
    --------
    >>> [is_this_machine(host) for host in ("127.0.0.1", "localhost", "10.0.0.7", "127.0.0.1.example.org")]
    [True, True, False, False]
    """
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def before_at(url: str) -> str:
    """Return what stands before the last @ of a URL, so the user and the password, whatever signs this holds.

    A reader of URLs takes a password with ``/``, ``?`` or ``#`` in it for something else, and does not see it.

    Examples
    --------
    >>> before_at("postgresql://ann:se#cr@et@host/clinic"), before_at("postgresql://host:5432/clinic")
    ('ann:se#cr@et', '')
    """
    return url.partition("://")[2].rpartition("@")[0]
