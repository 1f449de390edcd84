"""A client's part of a block: several requests that wait together are drawn, and stored, as one block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from quorate.errors import InvalidParameter
from quorate.ledger.fields import canonical, optional, text, whole

_CLIENT, _KEY, _COUNT = text(128), optional(text(256)), whole(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What one client asks of a block that it shares with others.

    Parameters
    ----------
    client : str
        Who asks; its quota is what bounds it below the cap.
    count : int
        How many answers, at least 1.
    key : str, optional
        Idempotency key of the client. Another body under the same key is refused.
    body : str, optional
        Digest of the request. Left out, it is the number of answers that tells requests under one key apart.

    Examples
    --------
    >>> Part(client="alice", count=2, key="first", body="sha").count
    2
    """

    client: str
    count: int
    key: str | None = None
    body: str | None = None

    def __post_init__(self) -> None:
        _CLIENT("client", self.client)
        _KEY("key", self.key)
        _KEY("body", self.body)
        object.__setattr__(self, "count", _COUNT("count", self.count))

    def body_hash(self, reservation: int) -> str:
        """What another request under the same key must agree in: a repeat may have fewer answers to pay for."""
        return _body_hash(reservation, self.count if self.body is None else self.body)

    def to_object(self) -> dict[str, Any]:
        """Return the part as a JSON object."""
        return {"body": self.body, "client": self.client, "count": self.count, "key": self.key}


@lru_cache(maxsize=4096)  # asked for by each rule that a request meets on its way
def _body_hash(reservation: int, told: int | str) -> str:
    return sha256(canonical(["part", reservation, told]).encode()).hexdigest()


def parts(name: str, value: object) -> tuple[Part, ...]:
    """Check the parts of a block; none of its requests may come twice."""
    if not isinstance(value, tuple) or not value or not all(isinstance(part, Part) for part in value):
        raise InvalidParameter(f"{name} must be a tuple of Part, with one at least, got {type(value).__name__}")
    keys = [(part.client, part.key) for part in value if part.key is not None]
    if len(keys) != len(set(keys)):
        raise InvalidParameter(f"{name} must have different keys where a client has several")
    return value


def read_parts(value: Any) -> tuple[Part, ...] | None:
    """Read the parts of a stored entry."""
    return None if value is None else tuple(Part(**part) for part in value)
