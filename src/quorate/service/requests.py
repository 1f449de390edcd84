"""Reading a request: whose it is, its body in time and in size, and what it asks; whatever is wrong costs nothing.

A body is JSON as RFC 8259 has it and no more: no NaN, no second value under one name, no depth that nobody needs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, NoReturn

from starlette.requests import Request

from quorate.errors import PreconditionFailed
from quorate.ledger.store import is_shortage
from quorate.service.features import Features
from quorate.service.keys import Key, KeyFile, Scope
from quorate.service.problems import Problem
from quorate.service.settings import ServiceSettings
from quorate.service.turns import LabelRequest

DEEPEST: Final = 4  # {"rows": [{"age": 1}]} is three deep

_LONGEST_WHOLE = 18  # digits that fit 64 bits whatever they are
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")


def read_json(body: bytes) -> Any:
    """Read a body of UTF-8 strictly; whole numbers of more than 18 digits come as floats.

    Raises Problem whatever is wrong; no word of it is of the body.
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
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Problem("duplicate-name")
    return fields


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


_IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,200}")
_REMEMBERED: Final = 10_000  # idempotency keys; what was charged is remembered by the ledger
_CHARSETS: Final = ("", "charset=utf-8", 'charset="utf-8"')


def key_of(request: Request, keys: KeyFile, scope: Scope) -> Key:
    """Return the key that a request carries, as a Bearer token or as the password of Basic authentication.

    Raises Problem if there is none, or it may not do this.
    """
    header = request.headers.get("authorization", "")
    scheme, _, credentials = header.partition(" ")
    match scheme.lower():
        case "bearer":
            token = credentials.strip()
        case "basic":
            token = _password(credentials.strip())
        case _:
            raise Problem("key-missing", "send it as: Authorization: Bearer quorate_…")
    key = known_keys(keys, lambda: keys.find(token))
    if key is None:
        raise Problem("key-refused")
    if not key.may(scope):
        raise Problem("scope-missing", f'the scope "{scope}" is needed')
    return key


def known_keys(keys: KeyFile, read: Callable[[], Key | None] = lambda: None) -> Key | None:
    """Return what `read` finds among the keys, which are read anew where they were changed.

    Raises Problem if they cannot be read; its cause says why.
    """
    try:
        keys.keys()
        return read()
    except PreconditionFailed as failure:
        if failure.__cause__ is not None and is_shortage(failure.__cause__):
            raise Problem("overloaded") from None
        raise Problem("keys-unreadable", "nothing was charged; the log says why") from failure


def _password(credentials: str) -> str:
    try:
        return base64.b64decode(credentials, validate=True).decode("ascii").partition(":")[2]
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


async def read_body(request: Request, settings: ServiceSettings) -> bytes:
    """Read the body of a request, up to a size and within a time.

    Raises Problem if it is not JSON by its headers, too large, or too slow.
    """
    media_type, _, parameters = request.headers.get("content-type", "").lower().partition(";")
    plain = request.headers.get("content-encoding", "identity").lower() == "identity"
    if media_type.strip() != "application/json" or parameters.strip() not in _CHARSETS or not plain:
        raise Problem("unsupported-media-type")
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length) > settings.max_body:
        raise Problem("body-too-large", f"at most {settings.max_body} bytes are read")
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > settings.max_body:
                    raise Problem("body-too-large", f"at most {settings.max_body} bytes are read")
    except TimeoutError:
        raise Problem("body-too-slow", f"it must arrive within {settings.body_seconds:g} seconds") from None
    return bytes(body)


def question_of(
    body: bytes, headers: Mapping[str, str], key: Key, features: Features, *, max_rows: int
) -> tuple[LabelRequest, bool]:
    """Return what a body asks, and whether it is one point and not a list of them. Raises Problem naming the field."""
    tree = read_json(body)
    if type(tree) is not dict:
        raise Problem("wrong-type", 'an object is expected: {"row": …} or {"rows": […]}', field="")
    if tree.keys() - {"row", "rows"} or len(tree) > 1:
        raise Problem("unknown-field", 'one field is expected: "row" or "rows"', field="")
    if not tree:
        raise Problem("no-rows", field="")
    one = "row" in tree
    rows: Any = [tree["row"]] if one else tree["rows"]
    if type(rows) is not list:
        raise Problem("wrong-type", "a list of rows is expected", field="/rows")
    if not rows:
        raise Problem("no-rows", field="/rows")
    if len(rows) > max_rows:
        raise Problem("too-many-rows", f"at most {max_rows} rows a request", field="/rows")
    idempotency_key = headers.get("idempotency-key")
    if idempotency_key is not None and not _IDEMPOTENCY_KEY.fullmatch(idempotency_key):
        raise Problem("bad-idempotency-key")
    return (
        LabelRequest(
            client=key.client,
            rows=tuple(features.parse(rows, "/row" if one else "/rows/{}")),
            quota=key.quota,
            key=idempotency_key,
            body=sha256(body).hexdigest(),
        ),
        one,
    )


class RequestKeys:
    """Idempotency keys of requests that were answered: one client, one key, one body.

    What was charged for is bound in the ledger too, for good; here is what was answered for free.
    """

    def __init__(self) -> None:
        self._bodies: OrderedDict[tuple[str, str], str | None] = OrderedDict()

    def check(self, asked: LabelRequest) -> None:
        """Refuse another body under a key that was answered."""
        if asked.key is not None and self._bodies.get((asked.client, asked.key), asked.body) != asked.body:
            raise Problem("idempotency-key-reused")

    def note(self, asked: LabelRequest) -> None:
        """Remember what was answered under a key; the oldest of many are forgotten."""
        if asked.key is not None:
            self._bodies[asked.client, asked.key] = asked.body
            self._bodies.move_to_end((asked.client, asked.key))
            if len(self._bodies) > _REMEMBERED:
                self._bodies.popitem(last=False)


class RateLimit:
    """How often each key may ask: a bucket that fills steadily, and holds what a minute allows.

    Examples
    --------
    >>> limit = RateLimit(60, clock=iter([0.0, 0.0, 30.0]).__next__)
    >>> for _ in range(2):
    ...     limit.check("key:ab")
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float]) -> None:
        self._rate, self._most, self._clock = per_minute / 60, float(per_minute), clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def check(self, client: str) -> None:
        """Count one request, or refuse it."""
        if not self._rate:
            return
        now = self._clock()
        left, since = self._buckets.get(client, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        if left < 1:
            raise Problem("rate-limited")
        self._buckets[client] = (left - 1, now)
