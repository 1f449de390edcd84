"""The client: a retry is the same request, so that it cannot be charged twice."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest
from tests.service.conftest import Running, Serve, rows

from quorate.errors import InvalidParameter
from quorate.service import Client, NoAnswer, Refused


class Unreliable(httpx.BaseTransport):
    """Carries requests to a service, and loses every answer of the first `lost`."""

    def __init__(self, lost: int) -> None:
        self.inner, self.lost, self.seen = httpx.HTTPTransport(), lost, []  # type: ignore[var-annotated]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self.inner.handle_request(request)
        self.seen.append((request.headers.get("idempotency-key"), bytes(request.read())))
        if len(self.seen) <= self.lost:
            response.read()
            raise httpx.ReadError("the answer is lost")
        return response

    def close(self) -> None:
        self.inner.close()


def client(run: Running, **how: Any) -> Client:
    return Client(str(run.http.base_url), run.token, sleep=lambda _: None, **how)


@pytest.mark.heavy
def test_it_asks_and_reads_what_is_left(serve: Serve) -> None:
    run = serve()
    with client(run) as asking:
        one, two = rows(2)
        first = asking.label(one)
        assert asking.label_many([one, two])[0] == first
        assert asking.answers_left == asking.budget()["answers_left"] == 10
        assert asking.guarantee()["unit"] == "record"


@pytest.mark.heavy
def test_a_lost_answer_is_asked_for_again_under_the_same_key_and_charged_once(serve: Serve) -> None:
    run, transport = serve(), Unreliable(lost=3)
    with client(run, transport=transport) as asking:
        asking.label(rows(1)[0])

    assert len(transport.seen) == 4
    assert len(set(transport.seen)) == 1
    assert (run.left, run.service.records.charged) == (11, 1)


@pytest.mark.heavy
def test_two_requests_have_two_keys(serve: Serve) -> None:
    transport = Unreliable(lost=0)
    with client(serve(), transport=transport) as asking:
        for row in rows(2):
            asking.label(row)
    assert len({key for key, _ in transport.seen}) == 2


@pytest.mark.heavy
def test_it_gives_up_after_its_retries(serve: Serve) -> None:
    run, transport = serve(), Unreliable(lost=99)
    with client(run, transport=transport, retries=2) as asking:
        with pytest.raises(NoAnswer, match=r"ReadError: the answer is lost.*may have been charged") as lost:
            asking.label(rows(1)[0])
        assert (len(transport.seen), run.service.records.charged) == (3, 1)
        transport.lost = 0
        assert lost.value.charged
        assert asking.label(rows(1)[0], idempotency_key=lost.value.idempotency_key).by == "ensemble"
        with pytest.raises(Refused, match="idempotency-key-reused"):
            asking.label(rows(2)[1], idempotency_key=lost.value.idempotency_key)
    assert run.service.records.charged == 1


@pytest.mark.heavy
def test_where_nobody_listens_nothing_was_charged_and_it_says_so() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for place in (url, "nowhere", "http://[", "ftp://nowhere"):
        with pytest.raises((NoAnswer, InvalidParameter)) as none, Client(place, "k", sleep=lambda _: None) as asking:
            asking.label({})
        assert len(str(none.value).splitlines()) == 1
        assert isinstance(none.value, InvalidParameter) or not none.value.charged
    with pytest.raises(NoAnswer, match="nothing is charged by reading"), Client(url, "k", retries=0) as asking:
        asking.budget()


@pytest.mark.parametrize("text", ["<html>", "[]", "7", "{}"])
def test_what_is_no_service_is_said_to_be_none(text: str) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    with Client("http://service", "k", transport=transport) as asking:
        for ask in (lambda: asking.label({}), lambda: asking.label_many([{}]), asking.budget):
            with pytest.raises(NoAnswer, match="no service of quorate"):
                ask()


def test_a_refusal_that_passes_is_tried_again_and_no_other() -> None:
    told = {"answers_left": 1, "epsilon_spent": 1.0, "answer": {"label": "no", "status": "answered", "by": "ensemble"}}
    waits: list[float] = []
    answers = iter(
        [
            httpx.Response(429, json={"code": "rate-limited"}, headers={"retry-after": "7"}),
            httpx.Response(503, json={"code": "stopping"}),
            httpx.Response(502, text="a proxy"),
            httpx.Response(200, json=told),
            httpx.Response(503, json={"code": "unhealthy", "title": "The ledger failed."}),
            httpx.Response(409, json={"code": "budget-spent"}),
        ]
    )
    transport = httpx.MockTransport(lambda _: next(answers))
    with Client("http://service", "key", transport=transport, sleep=waits.append) as asking:
        assert asking.label({}).label == "no"
        for code in ("unhealthy", "budget-spent"):
            with pytest.raises(Refused, match=code):
                asking.label({})
    assert len(waits) == 3
    assert waits[0] == 7
