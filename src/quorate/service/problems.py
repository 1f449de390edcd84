"""Why a request is refused, as RFC 9457 has it: a stable code, the field's place, and never what stood there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

MEDIA_TYPE: Final = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One way in which a request is refused.

    `status`: HTTP status. `title`: the same words for every occurrence.
    """

    status: int
    title: str


#: Every code there is. A code that was published never changes its meaning.
PROBLEMS: Final[dict[str, ProblemType]] = {
    "malformed-json": ProblemType(400, "The body is not JSON."),
    "invalid-utf-8": ProblemType(400, "The body is not UTF-8."),
    "duplicate-name": ProblemType(400, "An object has the same name twice."),
    "too-deep": ProblemType(400, "The body is nested more deeply than any request is."),
    "not-a-finite-number": ProblemType(400, "A number is NaN, infinite, or beyond 64-bit floats."),
    "bad-idempotency-key": ProblemType(400, "The Idempotency-Key is not 1 to 200 printable ASCII characters."),
    "key-missing": ProblemType(401, "A key is needed."),
    "key-refused": ProblemType(401, "The key is unknown, expired or revoked."),
    "scope-missing": ProblemType(403, "The key does not have the scope that this needs."),
    "not-found": ProblemType(404, "There is nothing at this address."),
    "method-not-allowed": ProblemType(405, "This address does not take this method."),
    "body-too-slow": ProblemType(408, "The body did not arrive in time."),
    "budget-spent": ProblemType(409, "Fewer answers are left than there are new points."),
    "quota-spent": ProblemType(409, "Fewer answers are left to this key than there are new points."),
    "body-too-large": ProblemType(413, "The body is larger than this service takes."),
    "unsupported-media-type": ProblemType(415, "The body must be application/json, without a content coding."),
    "wrong-type": ProblemType(422, "A value is of another type than its place needs."),
    "wrong-width": ProblemType(422, "A row has more or fewer numbers than there are columns."),
    "unknown-column": ProblemType(422, "A row has a column that the public rows do not have."),
    "missing-column": ProblemType(422, "A row lacks a column."),
    "value-out-of-range": ProblemType(422, "A value is too large for its column's scale, or is no Unicode text."),
    "unknown-field": ProblemType(422, "The request has a field that is none of its own."),
    "no-rows": ProblemType(422, "There is no row to answer."),
    "too-many-rows": ProblemType(422, "There are more rows than one request may have."),
    "idempotency-key-reused": ProblemType(422, "The Idempotency-Key was used for another request of this key."),
    "rate-limited": ProblemType(429, "This key asks more often than it may."),
    "internal-error": ProblemType(500, "Something went wrong here; what it was is not told."),
    "mechanism-failed": ProblemType(500, "The mechanism failed; the answers of this request count as given."),
    "overloaded": ProblemType(503, "Too many requests wait; try again."),
    "teachers-silent": ProblemType(503, "The endpoint that the teachers ask does not answer."),
    "keys-unreadable": ProblemType(503, "The keys cannot be read; the service goes on as soon as they can be."),
    "unhealthy": ProblemType(503, "The ledger failed; nothing is answered until the service is started and verified."),
    "stopping": ProblemType(503, "The service is stopping."),
}

RETRY_AFTER: Final = {"rate-limited": 1, "overloaded": 1, "stopping": 5, "teachers-silent": 60}  # seconds, at least


class Problem(Exception):
    """A request that is refused; nothing was charged, unless `charged` says so. It holds no value of the request.

    `code`: one of :data:`PROBLEMS`. `field`: the place in the body, as a JSON pointer (RFC 6901) of names that are the
    service's own and of numbers. `**facts`: further members, numbers alone.
    """

    def __init__(
        self, code: str, detail: str | None = None, *, field: str | None = None, charged: bool = False, **facts: int
    ) -> None:
        self.code, self.detail, self.field, self.charged, self.facts = code, detail, field, charged, facts
        self.status = PROBLEMS[code].status
        super().__init__(code)

    def tree(self) -> dict[str, Any]:
        """Return the members of the problem, in their order."""
        members: dict[str, Any] = {
            "type": f"urn:quorate:problem:{self.code}",
            "title": PROBLEMS[self.code].title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "field": self.field,
            "charged": self.charged,
            **self.facts,
        }
        return {name: value for name, value in members.items() if value is not None}

    def body(self) -> bytes:
        """Return the problem as JSON."""
        return json.dumps(self.tree(), ensure_ascii=False).encode()

    def headers(self) -> dict[str, str]:
        """Return the headers that go with it."""
        headers = {"content-type": MEDIA_TYPE, "cache-control": "no-store"}
        if self.status == 401:
            headers["www-authenticate"] = 'Bearer realm="quorate", Basic realm="quorate", charset="UTF-8"'
        if self.code in RETRY_AFTER:
            headers["retry-after"] = str(RETRY_AFTER[self.code])
        return headers
