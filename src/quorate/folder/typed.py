"""What Python says of its arguments, worded as what was typed: options, and keys of ``quorate.toml``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from quorate.errors import QuorateError

Words = Iterable[tuple[str, str]]
Patterns = Iterable[tuple[str, str | Callable[[re.Match[str]], str]]]


def as_typed(said: str, *, beginnings: Words = (), parts: Words = (), patterns: Patterns = ()) -> str:
    """Return a sentence with the names that its reader typed.

    `said`: as it is said in Python. `beginnings`: how a sentence begins, and how it begins for whoever typed; the first
    that fits is taken. `parts`: what stands anywhere in it, likewise; all that fit. `patterns`: the same as regular
    expressions, or a function of what they match.

    Examples
    --------
    >>> as_typed("commonest must be below 1", beginnings=[("commonest ", "--commonest ")])
    '--commonest must be below 1'
    """
    for before, after in beginnings:
        if said.startswith(before):
            said = after + said.removeprefix(before)
            break
    for before, after in parts:
        said = said.replace(before, after)
    for pattern, instead in patterns:
        said = re.sub(pattern, instead, said)
    return said


def error_as_typed(
    error: QuorateError, *, beginnings: Words = (), parts: Words = (), patterns: Patterns = ()
) -> QuorateError:
    """Return the same error with its sentence in the words of :func:`as_typed`."""
    error.args = (as_typed(str(error), beginnings=beginnings, parts=parts, patterns=patterns),)
    return error


@contextmanager
def in_settings() -> Iterator[None]:
    """Have what is refused inside say the keys of ``quorate.toml``, where Python names arguments of a classifier."""
    try:
        yield
    except QuorateError as error:
        raise error_as_typed(error, beginnings=_KEYS_FIRST, parts=_KEYS, patterns=_KEYS_WITH_VALUES) from None


_KEYS_FIRST = (("queries=", "[mechanism] queries = "), ("n_queries=", "[mechanism] queries = "))
_KEYS = (
    ("allow_hopeless=True", "[run] allow_hopeless = true"),
    ("the number of records; give n_records=", "the number of records; declare [data] n_records"),
)
_KEYS_WITH_VALUES = (
    (r'\bn_teachers=("auto"|\d+)', r"[teachers] count = \1"),
    (r"\bn_records=(\d+)", r"[data] n_records = \1"),
)
