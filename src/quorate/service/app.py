"""The routes: what each of them needs, does and returns. What is charged and drawn is behind :mod:`.turns`."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from quorate.errors import LedgerBusy, LedgerIntegrityError
from quorate.ledger.store import reason_of
from quorate.service import openapi
from quorate.service.dashboard import History, Page
from quorate.service.features import Features
from quorate.service.keys import Key, KeyFile, Scope
from quorate.service.problems import Problem
from quorate.service.records import METRICS_TYPE, Records
from quorate.service.requests import RateLimit, RequestKeys, key_of, known_keys, question_of, read_body
from quorate.service.settings import ServiceSettings
from quorate.service.turns import AnsweringThreads, Answers, Point

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; form-action 'none'",
    "referrer-policy": "no-referrer",
}


ENDS_WITHIN: Final = 5.0  # seconds for a thread that still answers somebody who has gone


@dataclass(frozen=True, kw_only=True)
class Served:
    """A run that is open for service: what answers, and what the page shows of it."""

    title: str
    method: str
    answers: Answers
    features: Features
    classes: tuple[Any, ...]
    guarantee: dict[str, Any] = field(repr=False)
    verified_at: str
    history: History


@dataclass(frozen=True, slots=True)
class Sent:
    """What a route returns: the response, and what the log says of it."""

    response: Response
    points: tuple[Point, ...] = ()
    charged: int = 0


Handler: TypeAlias = Callable[[Request, Key], Awaitable[Sent]]


class Service:
    """One run over HTTP.

    `served`: the run. `keys`: who may do what. `settings`: how it is served. `records`: the log and the counters.
    """

    def __init__(self, served: Served, keys: KeyFile, settings: ServiceSettings, records: Records) -> None:
        self.served, self.keys, self.settings, self.records = served, keys, settings, records
        self._limit = RateLimit(settings.requests_per_minute, clock=time.monotonic)
        self._request_keys = RequestKeys()
        self._keys_failed: str | None = None
        self.threads: AnsweringThreads | None = None

    @property
    def healthy(self) -> bool:
        """Whether anything may be answered."""
        return self.threads is not None and self.threads.healthy and self.served.answers.healthy

    @asynccontextmanager
    async def running(self, _: FastAPI) -> AsyncIterator[None]:
        """Answer while the application runs; what waits at its end is answered first."""
        self.threads = AnsweringThreads(
            self.served.answers,
            max_waiting=self.settings.max_waiting,
            failed=self._log_failure,
        )
        self.records.event("started", run=self.served.title, method=self.served.method)
        try:
            yield
        finally:
            ended = self.threads.stop(ENDS_WITHIN)  # what is under way was waited for already
            self.records.event("stopped" if ended else "stopped in the middle of an answer")

    def _log_failure(self, error: BaseException) -> None:
        """Log what went wrong: of the ledger's own errors their sentence, which holds no row; of the machine's a code
        and a sentence for it; of others their kind.
        """
        why = None
        if isinstance(error, LedgerIntegrityError | LedgerBusy):
            why = str(error)
        elif isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            why = reason_of(error)
        self.records.event("failed", kind=type(error).__name__, why=why)

    @contextmanager
    def _reading_keys(self) -> Iterator[None]:
        """Log why the keys cannot be read: once for each reason, until they could be."""
        why = None
        try:
            yield
        except Problem as problem:
            if problem.code == "keys-unreadable":
                why = str(problem.__cause__)
                if why != self._keys_failed:
                    self.records.event("failed", kind=type(problem.__cause__).__name__, why=why)
            raise
        finally:
            self._keys_failed = why

    # --- what the routes do ------------------------------------------------------------------------------------

    async def label(self, request: Request, key: Key) -> Sent:
        """Answer one point or several."""
        if not self.healthy or self.threads is None:
            raise Problem("unhealthy")
        self._limit.check(key.client)
        body = await read_body(request, self.settings)
        question, one = question_of(body, request.headers, key, self.served.features, max_rows=self.settings.max_rows)
        self._request_keys.check(question)
        request.state.charges = True
        reply = await self.threads.ask(question)
        if isinstance(reply, Problem):
            raise reply
        self._request_keys.note(question)
        standing = self.served.answers.standing
        points = [point.tree() for point in reply.points]
        content = {
            "answers_left": standing.answers_left,
            "epsilon_spent": standing.amounts("epsilon")["spent"],
            **({"answer": points[0]} if one else {"answers": points}),
            "charged": reply.charged,
            "receipt": None if reply.receipt is None else reply.receipt.to_object(),
        }
        return Sent(_json(content), reply.points, reply.charged)

    async def budget(self, _: Request, key: Key) -> Sent:
        """Say what is left: answers first, then ε."""
        if not self.healthy:
            raise Problem("unhealthy")
        standing = self.served.answers.standing
        amounts = {name: standing.amounts(name) for name in ("epsilon", "delta")}
        return Sent(
            _json(
                {
                    "answers_left": standing.answers_left,
                    "answers_reserved": standing.answers_reserved,
                    **amounts,
                    "after_budget": self.settings.after_budget,
                    "quota": key.quota,
                    "ledger": {
                        "entries": standing.entries,
                        "head": standing.head,
                        "verified_at": self.served.verified_at,
                    },
                }
            )
        )

    async def guarantee(self, _: Request, __: Key) -> Sent:
        """Return what was promised."""
        return Sent(_json(self.served.guarantee))

    async def metrics(self, _: Request, __: Key) -> Sent:
        """Return the counters."""
        return Sent(self.metrics_now())

    def metrics_now(self) -> Response:
        """Return the counters to whoever may read them."""
        text = self.records.metrics(self.served.answers.standing, healthy=self.healthy)
        return Response(text, headers=HEADERS, media_type=METRICS_TYPE)

    async def page(self, _: Request, __: Key) -> Sent:
        """Return the page of what is left."""
        page = Page(
            title=self.served.title,
            standing=self.served.answers.standing,
            history=self.served.history,
            records=self.records,
            healthy=self.healthy,
            after_budget=self.settings.after_budget,
            shown_at=self.records.clock().isoformat(timespec="seconds"),
        )
        return Sent(Response(page.html(), headers={**HEADERS, **PAGE_HEADERS}, media_type="text/html"))

    async def live(self, _: Request) -> Response:
        """Say that the process answers."""
        return _json({"status": "live"})

    async def ready(self, _: Request) -> Response:
        """Say whether it would answer a question: whether the ledger admits charges, and the keys can be read."""
        if not (self.healthy and self.served.answers.in_place):
            return refusal(Problem("unhealthy"))
        try:
            with self._reading_keys():
                known_keys(self.keys)
        except Problem as problem:
            return refusal(problem)
        return _json({"status": "ready"})

    # --- around them -------------------------------------------------------------------------------------------

    def route(self, path: str, scope: Scope, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that needs a key, counts and logs, and tells of no error but its code."""

        async def endpoint(request: Request) -> Response:
            client = None
            try:
                with self._reading_keys():
                    key = key_of(request, self.keys, scope)
                client = key.client
                sent = await handler(request, key)
                self.records.request(
                    path, sent.response.status_code, client=client, points=sent.points, charged=sent.charged
                )
            except Problem as problem:
                self.records.request(path, problem.status, client=client, code=problem.code)
                return refusal(problem)
            except ClientDisconnect:
                self.records.event("left", route=path, client=client)
                return Response(status_code=400)
            except Exception as error:  # noqa: BLE001 - its message may hold what was asked
                self._log_failure(error)
                self.records.request(path, 500, client=client, code="internal-error")
                return _broken(request)
            return sent.response

        return endpoint

    async def broken(self, request: Request, _: Exception) -> Response:
        """Refuse where an error came up around the routes; the server logs its kind."""
        return _broken(request)

    async def elsewhere(self, _: Request, error: Exception) -> Response:
        """Refuse an address or a method that there is not."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        problem = Problem("method-not-allowed" if status == 405 else "not-found")
        self.records.request("elsewhere", problem.status, code=problem.code)
        response = refusal(problem)
        allow = (getattr(error, "headers", None) or {}).get("Allow")
        if allow:
            response.headers["allow"] = allow
        return response


def create_app(service: Service) -> FastAPI:
    """Return the application; it answers from when its lifespan begins."""
    app = FastAPI(
        title=f"quorate: {service.served.title}",
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=service.running,
        exception_handlers={404: service.elsewhere, 405: service.elsewhere, 500: service.broken},
    )
    with_key = openapi.problems(*openapi.OF_ANY_KEY)
    label = {
        **openapi.label_response(service.served.classes),
        **openapi.problems(*openapi.OF_ANY_KEY, *openapi.OF_A_QUESTION),
    }
    body = openapi.label_request(service.served.features, service.settings.max_rows)
    guarantee = openapi.answer("The guarantee, for programs.", {"type": "object"}, service.served.guarantee)
    text = {"type": "string"}
    page = openapi.answer("A page that works without scripts.", text, "<!doctype html>…", "text/html")
    metrics = "Counters, as Prometheus reads them.", text, "quorate_answers_left 41\n", "text/plain"
    for path, scope, handler, summary, responses in (
        ("/v1/label", "ask", service.label, "Ask for a class, or for several.", label),
        ("/v1/budget", "read", service.budget, "What is left.", {**openapi.budget_response(), **with_key}),
        ("/v1/guarantee", "read", service.guarantee, "What was promised.", {**guarantee, **with_key}),
        ("/", "read", service.page, "What is left, as a page.", {**page, **with_key}),
        ("/metrics", "admin", service.metrics, "Counters.", {**openapi.answer(*metrics), **with_key}),
    ):
        endpoint = service.route(path, cast("Scope", scope), handler)
        if path == "/v1/label":
            _add(app, path, endpoint, summary, responses, method="POST", more=body)
        else:
            _add(app, path, endpoint, summary, responses)
    ready = {**openapi.status_response("ready"), **openapi.problems("overloaded", "keys-unreadable", "unhealthy")}
    _add(app, "/livez", service.live, "Whether the process answers.", openapi.status_response("live"), needs_key=False)
    _add(app, "/readyz", service.ready, "Whether it would answer a question.", ready, needs_key=False)
    described = _described(app)
    app.openapi = lambda: described  # type: ignore[method-assign]
    return app


def _add(
    app: FastAPI,
    path: str,
    endpoint: Callable[[Request], Awaitable[Response]],
    summary: str,
    responses: dict[int | str, dict[str, Any]],
    *,
    method: str = "GET",
    needs_key: bool = True,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    security: dict[str, Any] = {"security": [{"bearer": []}, {"basic": []}]} if needs_key else {}
    app.add_api_route(
        path,
        endpoint,
        methods=[method],
        summary=summary,
        operation_id=path.strip("/").replace("/", "_") or "page",
        response_class=Response,
        responses={**responses, **openapi.problems("method-not-allowed")},
        openapi_extra={**more, **security},
    )


def _described(app: FastAPI) -> dict[str, Any]:
    described = get_openapi(title=app.title, version="1", routes=app.routes, description=openapi.DESCRIPTION)
    described["components"] = openapi.components()
    for path in described["paths"].values():
        for operation in path.values():
            operation["responses"]["200"].get("content", {}).pop("", None)
    return described


def refusal(problem: Problem) -> Response:
    """Return a problem as the response that it is."""
    headers = {**HEADERS, **problem.headers()}
    if problem.status in (408, 413):
        headers["connection"] = "close"  # the rest of the body is not read
    return Response(problem.body(), status_code=problem.status, headers=headers)


def _broken(request: Request) -> Response:
    """Refuse where something went wrong; whether anything may be charged hangs on how far the request came."""
    return refusal(Problem("internal-error", charged=getattr(request.state, "charges", False)))


def _json(tree: Any) -> Response:
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False)
    return Response(text.encode(), headers=HEADERS, media_type="application/json")
