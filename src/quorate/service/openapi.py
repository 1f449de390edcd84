"""The OpenAPI document: every address, every status with an example, and the columns of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quorate.service.features import LARGEST, CellKind, Column, Features
from quorate.service.problems import MEDIA_TYPE, PROBLEMS, RETRY_AFTER, Problem

#: What may become of any request that needs a key.
OF_ANY_KEY: Final = (
    *("key-missing", "key-refused", "scope-missing", "internal-error", "overloaded", "keys-unreadable", "unhealthy"),
)
OF_A_QUESTION: Final = tuple(code for code in PROBLEMS if code not in ("not-found", "method-not-allowed", *OF_ANY_KEY))

_TYPES: Final[dict[CellKind, tuple[str, ...]]] = {
    "number": ("number", "string"),
    "date": ("string",),
    "time": ("string",),
    "duration": ("number", "string"),
    "truth": ("boolean", "string"),
    "text": ("string",),
    "missing": ("null",),
}
_PATTERNS: Final[dict[CellKind, str]] = {
    "number": "^[+-]?[0-9]{1,99}([.][0-9]{1,99})?([eE][+-]?[0-9])?$",
    "truth": "^([Tt]rue|TRUE|[Ff]alse|FALSE|0|1)$",
}
_BOUNDS: Final = {"minimum": -LARGEST, "maximum": LARGEST}
_DETAILS: Final = {
    "wrong-type": ("a number is expected, or null", "/rows/0/age"),
    "wrong-width": ("12 numbers are expected", "/rows/0"),
    "unknown-column": ("the columns are those of the public rows", "/rows/0"),
    "missing-column": ("every column is needed; null where a value is missing", "/rows/0/age"),
    "value-out-of-range": ("the number is too large", "/rows/0/age"),
}

PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "RFC 9457. It names the field, and never what stood there.",
    "required": ["type", "title", "status", "code", "charged"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "enum": list(PROBLEMS)},
        "detail": {"type": "string"},
        "field": {"type": "string", "description": "JSON pointer into the body"},
        "charged": {"type": "boolean", "description": "whether answers may have been charged all the same"},
        "answers_left": {"type": "integer"},
    },
}
POINT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["label", "status", "by"],
    "properties": {
        "label": {"description": "a class; null where the mechanism declined"},
        "status": {"type": "string", "enum": ["answered", "declined"]},
        "by": {
            "type": "string",
            "enum": ["ensemble", "student", "model"],
            "description": "the ensemble, at a charge; the student, or the model of a direct run, for free",
        },
    },
}


def problems(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return the responses of an address that may refuse with these codes, each with an example."""
    responses: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        problem = Problem(code, *_DETAILS.get(code, (None,))[:1], field=_DETAILS.get(code, (None, None))[-1])
        if code == "budget-spent":
            problem.facts["answers_left"] = 0
        response = responses.setdefault(
            problem.status,
            {
                "description": PROBLEMS[code].title,
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}},
            },
        )
        if code in RETRY_AFTER:
            response["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
        response["content"][MEDIA_TYPE]["examples"][code] = {"summary": PROBLEMS[code].title, "value": problem.tree()}
    return responses


def answer(
    description: str, schema: dict[str, Any], example: Any, media_type: str = "application/json"
) -> dict[int | str, dict[str, Any]]:
    """Return the response of what went well."""
    return {200: {"description": description, "content": {media_type: {"schema": schema, "example": example}}}}


def label_response(classes: Sequence[Any]) -> dict[int | str, dict[str, Any]]:
    """Return the response to a question: one point, or several."""
    point = {"label": classes[0], "status": "answered", "by": "ensemble"}
    declined = {"label": None, "status": "declined", "by": "ensemble"}
    left: dict[str, Any] = {
        "answers_left": {"type": ["integer", "null"], "description": "null where every prediction is free"},
        "epsilon_spent": {"type": "number"},
    }
    cost: dict[str, Any] = {
        "charged": {"type": "integer", "description": "answers that were charged for this request"},
        "receipt": {
            "type": ["object", "null"],
            "description": "of the charge, for quorate ledger verify --receipt; null where nothing was charged",
            "required": ["sequence", "head_hash"],
            "properties": {"sequence": {"type": "integer"}, "head_hash": {"type": "string"}},
        },
    }
    one = {"$ref": "#/components/schemas/Point"}

    def example(name: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "required": [*left, name, *cost],
            "properties": {**left, name: schema, **cost},
            "additionalProperties": False,
        }

    before = {"answers_left": 40, "epsilon_spent": 1.0}
    receipt = {"sequence": 53, "head_hash": "ab" * 32}
    content = {
        "schema": {"oneOf": [example("answer", one), example("answers", {"type": "array", "items": one})]},
        "examples": {
            "one point": {"value": {**before, "answer": point, "charged": 1, "receipt": receipt}},
            "several": {"value": {**before, "answers": [point, declined], "charged": 0, "receipt": None}},
        },
    }
    return {200: {"description": "A class for each point, or declined.", "content": {"application/json": content}}}


def label_request(features: Features, max_rows: int) -> dict[str, Any]:
    """Return the body of a question, and the header that makes a retry the same request."""
    row = row_schema(features)
    one = {"type": "object", "required": ["row"], "additionalProperties": False, "properties": {"row": row}}
    many = {
        "type": "object",
        "required": ["rows"],
        "additionalProperties": False,
        "properties": {"rows": {"type": "array", "items": row, "minItems": 1, "maxItems": max_rows}},
    }
    example = features.example()
    return {
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "One key a logical request, kept over its retries; bound to the key and to the body.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": [one, many]},
                    "examples": {
                        "one point": {"value": {"row": example}},
                        "several": {"value": {"rows": [example, example]}},
                    },
                }
            },
        },
    }


def _cell(column: Column) -> dict[str, Any]:
    """Return what JSON has in a named column: a number or a truth value comes as a text of the run's files, too."""
    types = [*_TYPES[column.kind], *["null"] * column.nullable]
    pattern = None if column.kind == "number" and not column.is_plain else _PATTERNS.get(column.kind)
    return {
        "type": types if len(types) > 1 else types[0],
        **(_BOUNDS if column.kind == "number" else {}),
        **({} if pattern is None else {"pattern": pattern}),  # of texts
    }


def row_schema(features: Features) -> dict[str, Any]:
    """Return what one row looks like."""
    if not features.named:
        width, number = len(features.columns), {"type": "number", **_BOUNDS}
        listed = {"type": "array", "items": number, "minItems": width, "maxItems": width}
        if not features.sparse:
            return listed
        placed = {"type": "object", "additionalProperties": number, "description": "place to value"}
        return {"oneOf": [listed, placed]}
    return {
        "type": "object",
        "required": [column.name for column in features.columns if column.is_needed],
        "additionalProperties": False,
        "properties": {column.name: _cell(column) for column in features.columns},
    }


DESCRIPTION: Final = (
    "Private prediction: an ensemble answers from what was kept back, at a charge that was made durable before; a "
    "point that was asked before gets the same answer and costs nothing. When the answers are spent, the student "
    "answers for free, marked as such, or the request is refused."
)


def budget_response() -> dict[int | str, dict[str, Any]]:
    """Return the response of ``GET /v1/budget``."""
    amount = {
        "type": "object",
        "required": ["spent", "limit", "left"],
        "properties": {name: {"type": "number"} for name in ("spent", "limit", "left")},
    }
    whole = {"type": ["integer", "null"]}
    properties: dict[str, Any] = {
        "answers_left": whole,
        "answers_reserved": whole,
        "epsilon": amount,
        "delta": amount,
        "after_budget": {"type": "string", "enum": ["student", "refuse"]},
        "quota": {**whole, "description": "of this key, in its whole life; null for none"},
        "ledger": {
            "type": "object",
            "properties": {
                "entries": {"type": "integer"},
                "head": {"type": "string"},
                "verified_at": {"type": "string"},
            },
        },
    }
    example = {
        "answers_left": 41,
        "answers_reserved": 50,
        "epsilon": {"spent": 1.0, "limit": 1.0, "left": 0.0},
        "delta": {"spent": 1e-05, "limit": 1e-05, "left": 0.0},
        "after_budget": "student",
        "quota": None,
        "ledger": {"entries": 53, "head": "ab" * 32, "verified_at": "2026-01-02T03:04:05+00:00"},
    }
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return answer("What is left.", schema, example)


def status_response(status: str) -> dict[int | str, dict[str, Any]]:
    """Return the response of ``GET /livez`` and ``GET /readyz``."""
    schema = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
    return answer(f"It is {status}.", schema, {"status": status})


def components() -> dict[str, Any]:
    """Return what the addresses refer to."""
    return {
        "schemas": {"Problem": PROBLEM_SCHEMA, "Point": POINT_SCHEMA},
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer", "description": "A key of quorate keys create."},
            "basic": {"type": "http", "scheme": "basic", "description": "The key as the password, for browsers."},
        },
    }
