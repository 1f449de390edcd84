"""Ten thousand hostile requests: no 5xx, no charge, no echo, no crash. Some hundred of them by default."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.service.conftest import GOOD, MARK, Running, Serve, rows, running

from quorate.service.keys import KeyFile

NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"half"', "true", "null", "[]", "{}", "9" * 400, "1e300",
           "-0", "01", ".5"]  # fmt: skip


@dataclass(frozen=True)
class Request:
    """One request as bytes of its body, and its headers."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    path: str = "/v1/label"


def requests(seed: int, n: int, tokens: dict[str, str]) -> list[Request]:
    """Make up `n` requests none of which may be answered.

    Parameters
    ----------
    tokens : dict of str to str
        "good", "expired", "revoked" and "read" (a key that may not ask).
    """
    rng = random.Random(seed)
    return [_one(rng, tokens) for _ in range(n)]


def _one(rng: random.Random, tokens: dict[str, str]) -> Request:
    headers = {"authorization": f"Bearer {tokens['good']}", "content-type": "application/json"}
    kind = rng.choice(
        ["value", "value", "bytes", "shape", "shape", "deep", "twice", "key", "type", "size", "elsewhere"]
    )
    if kind == "value":
        column, bad = rng.choice(list(GOOD)), rng.choice(NUMBERS)
        if column == "ward":
            bad = rng.choice(["5", "true", "[1]", '"\\ud800"', "NaN"])
        elif bad in ("null", "-0"):
            bad = f'"{MARK}"'
        cells = ", ".join(f'"{name}": {bad if name == column else json.dumps(value)}' for name, value in GOOD.items())
        text = f'{{"row": {{{cells}}}}}' if rng.random() < 0.5 else f'{{"rows": [{json.dumps(GOOD)}, {{{cells}}}]}}'
        return Request(text.encode("utf-8", "surrogatepass"), headers)
    if kind == "bytes":
        whole = json.dumps({"row": {**GOOD, "ward": MARK}}).encode()
        broken = bytearray(whole[: rng.randrange(len(whole))])
        for _ in range(rng.randrange(1, 4)):
            broken.insert(rng.randrange(len(broken) + 1), rng.randrange(128, 256))
        return Request(bytes(broken), headers)
    if kind == "shape":
        tree: Any = rng.choice(
            [
                {"row": {**GOOD, MARK: 1}}, {"row": {"age": 1}}, {"row": [1, 2, 3]}, {"row": MARK}, {"rows": {}},
                {"rows": []}, {"rows": [GOOD] * 1_001}, {"rows": [GOOD, None]}, {}, [], MARK, 5, None, {MARK: GOOD},
                {"row": GOOD, "rows": [GOOD]}, {"row": None}, {"rows": [[GOOD]]},
            ]
        )  # fmt: skip
        return Request(json.dumps(tree).encode(), headers)
    if kind == "deep":
        return Request(rng.choice([b"[", b'{"a":', b'[{"row":', b'{"row":[']) * rng.randrange(5, 20_000), headers)
    if kind == "twice":
        return Request(
            f'{{"row": {{"age": 1, "age": {rng.randrange(99)}, "bmi": 1, "ward": "{MARK}"}}}}'.encode(), headers
        )
    good = json.dumps({"row": {**GOOD, "bmi": rng.random()}}).encode()
    if kind == "key":
        bad = rng.choice(
            ["", "Bearer", f"Bearer {MARK}", f"Bearer {tokens['expired']}", f"Bearer {tokens['revoked']}", "Basic Og==",
             f"Bearer {tokens['read']}", f"Bearer {tokens['good'][:-1]}", f"Bearer {tokens['good']}x", "Negotiate x"]
        )  # fmt: skip
        return Request(good, {**headers, "authorization": bad})
    if kind == "type":
        more = rng.choice(
            [{"content-type": "text/plain"}, {"content-type": ""},
             {"content-type": "application/json; charset=latin-1"}, {"content-encoding": "gzip"},
             {"content-type": "multipart/form-data; boundary=x"},
             {"idempotency-key": "a b"}]
        )  # fmt: skip
        return Request(good, {**headers, **more})
    if kind == "size":
        return Request(b'{"row": "' + b"x" * ((1 << 20) + rng.randrange(9)) + b'"}', headers)
    method, path = rng.choice(
        [("GET", "/v1/label"), ("DELETE", "/v1/label"), ("POST", "/v1/budget"), ("GET", f"/{MARK}"),
         ("GET", "/../keys"),
         ("POST", "/v1/label/"), ("GET", "/private/run.key"), ("PUT", "/"), ("GET", "/%00"), ("OPTIONS", "/v1/label")]
    )  # fmt: skip
    return Request(b"", headers, method, path)


def tokens_of(run: Running) -> dict[str, str]:
    private = run.root / "private"
    past = KeyFile(private, clock=lambda: datetime.now(UTC) - timedelta(days=9))
    keys = KeyFile(private)
    revoked, key = keys.create("revoked", ["ask"])
    keys.revoke(key.id)
    return {
        "good": run.token,
        "expired": past.create("expired", ["ask"], days=1)[0],
        "revoked": revoked,
        "read": keys.create("read", ["read"])[0],
    }


def refused_all(run: Running, n: int, seed: int) -> Counter[int]:
    """Send hostile requests; return how often each status came back."""
    tokens = tokens_of(run)
    run.post({"row": rows(1)[0]})
    before, statuses = (run.left, run.entries), Counter[int]()
    for request in requests(seed, n, tokens):
        headers = {name: value for name, value in request.headers.items() if value}
        told = run.http.request(request.method, request.path, content=request.body, headers=headers)
        statuses[told.status_code] += 1
        assert 400 <= told.status_code < 500, (request, told.text)
        assert told.headers["content-type"] == "application/problem+json"
        assert told.json()["charged"] is False
        assert MARK not in told.text
        assert not any(token in told.text for token in tokens.values())
        assert (run.left, run.entries) == before, request
    log = "\n".join(run.lines)
    assert MARK not in log
    assert not any(token in log for token in tokens.values())
    assert run.post({"row": rows(1)[0]}).json()["charged"] == 0  # it goes on
    return statuses


@pytest.mark.heavy
def test_hostile_requests_are_refused_and_cost_nothing(serve: Serve) -> None:
    statuses = refused_all(serve(), 400, seed=1)
    assert set(statuses) == {400, 401, 403, 404, 405, 413, 415, 422}


@pytest.mark.faults
def test_ten_thousand_of_them(own_run: Callable[..., Path]) -> None:
    with running(own_run()) as run:
        statuses = refused_all(run, 10_000, seed=2)
        print(dict(sorted(statuses.items())))


@pytest.mark.heavy
def test_the_application_is_what_its_document_says(serve: Serve) -> None:
    import schemathesis  # it takes seconds, which every run would pay
    from schemathesis.specs.openapi.checks import ignored_auth

    run = serve(scopes=("ask", "read", "admin"))
    schema = schemathesis.openapi.from_url(f"{run.http.base_url}/openapi.json")
    document = run.http.get("/openapi.json").json()
    assert set(document["paths"]) == {"/", "/v1/label", "/v1/budget", "/v1/guarantee", "/metrics", "/livez", "/readyz"}

    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=8,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def holds(case: schemathesis.Case) -> None:
            case.call_and_validate(headers=run.headers(), excluded_checks=[ignored_auth])  # it would send them too

        holds()


@pytest.mark.heavy
def test_every_status_of_the_document_has_an_example(serve: Serve) -> None:
    document = serve().http.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                for media in response["content"].values():
                    assert "example" in media or media["examples"], (path, status)
