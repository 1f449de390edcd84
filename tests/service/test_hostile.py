"""Ten thousand hostile requests: no 5xx, no charge, no echo, no crash. Some hundred of them by default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.service.conftest import Running, Serve, rows, running
from tests.service.hostile import MARK, requests

from quorate.service.keys import KeyFile


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
